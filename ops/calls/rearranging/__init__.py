"""Calls that put numbers in another order: permute, transpose, pad, convert_to_hwc, convert_to_chw."""
