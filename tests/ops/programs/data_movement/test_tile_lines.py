"""Rows of tiles that go into other tiles: lines of faces, a wait for each tile, and padding below the images."""

import pytest

from device.spec.device_spec import load_spec
from ops.op_model import Ends
from ops.programs.data_movement.tile_lines import composed_by_lines
from ops.programs.kernel_costs import StickCosts, TransferCosts, waited_read_cycles, write_latency_cycles
from tests.build import tensor_spec

SPEC = load_spec("blackhole_p150")
ISSUES = SPEC.costs_of(TransferCosts)
LINE = ISSUES.page_issue_cycles  # a write's bank is worked out like a read's


def cycles_of(source, target, axes, spec=SPEC):
    ends = Ends(read=tensor_spec(f"{source} tile"), written=tensor_spec(f"{target} tile"))
    return composed_by_lines(ends.read.shape, axes, ends, spec).body_cycles


def test_a_tile_is_read_and_its_lines_are_written_and_waited_for():
    """Each of 64 tiles, one a core, has 7 rows of two faces; the result has no padding."""
    wire = 32 / SPEC.noc.link_bytes_per_cycle
    written = write_latency_cycles(SPEC, in_dram=True) + 13 * SPEC.costs_of(StickCosts).stick_write_cycles + wire
    read = waited_read_cycles(SPEC, 2048, in_dram=True, readers=64)
    cycles = cycles_of("1x64x7x32", "1x7x64x32", (0, 2, 1, 3))
    assert cycles == pytest.approx(ISSUES.locate_cycles + read + written)


def test_padding_is_written_by_faces_where_height_is_swapped_and_by_lines_elsewhere():
    """Two images of 32 rows become 32 of two: 30 lines of padding in two columns of faces, 14 and 16 in a face.

    A permute takes ten steps along four axes to place a tile (four divisions, twice three products), and seven to place
    one of padding, whose lines then go to a page that is known.
    """
    swapped, reversed_axes = (
        cycles_of(source, target, axes)
        for source, target, axes in (
            ("1x2x32x32", "1x32x2x32", (0, 2, 1, 3)),
            ("2x1x32x32", "32x1x2x32", (2, 1, 0, 3)),
        )
    )
    by_faces, by_lines = 2 * 2 * LINE, 2 * 30 * ISSUES.read_issue_cycles  # one of the 32 tiles of padding a core
    assert reversed_axes - swapped == pytest.approx(by_lines - by_faces + (7 + 10) * ISSUES.axis_cycles)


def test_earlier_releases_write_all_padding_by_lines():
    """38 tiles of 13 lines of padding in two columns of faces are on 20 cores, two on most."""
    case, small = ("1x19x19x64", "1x19x19x64", (0, 2, 1, 3)), SPEC.replace(grid_cols=5, grid_rows=4)
    later = cycles_of(*case, small.replace(release="2025")) - cycles_of(*case, small)
    assert later == pytest.approx(2 * 2 * (13 * ISSUES.read_issue_cycles - LINE))
