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
from ops.programs.data_movement.movement import movement_cycles
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
# Program, layout and cores of the source (0: interleaved) and of the result
PROGRAMS = (
    """
InterleavedToSharded tile 0 tile 20; InterleavedToSharded rows 0 rows 20; ShardedToInterleaved tile 20 tile 0;
ShardedToInterleaved rows 20 rows 0; Reshard tile 20 tile 10; Move rows 20 rows 20; Move rows 0 rows 0; Copy
tile 0 tile 0; Typecast tile 0 tile 0; Tilize rows 0 tile 0; Tilize rows 20 tile 20; TilizeWithValPadding rows 0
tile 0; Untilize tile 0 rows 0; Untilize tile 20 rows 20; UntilizeWithUnpadding tile 0 rows 0; PaddedSlice tile
0 rows 20; PaddedSlice rows 0 rows 20; SliceWrite tile 20 tile 0; SliceWrite rows 20 rows 0; Reshape tile 0 tile
0; Reshape rows 0 rows 0
""".strip()
    .replace("\n", " ")
    .split("; ")
)
SAMPLES = st.sampled_from(PROGRAMS), st.integers(1, 3000), st.sampled_from([32, 64, 512])


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


def cycles_of(text, rows, width):
    return movement_cycles(program(text, rows, width), SPEC).cycles


@given(*SAMPLES)
@settings(max_examples=40)
def test_less_to_work_with_is_never_faster_and_nothing_is_faster_than_its_bytes(kind, rows, width):
    movement = program(kind, rows, width)
    cycles = movement_cycles(movement, SPEC)
    assert 0 <= cycles.contention_cycles < cycles.cycles <= cycles_of(kind, rows, 2 * width)
    for figure, value in {"dram_banks": 1, "noc_flit_bytes": 16}.items():
        assert movement_cycles(movement, SPEC.replace(**{figure: value})).cycles >= cycles.cycles
    assert {stage.stage for stage in cycles.slowest.stages} >= {Stage.START, cycles.bound_by}
    assert cycles.cycles > shared_cycles(SPEC, max(cycles.dram_read_bytes, cycles.dram_written_bytes))


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
    ("text", "rows", "width", "alone", "cycles"),
    [
        ("InterleavedToSharded tile 0 tile 20", 1280, 64, True, 433 + FOUR_TILES),
        # each waits behind 0.315 of those of all cores, to which the banks deliver 246 bytes a cycle
        ("InterleavedToSharded tile 0 tile 20", 1280, 64, False, 433 + FOUR_TILES + 4 * 0.315 * 20 * 2048 / BANKS),
        # sticks of 128 bytes within L1: 64 rows of a shard in one piece, over a link of 60.9 bytes a cycle
        ("Move rows 20 rows 20", 1280, 64, False, 433 + 64 * 128 / LINK),
        # 220 tiles on 110 cores: while one is cast and written, the next is read; the banks bind all cores together
        ("Typecast tile 0 tile 0", 7040, 32, True, 433 + 2 * PAGE + 2 * 2048 / 117.0 + TILE_WRITTEN),
        ("Typecast tile 0 tile 0", 7040, 32, False, 433 + 2 * 220 * 2048 / BANKS),
        ("Typecast tile 0 tile 0", 320, 32, False, 433 + AMONG_TEN + 2 * 2048 / 117.0 + TILE_WRITTEN),
        # 3200 rows of 128 bytes from a hundred cores: writing alone gets 0.778 of what the banks take
        ("SliceWrite tile 100 tile 0", 3200, 64, False, 433 + 3200 * 128 / (0.778 * BANKS)),
        ("ShardedToInterleaved tile 100 tile 0", 3200, 64, False, 433 + WRITTEN + 3200 * 128 / (0.778 * BANKS)),
        ("ShardedToInterleaved rows 100 rows 0", 3200, 64, False, 433 + WRITTEN + 3200 * 128 / (0.778 * BANKS)),
        # one row of two tiles on each of ten cores: its stages follow each other
        (
            "Tilize rows 0 tile 0", 320, 64, False,
            433 + 32 * (STICK + 0.838 * 10 * 128 / BANKS) + 2 * (2.0 + 2 * 2048 / 117.0) + 2 * TILE_WRITTEN,
        ),
        ("Untilize tile 0 rows 0", 320, 64, False, UNTILIZED),
        # 64 rows of 128 bytes for each of ten cores in runs over a link; half of the only shard on each network
        ("Reshard rows 20 rows 10", 640, 64, False, 433 + 1070 + 64 * 128 / LINK),
        ("Reshard rows 1 rows 10", 640, 64, False, 433 + 1070 + 640 * 128 / 2 / LINK),
    ],
)  # fmt: skip
def test_movements_by_hand(text, rows, width, alone, cycles):
    """Also `alone`: what a movement takes without the bandwidth that cores share."""
    timed = movement_cycles(program(text, rows, width), SPEC)
    assert timed.cycles - alone * timed.contention_cycles == pytest.approx(cycles, rel=1e-12)


def test_what_binds_and_tiles_that_are_redistributed_one_by_one():
    assert bandwidth(SPEC) == pytest.approx(BANKS)
    assert movement_cycles(program("SliceWrite tile 100 tile 0", 3200, 64), SPEC).bound_by is Stage.DRAM
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
