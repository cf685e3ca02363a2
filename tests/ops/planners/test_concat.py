"""What is not joined, in the words of the library."""

import pytest

from device.cores import core_rectangle, first_cores
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, FLOAT32
from device.plan import Operation
from ops.planners.concat import joins_in_place, plan_concat, require_one_shape, shards_refusal
from tests.build import N150, place, tensor_spec

ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


def spec(scheme="HEIGHT", shard=(64, 64), cores=2, layout=TILES, shape=(1, 1, 128, 64)):
    held = ShardSpec(first_cores(cores, 8, 8), shard)
    place = MemoryConfig(TensorMemoryLayout[f"{scheme}_SHARDED"], BufferType.L1, held)
    return TensorSpec(shape, BFLOAT16, layout, place)


@pytest.mark.parametrize(
    ("scheme", "axes"), [("HEIGHT", [3]), ("WIDTH", [2]), ("BLOCK", [2, 3])], ids=["height", "width", "block"]
)
def test_shards_are_joined_along_axes_that_they_are_whole_on(scheme, axes):
    shard = {"HEIGHT": (64, 64), "WIDTH": (128, 32), "BLOCK": (128, 32)}[scheme]
    assert [axis for axis in range(4) if joins_in_place(spec(scheme, shard), axis)] == axes


@pytest.mark.parametrize(
    ("other", "axis", "groups", "text"),
    [
        (spec(shard=(32, 64), cores=4), 3, 1, "Sharded tensors must have the same grid."),
        (spec("WIDTH", (128, 32)), 3, 1, "Sharded tensors must have the same memory layout."),
        (spec(), 1, 1, "Only width or height concat on sharded tensors"),
        (spec(), 2, 1, "Only support height concat on width-sharded or block-sharded tensors."),
        (spec(), 3, 8, "Group size must be at least 16 for input0 (was 8)"),
        (spec(), 3, 4, None),
    ],
)
def test_the_first_line_is_the_librarys(other, axis, groups, text):
    found = shards_refusal([spec(), other], spec(), axis, groups, 16)
    assert (None if found is None else found.partition("\n")[0]) == text


def test_sticks_of_two_tensors_are_whole_multiples_of_32_bytes():
    one = spec(shard=(64, 24), layout=ROWS, shape=(1, 1, 128, 24))
    assert shards_refusal([one, one], one, 3, 1, 16).startswith(
        "DFB 's2s_rm_input_0' (entry_size 64 * num_entries 64 = 4096 bytes) is larger than"
    )
    assert shards_refusal([one, one, one], one, 3, 1, 16) is None


@pytest.mark.parametrize(
    ("columns", "across", "axis", "text"),
    [
        (
            23,
            32,
            3,
            "Width concat: input 1 starts at column 23 (46 bytes), not L1-aligned (16 bytes). A ragged width puts",
        ),
        (24, 12, 3, "Input 0 shard row size (24 bytes = 12 elements x 2 bytes) is not L1-aligned (16 bytes)."),
        (24, 12, 2, "Input 0 shard row size (24 bytes = 12 elements x 2 bytes) is not L1-aligned (16 bytes)."),
        (16, 16, 3, None),
        (16, 16, 2, None),
    ],
)
def test_rows_in_blocks_start_and_end_aligned(columns, across, axis, text):
    one = spec("BLOCK", (128, across), layout=ROWS, shape=(1, 1, 128, columns))
    found = shards_refusal([one, one], one, axis, 1, 16)
    assert (None if found is None else found[: len(text or "")]) == text


def test_tensors_differ_along_one_axis_alone():
    one, other = TensorSpec((1, 1, 32, 32), BFLOAT16, TILES), TensorSpec((1, 1, 64, 32), BFLOAT16, TILES)
    require_one_shape([one, other], 2)
    with pytest.raises(DeviceError, match=r"^All dimensions must be the same size except"):
        require_one_shape([one, other], 3)
    with pytest.raises(DeviceError, match=r"^All Tensors should have same dtypes\."):
        require_one_shape([one, TensorSpec((1, 1, 32, 32), FLOAT32, TILES)], 3)


def test_block_shards_of_vectors_are_joined_on_their_cores():
    """96 elements of bfloat16 on six cores: 16 of each tensor in 32 bytes, and 32 of the result."""
    source = tensor_spec("96 block/1x16/6x1")
    join, gather = plan_concat([source, source], 0, N150).steps[:2]
    assert [(buffer.size_bytes, buffer.view_of is not None) for buffer in join.circular_buffers] == [
        (32, True),
        (32, True),
        (64, True),
    ]
    assert gather.name == "ShardedToInterleavedDeviceOperation"


def test_block_shards_that_pad_a_vector_are_not_turned():
    """100 elements in shards of 17 end at 102, between aligned addresses."""
    source = tensor_spec("100 block/1x17/6x3")
    with pytest.raises(DeviceError, match=r"^Changing the last dimension of a sharded tensor is not supported"):
        plan_concat([source, source], 0, N150)


GATHERED = ["ShardedToInterleaved"] * 2


@pytest.mark.parametrize(
    ("source", "result", "names"),
    [
        ("64x64 tile height/32x64/2", "height/64x64/2 dram", ["Concat"]),  # read where they lie
        ("64x64 tile width/64x32/2", "height/64x64/2 dram", ["Concat"]),
        # pages of rows are whole rows on both sides
        ("64x64 height/32x64/2", "width/128x32/2 dram", [*GATHERED, "Concat", "InterleavedToSharded"]),
        ("64x64 width/64x32/2", "height/64x64/2 dram", [*GATHERED, "Concat"]),
        # shards in DRAM go to any shards
        ("64x64 tile block/64x32/2x1 dram", "width/128x32/2", ["Concat"]),
        ("64x24 width/64x8/3 dram", "height/32x24/4", ["Copy", "Copy", "Concat"]),
        ("64x24 width/64x8/3 dram", "width/128x8/3", ["Copy", "Copy", "Concat", "InterleavedToSharded"]),
    ],
)
def test_shards_are_joined_page_by_page_where_some_are_in_dram(source, result, names):
    tensor = tensor_spec(source)
    steps = plan_concat([tensor, tensor], 0, N150, place=place(result)).steps
    assert [step.name.removesuffix("DeviceOperation") for step in steps if isinstance(step, Operation)] == names


@pytest.mark.parametrize(
    ("sources", "first"),
    [
        (("160 height/1x160/4 dram", "32 width/1x7/7"), "Index is out of bounds for the rank, should be between 0 and"),
        (
            ("64x64 tile block/64x32/2x1 dram", "64x64 tile block/32x64/2x1 dram col"),
            "Sharded tensors must have the same shard o",
        ),
    ],
)
def test_tensors_that_are_not_joined(sources, first):
    axis = len(tensor_spec(sources[0]).shape) - 1
    with pytest.raises(DeviceError, match=f"^{first}"):
        plan_concat([tensor_spec(source) for source in sources], axis, N150, place=place("dram"))


SOME = core_rectangle(2, 2)


@pytest.mark.parametrize(
    ("source", "axis", "known"),
    [("64x64", 1, True), ("64x64 tile", 0, True), ("64x40 tile", 1, True), ("33x64 tile", 0, False)],
)
def test_some_cores_join_tensors_as_they_are(source, axis, known):
    """Padding of tiles is joined like elements, but along rows."""
    plan = plan_concat([tensor_spec(source)] * 2, axis, N150, cores=SOME)
    (step,) = plan.steps
    assert {buffer.cores.num_cores() <= 4 for buffer in step.circular_buffers} == {True}
    assert (plan.without_values is None) is known


def test_some_cores_do_not_turn_rows_that_end_unaligned():
    with pytest.raises(DeviceError, match=r"^Current concat implementation requires aligned last dim"):
        plan_concat([tensor_spec("64x3")] * 2, 1, N150, cores=SOME)
