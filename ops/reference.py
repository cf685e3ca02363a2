"""Transposed convolution by its definition: sizes and float64 values, the reference of everything else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from device.numbers.formats import Array, div_up


class Reach(NamedTuple):
    """Inputs ``input_start .. input_stop`` (exclusive) land on outputs from ``output_start`` in steps of the stride."""

    input_start: int
    input_stop: int
    output_start: int

    @property
    def inputs(self) -> int:
        """The number of inputs inside the output."""
        return self.input_stop - self.input_start


@dataclass(frozen=True, slots=True, kw_only=True)
class TransposedAxis:
    """One spatial axis."""

    input_size: int
    kernel: int
    stride: int = 1  # Distance in the output between neighbors of the input
    dilation: int = 1  # Distance in the output between neighboring taps; 0 puts all taps on one position
    pad_before: int = 0  # Outputs cut off at the low end
    pad_after: int = 0  # Outputs cut off at the high end
    output_padding: int = 0  # Outputs added at the high end, after the cut

    def __post_init__(self) -> None:
        """Raises ValueError for sizes outside the formulas' range."""
        for name, least in (("input_size", 1), ("kernel", 1), ("stride", 1), ("dilation", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}")

    @property
    def span(self) -> int:
        """Distance between the first tap and the last."""
        return self.dilation * (self.kernel - 1)

    @property
    def strided_size(self) -> int:
        """The input with its inserted zeros."""
        return (self.input_size - 1) * self.stride + 1

    @property
    def output_size(self) -> int:
        """Positions of the output; zero or less is possible, and refused by the caller."""
        return self.strided_size + self.span - self.pad_before - self.pad_after + self.output_padding

    def reach(self, tap: int) -> Reach:
        """The inputs that tap (unmirrored index) carries into the output."""
        shift = tap * self.dilation - self.pad_before
        start = max(0, div_up(-shift, self.stride))
        stop = min(self.input_size, div_up(self.output_size - shift, self.stride))
        return Reach(start, max(start, stop), start * self.stride + shift)


@dataclass(frozen=True, slots=True)
class Geometry:
    """All spatial axes, slowest first (depth, height, width)."""

    axes: tuple[TransposedAxis, ...]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Spatial input sizes."""
        return tuple(axis.input_size for axis in self.axes)

    @property
    def kernel_shape(self) -> tuple[int, ...]:
        """Taps on every axis."""
        return tuple(axis.kernel for axis in self.axes)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Spatial output sizes."""
        return tuple(axis.output_size for axis in self.axes)


def plan_geometry(
    input_shape: Sequence[int],
    kernel: Sequence[int],
    *,
    stride: Sequence[int],
    pad_before: Sequence[int],
    pad_after: Sequence[int],
    output_padding: Sequence[int] = (),
    dilation: Sequence[int] = (),
) -> Geometry:
    """Geometry from one list per attribute, as oneDNN gives them.

    ``input_shape`` has spatial sizes only, ``dilation`` is 1-based. Output padding defaults to zeros and dilation to
    ones. Raises ValueError for lists of different lengths, or a size below its minimum.
    """
    rank = len(input_shape)
    columns = {
        "input_size": input_shape,
        "kernel": kernel,
        "stride": stride,
        "dilation": dilation or (1,) * rank,
        "pad_before": pad_before,
        "pad_after": pad_after,
        "output_padding": output_padding or (0,) * rank,
    }
    for name, values in columns.items():
        if len(values) != rank:
            raise ValueError(f"{name} must have one entry for each of the {rank} spatial axes, not {tuple(values)}")
    attributes = ({name: values[axis] for name, values in columns.items()} for axis in range(rank))
    return Geometry(tuple(TransposedAxis(**attribute) for attribute in attributes))


def automatic_padding(kernel: int, stride: int, dilation: int, *, extra_first: bool) -> tuple[int, int]:
    """Padding (before, after) that keeps ``output == stride * input`` where the kernel reaches far enough.

    Output padding is added to it. oneDNN's same_upper has the odd element last, same_lower first.
    """
    total = max(0, dilation * (kernel - 1) + 1 - stride)
    small, large = total // 2, total - total // 2
    return (large, small) if extra_first else (small, large)


def input_size_of(output_size: int, axis: TransposedAxis) -> int:
    """The input size whose transposed convolution has ``output_size`` positions (``axis.input_size`` is not read).

    Where several outputs share an input size, the remainder below the stride is dropped.
    """
    padding = axis.pad_before + axis.pad_after - axis.output_padding
    return (output_size + padding - axis.span - 1) // axis.stride + 1


AnyIndex: TypeAlias = Any  # an index of an array: an ellipsis and slices, or an ellipsis and indices


def meetings(geometry: Geometry) -> Iterator[tuple[AnyIndex, AnyIndex, AnyIndex]]:
    """The index of every tap that meets inputs, the inputs, and the outputs."""
    for tap in np.ndindex(*geometry.kernel_shape):
        reaches = [axis.reach(k) for axis, k in zip(geometry.axes, tap, strict=True)]
        if all(reach.inputs for reach in reaches):
            inputs = tuple(slice(reach.input_start, reach.input_stop) for reach in reaches)
            outputs = tuple(
                slice(reach.output_start, reach.output_start + (reach.inputs - 1) * axis.stride + 1, axis.stride)
                for reach, axis in zip(reaches, geometry.axes, strict=True)
            )
            yield (..., *tap), (..., *inputs), (..., *outputs)


def conv_transpose(
    src: Array, weights: Array, geometry: Geometry, *, bias: Array | None = None, groups: int = 1
) -> Array:
    """Transposed convolution, float64 [N, O, *output]: one matrix product and one strided addition per kernel tap."""
    batch, ins, outs = len(src), src.shape[1] // groups, weights.shape[1]
    grouped = src.astype(np.float64).reshape(batch, groups, ins, *geometry.input_shape)
    matrices = weights.astype(np.float64).reshape(groups, ins, outs, *geometry.kernel_shape)
    dst = np.zeros((batch, groups, outs, *geometry.output_shape))
    for tap, inputs, outputs in meetings(geometry):
        met = grouped[inputs]
        products = matrices[tap].swapaxes(-1, -2) @ met.reshape(*met.shape[:3], -1)
        dst[outputs] += products.reshape(batch, groups, outs, *met.shape[3:])
    dst = dst.reshape(batch, groups * outs, *geometry.output_shape)
    if bias is not None:
        dst += bias.astype(np.float64).reshape(-1, *(1 for _ in geometry.axes))
    return dst


def conv_transpose_channels_last(
    src: Array, weights: Array, geometry: Geometry, *, bias: Array | None = None, groups: int = 1
) -> Array:
    """``conv_transpose`` of src [N, *spatial, I], giving float64 [N, *output, O]; the weights stay as they are."""
    dst = conv_transpose(np.moveaxis(src, -1, 1), weights, geometry, bias=bias, groups=groups)
    return np.moveaxis(dst, 1, -1)
