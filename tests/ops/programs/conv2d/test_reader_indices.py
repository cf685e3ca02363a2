"""The reader indices of a convolution: expanding them gives every window, once and in order."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from device.spec.parts import TransferRate
from ops.programs.conv2d.parallel_config import BLOCK, HEIGHT, WIDTH
from ops.programs.conv2d.reader_indices import (
    reader_index_words,
    reader_indices,
    reader_indices_refusal,
    transfer_rate,
    uses_split_reader,
)
from ops.window import PaddedInput, convolution_axis, window_starts

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
    frame = PaddedInput(batch=draw(st.integers(1, 3)), rows=draw(axes()), columns=draw(axes()))
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
        blocks = list(expand(words, frame.columns.stride))
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
    assert reader_indices_refusal(64, output_rows=20) is None  # rounded up to a tile: 32 rows of 2 bytes
    refused = reader_indices_refusal(68, output_rows=32) or ""
    assert refused.startswith("Reader indices buffer page size 68 exceeds worst-case CB size 64 (")


RATE = TransferRate(floor_bytes_per_ns=1.0, peak_bytes_per_ns=13.0, peak_at_bytes=64)
WORMHOLE = load_spec("wormhole_n150").reader


def test_rates_are_linear_between_the_floor_and_the_peak():
    assert [transfer_rate(RATE, size) for size in (1, 16, 32, 48, 64, 1000)] == [1.0, 1.0, 5.0, 9.0, 13.0, 13.0]


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_larger_transfers_are_no_slower(one, other):
    for rate in (WORMHOLE.local, WORMHOLE.dram, WORMHOLE.multicast):
        small, large = sorted((one, other))
        assert rate.floor_bytes_per_ns <= transfer_rate(rate, small) <= transfer_rate(rate, large)
        assert transfer_rate(rate, large) <= rate.peak_bytes_per_ns


def decide(scheme=HEIGHT, rates=WORMHOLE, **changes):
    facts = {
        "act_h_tiles": 2, "act_w_tiles": 3, "out_w_tiles": 1, "padded_channels": 32, "kernel_w": 3, "dilation_w": 1,
        "act_format": BFLOAT16, "weight_format": BFLOAT16, "out_format": BFLOAT16, "fp32_dest": False, "forced": None,
    }  # fmt: skip
    return uses_split_reader(scheme, rates, **facts | changes)


@pytest.mark.parametrize("forced", [None, True, False])
def test_what_can_not_be_split_is_not(forced):
    assert not decide(WIDTH, forced=forced)
    assert not decide(HEIGHT, act_h_tiles=1, forced=forced)
    assert not decide(BLOCK, act_h_tiles=1, forced=forced)


def test_block_always_splits_unless_told_otherwise():
    assert decide(BLOCK)
    assert not decide(BLOCK, forced=False)


def test_height_follows_the_caller():
    assert decide(HEIGHT, forced=True)
    assert not decide(HEIGHT, forced=False)


def wormhole_cycles(*, act_h, act_w, out_w, channels, burst, tilize):
    """Reference 3.7 for Wormhole, bfloat16, kernel width 3: cycles with one reader, and with two."""
    local = 0.868 + (27.84 - 0.868) * (min(burst, 1024) - 16) / (1024 - 16)
    act = 2 * act_h * 32 * channels * 3 / local
    size = out_w * act_w * 2048
    multicast = 0.318 + (25.345 - 0.318) * (min(size, 65536) - 16) / (65536 - 16)
    weights = size * (1 / 28.411 + 1 / multicast)
    tilized = tilize * act_w * act_h
    return max(act + tilized, weights), act / 2 + max(weights, tilized)


@pytest.mark.parametrize(
    ("facts", "splits"),
    [
        ({"act_h": 2, "act_w": 3, "out_w": 1, "channels": 32}, False),
        ({"act_h": 8, "act_w": 3, "out_w": 1, "channels": 32}, True),
        ({"act_h": 8, "act_w": 3, "out_w": 16, "channels": 32}, False),
    ],
)
def test_height_splits_when_the_readers_rates_say_so(facts, splits):
    """Activations in bursts of a kernel row; 61 cycles to tilize a tile."""
    one, two = wormhole_cycles(**facts, burst=2 * facts["channels"] * 3, tilize=61)
    assert (two < one) == splits
    sizes = {"act_h_tiles": facts["act_h"], "act_w_tiles": facts["act_w"], "out_w_tiles": facts["out_w"]}
    assert decide(padded_channels=facts["channels"], **sizes) == splits


def boundary(**changes):
    """The widest output block with which a HEIGHT convolution still splits."""
    return max((w for w in range(1, 200) if decide(act_h_tiles=8, out_w_tiles=w, **changes)), default=0)


def test_dilation_breaks_a_kernel_row_into_bursts():
    """Shorter bursts make activations dearer, so that more weights can be read in their shade."""
    assert boundary(dilation_w=2) > boundary(dilation_w=1) > 0
    assert boundary(dilation_w=3) == boundary(dilation_w=2)


def test_formats_count():
    assert boundary(weight_format=BFLOAT8_B) > boundary()
    assert boundary(act_format=FLOAT32) > boundary()
