"""Recorded networks: the calls of a script on a device, which can be replayed on other devices."""
