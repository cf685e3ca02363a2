"""Which prepared weights serve which use; schemes are pairs of which real outputs were recorded."""

from dataclasses import replace

import numpy as np
import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from ops.programs.conv2d.weights import (
    AsWanted,
    PrepareBias,
    PrepareWeights,
    WeightsLayout,
    misfit,
    prepare_weights,
    row_order,
)

H, B, W = (TensorMemoryLayout[f"{one}_SHARDED"] for one in ("HEIGHT", "BLOCK", "WIDTH"))
HEIGHT = WeightsLayout(
    in_channels=64,
    out_channels=32,
    kernel=(3, 3),
    scheme=H,
    padded_in_channels=64,
    padded_out_channels=32,
    data_format=BFLOAT16,
)
WIDTH = replace(HEIGHT, scheme=W, k_block_rows=576)
BLOCK = replace(HEIGHT, scheme=B, channel_shards=8)
ONE_CORE = replace(HEIGHT, scheme=B, channel_shards=1)


def spec_of(layout):
    return TensorSpec(layout.logical_shape, BFLOAT16, Layout.TILE, padded_shape=layout.padded_shape)


def fits(made, wanted):
    return misfit(PrepareWeights(made), spec_of(made), PrepareWeights(wanted)) is None


FOLDED = replace(
    HEIGHT,
    in_channels=4 * 10,
    kernel=(2, 2),
    folded=(2, 2),
    raw_kernel=(3, 4),
    out_first=True,
    mirror=False,
    whole_blocks=True,
    k_block_rows=128,
)


@pytest.mark.parametrize(
    "layout",
    [HEIGHT, WIDTH, BLOCK, replace(BLOCK, full_inner_dim=True, in_channels=40), FOLDED, replace(FOLDED, scheme=W)],
)
def test_the_order_of_rows_is_that_of_the_preparation(layout):
    shape = layout.raw_shape
    taps, channels = shape[2] * shape[3], shape[1 if layout.out_first else 0]
    numbers = np.arange(channels)[:, None] + channels * np.arange(taps)[None] + 1
    raw = np.broadcast_to(numbers.reshape(*((1, -1) if layout.out_first else (-1, 1)), *shape[2:]), shape)
    prepared = prepare_weights(raw.astype(np.float32), replace(layout, mirror=False, data_format=BFLOAT8_B))
    wanted = prepare_weights(raw.astype(np.float32), replace(layout, mirror=False))
    assert prepared.shape == wanted.shape
    assert np.array_equal(wanted[:, 0] != 0, row_order(layout) >= 0)
    rounded = (row_order(layout) + 1).astype(wanted.dtype)
    assert np.array_equal(wanted[:, 0], rounded)


@pytest.mark.parametrize(
    ("made", "wanted", "fit"),
    [
        *(
            (one, other, True)
            for one, other in ((HEIGHT, WIDTH), (WIDTH, HEIGHT), (HEIGHT, ONE_CORE), (ONE_CORE, WIDTH))
        ),
        *((BLOCK, other, False) for other in (HEIGHT, ONE_CORE, WIDTH)),
        *((other, BLOCK, False) for other in (HEIGHT, ONE_CORE)),
    ],
)
def test_other_schemes_fit_where_the_matrix_is_the_same(made, wanted, fit):
    text = misfit(PrepareWeights(made), spec_of(made), PrepareWeights(wanted))
    kernel = "conv_transpose2d 64 -> 32 channels, kernel (3, 3)"
    if fit:
        assert text is None
    else:
        assert text.startswith(f"prepared for {kernel}, {made.scheme.name}")
        assert f"used for {kernel}, {wanted.scheme.name}" in text


def test_formats_and_mirrors_do_not_matter():
    assert fits(replace(HEIGHT, data_format=BFLOAT8_B, mirror=False), HEIGHT)


@pytest.mark.parametrize(
    "change",
    [
        {"in_channels": 32, "padded_in_channels": 32},
        {"in_channels": 63},
        {"kernel": (9, 1)},
        {"kernel": (1, 3)},
        {"groups": 2},
        {"out_first": True},
        {"out_channels": 31},
        {"out_channels": 64, "padded_out_channels": 64},
    ],
)
def test_other_kernels_do_not_fit(change):
    assert not fits(HEIGHT, replace(HEIGHT, **change))


def test_a_folded_window_is_its_kernel_where_rows_are_not_padded():
    whole = replace(HEIGHT, kernel=(2, 2), out_first=True)
    folded = replace(
        whole,
        kernel=(1, 1),
        folded=(2, 2),
        raw_kernel=(2, 2),
        in_channels=256,
        padded_in_channels=256,
        scheme=TensorMemoryLayout.INTERLEAVED,
    )
    assert fits(whole, folded)
    assert fits(folded, whole)


def test_a_kernel_row_may_fill_a_block():
    assert replace(FOLDED, kernel=(3, 4), folded=(1, 1), in_channels=10, padded_in_channels=16).rows == 3 * 128


def test_a_folded_kernel_is_not_the_kernel_that_it_was():
    plain = replace(FOLDED, kernel=(3, 4), folded=(1, 1), in_channels=10, padded_in_channels=16)
    assert not fits(plain, FOLDED)


def test_what_nothing_prepared_fits_where_rows_are_plain():
    spec = TensorSpec(HEIGHT.logical_shape, BFLOAT16, Layout.TILE)
    assert misfit(None, spec, PrepareWeights(HEIGHT)) is None
    assert "it was not prepared" in (misfit(None, spec, PrepareWeights(BLOCK)) or "")
    assert misfit(AsWanted(), spec, PrepareWeights(BLOCK)) is None
    narrow = replace(HEIGHT, in_channels=3, padded_in_channels=8)
    assert misfit(None, TensorSpec(narrow.logical_shape, BFLOAT16, Layout.TILE), PrepareWeights(narrow)) is not None


def test_a_bias_fits_its_columns():
    spec = TensorSpec((1, 1, 1, 32), BFLOAT16, Layout.TILE)
    wide = replace(HEIGHT, out_channels=64, padded_out_channels=64)
    assert misfit(PrepareBias(BLOCK), spec, PrepareBias(HEIGHT)) is None
    assert misfit(None, spec, PrepareBias(HEIGHT)) is None
    assert misfit(PrepareBias(wide), spec, PrepareBias(HEIGHT)) is not None
    assert misfit(PrepareBias(HEIGHT), spec, PrepareWeights(HEIGHT)) is not None
    assert misfit(PrepareWeights(HEIGHT), spec, PrepareBias(HEIGHT)) is not None
