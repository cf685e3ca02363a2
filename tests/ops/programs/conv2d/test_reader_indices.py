"""How long the lists are that tell readers where windows begin: against a list written output by output."""

from itertools import pairwise

from hypothesis import given, strategies as st

from ops.programs.halo.plan import reader_index_words, reader_indices_refusal
from ops.window import PaddedInput, convolution_axis, window_starts

positive = st.integers(1, 4)


@st.composite
def axes(draw):
    kernel, dilation, padding = draw(positive), draw(st.integers(1, 2)), draw(st.integers(0, 3))
    length = draw(st.integers(dilation * (kernel - 1) + 1, 14))
    return convolution_axis(
        input_length=length, kernel=kernel, stride=draw(positive), padding=(padding, padding), dilation=dilation
    )


def words(frame, outputs, block_rows):
    """Words of the list of a core: a header for each block, a pair for each run of windows one stride apart."""
    result, block = 0, 0
    while outputs:
        rows, outputs = outputs[: block_rows[block % len(block_rows)]], outputs[block_rows[block % len(block_rows)] :]
        starts = [int(window_starts(frame, output)) for output in rows]
        segments = 1 + sum(one - other != frame.columns.stride for other, one in pairwise(starts))
        result, block = result + 2 + 2 * segments, block + 1
    return result


@given(st.integers(1, 3), axes(), axes(), st.integers(1, 6), st.data())
def test_words_of_the_longest_list(batch, rows, columns, cores, data):
    frame = PaddedInput(batch=batch, rows=rows, columns=columns)
    output_rows = -(-frame.outputs // cores)
    block_rows = tuple(data.draw(st.lists(st.integers(1, output_rows), min_size=1, max_size=2)))
    shares = [range(core * output_rows, min((core + 1) * output_rows, frame.outputs)) for core in range(cores)]
    counted = reader_index_words(frame, output_rows=output_rows, cores=cores, block_rows=block_rows)
    assert counted == max(words(frame, list(share), block_rows) for share in shares)


def test_list_longer_than_the_real_library_reserves():
    assert reader_indices_refusal(64, output_rows=20) is None  # rounded up to a tile: 32 rows of 2 bytes
    refused = reader_indices_refusal(68, output_rows=32) or ""
    assert refused.startswith("Reader indices buffer page size 68 exceeds worst-case CB size 64 (")
