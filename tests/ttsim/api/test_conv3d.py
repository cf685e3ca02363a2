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


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"depth": 64}, "Weight patch size must match input patch size. got 64 vs 32"),
        ({"output_channels": 64}, "Weight output channels must match input output channels. got 32 vs 64"),
        ({"padding_mode": "reflect"}, "Padding mode must be zeros or replicate. got reflect"),
        ({"kernel_size": (3, 1, 1), "depth": 96}, "Effective kernel size exceeds padded T dimension (T_in=2, pad_t=0,"),
        ({"config": ttnn.Conv3dConfig(C_in_block=24)}, "Input channels (32) must be divisible by C_in_block (24)"),
        ({"groups": 2}, "conv3d: ttsim does not simulate groups"),
        ({"stride": (0, 1, 1)}, "stride must be greater than 0, got (0, 1, 1)"),
    ],
)
def test_what_is_refused(device, changes, error):
    with pytest.raises((ttnn.DeviceError, ttnn.ArgumentError)) as raised:
        convolved(device, **changes)
    assert str(raised.value).startswith(error)
