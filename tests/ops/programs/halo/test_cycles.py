"""Cycles of halos: by hand, and never less with less to work with; what cores send each other."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.cores import first_cores
from device.memory.memory_config import ShardOrientation
from device.numbers.formats import BFLOAT8_B
from ops.op_models import load_spec
from ops.programs.halo.cycles import halo_cycles, halo_sent, halo_times, halo_traffic
from ops.programs.halo.plan import BLOCK, HEIGHT, WIDTH, HaloOp, turns
from ops.programs.halo.transfers import list_transfers, padding_runs
from tests.ops.programs.halo.halos import halo_plan

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


@given(kinds)
def test_the_traffic_is_that_of_the_lists(kind):
    """Sticks that are longer than there are zeros are copied in two pieces each; others together, as far as they go."""
    plan = halo_plan(**kind)
    halo, traffic = plan.arguments, halo_traffic(plan, SPEC)
    listed = list_transfers(halo.frame, plan.ranges, input_rows=halo.input_rows, block_rows=halo.block_rows)
    turn, home = turns(listed, tiled=halo.tiled), listed.source == listed.destination
    runs, together = padding_runs(halo.frame), 512 // halo.row_bytes
    low, high = (bound.tolist() for bound in runs.within(plan.ranges))
    for processor in (0, 1):
        for table, chosen, weights in (
            (traffic.local_bytes, home, listed.sticks * halo.row_bytes),
            (traffic.away_bytes, ~home, listed.sticks * halo.row_bytes),
            (traffic.transfers, home | ~home, np.ones_like(turn)),
        ):
            own = chosen & (turn == processor)
            wanted = np.bincount(listed.source[own], weights=weights[own], minlength=halo.nhw_cores)
            assert np.array_equal(table[processor].sum(axis=1), wanted)
        for core, (first, last) in enumerate(zip(low, high, strict=True)):
            numbers = np.array_split(np.arange(first, last)[::-1], 2)[1 - processor]  # the second has one more
            begin, end = runs.edges(numbers)
            begin, end = np.maximum(begin, plan.ranges.starts[core]), np.minimum(end, plan.ranges.stops[core])
            lengths = (end - begin).tolist()
            copies = sum(own // together + own % together if together else 2 * own for own in lengths)
            amounts = (traffic.padding_runs, traffic.padding_sticks, traffic.zero_copies)
            assert [amount[processor, core] for amount in amounts] == [len(lengths), sum(lengths), copies]


def test_a_halo_by_hand():
    """8x8 pixels of 32 channels with a border of one on two cores, row-major; figures of Blackhole."""
    # The first processor of the first core has half of the six runs of its padding: 11, 2 and 2 sticks of 64 bytes, in
    # copies of eight sticks and of single ones: 1 + 3, 2 and 2. Then it sends three times: four rows of eight sticks
    # are shared by two processors, so 16 sticks to its own frame, and in a second round the row that the other core
    # needs. That one lies in the same row, so that the last write and its answer pass the 17 links of a ring.
    # The copies within the core bind on the issue of two transfers, as the other one does: 64 bytes a cycle are faster.
    padded = 450 + 3 * 35 + 8 * 21.6
    sent = 2 * 23 + 23
    found = halo_cycles(halo_plan(**SMALL), SPEC)
    assert found.cycles == pytest.approx(padded + sent + 119 + 17 * 9, rel=1e-12)
    assert found.network_bytes == 2 * 8 * 64
    assert [(str(moved.cores), moved.network_bytes) for moved in found.moved[1:]] == [("{[0-0 - 1-0]}", 2 * 8 * 64)]


def test_a_tiled_halo_by_hand():
    """A core that has all pixels, without neighbors: two blocks of 32 sticks, one for each processor."""
    times = times_of(halo_plan(size=8, row_cores=1, width=32, tiled=True, data_format=BFLOAT8_B))
    # Each block of a tile is untilized, then its four rows of eight sticks of 64 bytes are copied; padding comes first.
    untilized = [450 + block * (383 + 77) for block in (1, 2)]
    assert times.padded.max() < untilized[0]
    assert times.ends[:, 0].tolist() == pytest.approx([end + 4 * 23 + 119 for end in untilized], rel=1e-12)


def test_lists_in_dram_are_waited_for():
    """Two lists for each processor: a round trip to a bank, and the issue of two reads."""
    plan = halo_plan(**SMALL, config_tensors_in_dram=True)
    begun = times_of(plan).begun
    assert begun.tolist() == pytest.approx(2 * [450 + 119 + 29 * 9 + 78 * 1.35 + 2 * 40], rel=1e-12)
    assert times_of(plan, SPEC.replace(dram_bank_bytes_per_second=1e8)).begun.min() > begun.max()
    found = halo_cycles(plan, SPEC)
    assert sum(moved.dram_bytes for moved in found.moved) == found.dram_read_bytes > 0
    assert halo_cycles(halo_plan(**SMALL), SPEC).dram_read_bytes == 0


def test_padding_is_not_filled_faster_than_its_bytes_pass():
    """15 sticks of 64 bytes at a byte a cycle, after three runs were set up."""
    times = times_of(halo_plan(**SMALL), SPEC.replace(noc_flit_bytes=1, noc_link_share=1.0))
    assert times.padded[0, 0] == 450 + 3 * 35 + 15 * 64


@pytest.mark.parametrize(
    ("width", "zeros_bytes", "copies"),
    [(32, 512, 8), (256, 512, 15), (320, 512, 30), (32, 64, 15), (32, 128, 8), (32, 256, 9), (32, 1024, 15)],
)
def test_zeros_are_copied_as_far_as_there_are_any(width, zeros_bytes, copies):
    """Runs of 11, 2 and 2 sticks of two bytes a channel: as many at a time as there are zeros, then one by one.

    A stick that is longer than there are zeros is copied in pieces.
    """
    traffic = halo_traffic(halo_plan(**SMALL | {"width": width}), SPEC.replace(l1_zeros_bytes=zeros_bytes))
    assert (traffic.zero_copies[0, 0], traffic.padding_sticks[0, 0]) == (copies, 15)


def sharing(scheme, *, tiled=False, orientation=ShardOrientation.ROW_MAJOR):
    """An operation on 8 cores, or on 4 rows of 3 columns of cores."""
    nhw = {HEIGHT: 8, BLOCK: 4 if orientation is ShardOrientation.ROW_MAJOR else 3, WIDTH: 1}[scheme]
    plan = halo_plan(
        size=16, row_cores=nhw, width=32, scheme=scheme, tiled=tiled, orientation=orientation,
        cores=first_cores(8 if scheme is HEIGHT else 12, 3, 4), channel_cores=1 if scheme is HEIGHT else 12 // nhw,
    )  # fmt: skip
    return HaloOp(plan=plan, fp32_dest=False)


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("scheme", [HEIGHT, BLOCK])
@pytest.mark.parametrize("orientation", list(ShardOrientation))
def test_bytes_sent_are_those_of_the_model(scheme, tiled, orientation):
    op = sharing(scheme, tiled=tiled, orientation=orientation)
    found, sent = halo_cycles(op.plan, SPEC), halo_sent(op, SPEC)
    assert sum(way.size_bytes for way in sent) == found.network_bytes > 0
    assert all(0 < way.start_cycle < way.end_cycle <= found.cycles for way in sent)
    assert all(way.source != way.destination for way in sent)
    assert {way.network for way in sent} == ({0} if tiled and scheme is HEIGHT else {0, 1})  # one block: no turns
    assert len({(way.network, way.source, way.destination) for way in sent}) == len(sent)
    if scheme is BLOCK:  # every column of cores repeats the halo, or every row
        axis, count = (0, 3) if orientation is ShardOrientation.ROW_MAJOR else (1, 4)
        assert {way.source[axis] for way in sent} == set(range(count))
        assert all(way.source[axis] == way.destination[axis] for way in sent)
