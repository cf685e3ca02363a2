"""How whole images lie shifted against each other, so that every tap of a bundle of groups is one product.

Images lie in cells (`ops.programs.patch_matmul.shifts`) with zeros around them, bundles of groups apart. Flat, a row
behind the other, all outputs meet their inputs equally far on, whatever their row: a product of BLAS for each tap, as
long as the image. What it makes between the end of a row and the next belongs to nothing. Where channels are too few
for BLAS, neighbors on the last axis are *folded*: they lie side by side, and taps equally far on are one matrix.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from device.host.products import UNPACKED
from device.numbers.block_floats import round_up
from device.numbers.formats import Array
from ops.programs.patch_matmul.cell_copies import Asked, copies_of
from ops.programs.patch_matmul.shifts import AxisShifts, axis_shifts
from ops.window import PaddedAxis

LANES = 16  # columns that BLAS multiplies at a time
LEAST_POSITIONS = 128  # of a product that is worth BLAS
MOST_WASTE = 1.5  # positions of products for each that is wanted
MOST_KEPT = 64  # layers that are kept


class Slot(NamedTuple):
    """Where a tap of the last axis lies among its matrices: in which, and residues of its rows and of its columns."""

    matrix: int
    source: int
    target: int


class Meeting(NamedTuple):
    """Outputs and inputs that meet: their planes, the matrix between them, and how many cells farther on inputs lie."""

    target: int
    matrix: int
    source: int
    cells: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layer:
    """How images lie."""

    axes: tuple[AxisShifts, ...]
    folded: bool  # Positions in a cell of the last axis lie side by side; else on planes, as those of all others
    pitch: tuple[int, ...]  # Cells from one to the next on each axis
    slots: tuple[Slot | None, ...]  # Where each tap of the last axis lies; None for one that meets nothing
    matrices: tuple[int, ...]  # Of each axis
    meetings: tuple[Meeting, ...]  # All that there are, those of a plane of outputs together and by taps

    @property
    def side_by_side(self) -> tuple[int, int]:
        """Positions in a cell of inputs and of outputs that lie side by side."""
        last = self.axes[-1]
        return (last.sources.size, last.targets.size) if self.folded else (1, 1)

    @property
    def planes(self) -> tuple[int, int]:
        """Planes of inputs and of outputs."""
        sources, targets = self.side_by_side
        return (
            prod(axis.sources.size for axis in self.axes) // sources,
            prod(axis.targets.size for axis in self.axes) // targets,
        )

    def positions(self, rows: int) -> int:
        """Cells from the first output to the last, in some rows of the first axis."""
        ends = [rows, *(axis.cells for axis in self.axes[1:])]
        return 1 + sum((end - 1) * pitch for end, pitch in zip(ends, self.pitch, strict=True))

    def cells(self, rows: int) -> tuple[int, int]:
        """Cells of a plane of inputs and of outputs, for some rows of outputs."""
        return (rows + self.axes[0].reach) * self.pitch[0], rows * self.pitch[0]

    def copies(self, first: int, rows: int, channels: tuple[int, int], parts: int) -> tuple[Array, Array]:
        """Copies of inputs and of outputs, from images to cells, for some rows of outputs.

        Args:
            first: The first row of cells.
            rows: How many.
            channels: Of a bundle of inputs and of outputs.
        """
        asked = [Asked(first, rows), *(Asked(0, axis.cells) for axis in self.axes[1:])]
        met = [Asked(one.first, one.cells + axis.reach) for one, axis in zip(asked, self.axes, strict=True)]
        sources, targets = [axis.sources for axis in self.axes], [axis.targets for axis in self.axes]
        return (
            copies_of(sources, met, self.pitch, (channels[0], parts * channels[0]), folded=self.folded),
            copies_of(targets, asked, self.pitch, (channels[1], parts * channels[1]), folded=self.folded),
        )


@lru_cache(MOST_KEPT)
def _layer(axes: tuple[PaddedAxis, ...], *, folded: bool) -> Layer | None:
    """How images lie; None where zeros would be more than they are worth."""
    shifts = tuple(one for one in map(axis_shifts, axes) if one is not None)
    if len(shifts) < len(axes):
        return None
    lengths = [axis.cells + axis.reach for axis in shifts]
    pitch = tuple(prod(lengths[number + 1 :]) for number in range(len(axes)))
    wanted = prod(axis.cells for axis in shifts)
    if wanted < LEAST_POSITIONS or shifts[0].cells * pitch[0] > MOST_WASTE * wanted:
        return None
    slots: list[Slot | None] = [None] * axes[-1].kernel
    for one in shifts[-1].taps:
        slots[one.tap] = Slot(one.cells, one.source, one.target) if folded else Slot(one.tap, 0, 0)
    matrices = [axis.kernel for axis in axes]
    sizes = [(axis.targets.size, axis.sources.size) for axis in shifts]
    if folded:
        matrices[-1], sizes[-1] = shifts[-1].reach + 1, (1, 1)
    met: set[Meeting] = set()
    for each in product(*(axis.taps for axis in shifts)):
        cells = sum(one.cells * far for one, far in zip(each, pitch, strict=True))
        places = [Meeting(one.target, one.tap, one.source, 0) for one in each]
        if folded:
            places[-1] = Meeting(0, each[-1].cells, 0, 0)
        target, source = (_counted([one[side] for one in places], [one[side > 0] for one in sizes]) for side in (0, 2))
        met.add(Meeting(target, _counted([one.matrix for one in places], matrices), source, cells))
    return Layer(
        axes=shifts, folded=folded, pitch=pitch, slots=tuple(slots), matrices=tuple(matrices),
        meetings=tuple(sorted(met)),
    )  # fmt: skip


def _counted(places: Sequence[int], counts: Sequence[int]) -> int:
    """A place on several axes as a place in what they span."""
    counted = 0
    for place, count in zip(places, counts, strict=True):
        counted = counted * count + place
    return counted


class Bundled(NamedTuple):
    """A layer, and how many groups are multiplied as one dense matrix."""

    layer: Layer
    size: int

    def widths(self, sources: int, targets: int) -> tuple[int, int]:
        """Numbers of a cell of inputs and of outputs whose groups have so many channels."""
        residues = self.layer.side_by_side
        return residues[0] * self.size * sources, residues[1] * self.size * targets


@lru_cache(MOST_KEPT)
def bundled(axes: tuple[PaddedAxis, ...], groups: int, channels: tuple[int, int], *, summed: bool) -> Bundled | None:
    """The layer that takes least; None if none is worth it.

    Args:
        axes: Of the patches; their outputs are all that there are.
        channels: Of a group of inputs and of outputs.
        summed: Products are of outputs and inputs, summed over positions; else of inputs and weights.
    """
    layers = [one for one in (_layer(axes, folded=folded) for folded in (True, False)) if one is not None]
    every = product(layers, (size for size in range(1, groups + 1) if groups % size == 0))
    fit = [one for one in (Bundled(*each) for each in every) if _fits(one.widths(*channels))]

    def cost(one: Bundled) -> tuple[int, int]:
        columns, rows = one.widths(*channels) if summed else reversed(one.widths(*channels))
        return len(one.layer.meetings) * (groups // one.size) * rows * round_up(columns, LANES), -one.size

    return min(fit, key=cost, default=None)


def _fits(widths: tuple[int, int]) -> bool:
    """Whether products of matrices of such widths are long enough, and not too long."""
    return max(widths) >= LANES and prod(widths) * LEAST_POSITIONS <= UNPACKED


def matrices_of(one: Bundled, weights: Array) -> Array:
    """Weights [groups, *taps, in, out] as matrices, zeros where groups or residues do not meet.

    Returns:
        float32 [bundles, matrices, rows, columns], contiguous; rows are residues, groups and channels of inputs.
    """
    groups, size, (ins, outs) = len(weights), one.size, weights.shape[-2:]
    sources, targets = one.layer.side_by_side
    given = weights.reshape(groups // size, size, -1, len(one.layer.slots), ins, outs)
    outer, last = given.shape[2], one.layer.matrices[-1]
    made = np.zeros((len(given), outer, last, sources, size, ins, targets, size, outs), np.float32)
    for tap, slot in enumerate(one.layer.slots):
        if slot is not None:
            for group in range(size):
                made[:, :, slot.matrix, slot.source, group, :, slot.target, group] = given[:, group, :, tap]
    return made.reshape(len(given), outer * last, *one.widths(ins, outs))


def weights_of(one: Bundled, sums: Array, channels: tuple[int, int]) -> Array:
    """What matrices [bundles, matrices, rows, columns] of sums have of weights; zero for taps that meet nothing.

    Args:
        sums: Rows are residues, groups and channels of outputs, columns those of inputs.
        channels: Of a group of inputs and of outputs.

    Returns:
        float32 [groups, taps, outputs' channels, inputs' channels].
    """
    size, (ins, outs) = one.size, channels
    sources, targets = one.layer.side_by_side
    given = sums.reshape(len(sums), -1, one.layer.matrices[-1], targets, size, outs, sources, size, ins)
    made = np.zeros((len(given), size, given.shape[1], len(one.layer.slots), outs, ins), np.float32)
    for tap, slot in enumerate(one.layer.slots):
        if slot is not None:
            for group in range(size):
                made[:, group, :, tap] = given[:, :, slot.matrix, slot.target, group, :, slot.source, group]
    return made.reshape(len(given) * size, -1, outs, ins)
