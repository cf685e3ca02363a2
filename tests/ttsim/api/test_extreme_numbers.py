"""Section A15 of the review: infinities, NaN and overflows are ordinary to a device, and numpy warns of none."""

import warnings
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ttsim
from tests.sizes import conv_sizes
from ttsim import onednn

NUMBERS = [np.inf, 3e38, np.nan]
ACTIVATIONS = [None, ttsim.UnaryOpType.RELU, ttsim.UnaryOpType.SIGMOID, ttsim.UnaryOpType.SILU]


@pytest.fixture(params=["exact", "fast"])
def device(request: pytest.FixtureRequest) -> ttsim.Device:
    return ttsim.open_device(l1_small_size=32768, values=request.param)


@pytest.fixture(autouse=True)
def _warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def signed(shape: tuple[int, ...], number: float, dtype: Any = np.float32) -> Any:
    """A number and its negative in turns."""
    values = np.full(shape, number, dtype)
    values.reshape(-1)[::2] *= -1
    return values


@pytest.mark.parametrize(("number", "activation"), [*zip(NUMBERS, ACTIVATIONS[1:], strict=True), (np.inf, None)])
def test_a_convolution(device: ttsim.Device, number: float, activation: Any) -> None:
    image, weights, offset = (signed(shape, number) for shape in ((1, 1, 16, 32), (32, 32, 2, 2), (1, 1, 1, 32)))
    for dtype, weights_dtype in (
        (ttsim.bfloat16, ttsim.bfloat8_b),
        (ttsim.float32, ttsim.float32),
        (ttsim.bfloat16, ttsim.bfloat16),
    ):
        output = ttsim.conv_transpose2d(
            input_tensor=ttsim.Tensor(image, dtype).to(device),
            weight_tensor=ttsim.Tensor(weights, ttsim.float32),
            bias_tensor=ttsim.Tensor(offset, ttsim.float32),
            device=device,
            **conv_sizes(4, 4, 32, 32, 2, 2),
            stride=(2, 2),
            conv_config=ttsim.Conv2dConfig(
                weights_dtype=weights_dtype, activation=None if activation is None else ttsim.UnaryWithParam(activation)
            ),
            compute_config=ttsim.WormholeComputeKernelConfig(fp32_dest_acc_en=dtype is ttsim.float32),
        )
        assert output.to_numpy().shape == (1, 1, 64, 32)


@pytest.mark.parametrize(
    ("number", "dtype", "precision"),
    [
        *((number, np.float32, "ieee") for number in NUMBERS),
        (np.inf, np.float16, "ieee"),
        (3e38, np.float16, "device"),
        (np.nan, ml_dtypes.bfloat16, "ieee"),
        (3e38, ml_dtypes.bfloat16, "ieee"),
        (np.inf, np.float32, "device"),
    ],
)
def test_onednn(device: ttsim.Device, number: float, dtype: Any, precision: str) -> None:
    number = np.clip(number, -60000, 60000) if dtype is np.float16 and np.isfinite(number) else number
    src, weights, dst, bias = (
        signed(shape, number, dtype) for shape in ((1, 3, 3, 4), (3, 3, 4, 4), (1, 7, 7, 4), (4,))
    )
    axes = {"strides": [2, 2], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}
    how: dict[str, Any] = {**axes, "device": device, "precision": precision}
    onednn.conv_transpose(src, weights, bias, **how)
    onednn.conv_transpose_backward_data(dst, weights, **how)
    onednn.conv_transpose_backward_weights(src, dst, (3, 3, 4, 4), **how)
