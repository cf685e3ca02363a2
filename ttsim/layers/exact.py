"""The random inputs of a layer, and what it gives in float64."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

from device.errors import ArgumentError
from ops.reference import Geometry, conv_transpose_channels_last, plan_geometry
from ttsim.types.layer import Layer

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


class Inputs(NamedTuple):
    """The numbers a layer runs on, float32 of the precision of their data types (a block float counts as bfloat16)."""

    x: Floats  # [N, H, W, C]
    w: Floats  # [C, O / groups, KH, KW]
    b: Floats | None  # [1, 1, 1, O], None without bias


def make_inputs(layer: Layer, *, values: bool = True) -> Inputs:
    """Normal random numbers; the weights are scaled so that outputs are of the order of one.

    Args:
        values: False for zeros that take no memory, where nobody computes.

    Raises:
        ArgumentError: The groups do not divide the channels.
    """
    if layer.in_channels % layer.groups or layer.out_channels % layer.groups:
        raise ArgumentError(
            f"groups must divide in_channels and out_channels, not {layer.groups} with {layer.in_channels} and "
            f"{layer.out_channels}; {math.gcd(layer.in_channels, layer.out_channels)} is the most"
        )
    image = (layer.batch_size, layer.input_height, layer.input_width, layer.in_channels)
    kernel = (layer.in_channels, layer.out_channels // layer.groups, *layer.kernel_size)
    if not values:
        zero, row = np.zeros((), np.float32), (1, 1, 1, layer.out_channels)
        return Inputs(
            x=np.broadcast_to(zero, image),
            w=np.broadcast_to(zero, kernel),
            b=np.broadcast_to(zero, row) if layer.bias else None,
        )
    rng = np.random.default_rng(layer.seed)
    x = rng.standard_normal(image, np.float32)
    w = rng.standard_normal(kernel, np.float32)
    w *= np.float32(1 / math.sqrt(max(1, layer.in_channels // layer.groups * math.prod(layer.kernel_size))))
    b = rng.standard_normal((1, 1, 1, layer.out_channels), np.float32) if layer.bias else None
    return Inputs(
        x=as_stored(x, layer.input_dtype),
        w=as_stored(w, layer.weights_dtype),
        b=None if b is None else as_stored(b, layer.weights_dtype),
    )


def as_stored(values: Floats, dtype: str) -> Floats:
    """Rounded to bfloat16 unless the data type is float32."""
    return values if dtype == "float32" else values.astype(ml_dtypes.bfloat16).astype(np.float32)


def geometry_of(layer: Layer) -> Geometry:
    """The sizes of a layer.

    Raises:
        ArgumentError: A size is below its least value.
    """
    top, bottom, left, right = layer.padding if len(layer.padding) == 4 else np.repeat(layer.padding, 2).tolist()
    return plan_geometry(
        (layer.input_height, layer.input_width),
        layer.kernel_size,
        stride=layer.stride,
        pad_before=(top, left),
        pad_after=(bottom, right),
        output_padding=layer.output_padding,
        dilation=layer.dilation,
    )


def sigmoid(values: Doubles) -> Doubles:
    """1 / (1 + exp(-x)) without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * values)))


def gelu(values: Doubles) -> Doubles:
    """The input times the normal distribution."""
    erf = np.vectorize(math.erf, otypes=[np.float64])
    return np.asarray(0.5 * values * (1 + erf(values / math.sqrt(2))))


ACTIVATIONS: Mapping[str, Callable[[Doubles], Any]] = {
    "relu": lambda values: np.maximum(values, 0),
    "relu6": lambda values: np.clip(values, 0, 6),
    "sigmoid": sigmoid,
    "silu": lambda values: values * sigmoid(values),
    "gelu": gelu,
    "tanh": np.tanh,
    "identity": lambda values: values,
}


def exact_output(layer: Layer, inputs: Inputs) -> Doubles | None:
    """The layer in float64, [N, OH, OW, O]; None where no definition is at hand (an activation, replicated padding)."""
    activation = str(layer.config.get("activation", "identity")).lower()
    replicated = str(layer.config.get("padding_mode", "zeros")).lower() != "zeros"
    if activation not in ACTIVATIONS or replicated:
        return None
    w = inputs.w if layer.mirror_kernel else inputs.w[..., ::-1, ::-1]
    b = None if inputs.b is None else inputs.b.reshape(-1)
    output = conv_transpose_channels_last(inputs.x, w, geometry_of(layer), bias=b, groups=layer.groups)
    return np.asarray(ACTIVATIONS[activation](output), dtype=np.float64)
