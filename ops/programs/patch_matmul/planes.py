"""An image whose patches lie one position apart, whatever their step: tap by tap they are rows of one matrix.

Positions of an axis that lie a step apart become neighbors in a plane of their own. A tap then meets, under all
outputs, places of one plane in their order, from some offset on. Rows of places have the zeros around between them,
under which a product is made in vain, so that one product serves many rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from device.numbers.formats import Array
from device.numbers.integers import div_up
from ops.frame.axis import FrameAxis
from ops.programs.patch_matmul.gather import COPIED_BYTES, Each, Piece, do, runs


@dataclass(frozen=True, slots=True)
class Span:
    """What is read along an axis.

    Attributes:
        step: From one output to the next; positions with the same rest make a plane.
        rests: The rests that any tap meets.
        low: The first place of a plane that any tap meets.
        length: Places from there to the last.
    """

    step: int
    rests: tuple[int, ...]
    low: int
    length: int

    @classmethod
    def of(cls, axes: Sequence[FrameAxis]) -> "Span":
        """What output phases of an axis read, none with inserted zeros; one of them has taps."""
        met = [(*divmod(place, axis.step), axis.outputs) for axis in axes for place in _places(axis)]
        low = min(place for place, _, _ in met)
        length = max(place + outputs for place, _, outputs in met) - low
        return cls(axes[0].step, tuple(sorted({rest for _, rest, _ in met})), low, length)

    def sources(self, rest: int, inputs: int) -> tuple[slice, slice]:
        """Which places of a plane hold inputs, and which inputs."""
        begin = max(self.low, 0)
        end = max(begin, min(self.low + self.length, div_up(inputs - rest, self.step)))
        stop = end * self.step + rest if end > begin else 0
        return slice(begin - self.low, end - self.low), slice(min(begin * self.step + rest, stop), stop, self.step)


@dataclass(frozen=True, slots=True)
class Run:
    """Some outputs that are computed together.

    Attributes:
        box: Which, [N, *outputs].
        first: The place of the first.
        count: Places from there to the last.
        steps: Places from one output to the next along each axis of the box.
    """

    box: tuple[slice, ...]
    first: int
    count: int
    steps: tuple[int, ...]

    def of_outputs(self, rows: Array) -> Array:
        """What belongs to the outputs, [*box, columns], of rows of all places."""
        strides = (*(step * rows.strides[0] for step in self.steps), rows.strides[1])
        return as_strided(rows, (*(one.stop - one.start for one in self.box), rows.shape[1]), strides)


@dataclass(frozen=True)
class PlaneLayout:
    """Where everything lies in the planes of an image.

    Attributes:
        spans: What is read along each axis.
        batch: Images.
    """

    spans: tuple[Span, ...]
    batch: int

    @classmethod
    def of(cls, reaches: Sequence[Sequence[FrameAxis]], batch: int) -> "PlaneLayout":
        """For all that is going to be read along each axis."""
        return cls(tuple(Span.of(axes) for axes in reaches), batch)

    @cached_property
    def planes(self) -> tuple[tuple[int, ...], ...]:
        """The rests of every plane."""
        return tuple(product(*(one.rests for one in self.spans)))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Images, and places of each axis of a plane."""
        return (self.batch, *(one.length for one in self.spans))

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """Places from one image, and from one place of every axis, to the next."""
        return tuple(prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    @property
    def places(self) -> int:
        """Places of a plane."""
        return prod(self.shape)

    def taps(self, axes: Sequence[FrameAxis]) -> tuple[tuple[int, int], ...]:
        """The plane that each tap of an output phase meets, slowest axis first, and how far from the output's place."""
        found: list[tuple[int, int]] = []
        for places in product(*map(_places, axes)):
            plane = offset = 0
            for place, one, stride in zip(places, self.spans, self.steps[1:], strict=True):
                quotient, rest = divmod(place, one.step)
                plane = plane * len(one.rests) + one.rests.index(rest)
                offset += (quotient - one.low) * stride
            found.append((plane, offset))
        return tuple(found)

    def run(self, box: tuple[slice, ...]) -> Run:
        """The outputs of a box [N, *outputs]."""
        first = sum(one.start * step for one, step in zip(box, self.steps, strict=True))
        last = sum((one.stop - 1) * step for one, step in zip(box, self.steps, strict=True))
        return Run(box, first, last - first + 1, self.steps)

    def planes_of(self, image: Array, each: Each, *, parts: int = 1) -> Array:
        """The planes of an image, copied where they have to be.

        Args:
            image: float32 [N, *spatial, C].
            each: Carries out a function for each of several pieces.
            parts: Parts of the channels that are read one at a time.

        Returns:
            float32 [parts, planes, places, C / parts].
        """
        channels = np.moveaxis(image.reshape(*image.shape[:-1], parts, -1), -2, 0)
        as_it_is = tuple(Span(1, (0,), 0, size) for size in image.shape[1:-1])
        if self.spans == as_it_is and image.flags.c_contiguous:
            return channels.reshape(parts, 1, self.places, -1)
        made = np.empty((parts, len(self.planes), *self.shape, channels.shape[-1]), np.float32)
        each(do, list(self._copies(channels, made)))
        return made.reshape(parts, len(self.planes), self.places, -1)

    def _copies(self, channels: Array, made: Array) -> Iterator[Piece]:
        """Copies of [parts, N, *spatial, C / parts], and zeros around them."""
        every = (slice(None),) * 2
        for number, rests in enumerate(self.planes):
            target, held, read = made[:, number], list(every), list(every)
            for axis, (one, rest) in enumerate(zip(self.spans, rests, strict=True), 2):
                places, inputs = one.sources(rest, channels.shape[axis])
                target[(slice(None),) * axis + (slice(0, places.start),)] = 0
                target[(slice(None),) * axis + (slice(places.stop, None),)] = 0
                held.append(places)
                read.append(inputs)
            inside, source = target[tuple(held)], channels[tuple(read)]
            for box in runs(source.shape, COPIED_BYTES // 4):
                yield partial(np.copyto, inside[box], source[box])


def _places(axis: FrameAxis) -> list[int]:
    """What each tap of the first output meets."""
    return [axis.start + tap * axis.spacing for tap in range(axis.taps)]
