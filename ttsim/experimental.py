"""``ttnn.experimental``: the functions of it that are simulated."""

from ttsim.functions.rearranging import convert_to_chw, convert_to_hwc

__all__ = ["convert_to_chw", "convert_to_hwc"]
