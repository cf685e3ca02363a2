"""What group_norm of shards refuses, in the words of the library and in its order."""

import pytest

from device.errors import DeviceError
from device.memory.memory_config import L1_MEMORY_CONFIG, Layout
from ops.planners.normalization.group_arguments import GroupNormArguments
from ops.planners.normalization.group_norm import plan_group_norm
from tests.build import N150, tensor_spec


def refusal(source, **changes):
    """The first line of the step that the library refuses."""
    call = GroupNormArguments(source=tensor_spec(source), groups=2, **{"epsilon": 1e-5, "inplace": False} | changes)
    (step,) = plan_group_norm(call, N150, l1_bytes=1_360_544).steps
    return (step.refused or "").split("\n")[0]


@pytest.mark.parametrize(
    ("grid", "line"),
    [
        ((1, 2), "shard_spec.grid size 2x2 does not fit within program_config grid 1x2"),
        ((4, 2), "program_config compute_with_storage_grid_size (4x2) must match shard grid dimensions (2x2)"),
        ((2, 2), "Only L1 buffers can have an associated circular buffer!"),
    ],
)
def test_cores_of_the_program_are_those_of_the_shards(grid, line):
    """The result lies in DRAM, which the library sees last."""
    assert refusal("1x1x64x64 rows block/32x32/2x2", grid=grid) == line


def test_images_that_columns_of_cores_share():
    """Two images and a group on each core of a column: as many columns as images would do."""
    line = refusal("2x1x64x64 rows block/128x32/1x2 col", place=L1_MEMORY_CONFIG)
    assert line == (
        "for CM shard, when each batch is split across cores, num_cores_c (1) must be divisible by num_batches (2)"
    )


def test_block_floats_have_no_rows():
    call = GroupNormArguments(
        source=tensor_spec("1x1x64x64 bfloat8_b tile block/32x32/2x2"), groups=2, epsilon=1e-5, inplace=False,
        out_layout=Layout.ROW_MAJOR,
    )  # fmt: skip
    with pytest.raises(DeviceError, match=r"^Only TILE layout is supported for BFLOAT8_B dtype!"):
        plan_group_norm(call, N150, l1_bytes=1_360_544)


def test_blocks_of_rows_want_the_caller_s_cores():
    call = GroupNormArguments(source=tensor_spec("1x1x64x64 tile"), groups=2, inplace=False, blocks=1)
    with pytest.raises(DeviceError, match=r"^group_norm: num_out_blocks cannot be specified when core_grid is auto"):
        plan_group_norm(call, N150, l1_bytes=1_360_544)
