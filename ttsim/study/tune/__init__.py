"""The best way to make a call, or the calls of a network, on a device."""
