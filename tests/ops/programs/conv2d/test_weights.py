"""Weights and bias as a program reads them: each element where the rules put it; which preparation serves which use."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.host.compiling import numba_installed
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32, bit_patterns, quantize, round_up
from ops.programs.conv2d import weights
from ops.programs.conv2d.weights import (
    AsWanted,
    PrepareBias,
    PrepareWeights,
    WeightsLayout,
    misfit,
    prepare_bias,
    prepare_weights,
    row_order,
)
from tests.shards import BLOCK, HEIGHT, WIDTH

INTERLEAVED = TensorMemoryLayout.INTERLEAVED


@st.composite
def layouts(draw):
    groups, scheme, shards = draw(st.integers(1, 4)), draw(st.sampled_from([HEIGHT, BLOCK, WIDTH, INTERLEAVED])), 1
    channels, out_channels = groups * draw(st.integers(1, 20)), groups * draw(st.integers(1, 20))
    raw_kernel, folded = (draw(st.integers(1, 3)), draw(st.integers(1, 3))), (1, 1)
    out_first = draw(st.booleans())
    if out_first and draw(st.booleans()):
        folded = draw(st.sampled_from([(2, 2), (1, 2), (3, 2)]))
    in_channels = channels * folded[0] * folded[1]
    if scheme is BLOCK:
        shards = draw(st.integers(1, 4))
    align = 8 if scheme in (HEIGHT, BLOCK) else 32
    return WeightsLayout(
        in_channels=in_channels,
        out_channels=out_channels,
        groups=groups,
        out_first=out_first,
        folded=folded,
        raw_kernel=raw_kernel,
        kernel=(-(-raw_kernel[0] // folded[0]), -(-raw_kernel[1] // folded[1])),
        mirror=folded == (1, 1) and draw(st.booleans()),
        full_inner_dim=draw(st.booleans()),
        scheme=scheme,
        padded_in_channels=round_up(in_channels, align * shards),
        padded_out_channels=round_up(out_channels, 32 * draw(st.integers(1, 3))),
        channel_shards=shards,
        k_block_rows=32 * draw(st.integers(1, 4)) if scheme is WIDTH else 32,
        data_format=draw(st.sampled_from([FLOAT32, BFLOAT16, BFLOAT8_B, BFLOAT4_B])),
    )


def row_of(layout, row, col, channel):
    """The row of (kernel row, kernel column, input channel) by the rules, scheme by scheme."""
    kernel_rows, kernel_cols = layout.kernel
    size = layout.padded_in_channels // layout.channel_shards
    if layout.scheme in (WIDTH, INTERLEAVED):
        return (row * kernel_cols + col) * size + channel
    shard, channel = divmod(channel, size)
    if layout.full_inner_dim:
        return shard * round_up(kernel_rows * kernel_cols * size, 32) + (row * kernel_cols + col) * size + channel
    return (shard * kernel_rows + row) * round_up(size * kernel_cols, 32) + col * size + channel


def prepare_slowly(raw, layout):
    """The matrix element by element."""
    matrix = np.zeros((layout.rows, layout.padded_out_channels), np.float32)
    channels = layout.in_channels // (layout.folded[0] * layout.folded[1])
    ins, outs = channels // layout.groups, layout.out_channels // layout.groups
    for first, second, row, col in np.ndindex(*raw.shape):
        value, out, channel = raw[first, second, row, col], first, first // outs * ins + second
        if not layout.out_first:
            out, channel = first // ins * outs + second, first
        if layout.mirror:
            row, col = layout.kernel[0] - 1 - row, layout.kernel[1] - 1 - col
        (row, down), (col, across) = divmod(row, layout.folded[0]), divmod(col, layout.folded[1])
        channel += (down * layout.folded[1] + across) * channels
        matrix[row_of(layout, row, col, channel), out] = value
    return quantize(matrix, layout.data_format)


@given(layouts(), st.booleans())
def test_every_element_is_where_the_rules_put_it(layout, narrow):
    raw = np.random.default_rng(0).standard_normal(layout.raw_shape).astype(np.float32)
    raw = quantize(raw, BFLOAT16) if narrow else raw
    matrix = prepare_weights(raw, layout)
    assert (matrix.shape, matrix.dtype) == (layout.padded_shape[2:], layout.data_format.storage)
    assert matrix.shape[0] % 32 == 0
    assert np.array_equal(matrix.astype(np.float32), prepare_slowly(raw, layout).astype(np.float32))
    bias = np.random.default_rng(1).standard_normal((1, 1, 1, layout.out_channels)).astype(np.float32)
    row = prepare_bias(bias, layout)
    padded = np.zeros(layout.padded_out_channels, np.float32)
    padded[: layout.out_channels] = bias.reshape(-1)
    assert row.shape == layout.bias_padded_shape[2:]
    assert np.array_equal(row[0], quantize(padded, layout.data_format))
    assert not row[1:].any()


def small(**changes):
    base = {
        "in_channels": 4, "out_channels": 6, "kernel": (2, 2), "scheme": HEIGHT,
        "padded_in_channels": 8, "padded_out_channels": 32, "data_format": FLOAT32,
    }  # fmt: skip
    return WeightsLayout(**{**base, **changes})


def test_arrays_of_other_shapes():
    shape = r"^weight_tensor must have the shape .* = \(4, 6, 2, 2\), not \(6, 4, 2, 2\)$"
    with pytest.raises(ValueError, match=shape):
        prepare_weights(np.zeros((6, 4, 2, 2)), small())
    with pytest.raises(ValueError, match=r"^bias_tensor must have out_channels = 6 values, not shape \(4,\)$"):
        prepare_bias(np.zeros(4), small())


@pytest.mark.skipif(not numba_installed(), reason="numba is not installed")
@pytest.mark.parametrize(("dtype", "fmt"), [(np.float32, BFLOAT8_B), (BFLOAT16.storage, BFLOAT4_B)], ids=str)
@pytest.mark.parametrize(
    "change",
    [
        {"mirror": False},
        {"groups": 15, "padded_in_channels": 45},
        {"out_first": True, "groups": 3},
        {"scheme": BLOCK, "channel_shards": 2},
        {"scheme": WIDTH, "k_block_rows": 96},
        {"kernel": (1, 1)},
        {"kernel": (2, 2), "out_first": True},
        {"in_channels": 32, "padded_in_channels": 32, "out_channels": 64, "kernel": (4, 4)},
        {"in_channels": 48, "out_first": True, "folded": (2, 2), "kernel": (2, 1), "raw_kernel": (3, 2), "groups": 3},
    ],
    ids=str,
)
def test_compiled_loops_lay_out_the_same(monkeypatch, change, fmt, dtype):
    """Also with numbers that are too large for them, and with those that are none; several pieces at a time."""
    layout = WeightsLayout(**{
        "in_channels": 45, "out_channels": 60, "kernel": (3, 2), "scheme": HEIGHT, "padded_in_channels": 64,
        "padded_out_channels": 64, "data_format": fmt, **change,
    })  # fmt: skip
    monkeypatch.setattr(weights, "THREAD_NUMBERS", 3 * 24)
    raw = np.random.default_rng(1).standard_normal(layout.raw_shape).astype(dtype)
    raw[3, 1] *= np.float32(1e-30).astype(dtype)
    raw[5, 0] *= np.float32(1e-38).astype(dtype)
    for largest in (1.0, 3e38, np.inf, -np.nan):
        raw[4, 2, -1, -1] = largest
        result = []
        for loops in (False, True):
            monkeypatch.setattr(weights, "worth_loading", lambda module, seconds, loops=loops: loops)
            result.append(bit_patterns(prepare_weights(raw, layout)))
        assert np.array_equal(*result)


@pytest.mark.skipif(not numba_installed(), reason="numba is not installed")
def test_compiled_loops_read_weights_wherever_they_are(monkeypatch):
    """Two bytes behind a whole word, with gaps between."""
    layout = small(in_channels=8, data_format=BFLOAT8_B)
    raw = np.random.default_rng(0).standard_normal(layout.raw_shape).astype(BFLOAT16.storage)
    memory = np.zeros(2 * raw.size + 1, BFLOAT16.storage)
    monkeypatch.setattr(weights, "worth_loading", lambda module, seconds: True)
    expected = prepare_slowly(raw.astype(np.float32), layout)
    for place in (memory[1 : 1 + raw.size], memory[1::2]):
        place[...] = raw.reshape(-1)
        assert np.array_equal(prepare_weights(place.reshape(raw.shape), layout), expected)


# Which preparation serves which use; schemes are pairs of which real outputs were recorded.
ON_HEIGHT = small(in_channels=64, out_channels=32, kernel=(3, 3), padded_in_channels=64, data_format=BFLOAT16)
ON_BLOCK = replace(ON_HEIGHT, scheme=BLOCK, channel_shards=8)


def test_the_order_of_rows_by_hand():
    """Two channels in shards of four under two taps: rows of a shard are the taps and channels, then zeros."""
    order = row_order(small(in_channels=6, kernel=(1, 2), scheme=BLOCK, channel_shards=2, padded_in_channels=8))
    assert (len(order), order[:9].tolist()) == (64, [0, 1, 2, 3, 6, 7, 8, 9, -1])
    assert order[32:40].tolist() == [4, 5, -1, -1, 10, 11, -1, -1]


def test_tensors_that_nothing_prepared_and_biases():
    spec, column = (TensorSpec(shape, BFLOAT16, Layout.TILE) for shape in (ON_HEIGHT.logical_shape, (1, 1, 1, 32)))
    narrow, wide = small(in_channels=3), replace(ON_HEIGHT, out_channels=64, padded_out_channels=64)
    row = TensorSpec(narrow.logical_shape, BFLOAT16, Layout.TILE)
    for prepared, tensor, wanted, text in (
        (None, spec, PrepareWeights(ON_HEIGHT), None),
        (None, spec, PrepareWeights(ON_BLOCK), "it was not prepared, its shape is [1, 1, 576, 32], used for "),
        (None, row, PrepareWeights(narrow), "it was not prepared, "),  # of eight rows three are channels
        (AsWanted(), spec, PrepareWeights(ON_BLOCK), None),
        (PrepareBias(ON_BLOCK), column, PrepareBias(ON_HEIGHT), None),
        (None, column, PrepareBias(ON_HEIGHT), None),
        (None, spec, PrepareBias(ON_HEIGHT), "it was not prepared, its shape is [1, 1, 576, 32]"),
        (PrepareBias(wide), column, PrepareBias(ON_HEIGHT), "prepared as a bias of 64 channels in 64 columns"),
        (PrepareBias(ON_HEIGHT), column, PrepareWeights(ON_HEIGHT), "prepared as a bias of 32 channels in 32 columns"),
        (PrepareWeights(ON_HEIGHT), column, PrepareBias(ON_HEIGHT), "prepared as weights, used as a bias of 32 "),
    ):
        refused = misfit(prepared, tensor, wanted)
        assert refused is None if text is None else refused.startswith(text)
