"""Listing a halo run by run gives what looking at every stick gives."""

import numpy as np
from hypothesis import given, strategies as st

from ops.programs.halo.transfers import list_transfers, run_transfers, stick_ranges
from tests.ops.window.drawn_frames import frames


@given(frames(), st.integers(1, 80), st.integers(1, 20))
def test_both_list_the_same_transfers(frame, input_rows, cores):
    cores = max(-(-frame.data // input_rows), cores)
    ranges = stick_ranges(frame, output_rows=-(-frame.outputs // cores), cores=cores)
    transfers = run_transfers(frame, ranges, input_rows=input_rows)
    expected = list_transfers(frame, ranges, input_rows=input_rows)
    for name in ("source_core", "source_stick", "destination_core", "destination_stick", "length"):
        assert np.array_equal(getattr(transfers, name), getattr(expected, name)), name
