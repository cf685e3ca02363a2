"""Listing a halo run by run gives what looking at every stick gives."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from ops.frame.axis import convolution_axis, transposed_axis
from ops.frame.frame import Frame
from ops.programs.halo.runs import transfers_and_padding
from ops.programs.halo.transfers import list_padding, list_transfers, stick_ranges


@st.composite
def axes(draw):
    kernel, dilation, stride = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    length = draw(st.integers(1, 12))
    if draw(st.booleans()):
        padding = (draw(st.integers(0, dilation * (kernel - 1) + 1)), draw(st.integers(0, dilation * (kernel - 1))))
        output_padding = draw(st.integers(0, 2))
        assume(length * stride + dilation * (kernel - 1) + output_padding >= sum(padding))  # there are outputs
        return transposed_axis(
            input_length=length + 1,
            kernel=kernel,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            dilation=dilation,
        )
    return convolution_axis(
        input_length=length + dilation * (kernel - 1),
        kernel=kernel,
        stride=stride,
        padding=(draw(st.integers(0, 2)), draw(st.integers(0, 2))),
        dilation=dilation,
    )


@given(axes(), axes(), st.integers(1, 3), st.booleans(), st.integers(1, 80), st.sampled_from([0, 3, 8]), st.data())
def test_both_list_the_same(rows, columns, batch, replicate, input_rows, block_rows, data):
    frame = Frame(batch=batch, rows=rows, columns=columns, replicate=replicate)
    cores = max(-(-frame.data // input_rows), data.draw(st.integers(1, 20)))
    ranges = stick_ranges(frame, output_rows=-(-frame.outputs // cores), cores=cores)
    transfers, padding = transfers_and_padding(frame, ranges, input_rows=input_rows, block_rows=block_rows)
    expected = list_transfers(frame, ranges, input_rows=input_rows, block_rows=block_rows)
    for name in ("source_core", "source_stick", "destination_core", "destination_stick", "length"):
        assert np.array_equal(getattr(transfers, name), getattr(expected, name)), name
    runs = list_padding(frame, ranges)
    for name in ("core", "stick", "length"):
        assert np.array_equal(getattr(padding, name), getattr(runs, name)), name
