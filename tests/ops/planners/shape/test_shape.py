"""Which programs pad, reshape and place a tensor."""

from functools import partial

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet, core_rectangle, first_cores
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, UINT16
from device.plan import Allocate, Operation, Refuse
from ops.builder import FreeL1
from ops.op_models import load_spec
from ops.passes.cycles import run_cycles
from ops.planners.copies import plan_clone
from ops.planners.shape.broadcast import plan_broadcast_to
from ops.planners.shape.pad import plan_fill_padding, plan_pad
from ops.planners.shape.permute import plan_permute, plan_transpose
from ops.planners.shape.repeat import plan_repeat
from ops.planners.shape.reshape import plan_memory_view, plan_reshape, plan_squeeze
from ops.planners.shape.slice import plan_slice
from ops.planners.to_config import plan_move, plan_tilize, plan_to_memory_config, plan_typecast, plan_untilize
from tests.build import place, programs, tensor_spec

SPEC = load_spec("wormhole_n150")
NONE = (0, 0)
CONVERTED = [name for program in ("FillPad", "Pad") for name in ("Typecast", program, "Typecast")]


WITHOUT_SPEC = MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1)


def refusal_of(plan):
    """What a planner says, whether it raises the error or ends the plan in it."""
    try:
        return plan().steps[-1].text
    except DeviceError as error:
        return str(error)


def padded(source, *padding, to=None, value=1.5):
    """The plan of a tensor whose last axes are padded; the others are not."""
    tensor = tensor_spec(source)
    around = (*[NONE] * (len(tensor.shape) - len(padding)), *padding)
    return plan_pad(tensor, around, value, SPEC, place=to and place(to))


@pytest.mark.parametrize(
    ("source", "padding", "to", "wanted", "shape", "after"),
    [
        ("1x8", [NONE], "l1", [], (1, 8), "dram"),  # no padding is the tensor wherever it is wanted
        # tiles are filled where they are and seen anew
        ("1x1x30x24 tile", [(0, 2), (0, 8)], None, ["FillPad"], (1, 1, 32, 32), "dram"),
        ("1x1x30x24 tile", [(0, 1), NONE, NONE], None, ["FillPad", "Pad"], (1, 2, 30, 24), "dram"),
        # block floats are converted around each program
        ("1x1x32x24 bfloat8_b tile", [(0, 32), NONE], None, CONVERTED, (1, 1, 64, 24), "dram"),
        # HEIGHT shards grow across and then down
        ("1x1x64x32 height/32x32/2", [(2, 0), (0, 16)], None, ["Pad", "Pad"], (1, 1, 66, 48), "height/33x48/2"),
        ("1x1x64x32 height/32x32/2", [(0, 16)], "l1", ["Pad"], (1, 1, 64, 48), "l1"),
        # those in DRAM grow across into shards in L1
        ("1x1x64x64 height/32x64/4 dram", [(0, 32)], None, ["Pad"], (1, 1, 64, 96), "height/16x96/4"),
        # columns of shards in DRAM are padded by way of interleaved tensors
        ("1x1x64x64 width/64x32/2 dram", [(0, 32)], "l1", ["Copy", "Pad"], (1, 1, 64, 96), "l1"),
        (
            "1x1x64x64 tile width/64x32/2 dram",
            [(0, 32)],
            "block/32x96/1x2",
            ["Copy", "Pad", "InterleavedToSharded"],
            (1, 1, 64, 96),
            "block/32x96/1x2",
        ),
        ("1x2x64x3 width/128x1/3 dram", [(0, 5)], "dram", ["Copy", "Pad"], (1, 2, 64, 8), "dram"),
        # more axes than the program knows are padded one by one, the leading ones where the tensor lies
        ("2x3x32x64 tile", [(0, 1), (0, 1), NONE, NONE], "l1", ["Pad"], (3, 4, 32, 64), "l1"),
        ("2x3x1x32x64 tile", [(0, 1), *[NONE] * 4], "l1", ["Pad", "Copy"], (3, 3, 1, 32, 64), "l1"),
        (
            "2x3x1x8x64",
            [(0, 1), *[NONE] * 4],
            "height/12x64/6",
            ["Pad", "InterleavedToSharded"],
            (3, 3, 1, 8, 64),
            "height/12x64/6",
        ),
        ("2x3x1x32x64 tile", [(0, 1), NONE, NONE, (0, 32), NONE], "l1", ["Pad"] * 2, (3, 3, 1, 64, 64), "l1"),
        # without first axes of one element
        ("1x3x1x32x64 tile", [(0, 1), NONE, (0, 32), NONE], "l1", ["Pad"], (1, 4, 1, 64, 64), "l1"),
        ("1x3x1x32x64", [(0, 1), NONE, (0, 32), NONE], None, ["Pad"], (1, 4, 1, 64, 64), "dram"),
        ("2x3x1x64x64", [(1, 0), NONE, NONE, NONE, (0, 32)], None, ["Pad"] * 2, (3, 3, 1, 64, 96), "dram"),
        ("2x3x1x60x60 tile", [(0, 1)] * 3 + [(0, 4)] * 2, None, ["FillPad", "Pad"] * 3, (3, 4, 2, 64, 64), "dram"),
        ("2x3x1x64x64", [(1, 1), NONE, (0, 32)], None, ["Pad"], (2, 3, 3, 64, 96), "dram"),
        ("50 tile", [(0, 5)], None, ["FillPad"], (55,), "dram"),  # vectors in tiles, within their last tile
    ],
)
def test_programs_that_pad(source, padding, to, wanted, shape, after):
    plan = padded(source, *padding, to=to)
    result = plan.tensors[plan.results["output"]]
    assert (programs(plan), result.shape, result.memory_config) == (wanted, shape, place(after))


@pytest.mark.parametrize(
    ("source", "padding", "first"),
    [
        ("2x12x7x96 float32 block/168x24/4x1 dram", [(0, 5), NONE], "We don't support DRAM block sharding"),
        ("1x24x2 tile block/32x32/4x1 dram", [(0, 5), (0, 32)], "We don't support DRAM block sharding"),
        # shards that do not hold the result are refused before its format
        ("64x24 uint8 height/16x24/4 dram", [(0, 8), NONE], "Number of shards along height 5 must not exceed number"),
        ("1x24x2 tile height/32x32/4 dram", [(0, 15), NONE], "Physical shard shape (6, 32) must be tile {32, 32} s"),
        # first axes of one element are left out, whatever the padding of the shards; others are merged
        ("1x2x2x64x16 width/256x3/6 dram", [(0, 2), NONE, NONE], "Shard height 256 must match physical height 512"),
        (
            "2x1x2x3x65 block/4x32/3x3",
            [(0, 2), *[NONE] * 4],
            "Changing the last dimension of a sharded tensor is not supported unless the shard width matches the input "
            "last dimension. Input shape: Shape([2, 1, 2, 3, 96]), New shape: Shape([1, 4, 3, 65])",
        ),
        ("64x8 height/16x8/4 dram", [NONE, (0, 8)], "Input row-major shard width 8 gives page size 16 bytes, which"),
    ],
)
def test_shards_in_dram_that_are_not_padded(source, padding, first):
    assert refusal_of(lambda: padded(source, *padding)).startswith(first)


@pytest.mark.parametrize(
    ("source", "padding", "first"),
    [
        ("33x256 tile l1", [NONE, (0, 1)], "bad optional access"),
        ("33x256 tile block/64x64/4x1", [(0, 1), NONE], "bad optional access"),
        ("33x256 l1", [NONE, (0, 8)], "MemoryConfig must have Shard Spec specified for sharded memory layout"),
    ],
)
def test_shards_without_a_spec_are_refused(source, padding, first):
    plan = partial(plan_pad, tensor_spec(source), tuple(padding), 0.0, SPEC, place=WITHOUT_SPEC)
    assert refusal_of(plan).startswith(first)


def test_interleaved_tiles_that_are_filled_alone_stay_where_they_are():
    plan = plan_pad(tensor_spec("33x256 tile l1"), ((0, 1), NONE), 0.0, SPEC, place=WITHOUT_SPEC)
    assert (programs(plan), plan.tensors[plan.results["output"]].memory_config) == (["FillPad"], place("l1"))


@pytest.mark.parametrize(
    ("source", "shape"),
    [
        ("4x2x2x96 tile bfloat8_b height/64x96/4 dram", (1, 1, 16, 96)),
        ("3x1x8x128 height/24x128/2 dram", (3, 2, 512)),  # rows whose length changes
        ("3x1x8x100 height/24x100/2 dram", (3, 2, 400)),  # of shards that no program gathers from L1 either
    ],
)
def test_shards_in_dram_that_are_not_reshaped(source, shape):
    assert refusal_of(lambda: plan_reshape(tensor_spec(source), shape, SPEC)).startswith("Input tensor must be in L1")


def test_the_last_program_alone_writes_into_the_place():
    plan = padded("3x1x4x32x32 tile", (0, 5), (0, 5), NONE, NONE, (0, 29), to="l1", value=0.0)
    result = [step.outputs[0].buffer.buffer_type for step in plan.steps if isinstance(step, Operation)]
    assert result == [BufferType.DRAM, BufferType.DRAM, BufferType.L1]


@pytest.mark.parametrize(
    ("source", "padding", "text"),
    [
        ("1x1x64x32 tile", [(1, 0)], r"^ttnn.pad: on device tile padding does not support front"),
        ("1x1x64x32 height/32x32/2", [(1, 0)], r"^Output row-major shard width 33 gives page size 66 bytes"),
        ("2x64x64 uint8 tile", [(0, 40)], "^Cannot pad tilized tensor with specified format"),
        ("2x64x64 bfloat4_b tile", [(0, 40)], "^Cannot pad tilized tensor with specified format"),
        ("2x64x60 uint8 tile", [(0, 40)], "^Unsupported datatype DataType::UINT8"),
        ("2x64x60 uint8", [(0, 40)], "^Cannot pad RM tensor with specified format"),
    ],
)
def test_padding_that_is_refused(source, padding, text):
    with pytest.raises(DeviceError, match=text):
        padded(source, *padding)


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("dram", "MeshBuffer must be large enough to hold the tensor."),
        ("height/32x64/2", "Shard width 64 must match physical width 96 for height sharded"),
        ("width/32x32/2", "Changing the last dimension of a sharded tensor is not supported"),
    ],
)
def test_vectors_in_tiles_are_filled_before_they_are_refused(where, text):
    """The program that fills the padding may find no room first."""
    plan = padded(f"64 tile {where}", (0, 1), value=0.0)
    filled, refused = plan.steps
    assert (programs(plan), filled.name) == (["FillPad"], "FillPadDeviceOperation")
    assert isinstance(refused, Refuse)
    assert refused.text.startswith(text)


HIGH, GATHERED = "1x1x64x32 height/32x32/2", ["ShardedToInterleaved", "ReshapeView"]
FILLED = ["Typecast", "ReshapeView", "FillPad", "Typecast"]


@pytest.mark.parametrize(
    ("source", "shape", "where", "filler", "wanted", "after"),
    [
        # pages that stay keep their buffer
        ("2x3x8x16", (6, 8, 16), None, None, [], "dram"),
        ("2x32x64x16 tile", (1, 1, 4096, 16), None, None, [], "dram"),
        # another memory takes a program
        ("1x1x64x32", (1, 2, 32, 32), "l1", None, ["ReshapeView"], "l1"),
        ("1x1x64x32", (1, 1, 64, 32), "l1", None, ["Copy"], "l1"),
        ("1x1x33x32 tile", (1, 1, 33, 32), "l1", None, ["ReshapeView"], "l1"),
        # shards of rows are left and made again
        (HIGH, (1, 1, 32, 64), None, None, [*GATHERED, "InterleavedToSharded"], "height/16x64/2"),
        # no block has rows of 64 bytes
        ("1x1x64x64 block/64x32/2", (1, 1, 512, 8), None, None, GATHERED, "l1"),
        ("1x1x64x64 tile height/32x64/2", (1, 1, 128, 32), None, None, ["ReshapeView"], "height/64x32/2"),
        # BLOCK shards of whole tiles that somebody asks for stay
        ("1x1x64x64 tile", (1, 1, 128, 32), "block/64x32/1x2", None, ["ReshapeView"], "block/64x32/1x2"),
        # block floats move as bfloat16, and ragged ones are filled
        ("1x1x64x64 bfloat8_b tile", (1, 1, 128, 32), None, None, ["Typecast", "ReshapeView", "Typecast"], "dram"),
        ("1x1x33x64 bfloat8_b tile", (1, 1, 66, 32), None, None, FILLED, "dram"),
        ("1x1x33x64 tile", (1, 1, 66, 32), None, 1.0, ["ReshapeView", "FillPad"], "dram"),
    ],
)
def test_programs_that_reshape(source, shape, where, filler, wanted, after):
    plan = plan_reshape(tensor_spec(source), shape, SPEC, place=where and place(where), filler=filler)
    result = plan.results["output"]
    assert (programs(plan), result == "input") == (wanted, not wanted)
    assert (plan.tensors[result].shape, plan.tensors[result].memory_config) == (shape, place(after))


@pytest.mark.parametrize(
    ("source", "before", "text"),
    [
        ("1x1x8x16 uint16 height/4x16/2", ["ShardedToInterleaved"], "Can only work with bfloat16/float32 or int32/"),
        ("1x1x8x16 height/4x16/2", ["ShardedToInterleaved", "ReshapeView"], "Shard page size must currently have L1"),
    ],
)
def test_programs_before_a_refusal_run(source, before, text):
    """They may find no room first."""
    plan = plan_reshape(tensor_spec(source), (1, 1, 32, 4), SPEC)
    assert programs(plan) == before
    assert isinstance(plan.steps[-1], Refuse)
    assert plan.steps[-1].text.startswith(text)


@pytest.mark.parametrize("shape", [(124,), (1, 124)])
def test_reshaped_rows_are_dealt_as_a_matrix_and_viewed(shape):
    """124 columns on eight cores are 16 each."""
    plan = plan_reshape(tensor_spec("2x62 width/2x8/8"), shape, SPEC)
    assert programs(plan) == ["ShardedToInterleaved", "ReshapeView", "InterleavedToSharded"]
    assert f"Input shape: Shape([1, 128]), New shape: Shape({list(shape)}), Shard width: 16" in plan.steps[-1].text


def test_rows_are_not_reshaped_into_blocks_in_dram():
    plan = plan_reshape(tensor_spec("64x96"), (6144,), SPEC, place=place("block/1x1024/6x1 dram"))
    assert plan.steps[-1].text.startswith("We don't support DRAM block sharding")


@pytest.mark.parametrize(
    ("text", "source", "shape"),
    [
        (r"^Attempting to reshape between two shapes with different", "1x4", (1, 5)),
        (r"^Shard page size must be aligned to 16B", "1x1x8x12 height/4x12/2", (1, 1, 4, 24)),
        (r"^Changing the last dimension of a sharded tensor", "1x1x8x30 block/8x16/2", (8, 30)),
        (r"^Shard height 9 must match physical height 8", "1x1x8x28 width/8x32/2", (8, 28)),
    ],
)
def test_reshapes_that_are_refused(text, source, shape):
    with pytest.raises(DeviceError, match=text):
        plan_reshape(tensor_spec(source), shape, SPEC)


def test_squeezed_rows_keep_the_padding_of_their_shards():
    plan = plan_squeeze(tensor_spec("1x8x30 block/8x16/2"), [0], SPEC)
    result = plan.tensors[plan.results["output"]]
    assert (programs(plan), result.shape, result.padded_shape) == ([], (8, 30), (8, 32))


TWO_HIGH, FOUR_HIGH, TWO_WIDE = "height/32x64/2", "height/16x64/4", "width/64x32/2"
RAGGED_HIGH, RAGGED_WIDE = "height/25x70/2", "width/50x24/3"  # rows of 140 bytes are no whole multiple of 16


@pytest.mark.parametrize(
    ("source", "after", "data_format", "names"),
    [
        (f"64x64 {TWO_HIGH}", FOUR_HIGH, None, ["Reshard"]),
        (f"64x64 tile {TWO_HIGH}", TWO_WIDE, None, ["Reshard"]),
        (f"64x64 {TWO_HIGH}", TWO_WIDE, None, ["ShardedToInterleaved", "InterleavedToSharded"]),
        ("64x64", TWO_WIDE, None, ["InterleavedToSharded"]),
        (f"64x64 {TWO_WIDE}", "l1", None, ["ShardedToInterleaved"]),
        ("50x70", RAGGED_HIGH, None, ["Copy"]),
        (f"50x70 {RAGGED_HIGH}", "dram", None, ["Copy"]),
        (f"50x70 {RAGGED_HIGH}", "height/10x70/5", None, ["Reshard"]),
        (f"50x70 {RAGGED_HIGH}", RAGGED_WIDE, None, ["Copy"]),
        # these are gathered before the library sees that they can not be dealt
        (f"50x70 {RAGGED_WIDE}", RAGGED_HIGH, None, ["ShardedToInterleaved", "Copy"]),
        # other shards of another format are a copy
        (f"64x64 tile {TWO_HIGH}", TWO_WIDE, BFLOAT8_B, ["Copy"]),
        (f"64x64 tile {TWO_HIGH}", "dram", BFLOAT8_B, ["ShardedToInterleaved"]),
        (f"64x64 tile {TWO_HIGH}", TWO_HIGH, BFLOAT8_B, []),
    ],
)
def test_programs_that_deal_shards_want_aligned_rows(source, after, data_format, names):
    plan = plan_to_memory_config(tensor_spec(source), place(after), SPEC, data_format=data_format)
    assert programs(plan) == names


@pytest.mark.parametrize(
    ("rows", "data_format", "free_bytes", "program"),
    [
        # 328 tiles of 4,096 B, and four pages of 4,096 + 32 B of a scratchpad: 1,360,000 B
        (10496, None, 1_360_001, "InterleavedToSharded"),
        (10496, None, 1_360_000, "Copy"),
        # 218 tiles of both formats, 6,144 B, and the scratchpad of the source's tiles: 1,355,904 B
        (6976, BFLOAT16, 1_355_905, "InterleavedToSharded"),
        (6976, BFLOAT16, 1_355_904, "Copy"),
    ],
)
def test_shards_beyond_the_free_l1_are_copied_tile_by_tile(rows, data_format, free_bytes, program):
    source, free = tensor_spec(f"1x1x{rows}x32 float32 tile"), FreeL1(free_bytes, free_bytes)
    target = place(f"height/{rows}x32/1 dram")
    plan = plan_to_memory_config(source, target, SPEC, data_format=data_format, free_l1=free)
    assert programs(plan) == [program]


def test_a_tensor_that_moves_keeps_its_shards():
    source, other = (tensor_spec(f"64x64 {where}") for where in (TWO_HIGH, FOUR_HIGH))
    plan = plan_move(source, other.memory_config, SPEC)
    assert plan.tensors["input"] == source


HIGH_IMAGES, GENERATED = "4x2x8x48 height/16x48/4", "RepeatCodegen"
WIDE = ["ShardedToInterleaved", GENERATED, "InterleavedToSharded"]


@pytest.mark.parametrize(
    ("source", "counts", "names", "after"),
    [
        # a core repeats what it has whole of the axis; else all cores share the tensor
        (HIGH_IMAGES, (1, 3, 1, 1), [GENERATED], "height/48x48/4"),
        (HIGH_IMAGES, (3, 1, 1, 1), [GENERATED], "height/3x48/64"),
        (HIGH_IMAGES, (1, 3, 2, 1), [GENERATED] * 2, "height/6x48/64"),
        (HIGH_IMAGES, (1, 3, 1, 2), [GENERATED] * 2, "height/3x96/64"),
        # rows of 100 bytes that do not stay on their cores lie interleaved
        ("4x2x8x50 height/16x50/4", (3, 1, 1, 1), [GENERATED], "l1"),
        ("1x1x64x100 width/64x24/5", (1, 1, 1, 3), WIDE[:2], "l1"),
        # parts of rows
        ("1x2x64x64 width/128x16/4", (1, 1, 3, 1), ["Repeat"], "width/384x16/4"),
        ("2x1x64x100 width/128x16/7", (1, 2, 1, 1), ["Repeat"], "width/256x16/7"),
        ("1x1x64x64 width/64x16/4", (1, 1, 3, 2), [WIDE[0], GENERATED, *WIDE[1:]], "width/192x8/16"),
        # shards of rows without a unit, across rows on the most cores that cut aligned parts, or of whole tiles
        ("1x2x1x384 block/1x64/6x2", (2, 1, 4, 1), [WIDE[0], GENERATED, *WIDE[1:]], "block/2x48/8x8"),
        ("1x1x10x360 width/10x48/8", (2, 1, 3, 1), [WIDE[0], GENERATED, *WIDE[1:]], "width/60x8/45"),
        # tiles with padding, and blocks on more cores than they fill
        ("1x2x20x50 tile width/64x32/4", (3, 1, 1, 1), [GENERATED], "width/192x32/2"),
        ("2x1x32x64 tile block/32x32/2x3", (1, 3, 1, 1), WIDE, "block/96x32/2x3"),
        # shards in DRAM do not stay on their banks
        ("128x64 tile height/64x64/2 dram", (1, 2), [GENERATED], "height/32x128/4 dram"),
        ("128x64 width/128x32/2 dram", (2, 1), ["Copy", GENERATED, WIDE[2]], "width/256x8/8 dram"),
        ("1x1x64x64 tile width/64x32/2 dram", (2, 1, 1, 1, 1), ["Copy", "Repeat", WIDE[2]], "width/128x32/2 dram"),
    ],
)
def test_shards_that_are_repeated(source, counts, names, after):
    plan = plan_repeat(tensor_spec(source), counts, SPEC)
    where = plan.tensors[plan.results["output"]].memory_config
    assert (programs(plan), where) == (names, place(after))


def test_the_program_of_more_axes_reads_shards_in_dram_by_way_of_l1():
    plan = plan_repeat(tensor_spec("1x1x64x64 tile height/32x64/2 dram"), (2, 1, 1, 1, 1), SPEC, place=place("dram"))
    assert plan.tensors["gathered"].memory_config == place("l1")


@pytest.mark.parametrize(
    ("source", "to", "sizes"),
    [
        ("192x32 float32 width/192x16/2 dram", "width/192x32/1 dram", [256, 64]),  # two rows, and one that is read
        ("192x8 float32 height/96x8/2 dram", "height/64x16/3 dram", [128, 32]),
        ("192x32 float32 width/192x16/2 dram", "width/192x16/3 dram", [64]),
    ],
)
def test_rows_in_dram_whose_shards_become_wider_are_copied(source, to, sizes):
    plan = plan_to_memory_config(tensor_spec(source), place(to), SPEC)
    (step,) = (step for step in plan.steps if isinstance(step, Operation))
    assert [buffer.size_bytes for buffer in step.circular_buffers] == sizes


@pytest.mark.parametrize(
    ("source", "to", "buffer", "tensor"),
    [
        ("128x64 height/64x64/2 dram", None, "sharded_in", "input"),
        ("128x64 height/64x64/2", "height/32x64/2 dram", "sharded_out", "output"),
    ],
)
def test_high_shards_of_rows_are_not_cut_in_dram(source, to, buffer, tensor):
    where = to and place(to)
    text = refusal_of(lambda: plan_slice(tensor_spec(source), (0, 0), (64, 64), None, SPEC, place=where))
    assert text.startswith(f"DFB '{buffer}' borrows memory from TensorParameter '{tensor}', but its TensorSpec is not")


@pytest.mark.parametrize(
    ("source", "counts", "seen"),
    [
        ("1x64x100 width/64x16/7", (3, 1, 1), "Shape([1, 64, 112]), New shape: Shape([1, 1, 64, 100])"),
        ("1x1x64x100 width/64x16/7", (3, 1, 1, 1), "Shape([1, 3, 64, 112]), New shape: Shape([3, 1, 64, 100])"),
        ("1x1x64x100 width/64x16/7", (1, 1, 1, 1, 1), "Shape([1, 1, 64, 112]), New shape: Shape([1, 1, 1, 64, 100])"),
        ("64x100 width/64x16/7", (2, 1, 1, 1, 1), "Shape([64, 112]), New shape: Shape([1, 1, 1, 64, 100])"),
    ],
)
def test_rows_with_padding_in_shards_are_not_seen_in_another_shape(source, counts, seen):
    assert f"Input shape: {seen}" in refusal_of(lambda: plan_repeat(tensor_spec(source), counts, SPEC))


@pytest.mark.parametrize(
    ("source", "counts", "to", "text"),
    [
        # of more axes than four, by the program that deals
        ("1x1x2x31x8", (1, 3, 1, 1, 1), "width/186x4/2", "Shard page size must currently have L1 aligned page size"),
        ("1x1x64x64 tile", (2, 1, 1, 1, 1), "block/128x32/2x1 dram", "We don't support DRAM block sharding"),
        ("2x96x16 block/192x3/6x1", (3, 1, 1), "width/576x16/1 dram", None),
        ("1x96x50 tile", (3, 1, 1, 1), "block/288x64/1x1 dram", None),
    ],
)
def test_repeated_tensors_are_dealt_to_wanted_shards(source, counts, to, text):
    plan = plan_repeat(tensor_spec(source), counts, SPEC, place=place(to))
    if text is None:
        assert plan.tensors[plan.results["output"]].memory_config == place(to)
    else:
        assert plan.steps[-1].text.startswith(text)


@pytest.mark.parametrize(
    ("source", "counts", "to", "names"),
    [
        # shards on the same cores alone stay there
        ("2x1x1x64x64 tile height/128x64/1", (1, 4, 1, 1, 1), "width/512x32/2", ["ShardedToInterleaved", "Repeat"]),
        # cores that repeat their rows, and a single row of cores that all would read, are slower with generated code
        ("1x4x8x48 height/8x48/4", (1, 1, 1, 2), None, ["Repeat"]),
        ("1x4x8x48 height/8x48/1x4", (1, 1, 1, 2), None, [GENERATED]),
        ("1x8x32x64 tile height/32x64/8", (1, 2, 1, 1), "dram", ["ShardedToInterleaved", "Repeat"]),
        ("1x8x32x64 tile height/32x64/4x2", (1, 2, 1, 1), "dram", [GENERATED]),
    ],
)
def test_programs_that_repeat_shards(source, counts, to, names):
    made = programs(plan_repeat(tensor_spec(source), counts, SPEC, place=to and place(to)))
    assert made[: len(names)] == names
    assert made[len(names) :] in ([], ["InterleavedToSharded"])


@pytest.mark.parametrize(
    ("source", "shape", "error", "text"),
    [
        # shards of 32 columns cut rows whose padding lies in the last of them, even in their own shape
        ("1x1x64x60 width/64x32/2", (1, 1, 64, 60), DeviceError, "Changing the last dimension of a sharded tensor"),
        ("1x64x64 tile", (4096,), DeviceError, "MeshBuffer must be large enough to hold the tensor"),
        # shards are looked at first
        ("1x64x64 tile height/32x64/2", (4096,), DeviceError, "Shard width 64 must match physical width 4096"),
    ],
)
def test_memory_is_not_seen_where_shards_cut_rows_or_the_buffer_is_too_small(source, shape, error, text):
    with pytest.raises(error, match=f"^{text}"):
        plan_memory_view(tensor_spec(source), shape, SPEC)


def test_one_core_pads_rows_beside_a_number_in_l1():
    """Rows of 132 B are 160 B apart, 16 of them on their way; 64 B hold the number while the program is made."""
    plan = plan_pad(tensor_spec("1x3x100x64 dram"), ((0, 0), (0, 0), (0, 4), (0, 2)), 1.0, SPEC, by_one_core=True)
    ((rows,),) = [step.circular_buffers for step in plan.steps if isinstance(step, Operation)]
    assert (rows.size_bytes, rows.cores.num_cores()) == (16 * 160, 1)
    assert [step.buffer.size_bytes for step in plan.steps if isinstance(step, Allocate)] == [312 * 132, 64]
    assert plan.without_values is None


SOME = core_rectangle(1, 3)  # three of the 64 cores


@pytest.mark.parametrize(
    "plan",
    [
        partial(plan_pad, tensor_spec("1x128x64"), (NONE, (0, 2), NONE), 0.0),
        partial(plan_slice, tensor_spec("1x128x64"), (0, 0, 0), (1, 100, 64), None),
        partial(plan_typecast, tensor_spec("128x64 tile"), FLOAT32),
        partial(plan_reshape, tensor_spec("128x64"), (64, 128)),
        partial(plan_reshape, tensor_spec("128x64 tile"), (64, 128)),
        partial(plan_tilize, tensor_spec("192x64")),
        partial(plan_tilize, tensor_spec("192x64 height/32x64/6")),
        partial(plan_untilize, tensor_spec("1x180x64 tile")),
    ],
)
def test_a_call_keeps_to_some_cores(plan):
    """More rows and tiles than cores: all three work, and take longer than 64 do."""
    some, all_cores = plan(SPEC, cores=SOME), plan(SPEC)
    (few,) = (step for step in some.steps if isinstance(step, Operation))
    assert {buffer.cores for buffer in few.circular_buffers} == {SOME}
    assert not any(buffer.view_of for buffer in few.circular_buffers)
    assert run_cycles(some, SPEC).cycles > run_cycles(all_cores, SPEC).cycles


REFUSED_ON_SOME_CORES = [
    (
        partial(plan_pad, tensor_spec("128x64"), ((0, 1), NONE), 0.0, by_one_core=True),
        "ttnn.pad: sub_core_grids is only",
    ),
    (
        partial(plan_pad, tensor_spec("64x96 width/64x32/3"), (NONE, (0, 16)), 0.0, place=place("l1")),
        "ttnn.pad: Input memory layout must be interleaved when sub_core_grids argument is provided",
    ),
    (
        partial(plan_pad, tensor_spec("60x96"), ((0, 4), NONE), 0.0, place=place("height/32x96/2")),
        "ttnn.pad: Output memory layout must be interleaved when sub_core_grids argument is provided",
    ),
    (partial(plan_typecast, tensor_spec("128x64"), FLOAT32), "Typecast operation does not support sub_core_grids when"),
    (
        partial(plan_reshape, tensor_spec("128x64 height/64x64/2"), (64, 128)),
        "Sharded reshape does not support sub core",
    ),
    (
        partial(plan_reshape, tensor_spec("128x64 bfloat8_b tile"), (64, 128)),
        "Block-float reshape does not support sub",
    ),
]


@pytest.mark.parametrize(("plan", "first"), REFUSED_ON_SOME_CORES)
def test_what_does_not_keep_to_some_cores_is_refused(plan, first):
    with pytest.raises(DeviceError, match=f"^{first}"):
        plan(SPEC, cores=SOME)


@pytest.mark.parametrize(
    ("tiles", "alone", "first"),
    [
        ("128x64 tile height/64x64/2", False, "Input memory layout must be interleaved when"),
        ("64x64 tile", False, "sub_core_grid untilize only supports tensors one tile row"),
        ("32x64 tile", True, "sub_core_grid implementation only"),
    ],
)
def test_some_cores_untilize_together_a_row_of_interleaved_tiles(tiles, alone, first):
    (step,) = plan_untilize(tensor_spec(tiles), SPEC, on_one_core=alone, cores=SOME).steps
    assert step.refused.startswith(first)


@pytest.mark.parametrize(
    ("source", "first"), [("64x64 tile", "bad optional access"), ("64x64", "MemoryConfig must have")]
)
def test_a_sharded_place_without_shards_is_refused_before_anything_else(source, first):
    given = tensor_spec(source)
    for plan in (
        partial(plan_typecast, given, FLOAT32),
        partial(plan_clone, given),
        partial(plan_broadcast_to, given, (64, 64)),
    ):
        with pytest.raises(DeviceError, match=f"^{first}"):
            plan(SPEC, place=WITHOUT_SPEC)


def test_shards_in_dram_beside_the_first_row_are_refused_before_the_tensor():
    place = tensor_spec("64x64 tile dram height/32x64/1x2").memory_config
    for plan in (
        partial(plan_typecast, tensor_spec("64x64"), FLOAT32),
        partial(plan_broadcast_to, tensor_spec("64x64"), (64, 64)),
    ):
        with pytest.raises(DeviceError, match=r"^Invalid DRAM shard grid"):
            plan(SPEC, place=place)


def test_rows_are_converted_into_pages_of_their_length_alone():
    source, place = tensor_spec("96x64 width/96x32/2"), tensor_spec("96x64 width/96x64/1").memory_config
    (step,) = plan_typecast(source, FLOAT32, SPEC, place=place).steps
    pages = "got input 192 pages of 32 elements and output 96 pages of 64 elements"
    assert step.refused.startswith(f"Row-major typecast requires matching page geometry, {pages}")


def test_cores_beside_the_device_are_refused_where_one_is_used():
    beside = CoreRangeSet([CoreRange(CoreCoord(7, 7), CoreCoord(7, 8))])
    with pytest.raises(DeviceError, match=r"^WorkUnitSpec 'typecast_subgrid' targets node \(7,8\), which is out of"):
        plan_typecast(tensor_spec("64x32 tile"), FLOAT32, SPEC, cores=beside)
    assert programs(plan_typecast(tensor_spec("32x32 tile"), FLOAT32, SPEC, cores=beside)) == ["Typecast"]


def test_shards_are_converted_page_by_page_where_cores_are_given_whatever_they_are():
    beside = CoreRangeSet([CoreRange(CoreCoord(9, 9), CoreCoord(9, 9))])
    (step,) = plan_typecast(tensor_spec("128x64 tile height/32x64/4"), UINT16, SPEC, cores=beside).steps
    assert [(buffer.view_of, buffer.cores.num_cores()) for buffer in step.circular_buffers] == [(None, 8)] * 2


@pytest.mark.parametrize(
    ("source", "padding", "value"), [("40x64", ((1, 0), (0, 0)), 0.0), ("40x64 float32", ((0, 1), (0, 0)), 1.5)]
)
def test_numbers_are_not_known_where_one_core_pads_in_front_or_in_another_format(source, padding, value):
    plan = plan_pad(tensor_spec(source), padding, value, SPEC, by_one_core=True)
    assert plan.without_values.startswith("pad: with use_multicore=False")


@pytest.mark.parametrize(("source", "shape"), [("1x64x64 tile", (32, 128)), ("2x50x64 tile", (100, 64))])
def test_numbers_are_not_known_where_a_view_of_memory_moves_elements(source, shape):
    plan = plan_memory_view(tensor_spec(source), shape, SPEC)
    assert not programs(plan)
    assert plan.without_values.startswith("experimental.view: ")


@pytest.mark.parametrize("source", ["1x50x64 tile", "1x50x64", "1x50x64 tile height/32x64/2"])
def test_memory_is_seen_under_fewer_axes(source):
    plan = plan_memory_view(tensor_spec(source), (50, 64), SPEC)
    assert not programs(plan)
    assert plan.tensors[plan.results["output"]].shape == (50, 64)


@pytest.mark.parametrize(
    ("source", "scheme", "shard", "cores", "expected"),
    [
        # even shards of whole tiles, dealt after the box was cut
        ("1x1x64x128 tile l1", "BLOCK", (32, 32), 4, ["Slice", "InterleavedToSharded"]),
        ("1x1x64x128 tile", "WIDTH", (64, 32), 2, ["Slice", "InterleavedToSharded"]),
        # the source's shards of 64 of 128 columns become shards of 32 of 64
        ("1x1x64x128 tile block/64x64/2x1", "BLOCK", (64, 32), 2, ["Slice"]),
    ],
)
def test_a_box_lies_in_shards_that_the_library_chooses(source, scheme, shard, cores, expected):
    where = MemoryConfig(TensorMemoryLayout[f"{scheme}_SHARDED"], BufferType.L1)
    plan = plan_slice(tensor_spec(source), (0, 0, 0, 0), (1, 1, 64, 64), None, SPEC, place=where)
    shards = plan.tensors[plan.results["output"]].memory_config.shard_spec
    assert (programs(plan), tuple(shards.shape), shards.num_cores()) == (expected, shard, cores)


@pytest.mark.parametrize(
    ("source", "scheme", "names"),
    [
        # rows that no program reads in their shards go by way of interleaved L1, even into the same scheme
        ("1x3x31x96 height/48x96/2", "HEIGHT", ["ShardedToInterleaved", "Slice", "InterleavedToSharded"]),
        ("1x2x76x16 width/152x3/6 dram", "BLOCK", ["Copy", "Slice", "InterleavedToSharded"]),
        ("1x2x64x96 width/128x32/3", "HEIGHT", ["Slice", "InterleavedToSharded"]),
    ],
)
def test_a_box_goes_by_way_of_l1_to_shards_that_the_library_chooses(source, scheme, names):
    tensor = tensor_spec(source)
    where, ends = MemoryConfig(TensorMemoryLayout[f"{scheme}_SHARDED"], BufferType.L1), (1, 2, 10, tensor.shape[-1])
    plan = plan_slice(tensor, (0, 0, 0, 0), ends, None, SPEC, place=where)
    assert programs(plan) == names
    made = [step.outputs[0].buffer.buffer_type for step in plan.steps if isinstance(step, Operation)]
    assert made == [BufferType.L1] * len(names)


@pytest.mark.parametrize(
    ("source", "ends", "steps", "seen"),
    [
        (
            "2x1x16x32 block/11x16/2x3",
            (1, 1, 16, 31),
            (2, 2, 1, 1),
            (1, 1, 16, 32),
        ),
        (
            "4x2x32x64 tile width/256x32/2",
            (4, 2, 5, 61),
            (2, 1, 1, 2),
            (2, 2, 5, 32),
        ),
        (
            "2x1x1x33x65 tile width/128x32/3",
            (2, 1, 1, 28, 65),
            (1, 1, 1, 3, 1),
            (2, 1, 33, 96),
        ),
    ],
)
def test_a_box_that_does_not_fill_the_columns_of_its_shards_is_refused(source, ends, steps, seen):
    first = refusal_of(lambda: plan_slice(tensor_spec(source), (0,) * len(ends), ends, steps, SPEC))
    assert first.startswith("Changing the last dimension of a sharded tensor")
    assert f"Input shape: Shape({list(seen)})" in first


def in_columns(buffer_type):
    """Four images of 20x96 elements in three shards of a column of tiles each."""
    shards = ShardSpec(first_cores(3, 8, 8, row_wise=True), (128, 32))
    where = MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, buffer_type, shards)
    return tensor_spec("4x1x20x96 tile").changed(memory_config=where)


def test_shards_in_l1_are_filled_where_they_lie_and_hold_one_image_then():
    with pytest.raises(DeviceError, match=r"^FillPadL1ShardedProgramFactory: N_slices > 1 not yet supported \(got 4\)"):
        plan_fill_padding(in_columns(BufferType.L1), 0.0, SPEC)


def test_shards_in_dram_are_filled_as_interleaved_tiles():
    """Twelve tiles hold padding, and are dealt to as many cores."""
    (filled,) = [
        step for step in plan_fill_padding(in_columns(BufferType.DRAM), 0.0, SPEC).steps if isinstance(step, Operation)
    ]
    assert {buffer.cores.num_cores() for buffer in filled.circular_buffers} == {12}


def test_rows_are_refused_before_their_format_where_padding_is_filled():
    with pytest.raises(DeviceError, match=r"^FillPad should only be used for tile layout"):
        plan_fill_padding(tensor_spec("8x3x32x1 uint8"), 0.0, SPEC)


def test_block_floats_of_four_bits_stay_whole():
    """A vector, whose tiles would become rows to be cut."""
    assert not plan_slice(tensor_spec("100 bfloat4_b tile"), (0,), (100,), None, SPEC).steps


@pytest.mark.parametrize(
    ("source", "padding", "first"),
    [
        ("1x256x16 width/256x16/21", [(0, 1)], "Attempting to reshape between two shapes with different volumes"),
        (
            "2x1x1x128x16 width/256x16/21",
            [(0, 1)],
            "ttnn.pad: restored shape Shape([2, 1, 1, 128, 17]) does not match the padded output volume of "
            "Shape([2, 1, 128, 32])",
        ),
        ("2x1x1x128x60 width/256x16/4", [(0, 1)], "Changing the last dimension of a sharded tensor is not supported"),
        (
            "2x1x1x128x60 width/256x16/4",
            [(0, 1), *[NONE] * 4],
            "Changing the last dimension of a sharded tensor is not supported unless the shard width matches the input "
            "last dimension. Input shape: Shape([2, 1, 1, 128, 64]), New shape: Shape([1, 2, 128, 60])",
        ),
    ],
)
def test_padded_rows_that_do_not_fill_their_shards_are_refused_beside_four_axes(source, padding, first):
    assert refusal_of(lambda: padded(source, *padding)).startswith(first)


@pytest.mark.parametrize(
    ("source", "axes", "scheme", "wanted"),
    [
        # as many rows on each core, and aligned columns on as many cores as there are
        ("2x3x8x3 width/48x16/1", (0, 1, 3, 2), "HEIGHT", "height/2x8/8x6"),
        ("3x1x96x31 width/288x4/9", (1, 0, 2, 3), "WIDTH", "width/288x8/4"),
    ],
)
def test_rows_that_are_gathered_first_get_shards_with_their_padding(source, axes, scheme, wanted):
    swapped = [axis for axis, number in enumerate(axes) if axis != number]
    where = MemoryConfig(TensorMemoryLayout[f"{scheme}_SHARDED"], BufferType.L1)
    plan = plan_transpose(tensor_spec(source), *swapped, SPEC, place=where)
    assert plan.tensors[plan.results["output"]].memory_config.shard_spec.shape == place(wanted).shard_spec.shape


def test_blocks_in_dram_that_stay_are_refused_before_shards_without_a_spec():
    where, source = (
        MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1),
        tensor_spec("8x16 block/8x8/2x1 dram"),
    )
    assert refusal_of(lambda: plan_permute(source, (0, 1), SPEC, place=where)).startswith("We don't support DRAM block")


@pytest.mark.parametrize("source", ["1x33x8 block/7x8/1x5", "2x2x33x16 width/132x8/2"])
def test_parts_of_rows_are_gathered_even_where_an_axis_is_swapped_with_itself(source):
    plan = plan_transpose(tensor_spec(source), 1, 1, SPEC)
    assert (programs(plan), plan.tensors[plan.results["output"]].memory_config) == (
        ["ShardedToInterleaved"],
        place("l1"),
    )


def test_interleaved_rows_with_the_padding_of_tiles_are_read_and_seen_with_it():
    """As ttnn.untilize leaves them where it gathers tiles out of shards."""
    rows = TensorSpec((2, 3, 24, 100), BFLOAT16, Layout.ROW_MAJOR, place("l1"), (2, 3, 32, 128))
    with pytest.raises(DeviceError, match="For valid non-interleaved buffers page size 200 must equal buffer size 491"):
        plan_reshape(rows, (1, 1, 144, 100), SPEC)
    (step,) = plan_repeat(rows, (2, 1, 1, 1), SPEC).steps
    assert step.circular_buffers[0].size_bytes == 8 * 256
