"""Cycles of data movement, and which pages a program reads and writes."""

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec
from device.numbers.formats import BFLOAT8_B, BFLOAT16, UINT32
from device.spec.device_spec import load_spec
from device.time.links import spread_link_bytes
from device.time.network import page_round_trip_cycles, read_latency_cycles, shared_cycles, shared_read_cycles
from device.time.stages import Stage
from ops.programs import kernel_costs
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.movement import Access, Movement, MovementCosts, Pages, movement_cycles
from ops.programs.data_movement.reshape import Reshape
from ops.programs.data_movement.slice import slice_movement, slice_write_movement
from ops.programs.kernel_costs import ComputeCosts, TransferCosts
from tests.build import tensor_spec
from tests.shards import HEIGHT

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
SHARDS = "640x32 tile height/160x32/4"
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


def test_integers_are_made_on_the_vector_unit():
    source, target = (TensorSpec((1, 1, 320, 32), data_format, Layout.TILE) for data_format in (BFLOAT16, UINT32))
    op = CopyTensor(Conversion.TYPECAST)
    cycles, back = (movement_cycles(op.movement(*ends, SPEC), SPEC) for ends in ((source, target), (target, source)))
    assert cycles.cycles - back.cycles > 1000
    assert cycles.bound_by is Stage.MATH


def test_pages_of_shards_are_found_by_divisions():
    """Ten of them are read and, a block of one behind, written; each takes 100 cycles more to find."""
    ends = (tensor_spec("640x64 tile height/160x64/4"), tensor_spec("640x64 tile bfloat8_b height/160x64/4"))
    movement = CopyTensor(Conversion.TYPECAST, (BFLOAT16, BFLOAT8_B)).movement(*ends, SPEC)
    found = SPEC.costs_of(TransferCosts).shard_page_cycles + 100
    slower = SPEC.replace(transfer_costs_shard_page_cycles=found)
    more = movement_cycles(movement, slower).cycles - movement_cycles(movement, SPEC).cycles
    assert more == pytest.approx(10 * 100 + 100)


def test_a_shard_moves_up_in_pieces_as_long_as_the_room_above_it():
    """32 sticks of 128 B into 1,024 B of room: a round trip and a start, then three more round trips than in one."""
    sticks = tensor_spec("640x64 height/32x64/20")
    one, four, unknown = (
        movement_cycles(CopyTensor(Conversion.MOVE, room_bytes=room).movement(sticks, sticks, SPEC), SPEC).cycles
        for room in (4096, 1024, None)
    )
    costs, round_trip = SPEC.costs_of(MovementCosts), SPEC.noc.interface_cycles
    assert one == pytest.approx(costs.local_start_cycles + round_trip + 4096 / costs.local_bytes_per_cycle)
    assert four == unknown == pytest.approx(one + 3 * round_trip)


def test_pages_that_are_written_together_are_waited_for_once():
    """Two sticks are written to four places each: a wait for four, and the issue of three behind the first."""
    page = Pages(access=Access.WAIT, core_pages=8, page_bytes=64, all_pages=8, tiles=False, in_dram=False)
    one, four = (
        movement_cycles(Movement(cores=first_cores(1, 1, 1), writes=replace(page, in_flight=count)), SPEC).cycles
        for count in (1, 4)
    )
    issue = SPEC.costs_of(TransferCosts).page_issue_cycles
    waited = kernel_costs.waited_write_cycles(SPEC, 64, in_dram=False)
    assert one - four == pytest.approx(8 * waited - 2 * (waited + 3 * issue))


def test_tiles_in_the_l1_of_all_cores_meet_on_links_but_for_the_first():
    """Each of four is waited for: a round trip, and the busiest link's time for a tile of each core, three times."""
    cores = first_cores(64, 11, 10)
    page = Pages(access=Access.WAIT, core_pages=4, page_bytes=2048, all_pages=256, tiles=True, in_dram=False)
    spec = SPEC.replace(noc_merging_share=0.5, noc_crossing_cycles=2.0)
    busiest = spread_link_bytes(spec, cores, 64, in_dram=False, writes=False)
    assert busiest > 1
    link = busiest * (2048 / (0.5 * spec.noc.link_bytes_per_cycle) + 2.0)
    body = 4 * kernel_costs.core_round_trip_cycles(spec) + 3 * link
    cycles = movement_cycles(Movement(cores=cores, reads=page), spec)
    assert cycles.cycles == pytest.approx(433 + body)
    alone = 4 * kernel_costs.waited_read_cycles(spec, 2048, in_dram=False)
    assert cycles.contention_cycles == pytest.approx(body - alone)
    one = movement_cycles(Movement(cores=first_cores(1, 11, 10), reads=page), spec)
    assert one.slowest.stages[1].busy_cycles == pytest.approx(alone)


@pytest.mark.parametrize(
    ("conversion", "ends", "converted"),
    [
        (Conversion.INTERLEAVED_TO_SHARDED, ("640x32 tile", SHARDS), (2048 + 1088) / 117),
        (Conversion.SHARDED_TO_INTERLEAVED, (SHARDS, "640x32 tile"), 15 + 2048 / 117),  # the least of an unpacker
    ],
)
def test_tiles_change_their_format_between_reading_and_writing(conversion, ends, converted):
    """Five tiles of each core, one after the other through Dst, while the interleaved pages stay the same."""
    op, cast = CopyTensor(conversion), [end.replace(SHARDS, f"{SHARDS} bfloat8_b") for end in ends]
    kept, changed = (movement_cycles(op.movement(*map(tensor_spec, pair), SPEC), SPEC) for pair in (ends, cast))
    tile = converted + SPEC.costs_of(ComputeCosts).subblock_cycles
    assert changed.cycles - kept.cycles == pytest.approx(5 * tile)


def moved(**changes):
    """Cycles of one core that copies a tile of bfloat16 within the L1 of the chip, with changes of the movement."""
    pages = Pages(access=Access.WAIT, core_pages=1, page_bytes=2048, all_pages=1, tiles=True, in_dram=False)
    movement = Movement(cores=first_cores(1, 11, 10), reads=pages, writes=pages)
    return movement_cycles(replace(movement, **changes), SPEC)


def test_what_comes_before_the_first_page():
    """A tile filled byte by byte is the writer's; where a core begins among axes is worked out at the start."""
    costs, before = SPEC.costs_of(MovementCosts), moved()
    filled = moved(filled_bytes=2048)
    assert filled.cycles - before.cycles == pytest.approx(2048 * costs.fill_byte_cycles)
    located = moved(locates=True)
    assert located.cycles - before.cycles == pytest.approx(SPEC.costs_of(TransferCosts).locate_cycles)


def test_crossing_routes_leave_a_part_of_the_busiest_link():
    """110 cores read from the L1 of all: the busiest link carries a part of what it would carry alone."""
    pages = Pages(access=Access.STREAM, core_pages=10, page_bytes=2048, all_pages=100_000, tiles=True, in_dram=False)
    cores = first_cores(110, 11, 10)
    timed = movement_cycles(Movement(cores=cores, reads=pages), SPEC)
    pages_there = spread_link_bytes(SPEC, cores, 100_000, in_dram=False, writes=False)
    page_cycles = 2048 / SPEC.noc.link_bytes_per_cycle / SPEC.noc.merging_share + SPEC.noc.crossing_cycles
    assert timed.bound_by is Stage.NETWORK
    busy = next(stage.busy_cycles for stage in timed.slowest.stages if stage.stage is Stage.NETWORK)
    assert busy == pytest.approx(pages_there * page_cycles)


def test_generated_code_issues_sticks_as_other_writes():
    """32 sticks of 64 B: one round trip, and an issue each, of a stick's cycles, a write's, or a page's of a batch."""
    sticks = Pages(access=Access.ROWS, core_pages=32, page_bytes=64, all_pages=32, tiles=False, in_dram=False)
    transfers, stick = SPEC.costs_of(TransferCosts), SPEC.costs_of(MovementCosts).stick_cycles
    by_rows = moved(writes=sticks).cycles
    for access, issue in (
        (Access.GENERATED, transfers.write_issue_cycles),
        (Access.PIECES, transfers.batch_issue_cycles),
    ):
        written = moved(writes=replace(sticks, access=access)).cycles
        assert by_rows - written == pytest.approx(32 * (stick - issue))


def test_sticks_that_are_written_one_by_one_take_a_mean_round_trip():
    """Four sticks of 64 B, each waited for: four round trips to the cores in the mean, and to DRAM its access."""
    sticks = Pages(access=Access.EACH, core_pages=4, page_bytes=64, all_pages=4, tiles=False, in_dram=False)
    near, far = (moved(writes=replace(sticks, in_dram=in_dram)).cycles for in_dram in (False, True))
    none = moved(writes=None).cycles
    wire = 64 / SPEC.noc.link_bytes_per_cycle
    assert near - none == pytest.approx(4 * (kernel_costs.core_round_trip_cycles(SPEC) + wire))
    access = SPEC.costs_of(MovementCosts).write_access_ns * SPEC.clock_hz / 1e9
    assert far - near == pytest.approx(4 * access)


def test_a_batch_is_waited_for_as_a_whole_and_behind_those_of_all_cores():
    """Eight sticks in two batches: two round trips, eight issues. 79 other cores ask for 632 in turn."""
    sticks = Pages(
        access=Access.BATCH, core_pages=8, page_bytes=64, all_pages=640, tiles=False, in_dram=True, in_flight=4
    )

    def reading(cores, **changes):
        timed = moved(reads=replace(sticks, **changes), cores=first_cores(cores, 11, 10))
        return next(stage.busy_cycles for stage in timed.slowest.stages if stage.stage is Stage.READER)

    transfers = SPEC.costs_of(TransferCosts)
    issue, trips = transfers.batch_issue_cycles, 2 * (transfers.page_issue_cycles + page_round_trip_cycles(SPEC, 64))
    assert reading(1) == pytest.approx(trips + 6 * issue)
    asked = shared_read_cycles(SPEC, 79 * 8 * 64, 64)
    assert reading(80) == pytest.approx(trips + asked)
    assert reading(80, copies=640) == pytest.approx(trips + asked * SPEC.dram.banks)


def test_the_banks_wait_for_the_first_page():
    """110 cores copy tiles in DRAM: a round trip, then the banks bind; pages that stream have the latency before."""
    tiles = Pages(access=Access.WAIT, core_pages=10, page_bytes=2048, all_pages=100_000, tiles=True, in_dram=True)
    waited, streamed = (
        moved(reads=replace(tiles, access=access), writes=replace(tiles, access=access), cores=first_cores(110, 11, 10))
        for access in (Access.WAIT, Access.STREAM)
    )
    latencies = read_latency_cycles(SPEC), kernel_costs.write_latency_cycles(SPEC, in_dram=True)
    assert waited.bound_by is streamed.bound_by is Stage.DRAM
    assert waited.cycles - streamed.cycles == pytest.approx(latencies[0] - latencies[1])


def test_banks_that_read_and_write_in_turns_lose_a_part():
    """They lose half of their rate here; those that only write lose nothing."""
    tiles = Pages(access=Access.WAIT, core_pages=10, page_bytes=2048, all_pages=100_000, tiles=True, in_dram=True)
    turning = SPEC.replace(movement_costs_dram_turn_share=0.5, movement_costs_dram_write_share=1.0)
    full = turning.replace(movement_costs_dram_turn_share=1.0)
    for reads, factor in ((tiles, 2.0), (None, 1.0)):
        movement = Movement(cores=first_cores(110, 11, 10), reads=reads, writes=tiles)
        busy = [
            next(
                stage.busy_cycles
                for stage in movement_cycles(movement, spec).slowest.stages
                if stage.stage is Stage.DRAM
            )
            for spec in (turning, full)
        ]
        assert busy[0] == pytest.approx(factor * busy[1])


def test_generated_programs_of_pages_start_earlier_and_copy_within_the_core():
    costs, before = SPEC.costs_of(MovementCosts), moved().cycles
    assert before - moved(compiled=True).cycles == pytest.approx(costs.start_cycles - costs.compiled_start_cycles)
    copied = kernel_costs.local_sticks_cycles(SPEC, 7, 2048)
    assert moved(local_copies=7).cycles - before == pytest.approx(copied)


def test_places_that_are_counted_up_are_the_least_a_stick_takes():
    """A stick's issue and a piece's: 72 and 83.6 cycles, more than 1/64 of a round trip."""
    sticks = Pages(
        access=Access.WAIT, core_pages=64, page_bytes=6, all_pages=64, tiles=False, in_dram=False, in_flight=64
    )
    read = moved(reads=replace(sticks, counted=True)).cycles - moved(reads=None).cycles
    assert read == pytest.approx(64 * (72.0 + 83.6))


def test_formats_other_than_bfloat16_are_tilized_tile_by_tile():
    """Ten tiles take 1,000 cycles more each."""
    single = SPEC.costs_of(kernel_costs.ComputeCosts).tilize_single_cycles
    slow = SPEC.replace(compute_costs_tilize_single_cycles=single + 1000.0)
    for data_format, slower in ((BFLOAT16, 0.0), (UINT32, 10_000.0)):
        tilizing = Movement(cores=first_cores(1, 1, 1), tilized_tiles=10, formats=(data_format, data_format))
        cycles, singly = (movement_cycles(tilizing, spec).cycles for spec in (SPEC, slow))
        assert singly - cycles == pytest.approx(slower)


def test_tiles_that_have_left_are_waited_for_once():
    """Four tiles: an issue, the wire and leaving for each and one round trip; or a round trip of every tile."""
    tiles = Pages(access=Access.FLUSH, core_pages=4, page_bytes=2048, all_pages=4, tiles=True, in_dram=False)
    flushed, waited = moved(writes=tiles), moved(writes=replace(tiles, access=Access.WAIT))
    trip = kernel_costs.write_latency_cycles(SPEC, in_dram=False)
    issue = SPEC.costs_of(TransferCosts).page_issue_cycles + SPEC.costs_of(MovementCosts).flush_cycles
    assert waited.cycles - flushed.cycles == pytest.approx(3 * trip - 4 * issue)
    sides = tensor_spec("64x64"), tensor_spec("64x64 tile")
    for spec, access in ((SPEC, Access.FLUSH), (SPEC.replace(release="2025"), Access.WAIT)):
        assert CopyTensor(Conversion.TILIZE).movement(*sides, spec).writes.access is access
