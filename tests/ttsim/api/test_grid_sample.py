"""grid_sample as users call it: shapes, places, refusals."""

import numpy as np
import pytest

import ttsim as ttnn

IMAGE = np.arange(16 * 32, dtype=np.float32).reshape(1, 4, 4, 32) % 64


def on(device, values, dtype=ttnn.bfloat16, **places):
    return ttnn.from_numpy(np.array(values), dtype, device=device, **places)


def grid(high, wide, last):
    return np.zeros((1, high, wide, last), np.float32)


@pytest.mark.parametrize(
    ("last", "batched", "shape"), [(2, False, (1, 3, 5, 32)), (4, False, (1, 3, 10, 32)), (4, True, (1, 3, 5, 64))]
)
def test_samples_of_a_place_follow_each_other(device, last, batched, shape):
    result = ttnn.grid_sample(on(device, IMAGE), on(device, grid(3, 5, last)), batch_output_channels=batched)
    assert tuple(result.shape) == shape
    middle = IMAGE[0, 1:3, 1:3].mean((0, 1))
    assert np.array_equal(result.to_numpy().reshape(-1, 32)[-1], middle)


def test_prepared_grids_give_the_same(device):
    points = np.random.default_rng(0).uniform(-1.2, 1.2, (1, 4, 4, 2)).astype(np.float32)
    host = ttnn.from_numpy(points, ttnn.float32)
    plain = ttnn.grid_sample(on(device, IMAGE), host.to(device)).to_numpy()
    for mode in ("bilinear", "nearest"):
        prepared = ttnn.prepare_grid_sample_grid(host, (1, 4, 4, 32), mode=mode).to(device)
        result = ttnn.grid_sample(on(device, IMAGE), prepared, mode=mode, use_precomputed_grid=True)
        if mode == "bilinear":
            assert np.allclose(result.to_numpy(), plain, rtol=2**-6, atol=0.5)
        else:
            assert np.isin(result.to_numpy(), [0, *range(64)]).all()
            assert result.memory_config().is_sharded()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"grid": grid(2, 2, 3)}, "Standard grid tensor last dimension must be a multiple of 2"),
        ({"padding_mode": "border"}, "Only zeros padding mode is currently supported"),
        ({"mode": "nearest"}, "use_precomputed_grid = false is not supported with mode = 'nearest'"),
        ({"mode": "bicubic"}, "grid_sample: ttsim does not simulate mode 'bicubic'"),
        ({"batch_output_channels": True}, "batch_output_channels=True requires grid batching factor K > 1"),
        ({"image": IMAGE[..., :20]}, "Input tensor last dimension must be divisible by TILE_WIDTH (32), but got 20"),
        ({"use_precomputed_grid": True, "grid": grid(2, 2, 8)}, "Precomputed grid tensor last dimension must be a"),
    ],
)
def test_what_is_refused(device, changes, error):
    image, points = changes.pop("image", IMAGE), changes.pop("grid", grid(2, 2, 2))
    with pytest.raises((ttnn.DeviceError, ttnn.NotSimulatedError)) as raised:
        ttnn.grid_sample(on(device, image), on(device, points), **changes)
    assert str(raised.value).startswith(error)
