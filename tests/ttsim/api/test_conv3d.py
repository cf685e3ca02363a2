"""experimental.conv3d as users call it."""

import numpy as np
import pytest

import ttsim as ttnn


def convolved(device, **changes):
    volume = np.arange(1 * 2 * 3 * 4 * 32, dtype=np.float32).reshape(1, 2, 3, 4, 32) % 7
    x = ttnn.from_numpy(volume, ttnn.bfloat16, device=device)
    weights = ttnn.ones((changes.pop("depth", 32), 32), layout=ttnn.TILE_LAYOUT, device=device)
    call = {"dtype": ttnn.bfloat16, "output_channels": 32, "kernel_size": (1, 1, 1)} | changes
    return volume, ttnn.experimental.conv3d(input_tensor=x, weight_tensor=weights, **call)


def test_a_kernel_of_one_adds_channels(device):
    volume, result = convolved(device, config=ttnn.Conv3dConfig(compute_with_storage_grid_size=(2, 2)))
    assert np.allclose(result.to_numpy(), volume.sum(-1, keepdims=True), rtol=2**-7)


def test_shards_are_read_as_interleaved_volumes_are(device):
    volume, whole = convolved(device)
    place = ttnn.create_sharded_memory_config((1, 1, 24, 32), ttnn.CoreGrid(y=1, x=3), ttnn.ShardStrategy.HEIGHT)
    x = ttnn.to_memory_config(ttnn.from_numpy(volume, ttnn.bfloat16, device=device), place)
    weights = ttnn.ones((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
    result = ttnn.experimental.conv3d(
        input_tensor=x, weight_tensor=weights, dtype=ttnn.bfloat16, output_channels=32, kernel_size=(1, 1, 1)
    )
    assert np.array_equal(result.to_numpy(), whole.to_numpy())


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"depth": 64}, "Weight patch size must match input patch size. got 64 vs 32"),
        ({"output_channels": 64}, "Weight output channels must match input output channels. got 32 vs 64"),
        ({"padding_mode": "reflect"}, "Padding mode must be zeros or replicate. got reflect"),
        ({"kernel_size": (3, 1, 1), "depth": 96}, "Effective kernel size exceeds padded T dimension (T_in=2, pad_t=0,"),
        ({"config": ttnn.Conv3dConfig(C_in_block=24)}, "Input channels (32) must be divisible by C_in_block (24)"),
        ({"groups": 3}, "Input channels must be divisible by groups. Got input channels 32 and groups 3"),
        ({"stride": (0, 1, 1)}, "stride must be greater than 0, got (0, 1, 1)"),
    ],
)
def test_what_is_refused(device, changes, error):
    with pytest.raises((ttnn.DeviceError, ttnn.ArgumentError)) as raised:
        convolved(device, **changes)
    assert str(raised.value).startswith(error)


def test_masks_and_frames_are_planned_without_numbers(device):
    framed = {"logical_h_mask": 2, "output_pad_h": 1, "output_pad_w": 2}
    with ttnn.open_device(values="off") as off:
        _, result = convolved(off, **framed)
        assert result.shape == [1, 2, 5, 8, 32]
    with pytest.raises(ttnn.TTSimError, match=r"^conv3d: ttsim does not calculate numbers of masked volumes, of"):
        convolved(device, **framed)


def test_prepared_weights_are_in_the_order_of_the_program(device):
    """Channels 0 to 31 of both taps, then channels 32 to 63, of which the last 16 are zeros."""
    weights = np.arange(1 * 48 * 2, dtype=np.float32).reshape(1, 48, 1, 1, 2) + 1
    host = ttnn.from_numpy(weights, ttnn.bfloat16)
    prepared = ttnn.experimental.prepare_conv3d_weights(weight_tensor=host, C_in_block=32, device=device).to_numpy()
    first, second = prepared[:64, 0].reshape(2, 32), prepared[64:, 0].reshape(2, 32)
    assert first.tolist() == [list(range(1, 65, 2)), list(range(2, 65, 2))]
    assert second[:, :16].tolist() == [list(range(65, 97, 2)), list(range(66, 97, 2))]
    assert not second[:, 16:].any()


def test_groups_are_connected_by_zeros(device):
    host = ttnn.from_numpy(np.float32([2, 3]).reshape(2, 1, 1, 1, 1), ttnn.bfloat16)
    prepared = ttnn.experimental.prepare_conv3d_weights(weight_tensor=host, groups=2, device=device)
    assert prepared.to_numpy()[:3].tolist() == [[2, 0], [0, 3], [0, 0]]


def test_weights_of_groups_on_a_device_without_values_are_prepared():
    with ttnn.open_device(values="off") as device:
        weights = ttnn.ones((64, 16, 1, 3, 3), device=device)
        prepared = ttnn.experimental.prepare_conv3d_weights(weight_tensor=weights, groups=4, device=device)
        assert prepared.shape == (9 * 64, 64)


def test_weights_of_five_axes_are_prepared_on_the_way(device):
    rng = np.random.default_rng(0)
    volume, weights = rng.integers(-3, 4, (1, 2, 2, 2, 32)), rng.integers(-3, 4, (32, 32, 2, 2, 2))
    host = ttnn.from_numpy(weights.astype(np.float32), ttnn.bfloat16)
    x = ttnn.from_numpy(volume.astype(np.float32), ttnn.bfloat16, device=device)
    result = ttnn.experimental.conv3d(
        input_tensor=x,
        weight_tensor=host,
        device=device,
        dtype=ttnn.bfloat16,
        output_channels=32,
        kernel_size=(2, 2, 2),
    )
    expected = np.einsum("dhwc,ocdhw->o", volume[0], weights)
    assert np.allclose(result.to_numpy().ravel(), expected, rtol=2**-7, atol=1)


@pytest.mark.parametrize(
    ("shape", "options", "error"),
    [
        ((32, 64, 1, 1, 1), {"C_in_block": 48}, "C_in_aligned must be divisible by C_in_block"),
        ((32, 32, 1, 1), {}, "The number of dimensions in the tensor input does not match the length"),
        ((32, 32, 1, 1, 1), {"device": None}, "prepare_conv3d_weights: the real library crashes without a device"),
    ],
)
def test_weights_that_are_not_prepared(device, shape, options, error):
    host = ttnn.from_numpy(np.ones(shape, np.float32), ttnn.bfloat16)
    with pytest.raises((ttnn.DeviceError, ttnn.ArgumentError)) as raised:
        ttnn.experimental.prepare_conv3d_weights(weight_tensor=host, **{"device": device} | options)
    assert str(raised.value).startswith(error)
