"""Which shards tiles get that were rows in shards, against ttnn 0.81.1 on devices without kernels."""

import pytest

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16
from device.spec.device_spec import load_spec
from ops.builder import PlanBuilder
from ops.programs.tiling.plan import tilized_by
from tests.shards import wide

SPEC = load_spec("wormhole_n150")


@pytest.mark.parametrize(
    ("columns", "before", "asked", "after", "views"),
    [
        (
            64,
            wide((50, 32), 2),
            wide((64, 64), 1),
            wide((64, 32), 2),
            [None, "output", None],
        ),  # stays on its two cores
        (
            48,
            wide((50, 24), 2),
            wide((64, 64), 1),
            wide((64, 64), 1),
            [None, None],
        ),  # 48 columns become 64: dealt anew
    ],
)
def test_width_shards_stay_where_only_rows_are_padded(columns, before, asked, after, views):
    rows = TensorSpec((1, 1, 50, columns), BFLOAT16, Layout.ROW_MAJOR, before)
    builder = PlanBuilder(SPEC, {"input": rows})
    made = tilized_by(builder, builder.tensor("input"), "output", place=asked, whole=False)
    assert made.spec.memory_config == after
    (program,) = [one for one in builder.finish({"output": made.name}).steps if hasattr(one, "circular_buffers")]
    assert [one.view_of for one in program.circular_buffers] == views


def test_columns_that_fill_their_shards_of_half_a_tile_are_refused():
    rows = TensorSpec((1, 1, 50, 64), BFLOAT16, Layout.ROW_MAJOR, wide((50, 16), 4))
    builder = PlanBuilder(SPEC, {"input": rows})
    with pytest.raises(DeviceError, match=r"^Physical shard shape \(64, 16\) must be tile \{32, 32\} sized!"):
        tilized_by(builder, builder.tensor("input"), "output", place=wide((64, 64), 1), whole=False)
