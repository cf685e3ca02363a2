"""Temporary: moved to device.arithmetic (BlockProduct, FAST, EXACT) and device.fast_math; use those."""

from device.arithmetic import BlockProduct as BlockProduct
from device.fast_math import product as fast_product

__all__ = ["BlockProduct", "fast_product"]
