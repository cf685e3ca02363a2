"""Cycles of halos: by hand, and never less with less to work with; what cores send each other."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ops.op_models import load_spec
from ops.programs.halo import cycles as cycles_module
from ops.programs.halo.cycles import halo_cycles, halo_times, halo_traffic, in_the_way
from ops.programs.halo.plan import BLOCK, HEIGHT, WIDTH, core_pairs, transfers_in_turns, turns
from ops.programs.halo.transfers import list_transfers
from tests.ops.programs.halo.halos import halo_plan, halos

SPEC = load_spec("blackhole_p100").replace(
    halo_costs_start_cycles=450.0,
    halo_costs_pad_issue_cycles=21.6,
    compute_costs_untilize_block_cycles=383.0,
    compute_costs_untilize_narrow_tile_cycles=77.0,
    transfer_costs_page_issue_cycles=40.0,
)  # figures by hand, which no fit changes
kinds = st.fixed_dictionaries(
    {
        "size": st.integers(5, 40),
        "row_cores": st.integers(1, 10),
        "width": st.sampled_from([32, 64, 320]),
        "stride": st.integers(1, 2),
        "tiled": st.booleans(),
        "scheme": st.sampled_from([HEIGHT, BLOCK, WIDTH]),
        "transposed": st.booleans(),
    }
)
SMALL = {"size": 8, "row_cores": 2, "width": 32}


def cycles(plan, spec=SPEC, **how):
    return halo_cycles(plan, spec, **how).cycles


def times_of(plan, spec=SPEC):
    return halo_times(plan, halo_traffic(plan, spec), spec)


@given(kinds)
def test_slower_links_and_more_bytes_never_make_it_faster(kind):
    plan = halo_plan(**kind)
    found = halo_cycles(plan, SPEC)
    assert 0 <= found.contention_cycles < found.cycles
    assert cycles(plan, SPEC.replace(noc_flit_bytes=32)) >= found.cycles
    assert cycles(plan, filled_by_stick=True) >= found.cycles
    # Of sticks below 512 bytes, wider ones can leave fewer single sticks of zeros to copy.
    assert cycles(halo_plan(**kind | {"width": 512})) >= cycles(halo_plan(**kind | {"width": 256}))
    assert cycles(halo_plan(**kind, config_tensors_in_dram=True)) >= found.cycles


@given(kinds)
def test_groups_are_all_cores_and_the_slowest_decides(kind):
    plan = halo_plan(**kind)
    found = halo_cycles(plan, SPEC)
    cores = [core for group in found.groups for core in group.cores.cores()]
    assert sorted(cores, key=str) == sorted(plan.arguments.cores.cores(), key=str)
    assert found.cores == len(cores)
    assert found.slowest == max(found.groups, key=lambda group: group.cycles)
    assert found.working == {stage.stage for group in found.groups for stage in group.stages}
    assert found.slowest.cycles == pytest.approx(found.cycles, abs=1)
    assert found.bound_by in {stage.stage for stage in found.slowest.stages}
    assert sum(moved.network_bytes for moved in found.moved) == found.network_bytes
    assert sum(moved.cores.num_cores() for moved in found.moved[1:]) == found.cores


def test_padding_is_not_filled_faster_than_its_bytes_pass():
    """15 sticks of 64 bytes at a byte a cycle, after three runs were set up."""
    times = times_of(halo_plan(**SMALL), SPEC.replace(noc_flit_bytes=1, noc_link_share=1.0))
    assert times.padded[0, 0] == 450 + 3 * 35 + 15 * 64


@given(kinds)
def test_no_halo_is_faster_than_its_busiest_link(kind):
    """Even if nothing were in the way of any transfer."""
    plan = halo_plan(**kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cycles_module, "in_the_way", lambda senders, receivers, tiled: 0.0)
        traffic = halo_traffic(plan, SPEC)
    times = halo_times(plan, traffic, SPEC)
    assert (times.ends.max(axis=1) >= times.begun + traffic.busiest_bytes / SPEC.noc.link_bytes_per_cycle - 1e-6).all()
    assert (traffic.busiest_bytes > 0).tolist() == (traffic.away_bytes.sum(axis=(1, 2)) > 0).tolist()


def test_a_stick_of_padding_that_is_not_zero_is_written_first():
    """15 sticks of 32 elements: 6 cycles for each element of one, then two copies of each stick, 21.6 cycles apart."""
    spec = SPEC.replace(halo_costs_fill_element_cycles=6.0)
    plan = halo_plan(**SMALL)
    times = halo_times(plan, halo_traffic(plan, spec), spec, filled_by_stick=True)
    assert times.padded[0, 0] == pytest.approx(450 + 32 * 6 + 3 * 35 + 2 * 15 * 21.6)


def test_before_halos_were_split_one_processor_copied_and_one_padded_and_sent():
    """Of two cores with half of 8 x 8 sticks, each copies 32 sticks; it pads stick by stick and sends a row of 8."""
    spec = SPEC.replace(release="2025-02", halo_costs_fill_element_cycles=6.0)
    plan = halo_plan(**SMALL)
    traffic = halo_traffic(plan, spec)
    times = halo_times(plan, traffic, spec)
    assert traffic.local_bytes.sum(axis=2).tolist() == [[32 * 64] * 2, [0] * 2]
    assert traffic.away_bytes.sum(axis=2).tolist() == [[0] * 2, [8 * 64] * 2]
    sticks, runs = traffic.padding_sticks[1], traffic.padding_runs[1]
    assert (times.padded[0] == 450).all()
    assert times.padded[1] == pytest.approx(450 + 32 * 6 + 35 * runs + 35 * sticks)


def test_others_have_sent_half_of_what_goes_to_earlier_cores():
    """Core 1 sends to core 0, then to core 2; what core 2 sends to core 1 is half gone when core 1 turns to core 2."""
    senders, receivers = np.array([1, 1, 2]), np.array([0, 2, 1])
    meets = [[1.0, 1.0, 1.0], [0.5, 1.0, 0.5], [1.0, 1.0, 1.0]]
    assert in_the_way(senders, receivers, tiled=True).tolist() == meets
    assert (in_the_way(senders, receivers, tiled=False) == 1.0).all()


def dealt(transfers, turn):
    """Transfers and sticks between every two cores, by the processor that moves them."""
    found = {}
    rows = zip(*map(np.ndarray.tolist, (*transfers, turn)), strict=True)
    for source, _, destination, sticks, count, processor in rows:
        before = found.get((source, destination, processor), (0, 0))
        found[source, destination, processor] = before[0] + count, before[1] + sticks
    return found


@given(halos())
def test_transfers_that_are_counted_in_turns_are_those_that_are_listed(halo):
    frame, input_rows, ranges = halo
    arguments = replace(halo_plan().arguments, frame=frame, input_rows=input_rows, nhw_cores=len(ranges.starts))
    listed = list_transfers(frame, ranges, input_rows=input_rows)
    assert dealt(*transfers_in_turns(arguments, ranges, core_pairs(arguments, ranges))) == dealt(
        listed, turns(listed, tiled=False)
    )
