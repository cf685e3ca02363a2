"""Axes in another order: buffers, pages, places and cycles, by hand."""

import pytest

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig, ShardOrientation, ShardSpec
from device.time.stages import Stage
from ops.op_models import load_spec
from ops.planners.shape.permute import plan_transpose
from ops.programs.data_movement.movement import Access, copy_movement, movement_cycles
from ops.programs.data_movement.permute import (
    LAST_TWO,
    MIDDLE_TWO,
    Permute,
    adjusted,
    even_shards,
    is_native,
    place_of_swap,
    swapped_shape,
    with_shards,
)
from ops.programs.kernel_costs import core_round_trip_cycles
from tests.build import op_cycles, place, tensor_spec
from tests.ops.programs.data_movement.round_figures import ROUND
from tests.shards import BLOCK, HEIGHT, in_box

COSTS = ROUND.replace(transfer_costs_page_issue_cycles=50.0, movement_costs_stick_cycles=60.0)
WIRE = COSTS.noc.link_bytes_per_cycle
THERE_AND_BACK = core_round_trip_cycles(COSTS)
WORMHOLE, BLACKHOLE = load_spec("wormhole_n150"), load_spec("blackhole_p150")


def turned(read, axes, where=None):
    """The result of another order of axes, where the tensor lies or in a place."""
    shape = [read.shape[axis] for axis in axes]
    return TensorSpec(shape, read.data_format, read.layout, read.memory_config if where is None else place(where))


def permute(text, axes, where=None, spec=COSTS):
    read = tensor_spec(text)
    return op_cycles(Permute(shape=read.shape, axes=axes), read, turned(read, axes, where), spec)


def test_rows_are_turned_a_tile_at_a_time():
    result = permute("1x16x128x64 l1", (0, 2, 3, 1))  # 256 parts of tiles on 64 cores, 16 x 32 each
    read = 15 * 50 + THERE_AND_BACK + 64 / WIRE
    computed = 50 + 3 + 32 + 32 + 70
    written = 31 * 60 + THERE_AND_BACK + 32 / WIRE
    assert result.cycles == pytest.approx(500 + read + computed + 4 * written)
    assert result.bound_by is Stage.WRITER


def test_sticks_of_shards_are_fetched_by_two_processors():
    result = permute("1x16x8x64 height/8x64/16", (0, 2, 1, 3))
    assert result.cycles == pytest.approx(500 + 3 * 25 + THERE_AND_BACK + 128 / WIRE)


def test_the_last_two_axes_of_shards_are_turned_in_place():
    result = permute("1x32x16x64 height/32x64/16", (0, 1, 3, 2), "height/128x16/16")
    read = 15 * 20 + 200 + 128 / WIRE
    computed = 50 + 2 * (3 + 32 + 32) + 2 * 70  # two tiles
    assert result.cycles == pytest.approx(500 + read + computed + max(read, computed))  # two images a core
    assert result.bound_by is Stage.READER
    # high images are copied once more
    tall = permute("1x16x288x32 height/288x32/16", (0, 1, 3, 2), "height/32x288/16")
    assert {stage.stage for stage in tall.slowest.stages} >= {Stage.WRITER, Stage.READER}


@pytest.mark.parametrize(
    ("text", "axes"),
    [
        ("1x2x32x64 l1", (0, 2, 1, 3)),  # rows stay whole
        ("1x2x32x64 tile l1", (0, 1, 3, 2)),
        ("2x4x64x96 tile l1", (1, 0, 2, 3)),
        ("16x1x8x64 height/8x64/16", (1, 0, 2, 3)),
    ],
)
def test_everything_else_is_a_copy(text, axes):
    read = tensor_spec(text)
    assert permute(text, axes) == movement_cycles(copy_movement(read, turned(read, axes), COSTS), COSTS)


@pytest.mark.parametrize(
    ("shape", "axes", "to", "measured_us"),
    [("1x7x25281x256", (0, 2, 3, 1), "dram", 16_984.7), ("1x1x25281x9", (0, 3, 1, 2), "l1", 61.9)],
)
def test_what_was_measured(shape, axes, to, measured_us):
    """tt-perf-report, ops_perf_results_2025_09_18: a Blackhole of 20 cores."""
    spec = BLACKHOLE.replace(grid_cols=5, grid_rows=4)
    assert permute(shape, axes, to, spec).cycles / spec.clock_hz * 1e6 == pytest.approx(measured_us, rel=0.12)


@pytest.mark.parametrize(
    ("text", "swapped", "dataflow"),
    [
        ("1x16x64x64 tile height/128x64/8", (2, 3), True),
        ("1x16x64x64 height/128x64/8", (2, 3), False),  # views of rows
        ("1x4x128x256 height/64x256/8", (1, 2), False),
        ("1x1x50x70 height/7x70/8", (2, 3), True),
    ],
)
def test_buffers_that_are_views_of_rows_are_circular_buffers(text, swapped, dataflow):
    (step,) = plan_transpose(tensor_spec(text), *swapped, WORMHOLE).steps
    assert step.dataflow is dataflow


def test_rows_keep_their_padding_and_tiles_get_other():
    assert swapped_shape(tensor_spec("1x3x8x32 tile"), (1, 2)) == (1, 8, 32, 32)
    assert swapped_shape(tensor_spec("1x1x70x50 height/32x64/3"), (2, 3)) == (1, 1, 64, 70)


@pytest.mark.parametrize(
    ("text", "axes", "cores", "reads", "writes"),
    [
        # 128 rows of four faces, 32 bytes each, for 64 cores; each waits for its tiles
        ("1x2x64x64 tile l1", (0, 2, 1, 3), 64, (Access.WAIT, 1, 2048), (Access.STICKS, 8, 32)),
        # two blocks of 32 by 40 elements are cut into four of up to 32 by 32, a core each: 2 x 32 rows of two pieces
        # are read, 2 x 40 rows of one written
        ("1x2x32x40 l1", (0, 1, 3, 2), 4, (Access.STICKS, 32, 64), (Access.STICKS, 20, 64)),
        # one block of 32 by 64 elements of three axes, turned so that the first is last: 16 blocks, face by face
        ("32x8x64 tile l1", (1, 2, 0), 16, (Access.STICKS, 64, 32), (Access.STICKS, 64, 32)),
    ],
)
def test_pieces_of_rows(text, axes, cores, reads, writes):
    source = tensor_spec(text)
    movement = Permute(shape=source.shape, axes=axes).movement(source, turned(source, axes), WORMHOLE)
    assert (movement.cores.num_cores(), movement.blocks) == (cores, 1)
    assert [(side.access, side.core_pages, side.page_bytes) for side in movement.sides] == [reads, writes]


@pytest.mark.parametrize(
    ("text", "to", "native"),
    [
        ("1x3x64x64 height/16x64/12", None, True),
        ("1x3x64x64 height/16x64/12", "height/16x64/12", True),
        ("1x3x64x64 height/16x64/12", "height/32x64/11", False),  # other cores
        ("1x1x50x70 height/4x70/13", None, False),  # 280 elements
        ("1x1x96x64 tile height/64x64/2", None, False),  # half a shard
        ("1x1x64x64 tile height/32x64/2 dram", None, False),
        ("1x1x64x64 tile block/32x32/2x2", None, False),
    ],
)
def test_native_are_full_shards_in_l1_of_whole_tiles_worth(text, to, native):
    assert is_native(tensor_spec(text), to and place(to)) is native


def without_spec(text):
    where = place(text)
    return MemoryConfig(where.memory_layout, where.buffer_type)


@pytest.mark.parametrize(
    ("text", "swapped", "result"),
    [
        ("1x1x128x64 tile height/32x64/4", LAST_TWO, place("width/64x32/4")),
        ("1x3x64x64 tile height/96x64/2", LAST_TWO, place("height/96x64/2")),
        ("1x2x64x96 tile height/32x96/4", LAST_TWO, place("l1")),  # 48 rows
        ("1x32x64x64 tile height/32x64/64", MIDDLE_TWO, place("height/32x64/64")),
        ("1x1x50x70 height/4x70/13", LAST_TWO, without_spec("height/4x70/13")),
        ("2x2x64x64 tile height/32x64/8", (0, 1), place("height/32x64/8")),
    ],
)
def test_places_of_swaps(text, swapped, result):
    assert place_of_swap(tensor_spec(text), swapped) == result


def test_as_many_shards_of_another_shape():
    halves, quarters = place("height/1024x32/2").shard_spec, place("height/256x64/4").shard_spec
    assert adjusted(halves, (1, 16, 64, 64), (1, 16, 64, 32), Layout.ROW_MAJOR).shape == [1024, 16]
    assert adjusted(quarters, (1, 16, 64, 64), (1, 1, 31, 64), Layout.ROW_MAJOR) is None  # a quarter of 31 rows


def test_shards_that_the_program_chooses():
    """70 rows as tiles are three shards; a chain goes on with their share of 70 images of 64 padded rows."""
    source, bare = tensor_spec("1x1x50x70 height/4x70/13"), without_spec("height/4x70/13")
    first = with_shards(source, (1, 1, 70, 50), bare, WORMHOLE)
    assert first == place("height/32x64/3")
    second = TensorSpec((1, 70, 1, 50), source.data_format, source.layout, first)
    assert with_shards(second, (1, 70, 64, 1), bare, WORMHOLE) == place("height/2048x1/3")
    assert with_shards(second, (1, 70, 64, 1), place("l1"), WORMHOLE) == place("l1")


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((1, 1, 128, 640), "width/128x32/20"),
        ((1, 1, 128, 640), "block/32x96/7x4"),
        # of 3200 rows (100 tiles) 64 cores have 50 each, which is two tiles: 50 cores hold them all
        ((1, 1, 3200, 64), "height/64x64/50"),
        ((2, 50, 32, 40), "height/64x64/50"),
        ((1, 1, 40, 3200), "width/64x64/50"),
        # 129 tiles: 65 rows or columns of 4128 for each of 64 cores are three tiles, on 43 of them
        ((1, 1, 4128, 64), "height/96x64/43"),
        ((1, 1, 40, 4128), "width/64x96/43"),
        ((1, 1, 300, 300), "block/64x64/5x5"),  # 38 rows and columns a core are two tiles
    ],
)
def test_even_shards_are_whole_tiles_on_as_many_cores_as_have_some(shape, wanted):
    scheme = place(wanted).memory_layout
    assert even_shards(shape, scheme, ShardOrientation.ROW_MAJOR, WORMHOLE.grid) == place(wanted).shard_spec


def test_even_shards_column_by_column():
    around, grid = ShardOrientation.COL_MAJOR, WORMHOLE.grid
    assert even_shards((1, 1, 128, 640), BLOCK, around, grid) == in_box(BLOCK, (32, 96), 4, 7, around).shard_spec
    high = ShardSpec(first_cores(50, 8, 8, row_wise=False), (64, 64), around)
    assert even_shards((1, 1, 3200, 64), HEIGHT, around, grid) == high
