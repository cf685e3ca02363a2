"""Calls that the real library computes wrongly: a strict device refuses them, another computes what a device would."""

from typing import Any

import numpy as np
import pytest

import ttsim
from device.errors import ArgumentError
from tests.sizes import conv_sizes

WIDTH, HEIGHT = ttsim.TensorMemoryLayout.WIDTH_SHARDED, ttsim.TensorMemoryLayout.HEIGHT_SHARDED


def opened(*, strict: bool = True, **options: Any) -> ttsim.Device:
    return ttsim.open_device(l1_small_size=32768, values="fast", strict=strict, **options)


def rows(count: int) -> ttsim.Conv2dSliceConfig:
    return ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceHeight, num_slices=count)


def cores(columns: int, lines: int) -> ttsim.CoreRangeSet:
    return ttsim.CoreRangeSet([ttsim.CoreRange(ttsim.CoreCoord(0, 0), ttsim.CoreCoord(columns - 1, lines - 1))])


def call(
    device: ttsim.Device,
    size: tuple[int, int],
    channels: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    *,
    padding: int = 0,
    bias: float | None = None,
    layout: Any = ttsim.ROW_MAJOR_LAYOUT,
    slices: Any = None,
    **config: Any,
) -> np.ndarray:
    """Values [outputs, out channels] of a call with random numbers, the same for the same sizes."""
    rng = np.random.default_rng(0)
    image = rng.standard_normal((1, 1, size[0] * size[1], channels[0])).astype(np.float32)
    weights = rng.standard_normal((*channels, *kernel)).astype(np.float32)
    offset = None if bias is None else ttsim.Tensor(np.full((1, 1, 1, channels[1]), bias, np.float32), ttsim.bfloat16)
    output = ttsim.conv_transpose2d(
        input_tensor=ttsim.Tensor(image, ttsim.bfloat16, layout=layout).to(device),
        weight_tensor=ttsim.Tensor(weights, ttsim.bfloat16),
        bias_tensor=offset,
        device=device,
        **conv_sizes(size[0], size[1], channels[0], channels[1], *kernel),
        stride=stride,
        padding=(padding, padding),
        conv_config=ttsim.Conv2dConfig(**config),
        dram_slice_config=slices,
    )
    values: np.ndarray = output.to_numpy()
    return values.reshape(-1, channels[1])


def correlation(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.corrcoef(first.ravel(), second.ravel())[0, 1])


def test_slices_that_the_library_chose_keep_their_scheme() -> None:
    """Section A1 of the review: under automatic slices, values after the first one were wrong."""
    small = opened().spec.replace(l1_bytes=400_000)
    device = opened(spec=small)
    shape: Any = ((24, 62), (128, 32), (3, 3), (2, 2))
    plain = call(device, *shape, padding=1, layout=ttsim.TILE_LAYOUT)
    assert correlation(call(opened(), *shape, padding=1, layout=ttsim.TILE_LAYOUT), plain) > 0.9999
    resharded = call(device, *shape, padding=1, layout=ttsim.TILE_LAYOUT, reshard_if_not_optimal=True)
    assert np.array_equal(resharded, plain)


def test_slices_on_given_cores_have_room_for_their_scheme() -> None:
    """Section A1 of the review: this call raised a raw IndexError."""
    shape: Any = ((4, 8), (128, 128), (1, 1), (1, 2))
    how: dict[str, Any] = {"layout": ttsim.TILE_LAYOUT, "slices": rows(4)}
    given = call(opened(), *shape, **how, override_sharding_config=True, core_grid=cores(8, 8))
    assert np.array_equal(given, call(opened(), *shape, **how))


def test_parts_of_width_blocks_leave_the_bias_alone() -> None:
    """Section A2 of the review."""
    shape: Any = ((3, 8), (33, 20), (2, 5), (2, 3))
    how: dict[str, Any] = {"bias": 7.0, "slices": ttsim.Conv2dL1FullSliceConfig, "shard_layout": WIDTH}
    with pytest.raises(ArgumentError, match=r"act_block_w_div cuts the 32 channels .* use a divisor of 1, such as 1$"):
        call(opened(), *shape, **how, act_block_w_div=2)
    assert set(call(opened(strict=False), *shape, **how, act_block_w_div=2).ravel()) == {7.0}
    assert len(set(call(opened(), *shape, **how, act_block_w_div=1).ravel())) > 100


def test_what_others_planned_is_refused_every_time() -> None:
    """Plans are kept for all devices of a spec: here of the arguments something is wrong, then of the plan."""
    shape: Any = ((3, 8), (33, 20), (2, 5), (2, 3))
    how: dict[str, Any] = {"slices": ttsim.Conv2dL1FullSliceConfig, "shard_layout": WIDTH}
    for wrong, text in (({"padding": 2}, "padding must not exceed"), ({"act_block_w_div": 2}, "act_block_w_div cuts")):
        call(opened(strict=False), *shape, **how, **wrong)
        for _ in range(2):
            with pytest.raises(ArgumentError, match=text):
                call(opened(), *shape, **how, **wrong)


def test_slices_repeat_edges_of_their_own() -> None:
    """Section A3 of the review."""
    shape: Any = ((12, 10), (16, 16), (3, 3), (2, 2))
    how: dict[str, Any] = {"padding": 1, "padding_mode": "Replicate"}
    with pytest.raises(
        ArgumentError, match=r"padding_mode Replicate repeats pixels .* leave dram_slice_config out, or"
    ):
        call(opened(), *shape, **how, slices=rows(3))
    whole = call(opened(), *shape, **how)
    assert np.array_equal(call(opened(strict=False), *shape, **how), whole)
    assert correlation(call(opened(strict=False), *shape, **how, slices=rows(3)), whole) < 0.99


def test_slices_that_lack_rows_leave_what_no_slice_wrote() -> None:
    """Section A7 of the review: only a warning, and NaN came back."""
    shape: Any = ((8, 8), (32, 32), (4, 4), (1, 1))
    how: dict[str, Any] = {"slices": rows(4), "output_layout": ttsim.ROW_MAJOR_LAYOUT}
    with pytest.raises(ArgumentError, match=r"^conv_transpose2d: dram_slice_config: a slice that stands for 3 x 11 .*"):
        call(opened(), *shape, **how)
    assert np.isnan(call(opened(strict=False), *shape, **how)).any()


def test_idle_cores_of_a_given_grid_are_refused() -> None:
    """Section G5 of the review: values of the real library depend on what lay in memory."""
    shape: Any = ((8, 8), (64, 32), (3, 3), (2, 2))
    how: dict[str, Any] = {"padding": 1, "slices": rows(2), "shard_layout": HEIGHT, "override_sharding_config": True}
    with pytest.raises(ArgumentError, match=r"leaves 3 of its 7 HEIGHT_SHARDED cores idle.*the 4 that this"):
        call(opened(), *shape, **how, core_grid=cores(7, 1))
    right = call(opened(), *shape, **how, core_grid=cores(4, 1))
    assert np.array_equal(call(opened(strict=False), *shape, **how, core_grid=cores(7, 1)), right)


@pytest.mark.parametrize("scheme", [HEIGHT, WIDTH])
def test_kernel_rows_in_one_block_are_right_but_for_block_shards(scheme: Any) -> None:
    """Sections G6 and S1 of the review: refused by the argument alone."""
    shape: Any = ((8, 8), (64, 32), (3, 3), (2, 2))
    how: dict[str, Any] = {"padding": 1, "slices": ttsim.Conv2dL1FullSliceConfig, "full_inner_dim": True}
    plain = call(opened(), *shape, padding=1)
    assert correlation(call(opened(), *shape, **how, shard_layout=scheme), plain) > 0.9999
    with pytest.raises(ArgumentError, match="set shard_layout to HEIGHT_SHARDED or WIDTH_SHARDED"):
        call(opened(), *shape, **how, shard_layout=ttsim.TensorMemoryLayout.BLOCK_SHARDED)
