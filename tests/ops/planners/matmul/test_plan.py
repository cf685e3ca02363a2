"""Plans of matmul and linear against ttnn 0.81.1 without a device, on an 8x8 grid, and what is refused."""

from dataclasses import replace
from functools import partial

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet, core_rectangle, first_cores
from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, INT32
from device.spec.device_spec import load_spec
from device.spec.parts import GridSpec
from ops.planners.matmul.arguments import MatmulArguments, with_defaults
from ops.planners.matmul.plan import left_over, plan_expected, plan_matmul, require_blocks, require_output
from ops.planners.matmul.validation import validate
from ops.planners.shape.reshape import OTHER_VOLUME, TOO_SMALL
from ops.programs.matmul.op import MatmulConfig, MatmulProgram
from tests.shards import WIDTH, high, in_box, wide

SPEC = load_spec("wormhole_n150")
FREE = SPEC.l1.bytes - SPEC.l1.base_bytes


def matrix(*shape, data_format=BFLOAT16, layout=Layout.TILE, place=DRAM_MEMORY_CONFIG):
    return TensorSpec(shape, data_format, layout, place)


def in_dram(shape, cores):
    return replace(high(shape, cores), buffer_type=BufferType.DRAM)


def call(**changes):
    good = MatmulArguments(
        first=matrix(64, 96), second=matrix(96, 128), bias=None, out_format=None, memory_config=DRAM_MEMORY_CONFIG
    )
    return replace(good, **changes)


def plan(**changes):
    return plan_matmul(call(**changes), SPEC, free_l1_bytes=FREE)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"first": matrix(1, 64, 96), "second": matrix(2, 96, 128)}, "bmm (non-bcast matmul) expects input tensors of"),
        # Operands are transposed, and lie in shards, before the program looks at them.
        (
            {"second": matrix(128, 96, place=in_box(WIDTH, (128, 32), 3)), "transpose_b": True},
            "Shard height 128 must match physical height 96 for width sharded",
        ),
    ],
)
def test_what_single_tiles_can_not_do(changes, line):
    with pytest.raises((ArgumentError, DeviceError)) as refused:
        plan(bias=matrix(1, 128), memory_config=L1_MEMORY_CONFIG, **changes)
    assert str(refused.value).startswith(line)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"first": matrix(97, 64), "second": matrix(97, 128), "transpose_a": True}, OTHER_VOLUME),
        ({"first": matrix(96, 64), "transpose_a": True}, TOO_SMALL),
        ({"first": matrix(2, 3, 5, 97, 64), "second": matrix(97, 128), "transpose_a": True}, OTHER_VOLUME),
        ({"second": matrix(128, 96), "transpose_b": True}, "Broadcast error: Invalid dimension"),
        ({"second": matrix(128, 96), "transpose_b": True, "bias": matrix(1, 96)}, OTHER_VOLUME),
        ({"first": matrix(96, 64), "transpose_a": True, "bias": matrix(64, 128)}, "Broadcast error: Invalid dimension"),
    ],
)
def test_a_biased_product_does_not_take_the_shape_of_operands_that_are_transposed_twice(changes, line):
    arguments = call(**{"bias": matrix(1, 128), "memory_config": L1_MEMORY_CONFIG} | changes)
    plan_matmul(arguments, SPEC, free_l1_bytes=FREE)
    assert left_over(arguments, SPEC, free_l1_bytes=FREE).turned
    biased = matrix(*arguments.output_shape, place=L1_MEMORY_CONFIG)
    with pytest.raises((ArgumentError, DeviceError)) as refused:
        plan_expected(arguments, biased, SPEC, turned=True)
    assert str(refused.value).startswith(line)


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({"bias": matrix(1, 128)}, None),
        ({"bias": matrix(1, 112), "second": matrix(96, 100)}, "Broadcast error: Invalid dimension"),
        ({"bias": matrix(1, 7), "second": matrix(96, 1)}, OTHER_VOLUME),
        ({"bias": matrix(1, 32), "second": matrix(96, 1)}, (64, 32)),
        ({"bias": matrix(32, 128), "first": matrix(1, 96)}, (32, 128)),
        ({"bias": matrix(5, 128), "first": matrix(1, 96)}, OTHER_VOLUME),
    ],
)
def test_a_product_takes_the_shape_of_the_bias_that_its_program_adds(changes, answer):
    arguments = call(**changes)
    assert left_over(arguments, SPEC, free_l1_bytes=FREE) == (False, False, True, False)
    biased = matrix(arguments.first.shape[0], arguments.second.shape[1])
    if isinstance(answer, str):
        with pytest.raises((ArgumentError, DeviceError), match=f"^{answer}"):
            plan_expected(arguments, biased, SPEC, turned=False)
        return
    expected = plan_expected(arguments, biased, SPEC, turned=False)
    assert (expected and expected.tensors["input"].shape) == answer


def test_a_biased_product_shows_its_padding_in_the_shape_of_operands_that_are_transposed_twice():
    operands = {"first": matrix(64, 50), "second": matrix(64, 128), "bias": matrix(1, 128)}
    arguments = call(**operands, transpose_a=True, memory_config=L1_MEMORY_CONFIG)
    seen = plan_expected(arguments, matrix(50, 128, place=L1_MEMORY_CONFIG), SPEC, turned=True)
    assert seen.tensors["input"].shape == (64, 128)
    assert "shows or hides padding" in seen.without_values


def test_defaults_of_the_compute_config():
    """Source: the library's documentation of HiFi4 with 32-bit sums on Wormhole, and its choice of attributes."""
    wide, block = matrix(64, 96, data_format=FLOAT32), matrix(64, 96, data_format=BFLOAT8_B)
    plain = with_defaults(call(), SPEC)
    assert (plain.fidelity_phases, plain.fp32_dest, plain.packer_l1_acc) == (2, False, True)
    floats = call(first=wide, second=matrix(96, 128, data_format=FLOAT32))
    assert with_defaults(floats, SPEC).fidelity_phases == 3
    assert with_defaults(floats, load_spec("blackhole_p150")).fidelity_phases == 4
    assert with_defaults(call(first=wide), SPEC).fp32_dest
    assert with_defaults(call(first=block), SPEC).fidelity_phases == 2
    assert with_defaults(call(first=block, second=matrix(96, 128, data_format=BFLOAT8_B)), SPEC).fidelity_phases == 1
    assert with_defaults(call(fidelity_phases=4, packer_l1_acc=False), SPEC).packer_l1_acc is False


SHARDED = high((64, 96), 1)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"second": matrix(64, 128)},
            "The width of the first tensor must be equal to the height of the second tensor. "
            "Mismatch: width=96 height=64",
        ),
        ({"first": matrix(64, 96, layout=Layout.ROW_MAJOR)}, "Inputs to matmul must be tilized"),
        ({"first": matrix(64, 96, data_format=INT32)}, "Unsupported data format for input A: DataType::INT32"),
        ({"second": matrix(96, 128, data_format=INT32)}, "Unsupported data format for input B: DataType::INT32"),
        ({"second": matrix(2, 96, 128)}, "When in1 rank greater than in0 rank front dimensions need to be 1"),
        (
            {"first": matrix(1, 1, 64, 96), "second": matrix(2, 96, 128)},
            "Batched (non-bcast) matmul requires inputs of the same rank, got a_shape rank: 4 vs b_shape rank: 3",
        ),
        (
            {"first": matrix(2, 3, 64, 96), "second": matrix(1, 3, 96, 128)},
            "bmm (non-bcast matmul) expects input tensors of shapes BCMK*BCKN=BCMN or batch dimension 0 mismatch: "
            "a=2 vs b=1 (dimension mismatch only allowed when all batch dimensions of a are size 1 and using "
            "MatmulMultiCoreReuseMultiCast1DProgramConfig with fuse_batch=false, fused_activation=none, "
            "mcast_in0=false, and non-sharded inputs for in0 reuse optimization)",
        ),
    ],
)
def test_what_the_real_library_refuses(changes, line):
    with pytest.raises(ArgumentError) as refused:
        validate(call(**changes), lambda: None, lambda: None)
    assert str(refused.value).splitlines()[0] == line


ROWS = Layout.ROW_MAJOR
IN_WIDTH = MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1)
UNLIKE = (
    "Input A and output memory layouts must match, got input: TensorMemoryLayout::HEIGHT_SHARDED vs output: "
    "TensorMemoryLayout::WIDTH_SHARDED"
)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"first": matrix(16, 96, layout=ROWS)}, "per_core_M must be greater than 0!"),
        ({"first": matrix(64, 96, layout=ROWS, place=high((16, 96), 4))}, "per_core_M must be greater than 0!"),
        ({"first": matrix(16, 96, layout=ROWS, place=L1_MEMORY_CONFIG)}, "Inputs to matmul must be tilized"),
        # 16 columns are no tile, of which only operands in interleaved DRAM make blocks
        ({"first": matrix(240, 16, layout=ROWS), "second": matrix(16, 64)}, "in0_block_w must be greater than 0!"),
        (
            {"first": matrix(240, 16, layout=ROWS), "second": matrix(16, 64, place=in_dram((32, 64), 1))},
            "Inputs to matmul must be tilized",
        ),
        ({"first": matrix(64, 64, place=high((64, 64), 1)), "memory_config": IN_WIDTH}, UNLIKE),
        (
            {"first": matrix(64, 64, place=wide((64, 32), 2)), "second": matrix(96, 128, place=wide((96, 64), 2))},
            "Input tensor B must have INTERLEAVED memory layout, got: TensorMemoryLayout::WIDTH_SHARDED",
        ),
        (
            {"second": matrix(64, 128), "core_grid": GridSpec(cols=4, rows=4)},
            "The k dimension does not match between tensors",
        ),
        (
            {"first": matrix(64, 64, place=in_box(TensorMemoryLayout.BLOCK_SHARDED, (64, 32), 2))},
            "The k dimension does not match between tensors",
        ),
        (
            {"first": matrix(96, 64, place=in_box(TensorMemoryLayout.BLOCK_SHARDED, (64, 64), 3, 3))},
            "Num cores along y (3) must match provided grid size (1) or divided up size (2)",
        ),
    ],
)
def test_a_program_is_chosen_before_layouts_and_sides_are_looked_at(changes, line):
    """The operands are wrong, too: rows, or sides that do not go together."""
    with pytest.raises(ArgumentError) as refused:
        validate(call(**changes), lambda: None, lambda: None)
    assert str(refused.value).splitlines()[0] == line


@pytest.mark.parametrize(("rows", "view"), [(32, "bias"), (2048, None)])
def test_a_bias_in_shards_in_l1_is_read_as_it_lies_where_columns_are_split(rows, view):
    bias = matrix(1, 128, place=in_box(TensorMemoryLayout.HEIGHT_SHARDED, (32, 128), 1))
    (step,) = plan(first=matrix(rows, 96), bias=bias).steps
    (buffer,) = (buffer for buffer in step.circular_buffers if buffer.name == "bias")
    assert buffer.view_of == view


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"first": matrix(96)}, "input_tensor_a must have at least two axes"),
    ],
)
def test_what_is_not_simulated(changes, text):
    with pytest.raises(ArgumentError, match=text):
        validate(call(**changes), lambda: None, lambda: None)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"bias": matrix(32, 128, layout=Layout.ROW_MAJOR)}, "Unsupported bias layout: Layout::ROW_MAJOR"),
        (
            {"bias": matrix(1, 160)},
            "Unsupported bias shape: padded last dimension of bias, 160, not equal to second input's padded last "
            "dimension, 128.",
        ),
    ],
)
def test_a_bias_that_the_program_does_not_add(changes, line):
    with pytest.raises(ArgumentError) as refused:
        plan(**changes)
    assert str(refused.value).startswith(line)


@pytest.mark.parametrize("bias", [matrix(1, 127), matrix(64, 128), matrix(1, 128, layout=Layout.ROW_MAJOR), matrix()])
def test_another_operation_adds_a_narrow_a_high_and_an_untiled_bias(bias):
    arguments = call(bias=bias)
    assert left_over(arguments, SPEC, free_l1_bytes=FREE) == (True, False, False, False)


def config(program=MatmulProgram.MCAST_2D, **fields):
    plain = {"grid": GridSpec(cols=2, rows=2), "in0_block_w": 1, "per_core_m": 1, "per_core_n": 2, "out_block_w": 2}
    return MatmulConfig(program=program, **plain | fields)


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (
            config(in0_block_w=2),
            "MatmulMultiCoreReuseMultiCastProgramConfig: Kt (3) must be divisible by in0_block_w (2)",
        ),
        (
            config(per_core_n=1, out_block_w=1),
            "MatmulMultiCoreReuseMultiCastProgramConfig: Num output blocks along x (4) must be smaller than or equal "
            "to the number of columns in compute grid (2)!",
        ),
        (config(in0_block_w=0), "MatmulMultiCoreReuseMultiCastProgramConfig: in0_block_w is 0, which is not valid"),
        (
            config(per_core_m=3),
            "MatmulMultiCoreReuseMultiCastProgramConfig: per_core_M (3) exceeds Mt (2). Each core would compute more "
            "output row tiles than the tensor has. Reduce per_core_M to at most Mt.",
        ),
        (
            config(MatmulProgram.MCAST_IN1, per_core_m=3, per_core_n=4, out_block_w=4),
            "MatmulMultiCoreReuseMultiCast1DProgramConfig: per_core_M (3) exceeds Mt (2). Each core would compute more "
            "output row tiles than the tensor has. Reduce per_core_M to at most Mt.",
        ),
        (
            config(MatmulProgram.MCAST_IN0),
            "MatmulMultiCoreReuseMultiCast1DProgramConfig: mcast_in0 requires M (2) to fit within a single per_core_M "
            "block (1), got num_blocks_y=2",
        ),
        (config(MatmulProgram.REUSE), "MatmulMultiCoreReuseProgramConfig: N (4) must equal per_core_N (2)"),
        (
            config(MatmulProgram.DRAM_SHARDED),
            "MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig: Input tensor A must be sharded for DRAM sharded "
            "program config",
        ),
    ],
)
def test_configs_that_do_not_fit(program, line):
    """64x96 by 96x128; first lines of ttnn 0.81.1."""
    with pytest.raises(ArgumentError) as refused:
        plan(program=program)
    assert str(refused.value).splitlines()[0] == line


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (
            config(fuse_batch=True),
            "MatmulMultiCoreReuseMultiCastProgramConfig: Num output blocks along y (4) must be smaller than or equal "
            "to the number of rows in compute grid (2)!",
        ),
        (
            config(MatmulProgram.MCAST_IN0, fuse_batch=True),
            "MatmulMultiCoreReuseMultiCast1DProgramConfig: Number of blocks exceeds number of cores: 8 blocks > 4 "
            "cores",
        ),
        (
            config(fuse_batch=True, per_core_m=2),
            "MatmulMultiCoreReuseMultiCastProgramConfig: Matmul with fused batch requires input tensors of shapes "
            "BCMK*11KN=BCMN or equivalent. Please change the second input tensor or adjust the program config.",
        ),
    ],
)
def test_grids_and_blocks_come_before_batches_of_both_operands(program, line):
    with pytest.raises(ArgumentError) as refused:
        plan(first=matrix(1, 2, 64, 96), second=matrix(1, 2, 96, 128), program=program)
    assert str(refused.value).splitlines()[0] == line


def test_given_blocks_come_before_batches_that_do_not_pair():
    uneven = call(
        first=matrix(2, 64, 96), second=matrix(3, 96, 128), program=config(MatmulProgram.REUSE, in0_block_w=2)
    )
    checks = (partial(check, uneven, SPEC, free_l1_bytes=FREE) for check in (require_output, require_blocks))
    with pytest.raises(ArgumentError) as refused:
        validate(uneven, *checks)
    assert str(refused.value).splitlines()[0] == (
        "MatmulMultiCoreReuseProgramConfig: Kt (3) must be divisible by in0_block_w (2)"
    )


def test_buffers_of_shards_that_are_sent():
    """A core of WIDTH shards holds two blocks of each operand, its shard, and its output where the output lies."""
    shards = ShardSpec(first_cores(3, 3, 1), (64, 32))
    width = MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1, shards)
    out = MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1)
    step = plan(first=matrix(64, 96, place=width), memory_config=out).steps[0]
    tile = BFLOAT16.tile_bytes
    sizes = [
        (buffer.name, buffer.size_bytes // tile, buffer.view_of, str(buffer.cores)) for buffer in step.circular_buffers
    ]
    working, idle = "{[0-0 - 1-0]}", "{[2-0 - 2-0]}"
    assert sizes == [
        ("in0", 4, None, working),
        ("in0", 4, None, idle),
        ("in1", 4, None, working),
        ("in0_shard", 2, "input", "{[0-0 - 2-0]}"),
        ("out", 4, "output", working),
    ]


def test_blocks_beside_a_shard():
    """The estimate counts the shard, too: blocks of 11x10 tiles would take 1.48 MB of the 1.36 MB that are free."""
    shards = ShardSpec(first_cores(1, 8, 8), (704, 288))
    place = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1, shards)
    arguments = call(first=matrix(704, 288, place=place), second=matrix(288, 320))
    step = plan_matmul(arguments, SPEC, free_l1_bytes=1_360_544).steps[0]
    sizes = {buffer.name: buffer.size_bytes // BFLOAT16.tile_bytes for buffer in step.circular_buffers}
    assert sizes == {"in0": 11 * 9, "in1": 5 * 9, "in0_shard": 22 * 9, "out": 11 * 5}


WIDE = TensorMemoryLayout.WIDTH_SHARDED


@pytest.mark.parametrize(
    ("bias", "line"),
    [
        (DRAM_MEMORY_CONFIG, "bad optional access"),
        (
            in_box(WIDE, (32, 128), 2),
            "MatmulMultiCoreReuseMultiCast1DProgramConfig: bias shard width (128) must match input B shard width (64)",
        ),
        (
            replace(in_box(WIDE, (32, 64), 2), buffer_type=BufferType.DRAM),
            "DFB 'bias' borrows memory from TensorParameter 'bias', but its TensorSpec is not L1-resident (L1 is "
            "required). Both L1 and L1_SMALL are accepted.",
        ),
    ],
)
def test_a_bias_beside_shards_of_the_second_operand(bias, line):
    """32x128 by 128x128, whose columns two cores share; a bias in the same columns goes along."""
    place = in_box(WIDE, (128, 64), 2)
    changes = {"first": matrix(32, 128), "second": matrix(128, 128, place=place)}
    changes["program"] = config(MatmulProgram.MCAST_IN0, grid=GridSpec(cols=2, rows=1))
    with pytest.raises(ArgumentError) as refused:
        plan(bias=matrix(1, 128, place=bias), **changes)
    assert str(refused.value).splitlines()[0] == line
    (step,) = plan(bias=matrix(1, 128, place=in_box(WIDE, (32, 64), 2)), **changes).steps
    views = {buffer.name: buffer.view_of for buffer in step.circular_buffers}
    assert (views["in1"], views["bias"]) == ("weight", "bias")


def test_cores_of_block_shards_without_output():
    """They send their shards: of four columns of shards three have a tile of the output each."""
    shards = ShardSpec(core_rectangle(4, 2), (64, 64))
    place = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1, shards)
    step = plan(first=matrix(128, 256, place=place), second=matrix(256, 96)).steps[0]
    tile = BFLOAT16.tile_bytes
    sizes = [(buffer.name, buffer.size_bytes // tile, str(buffer.cores)) for buffer in step.circular_buffers]
    working, idle, both = "{[0-0 - 2-1]}", "{[3-0 - 3-1]}", "{[0-0 - 3-1]}"
    assert sizes == [
        ("in0", 8, working), ("in0", 8, idle), ("in1", 4, working), ("in0_shard", 4, both), ("out", 2, working)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"program": config(grid=GridSpec(cols=9, rows=2), in0_block_w=2)},  # 2 does not divide 3 tiles of K
            "compute_with_storage_grid_size (9, 2) must fit within device grid (8, 8)",
        ),
        (
            {"second": matrix(96, 128, place=in_dram((96, 128), 1)), "program": config(fuse_batch=True)},
            "HEIGHT_SHARDED input B requires fuse_batch=false for batched matmul",
        ),
        (
            {"second": matrix(128, 96, place=in_dram((128, 96), 1)), "transpose_b": True, "program": config()},
            "HEIGHT_SHARDED input B shard width (3 tiles) must equal N (4 tiles)",
        ),
        (
            {"second": matrix(96, 128, place=in_dram((32, 128), 3)), "program": config()},
            "HEIGHT_SHARDED input B shard height (1 tiles) must be >= K (3 tiles)",
        ),
    ],
)
def test_grids_and_shards_of_the_second_operand(changes, line):
    with pytest.raises(ArgumentError) as refused:
        plan(**changes)
    assert str(refused.value).splitlines()[0] == f"MatmulMultiCoreReuseMultiCastProgramConfig: {line}"


def test_a_single_matrix_is_no_batch_for_block_shards_of_the_output():
    """So the second operand may lie in HEIGHT shards in DRAM."""
    place = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1)
    assert plan(second=matrix(96, 128, place=in_dram((96, 128), 1)), memory_config=place).steps


def test_the_rows_of_transposed_shards_are_those_before_the_transposition():
    """A shard of four tiles of rows on one core, and 48 tiles of rows of the product."""
    with pytest.raises(ArgumentError) as refused:
        plan(first=matrix(4, 32, 384, place=high((128, 384), 1)), second=matrix(32, 64), transpose_a=True)
    assert str(refused.value).splitlines()[0] == (
        "MatmulMultiCoreReuseMultiCast1DProgramConfig: Number of blocks exceeds number of cores: 12 blocks > 1 cores"
    )


def test_batches_of_turned_matrices_do_not_count_as_one():
    with pytest.raises(ArgumentError) as refused:
        plan(first=matrix(2, 96, 64), transpose_a=True, program=config(fuse_batch=True, per_core_m=2))
    assert str(refused.value).splitlines()[0] == (
        "MatmulMultiCoreReuseMultiCastProgramConfig: transpose_a with fuse_batch is not supported when batch "
        "dimensions exist and M_per_batch > 1 (batch_size=2, M_per_batch=2, a_shape_padded=Shape([2, 64, 96]))"
    )


@pytest.mark.parametrize(
    ("box", "rows", "cores", "tiles"),
    [
        (CoreRange(CoreCoord(3, 5), CoreCoord(6, 7)), 288, "{[3-5 - 6-6], [3-7 - 3-7]}", [4, 12, 3]),
        (CoreRange(CoreCoord(3, 5), CoreCoord(3, 5)), 288, "{[3-5 - 3-5]}", [36, 12, 27]),
    ],
)
def test_a_program_lies_where_the_shards_do(box, rows, cores, tiles):
    """The shards as they lie, all of K beside them, and the output; a single core takes the whole product."""
    shards = ShardSpec(CoreRangeSet(box), (rows // (1 if box.start == box.end else 9), 128))
    place = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, shards)
    step = plan(first=matrix(rows, 128, place=place), second=matrix(128, 96)).steps[0]
    assert [buffer.size_bytes // BFLOAT16.tile_bytes for buffer in step.circular_buffers] == tiles
    assert {str(buffer.cores) for buffer in step.circular_buffers} == {cores}
    sharded = plan(
        first=matrix(rows, 128, place=place), second=matrix(128, 96), memory_config=replace(place, shard_spec=None)
    )
    assert "do not begin at core (0, 0)" in (sharded.without_values or "")


@pytest.mark.parametrize(
    ("rows", "last", "shard", "layout", "buffers"),
    [
        (64, (3, 0), (64, 64), TensorMemoryLayout.WIDTH_SHARDED, [8192, 8192, 8192]),
        (128, (0, 3), (32, 256), TensorMemoryLayout.HEIGHT_SHARDED, [4096, 32768, 16384]),
    ],
)
def test_block_shards_in_one_line_of_cores_are_columns_or_rows(rows, last, shard, layout, buffers):
    """As ttnn 0.81.1 plans them on four cores: two tiles of depth at once, twice, and the shard of a core."""
    shards = ShardSpec(CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(*last))]), shard)
    place = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1, shards)
    planned = plan(first=matrix(rows, 64), second=matrix(64, 256), memory_config=place)
    assert planned.tensors["output"].memory_config == MemoryConfig(layout, BufferType.L1, shards)
    assert [buffer.size_bytes for buffer in planned.steps[-1].circular_buffers] == buffers


def of_line(shape, cols, rows, *, m=160, n=64, buffer=BufferType.L1):
    shards = ShardSpec(core_rectangle(cols, rows), shape)
    place = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, buffer, shards)
    return plan(first=matrix(m, 256), second=matrix(256, n), memory_config=place)


@pytest.mark.parametrize(
    ("shape", "cols", "rows", "sides", "layout", "cores", "sizes"),
    [
        ((64, 64), 1, 4, (160, 64), "HEIGHT_SHARDED", (1, 3), (16384, 16384, 8192)),
        ((160, 32), 4, 1, (160, 64), "WIDTH_SHARDED", (2, 1), (40960, 8192, 10240)),
        ((96, 64), 8, 1, (96, 512), "WIDTH_SHARDED", (8, 1), (24576, 16384, 12288)),
        ((416, 1280), 1, 4, (1600, 1280), "BLOCK_SHARDED", (3, 4), (131072, 131072, 524288)),
    ],
)
def test_block_shards_in_one_row_or_column(shape, cols, rows, sides, layout, cores, sizes):
    made = of_line(shape, cols, rows, m=sides[0], n=sides[1])
    written = made.tensors["output"].memory_config
    assert written.memory_layout is TensorMemoryLayout[layout]
    assert tuple(written.shard_spec.shape) == (shape if layout != "BLOCK_SHARDED" else (512, 512))
    buffers = made.steps[0].circular_buffers
    assert {buffer.cores for buffer in buffers} == {core_rectangle(*cores)}
    assert tuple(buffer.size_bytes for buffer in buffers) == sizes


@pytest.mark.parametrize(
    ("shape", "cols", "rows", "more", "line"),
    [
        ((160, 64), 4, 1, {"n": 256}, "out_subblock_w (1) must equal per_core_N (2) or out_subblock_h (5) must be 1"),
        (
            (96, 1024),
            1,
            4,
            {"m": 320, "n": 1024},
            "output memory layout must be WIDTH_SHARDED or BLOCK_SHARDED on a 1-",
        ),
        ((160, 32), 2, 1, {"buffer": BufferType.DRAM}, "DFB 'out' borrows memory from TensorParameter 'output', but"),
    ],
)
def test_lines_that_do_not_fit(shape, cols, rows, more, line):
    with pytest.raises(ArgumentError) as refused:
        of_line(shape, cols, rows, **more)
    assert line in str(refused.value).splitlines()[0]


def test_shards_on_a_line_are_compared_with_the_output_before_the_program():
    """1,024 rows would be split, which a row of cores does not do; but shards of 1,088 rows do not fit at all."""
    with pytest.raises(DeviceError, match=r"^Shard height 1088 must match physical height 1024 for width sharded"):
        of_line((1088, 32), 2, 1, m=1024)
    with pytest.raises(ArgumentError, match="output memory layout must be HEIGHT_SHARDED or BLOCK_SHARDED on a 1-"):
        of_line((1024, 32), 2, 1, m=1024)


@pytest.mark.parametrize(
    ("cores", "shape", "layout"), [(4, (64, 32), "WIDTH_SHARDED"), (1, (64, 128), "HEIGHT_SHARDED")]
)
def test_blocks_on_a_line_of_the_caller_s_program(cores, shape, layout):
    """A row of cores splits columns; a single core counts as a column."""
    wide = shape[1] // 32
    blocks = {"per_core_m": 2, "out_block_h": 2, "per_core_n": wide, "out_block_w": wide}
    one_axis = config(MatmulProgram.MCAST_IN0, grid=GridSpec(cols=4, rows=2), **blocks)
    place = in_box(TensorMemoryLayout.BLOCK_SHARDED, shape, cores)
    made = plan(program=one_axis, memory_config=place)
    assert made.tensors["output"].memory_config == replace(place, memory_layout=TensorMemoryLayout[layout])
    down = in_box(TensorMemoryLayout.BLOCK_SHARDED, (32, 128), 1, 2)
    with pytest.raises(ArgumentError, match=r"output memory layout must be WIDTH_SHARDED or BLOCK_SHARDED on a 1-row"):
        plan(program=replace(one_axis, per_core_n=4, out_block_w=4), memory_config=down)


def test_a_target_holds_a_core_s_block():
    """The library splits columns; the caller's blocks of 32 x 64 split rows, too."""
    place = in_box(TensorMemoryLayout.BLOCK_SHARDED, (32, 64), 2, 2)
    (step,) = plan(memory_config=place, target=matrix(64, 128, place=place)).steps
    assert step.refused.startswith("DFB 'out' (entry_size 2048 * num_entries 8 = 16384 bytes) is larger than the per-")
