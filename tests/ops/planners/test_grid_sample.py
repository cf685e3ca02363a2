"""The plan of grid_sample: readers of a sharded grid, and a grid that cannot be read in place."""

import pytest

from ops.op_models import load_spec
from ops.planners.grid_sample import GridSampleArguments, plan_grid_sample
from tests.build import tensor_spec


@pytest.mark.parametrize(
    ("device", "channels", "memory", "readers"),
    [
        ("wormhole_n150", 256, "l1", 2),
        ("wormhole_n150", 256, "dram", 1),
        ("blackhole_p150", 224, "l1", 2),
        ("blackhole_p150", 256, "l1", 1),
    ],
)
def test_two_processors_read_where_reading_takes_longest(device, channels, memory, readers):
    """Recorded: each of them has corners and weights of its own, beside the grid and the result."""
    call = GridSampleArguments(
        images=tensor_spec(f"1x16x16x{channels} {memory}"), grid=tensor_spec("1x8x8x6 height/8x6/8"), prepared=True
    )
    (step,) = plan_grid_sample(call, load_spec(device)).steps
    assert len(step.circular_buffers) == 2 + 2 * readers


def test_a_grid_in_shards_in_dram_is_refused_behind_the_other_checks():
    call = GridSampleArguments(images=tensor_spec("1x4x6x32"), grid=tensor_spec("1x3x2x2 height/2x2/3 dram"))
    (step,) = plan_grid_sample(call, load_spec("wormhole_n150")).steps
    assert step.refused.startswith("Only L1 buffers can have an associated circular buffer!")
