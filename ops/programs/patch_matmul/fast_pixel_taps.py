"""Pixels times patches tap by tap: the sum over all positions of one tap is a product of two matrices as they lie.

The image is given the zeros between its rows that the planes of the other one have, so that both have the same places.
A zero times what is no number is none, either: then the sums are left to those who gather patches.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from math import prod

import numpy as np

from device.host.products import add_product
from device.numbers.formats import Array
from device.numbers.integers import div_up
from ops.frame.axis import FrameAxis
from ops.programs.patch_matmul.fast_taps import LEAST_DEPTH, MOST_KEPT, MOST_NEEDLESS
from ops.programs.patch_matmul.gather import LEAST_ROWS, Each, copy_in_pieces, do, runs
from ops.programs.patch_matmul.planes import PlaneLayout, Run

LEAST_SUMS = 16  # that the work is cut into where positions are enough: a sum for each tap and some positions


@dataclass(frozen=True, slots=True)
class PixelTapsLayout:
    """What lies where.

    Attributes:
        planes: The planes of the other image.
        met: The plane that each tap meets, and how far from the position's place.
        sections: Positions that are added up one after the other, for several sums that are added at the end.
    """

    planes: PlaneLayout
    met: tuple[tuple[int, int], ...]
    sections: tuple[tuple[Run, ...], ...]


@lru_cache(MOST_KEPT)
def layout_by_taps(axes: tuple[FrameAxis, ...], batch: int, ins: int, outs: int, parts: int) -> PixelTapsLayout | None:
    """How pixels and patches are multiplied tap by tap; None if it takes less to gather patches.

    Args:
        axes: Of the patches.
        batch: Images.
        ins: Channels of a part of the image.
        outs: Channels of a part of the other image.
        parts: Parts.
    """
    counts = (batch, *(axis.outputs for axis in axes))
    taps, positions = prod(axis.taps for axis in axes), prod(counts)
    if min(ins, outs) < LEAST_DEPTH or taps < 2 or positions < LEAST_ROWS:
        return None
    planes = PlaneLayout.of([[axis] for axis in axes], batch)
    if planes.places > MOST_NEEDLESS * positions:
        return None
    sections = min(div_up(LEAST_SUMS, parts * taps), positions // LEAST_ROWS)
    rows = max(LEAST_ROWS, min(prod(counts[1:]), div_up(positions, sections)))
    boxes = [planes.run(box) for box in runs(counts, rows)]
    each = div_up(len(boxes), sections)
    cut = tuple(tuple(boxes[first : first + each]) for first in range(0, len(boxes), each))
    return PixelTapsLayout(planes, planes.taps(axes), cut)


def sums_by_taps(layout: PixelTapsLayout, image: Array, other: Array, parts: int, each: Each) -> Array | None:
    """The products of all positions, added up.

    Args:
        layout: What lies where.
        image: float32 [N, *positions, I].
        other: float32 [N, *spatial, O].
        parts: Parts that the channels of both fall into.
        each: Carries out a function for each of several pieces.

    Returns:
        float32 [parts, taps, I / parts, O / parts]; None if one of them is no number or infinite.
    """
    planes = layout.planes.planes_of(other, each, parts=parts)
    pixels = _with_zeros(layout.planes, image, each).reshape(layout.planes.places, parts, -1)
    taps = range(len(layout.met))
    shape = (len(layout.sections), parts, len(taps), pixels.shape[-1], planes.shape[-1])
    sums = np.empty(shape, np.float32)

    def add_up(section: int, part: int, tap: int) -> None:
        plane, offset = layout.met[tap]
        rows, total = planes[part, plane], sums[section, part, tap]
        for number, run in enumerate(layout.sections[section]):
            ours = pixels[run.first : run.first + run.count, part]
            met = rows[run.first + offset : run.first + offset + run.count]
            add_product(ours.T, met, total, start=not number)

    several = product(range(len(layout.sections)), range(parts), taps)
    each(do, [partial(add_up, *one) for one in several])
    whole = sums[0]
    for more in sums[1:]:
        whole += more
    return whole if np.isfinite(whole).all() else None


def _with_zeros(layout: PlaneLayout, image: Array, each: Each) -> Array:
    """An image [N, *positions, I] with zeros where planes have places without an output."""
    if layout.shape == image.shape[:-1]:
        return np.ascontiguousarray(image)
    made = np.zeros((*layout.shape, image.shape[-1]), np.float32)
    copy_in_pieces(made[tuple(slice(count) for count in image.shape[:-1])], image, each)
    return made
