"""Which inputs the taps of an axis meet, under which outputs: zeros around and between inputs are left out."""

from collections.abc import Sequence
from itertools import product
from math import gcd
from typing import NamedTuple

import numpy as np

from device.numbers.formats import Array
from ops.frame.axis import FrameAxis


class Met(NamedTuple):
    """What a tap meets under some outputs that lie evenly, and so do the inputs.

    Attributes:
        tap: The tap.
        output: The first of the outputs.
        source: The input that it meets under that.
        outputs: How many there are.
    """

    tap: int
    output: int
    source: int
    outputs: int


def distances(axis: FrameAxis) -> tuple[int, int]:
    """How far outputs lie apart under which a tap meets inputs, and how far those inputs do."""
    shared = gcd(axis.insertion, axis.step)
    return axis.insertion // shared, axis.step // shared


def met_by_taps(axis: FrameAxis, most: int) -> list[Met]:
    """What each tap meets, in pieces of so many outputs at most; taps in their order."""
    inputs, found = _inputs(axis), list[Met]()
    for tap in range(axis.taps):
        outputs = np.flatnonzero(inputs[:, tap] >= 0)
        for first in range(0, len(outputs), most):
            output, count = int(outputs[first]), min(most, len(outputs) - first)
            found.append(Met(tap, output, int(inputs[output, tap]), count))
    return found


def met_by_outputs(axes: Sequence[FrameAxis]) -> Array:
    """Outputs, taps and inputs of several axes that meet, each counted through: int64 [several, 3], by outputs."""
    each = [_inputs(axis) for axis in axes]
    rows = [[(o, t, int(one[o, t])) for o, t in np.argwhere(one >= 0).tolist()] for one in each]
    lengths = [(axis.outputs, axis.taps, axis.input_length) for axis in axes]
    return np.array(sorted(_counted(combination, lengths) for combination in product(*rows)), np.int64).reshape(-1, 3)


def _counted(places: tuple[tuple[int, int, int], ...], lengths: list[tuple[int, int, int]]) -> tuple[int, ...]:
    """Places on several axes as places in what they span."""
    counted = [0, 0, 0]
    for place, length in zip(places, lengths, strict=True):
        counted = [before * n + at for before, at, n in zip(counted, place, length, strict=True)]
    return tuple(counted)


def _inputs(axis: FrameAxis) -> Array:
    """The input that each tap meets under each output, [outputs, taps]; -1 for a zero."""
    lies = np.add.outer(np.arange(axis.outputs) * axis.step + axis.start, np.arange(axis.taps) * axis.spacing)
    inputs, between = np.divmod(lies, axis.insertion)
    there = (between == 0) & (inputs >= 0) & (inputs < axis.input_length)
    return np.where(there, inputs, -1)
