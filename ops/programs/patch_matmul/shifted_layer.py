"""How whole images lie shifted against each other, so that every tap of a bundle of groups is one product.

Images lie in cells with zeros around them, bundles of groups apart. Flat, a row
behind the other, all outputs meet their inputs equally far on, whatever their row: a product of BLAS for each tap, as
long as the image. What it makes between the end of a row and the next belongs to nothing. Where channels are too few
for BLAS, neighbors on the last axis are *folded*: they lie side by side, and taps equally far on are one matrix.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from math import gcd, prod
from typing import Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from device.host.products import CALL_SECONDS, UNPACKED, Products
from device.numbers.formats import Array, div_up, round_up
from ops.window import PaddedAxis

MOST_KEPT = 64  # axes that are kept


class Cells(NamedTuple):
    """Positions in cells."""

    low: int  # The first position of cell 0, at most 0 or what is met first
    size: int  # Positions of a cell
    length: int  # Positions that there are, from 0 on; all others are zeros


class Run(NamedTuple):
    """Positions of an array that lie evenly among cells of one residue."""

    residue: int
    cell: int  # The cell of the first position, counted from the first wanted cell
    position: int
    positions: int  # How many there are


class Shift(NamedTuple):
    """The shift of a tap."""

    tap: int
    source: int  # Residue of the inputs that it meets
    target: int  # Residue of the outputs under which it meets them
    cells: int  # How many cells farther on the inputs lie


@dataclass(frozen=True, slots=True)
class AxisShifts:
    """The shifts of one axis."""

    sources: Cells
    targets: Cells
    cells: int  # Cells that hold all outputs
    reach: int  # The farthest shift
    taps: tuple[Shift, ...]  # What each tap does; none that meets no input at all


@lru_cache(MOST_KEPT)
def axis_shifts(axis: PaddedAxis) -> AxisShifts | None:
    """An axis whose outputs are all that there are; None if no tap meets an input.

    Where the cells of outputs begin is chosen so that shifts are short.
    """
    size = axis.input_dilation // gcd(axis.input_dilation, axis.stride)
    tries = [_beginning_at(axis, size, -before) for before in range(size)]
    return min((shifts for shifts in tries if shifts is not None), key=lambda shifts: shifts.reach, default=None)


def _beginning_at(axis: PaddedAxis, size: int, low: int) -> AxisShifts | None:
    """The axis with cells of so many outputs, the first of which begins at ``low``."""
    step = size * axis.stride // axis.input_dilation
    met = []
    for tap in range(axis.kernel):
        for target in range(size):
            place, between = divmod(
                (low + target) * axis.stride + axis.start + tap * axis.dilation, axis.input_dilation
            )
            if not between:
                met.append((tap, target, place))
    if not met:
        return None
    first = min(place for _, _, place in met)
    shifts = tuple(Shift(tap, (place - first) % step, target, (place - first) // step) for tap, target, place in met)
    return AxisShifts(
        sources=Cells(first, step, axis.input_length),
        targets=Cells(low, size, axis.outputs),
        cells=div_up(axis.outputs - low, size),
        reach=max(shift.cells for shift in shifts),
        taps=shifts,
    )


def runs_of(cells: Cells, first: int, count: int) -> list[Run]:
    """Where positions lie among ``count`` cells from ``first`` on; residues that have none are left out."""
    runs = []
    for residue in range(cells.size):
        begin = max(first, div_up(-cells.low - residue, cells.size))
        end = min(first + count, div_up(cells.length - cells.low - residue, cells.size))
        if begin < end:
            runs.append(Run(residue, begin - first, cells.low + begin * cells.size + residue, end - begin))
    return runs


def positions_of(cells: Cells, first: int, count: int) -> list[Run]:
    """The same positions as one run of cells of one position each: residues lie side by side."""
    low = cells.low + first * cells.size
    return runs_of(Cells(low, 1, cells.length), 0, count * cells.size)


_BACK: Final = (1, 0, 2, 3, 4, 7, 8, 5, 6)  # columns of copies the other way


class CellRange(NamedTuple):
    """Cells of an axis that are wanted: the first, and how many."""

    first: int
    cells: int


class Bundles(NamedTuple):
    """So many bundles of channels are copied: how far they lie apart in the target and in the source."""

    times: int
    target: int
    source: int


def copies_of(
    cells: Sequence[Cells],
    ranges: Sequence[CellRange],
    pitch: Sequence[int],
    channels: tuple[int, int],
    *,
    folded: bool,
) -> Array:
    """The copies from an image [*spatial, C] to a bundle's cells [planes, *cells, residues side by side, channels].

    Args:
        cells: Positions of each axis in cells.
        ranges: Which cells of each axis there are; what holds no positions is not copied.
        pitch: Cells from one to the next on each axis.
        channels: Of a bundle, and of all.
        folded: Residues of the last axis lie side by side, not on planes.

    Returns:
        int64 [copies, 9]: where each begins in cells and image, rows, columns, numbers in one piece, and how far rows
        and columns lie apart in both.
    """
    own, every = channels
    runs = [runs_of(axis_cells, *axis_range) for axis_cells, axis_range in zip(cells, ranges, strict=True)]
    sizes = [cell.size for cell in cells]
    width = own
    if folded:
        runs[-1], width, sizes[-1] = positions_of(cells[-1], *ranges[-1]), own * sizes[-1], 1
    into = [width * n for n in pitch[:-1]] + [own if folded else width]
    apart = [every * prod(cell.length for cell in cells[axis + 1 :]) for axis in range(len(cells))]
    plane = width * ranges[0].cells * pitch[0]
    copies: list[tuple[int, ...]] = []
    for combination in product(*runs):
        residue, begin, source = 0, 0, 0
        for run, size, to, of in zip(combination, sizes, into, apart, strict=True):
            residue, begin, source = residue * size + run.residue, begin + run.cell * to, source + run.position * of
        steps = [
            (run.positions, to, size * of) for run, size, to, of in zip(combination, sizes, into, apart, strict=True)
        ]
        *outer, (rows, to_row, of_row), (columns, to_column, of_column) = [(1, 0, 0), *steps]
        together = columns if to_column == of_column == own else 1
        for index in product(*(range(count) for count, _, _ in outer)):
            on, off = (sum(n * step[side] for n, step in zip(index, outer, strict=True)) for side in (1, 2))
            copies.append((
                residue * plane + begin + on, source + off, rows, columns // together, own * together,
                to_row, to_column, of_row, of_column,
            ))  # fmt: skip
    return np.array(copies, np.int64).reshape(-1, len(_BACK))


def back(copies: Array) -> Array:
    """The same copies from cells to the image."""
    return np.ascontiguousarray(copies[:, _BACK])


def gaps_of(copies: Array, numbers: int) -> Array:
    """What copies to a bundle leave out: int64 [gaps, 2], the first number of each and the one behind its last."""
    left_out = np.ones(numbers + 2, np.int8)
    left_out[[0, -1]] = 0
    for begin, _, *shape, to_row, to_column, _, _ in copies.tolist():
        _strided(left_out[begin + 1 :], tuple(shape), (to_row, to_column, 1))[...] = 0
    return np.flatnonzero(np.diff(left_out)).reshape(-1, 2)


def copy_cells(target: Array, source: Array, copies: Array, bundles: Bundles) -> None:
    """Make copies of `copies_of` or `back` for several bundles; both arrays are flat and begin at bundle 0."""
    with np.errstate(over="ignore"):
        for begin, first, *shape, to_row, to_column, of_row, of_column in copies.tolist():
            whole = (bundles.times, *shape)
            into = _strided(target[begin:], whole, (bundles.target, to_row, to_column, 1))
            into[...] = _strided(source[first:], whole, (bundles.source, of_row, of_column, 1))


def _strided(flat: Array, shape: tuple[int, ...], apart: tuple[int, ...]) -> Array:
    """Numbers at equal distances."""
    return as_strided(flat, shape, [flat.itemsize * n for n in apart])


LANES = 16  # columns that BLAS multiplies at a time
LEAST_POSITIONS = 128  # of a product that is worth BLAS
MOST_WASTE = 1.5  # positions of products for each that is wanted


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
    folded: bool  # Positions in a cell of the last axis lie side by side; else on planes, as on the other axes
    pitch: tuple[int, ...]  # Cells from one to the next on each axis
    slots: tuple[Slot | None, ...]  # Where each tap of the last axis lies; None for a tap that meets nothing
    matrices: tuple[int, ...]  # Of each axis
    meetings: tuple[Meeting, ...]  # All meetings; those of a plane of outputs are neighbors, by taps

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
        """Copies of inputs and of outputs, from images to cells, for `rows` of outputs from row `first` of cells on.

        Channels are those of a bundle of inputs and of outputs.
        """
        out_cells = [CellRange(first, rows), *(CellRange(0, axis.cells) for axis in self.axes[1:])]
        met = [
            CellRange(cells.first, cells.cells + axis.reach) for cells, axis in zip(out_cells, self.axes, strict=True)
        ]
        sources, targets = [axis.sources for axis in self.axes], [axis.targets for axis in self.axes]
        return (
            copies_of(sources, met, self.pitch, (channels[0], parts * channels[0]), folded=self.folded),
            copies_of(targets, out_cells, self.pitch, (channels[1], parts * channels[1]), folded=self.folded),
        )


@lru_cache(MOST_KEPT)
def _layer(axes: tuple[PaddedAxis, ...], *, folded: bool) -> Layer | None:
    """How images lie; None where the zeros between them cost too much."""
    shifts = tuple(shift for shift in map(axis_shifts, axes) if shift is not None)
    if len(shifts) < len(axes):
        return None
    lengths = [axis.cells + axis.reach for axis in shifts]
    pitch = tuple(prod(lengths[number + 1 :]) for number in range(len(axes)))
    wanted = prod(axis.cells for axis in shifts)
    if wanted < LEAST_POSITIONS or shifts[0].cells * pitch[0] > MOST_WASTE * wanted:
        return None
    slots: list[Slot | None] = [None] * axes[-1].kernel
    for tap in shifts[-1].taps:
        slots[tap.tap] = Slot(tap.cells, tap.source, tap.target) if folded else Slot(tap.tap, 0, 0)
    matrices = [axis.kernel for axis in axes]
    sizes = [(axis.targets.size, axis.sources.size) for axis in shifts]
    if folded:
        matrices[-1], sizes[-1] = shifts[-1].reach + 1, (1, 1)
    met: set[Meeting] = set()
    for each in product(*(axis.taps for axis in shifts)):
        cells = sum(shift.cells * far for shift, far in zip(each, pitch, strict=True))
        places = [Meeting(shift.target, shift.tap, shift.source, 0) for shift in each]
        if folded:
            places[-1] = Meeting(0, each[-1].cells, 0, 0)
        target, source = (
            _counted([place[side] for place in places], [size[side > 0] for size in sizes]) for side in (0, 2)
        )
        met.add(Meeting(target, _counted([place.matrix for place in places], matrices), source, cells))
    return Layer(
        axes=shifts, folded=folded, pitch=pitch, slots=tuple(slots), matrices=tuple(matrices),
        meetings=tuple(sorted(met)),
    )  # fmt: skip


def _counted(places: Sequence[int], counts: Sequence[int]) -> int:
    """The flat index of a place on several axes."""
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

    The axes of the patches have all outputs that there are. Channels are those of a group of inputs and of outputs.
    With `summed` products are of outputs and inputs, summed over positions; else of inputs and weights.
    """
    layers = [layer for layer in (_layer(axes, folded=folded) for folded in (True, False)) if layer is not None]
    every = product(layers, (size for size in range(1, groups + 1) if groups % size == 0))
    fit = [layer for layer in (Bundled(*each) for each in every) if _fits(layer.widths(*channels))]

    def cost(candidate: Bundled) -> tuple[int, int]:
        columns, rows = candidate.widths(*channels) if summed else reversed(candidate.widths(*channels))
        return len(candidate.layer.meetings) * (groups // candidate.size) * rows * round_up(
            columns, LANES
        ), -candidate.size

    return min(fit, key=cost, default=None)


def _fits(widths: tuple[int, int]) -> bool:
    """Whether products of matrices of such widths are long enough, and not too long."""
    return max(widths) >= LANES and prod(widths) * LEAST_POSITIONS <= UNPACKED


def matrices_of(bundles: Bundled, weights: Array) -> Array:
    """Weights [groups, *taps, in, out] as matrices, zeros where groups or residues do not meet.

    The result is float32 [bundles, matrices, rows, columns], contiguous; rows are residues, groups and channels of
    inputs.
    """
    groups, size, (ins, outs) = len(weights), bundles.size, weights.shape[-2:]
    sources, targets = bundles.layer.side_by_side
    values = weights.reshape(groups // size, size, -1, len(bundles.layer.slots), ins, outs)
    outer, last = values.shape[2], bundles.layer.matrices[-1]
    array = np.zeros((len(values), outer, last, sources, size, ins, targets, size, outs), np.float32)
    for tap, slot in enumerate(bundles.layer.slots):
        if slot is not None:
            for group in range(size):
                array[:, :, slot.matrix, slot.source, group, :, slot.target, group] = values[:, group, :, tap]
    return array.reshape(len(values), outer * last, *bundles.widths(ins, outs))


def weights_of(bundles: Bundled, sums: Array, channels: tuple[int, int]) -> Array:
    """Weights [groups, taps, outs, ins] out of matrices [bundles, matrices, rows, columns] of sums.

    Rows are residues, groups and channels of outputs, columns those of inputs; taps that meet nothing are zero.
    """
    size, (ins, outs) = bundles.size, channels
    sources, targets = bundles.layer.side_by_side
    values = sums.reshape(len(sums), -1, bundles.layer.matrices[-1], targets, size, outs, sources, size, ins)
    array = np.zeros((len(values), size, values.shape[1], len(bundles.layer.slots), outs, ins), np.float32)
    for tap, slot in enumerate(bundles.layer.slots):
        if slot is not None:
            for group in range(size):
                array[:, group, :, tap] = values[:, :, slot.matrix, slot.target, group, :, slot.source, group]
    return array.reshape(len(values) * size, -1, outs, ins)


MOST_NUMBERS: Final = 1 << 18  # of a piece: a MiB
PIECES: Final = 8  # that the work is cut into, at least, where there are as many rows and bundles
SHARE: Final = 4  # times as many rows are copied as are copied twice, at least
NUMPY_SECONDS: Final = 1e-9  # for a number that is copied


def numbers_of(bundles: Bundled, widths: tuple[int, int], rows: int) -> tuple[int, int]:
    """Numbers of a bundle's inputs and outputs, for some rows of cells and so many numbers of a cell of either."""
    cells, planes = bundles.layer.cells(rows), bundles.layer.planes
    return cells[0] * planes[0] * widths[0], cells[1] * planes[1] * widths[1]


def bands_of(bundles: Bundled, widths: tuple[int, int], parts: int, batch: int) -> tuple[list[tuple[int, int]], int]:
    """Bands of rows of cells, equal or nearly so, and the bundles of a piece.

    Many bundles are worked on together, since their channels lie side by side in images; a band has as few rows as that
    takes. `widths` are the numbers of a cell of a bundle of inputs and of outputs, `parts` the bundles of an image.
    """
    axis = bundles.layer.axes[0]
    least = min(axis.cells, max(SHARE * axis.reach, 1))
    counts = [n for n in range(1, parts + 1) if parts % n == 0]
    together = max((n for n in counts if n * sum(numbers_of(bundles, widths, least)) <= MOST_NUMBERS), default=1)
    bands = div_up(together * sum(numbers_of(bundles, widths, axis.cells)), MOST_NUMBERS)
    bands = min(max(bands, div_up(PIECES, batch * parts // together)), div_up(axis.cells, least))
    begins = [axis.cells * band // bands for band in range(bands + 1)]
    return [(first, end - first) for first, end in pairwise(begins)], together


def runs_of_products(positions: int, widths: tuple[int, int]) -> Sequence[tuple[int, int]]:
    """First positions and those behind the last, of products that BLAS does not copy."""
    runs = div_up(positions * prod(widths), UNPACKED)
    return list(pairwise([*range(0, positions, div_up(positions, runs)), positions]))


def numpy_seconds(products: Products, numbers: tuple[int, int]) -> float:
    """Seconds of a bundle of a band without compiled loops."""
    return CALL_SECONDS * len(products.calls) + NUMPY_SECONDS * sum(numbers)
