"""Programs of three operands: which tensors lie in their circular buffers, and what is refused."""

import pytest

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from ops.planners.ternary import TernaryArguments, plan_ternary
from ops.programs.eltwise.ternary import Ternary
from tests.build import N150, place

SHARDS, MORE_SHARDS = place("block/32x32/2x2"), place("block/32x32/4x4")


def planned(place, *operands, **fields):
    """The program of three operands, tensors at a place or numbers, with a result in shards or elsewhere."""
    tensors = tuple(TensorSpec((33, 33), BFLOAT16, Layout.TILE, where) for where in operands)
    formats = (BFLOAT16,) * len(tensors) + (None,) * (3 - len(tensors))
    op = Ternary(operation="lerp", formats=formats, scalar=0.5 if None in formats else None, data_format=BFLOAT16)
    plan = plan_ternary(TernaryArguments(op=op, tensors=tensors, place=place, **fields), N150)
    return [buffer.view_of for buffer in plan.steps[0].circular_buffers]


@pytest.mark.parametrize(
    ("result", "operands", "in_place"),
    [
        (SHARDS, 3 * [SHARDS], ["input", "input_b", "input_c", "output"]),
        (SHARDS, 3 * [L1_MEMORY_CONFIG], [None, None, None, "output"]),
        (SHARDS, 2 * [SHARDS], ["input", "input_b", "output"]),
        (SHARDS, 2 * [L1_MEMORY_CONFIG], [None, None, None]),
        (SHARDS, [L1_MEMORY_CONFIG, SHARDS, SHARDS], [None, None, None, None]),
        (MORE_SHARDS, 3 * [SHARDS], [None, None, None, None]),
        (L1_MEMORY_CONFIG, 3 * [SHARDS], [None, None, None, None]),
    ],
)
def test_programs_work_on_shards_of_the_result_where_all_operands_lie_alike(result, operands, in_place):
    assert planned(result, *operands) == in_place


@pytest.mark.parametrize(("where", "refused"), [(SHARDS, False), (L1_MEMORY_CONFIG, True)])
def test_rows_take_no_result_of_interleaved_tensors(where, refused):
    target = TensorSpec((33, 33), BFLOAT16, Layout.ROW_MAJOR, L1_MEMORY_CONFIG)
    if not refused:
        planned(None, *3 * [where], target=target)
        return
    with pytest.raises(DeviceError, match=r"^Ternary operation requires output tensor to be in Tile layout when work"):
        planned(None, *3 * [where], target=target)


def test_shards_of_the_result_are_made_before_layouts_are_looked_at():
    rows = TensorSpec((1, 32), BFLOAT16, Layout.ROW_MAJOR, L1_MEMORY_CONFIG)
    tiles = TensorSpec((1, 32), BFLOAT16, Layout.TILE, place("width/32x32/1"))
    op = Ternary(operation="where", formats=(BFLOAT16,) * 3, scalar=None, data_format=BFLOAT16)
    for last, first_line in ((rows, "Ternary operation requires"), (tiles, "Shard height 32 must match")):
        with pytest.raises(DeviceError, match=f"^{first_line}"):
            plan_ternary(TernaryArguments(op=op, tensors=(rows, rows, last)), N150)
