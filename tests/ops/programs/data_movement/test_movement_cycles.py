"""Cycles of data movement, and which pages a program reads and writes."""

import pytest
from hypothesis import given, strategies as st

from device.cores import first_cores
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
)
from device.numbers.formats import BFLOAT16, UINT32
from device.spec.device_spec import load_spec
from device.time.network import bandwidth, shared_cycles
from device.time.stages import Stage
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.movement import Access, movement_cycles
from ops.programs.data_movement.reshape import Reshape
from ops.programs.data_movement.slice import slice_movement, slice_write_movement

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
TILE, ROWS = Layout.TILE, Layout.ROW_MAJOR


def tensor(rows, width, layout, *, cores=0, memory=DRAM_MEMORY_CONFIG):
    """A bfloat16 matrix, interleaved, or height sharded over some cores."""
    if cores:
        shard = ShardSpec(first_cores(cores, 11, 10), (-(-rows // cores // 32) * 32, width), ShardOrientation.ROW_MAJOR)
        memory = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, shard)
        padded = (1, 1, shard.shape[0] * cores, width)
        return TensorSpec((1, 1, rows, width), BFLOAT16, layout, memory, padded)
    return TensorSpec((1, 1, rows, width), BFLOAT16, layout, memory)


PROGRAMS = (
    ("InterleavedToSharded", TILE, 0, TILE, 20),
    ("InterleavedToSharded", ROWS, 0, ROWS, 20),
    ("ShardedToInterleaved", TILE, 20, TILE, 0),
    ("ShardedToInterleaved", ROWS, 20, ROWS, 0),
    ("Reshard", TILE, 20, TILE, 10),
    ("Move", ROWS, 20, ROWS, 20),
    ("Move", ROWS, 0, ROWS, 0),
    ("Copy", TILE, 0, TILE, 0),
    ("Typecast", TILE, 0, TILE, 0),
    ("Tilize", ROWS, 0, TILE, 0),
    ("Tilize", ROWS, 20, TILE, 20),
    ("TilizeWithValPadding", ROWS, 0, TILE, 0),
    ("Untilize", TILE, 0, ROWS, 0),
    ("Untilize", TILE, 20, ROWS, 20),
    ("UntilizeWithUnpadding", TILE, 0, ROWS, 0),
    ("PaddedSlice", TILE, 0, ROWS, 20),
    ("PaddedSlice", ROWS, 0, ROWS, 20),
    ("SliceWrite", TILE, 20, TILE, 0),
    ("SliceWrite", ROWS, 20, ROWS, 0),
    ("Reshape", TILE, 0, TILE, 0),
    ("Reshape", ROWS, 0, ROWS, 0),
)


OTHERS = {
    "Typecast": CopyTensor(Conversion.TYPECAST, (BFLOAT16, BFLOAT16)).movement,
    "PaddedSlice": slice_movement,
    "SliceWrite": slice_write_movement,
    "Reshape": Reshape(()).movement,
}


def conversion(name, source, target, **options):
    return CopyTensor(Conversion(name)).movement(source, target, SPEC, **options)


def program(kind, rows, width):
    name, before, from_cores, after, to_cores = kind
    source, target = tensor(rows, width, before, cores=from_cores), tensor(rows, width, after, cores=to_cores)
    return OTHERS[name](source, target, SPEC) if name in OTHERS else conversion(name, source, target)


@given(st.sampled_from(PROGRAMS), st.integers(1, 3000), st.sampled_from([32, 64, 512]))
def test_less_to_work_with_is_never_faster_and_more_to_move_never_either(kind, rows, width):
    movement = program(kind, rows, width)
    cycles = movement_cycles(movement, SPEC)
    alone = movement_cycles(movement, SPEC, contention=False)
    assert alone.cycles <= cycles.cycles
    assert cycles.contention_cycles == pytest.approx(cycles.cycles - alone.cycles, abs=1e-6)
    assert movement_cycles(movement, SPEC.replace(dram_banks=1)).cycles >= cycles.cycles
    assert movement_cycles(movement, SPEC.replace(noc_flit_bytes=16)).cycles >= cycles.cycles
    wider = movement_cycles(program(kind, rows, 2 * width), SPEC)
    assert wider.cycles >= cycles.cycles
    assert {stage.stage for stage in cycles.slowest.stages} >= {Stage.START, cycles.bound_by}


@pytest.mark.parametrize(
    ("name", "before", "from_cores", "after", "to_cores", "reads", "writes"),
    [
        ("InterleavedToSharded", TILE, 0, TILE, 20, Access.WAIT, None),
        ("InterleavedToSharded", ROWS, 0, ROWS, 20, Access.STICKS, None),
        ("ShardedToInterleaved", ROWS, 20, ROWS, 0, None, Access.STICKS),
        ("Move", ROWS, 20, ROWS, 20, Access.LOCAL, None),
        ("Tilize", ROWS, 20, TILE, 20, None, None),
        ("Tilize", ROWS, 0, TILE, 0, Access.STICKS, Access.WAIT),
        ("Untilize", TILE, 0, ROWS, 0, Access.WAIT, Access.ROWS),
        ("UntilizeWithUnpadding", TILE, 0, ROWS, 0, Access.WAIT, Access.WAIT),
        ("Typecast", TILE, 0, TILE, 0, Access.WAIT, Access.WAIT),
        ("PaddedSlice", TILE, 0, ROWS, 20, Access.WAIT, Access.LOCAL_STICKS),
        ("SliceWrite", TILE, 20, TILE, 0, None, Access.WAIT),
        ("SliceWrite", ROWS, 20, ROWS, 0, None, Access.BOX),
    ],
)
def test_how_programs_get_at_pages(name, before, from_cores, after, to_cores, reads, writes):
    movement = program((name, before, from_cores, after, to_cores), 640, 64)
    assert (movement.reads and movement.reads.access) == reads
    assert (movement.writes and movement.writes.access) == writes


def test_cores_without_a_shard_take_no_part():
    """640 rows are 20 shards of 32 rows, on a grid of 40 cores."""
    shards = ShardSpec(first_cores(40, 10, 4), (32, 64))
    place = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, shards)
    source, target = tensor(640, 64, TILE), tensor(640, 64, TILE, memory=place)
    assert conversion("InterleavedToSharded", source, target).cores.num_cores() == 20


def test_a_copy_of_shards_is_shared_out_to_all_cores():
    """1280 rows on 110 cores, whichever four of them hold the shards."""
    for before, after in ((0, 4), (4, 0)):
        moved = program(("Copy", ROWS, before, ROWS, after), 1280, 64)
        assert moved.cores.num_cores() == 110
        assert (moved.reads.core_pages, moved.writes.core_pages, moved.blocks) == (12, 12, 12)


@pytest.mark.parametrize(
    ("width", "shard_width", "memory", "access"),
    [
        (64, 64, DRAM_MEMORY_CONFIG, Access.STICKS),
        (56, 56, DRAM_MEMORY_CONFIG, Access.BOUNCE),  # 112 bytes: no multiple of 64
        (60, 60, DRAM_MEMORY_CONFIG, Access.STICKS),  # padded to 128 bytes
        (96, 24, DRAM_MEMORY_CONFIG, Access.BOUNCE),
        (64, 16, DRAM_MEMORY_CONFIG, Access.BOUNCE),
        (64, 16, L1_MEMORY_CONFIG, Access.STICKS),
    ],
)
def test_parts_of_sticks_that_begin_between_two_units_of_dram_bounce(width, shard_width, memory, access):
    shard = ShardSpec(first_cores(8, 4, 2), (64, shard_width), ShardOrientation.ROW_MAJOR)
    scheme = TensorMemoryLayout.HEIGHT_SHARDED if width == shard_width else TensorMemoryLayout.BLOCK_SHARDED
    target = tensor(128, width, ROWS, memory=MemoryConfig(scheme, BufferType.L1, shard))
    movement = conversion("InterleavedToSharded", tensor(128, width, ROWS, memory=memory), target)
    assert movement.reads.access is access
    assert movement.reads.in_flight == (4 if access is Access.BOUNCE else 1)
    of_2025 = conversion("InterleavedToSharded", tensor(128, width, ROWS, memory=memory), target, bounces_always=True)
    assert (of_2025.reads.access, of_2025.reads.in_flight) == (Access.BOUNCE, 1)


def test_a_slice_of_a_part_of_each_row_touches_more_tiles():
    source, target = tensor(4096, 64, TILE), tensor(720, 64, ROWS, cores=20)
    image = TensorSpec((1, 64, 64, 64), BFLOAT16, TILE, DRAM_MEMORY_CONFIG)
    assert source.matrix == image.matrix
    whole = slice_movement(image, target, SPEC)
    part = slice_movement(image, target, SPEC, columns=(30, 66))
    assert part.untilized_rows > whole.untilized_rows


LATENCY = 119 + 9 * (17 + 12) + 78 * 1.35  # of a read from DRAM
WRITTEN = 119 + 9 * (17 + 12) + 14.1 * 1.35  # of a write
LINK = 0.952 * 64
BANKS = 0.742 * 7 * 64e9 / 1.35e9


def test_movements_by_hand():
    """80 tiles of 2048 bytes from DRAM to 20 cores, four each; figures of the p100."""
    movement = program(("InterleavedToSharded", TILE, 0, TILE, 20), 1280, 64)
    # Up to 25 * 1152 bytes are asked for before a wait: all four tiles, one of them for a round trip and its bytes.
    group = LATENCY + 2048 / (0.5 * 64 / 1.35) + 3 * 72.0
    assert movement.reads.in_flight == 4
    assert movement_cycles(movement, SPEC, contention=False).cycles == pytest.approx(433 + group)
    # Each waits behind 0.315 of those of all cores, to which the banks deliver 246 bytes a cycle.
    assert movement_cycles(movement, SPEC).cycles == pytest.approx(433 + group + 4 * 0.315 * 20 * 2048 / BANKS)
    many = program(("InterleavedToSharded", TILE, 0, TILE, 20), 128_000, 64)
    assert many.reads.in_flight == 14
    assert many.reads.core_pages == 400
    assert program(("InterleavedToSharded", TILE, 0, TILE, 10), 320, 32).reads.in_flight == 1  # a tile each
    # Sticks of 128 bytes within L1: 64 rows of a shard in one piece, over a link of 60.9 bytes a cycle.
    move = program(("Move", ROWS, 20, ROWS, 20), 1280, 64)
    assert movement_cycles(move, SPEC).cycles == pytest.approx(433 + 64 * 128 / LINK)


def test_a_copy_waits_for_each_tile_by_hand():
    """220 tiles on 110 cores, two each; ten on ten cores, one each."""
    movement = program(("Typecast", TILE, 0, TILE, 0), 7040, 32)
    read, write = LATENCY + 2048 / (0.5 * 64 / 1.35), WRITTEN + 2048 / LINK
    cast = 2 * 2048 / 117.0
    # While one tile is cast and written, the next is read: these add their last one.
    assert movement_cycles(movement, SPEC, contention=False).cycles == pytest.approx(433 + 2 * read + cast + write)
    # With all cores at work the banks bind; with ten a tile waits behind 0.315 of those of all.
    assert movement_cycles(movement, SPEC).cycles == pytest.approx(433 + 2 * 220 * 2048 / BANKS)
    few = program(("Typecast", TILE, 0, TILE, 0), 320, 32)
    assert movement_cycles(few, SPEC).cycles == pytest.approx(433 + read + 0.315 * 10 * 2048 / BANKS + cast + write)


@pytest.mark.parametrize(
    ("name", "layout", "latency"),
    [("SliceWrite", TILE, 0), ("ShardedToInterleaved", TILE, WRITTEN), ("ShardedToInterleaved", ROWS, WRITTEN)],
)
def test_banks_bind_what_is_only_written(name, layout, latency):
    """3200 rows of 128 bytes from a hundred cores: writing alone gets 0.778 of what the banks take."""
    cycles = movement_cycles(program((name, layout, 100, layout, 0), 3200, 64), SPEC)
    assert cycles.cycles == pytest.approx(433 + latency + 3200 * 128 / (0.778 * BANKS))
    assert cycles.bound_by is Stage.DRAM


def test_integers_are_made_on_the_vector_unit():
    source, target = (TensorSpec((1, 1, 320, 32), one, TILE) for one in (BFLOAT16, UINT32))
    cycles = movement_cycles(
        CopyTensor(Conversion.TYPECAST, (source.data_format, target.data_format)).movement(source, target, SPEC), SPEC
    )
    back = movement_cycles(
        CopyTensor(Conversion.TYPECAST, (target.data_format, source.data_format)).movement(target, source, SPEC), SPEC
    )
    assert cycles.cycles - back.cycles > 1000
    assert cycles.bound_by is Stage.MATH


def test_tilizing_and_untilizing_by_hand():
    """One row of two tiles on each of ten cores: its stages follow each other."""
    sticks = 32 * (72.0 + 128 / (0.5 * 64 / 1.35) + 0.838 * 10 * 128 / BANKS)
    tiles = 2 * (2.0 + 2048 / 117.0 + 2048 / 117.0)
    written = 2 * (WRITTEN + 2048 / LINK)
    tilize = program(("Tilize", ROWS, 0, TILE, 0), 320, 64)
    assert movement_cycles(tilize, SPEC).cycles == pytest.approx(433 + sticks + tiles + written)
    read = 2 * (LATENCY + 2048 / (0.5 * 64 / 1.35) + 0.315 * 10 * 2048 / BANKS)
    untilize = program(("Untilize", TILE, 0, ROWS, 0), 320, 64)
    assert movement_cycles(untilize, SPEC).cycles == pytest.approx(
        433 + read + 383 + 2 * 77.0 + 32 * 72.0 + WRITTEN, rel=1e-12
    )


@pytest.mark.parametrize(
    ("width", "cores", "width_tiles", "stick_bytes"),
    [(256, 80, 1, 64), (250, 10, 8, 500)],  # 10 rows of 8 tiles for 110 cores; none is cut where padding is dropped
)
def test_generated_untilize_code_has_cores_for_pieces_of_rows(width, cores, width_tiles, stick_bytes):
    result = CopyTensor(Conversion.UNTILIZE_CODEGEN).movement(tensor(320, width, TILE), tensor(320, width, ROWS), SPEC)
    assert result.reads is not None
    assert result.writes is not None
    assert (result.cores.num_cores(), result.untilized_rows, result.width_tiles) == (cores, 1, width_tiles)
    assert (result.reads.core_pages, result.reads.all_pages) == (width_tiles, 80)
    assert (result.writes.core_pages, result.writes.page_bytes, result.writes.all_bytes) == (
        32,
        stick_bytes,
        320 * width * 2,
    )


def test_reshards_by_hand():
    """64 rows of 128 bytes for each of ten cores: in runs, over a link; columns that are parted, tile by tile."""
    rows = program(("Reshard", ROWS, 20, ROWS, 10), 640, 64)
    assert movement_cycles(rows, SPEC).cycles == pytest.approx(433 + 1070 + 64 * 128 / LINK)
    # One core's shard goes to ten: half of it on each network.
    one = program(("Reshard", ROWS, 1, ROWS, 10), 640, 64)
    assert movement_cycles(one, SPEC).cycles == pytest.approx(433 + 1070 + 640 * 128 / 2 / LINK)
    shards = ShardSpec(first_cores(4, 2, 2), (320, 32), ShardOrientation.ROW_MAJOR)
    block = tensor(640, 64, TILE, memory=MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1, shards))
    parted = conversion("Reshard", tensor(640, 64, TILE, cores=20), block)
    assert movement_cycles(parted, SPEC).cycles == pytest.approx(433 + 1070 + 10 * 40)


def test_a_reshape_of_tiles_by_hand():
    """Ten rows of 32 become an image each: ten output tiles on ten cores, each with its map, an input tile, a row."""
    source, target = (TensorSpec(shape, BFLOAT16, TILE) for shape in ((1, 1, 10, 32), (1, 10, 1, 32)))
    read = LATENCY + 2048 / (0.5 * 64 / 1.35) + 0.315 * 10 * 2048 / BANKS
    assert movement_cycles(Reshape(()).movement(source, target, SPEC), SPEC).cycles == pytest.approx(
        433 + 2 * read + 2 * 83.6 + WRITTEN + 2048 / LINK
    )


def test_a_reshape_of_sticks_by_hand():
    """Forty sticks of 12 bytes become twenty of 24, on twenty cores: one for each of forty processors."""
    source, target = (TensorSpec(shape, BFLOAT16, ROWS) for shape in ((1, 1, 40, 6), (1, 1, 20, 12)))
    read = LATENCY + 12 / (0.5 * 64 / 1.35) + 0.315 * 20 * 12 / BANKS
    # The processor copies the 12 bytes by itself, since such sticks do not begin where L1 is aligned.
    assert movement_cycles(Reshape(()).movement(source, target, SPEC), SPEC).cycles == pytest.approx(
        433 + read + 83.6 + 12 * 3.01 + WRITTEN + 24 / LINK
    )


def test_rows_of_padding_are_filled_word_by_word():
    source, target = tensor(1, 256, ROWS), tensor(1, 256, TILE)
    movement = conversion("TilizeWithValPadding", source, target)
    assert movement.stores == 31 * 256 * 2 // 4


def test_a_slice_with_more_channels_than_the_image_copies_and_fills_each_stick():
    image = TensorSpec((1, 8, 64, 64), BFLOAT16, TILE)
    shards = ShardSpec(first_cores(4, 2, 2), (256, 48), ShardOrientation.ROW_MAJOR)
    scheme = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1, shards)
    wide = slice_movement(image, TensorSpec((1, 1, 512, 96), BFLOAT16, ROWS, scheme), SPEC)
    assert (wide.writes.core_pages, wide.writes.page_bytes) == (2 * 256, 96)
    whole = slice_movement(image, tensor(512, 64, ROWS, cores=4), SPEC)
    assert (whole.writes.core_pages, whole.writes.page_bytes, whole.reads.in_flight) == (4, 32 * 128, 2)


@given(st.sampled_from(PROGRAMS), st.integers(1, 3000), st.sampled_from([32, 64, 512]))
def test_nothing_is_faster_than_its_bytes(kind, rows, width):
    cycles = movement_cycles(program(kind, rows, width), SPEC)
    assert cycles.cycles > shared_cycles(SPEC, max(cycles.dram_read_bytes, cycles.dram_written_bytes))
    assert bandwidth(SPEC) == pytest.approx(BANKS)
