"""Sizes of a transposed convolution on one, two or three spatial axes: the output, and which input meets which tap.

The tap rule: input position p and kernel tap k meet at output position ``p * stride + k * dilation - pad_before``.
The same sum seen from the output side, as a convolution of a frame, is `ops.frame.axis`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from device.numbers.integers import div_up


class Reach(NamedTuple):
    """Inputs ``input_start .. input_stop`` (exclusive) land on outputs from ``output_start`` in steps of the stride."""

    input_start: int
    input_stop: int
    output_start: int

    @property
    def inputs(self) -> int:
        """How many inputs land inside the output."""
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
        """Refuses what the formulas have no meaning for."""
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
        """Positions of the output; may come out at zero or below, which the caller refuses."""
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
    """Geometry from one list for every attribute, as oneDNN gives them.

    Args:
        input_shape: Spatial sizes, without batch and channels.
        kernel: Taps on every axis.
        stride: As ``strides``.
        pad_before: As ``pads_begin``.
        pad_after: As ``pads_end``.
        output_padding: Zeros if left out.
        dilation: 1-based; ones if left out.

    Raises:
        ValueError: Lists of different lengths, or a size below its least value.
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
    return Geometry(tuple(TransposedAxis(**one) for one in attributes))


def automatic_padding(kernel: int, stride: int, dilation: int, *, extra_first: bool) -> tuple[int, int]:
    """Padding (before, after) that keeps ``output == stride * input`` where the kernel reaches far enough.

    Output padding comes on top of it. oneDNN's same_upper has the odd element last, same_lower first.
    """
    total = max(0, dilation * (kernel - 1) + 1 - stride)
    small, large = total // 2, total - total // 2
    return (large, small) if extra_first else (small, large)


def input_size_of(output_size: int, axis: TransposedAxis) -> int:
    """The input size whose transposed convolution has ``output_size`` positions (``axis.input_size`` is not read).

    Where several outputs share an input size (a remainder below the stride), the remainder is dropped.
    """
    padding = axis.pad_before + axis.pad_after - axis.output_padding
    return (output_size + padding - axis.span - 1) // axis.stride + 1
