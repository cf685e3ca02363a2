"""Which inputs the taps of an axis meet, under which outputs: zeros around and between inputs are left out."""

from collections.abc import Sequence
from itertools import groupby, product, zip_longest
from math import gcd
from typing import NamedTuple

import numpy as np

from device.numbers.formats import Array
from ops.window import PaddedAxis


class Met(NamedTuple):
    """What a tap meets under some outputs that lie evenly, and so do the inputs."""

    tap: int
    output: int
    source: int  # The input that it meets under that
    outputs: int  # How many there are


class MetTogether(NamedTuple):
    """What two taps, or one, meet under some outputs that lie evenly, and so do the inputs."""

    output: int
    outputs: int  # How many there are
    tap: int
    source: int  # The input that it meets under the first output
    other: int  # The second tap, which comes next; -1 for none
    other_source: int  # The input that it meets; 0 for none


def distances(axis: PaddedAxis) -> tuple[int, int]:
    """How far outputs lie apart under which a tap meets inputs, and how far those inputs do."""
    shared = gcd(axis.input_dilation, axis.stride)
    return axis.input_dilation // shared, axis.stride // shared


def met_by_taps(axis: PaddedAxis, most: int) -> list[Met]:
    """What each tap meets, in pieces of so many outputs at most; taps in their order."""
    inputs, found = _inputs(axis), list[Met]()
    for tap in range(axis.kernel):
        outputs = np.flatnonzero(inputs[:, tap] >= 0)
        for first in range(0, len(outputs), most):
            output, count = int(outputs[first]), min(most, len(outputs) - first)
            found.append(Met(tap, output, int(inputs[output, tap]), count))
    return found


def met_two_at_a_time(axis: PaddedAxis) -> list[MetTogether]:
    """What taps meet, two at a time where two meet anything: those of an output follow each other in their order."""
    inputs, (apart, _) = _inputs(axis), distances(axis)
    found: list[MetTogether] = []
    for first in range(min(apart, axis.outputs)):
        outputs = range(first, axis.outputs, apart)
        for taps, several in groupby(outputs, key=lambda output: tuple(np.flatnonzero(inputs[output] >= 0).tolist())):
            alike = list(several)
            of_first = [(tap, int(inputs[alike[0], tap])) for tap in taps]
            pairs = zip_longest(of_first[::2], of_first[1::2], fillvalue=(-1, 0))
            found.extend(MetTogether(alike[0], len(alike), *one, *other) for one, other in pairs)
    return found


def met_by_outputs(axes: Sequence[PaddedAxis]) -> Array:
    """Outputs, taps and inputs of several axes that meet, each counted through: int64 [several, 3], by outputs."""
    each = [_inputs(axis) for axis in axes]
    rows = [[(o, t, int(one[o, t])) for o, t in np.argwhere(one >= 0).tolist()] for one in each]
    lengths = [(axis.outputs, axis.kernel, axis.input_length) for axis in axes]
    return np.array(sorted(_counted(combination, lengths) for combination in product(*rows)), np.int64).reshape(-1, 3)


def _counted(places: tuple[tuple[int, int, int], ...], lengths: list[tuple[int, int, int]]) -> tuple[int, ...]:
    """Places on several axes as places in what they span."""
    counted = [0, 0, 0]
    for place, length in zip(places, lengths, strict=True):
        counted = [before * n + at for before, at, n in zip(counted, place, length, strict=True)]
    return tuple(counted)


def _inputs(axis: PaddedAxis) -> Array:
    """The input that each tap meets under each output, [outputs, taps]; -1 for a zero."""
    lies = np.add.outer(np.arange(axis.outputs) * axis.stride + axis.start, np.arange(axis.kernel) * axis.dilation)
    inputs, between = np.divmod(lies, axis.input_dilation)
    there = (between == 0) & (inputs >= 0) & (inputs < axis.input_length)
    return np.where(there, inputs, -1)
