"""Patches times weights tap by tap: what a tap meets is multiplied where it lies, and added to the sums of its outputs.

Nothing is gathered: the positions that a tap meets are rows of a plane, one behind the other (`planes`). What lies
where is found once for calls that are alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from math import prod

import numpy as np

from device.host.products import SumOfProducts
from device.numbers.formats import Array
from device.numbers.integers import div_up
from ops.frame.axis import FrameAxis, output_phases
from ops.programs.patch_matmul.gather import LEAST_ROWS, Each, Piece, Scratch, copy_in_pieces, do, places, put, runs
from ops.programs.patch_matmul.planes import PlaneLayout, Run

LEAST_DEPTH = 32  # channels from which a tap's product alone is worth BLAS
MOST_NEEDLESS = 1.3  # positions that are multiplied for each that is wanted: above it, gathering takes less
TERM_BYTES = 512 << 10  # of positions and sums that stay in the cache while taps take turns
LEAST_PIECES = 8  # that all runs together are cut into, where each has rows enough
MOST_KEPT = 256  # calls whose layout is kept


@dataclass(frozen=True, slots=True)
class PhaseByTaps:
    """Outputs that meet the same taps.

    Attributes:
        place: Where they lie in [N, *out_shape, O].
        taps: Which taps, as places in [*taps, in, out].
        met: The plane that each of them meets, and how far from the output's place; none where only zeros are met.
        runs: Outputs that are computed together.
    """

    place: tuple[slice, ...]
    taps: tuple[tuple[int, ...], ...]
    met: tuple[tuple[int, int], ...]
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class TapsLayout:
    """What lies where.

    Attributes:
        planes: The planes of the image.
        phases: All output phases.
    """

    planes: PlaneLayout
    phases: tuple[PhaseByTaps, ...]


@lru_cache(MOST_KEPT)
def layout_by_taps(axes: tuple[FrameAxis, ...], batch: int, ins: int, outs: int, parts: int) -> TapsLayout | None:
    """How patches are multiplied tap by tap; None if it takes less to gather them.

    Args:
        axes: Of the patches.
        batch: Images.
        ins: Channels of a part of the image.
        outs: Channels of a part of the result.
        parts: Parts.
    """
    phases = [output_phases(axis) for axis in axes]
    reaches = [[phase.axis for phase in several] for several in phases]
    if ins < LEAST_DEPTH or prod(max(axis.taps for axis in several) for several in reaches) < 2:
        return None
    planes = PlaneLayout.of(reaches, batch)
    if planes.places > MOST_NEEDLESS * batch * prod(max(axis.outputs for axis in several) for several in reaches):
        return None
    made: list[PhaseByTaps] = []
    pieces = div_up(LEAST_PIECES, parts * prod(map(len, phases)))
    for combination in product(*phases):
        dense = tuple(phase.axis for phase in combination)
        counts = (batch, *(axis.outputs for axis in dense))
        rows = min(TERM_BYTES // (4 * (ins + outs)), div_up(prod(counts), pieces))
        boxes = runs(counts, max(LEAST_ROWS, rows))
        taps = tuple(product(*(phase.taps for phase in combination)))
        met = planes.taps(dense) if taps else ()
        made.append(PhaseByTaps(places(dense), taps, met, tuple(map(planes.run, boxes))))
    return TapsLayout(planes, tuple(made))


def add_up_taps(layout: TapsLayout, image: Array, dense: Array, bias: Array | None, result: Array, each: Each) -> None:
    """All output phases of all parts of the channels.

    Args:
        layout: What lies where.
        image: float32 [N, *spatial, C].
        dense: float32 [parts, *taps, C / parts, O / parts].
        bias: float32 [O] or None.
        result: [N, *out_shape, O].
        each: Carries out a function for each of several pieces.
    """
    planes = layout.planes.planes_of(image, each, parts=len(dense))
    matrices, outs, scratch = _tap_matrices(dense, each), dense.shape[-1], Scratch()
    pieces: list[Piece] = []
    for number, weights in enumerate(matrices):
        of_result = slice(number * outs, (number + 1) * outs)
        added = None if bias is None else bias[of_result]
        pieces.extend(_phases(layout, planes[number], weights, added, result[..., of_result], scratch))
    each(do, pieces)


def _phases(
    layout: TapsLayout, planes: Array, weights: Array, bias: Array | None, result: Array, scratch: Scratch
) -> Iterator[Piece]:
    """Every output phase of one part, in runs of positions."""
    for phase in layout.phases:
        place = result[phase.place]
        if not phase.taps:
            place[...] = 0 if bias is None else bias
            continue
        terms = [(planes[plane], off, weights[tap]) for (plane, off), tap in zip(phase.met, phase.taps, strict=True)]
        sums = SumOfProducts(terms)
        for run in phase.runs:
            yield partial(_sum, sums, run, bias, place[run.box], scratch)


def _sum(sums: SumOfProducts, run: Run, bias: Array | None, place: Array, scratch: Scratch) -> None:
    """The sums of one run of positions, put in their place."""
    total = scratch.array((run.count, sums.columns))
    sums.write(run.first, total)
    put(run.of_outputs(total), bias, place)


def _tap_matrices(weights: Array, each: Each) -> Array:
    """Weights [..., in, out] with the elements of one of the last axes side by side; copied as they lie in memory."""
    if 4 in weights.strides[-2:]:
        return weights
    swapped = weights.strides[-1] > weights.strides[-2]
    source = np.swapaxes(weights, -2, -1) if swapped else weights
    copied = np.empty(source.shape, np.float32)
    copy_in_pieces(np.moveaxis(copied, -2, 0), np.moveaxis(source, -2, 0), each)
    return np.swapaxes(copied, -2, -1) if swapped else copied
