"""Random sequences of calls on one device: each live tensor is compared with float64 after every call.

A step is one call as Python text. The text is executed on a device, and the same text is the script that a fault is
printed as. What the call must give is computed in float64 from what its operands hold, so that errors do not add up
along a sequence, and the error that the formats allow is small enough to show a single wrong element.
"""
