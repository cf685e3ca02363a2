"""Weights and bias that are refused once they are to be prepared, and what has run by then."""

from dataclasses import replace
from typing import Any

import pytest

from device.errors import ArgumentError
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, INT32
from device.plan import Operation, Refuse
from device.spec.device_spec import load_spec
from ops.planners.conv.checks import operand_refusals
from ops.planners.conv.conv_transpose2d import check_strict, validate
from ops.planners.conv.plan import plan_convolution
from tests.ops.planners.conv.good_call import TWO_SLICES, bias, call, operand, sized_call

SPEC = load_spec("wormhole_n150")
FREE = 1360544

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (
        "weights of integers",
        {"weight": operand(32, 32, 3, 3, data_format=INT32)},
        "Unsupported data type for transform_weights_for_conv_transpose2d",
    ),
    (
        "weights of block floats",
        {"weight": operand(32, 32, 3, 3, data_format=BFLOAT8_B, layout=Layout.TILE)},
        "Unsupported data type for transform_weights_for_conv_transpose2d",
    ),
    (
        "raw weights on the device",
        {"weight": operand(32, 32, 3, 3, place=DRAM_MEMORY_CONFIG)},
        "Weights should be in TILE layout.",
    ),
    (
        "prepared weights, raw bias",
        {
            "weight": operand(1, 1, 288, 32, place=DRAM_MEMORY_CONFIG, layout=Layout.TILE),
            "bias": bias(1, 1, 1, 32),
        },
        "Device Operations expect device tensors as inputs",
    ),
    ("bias length", {"bias": bias(1, 1, 1, 16)}, "Bias must have the same length as output channels"),
    ("bias turned", {"bias": bias(32, 1, 1, 1)}, "Bias must have the same length as output channels"),
    ("bias of rank 1", {"bias": bias(32)}, "ShapeBase[] index out of range. 3 not in [-4, 1)"),
    ("bias of rank 2", {"bias": bias(1, 32)}, "ShapeBase[] index out of range. 3 not in [-4, 2)"),
    ("bias of rank 5", {"bias": bias(1, 1, 1, 32, 1)}, "Host conv bias should be 4D tensor"),
    (
        "bias in tiles",
        {"bias": bias(1, 1, 1, 32, layout=Layout.TILE)},
        "Host conv bias layout should be in row_major layout",
    ),
    ("bias with rows", {"bias": bias(1, 1, 2, 32)}, "Host conv bias shape is not correct"),
]


@pytest.mark.parametrize(("changes", "first_line"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refusals_begin_as_the_real_library_does(changes: dict[str, Any], first_line: str) -> None:
    made = call(**changes)
    validate(made)
    check_strict(made)
    lines = next(operand_refusals(made)).splitlines()
    assert lines[0] == first_line
    assert len(lines) == 2, "the real library's line, then ours: argument, value, way out"
    assert ":" in lines[1]


@pytest.mark.parametrize(
    ("made", "ran"),
    [
        (call(input=operand(1, 1, 64, 32, place=L1_MEMORY_CONFIG)), ["InterleavedToShardedDeviceOperation"]),
        (call(slice_config=TWO_SLICES), ["PaddedSliceDeviceOperation"]),
        (call(), ["InterleavedToShardedDeviceOperation"]),
        (sized_call((8, 8), (32, 32), (1, 1), place=L1_MEMORY_CONFIG), []),  # tiles are made afterwards
    ],
    ids=["l1", "slices", "dram", "matmul"],
)
def test_the_programs_before_have_run(made: Any, ran: list[str]) -> None:
    bad = replace(made, weight=operand(*made.weight.spec.shape, data_format=INT32))
    steps = plan_convolution(bad, SPEC, free_l1_bytes=FREE).steps
    assert [step.name for step in steps if isinstance(step, Operation)] == ran
    assert isinstance(steps[-1], Refuse)
    assert steps[-1].error is ArgumentError
    assert steps[-1].text.startswith("Unsupported data type for transform_weights_for_conv_transpose2d\n")


def test_weights_that_the_first_slice_prepared_are_not_looked_at_again() -> None:
    assert not plan_convolution(call(slice_config=TWO_SLICES), SPEC, free_l1_bytes=FREE).refused
