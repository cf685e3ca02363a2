"""Cycles of data movement, and which pages a program reads and writes."""

import pytest
from hypothesis import given, settings, strategies as st

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec
from device.numbers.formats import BFLOAT16, UINT32
from device.spec.device_spec import load_spec
from device.time.network import bandwidth, shared_cycles
from device.time.stages import Stage
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.movement import Access, movement_cycles
from ops.programs.data_movement.reshape import Reshape
from ops.programs.data_movement.slice import slice_movement, slice_write_movement
from tests.build import tensor_spec
from tests.shards import BLOCK, HEIGHT

SPEC = load_spec("blackhole_p100").replace(
    compute_unpack_bytes_per_cycle=117.0,
    compute_unpack_tile_cycles=15.0,
    compute_pack_bytes_per_cycle=117.0,
    compute_costs_tilize_tile_cycles=2.0,
    compute_costs_untilize_block_cycles=383.0,
    compute_costs_untilize_narrow_tile_cycles=77.0,
    transfer_costs_page_issue_cycles=40.0,
    movement_costs_start_cycles=433.0,
    movement_costs_wait_share=0.315,
    movement_costs_dram_write_share=0.778,
    movement_costs_group_wait_share=0.838,
    movement_costs_stick_cycles=72.0,
    movement_costs_segment_cycles=83.6,
    movement_costs_store_cycles=3.01,
    movement_costs_reshard_cycles=1070.0,
)  # figures by hand, which no fit changes
OTHERS = {"PaddedSlice": slice_movement, "SliceWrite": slice_write_movement, "Reshape": Reshape(()).movement}
# Program, layout and cores of the source (0: interleaved) and of the result: how the source is read, the result written
PROGRAMS = {
    "InterleavedToSharded tile 0 tile 20": (Access.WAIT, None),
    "InterleavedToSharded rows 0 rows 20": (Access.STICKS, None),
    "ShardedToInterleaved tile 20 tile 0": (None, Access.STREAM),
    "ShardedToInterleaved rows 20 rows 0": (None, Access.STICKS),
    "Reshard tile 20 tile 10": (Access.STREAM, None),
    "Move rows 20 rows 20": (Access.LOCAL, None),
    "Move rows 0 rows 0": (Access.WAIT, Access.WAIT),
    "Copy tile 0 tile 0": (Access.WAIT, Access.WAIT),
    "Typecast tile 0 tile 0": (Access.WAIT, Access.WAIT),
    "Tilize rows 0 tile 0": (Access.STICKS, Access.WAIT),
    "Tilize rows 20 tile 20": (None, None),
    "TilizeWithValPadding rows 0 tile 0": (Access.WAIT, Access.WAIT),
    "Untilize tile 0 rows 0": (Access.WAIT, Access.ROWS),
    "Untilize tile 20 rows 20": (None, None),
    "UntilizeWithUnpadding tile 0 rows 0": (Access.WAIT, Access.WAIT),
    "PaddedSlice tile 0 rows 20": (Access.WAIT, Access.LOCAL_STICKS),
    "PaddedSlice rows 0 rows 20": (Access.STICKS, None),
    "SliceWrite tile 20 tile 0": (None, Access.WAIT),
    "SliceWrite rows 20 rows 0": (None, Access.BOX),
    "Reshape tile 0 tile 0": (Access.WAIT, Access.WAIT),
    "Reshape rows 0 rows 0": (Access.WAIT, Access.WAIT),
}
SAMPLES = st.sampled_from(list(PROGRAMS)), st.integers(1, 3000), st.sampled_from([32, 64, 512])


def tensor(rows, width, layout, cores=0):
    """A bfloat16 matrix, interleaved in DRAM, or height sharded over some cores."""
    if not cores:
        return tensor_spec(f"1x1x{rows}x{width} {layout}")
    shard = ShardSpec(first_cores(cores, 11, 10), (-(-rows // cores // 32) * 32, width))
    order = Layout.TILE if layout == "tile" else Layout.ROW_MAJOR
    padded = (1, 1, shard.shape[0] * cores, width)
    return TensorSpec((1, 1, rows, width), BFLOAT16, order, MemoryConfig(HEIGHT, BufferType.L1, shard), padded)


def program(text, rows, width):
    name, before, from_cores, after, to_cores = text.split()
    source, target = tensor(rows, width, before, int(from_cores)), tensor(rows, width, after, int(to_cores))
    write = OTHERS[name] if name in OTHERS else CopyTensor(Conversion(name)).movement
    return write(source, target, SPEC)


def cycles_of(text, rows, width, *, contention=True):
    return movement_cycles(program(text, rows, width), SPEC, contention=contention).cycles


@given(*SAMPLES)
@settings(max_examples=40)
def test_less_to_work_with_is_never_faster_and_nothing_is_faster_than_its_bytes(kind, rows, width):
    movement = program(kind, rows, width)
    cycles, alone = (movement_cycles(movement, SPEC, contention=contention) for contention in (True, False))
    assert alone.cycles <= cycles.cycles <= cycles_of(kind, rows, 2 * width)
    assert cycles.contention_cycles == pytest.approx(cycles.cycles - alone.cycles, abs=1e-6)
    for figure, value in {"dram_banks": 1, "noc_flit_bytes": 16}.items():
        assert movement_cycles(movement, SPEC.replace(**{figure: value})).cycles >= cycles.cycles
    assert {stage.stage for stage in cycles.slowest.stages} >= {Stage.START, cycles.bound_by}
    assert cycles.cycles > shared_cycles(SPEC, max(cycles.dram_read_bytes, cycles.dram_written_bytes))


@pytest.mark.parametrize("text", PROGRAMS)
def test_how_programs_access_pages(text):
    movement = program(text, 640, 64)
    assert tuple(pages and pages.access for pages in (movement.reads, movement.writes)) == PROGRAMS[text]


def test_cores_without_a_shard_take_no_part_and_copies_of_shards_are_shared_out():
    """640 rows are 20 shards of 32 rows on a grid of 40 cores; a copy of 1280 rows is shared by 110."""
    target = MemoryConfig(HEIGHT, BufferType.L1, ShardSpec(first_cores(40, 10, 4), (32, 64)))
    source = tensor(640, 64, "tile")
    sharded = TensorSpec(source.shape, BFLOAT16, Layout.TILE, target)
    assert CopyTensor(Conversion.INTERLEAVED_TO_SHARDED).movement(source, sharded, SPEC).cores.num_cores() == 20
    for before, after in ((0, 4), (4, 0)):
        moved = program(f"Copy rows {before} rows {after}", 1280, 64)
        assert moved.cores.num_cores() == 110
        assert (moved.reads.core_pages, moved.writes.core_pages, moved.blocks) == (12, 12, 12)


@pytest.mark.parametrize(
    ("width", "shard_width", "memory", "access"),
    [
        (64, 64, "dram", Access.STICKS),
        (56, 56, "dram", Access.BOUNCE),  # 112 bytes: no multiple of 64
        (60, 60, "dram", Access.STICKS),  # padded to 128 bytes
        (96, 24, "dram", Access.BOUNCE),
        (64, 16, "dram", Access.BOUNCE),
        (64, 16, "l1", Access.STICKS),
    ],
)
def test_parts_of_sticks_that_begin_between_two_units_of_dram_bounce(width, shard_width, memory, access):
    scheme = HEIGHT if width == shard_width else BLOCK
    place = MemoryConfig(scheme, BufferType.L1, ShardSpec(first_cores(8, 4, 2), (64, shard_width)))
    source = tensor_spec(f"1x1x128x{width} {memory}")
    ends = source, TensorSpec(source.shape, BFLOAT16, Layout.ROW_MAJOR, place)
    op = CopyTensor(Conversion.INTERLEAVED_TO_SHARDED)
    reads = op.movement(*ends, SPEC).reads
    assert (reads.access, reads.in_flight) == (access, 4 if access is Access.BOUNCE else 1)
    of_2025 = op.movement(*ends, SPEC, bounces_always=True).reads
    assert (of_2025.access, of_2025.in_flight) == (Access.BOUNCE, 1)


LATENCY = 119 + 9 * (17 + 12) + 78 * 1.35  # of a read from DRAM
WRITTEN = 119 + 9 * (17 + 12) + 14.1 * 1.35  # of a write
LINK = 0.952 * 64
BANKS = 0.742 * 7 * 64e9 / 1.35e9
PAGE, TILE_WRITTEN = LATENCY + 2048 / (0.5 * 64 / 1.35), WRITTEN + 2048 / LINK  # a tile that is waited for
AMONG_TEN = PAGE + 0.315 * 10 * 2048 / BANKS  # behind 0.315 of the tiles of ten cores
UNTILIZED = 433 + 2 * AMONG_TEN + 383 + 2 * 77.0 + 32 * 72.0 + WRITTEN
# Up to 25 * 1152 bytes are asked for before a wait: all four tiles of a core, one of them for a round trip
FOUR_TILES = PAGE + 3 * 72.0
STICK = 72.0 + 128 / (0.5 * 64 / 1.35)


@pytest.mark.parametrize(
    ("text", "rows", "width", "contention", "cycles"),
    [
        ("InterleavedToSharded tile 0 tile 20", 1280, 64, False, 433 + FOUR_TILES),
        # each waits behind 0.315 of those of all cores, to which the banks deliver 246 bytes a cycle
        ("InterleavedToSharded tile 0 tile 20", 1280, 64, True, 433 + FOUR_TILES + 4 * 0.315 * 20 * 2048 / BANKS),
        # sticks of 128 bytes within L1: 64 rows of a shard in one piece, over a link of 60.9 bytes a cycle
        ("Move rows 20 rows 20", 1280, 64, True, 433 + 64 * 128 / LINK),
        # 220 tiles on 110 cores: while one is cast and written, the next is read; the banks bind all cores together
        ("Typecast tile 0 tile 0", 7040, 32, False, 433 + 2 * PAGE + 2 * 2048 / 117.0 + TILE_WRITTEN),
        ("Typecast tile 0 tile 0", 7040, 32, True, 433 + 2 * 220 * 2048 / BANKS),
        ("Typecast tile 0 tile 0", 320, 32, True, 433 + AMONG_TEN + 2 * 2048 / 117.0 + TILE_WRITTEN),
        # 3200 rows of 128 bytes from a hundred cores: writing alone gets 0.778 of what the banks take
        ("SliceWrite tile 100 tile 0", 3200, 64, True, 433 + 3200 * 128 / (0.778 * BANKS)),
        ("ShardedToInterleaved tile 100 tile 0", 3200, 64, True, 433 + WRITTEN + 3200 * 128 / (0.778 * BANKS)),
        ("ShardedToInterleaved rows 100 rows 0", 3200, 64, True, 433 + WRITTEN + 3200 * 128 / (0.778 * BANKS)),
        # one row of two tiles on each of ten cores: its stages follow each other
        (
            "Tilize rows 0 tile 0", 320, 64, True,
            433 + 32 * (STICK + 0.838 * 10 * 128 / BANKS) + 2 * (2.0 + 2 * 2048 / 117.0) + 2 * TILE_WRITTEN,
        ),
        ("Untilize tile 0 rows 0", 320, 64, True, UNTILIZED),
        # 64 rows of 128 bytes for each of ten cores in runs over a link; half of the only shard on each network
        ("Reshard rows 20 rows 10", 640, 64, True, 433 + 1070 + 64 * 128 / LINK),
        ("Reshard rows 1 rows 10", 640, 64, True, 433 + 1070 + 640 * 128 / 2 / LINK),
    ],
)  # fmt: skip
def test_movements_by_hand(text, rows, width, contention, cycles):
    assert cycles_of(text, rows, width, contention=contention) == pytest.approx(cycles, rel=1e-12)


def test_what_binds_and_how_many_tiles_are_on_their_way():
    assert bandwidth(SPEC) == pytest.approx(BANKS)
    assert movement_cycles(program("SliceWrite tile 100 tile 0", 3200, 64), SPEC).bound_by is Stage.DRAM
    texts = {"InterleavedToSharded tile 0 tile 20": 128_000, "InterleavedToSharded tile 0 tile 10": 160}
    sharded = [program(text, rows, 64).reads for text, rows in texts.items()]
    assert [(reads.in_flight, reads.core_pages) for reads in sharded] == [(14, 400), (2, 2)]
    assert program("TilizeWithValPadding rows 0 tile 0", 1, 256).stores == 31 * 256 * 2 // 4  # word by word
    block = MemoryConfig(BLOCK, BufferType.L1, ShardSpec(first_cores(4, 2, 2), (320, 32)))
    target = TensorSpec((1, 1, 640, 64), BFLOAT16, Layout.TILE, block)
    parted = CopyTensor(Conversion.RESHARD).movement(tensor(640, 64, "tile", 20), target, SPEC)  # tile by tile
    assert movement_cycles(parted, SPEC).cycles == pytest.approx(433 + 1070 + 10 * 40)


def test_integers_are_made_on_the_vector_unit():
    source, target = (TensorSpec((1, 1, 320, 32), data_format, Layout.TILE) for data_format in (BFLOAT16, UINT32))
    op = CopyTensor(Conversion.TYPECAST)
    cycles, back = (movement_cycles(op.movement(*ends, SPEC), SPEC) for ends in ((source, target), (target, source)))
    assert cycles.cycles - back.cycles > 1000
    assert cycles.bound_by is Stage.MATH


@pytest.mark.parametrize(
    ("width", "cores", "width_tiles", "stick_bytes"),
    [(256, 80, 1, 64), (250, 10, 8, 500)],  # 10 rows of 8 tiles for 110 cores; none is cut where padding is dropped
)
def test_generated_untilize_code_has_cores_for_pieces_of_rows(width, cores, width_tiles, stick_bytes):
    result = CopyTensor(Conversion.UNTILIZE_CODEGEN).movement(tensor(320, width, "tile"), tensor(320, width, ""), SPEC)
    reads, writes = result.sides
    assert (result.cores.num_cores(), result.untilized_rows, result.width_tiles) == (cores, 1, width_tiles)
    assert (reads.core_pages, reads.all_pages) == (width_tiles, 80)
    assert (writes.core_pages, writes.page_bytes, writes.all_bytes) == (32, stick_bytes, 320 * width * 2)


@pytest.mark.parametrize(
    ("source", "target", "cycles"),
    [
        # ten rows of 32 become an image each: ten output tiles on ten cores, each with its map, an input tile, a row
        ("1x1x10x32 tile", "1x10x1x32 tile", 2 * AMONG_TEN + 2 * 83.6 + TILE_WRITTEN),
        # Forty sticks of 12 bytes become twenty of 24, on twenty cores: one for each of forty processors, which copies
        # the 12 bytes by itself, since such sticks do not begin where L1 is aligned
        (
            "1x1x40x6", "1x1x20x12",
            LATENCY + 12 / (0.5 * 64 / 1.35) + 0.315 * 20 * 12 / BANKS + 83.6 + 12 * 3.01 + WRITTEN + 24 / LINK,
        ),
    ],
)  # fmt: skip
def test_reshapes_by_hand(source, target, cycles):
    movement = Reshape(()).movement(tensor_spec(source), tensor_spec(target), SPEC)
    assert movement_cycles(movement, SPEC).cycles == pytest.approx(433 + cycles)


def test_slices_of_tiles():
    """A part of each row touches more tiles; channels that the image lacks are copied and filled stick by stick."""
    image, target = tensor_spec("1x64x64x64 tile"), tensor(720, 64, "rows", 20)
    whole, part = (slice_movement(image, target, SPEC, columns=columns) for columns in (None, (30, 66)))
    assert part.untilized_rows > whole.untilized_rows
    image = tensor_spec("1x8x64x64 tile")
    place = MemoryConfig(BLOCK, BufferType.L1, ShardSpec(first_cores(4, 2, 2), (256, 48)))
    wide = slice_movement(image, TensorSpec((1, 1, 512, 96), BFLOAT16, Layout.ROW_MAJOR, place), SPEC)
    assert (wide.writes.core_pages, wide.writes.page_bytes) == (2 * 256, 96)
    whole = slice_movement(image, tensor(512, 64, "rows", 4), SPEC)
    assert (whole.writes.core_pages, whole.writes.page_bytes, whole.reads.in_flight) == (4, 32 * 128, 2)
