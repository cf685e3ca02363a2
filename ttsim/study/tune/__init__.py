"""Searches for the best configs of a call, or of the calls of a network, on a device."""
