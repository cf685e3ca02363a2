"""Recorded networks: the calls of a script on a device, to be made again on any other device."""
