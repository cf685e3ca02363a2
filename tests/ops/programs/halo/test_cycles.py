"""Cycles of halos: never less with less to work with, and as measured on two real halos."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from device.cores import first_cores
from device.memory.memory_config import ShardOrientation
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from device.time.stages import Stage
from ops.programs.halo.config_tensors import UNTILIZE_BLOCK_STICKS, deal_transfers
from ops.programs.halo.cycles import halo_cycles, halo_times
from ops.programs.halo.plan import BLOCK, HEIGHT, WIDTH, HaloArguments, core_order, plan_halo
from ops.programs.halo.traffic import ZEROS_BYTES, halo_traffic, stick_bytes
from ops.programs.halo.transfers import list_padding, list_transfers
from ops.window import PaddedInput, convolution_axis, transposed_axis

SPEC = load_spec("blackhole_p100").replace(
    halo_costs_start_cycles=450.0,
    halo_costs_pad_issue_cycles=21.6,
    compute_costs_untilize_block_cycles=383.0,
    compute_costs_untilize_narrow_tile_cycles=77.0,
    transfer_costs_page_issue_cycles=40.0,
)  # figures by hand, which no fit changes


def halo(*, size=24, cores=20, width=64, stride=1, tiled=False, scheme=HEIGHT, transposed=False, in_dram=False):
    """A 3x3 halo of a square image on a grid of 5 columns."""
    made = transposed_axis if transposed else convolution_axis
    more = {"output_padding": 0} if transposed else {}
    axis = made(input_length=size, kernel=3, stride=stride, padding=(1, 1), dilation=1, **more)
    frame = PaddedInput(batch=1, rows=axis, columns=axis)
    count = {HEIGHT: cores, BLOCK: 5 * cores, WIDTH: 5}[scheme]
    nhw = 1 if scheme is WIDTH else cores
    arguments = HaloArguments(
        frame=frame,
        scheme=scheme,
        orientation=ShardOrientation.ROW_MAJOR,
        cores=first_cores(count, 5, 10),
        nhw_cores=nhw,
        channel_cores=1 if scheme is HEIGHT else 5,
        input_rows=-(-size * size // nhw // 32) * 32,
        output_rows=-(-frame.outputs // nhw),
        shard_width=width,
        data_format=BFLOAT8_B if tiled else BFLOAT16,
        stick_alignment_bytes=16,
        tiled=tiled,
        config_tensors_in_dram=in_dram,
    )
    return plan_halo(arguments, input_tensor="x", output_tensor="halo")


kinds = st.fixed_dictionaries(
    {
        "size": st.integers(5, 40),
        "cores": st.integers(1, 10),
        "width": st.sampled_from([32, 64, 320]),
        "stride": st.integers(1, 2),
        "tiled": st.booleans(),
        "scheme": st.sampled_from([HEIGHT, BLOCK, WIDTH]),
        "transposed": st.booleans(),
    }
)


@settings(deadline=None)
@given(kinds)
def test_contention_slower_links_and_more_bytes_never_make_it_faster(kind):
    plan = halo(**kind)
    found = halo_cycles(plan, SPEC)
    alone = halo_cycles(plan, SPEC, contention=False)
    assert alone.cycles <= found.cycles
    assert found.contention_cycles == pytest.approx(found.cycles - alone.cycles, abs=1e-6)
    assert alone.contention_cycles == 0
    assert halo_cycles(plan, SPEC.replace(noc_flit_bytes=32)).cycles >= found.cycles
    assert halo_cycles(plan, SPEC, filled_by_stick=True).cycles >= found.cycles
    # Of sticks below 512 bytes, wider ones can leave fewer single sticks of zeros to copy.
    wide, wider = (halo_cycles(halo(**kind | {"width": width}), SPEC).cycles for width in (256, 512))
    assert wider >= wide
    assert halo_cycles(halo(**kind, in_dram=True), SPEC).cycles >= found.cycles


BETTER = (
    {"noc_flit_bytes": 128},
    {"noc_link_share": 1.0},
    {"noc_hop_cycles": 5.0},
    {"noc_interface_cycles": 50.0},
    {"dram_banks": 16, "dram_access_ns": 20.0},
    {"transfer_costs_read_issue_cycles": 10, "transfer_costs_write_issue_cycles": 10},
    {"halo_costs_pad_issue_cycles": 10.0},
    {"compute_costs_untilize_block_cycles": 100},
)


@settings(deadline=None)
@given(kinds, st.booleans(), st.sampled_from(BETTER))
def test_a_better_machine_is_never_slower(kind, in_dram, better):
    plan = halo(**kind, in_dram=in_dram)
    assert halo_cycles(plan, SPEC.replace(**better)).cycles <= halo_cycles(plan, SPEC).cycles


@settings(deadline=None)
@given(kinds)
def test_groups_are_all_cores_and_the_slowest_decides(kind):
    plan = halo(**kind)
    found = halo_cycles(plan, SPEC)
    cores = [core for group in found.groups for core in group.cores.cores()]
    assert sorted(cores, key=str) == sorted(plan.arguments.cores.cores(), key=str)
    assert found.cores == len(cores)
    assert found.slowest == max(found.groups, key=lambda group: group.cycles)
    assert found.working == {one.stage for group in found.groups for one in group.stages}
    assert found.slowest.cycles == pytest.approx(found.cycles, abs=1)
    assert found.bound_by in {stage.stage for stage in found.slowest.stages}
    assert sum(one.network_bytes for one in found.moved) == found.network_bytes
    assert sum(one.cores.num_cores() for one in found.moved[1:]) == found.cores


@settings(deadline=None)
@given(kinds)
def test_the_traffic_is_that_of_the_config_tensors(kind):
    plan = halo(**kind)
    a, traffic = plan.arguments, halo_traffic(plan, SPEC)
    block_rows = UNTILIZE_BLOCK_STICKS if a.tiled else 0
    listed = list_transfers(a.frame, plan.ranges, input_rows=a.input_rows, block_rows=block_rows)
    for dealt, sending in zip(deal_transfers(listed, core_order(a), tiled=a.tiled), traffic.sending, strict=True):
        sent = dealt.length * stick_bytes(a)
        home = dealt.source_core == dealt.destination_core
        for found, chosen in ((sending.local_bytes, home), (sending.away_bytes, ~home)):
            expected = np.bincount(dealt.source_core[chosen], weights=sent[chosen], minlength=a.nhw_cores)
            assert np.array_equal(found.sum(axis=1), expected)
        assert np.array_equal(sending.transfers.sum(axis=1), np.bincount(dealt.source_core, minlength=a.nhw_cores))


@settings(deadline=None)
@given(kinds)
def test_the_padding_is_that_of_the_config_tensors(kind):
    """Sticks that are longer than there are zeros are copied in two pieces each; others together, as far as they go."""
    plan = halo(**kind)
    arguments = plan.arguments
    listed = list_padding(arguments.frame, plan.ranges)
    together = ZEROS_BYTES // stick_bytes(arguments)
    for core in range(arguments.nhw_cores):
        lengths = listed.length[listed.core == core].tolist()
        half = len(lengths) // 2
        for filling, own in zip(halo_traffic(plan, SPEC).filling, (lengths[:half], lengths[half:]), strict=True):
            copies = sum(one // together + one % together if together else 2 * one for one in own)
            assert (filling.runs[core], filling.sticks[core]) == (len(own), sum(own))
            assert filling.copies(zero=True)[core] == copies


def test_untilizing_takes_time_and_wide_rows_more():
    narrow, wide = halo_cycles(halo(tiled=True, width=256), SPEC), halo_cycles(halo(tiled=True, width=288), SPEC)
    rows = halo_cycles(halo(tiled=False, width=256), SPEC)
    assert rows.cycles < narrow.cycles < wide.cycles
    assert Stage.UNTILIZE in {stage.stage for stage in wide.slowest.stages}


def test_a_width_sharded_halo_sends_nothing():
    found = halo_cycles(halo(scheme=WIDTH), SPEC)
    assert found.network_bytes == 0
    assert len(found.groups) == 1


def test_bytes_of_config_tensors_are_read_from_dram_only_if_they_are_there():
    assert halo_cycles(halo(), SPEC).dram_read_bytes == 0
    found = halo_cycles(halo(in_dram=True), SPEC)
    assert found.dram_read_bytes > 0
    assert sum(one.dram_bytes for one in found.moved) == found.dram_read_bytes


def test_a_processor_fills_its_padding_before_it_sends():
    plan = halo()
    times = halo_times(plan, halo_traffic(plan, SPEC), SPEC)
    assert np.all(times.padded <= times.ends)
    assert times.cycles == times.ends.max()


def test_a_halo_by_hand():
    """8x8 pixels of 32 channels with a border of one on two cores, row-major; figures of Blackhole."""
    # The first processor of the first core has half of the six runs of its padding: 11, 2 and 2 sticks of 64 bytes, in
    # copies of eight sticks and of single ones: 1 + 3, 2 and 2. Then it sends three times: four rows of eight sticks
    # are shared by two processors, so 16 sticks to its own frame, and in a second round the row that the other core
    # needs. That one lies in the same row, so that the last write and its answer pass the 17 links of a ring.
    # The copies within the core bind on the issue of two transfers, as the other one does: 64 bytes a cycle are faster.
    padded = 450 + 3 * 35 + 8 * 21.6
    sent = 2 * 23 + 23
    found = halo_cycles(halo(size=8, cores=2, width=32), SPEC)
    assert found.cycles == pytest.approx(padded + sent + 119 + 17 * 9, rel=1e-12)
    assert found.network_bytes == 2 * 8 * 64
    assert [(str(one.cores), one.network_bytes) for one in found.moved[1:]] == [("{[0-0 - 1-0]}", 2 * 8 * 64)]


def test_a_tiled_halo_by_hand():
    """A core that has all pixels, without neighbors: two blocks of 32 sticks, one for each processor."""
    found = halo(size=8, cores=1, width=32, tiled=True)
    times = halo_times(found, halo_traffic(found, SPEC), SPEC)
    # Each block of a tile is untilized, then its four rows of eight sticks of 64 bytes are copied; padding comes first.
    untilized = [450 + block * (383 + 77) for block in (1, 2)]
    copied = 4 * 23 + 119
    assert times.padded.max() < untilized[0]
    assert times.ends[:, 0].tolist() == pytest.approx([end + copied for end in untilized], rel=1e-12)


def test_lists_in_dram_are_waited_for():
    """Two lists for each processor: a round trip to a bank, and the issue of two reads."""
    plan = halo(size=8, cores=2, width=32, in_dram=True)
    times = halo_times(plan, halo_traffic(plan, SPEC), SPEC)
    assert times.begun.tolist() == pytest.approx(2 * [450 + 119 + 29 * 9 + 78 * 1.35 + 2 * 40], rel=1e-12)
    slow = halo_times(plan, halo_traffic(plan, SPEC), SPEC.replace(dram_bank_bytes_per_second=1e8))
    assert slow.begun.min() > times.begun.max()


def test_padding_that_is_not_zero_is_copied_in_halves_of_a_stick():
    filling = halo_traffic(halo(size=8, cores=2, width=32), SPEC).filling[0]
    assert (filling.runs[0], filling.sticks[0]) == (3, 15)
    assert (filling.copies(zero=True)[0], filling.copies(zero=False)[0]) == (8, 30)


def test_padding_is_not_filled_faster_than_its_bytes_pass():
    """15 sticks of 64 bytes at a byte a cycle, after three runs were set up."""
    plan, slow = halo(size=8, cores=2, width=32), SPEC.replace(noc_flit_bytes=1, noc_link_share=1.0)
    times = halo_times(plan, halo_traffic(plan, slow), slow)
    assert times.padded[0, 0] == 450 + 3 * 35 + 15 * 64


@pytest.mark.parametrize(("width", "copies"), [(32, 8), (256, 15), (320, 30)])
def test_zeros_are_copied_as_far_as_there_are_any(width, copies):
    """Runs of 11, 2 and 2 sticks: eight of 64 bytes at a time, one of 512 bytes, or one of 640 bytes in two pieces."""
    assert halo_traffic(halo(size=8, cores=2, width=width), SPEC).filling[0].copies(zero=True)[0] == copies


def test_row_major_sticks_go_round_by_round_to_one_receiver_after_the_other():
    traffic = halo_traffic(halo(cores=10), SPEC)
    assert traffic.blocks == 2 * traffic.sending[0].transfers.shape[1]
    for sending in traffic.sending:
        assert sending.local_bytes[:, 1:].sum() == 0
        assert sending.away_bytes[:, 0].sum() == 0
        assert np.all(sending.away_bytes[:-1, 1] > 0)


def test_more_hops_cost_more():
    plan = halo(cores=10)
    near, far = halo_cycles(plan, SPEC), halo_cycles(plan, SPEC.replace(noc_hop_cycles=18))
    # Some core sends off both axes: 17 + 12 links.
    assert far.cycles == pytest.approx(near.cycles + 29 * 9, rel=1e-12)


def test_what_helps_a_halo_and_where_it_can_not():
    rows, alone = halo(cores=10), halo(scheme=WIDTH)
    wider = SPEC.replace(noc_link_share=1.0)
    assert halo_cycles(rows, wider).cycles < halo_cycles(rows, SPEC).cycles
    # Links that nobody shares: cores that send nothing to others have no waiting to lose.
    assert halo_cycles(rows, SPEC, contention=False).cycles < halo_cycles(rows, SPEC).cycles
    assert halo_cycles(alone, SPEC, contention=False).cycles == halo_cycles(alone, SPEC).cycles
    # Indices in L1 save their fetch, whatever the halo.
    assert halo_cycles(rows, SPEC).cycles < halo_cycles(halo(cores=10, in_dram=True), SPEC).cycles
    # Faster untilizing helps tiles and not sticks.
    faster = SPEC.replace(compute_costs_untilize_block_cycles=100)
    assert halo_cycles(halo(tiled=True), faster).cycles < halo_cycles(halo(tiled=True), SPEC).cycles
    assert halo_cycles(halo(), faster).cycles == halo_cycles(halo(), SPEC).cycles
