"""The reader indices of a convolution: expanding them gives every window, once and in order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device.errors import DeviceError
from ops.frame.axis import convolution_axis
from ops.frame.frame import Frame, window_starts
from ops.programs.conv2d.reader_indices import check_reader_indices, reader_index_words, reader_indices

positive = st.integers(1, 4)


@st.composite
def axes(draw):
    kernel, dilation = draw(positive), draw(st.integers(1, 2))
    padding = draw(st.integers(0, 3))
    return convolution_axis(
        input_length=draw(st.integers(dilation * (kernel - 1) + 1, 14)),
        kernel=kernel,
        stride=draw(positive),
        padding=(padding, padding),
        dilation=dilation,
    )


@st.composite
def convolutions(draw):
    """A frame and how its outputs are dealt: rows of a core, cores, rows of the blocks of one or two readers."""
    frame = Frame(batch=draw(st.integers(1, 3)), rows=draw(axes()), columns=draw(axes()))
    cores = draw(st.integers(1, 6))
    output_rows = -(-frame.outputs // cores)
    block_rows = tuple(draw(st.lists(st.integers(1, max(output_rows, 1)), min_size=1, max_size=2)))
    return frame, output_rows, cores, block_rows


def expand(words, step):
    """The windows of one core, block by block."""
    at = 0
    while at < len(words) and words[at]:
        count, zero = words[at : at + 2]
        assert zero == 0
        pairs = words[at + 2 : at + 2 + 2 * count].reshape(-1, 2)
        yield np.concatenate([np.arange(first, last + 1, step) for first, last in pairs])
        at += 2 + 2 * count


@given(convolutions())
def test_segments_are_the_windows(convolution):
    frame, output_rows, cores, block_rows = convolution
    made = reader_indices(frame, output_rows=output_rows, cores=cores, block_rows=block_rows)
    for core, words in enumerate(made.astype(int)):
        outputs = np.arange(core * output_rows, min((core + 1) * output_rows, frame.outputs))
        blocks = list(expand(words, frame.columns.step))
        assert all(len(block) == block_rows[n % len(block_rows)] for n, block in enumerate(blocks[:-1]))
        if len(outputs):
            windows = window_starts(frame, outputs)
            assert np.array_equal(np.concatenate(blocks), windows - windows[0])
        else:
            assert blocks == []


@given(convolutions())
def test_length_is_counted_without_the_lists(convolution):
    frame, output_rows, cores, block_rows = convolution
    arguments = {"output_rows": output_rows, "cores": cores, "block_rows": block_rows}
    assert reader_index_words(frame, **arguments) == reader_indices(frame, **arguments).shape[1]


def test_list_longer_than_the_real_library_reserves():
    check_reader_indices(64, output_rows=20)  # rounded up to a tile: 32 rows of 2 bytes
    with pytest.raises(DeviceError, match=r"^Reader indices buffer page size 68 exceeds worst-case CB size 64 \("):
        check_reader_indices(68, output_rows=32)
