"""How results depend on each figure of a device."""
