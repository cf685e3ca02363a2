"""From the arguments of one of the four operations to a `Deconvolution`; all errors are raised here, before work."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from device.errors import ArgumentError, shown
from device.numbers.formats import DataFormat
from ops.planners.onednn.problem import (
    BACKWARD_DATA,
    BACKWARD_WEIGHTS,
    FORWARD,
    Attributes,
    Deconvolution,
    Names,
    Operand,
    check_attributes,
    integers,
)
from ops.programs.patch_matmul.op import Precision
from ops.programs.patch_matmul.values import WEIGHTS_FORMATS, canonical_shape
from ops.reference import Geometry, input_size_of, plan_geometry

RANKS: Final = (1, 2, 3)
POSITIONS: Final = 1 << 32  # the kernels count in 32 bits


def forward(
    src: Operand,
    weights: Operand,
    bias: Operand | None,
    given: Mapping[str, Any],
    *,
    precision: Any,
    dst_shape: Any = None,
    strict: bool = False,
) -> Deconvolution:
    """ConvTranspose.

    Args:
        strict: Output padding must be smaller than the stride, as oneDNN's CPU library has it.

    Raises:
        ArgumentError: An argument breaks a rule of the text.
    """
    names = FORWARD
    rank = _rank(names, src)
    attributes = _attributes(names, given, rank)
    _same_types(names, src, weights, *(() if bias is None else (bias,)))
    batch, in_channels, spatial = _data(names, src, attributes)
    ins, outs, kernel = _kernel(names, weights.name, weights.shape, attributes, rank)
    _divisible(names, f"channels of {src.name}", in_channels, attributes.groups)
    _same_channels(names, src.name, in_channels, weights.name, ins, attributes)
    out_channels = outs * attributes.groups
    if bias is not None and bias.shape != (out_channels,):
        raise ArgumentError(
            f"{names.operation}: bias must have the shape ({out_channels},), one value for each channel of dst, not "
            f"{bias.shape}"
        )
    padding = attributes.output_padding or (0,) * rank
    _strict_padding(names, padding, attributes, strict=strict)
    geometry = _geometry(attributes, spatial, kernel, padding)
    if min(geometry.output_shape) < 1:
        raise ArgumentError(
            f"{names.operation}: dst must have at least 1 position on every axis, not {list(geometry.output_shape)}; "
            "use less padding or a larger src"
        )
    made = _made(names, attributes, geometry, batch, (in_channels, out_channels), src.data_format, precision)
    _declared(names, "dst_shape", dst_shape, made.dst_shape)
    return made


def backward_data(
    diff_dst: Operand, weights: Operand, given: Mapping[str, Any], *, precision: Any, src_shape: Any = None
) -> Deconvolution:
    """ConvTransposeBackwardData; arguments and errors are like those of `forward`.

    Without an output padding, whatever the source size leaves over of the destination is taken for it.
    """
    names = BACKWARD_DATA
    rank = _rank(names, diff_dst)
    attributes = _attributes(names, given, rank)
    _same_types(names, diff_dst, weights)
    batch, out_channels, spatial = _data(names, diff_dst, attributes)
    ins, outs, kernel = _kernel(names, weights.name, weights.shape, attributes, rank)
    _divisible(names, f"in_channels of {weights.name}", ins, attributes.groups)
    _out_channels(names, diff_dst.name, out_channels, weights.name, outs, attributes)
    sizes = _source_sizes(attributes, spatial, kernel)
    if min(sizes) < 1:
        raise ArgumentError(
            f"{names.operation}: diff_src must have at least 1 position on every axis, not {list(sizes)}; "
            f"{diff_dst.name} of {list(spatial)} is too small for the kernel {list(kernel)} with this padding"
        )
    geometry = _reaching(attributes, sizes, kernel, spatial)
    made = _made(names, attributes, geometry, batch, (ins, out_channels), diff_dst.data_format, precision)
    _declared(names, "src_shape", src_shape, made.src_shape)
    return made


def backward_weights(
    src: Operand,
    diff_dst: Operand,
    weights_shape: Any,
    given: Mapping[str, Any],
    *,
    precision: Any,
    names: Names = BACKWARD_WEIGHTS,
    declared: Any = None,
) -> Deconvolution:
    """ConvTransposeBackwardWeights, or under its older names ConvTransposeBackpropFilters.

    Args:
        weights_shape: Stored shape of the weights; None takes the declared one.

    Raises:
        ArgumentError: An argument breaks a rule of the text.
    """
    rank = _rank(names, src)
    attributes = _attributes(names, given, rank)
    _same_types(names, src, diff_dst)
    stored = _weights_shape(names, declared if weights_shape is None else weights_shape, rank)
    _declared(names, "diff_weights_shape", declared, stored)
    batch, in_channels, sizes = _data(names, src, attributes)
    other_batch, out_channels, spatial = _data(names, diff_dst, attributes)
    if batch != other_batch:
        raise ArgumentError(
            f"{names.operation}: {names.src} and {names.diff_dst} must have the same batch, not {batch} and "
            f"{other_batch}"
        )
    ins, outs, kernel = _kernel(names, names.weights_shape, stored, attributes, rank)
    _divisible(names, f"channels of {names.src}", in_channels, attributes.groups)
    _same_channels(names, names.src, in_channels, names.weights_shape, ins, attributes)
    _out_channels(names, names.diff_dst, out_channels, names.weights_shape, outs, attributes)
    expected = _source_sizes(attributes, spatial, kernel)
    if expected != sizes:
        raise ArgumentError(
            f"{names.operation}: {names.diff_dst} of {list(spatial)} belongs to {names.src} of {list(expected)} with "
            f"the kernel {list(kernel)}, these strides and this padding, not of {list(sizes)}"
        )
    geometry = _reaching(attributes, sizes, kernel, spatial)
    return _made(names, attributes, geometry, batch, (in_channels, out_channels), src.data_format, precision)


def _rank(names: Names, data: Operand) -> int:
    rank = len(data.shape) - 2
    if rank not in RANKS:
        raise ArgumentError(
            f"{names.operation}: {data.name} must have 1, 2 or 3 spatial axes besides batch and channels, not the "
            f"shape {data.shape}"
        )
    return rank


def _attributes(names: Names, given: Mapping[str, Any], rank: int) -> Attributes:
    return check_attributes(
        given, rank=rank, operation=names.operation, format_name=names.weights_format, formats=WEIGHTS_FORMATS
    )


def _same_types(names: Names, first: Operand, *others: Operand) -> None:
    for other in others:
        if other.data_format != first.data_format:
            raise ArgumentError(
                f"{names.operation}: {other.name} must be of the type of {first.name}, {first.data_format}, not "
                f"{other.data_format}"
            )


def _data(names: Names, data: Operand, attributes: Attributes) -> tuple[int, int, tuple[int, ...]]:
    """Batch, channels and spatial sizes."""
    rank = len(attributes.strides)
    if len(data.shape) != rank + 2:
        raise ArgumentError(
            f"{names.operation}: {data.name} must have {rank} spatial axes besides batch and channels, as {names.src} "
            f"has, not the shape {data.shape}"
        )
    last = attributes.data_format == "NXC"
    channels = data.shape[-1] if last else data.shape[1]
    spatial = data.shape[1:-1] if last else data.shape[2:]
    if min(channels, *spatial) < 1:
        raise ArgumentError(
            f"{names.operation}: {data.name} must have at least 1 channel and 1 position on every axis, not the shape "
            f"{data.shape} with data_format {attributes.data_format}"
        )
    return data.shape[0], channels, spatial


def _kernel(
    names: Names, name: str, shape: Sequence[int], attributes: Attributes, rank: int
) -> tuple[int, int, tuple[int, ...]]:
    """I, O / groups and the kernel."""
    if len(shape) != rank + 2 or min(shape) < 1:
        raise ArgumentError(
            f"{names.operation}: {name} must have {rank + 2} sides of at least 1 for {rank} spatial axes, not "
            f"{tuple(shape)}"
        )
    ins, outs, *kernel = canonical_shape(shape, attributes.weights_format)
    return ins, outs, tuple(kernel)


def _divisible(names: Names, what: str, channels: int, groups: int) -> None:
    if channels % groups:
        raise ArgumentError(
            f"{names.operation}: groups must divide the {what}, but {groups} does not divide {channels}"
        )


def _same_channels(names: Names, name: str, channels: int, weights: str, ins: int, attributes: Attributes) -> None:
    if ins != channels:
        raise ArgumentError(
            f"{names.operation}: in_channels of {weights} must be the {channels} channels of {name}, not {ins} "
            f"({names.weights_format} {attributes.weights_format}; groups divide out_channels, here by "
            f"{attributes.groups}, never in_channels)"
        )


def _out_channels(names: Names, name: str, channels: int, weights: str, outs: int, attributes: Attributes) -> None:
    _divisible(names, f"channels of {name}", channels, attributes.groups)
    if outs * attributes.groups != channels:
        raise ArgumentError(
            f"{names.operation}: out_channels / groups of {weights} must be {channels // attributes.groups}, the "
            f"{channels} channels of {name} over {attributes.groups} groups, not {outs} "
            f"({names.weights_format} {attributes.weights_format})"
        )


def _strict_padding(names: Names, padding: Sequence[int], attributes: Attributes, *, strict: bool) -> None:
    if strict and any(more >= stride for more, stride in zip(padding, attributes.strides, strict=True)):
        raise ArgumentError(
            f"{names.operation}: output_padding must be smaller than strides on every axis, not {list(padding)} with "
            f"strides {list(attributes.strides)}; leave strict out to allow it"
        )


def _geometry(
    attributes: Attributes, spatial: Sequence[int], kernel: Sequence[int], padding: Sequence[int]
) -> Geometry:
    before, after = attributes.padding(kernel)
    return plan_geometry(
        spatial,
        kernel,
        stride=attributes.strides,
        pad_before=before,
        pad_after=after,
        output_padding=padding,
        dilation=attributes.dilations,
    )


def _source_sizes(attributes: Attributes, spatial: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
    """Spatial sizes of the source that belongs to a destination."""
    padding = attributes.output_padding or (0,) * len(kernel)
    unsized = _geometry(attributes, (1,) * len(kernel), kernel, padding)
    return tuple(input_size_of(size, axis) for size, axis in zip(spatial, unsized.axes, strict=True))


def _reaching(attributes: Attributes, sizes: Sequence[int], kernel: Sequence[int], spatial: Sequence[int]) -> Geometry:
    """The geometry whose output has just the sizes of a destination."""
    bare = _geometry(attributes, sizes, kernel, (0,) * len(kernel))
    return _geometry(
        attributes, sizes, kernel, [size - axis.output_size for size, axis in zip(spatial, bare.axes, strict=True)]
    )


def _weights_shape(names: Names, shape: Any, rank: int) -> tuple[int, ...]:
    name = names.weights_shape
    if shape is None:
        raise ArgumentError(
            f"{names.operation}: {name} must be given as an input or as an attribute, {rank + 2} positive integers; it "
            "is missing"
        )
    if isinstance(shape, np.ndarray) and shape.ndim != 1:
        raise ArgumentError(f"{names.operation}: {name} must have one axis, not the shape {shape.shape}")
    found = integers(names.operation, name, shape)
    if len(found) != rank + 2 or min(found) < 1:
        raise ArgumentError(
            f"{names.operation}: {name} must be {rank + 2} positive integers for {rank} spatial axes, not {list(found)}"
        )
    return found


def _declared(names: Names, name: str, declared: Any, found: tuple[int, ...]) -> None:
    if declared is not None and integers(names.operation, name, declared) != found:
        raise ArgumentError(f"{names.operation}: {name} must be {list(found)}, not {list(declared)}")


def _addressable(names: Names, geometry: Geometry, batch: int, channels: tuple[int, int]) -> None:
    """Refuses what no device can hold, before anything is planned: the frame, the destination, the weights."""
    frame = prod(max(axis.strided_size + 2 * axis.span, axis.output_size) for axis in geometry.axes)
    taps = prod(axis.kernel for axis in geometry.axes)
    for what, elements in (
        ("positions of the destination with inserted zeros", max(batch, 1) * frame),
        ("elements of the destination", batch * channels[1] * prod(geometry.output_shape)),
        ("elements of the weights", taps * channels[0] * channels[1]),
    ):
        if elements >= POSITIONS:
            raise ArgumentError(
                f"{names.operation}: there are {elements} {what}, more than the 32-bit addresses of a device; use "
                "smaller sizes, strides, dilations or output_padding, or make several calls"
            )


def _made(
    names: Names,
    attributes: Attributes,
    geometry: Geometry,
    batch: int,
    channels: tuple[int, int],
    data_format: DataFormat,
    precision: Any,
) -> Deconvolution:
    words = [one.value for one in Precision]
    if not isinstance(precision, str) or precision not in words:
        raise ArgumentError(f"{names.operation}: precision must be one of {', '.join(words)}, not {shown(precision)}")
    _addressable(names, geometry, batch, channels)
    return Deconvolution(
        geometry=geometry,
        batch=batch,
        in_channels=channels[0],
        out_channels=channels[1],
        groups=attributes.groups,
        data_format=data_format,
        precision=Precision(precision),
        channels_last=attributes.data_format == "NXC",
        weights_format=attributes.weights_format,
    )
