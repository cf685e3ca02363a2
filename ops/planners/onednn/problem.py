"""oneDNN's deconvolutions: attributes, operands, the problem that they define."""

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
from ops.reference import Geometry, automatic_padding


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
        """How its numbers are multiplied."""
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
    numbers = integers(names, name, value)
    if len(numbers) != rank:
        raise names.error(f"{name} must have one entry for each of the {rank} spatial axes, not {list(numbers)}")
    if min(numbers) < LEAST[name]:
        raise names.error(f"{name} must be at least {LEAST[name]} on every axis, not {list(numbers)}")
    return numbers


def _groups(names: Names, value: Any) -> int:
    if value is None:
        return 1
    try:
        groups = index(value)
    except TypeError:
        groups = None
    if groups is None:
        raise names.error(f"groups must be an integer, not {shown(value)}")
    if groups < 1 or isinstance(value, bool):
        raise names.error(f"groups must be at least 1, not {shown(value)}")
    return groups


TYPES: Final = (FLOAT32, BFLOAT16, FLOAT16)
_WIDE: Final = Precision.FLOAT64.value


class Operand(NamedTuple):
    """A tensor argument: its name, shape and numpy type, whatever holds its numbers."""

    name: str  # As the caller knows it
    shape: tuple[int, ...]
    data_format: DataFormat  # Its type; float64 is planned as float32


def operand(names: Names, name: str, array: Any, precision: Any) -> Operand:
    """An array as an argument of a call; the precision is checked elsewhere.

    Raises ArgumentError for other types than the supported numpy arrays, and for masked elements, which have no value.
    """
    if not isinstance(array, np.ndarray):
        raise names.error(f"{name} must be a numpy array, not {type(array).__name__}")
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
        f"{name} must be of type {', '.join(str(data_format.storage) for data_format in TYPES)}, not {array.dtype}"
    )
