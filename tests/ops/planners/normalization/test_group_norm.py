"""What group_norm of shards refuses, in the words of the library and in its order."""

import pytest

from device.errors import DeviceError
from device.memory.memory_config import L1_MEMORY_CONFIG, Layout
from device.plan import Operation
from ops.planners.normalization.group_arguments import GroupNormArguments
from ops.planners.normalization.group_norm import plan_group_norm
from tests.build import N150, tensor_spec


def refusal(source, **changes):
    """The first line of the step that the library refuses."""
    call = GroupNormArguments(source=tensor_spec(source), groups=2, **{"epsilon": 1e-5, "inplace": False} | changes)
    try:
        (step,) = plan_group_norm(call, N150, l1_bytes=1_360_544).steps
    except DeviceError as error:
        return str(error).split("\n")[0]
    return (step.refused or "").split("\n")[0]


@pytest.mark.parametrize(
    ("grid", "line"),
    [
        ((1, 2), "shard_spec.grid size 2x2 does not fit within program_config grid 1x2"),
        ((9, 10), "program_config grid (9x10) must be contained within device grid (8x8)"),
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


@pytest.mark.parametrize(
    ("channels", "groups", "source", "written", "sizes"),
    [
        (64, 2, Layout.TILE, Layout.TILE, [16384, 16384, 16384]),
        (64, 2, Layout.ROW_MAJOR, Layout.TILE, [16384, 16384, 16384]),
        (64, 2, Layout.ROW_MAJOR, Layout.ROW_MAJOR, [16384, 16384, 16384, 32768]),  # tiles of the result twice
        (96, 4, Layout.TILE, Layout.ROW_MAJOR, [4096, 4096, 4096, 8192]),  # 24 channels: a row of tiles at a time
        (160, 4, Layout.TILE, Layout.ROW_MAJOR, [32768, 32768, 32768, 65536]),
    ],
)
def test_interleaved_images_in_rows(channels, groups, source, written, sizes):
    words = "tile" if source is Layout.TILE else "rows"
    call = GroupNormArguments(
        source=tensor_spec(f"1x1x256x{channels} {words}"), groups=groups, epsilon=1e-5, inplace=False,
        out_layout=written, grid=(1, 1),
    )  # fmt: skip
    steps = plan_group_norm(call, N150, l1_bytes=1_360_544).steps
    (step,) = [step for step in steps if isinstance(step, Operation) and step.name == "GroupNormDeviceOperation"]
    assert len(steps) == (3 if source is Layout.ROW_MAJOR else 1)  # rows become tiles before, which are freed behind
    names = "input", "output", "tiles", "result_tiles"
    assert [buffer.size_bytes for buffer in step.circular_buffers if buffer.name in names] == sizes


@pytest.mark.parametrize(
    ("source", "changes", "line"),
    [
        ("1x1x64x64 uint32 rows", {"use_welford": True}, "Input tensor must be BFLOAT16 or FLOAT32, got: DataType::UI"),
        ("1x2x32x64 rows", {"use_welford": True}, "input tensor shape[1] must be 1!"),
        ("1x1x64x64 tile", {"mask": "2x32x32 tile"}, "Input mask dim1 must be 2 (num_groups=2), got: 32"),
        ("1x1x64x64 tile", {"mask": "1x1x2x32x32 tile"}, "Input mask dim1 must be 2 (num_groups=2), got: 1"),
        ("1x1x64x64 tile", {"weight": "1x1x1x2x32 rows"}, "Tensor rank is greater than 4"),
    ],
)
def test_tensors_are_looked_at_in_the_library_s_order(source, changes, line):
    named = {name: tensor_spec(value) if isinstance(value, str) else value for name, value in changes.items()}
    call = GroupNormArguments(source=tensor_spec(source), groups=2, inplace=False, grid=(1, 1), **named)
    with pytest.raises(DeviceError) as error:
        plan_group_norm(call, N150, l1_bytes=1_360_544)
    assert str(error.value).startswith(line)


def test_results_in_rows_whose_tiles_do_not_fit_twice_are_untilized_behind():
    """32 tiles of float32 for each group: nine buffers of so many, the mask and 32 spare tiles are 322, or 324."""
    for shape, programs in (("1x1x1024x32", 1), ("1x1x512x512", 2)):
        call = GroupNormArguments(
            source=tensor_spec(f"{shape} tile float32"), groups=1 if programs == 1 else 8, epsilon=1e-5, inplace=False,
            out_layout=Layout.ROW_MAJOR, grid=(1, 1), blocks=1,
        )  # fmt: skip
        steps = plan_group_norm(call, N150, l1_bytes=1_360_544).steps
        assert sum(isinstance(step, Operation) for step in steps) == programs


@pytest.mark.parametrize(("grid", "unit"), [((1, 1), "tile_width"), ((1, 2), "TILE_WIDTH")])
def test_masks_of_another_width_are_refused_in_each_program_s_words(grid, unit):
    line = refusal("1x1x128x64 tile", grid=grid, mask=tensor_spec("1x2x32x96 tile"))
    assert line == f"input mask width (96) must have the same width as block_wt * {unit} (32)"


def test_channels_count_with_the_padding_of_their_shards():
    call = GroupNormArguments(source=tensor_spec("1x1x128x64 rows block/128x13/5x1"), groups=8, inplace=False)
    with pytest.raises(DeviceError, match=r"^channel must be divisible by num_groups!"):
        plan_group_norm(call, N150, l1_bytes=1_360_544)
