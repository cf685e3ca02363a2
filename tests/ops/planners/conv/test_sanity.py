"""What is refused because the library would crash or be wrong."""

import re
from typing import Any

import pytest

from device.errors import ArgumentError
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import INT32
from ops.planners.conv.arguments import ConvConfig
from ops.planners.conv.conv_transpose2d import check_arguments, check_strict
from tests.ops.planners.conv.good_call import bias, call, operand

IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"in_channels": 0}, "in_channels must be at least 1, not 0"),
    ({"kernel_size": (0, 3)}, "kernel_size must be at least (1, 1), not (0, 3)"),
    ({"groups": 3}, "groups must divide in_channels, but 32 is no multiple of 3"),
    ({"groups": 8, "out_channels": 36}, "groups must divide out_channels, but 36 is no multiple of 8"),
    ({"padding": (9, 9, 1, 1), "output_padding": (0, 0)}, "padding (9, 9, 1, 1) leaves no output: it would be -1 high"),
]


@pytest.mark.parametrize(("changes", "text"), IMPOSSIBLE)
def test_calls_that_crash_the_real_library(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(f"conv_transpose2d: {text}")):
        check_arguments(call(**changes))


SILENT: list[tuple[str, dict[str, Any], str]] = [
    ("groups 0", {"groups": 0}, "groups must be at least 1, not 0"),
    ("dilation 0", {"dilation": (1, 0)}, "dilation must be at least (1, 1), not (1, 0)"),
    (
        "padding",
        {"padding": (1, 3, 1, 1)},
        "padding must not exceed dilation * (kernel_size - 1), which is 2 here, not 3",
    ),
    (
        "1x1",
        {"kernel_size": (1, 1), "stride": (1, 1), "padding": (0, 0, 0, 0), "weight": operand(32, 32, 1, 1)},
        "output_padding (1, 1) is ignored by a 1x1",
    ),
    ("smaller image", {"input_height": 7}, "input_height=7, input_width=8, in_channels=32 are 1792 elements"),
    (
        "larger image in L1",
        {"input": operand(1, 1, 64, 32, place=L1_MEMORY_CONFIG), "batch_size": 2},
        "are 4096 elements, but input_tensor has 2048",
    ),
    ("NCHW", {"input": operand(1, 32, 8, 8)}, "input_tensor must be channels-last"),
    ("integers", {"input": operand(1, 1, 64, 32, data_format=INT32)}, "input_tensor must be a floating-point type"),
    ("integer weights_dtype", {"conv_config": ConvConfig(weights_format=INT32)}, "conv_config.weights_dtype must be a"),
    ("weights I", {"weight": operand(16, 32, 3, 3)}, "weight_tensor must have the shape [32, 32, 3, 3]"),
    ("weights kernel", {"weight": operand(32, 32, 2, 2)}, "weight_tensor must have the shape [32, 32, 3, 3]"),
    ("weights not grouped", {"groups": 2}, "weight_tensor must have the shape [32, 16, 3, 3]"),
    ("weights in tiles", {"weight": operand(32, 32, 3, 3, layout=Layout.TILE)}, "weight_tensor on the host must be in"),
    (
        "prepared for another call",
        {"weight": operand(1, 1, 288, 64, place=DRAM_MEMORY_CONFIG, layout=Layout.TILE)},
        "weight_tensor on the device must be prepared for out_channels = 32",
    ),
    (
        "weights without axes",
        {"weight": operand(place=DRAM_MEMORY_CONFIG, layout=Layout.TILE)},
        "weight_tensor on the device must be prepared for out_channels = 32, the size of its last axis, not have the "
        "shape []",
    ),
    (
        "bias without axes",
        {"bias": bias(place=DRAM_MEMORY_CONFIG, layout=Layout.TILE)},
        "bias_tensor on the device must be prepared for out_channels = 32: it is TILE with shape []",
    ),
    (
        "raw bias on the device",
        {"bias": bias(1, 1, 1, 32, place=DRAM_MEMORY_CONFIG)},
        "bias_tensor on the device must be prepared for out_channels = 32",
    ),
]


@pytest.mark.parametrize(("changes", "text"), [row[1:] for row in SILENT], ids=[row[0] for row in SILENT])
def test_calls_that_the_real_library_gets_wrong(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(text)):
        check_strict(call(**changes))


def test_a_sane_call() -> None:
    check_arguments(call())
    check_strict(call())
    check_strict(call(output_padding=(2, 2)))  # the real library computes this rightly
    check_strict(call(conv_config=ConvConfig(full_inner_dim=True)))  # it is wrong for some plans: soundness
