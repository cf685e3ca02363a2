"""The four orders in which weights are stored; all are views of one array [I, O / groups, *kernel].

The division by groups is on the output side in all of them, as the shipping library has it; the printed note of the
current texts, which divides the input side, contradicts the library and the older text.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final

from device.numbers.formats import Array

# For each format, the places of I and O / groups; the kernel's axes fill the others in order.
_CHANNEL_AXES: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {"IOX": (0, 1), "OIX": (1, 0), "XOI": (-1, -2), "XIO": (-2, -1)}
)
WEIGHTS_FORMATS: Final = tuple(_CHANNEL_AXES)


@cache
def canonical_axes(weights_format: str, rank: int) -> tuple[int, ...]:
    """Which stored axis each canonical axis (I, O / groups, *kernel) is.

    Args:
        weights_format: One of `WEIGHTS_FORMATS`.
        rank: Axes of the stored array.
    """
    ins, outs = (axis % rank for axis in _CHANNEL_AXES[weights_format])
    return (ins, outs, *(axis for axis in range(rank) if axis not in (ins, outs)))


def canonical_shape(shape: Sequence[int], weights_format: str) -> tuple[int, ...]:
    """(I, O / groups, *kernel) of a stored shape."""
    return tuple(shape[axis] for axis in canonical_axes(weights_format, len(shape)))


def to_canonical(weights: Array, weights_format: str) -> Array:
    """A stored array as a view [I, O / groups, *kernel]."""
    return weights.transpose(canonical_axes(weights_format, weights.ndim))


def from_canonical(weights: Array, weights_format: str) -> Array:
    """An array [I, O / groups, *kernel] as a view in the order of a format."""
    axes = canonical_axes(weights_format, weights.ndim)
    stored = sorted(range(weights.ndim), key=lambda axis: axes[axis])
    return weights.transpose(stored)
