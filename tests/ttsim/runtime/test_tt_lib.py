"""tt_lib.fallback_ops: torch on the host. Expected places of results follow tt_lib/fallback_ops of ttnn 0.81.1."""

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ttsim
from ttsim.dropin.finder import ttnn_is_ttsim

torch = pytest.importorskip("torch")
IMAGE = np.arange(2 * 4 * 6, dtype=np.float32).reshape(1, 2, 4, 6)
MATRIX = np.arange(64 * 32, dtype=np.float32).reshape(1, 1, 64, 32) % 251


@pytest.fixture
def device() -> Iterator[ttsim.Device]:
    with ttsim.open_device() as opened:
        yield opened


@pytest.fixture
def fallback_ops() -> Iterator[Any]:
    with ttnn_is_ttsim():
        yield importlib.import_module("tt_lib.fallback_ops")


def placed(values: np.ndarray, device: ttsim.Device | None, layout: Any = ttsim.ROW_MAJOR_LAYOUT) -> ttsim.Tensor:
    return ttsim.from_torch(torch.from_numpy(values), ttsim.bfloat16, layout=layout, device=device)


def numbers(tensor: ttsim.Tensor) -> list[float]:
    values: list[float] = tensor.to_numpy().astype(np.float32).reshape(-1).tolist()
    return values


def test_functions_need_no_setting(fallback_ops: Any, device: ttsim.Device) -> None:
    weight = placed(np.ones((1, 1, 1, 1), np.float32), device)  # tt_lib takes weights of any shape
    result = fallback_ops.fallback_ops.group_norm(placed(MATRIX, device), num_groups=1, weight=weight)
    expected = torch.nn.functional.group_norm(torch.from_numpy(MATRIX), 1)
    assert np.abs(result.to_numpy() - expected.numpy()).max() < 2**-6
    assert result.layout == ttsim.TILE_LAYOUT
    with pytest.raises(AttributeError, match="no attribute 'no_such_function'"):
        print(fallback_ops.no_such_function)


def test_tt_lib_is_gone_with_ttnn() -> None:
    with ttnn_is_ttsim():
        importlib.import_module("tt_lib.fallback_ops")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tt_lib.fallback_ops")


def test_a_convolution_of_images_in_the_order_of_torch(fallback_ops: Any, device: ttsim.Device) -> None:
    weights = placed(np.ones((1, 2, 1, 1), np.float32), device)
    biases = placed(np.full((1, 1, 1, 1), 2, np.float32), None)
    layer = fallback_ops.Conv2d(weights, biases=biases, in_channels=2, out_channels=1, kernel_size=1, stride=2)
    result = layer(placed(IMAGE, device))
    # Channels add up: x + (x + 24), at rows 0 and 2 and columns 0, 2 and 4, and the bias
    assert numbers(result.cpu()) == [26, 30, 34, 50, 54, 58]
    assert (result.shape, result.layout, result.device()) == ([1, 1, 2, 3], ttsim.ROW_MAJOR_LAYOUT, None)  # odd width


def test_a_layer_without_biases(fallback_ops: Any, device: ttsim.Device) -> None:
    layer = fallback_ops.Conv2d(placed(np.ones((2, 2, 1, 1), np.float32), None), None, 2, 2, 1)
    assert layer.pt_fallback.bias is None
    result = layer(placed(IMAGE, device))
    assert numbers(result)[:2] == [24, 26]
    assert result.device() is device


def test_normalizations_train_until_eval(fallback_ops: Any, device: ttsim.Device) -> None:
    ones, zeros = (placed(np.full((1, 1, 1, 2), value, np.float32), None) for value in (1, 0))
    layer = fallback_ops.BatchNorm2d(ones, zeros, zeros, ones, placed(np.zeros((1, 1, 1, 1), np.float32), None), 2)
    image = placed(IMAGE, device)
    assert numbers(layer(image))[0] == pytest.approx(-11.5 / np.sqrt(575 / 12), rel=2**-8)  # of 0 to 23
    layer = fallback_ops.BatchNorm2d(ones, zeros, zeros, ones, placed(np.zeros((1, 1, 1, 1), np.float32), None), 2)
    assert numbers(layer.eval()(image)) == [float(value) for value in range(48)]
    weights = placed(np.full((1, 1, 1, 6), 2, np.float32), None)
    rows = fallback_ops.LayerNorm(weights, weights, 6)(image)
    assert numbers(rows)[0] == pytest.approx(2 * -2.5 / np.sqrt(35 / 12) + 2, rel=2**-6)  # of 0 to 5


def test_pools_with_channels_last(fallback_ops: Any, device: ttsim.Device) -> None:
    image = placed(IMAGE, device)  # as [N, H, W, C]: 2 rows of 4 columns, 6 channels
    pooled = fallback_ops.MaxPool2d(2, channels_last=True, reshape_2d=True)(image)
    assert pooled.shape == [1, 1, 2, 6]
    assert numbers(pooled)[:6] == [30, 31, 32, 33, 34, 35]
    mean = fallback_ops.AdaptiveAvgPool2d(1)(image)
    assert (mean.shape, mean.device()) == ([1, 2, 1, 1], None)
    assert numbers(mean) == [11.5, 35.5]


def test_other_ways_to_name_shapes_and_places(fallback_ops: Any, device: ttsim.Device) -> None:
    matrix = placed(MATRIX, device, ttsim.TILE_LAYOUT)
    assert fallback_ops.reshape(matrix, 1, 2, 32, 32).layout == ttsim.TILE_LAYOUT
    rows = fallback_ops.reshape(matrix, 1, 2, 32, 32, output_layout=ttsim.ROW_MAJOR_LAYOUT, output_on_device=False)
    assert (rows.layout, rows.device()) == (ttsim.ROW_MAJOR_LAYOUT, None)
    assert numbers(fallback_ops.tensor_slice(matrix, [..., slice(0, 1), slice(2, 4)])) == [2, 3]
    assert numbers(fallback_ops.unary_fmod(matrix, 3))[:4] == [0, 1, 2, 0]
    assert [part.shape for part in fallback_ops.chunk(matrix, 2, 2)] == [[1, 1, 32, 32]] * 2


def test_tensors_on_the_host_go_to_the_default_device(fallback_ops: Any, device: ttsim.Device) -> None:
    image = placed(IMAGE, None)
    with pytest.raises(ttsim.ArgumentError, match="silu: no tensor is on a device"):
        fallback_ops.silu(image)
    ttsim.SetDefaultDevice(device)
    result = fallback_ops.silu(image)
    ttsim.SetDefaultDevice(None)
    assert result.device() is device


def test_without_values_shapes_are_known(fallback_ops: Any) -> None:
    with ttsim.open_device(values="off") as device:
        weights = placed(np.ones((4, 2, 3, 3), np.float32), device)
        layer = fallback_ops.Conv2d(weights, None, 2, 4, 3, padding=1)
        assert layer(placed(IMAGE, device)).shape == [1, 4, 4, 6]
