"""Device operations, cores and buffers of gathers, as ttnn 0.81.1 plans them on a device of 8x8 cores."""

import re
from functools import partial

import numpy as np
import pytest

import ttsim
from device.cores import first_cores
from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, FLOAT32, INT32, UINT16, UINT32
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.gather import GatherArguments, plan_gather
from tests.build import place, tensor_spec

SPEC = load_spec("wormhole_n150")
ROWS = Layout.ROW_MAJOR
HEIGHTS = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(first_cores(18, 8, 8), (32, 32)))


def planned(
    own,
    other,
    dim,
    formats=(BFLOAT16, UINT32),
    layouts=(Layout.TILE, Layout.TILE),
    l1_bytes=1 << 20,
    place=None,
    **options,
):
    source, indices = map(TensorSpec, (own, other), formats, layouts)
    source = source if place is None else source.changed(memory_config=place)
    return plan_gather(GatherArguments(source=source, indices=indices, dim=dim, **options), SPEC, l1_bytes=l1_bytes)


def last_of(plan):
    """The names of all device operations, and the cores and buffers of the gather."""
    steps = [step for step in plan.steps if isinstance(step, Operation)]
    (step,) = [step for step in steps if step.name.startswith("Gather")]
    buffers = step.circular_buffers
    return (
        [one.name.removesuffix("DeviceOperation") for one in steps],
        str(buffers[0].cores),
        [buffer.size_bytes for buffer in buffers],
    )


def shards_of(indices, columns):
    """The shards that a place without a spec gets for elements of rows of so many columns."""
    source = TensorSpec((*indices.shape[:-1], columns), BFLOAT16, indices.layout)
    place = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1)
    call = GatherArguments(source=source, indices=indices, dim=-1, place=place)
    plan = plan_gather(call, SPEC, l1_bytes=1 << 20)
    return plan.tensors[plan.results["output"]].shards


IMAGE = (2, 3, 64, 100)
FILLS = ["FillPad", "FillPad", "GatherCodegen"]
TURNS = ["Transpose", "FillPad", "Transpose", "Slice", "GatherCodegen", "Transpose"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (partial(planned, IMAGE, (2, 3, 64, 50), -1), (FILLS, "{[0-0 - 2-7]}", [8192, 4096, 8192])),
        (partial(planned, IMAGE, (2, 3, 50, 100), 2), (TURNS, "{[0-0 - 5-7]}", [4096, 4096, 8192])),
        (partial(planned, IMAGE, (2, 3, 64, 30), 3), (FILLS, "{[0-0 - 0-7], [1-0 - 1-3]}", [8192, 4096, 8192])),
        (  # the row does not fit, and comes in two blocks
            partial(planned, (1, 1, 32, 3200), (1, 1, 32, 64), 3, l1_bytes=1 << 17),
            (["GatherCodegen"], "{[0-0 - 0-1]}", [102400, 4096, 2048]),
        ),
        (
            partial(planned, IMAGE, (2, 3, 64, 50), -1, (FLOAT32, UINT16)),
            (["FillPad", "FillPad", "Gather"], "{[0-0 - 7-0], [0-1 - 3-1]}", [16384, 2048, 4096]),
        ),
        (
            partial(planned, (1, 1, 32, 3200), (1, 1, 32, 64), 3, (FLOAT32, UINT32)),
            (["Gather"], "{[0-0 - 1-0]}", [8192, 4096, 4096]),
        ),
        (
            partial(planned, IMAGE, (2, 3, 64, 50), -1, layouts=(ROWS, ROWS)),
            (["Gather"], "{[0-0 - 7-7]}", [200, 200, 100]),
        ),
    ],
)
def test_plans(call, expected):
    assert last_of(call()) == expected


@pytest.mark.parametrize(
    ("call", "first"),
    [
        (partial(planned, IMAGE, (3, 64, 100), 0), "Input and index tensor must have the same number of dimensions."),
        (partial(planned, IMAGE, IMAGE, 4), "gather: dim 4 is out of range for tensor rank 4"),
        (partial(planned, IMAGE, (2, 4, 64, 50), 3), "Ends 4 must be less than or equal to the shape of the tensor 3"),
        (partial(planned, (5, *IMAGE), (6, *IMAGE), 4), "gather: index tensor size 6 on dimension 0 exceeds the input"),
        (
            partial(planned, IMAGE, IMAGE, 3, (BFLOAT16, INT32)),
            "gather_codegen: index tensor must be of type UINT32 or UINT16. Got: DataType::INT32",
        ),
        (partial(planned, IMAGE, IMAGE, 3, (FLOAT32, INT32)), "Index tensor must be of type UINT32 or UINT16."),
        (
            partial(planned, IMAGE, IMAGE, 3, layouts=(Layout.TILE, ROWS)),
            "Input tensor and index tensor must have the same layout. Got input layout: Layout::TILE",
        ),
        (partial(planned, IMAGE, IMAGE, 3, sparse=True), "gather_codegen: sparse gradient is not supported."),
        (partial(planned, IMAGE, IMAGE, 3, (FLOAT32, UINT32), sparse=True), "Sparse gradient is not supported yet."),
        (  # shards of the rows of the indices without the padding of their tiles
            lambda: shards_of(TensorSpec((1, 4, 33, 20), UINT32, Layout.TILE), 40),
            "Number of shards along height 8 must not exceed number of cores 5",
        ),
        (partial(planned, (50,), (50,), 0), "Can't convert shape rank"),
        (  # the shards are asked for once more after the axis was brought in front
            partial(planned, (1, 1, 352, 3), (1, 1, 352, 3), 2, place=HEIGHTS),
            "Shard width 32 must match physical width 352 for height sharded",
        ),
    ],
)
def test_refusals(call, first):
    with pytest.raises(DeviceError, match=re.escape(first)):
        call()


def test_a_place_without_shards_gets_those_of_the_indices_or_all_cores():
    tiles = TensorSpec((2, 2, 64, 64), UINT32, Layout.TILE)
    assert shards_of(tiles, 96) == ShardSpec(first_cores(8, 8, 8), (32, 64))
    own = ShardSpec(first_cores(4, 8, 8), (64, 64))
    place = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, own)
    assert shards_of(tiles.changed(memory_config=place), 96) == own


@pytest.mark.parametrize("layout", [ttsim.TILE_LAYOUT, ttsim.ROW_MAJOR_LAYOUT])
@pytest.mark.parametrize(
    ("shape", "index_shape", "dim"),
    [
        ((2, 3, 40, 70), (2, 2, 40, 90), -1),
        ((2, 3, 40, 70), (2, 3, 50, 33), 2),
        ((3, 2, 3, 10, 20), (2, 5, 3, 10, 20), 1),
    ],
)
def test_elements(shape, index_shape, dim, layout):
    generator = np.random.default_rng(0)
    numbers = generator.integers(0, 256, shape).astype(np.float32)
    places = generator.integers(0, shape[dim], index_shape)
    with ttsim.open_device() as device:
        tensor = ttsim.Tensor(numbers, ttsim.bfloat16, device, layout)
        index = ttsim.Tensor(places, ttsim.uint32, device, layout)
        result = ttsim.gather(tensor, dim, index).to_numpy()
    box = tuple(slice(None if axis == dim % len(shape) else side) for axis, side in enumerate(index_shape))
    assert np.array_equal(result, np.take_along_axis(numbers[box], places, dim))


def test_rows_that_only_the_padding_has_are_refused_by_a_strict_device():
    with ttsim.open_device() as device:
        tensor = ttsim.zeros((1, 1, 40, 32), layout=ttsim.TILE_LAYOUT, device=device)
        index = ttsim.zeros((1, 1, 50, 32), ttsim.uint32, ttsim.TILE_LAYOUT, device)
        with pytest.raises(ArgumentError, match="for which the real library reads padding"):
            ttsim.gather(tensor, -1, index)


def first_line(call):
    """What a refused call says, whether the planner raises it or the plan ends in it."""
    try:
        return plan_gather(call, SPEC, l1_bytes=1 << 20).steps[-1].text
    except DeviceError as error:
        return str(error)


def rows_in(words):
    return tensor_spec(words).changed(data_format=FLOAT32)


@pytest.mark.parametrize(
    ("words", "place_words", "text"),
    [
        ("1x7 width/1x8/5 dram", None, ""),
        ("3x24x7 block/72x8/5x1 dram", None, "We don't support DRAM block sharding"),
        ("28x22x3 width/616x8/1", None, "Shard height 616 must match physical height 84 for width sharded"),
        ("28x22x3 width/616x8/1", "height/12x3/7", ""),
    ],
)
def test_rows_of_no_whole_tiles_in_columns_are_gathered_as_tiles(words, place_words, text):
    source = rows_in(words)
    shape = (7, 12, 3) if len(source.shape) == 3 else (1, 35)
    call = GatherArguments(
        source=source,
        indices=TensorSpec(shape, UINT32, ROWS),
        dim=len(shape) - 2 if len(shape) == 3 else 1,
        place=place_words and place(place_words),
    )
    if text:
        assert first_line(call).startswith(text)
        return
    plan = plan_gather(call, SPEC, l1_bytes=1 << 20)
    wanted = source.memory_config if place_words is None else place(place_words)
    assert plan.tensors[plan.results["output"]].memory_config == wanted
    assert [step.name for step in plan.steps if "Gather" in getattr(step, "name", "")] == ["GatherDeviceOperation"]


def test_rows_in_shards_are_held_with_their_padding():
    """64 columns in shards of 22 are 66: 132 B of bfloat16."""
    source = tensor_spec("1x3x16x64 block/48x22/3x1 dram")
    call = GatherArguments(source=source, indices=TensorSpec(source.shape, UINT32, ROWS), dim=3)
    (step,) = plan_gather(call, SPEC, l1_bytes=1 << 20).steps
    assert [buffer.size_bytes for buffer in step.circular_buffers] == [132, 256, 128]


@pytest.mark.parametrize(
    ("own", "other", "text"),
    [
        (
            (1,),
            (33,),
            "Input and index tensor must have the same number of dimensions. Got input dim: 1 and index dim: 4",
        ),
        ((64,), (1,), "ShapeBase[] index out of range. 1 not in [-4, 1)"),
    ],
)
def test_vectors_of_one_element_are_not_seen_under_four_axes(own, other, text):
    with pytest.raises(DeviceError, match=re.escape(text)):
        planned(own, other, 0, layouts=(ROWS, ROWS))


@pytest.mark.parametrize(
    ("words", "shape", "seen"),
    [
        ("128 width/1x48/3", (64,), "Input shape: Shape([1, 1, 1, 96]), New shape: Shape([64]), Shard width: 48"),
        (
            "1x2x2x8x96 width/32x20/5",
            (1, 2, 2, 8, 64),
            "Input shape: Shape([2, 2, 8, 80]), New shape: Shape([1, 2, 2, 8",
        ),
    ],
)
def test_results_that_do_not_fill_their_shards_have_four_axes(words, shape, seen):
    call = GatherArguments(source=tensor_spec(words), indices=TensorSpec(shape, UINT32, ROWS), dim=len(shape) - 1)
    with pytest.raises(DeviceError, match=re.escape(seen)):
        plan_gather(call, SPEC, l1_bytes=1 << 20)
