"""Weights and bias as a program reads them: every element where the rules put it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.host.compiling import numba_installed
from device.memory.memory_config import TensorMemoryLayout
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32, bit_patterns, quantize, round_up
from ops.programs.conv2d import weights
from ops.programs.conv2d.weights import PrepareBias, PrepareWeights, WeightsLayout, prepare_bias, prepare_weights
from tests.build import op_values

SCHEMES = [
    TensorMemoryLayout.HEIGHT_SHARDED,
    TensorMemoryLayout.BLOCK_SHARDED,
    TensorMemoryLayout.WIDTH_SHARDED,
    TensorMemoryLayout.INTERLEAVED,
]


@st.composite
def layouts(draw):
    groups = draw(st.integers(1, 4))
    in_channels, out_channels = groups * draw(st.integers(1, 20)), groups * draw(st.integers(1, 20))
    scheme = draw(st.sampled_from(SCHEMES))
    shards = draw(st.integers(1, 4))
    align = 8 if scheme in SCHEMES[:2] else 32
    return WeightsLayout(
        in_channels=in_channels,
        out_channels=out_channels,
        groups=groups,
        kernel=(draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        mirror=draw(st.booleans()),
        scheme=scheme,
        padded_in_channels=round_up(in_channels, align * shards),
        padded_out_channels=round_up(out_channels, 32 * draw(st.integers(1, 3))),
        channel_shards=shards,
        k_block_rows=32 * draw(st.integers(1, 4)) if scheme is TensorMemoryLayout.WIDTH_SHARDED else 32,
        data_format=draw(st.sampled_from([FLOAT32, BFLOAT16, BFLOAT8_B, BFLOAT4_B])),
    )


def raw_weights(layout):
    shape = (layout.in_channels, layout.out_channels // layout.groups, *layout.kernel)
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def row_of(layout, row, col, channel):
    """Where the rules put (kernel row, kernel column, input channel), scheme by scheme."""
    kernel_rows, kernel_cols = layout.kernel
    padded = layout.padded_in_channels
    if layout.scheme is TensorMemoryLayout.HEIGHT_SHARDED:
        return row * round_up(padded * kernel_cols, 32) + col * padded + channel
    if layout.scheme is TensorMemoryLayout.BLOCK_SHARDED:
        size = padded // layout.channel_shards
        shard = channel // size
        return (shard * kernel_rows + row) * round_up(size * kernel_cols, 32) + col * size + channel % size
    return (row * kernel_cols + col) * padded + channel


def prepare_slowly(weights, layout):
    """The matrix element by element."""
    matrix = np.zeros((layout.rows, layout.padded_out_channels), np.float32)
    ins, outs = layout.in_channels // layout.groups, layout.out_channels // layout.groups
    kernel_rows, kernel_cols = layout.kernel
    for channel, out, row, col in np.ndindex(*weights.shape):
        value = weights[channel, out, row, col]
        if layout.mirror:
            row, col = kernel_rows - 1 - row, kernel_cols - 1 - col
        matrix[row_of(layout, row, col, channel), channel // ins * outs + out] = value
    return quantize(matrix, layout.data_format)


@given(layouts())
def test_every_element_is_where_the_rules_put_it(layout):
    weights = raw_weights(layout)
    got = prepare_weights(weights, layout)
    assert got.shape == layout.padded_shape[2:]
    assert got.shape[0] % 32 == 0
    assert got.dtype == layout.data_format.storage
    assert np.array_equal(got.astype(np.float32), prepare_slowly(weights, layout).astype(np.float32))


@given(layouts())
def test_bias_is_the_first_row(layout):
    bias = np.random.default_rng(1).standard_normal((1, 1, 1, layout.out_channels)).astype(np.float32)
    got = prepare_bias(bias, layout)
    assert got.shape == layout.bias_padded_shape[2:]
    padded = np.zeros(layout.padded_out_channels, np.float32)
    padded[: layout.out_channels] = bias.reshape(-1)
    assert np.array_equal(got[0], quantize(padded, layout.data_format))
    assert not got[1:].any()


def small(**changes):
    base = {
        "in_channels": 4, "out_channels": 6, "kernel": (2, 2), "scheme": TensorMemoryLayout.HEIGHT_SHARDED,
        "padded_in_channels": 8, "padded_out_channels": 32, "data_format": FLOAT32,
    }  # fmt: skip
    return WeightsLayout(**{**base, **changes})


def test_shapes_a_user_sees():
    layout = small()
    assert (layout.logical_shape, layout.bias_logical_shape) == ((1, 1, 16, 6), (1, 1, 1, 6))
    assert (layout.padded_shape, layout.bias_padded_shape) == ((1, 1, 64, 32), (1, 1, 32, 32))


def test_the_host_prepares_weights_and_bias():
    layout = small(in_channels=2, out_channels=3, kernel=(1, 1), data_format=BFLOAT16)
    got = op_values(PrepareWeights(layout), np.arange(6, dtype=np.float32).reshape(2, 3, 1, 1))
    assert (got.shape, got.dtype) == ((1, 1, 32, 32), BFLOAT16.storage)
    assert got[0, 0, :2, :3].tolist() == [[0, 1, 2], [3, 4, 5]]
    row = op_values(PrepareBias(layout), np.array([[[[7, 8, 9]]]], np.float32))
    assert row.shape == (1, 1, 32, 32)
    assert row[0, 0, 0, :3].tolist() == [7, 8, 9]


def test_bfloat16_weights_are_taken_as_they_are():
    layout = small(data_format=BFLOAT16)
    weights = quantize(raw_weights(layout), BFLOAT16)
    assert np.array_equal(prepare_weights(weights, layout), prepare_weights(raw_weights(layout), layout))
    assert np.array_equal(prepare_bias(weights[0, :, 0, 0], layout)[0, :6], weights[0, :, 0, 0])


def test_arrays_of_other_shapes():
    shape = r"^weight_tensor must have the shape .* = \(4, 6, 2, 2\), not \(6, 4, 2, 2\)$"
    with pytest.raises(ValueError, match=shape):
        prepare_weights(np.zeros((6, 4, 2, 2)), small())
    with pytest.raises(ValueError, match=r"^bias_tensor must have out_channels = 6 values, not shape \(4,\)$"):
        prepare_bias(np.zeros(4), small())


def test_weights_of_an_ordinary_convolution_are_the_transposed_ones_with_sides_swapped():
    raw = np.arange(6 * 2 * 6, dtype=np.float32).reshape(6, 2, 2, 3)  # out channels first: 3 groups of 2 by 2
    swapped = raw.reshape(3, 2, 2, 2, 3).swapaxes(1, 2).reshape(6, 2, 2, 3)
    layout = small(in_channels=6, kernel=(2, 3), groups=3, mirror=False)
    out_first = prepare_weights(raw, replace(layout, out_first=True))
    assert out_first.tolist() == prepare_weights(swapped, layout).tolist()


JOINED = {"in_channels": 16, "out_channels": 32, "kernel": (3, 3), "channel_shards": 2, "padded_in_channels": 16}


def test_all_kernel_rows_of_a_shard_can_be_padded_together():
    raw = np.random.default_rng(0).standard_normal((16, 32, 3, 3)).astype(np.float32)
    apart, together = (
        prepare_weights(raw, small(**JOINED, scheme=SCHEMES[1], full_inner_dim=joined)) for joined in (False, True)
    )
    assert (len(apart), len(together)) == (192, 192)  # 3 x 24 -> 3 x 32, and 72 -> 96 rows
    assert together[:72].tolist() == np.concatenate([apart[row : row + 24] for row in (0, 32, 64)]).tolist()
    assert not together[72:96].any()


def test_k_blocks_of_block_shards_add_no_rows():
    """BLOCK rows are 2 shards x 3 kernel rows x 32, whatever a K block; WIDTH fills one of 160 with 9 x 16."""
    assert [small(**JOINED, k_block_rows=160, scheme=scheme).rows for scheme in SCHEMES[1:3]] == [192, 160]


@pytest.mark.skipif(not numba_installed(), reason="numba is not installed")
@pytest.mark.parametrize(("dtype", "fmt"), [(np.float32, BFLOAT8_B), (BFLOAT16.storage, BFLOAT4_B)], ids=str)
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"mirror": False},
        {"groups": 3},
        {"groups": 15, "padded_in_channels": 45},
        {"out_first": True, "groups": 3},
        {"scheme": SCHEMES[1], "channel_shards": 2},
        {"scheme": SCHEMES[2], "k_block_rows": 96},
        {"full_inner_dim": True},
        {"kernel": (1, 1)},
        {"kernel": (2, 2), "out_first": True},
        {"in_channels": 32, "padded_in_channels": 32, "out_channels": 64, "kernel": (4, 4)},
        {"in_channels": 48, "out_first": True, "folded": (2, 2), "kernel": (2, 1), "raw_kernel": (3, 2), "groups": 3},
    ],
    ids=str,
)
def test_compiled_loops_lay_out_the_same(monkeypatch, change, fmt, dtype):
    """Also with numbers that are too large for them, and with those that are none."""
    layout = WeightsLayout(**{
        "in_channels": 45, "out_channels": 60, "kernel": (3, 2), "scheme": SCHEMES[0], "padded_in_channels": 64,
        "padded_out_channels": 64, "data_format": fmt, **change,
    })  # fmt: skip
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
    """Two bytes behind a whole word, with gaps between, and several pieces at a time."""
    layout = small(in_channels=8, kernel=(2, 2), data_format=BFLOAT16)
    values = raw_weights(layout).astype(BFLOAT16.storage)
    memory = np.zeros(2 * values.size + 1, BFLOAT16.storage)
    monkeypatch.setattr(weights, "worth_loading", lambda module, seconds: True)
    monkeypatch.setattr(weights, "THREAD_NUMBERS", 3 * 24)
    expected = prepare_slowly(values.astype(np.float32), layout)
    for place in (memory[1 : 1 + values.size], memory[1::2]):
        place[...] = values.reshape(-1)
        assert np.array_equal(prepare_weights(place.reshape(values.shape), layout), expected)
