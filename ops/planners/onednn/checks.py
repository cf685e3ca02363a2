"""From the arguments of one of the four operations to a `Deconvolution`; all errors are raised here, before work."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from device.errors import shown
from ops.planners.onednn.problem import (
    BACKWARD_DATA,
    BACKWARD_WEIGHTS,
    FORWARD,
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
    """ConvTranspose; raises ArgumentError for an argument that breaks a rule of the specification.

    ``strict`` requires an output padding smaller than the stride, as oneDNN's CPU library does.
    """
    call = _Checks(FORWARD, given, src, weights, *(() if bias is None else (bias,)))
    batch, in_channels, spatial = call.image(src)
    ins, outs, kernel = call.kernel(weights.name, weights.shape)
    call.require_groups(f"channels of {src.name}", in_channels)
    call.require_in_channels(src.name, in_channels, weights.name, ins)
    out_channels = outs * call.attributes.groups
    if bias is not None and bias.shape != (out_channels,):
        raise call.names.error(
            f"bias must have the shape ({out_channels},), one value for each channel of dst, not {bias.shape}"
        )
    padding, strides = call.output_padding, call.attributes.strides
    if strict and any(more >= stride for more, stride in zip(padding, strides, strict=True)):
        raise call.names.error(
            f"output_padding must be smaller than strides on every axis, not {list(padding)} with strides "
            f"{list(strides)}; leave strict out to allow it"
        )
    geometry = call.geometry(spatial, kernel, padding)
    if min(geometry.output_shape) < 1:
        raise call.names.error(
            f"dst must have at least 1 position on every axis, not {list(geometry.output_shape)}; use less padding or "
            "a larger src"
        )
    problem = call.problem(geometry, batch, (in_channels, out_channels), precision)
    call.require_declared("dst_shape", dst_shape, problem.dst_shape)
    return problem


def backward_data(
    diff_dst: Operand, weights: Operand, given: Mapping[str, Any], *, precision: Any, src_shape: Any = None
) -> Deconvolution:
    """ConvTransposeBackwardData; arguments and errors as of `forward`.

    Without an output padding, the part of the destination that the source size does not explain is the output padding.
    """
    call = _Checks(BACKWARD_DATA, given, diff_dst, weights)
    batch, out_channels, spatial = call.image(diff_dst)
    ins, outs, kernel = call.kernel(weights.name, weights.shape)
    call.require_groups(f"in_channels of {weights.name}", ins)
    call.require_out_channels(diff_dst.name, out_channels, weights.name, outs)
    sizes = call.source_sizes(spatial, kernel)
    if min(sizes) < 1:
        raise call.names.error(
            f"diff_src must have at least 1 position on every axis, not {list(sizes)}; {diff_dst.name} of "
            f"{list(spatial)} is too small for the kernel {list(kernel)} with this padding"
        )
    problem = call.problem(call.reaching(sizes, kernel, spatial), batch, (ins, out_channels), precision)
    call.require_declared("src_shape", src_shape, problem.src_shape)
    return problem


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
    """ConvTransposeBackwardWeights, or under its older names ConvTransposeBackpropFilters; errors as of `forward`.

    ``weights_shape`` is the stored shape of the weights; None takes the declared shape.
    """
    call = _Checks(names, given, src, diff_dst)
    stored = call.weights_shape(declared if weights_shape is None else weights_shape)
    call.require_declared("diff_weights_shape", declared, stored)
    batch, in_channels, sizes = call.image(src)
    other_batch, out_channels, spatial = call.image(diff_dst)
    if batch != other_batch:
        raise call.names.error(
            f"{names.src} and {names.diff_dst} must have the same batch, not {batch} and {other_batch}"
        )
    ins, outs, kernel = call.kernel(names.weights_shape, stored)
    call.require_groups(f"channels of {names.src}", in_channels)
    call.require_in_channels(names.src, in_channels, names.weights_shape, ins)
    call.require_out_channels(names.diff_dst, out_channels, names.weights_shape, outs)
    expected = call.source_sizes(spatial, kernel)
    if expected != sizes:
        raise call.names.error(
            f"{names.diff_dst} of {list(spatial)} belongs to {names.src} of {list(expected)} with the kernel "
            f"{list(kernel)}, these strides and this padding, not of {list(sizes)}"
        )
    return call.problem(call.reaching(sizes, kernel, spatial), batch, (in_channels, out_channels), precision)


class _Checks:
    """The checks that the three directions share, of a call with checked attributes and first tensor."""

    def __init__(self, names: Names, attributes: Mapping[str, Any], first: Operand, *others: Operand) -> None:
        self.names, self.first, self.rank = names, first, len(first.shape) - 2
        if self.rank not in RANKS:
            raise self.names.error(
                f"{first.name} must have 1, 2 or 3 spatial axes besides batch and channels, not the shape {first.shape}"
            )
        self.attributes = check_attributes(attributes, rank=self.rank, names=names, formats=WEIGHTS_FORMATS)
        self.output_padding = self.attributes.output_padding or (0,) * self.rank
        for other in others:
            if other.data_format != first.data_format:
                raise self.names.error(
                    f"{other.name} must be of the type of {first.name}, {first.data_format}, not {other.data_format}"
                )

    def image(self, image: Operand) -> tuple[int, int, tuple[int, ...]]:
        """Batch, channels and spatial sizes."""
        shape, data_format = image.shape, self.attributes.data_format
        if len(shape) != self.rank + 2:
            raise self.names.error(
                f"{image.name} must have {self.rank} spatial axes besides batch and channels, as {self.names.src} has, "
                f"not the shape {shape}"
            )
        batch, *sizes = shape
        channels = sizes.pop(-1 if data_format == "NXC" else 0)
        if min(channels, *sizes) < 1:
            raise self.names.error(
                f"{image.name} must have at least 1 channel and 1 position on every axis, not the shape {shape} with "
                f"data_format {data_format}"
            )
        return batch, channels, tuple(sizes)

    def kernel(self, name: str, shape: Sequence[int]) -> tuple[int, int, tuple[int, ...]]:
        """I, O / groups and the kernel."""
        if len(shape) != self.rank + 2 or min(shape) < 1:
            raise self.names.error(
                f"{name} must have {self.rank + 2} sides of at least 1 for {self.rank} spatial axes, not {tuple(shape)}"
            )
        ins, outs, *kernel = canonical_shape(shape, self.attributes.weights_format)
        return ins, outs, tuple(kernel)

    def require_groups(self, what: str, channels: int) -> None:
        groups = self.attributes.groups
        if channels % groups:
            raise self.names.error(f"groups must divide the {what}, but {groups} does not divide {channels}")

    def require_in_channels(self, name: str, channels: int, weights: str, ins: int) -> None:
        if ins != channels:
            raise self.names.error(
                f"in_channels of {weights} must be the {channels} channels of {name}, not {ins} "
                f"({self.names.weights_format} {self.attributes.weights_format}; groups divide out_channels, here by "
                f"{self.attributes.groups}, never in_channels)"
            )

    def require_out_channels(self, name: str, channels: int, weights: str, outs: int) -> None:
        groups = self.attributes.groups
        self.require_groups(f"channels of {name}", channels)
        if outs * groups != channels:
            raise self.names.error(
                f"out_channels / groups of {weights} must be {channels // groups}, the {channels} channels of {name} "
                f"over {groups} groups, not {outs} ({self.names.weights_format} {self.attributes.weights_format})"
            )

    def require_declared(self, name: str, declared: Any, shape: tuple[int, ...]) -> None:
        if declared is not None and integers(self.names, name, declared) != shape:
            raise self.names.error(f"{name} must be {list(shape)}, not {list(declared)}")

    def weights_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of the weights, which is an input or an attribute."""
        name, sides = self.names.weights_shape, self.rank + 2
        if shape is None:
            raise self.names.error(
                f"{name} must be given as an input or as an attribute, {sides} positive integers; it is missing"
            )
        if isinstance(shape, np.ndarray) and shape.ndim != 1:
            raise self.names.error(f"{name} must have one axis, not the shape {shape.shape}")
        sizes = integers(self.names, name, shape)
        if len(sizes) != sides or min(sizes) < 1:
            raise self.names.error(
                f"{name} must be {sides} positive integers for {self.rank} spatial axes, not {list(sizes)}"
            )
        return sizes

    def geometry(self, spatial: Sequence[int], kernel: Sequence[int], padding: Sequence[int]) -> Geometry:
        """Source sizes, kernel and output padding with the attributes."""
        before, after = self.attributes.padding(kernel)
        return plan_geometry(
            spatial,
            kernel,
            stride=self.attributes.strides,
            pad_before=before,
            pad_after=after,
            output_padding=padding,
            dilation=self.attributes.dilations,
        )

    def source_sizes(self, spatial: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
        """Spatial sizes of the source that belongs to a destination."""
        unsized = self.geometry((1,) * self.rank, kernel, self.output_padding)
        return tuple(input_size_of(size, axis) for size, axis in zip(spatial, unsized.axes, strict=True))

    def reaching(self, sizes: Sequence[int], kernel: Sequence[int], spatial: Sequence[int]) -> Geometry:
        """The geometry whose output has just the sizes of a destination."""
        bare = self.geometry(sizes, kernel, (0,) * self.rank).output_shape
        return self.geometry(sizes, kernel, [size - least for size, least in zip(spatial, bare, strict=True)])

    def problem(self, geometry: Geometry, batch: int, channels: tuple[int, int], precision: Any) -> Deconvolution:
        """The call, unless no device can hold its frame, its destination or its weights."""
        words = [choice.value for choice in Precision]
        if not isinstance(precision, str) or precision not in words:
            raise self.names.error(f"precision must be one of {', '.join(words)}, not {shown(precision)}")
        frame = prod(max(axis.strided_size + 2 * axis.span, axis.output_size) for axis in geometry.axes)
        for what, elements in (
            ("positions of the destination with inserted zeros", max(batch, 1) * frame),
            ("elements of the destination", batch * channels[1] * prod(geometry.output_shape)),
            ("elements of the weights", prod(geometry.kernel_shape) * prod(channels)),
        ):
            if elements >= POSITIONS:
                raise self.names.error(
                    f"there are {elements} {what}, more than the 32-bit addresses of a device; use smaller sizes, "
                    "strides, dilations or output_padding, or make several calls"
                )
        return Deconvolution(
            geometry=geometry,
            batch=batch,
            in_channels=channels[0],
            out_channels=channels[1],
            groups=self.attributes.groups,
            data_format=self.first.data_format,
            precision=Precision(precision),
            channels_last=self.attributes.data_format == "NXC",
            weights_format=self.attributes.weights_format,
        )
