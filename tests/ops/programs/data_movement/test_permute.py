"""Axes in another order."""

from math import prod

import pytest

from device.cores import CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
    TensorMemoryLayout as Scheme,
)
from device.numbers.formats import BFLOAT16
from device.time.stages import Stage
from ops.builder import PlanTensor
from ops.op_model import CyclesContext, Ends
from ops.op_models import load_spec
from ops.planners.shape.permute import plan_transpose
from ops.programs.data_movement.movement import Access, copy_movement
from ops.programs.data_movement.movement_cycles import movement_cycles
from ops.programs.data_movement.permute import Permute
from ops.programs.data_movement.permute_buffers import (
    LAST_TWO,
    MIDDLE_TWO,
    adjusted,
    even_shards,
    is_native,
    permute_buffers,
    place_of_swap,
    swapped_shape,
    transpose_buffers,
    with_shards,
)
from ops.programs.kernel_costs import core_round_trip_cycles
from tests.ops.programs.data_movement.round_figures import ROUND
from tests.shards import high

COMPOSED = ROUND.replace(transfer_costs_page_issue_cycles=50.0, movement_costs_stick_cycles=60.0)
CORES = first_cores(16, 8, 8)
WIRE = COMPOSED.noc.link_bytes_per_cycle
THERE_AND_BACK = core_round_trip_cycles(COMPOSED)


def interleaved(shape, memory=BufferType.L1, layout=Layout.ROW_MAJOR):
    return TensorSpec(shape, BFLOAT16, layout, MemoryConfig(Scheme.INTERLEAVED, memory))


def sharded(shape):
    memory = MemoryConfig(Scheme.HEIGHT_SHARDED, BufferType.L1, ShardSpec(CORES, (prod(shape[:-1]) // 16, shape[-1])))
    return TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR, memory)


def permute(read, axes, written=None, spec=COMPOSED):
    op = Permute(shape=read.shape, axes=axes)
    if written is None:
        written = TensorSpec([read.shape[axis] for axis in axes], BFLOAT16, read.layout, read.memory_config)
    ends = Ends(read=read, written=written)
    return op, ends, op.cycles(ends, CyclesContext(spec=spec, contention=True))


def test_rows_are_turned_a_tile_at_a_time():
    _, _, made = permute(interleaved((1, 16, 128, 64)), (0, 2, 3, 1))  # 256 parts of tiles on 64 cores, 16 x 32 each
    read = 15 * 50 + THERE_AND_BACK + 64 / WIRE
    computed = 50 + 3 + 32 + 32 + 70
    written = 31 * 60 + THERE_AND_BACK + 32 / WIRE
    assert made.cycles == pytest.approx(500 + read + computed + 4 * written)
    assert made.bound_by is Stage.WRITER


def test_sticks_of_shards_are_fetched_by_two_processors():
    _, _, made = permute(sharded((1, 16, 8, 64)), (0, 2, 1, 3), sharded((1, 8, 16, 64)))
    assert made.cycles == pytest.approx(500 + 3 * 25 + THERE_AND_BACK + 128 / WIRE)


def test_the_last_two_axes_of_shards_are_turned_in_place():
    _, _, made = permute(sharded((1, 32, 16, 64)), (0, 1, 3, 2), sharded((1, 32, 64, 16)))
    read = 15 * 20 + 200 + 128 / WIRE
    computed = 50 + 2 * (3 + 32 + 32) + 2 * 70  # two tiles
    assert made.cycles == pytest.approx(500 + read + computed + max(read, computed))  # two images a core
    assert made.bound_by is Stage.READER


def test_high_images_are_copied_once_more():
    tall, wide = sharded((1, 16, 288, 32)), sharded((1, 16, 32, 288))
    _, _, made = permute(tall, (0, 1, 3, 2), wide)
    assert {one.stage for one in made.slowest.stages} >= {Stage.WRITER, Stage.READER}


@pytest.mark.parametrize(
    ("read", "axes"),
    [
        (interleaved((1, 2, 32, 64)), (0, 2, 1, 3)),  # rows stay whole
        (interleaved((1, 2, 32, 64), layout=Layout.TILE), (0, 1, 3, 2)),
        (sharded((16, 1, 8, 64)), (1, 0, 2, 3)),
    ],
)
def test_everything_else_is_a_copy(read, axes):
    _, ends, made = permute(read, axes)
    assert made == movement_cycles(copy_movement(ends.read, ends.written, COMPOSED), COMPOSED)


@pytest.mark.parametrize(
    ("shape", "axes", "to", "measured_us"),
    [
        ((1, 7, 25281, 256), (0, 2, 3, 1), BufferType.DRAM, 16_984.7),
        ((1, 1, 25281, 9), (0, 3, 1, 2), BufferType.L1, 61.9),
    ],
)
def test_what_was_measured(shape, axes, to, measured_us):
    """tt-perf-report, ops_perf_results_2025_09_18: a Blackhole of 20 cores."""
    spec = load_spec("blackhole_p150").replace(grid_cols=5, grid_rows=4)
    made = interleaved([shape[axis] for axis in axes], to)
    _, _, timed = permute(interleaved(shape, BufferType.DRAM), axes, made, spec)
    assert timed.cycles / spec.clock_hz * 1e6 == pytest.approx(measured_us, rel=0.12)


@pytest.mark.parametrize("axes", [(0, 2, 1, 3), (0, 1, 3, 2)])
def test_it_says_what_it_is_composed_of(axes):
    op, ends, _ = permute(sharded((1, 16, 8, 64)), axes, sharded((1, 16, 64, 8)))
    description = op.describe(ends, COMPOSED)
    assert (description.measured_as, bool(description.composed_of)) == ("", True)


WORMHOLE, BLACKHOLE = load_spec("wormhole_n150"), load_spec("blackhole_p150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


def sizes(shape, axes, layout, place=DRAM_MEMORY_CONFIG, spec=WORMHOLE):
    made = TensorSpec([shape[axis] for axis in axes], BFLOAT16, layout, place)
    buffers = permute_buffers(TensorSpec(shape, BFLOAT16, layout, place), made, axes, spec)
    return [(one.size_bytes, one.cores.num_cores()) for one in buffers]


def test_rows_that_stay_whole_pass_two_at_a_time():
    assert sizes((2, 3, 8, 5), (1, 0, 2, 3), ROWS) == [(2 * 32, 48)]
    assert sizes((2, 3, 8, 5), (1, 0, 2, 3), ROWS, L1_MEMORY_CONFIG) == [(2 * 16, 48)]


def test_rows_are_turned_in_blocks_of_32():
    """Five images of 33 by 47: two blocks down, two across."""
    assert sizes((1, 5, 33, 47), (0, 1, 3, 2), ROWS) == [(4096, 20)] * 3


@pytest.mark.parametrize(
    ("shape", "axes", "wanted"),
    [
        ((1, 2, 64, 96), (1, 0, 2, 3), [(4096, 12)]),  # whole tiles
        ((1, 2, 64, 96), (1, 0, 3, 2), [(4096, 12)] * 2),  # that are turned
        ((1, 5, 32, 32), (0, 2, 1, 3), [(4096, 32), (32, 32)]),  # rows: 32 images of one tile, 27 rows of it filled
        ((32, 5, 32, 32), (2, 1, 0, 3), [(4096, 64)]),  # rows that fill their tiles
        ((1, 3, 64, 32), (0, 3, 2, 1), [(4096, 64)] * 3),  # 64 rows, a block of 3 by 32 each
    ],
)
def test_tiles(shape, axes, wanted):
    assert sizes(shape, axes, TILES) == wanted


def test_short_reads_need_room_to_be_aligned():
    """Half a tile's row is 32 bytes; a read from Blackhole's DRAM is 64."""
    assert sizes((1, 3, 64, 32), (0, 3, 2, 1), TILES, spec=BLACKHOLE)[0] == (2 * (2048 + 32), 64)
    assert sizes((1, 3, 64, 32), (0, 3, 2, 1), TILES, L1_MEMORY_CONFIG, BLACKHOLE)[0] == (2 * 2048, 64)


SPEC = load_spec("wormhole_n150")


def made(shape, swapped, layout, place=DRAM_MEMORY_CONFIG, to=DRAM_MEMORY_CONFIG):
    source = PlanTensor("input", TensorSpec(shape, BFLOAT16, layout, place))
    turned = list(shape)
    turned[swapped[0]], turned[swapped[1]] = turned[swapped[1]], turned[swapped[0]]
    result = PlanTensor("output", TensorSpec(turned, BFLOAT16, layout, to))
    buffers = transpose_buffers(source, result, swapped, SPEC)
    return [(one.size_bytes, one.cores.num_cores(), one.view_of) for one in buffers]


@pytest.mark.parametrize(
    ("shape", "swapped", "sizes"),
    [
        ((1, 1, 50, 70), (2, 3), [(4096, 6, None), (4096, 6, None)]),
        ((1, 16, 64, 64), (1, 2), [(4096, 64, None), (512, 64, None)]),  # 16 images leave half of each tile empty
        ((1, 64, 64, 64), (1, 2), [(4096, 64, None)]),
        ((16, 1, 64, 32), (0, 1), [(4096, 32, None)]),
    ],
)
def test_tiles_pass_two_at_a_time(shape, swapped, sizes):
    assert made(shape, swapped, TILES) == sizes


def test_tiles_are_turned_in_their_shards_by_all_cores():
    sizes = made((1, 16, 64, 64), (2, 3), TILES, high((128, 64), 8), high((128, 64), 8))
    assert sizes == [(8 * 2048, 64, "input"), (8 * 2048, 64, "output")]


def test_images_of_rows_in_shards_are_circular_buffers():
    """Two images of 64 rows to a core: sticks as they lie, two tiles across twice, and four tiles of an image."""
    sizes = made((1, 16, 64, 64), (2, 3), ROWS, high((128, 64), 8), high((128, 64), 8))
    assert sizes == [(128 * 128, 8, "input"), (128 * 128, 8, "output"), (2 * 2 * 2048, 8, None), (4 * 2048, 8, None)]
    sizes = made((1, 8, 320, 32), (2, 3), ROWS, high((320, 32), 8), high((32, 320), 8))
    assert [size for size, *_ in sizes[2:]] == [2 * 2048, 10 * 2048, 10 * 2048, 20 * 2048]  # ten tiles high


def test_images_of_rows_elsewhere_pass_as_tiles():
    """Three tiles across and two down: a core of its own for the only image."""
    sizes = made((1, 1, 50, 70), (2, 3), ROWS, high((4, 70), 13), high((32, 64), 3))
    assert sizes == [(2 * 3 * 2048, 1, None), (2 * 2 * 2048, 1, None), (6 * 2048, 1, None)]


def test_rows_whose_images_are_swapped():
    """Six rows of 512 bytes on each of the cores; where shards hold them whole, they stay there."""
    assert made((1, 3, 128, 256), (1, 2), ROWS, high((7, 256), 63), high((7, 256), 63)) == [(6 * 512, 64, None)]
    sizes = made((1, 4, 128, 256), (1, 2), ROWS, high((8, 256), 64), high((8, 256), 64))
    assert sizes == [(8 * 512, 64, "input"), (8 * 512, 64, "output")]


def test_rows_keep_their_padding_and_tiles_get_other():
    assert swapped_shape(TensorSpec((1, 3, 8, 32), BFLOAT16, TILES), (1, 2)) == (1, 8, 32, 32)
    held = TensorSpec((1, 1, 70, 50), BFLOAT16, ROWS, high((32, 64), 3))
    assert swapped_shape(held, (2, 3)) == (1, 1, 64, 70)


def ends(shape, axes, layout):
    turned = tuple(shape[axis] for axis in axes)
    return tuple(TensorSpec(one, BFLOAT16, layout, L1_MEMORY_CONFIG) for one in (shape, turned))


def moved(shape, axes, layout):
    return Permute(shape=shape, axes=axes).movement(*ends(shape, axes, layout), SPEC)


def pieces(pages):
    return pages.access, pages.core_pages, pages.page_bytes


@pytest.mark.parametrize(("axes", "layout"), [((1, 0, 2, 3), Layout.TILE), ((0, 2, 1, 3), Layout.ROW_MAJOR)])
def test_whole_pages_go_as_copies(axes, layout):
    shape = (2, 4, 64, 96)
    assert moved(shape, axes, layout) == copy_movement(*ends(shape, axes, layout), SPEC)


def test_rows_of_tiles_are_written_face_by_face():
    """128 rows of four faces, 32 bytes each, for 64 cores; each waits for its tiles."""
    movement = moved((1, 2, 64, 64), (0, 2, 1, 3), Layout.TILE)
    assert movement.reads.access is Access.WAIT
    assert movement.cores.num_cores() == 64
    assert pieces(movement.writes) == (Access.STICKS, 8, 32)


def test_blocks_of_rows_are_read_and_written_in_pieces():
    """Two blocks of 32 by 40 elements are cut into four of up to 32 by 32, a core each."""
    movement = moved((1, 2, 32, 40), (0, 1, 3, 2), Layout.ROW_MAJOR)
    assert (movement.cores.num_cores(), movement.blocks) == (4, 1)
    assert pieces(movement.reads) == (Access.STICKS, 32, 64)  # 2 x 32 rows of two pieces
    assert pieces(movement.writes) == (Access.STICKS, 20, 64)  # 2 x 40 rows of one


def test_blocks_of_tiles_move_face_by_face():
    """One of 32 by 64 elements of three axes, turned so that the first is last: 16 blocks."""
    movement = moved((32, 8, 64), (1, 2, 0), Layout.TILE)
    assert (movement.cores.num_cores(), movement.blocks) == (16, 1)
    assert pieces(movement.reads) == (Access.STICKS, 64, 32)  # 32 x 8 rows of 2 x 2 faces
    assert pieces(movement.writes) == (Access.STICKS, 64, 32)  # 8 x 64 rows of 2


HEIGHT, WIDTH = TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.WIDTH_SHARDED
BLOCK = TensorMemoryLayout.BLOCK_SHARDED


def shards(cores, rows, columns):
    return ShardSpec(CoreRangeSet(first_cores(cores, 8, 8).ranges), (rows, columns))


def placed(layout, held):
    return MemoryConfig(layout, BufferType.L1, held)


SIXTY_FOUR = shards(64, 32, 64)


def tensor(shape, layout, place):
    return TensorSpec(shape, BFLOAT16, layout, place)


def test_native_are_full_shards_in_l1_of_whole_tiles_worth():
    rows = tensor((1, 3, 64, 64), Layout.ROW_MAJOR, placed(HEIGHT, shards(12, 16, 64)))
    assert is_native(rows)
    assert is_native(rows, placed(HEIGHT, shards(12, 16, 64)))
    assert not is_native(rows, placed(HEIGHT, shards(11, 32, 64)))  # other cores
    assert not is_native(tensor((1, 1, 50, 70), Layout.ROW_MAJOR, placed(HEIGHT, shards(13, 4, 70))))  # 280 elements
    assert not is_native(tensor((1, 1, 96, 64), Layout.TILE, placed(HEIGHT, shards(2, 64, 64))))  # half a shard


@pytest.mark.parametrize(
    ("shape", "layout", "place", "swapped", "result"),
    [
        ((1, 1, 128, 64), Layout.TILE, placed(HEIGHT, shards(4, 32, 64)), LAST_TWO, placed(WIDTH, shards(4, 64, 32))),
        ((1, 3, 64, 64), Layout.TILE, placed(HEIGHT, shards(2, 96, 64)), LAST_TWO, placed(HEIGHT, shards(2, 96, 64))),
        ((1, 2, 64, 96), Layout.TILE, placed(HEIGHT, shards(4, 32, 96)), LAST_TWO, L1_MEMORY_CONFIG),  # 48 rows
        ((1, 32, 64, 64), Layout.TILE, placed(HEIGHT, SIXTY_FOUR), MIDDLE_TWO, placed(HEIGHT, SIXTY_FOUR)),
        ((1, 1, 50, 70), Layout.ROW_MAJOR, placed(HEIGHT, shards(13, 4, 70)), LAST_TWO, placed(HEIGHT, None)),
        ((2, 2, 64, 64), Layout.TILE, placed(HEIGHT, shards(8, 32, 64)), (0, 1), placed(HEIGHT, shards(8, 32, 64))),
    ],
)  # fmt: skip
def test_places_of_swaps(shape, layout, place, swapped, result):
    assert place_of_swap(tensor(shape, layout, place), swapped) == result


def test_as_many_shards_of_another_shape():
    held = shards(2, 1024, 32)
    assert adjusted(held, (1, 16, 64, 64), (1, 16, 64, 32)).shape == [1024, 16]
    assert adjusted(shards(4, 256, 64), (1, 16, 64, 64), (1, 1, 31, 64)) is None  # a quarter of 31 rows


def test_shards_that_the_program_chooses():
    """70 rows as tiles are three shards; a chain goes on with their share of 70 images of 64 padded rows."""
    given = tensor((1, 1, 50, 70), Layout.ROW_MAJOR, placed(HEIGHT, shards(13, 4, 70)))
    first = with_shards(given, (1, 1, 70, 50), placed(HEIGHT, None), SPEC)
    assert first.shard_spec == shards(3, 32, 64)
    second = tensor((1, 70, 1, 50), Layout.ROW_MAJOR, first)
    assert with_shards(second, (1, 70, 64, 1), placed(HEIGHT, None), SPEC).shard_spec == shards(3, 2048, 1)
    assert with_shards(second, (1, 70, 64, 1), L1_MEMORY_CONFIG, SPEC) == L1_MEMORY_CONFIG


def test_even_shards_on_the_grid():
    along = ShardOrientation.ROW_MAJOR
    assert even_shards((1, 1, 128, 640), WIDTH, along, SPEC.grid) == shards(20, 128, 32)
    held = even_shards((1, 1, 128, 640), BLOCK, along, SPEC.grid)
    assert (held.shape, held.grid.bounding_box().rows, held.grid.bounding_box().cols) == ([32, 96], 4, 7)
    turned = even_shards((1, 1, 128, 640), BLOCK, ShardOrientation.COL_MAJOR, SPEC.grid)
    assert (turned.shape, turned.grid.bounding_box().rows, turned.grid.bounding_box().cols) == ([32, 96], 7, 4)


def test_even_shards_are_whole_tiles_on_fewer_cores_where_tiles_do_not_share_out():
    """Of 3200 rows (100 tiles) 64 cores have 50 each, which is two tiles: 50 cores hold them all."""
    along, around = ShardOrientation.ROW_MAJOR, ShardOrientation.COL_MAJOR
    assert even_shards((1, 1, 3200, 64), HEIGHT, along, SPEC.grid) == shards(50, 64, 64)
    assert even_shards((2, 50, 32, 40), HEIGHT, along, SPEC.grid) == shards(50, 64, 64)
    assert even_shards((1, 1, 40, 3200), WIDTH, along, SPEC.grid) == shards(50, 64, 64)
    # 129 tiles: 65 rows or columns of 4128 for each of 64 cores are three tiles, on 43 of them.
    assert even_shards((1, 1, 4128, 64), HEIGHT, along, SPEC.grid) == shards(43, 96, 64)
    assert even_shards((1, 1, 40, 4128), WIDTH, along, SPEC.grid) == shards(43, 64, 96)
    held = even_shards((1, 1, 3200, 64), HEIGHT, around, SPEC.grid)
    assert held == ShardSpec(first_cores(50, 8, 8, row_wise=False), (64, 64), around)
    blocks = even_shards((1, 1, 300, 300), BLOCK, along, SPEC.grid)  # 38 rows and columns a core are two tiles
    assert (blocks.shape, blocks.grid.bounding_box().rows, blocks.grid.bounding_box().cols) == ([64, 64], 5, 5)


@pytest.mark.parametrize(
    ("shape", "layout", "rows", "swapped", "dataflow"),
    [
        ((1, 16, 64, 64), TILES, 128, (2, 3), True),
        ((1, 16, 64, 64), ROWS, 128, (2, 3), False),  # views of rows
        ((1, 4, 128, 256), ROWS, 64, (1, 2), False),
        ((1, 1, 50, 70), ROWS, 7, (2, 3), True),
    ],
)
def test_buffers_that_are_views_of_rows_are_circular_buffers(shape, layout, rows, swapped, dataflow):
    source = tensor(shape, layout, high((rows, shape[-1]), 8))
    (step,) = plan_transpose(source, *swapped, SPEC).steps
    assert step.dataflow is dataflow
