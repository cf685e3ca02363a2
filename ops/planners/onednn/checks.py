"""From the arguments of oneDNN's four operations to a `Deconvolution`; all errors are raised here, before work."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from operator import index
from typing import Any, Final, NamedTuple

import numpy as np

from device.errors import ArgumentError, shown
from device.numbers.formats import BFLOAT16, FLOAT16, FLOAT32, DataFormat
from ops.programs.patch_matmul.op import ALL_PHASES, Precision, Slicing, slicing_of
from ops.programs.patch_matmul.values import WEIGHTS_FORMATS, canonical_shape
from ops.reference import Geometry, automatic_padding, input_size_of, plan_geometry


@dataclass(frozen=True, slots=True, kw_only=True)
class Deconvolution:
    """A transposed convolution; source and destination are always the forward operation's."""

    geometry: Geometry  # Its axes, with all padding resolved: the output size is that of the destination
    batch: int
    in_channels: int  # I, of the source
    out_channels: int  # O, of the destination
    groups: int  # Groups; they divide both
    data_format: DataFormat  # Type of all tensors
    out_format: DataFormat | None = None  # Type of the destination, if it differs
    precision: Precision = Precision.IEEE  # What results should be like
    fidelity_phases: int = ALL_PHASES  # Fidelity phases, where precision is that of the device
    channels_last: bool = True  # Tensors are [N, *spatial, C], not [N, C, *spatial]
    weights_format: str = "XOI"  # Order of the axes of the weights: "IOX", "XOI", "OIX" or "XIO"

    @property
    def slicing(self) -> Slicing:
        """The slicing of its operands for multiplication."""
        return slicing_of(self.data_format, self.precision, fidelity_phases=self.fidelity_phases)

    @property
    def host_type(self) -> np.dtype[Any]:
        """Numpy type of the caller's tensors and of the result."""
        wide = self.precision is Precision.FLOAT64
        return np.dtype(np.float64) if wide else self.data_format.storage

    @property
    def dst_format(self) -> DataFormat:
        """Type of the destination."""
        return self.out_format or self.data_format

    @property
    def useful_flops(self) -> int:
        """Multiplications and additions of the definition, the same in all three directions."""
        met = prod(sum(axis.reach(tap).inputs for tap in range(axis.kernel)) for axis in self.geometry.axes)
        return 2 * self.batch * self.in_channels * (self.out_channels // self.groups) * met

    @property
    def src_shape(self) -> tuple[int, ...]:
        """Shape of the source, in the caller's order."""
        return ordered(self.batch, self.in_channels, self.geometry.input_shape, channels_last=self.channels_last)

    @property
    def dst_shape(self) -> tuple[int, ...]:
        """Shape of the destination, in the caller's order."""
        return ordered(self.batch, self.out_channels, self.geometry.output_shape, channels_last=self.channels_last)


def ordered(batch: int, channels: int, spatial: tuple[int, ...], *, channels_last: bool) -> tuple[int, ...]:
    """A shape as [N, *spatial, C] or [N, C, *spatial]."""
    return (batch, *spatial, channels) if channels_last else (batch, channels, *spatial)


AUTO_PADS: Final = ("none", "same_upper", "same_lower", "valid")
DATA_FORMATS: Final = ("NXC", "NCX")
LEAST: Final = {"strides": 1, "pads_begin": 0, "pads_end": 0, "dilations": 1, "output_padding": 0}  # of lists


class Names(NamedTuple):
    """The names of an operation's arguments, and its default layout of weights."""

    operation: str
    src: str = "src"
    diff_dst: str = "diff_dst"  # The gradient of the destination
    weights_shape: str = "weights_shape"
    weights_format: str = "weights_format"  # The order of the weights' axes
    usual_format: str = "XOI"

    def error(self, text: str) -> ArgumentError:
        """An error in the operation's name."""
        return ArgumentError(f"{self.operation}: {text}")


FORWARD: Final = Names(operation="ConvTranspose")
BACKWARD_DATA: Final = Names(operation="ConvTransposeBackwardData")
BACKWARD_WEIGHTS: Final = Names(operation="ConvTransposeBackwardWeights")
BACKPROP_FILTERS: Final = Names(
    operation="ConvTransposeBackpropFilters",
    src="input_forward",
    diff_dst="output_delta",
    weights_shape="filter_shape",
    weights_format="filter_format",
    usual_format="XIO",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Checked attributes."""

    strides: tuple[int, ...]  # For every spatial axis, at least 1
    pads_begin: tuple[int, ...]  # At least 0
    pads_end: tuple[int, ...]  # At least 0
    dilations: tuple[int, ...]  # At least 1
    auto_pad: str  # In lower case
    output_padding: tuple[int, ...] | None  # At least 0; None if it was not given
    groups: int  # At least 1
    data_format: str  # "NXC" or "NCX"
    weights_format: str  # One of the formats that the operation knows

    def padding(self, kernel: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Padding at the beginning and at the end of every axis, for a kernel."""
        if self.auto_pad == "none":
            return self.pads_begin, self.pads_end
        if self.auto_pad == "valid":
            return (0,) * len(kernel), (0,) * len(kernel)
        pairs = [
            automatic_padding(size, stride, dilation, extra_first=self.auto_pad == "same_lower")
            for size, stride, dilation in zip(kernel, self.strides, self.dilations, strict=True)
        ]
        return tuple(before for before, _ in pairs), tuple(after for _, after in pairs)


def check_attributes(attributes: Mapping[str, Any], *, rank: int, names: Names, formats: Sequence[str]) -> Attributes:
    """Attributes by the specification's names; raises ArgumentError for one that is missing, malformed or unknown."""
    known = (*LEAST, "auto_pad", "data_format", "groups", names.weights_format)
    unknown = sorted(set(attributes).difference(known))
    if unknown:
        raise names.error(f"{unknown[0]!r} is no attribute of this operation; its attributes are {', '.join(known)}")
    lists: dict[str, Any] = {name: _list(names, name, attributes.get(name), rank) for name in LEAST}
    for name, value in lists.items():
        if value is None and name != "output_padding":
            raise names.error(
                f"{name} is required, a list with one integer of at least {LEAST[name]} for each of the {rank} spatial "
                "axes; it is missing"
            )
    auto_pad = attributes.get("auto_pad")
    folded = "none" if auto_pad is None else auto_pad.lower() if isinstance(auto_pad, str) else None

    def word(name: str, value: Any, words: Sequence[str]) -> str:
        if not isinstance(value, str) or value not in words:
            raise names.error(f"{name} must be one of {', '.join(words)}, not {shown(attributes.get(name))}")
        return value

    return Attributes(
        **lists,
        auto_pad=word("auto_pad", folded, AUTO_PADS),
        groups=_groups(names, attributes.get("groups")),
        data_format=word("data_format", attributes.get("data_format", DATA_FORMATS[0]), DATA_FORMATS),
        weights_format=word(names.weights_format, attributes.get(names.weights_format), formats),
    )


def integers(names: Names, name: str, value: Any) -> tuple[int, ...]:
    """A list of integers as a tuple; raises ArgumentError for any other value."""
    with suppress(TypeError):
        numbers = tuple(value)
        if not isinstance(value, str | bytes) and not any(isinstance(number, bool) for number in numbers):
            return tuple(map(index, numbers))
    raise names.error(f"{name} must be a list of integers, not {shown(value)}")


def _list(names: Names, name: str, value: Any, rank: int) -> tuple[int, ...] | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        raise names.error(f"{name} must be a list of integers, not {value}; write {[value] * rank}")
    numbers = integers(names, name, value)
    if len(numbers) != rank:
        raise names.error(f"{name} must have one entry for each of the {rank} spatial axes, not {list(numbers)}")
    if min(numbers) < LEAST[name]:
        raise names.error(f"{name} must be at least {LEAST[name]} on every axis, not {list(numbers)}")
    return numbers


def _groups(names: Names, value: Any) -> int:
    with suppress(TypeError):
        groups = 1 if value is None else index(value)
        if groups < 1 or isinstance(value, bool):
            raise names.error(f"groups must be at least 1, not {shown(value)}")
        return groups
    raise names.error(f"groups must be an integer, not {shown(value)}")


TYPES: Final = (FLOAT32, BFLOAT16, FLOAT16)
_WIDE: Final = Precision.FLOAT64.value


class Operand(NamedTuple):
    """A tensor argument: its name, shape and numpy type."""

    name: str  # As the caller knows it
    shape: tuple[int, ...]
    data_format: DataFormat  # Its type; float64 is planned as float32


def operand(names: Names, name: str, array: Any, precision: Any) -> Operand:
    """An array as an argument of a call; the precision is checked elsewhere.

    Masked elements have no value and are refused.
    """
    if not isinstance(array, np.ndarray):
        raise names.error(f"{name} must be a numpy array, not {type(array).__name__}; numpy.asarray makes one of it")
    if isinstance(array, np.ma.MaskedArray) and (masked := np.count_nonzero(np.ma.getmaskarray(array))):
        raise names.error(
            f"{name} has {masked} masked elements, which are no numbers; give them a value with {name}.filled(...)"
        )
    if isinstance(precision, str) and precision == _WIDE:
        if array.dtype != np.float64:
            raise names.error(f"{name} must be of type float64 for precision {precision!r}, not {array.dtype}")
        return Operand(name, array.shape, FLOAT32)
    for data_format in TYPES:
        if array.dtype == data_format.storage:
            return Operand(name, array.shape, data_format)
    raise names.error(
        f"{name} must be of type {', '.join(str(data_format.storage) for data_format in TYPES)}, not {array.dtype}; "
        f"give {name}.astype(numpy.float32)"
    )


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
    """ConvTransposeBackwardData; arguments and errors as in `forward`.

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
    """ConvTransposeBackwardWeights, or under its older names ConvTransposeBackpropFilters; errors as in `forward`.

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
                f"{first.name} must have 1, 2 or 3 spatial axes besides batch and channels, not the shape "
                f"{first.shape}; an image is [N, H, W, C], or [N, C, H, W] for data_format NCX"
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
                f"{name} must have {self.rank + 2} sides of at least 1 for {self.rank} spatial axes, not "
                f"{tuple(shape)}; {self.names.weights_format} {self.attributes.weights_format} gives their order"
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
