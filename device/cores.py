"""Cores of a grid: coordinates, rectangles, and sets in a fixed order."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from itertools import groupby, pairwise
from operator import and_, attrgetter, index as integer, or_
from typing import Final, TypeAlias, TypeVar

from device.errors import ArgumentError, ArgumentTypeError, DeviceError, shown

T = TypeVar("T")


class PlainEnum(Enum):
    """An enumeration whose members print as ``Layout.TILE``, also in lists and configs."""

    __hash__ = object.__hash__  # that of an enumeration looks its name up; members are equal to none but themselves

    def __repr__(self) -> str:
        """Class and name."""
        return str(self)


class FrozenList(tuple[T, ...]):
    """A tuple that replaces a list of ttnn: equal to a list of the same items, and printed like a list."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Whether the other is a list or a tuple of the same items."""
        return isinstance(other, list | tuple) and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        """Whether it is not."""
        return not self == other

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        """As a list."""
        return repr(list(self))


class CalledList(FrozenList[T]):
    """A list that is an attribute in ttsim and a method in ttnn: ``cores.ranges`` and ``cores.ranges()`` both work."""

    __slots__ = ()

    def __call__(self) -> list[T]:
        """A list of the items."""
        return list(self)


Rectangle: TypeAlias = tuple[int, int, int, int]  # first column, first row, last column, last row
Columns: TypeAlias = int  # a bit for each stretch between neighboring edges, the leftmost first


def without(columns: Columns, other: Columns) -> Columns:
    """The columns that only the first operand has."""
    return columns & ~other


def combined(
    area: Sequence[Rectangle], other: Sequence[Rectangle], operation: Callable[[Columns, Columns], Columns]
) -> list[Rectangle]:
    """The union, intersection or difference of two areas, as runs within a row; equal neighboring rows are joined.

    ``operation`` is ``operator.or_``, ``operator.and_`` or `without`.
    """
    columns = sorted({edge for left, _, right, _ in (*area, *other) for edge in (left, right + 1)})
    rows = sorted({edge for _, top, _, bottom in (*area, *other) for edge in (top, bottom + 1)})
    open_runs: dict[tuple[int, int], int] = {}  # (first column, behind the last one) -> first row
    rectangles: list[Rectangle] = []
    for row, *covered in zip(rows, _rows(area, columns, rows), _rows(other, columns, rows), strict=True):
        runs = _runs(operation(*covered), columns)
        for first, end in [run for run in open_runs if run not in runs]:
            rectangles.append((first, open_runs.pop((first, end)), end - 1, row - 1))
        for run in runs:
            open_runs.setdefault(run, row)
    return sorted(rectangles, key=lambda rectangle: (rectangle[1], rectangle[0]))


def _rows(area: Sequence[Rectangle], columns: Sequence[int], rows: Sequence[int]) -> list[Columns]:
    """The columns that an area covers in the rows between two edges; empty after the last edge."""
    covered = [0] * len(rows)
    for left, top, right, bottom in area:
        wide = (1 << columns.index(right + 1)) - (1 << columns.index(left))
        for row in range(rows.index(top), rows.index(bottom + 1)):
            covered[row] |= wide
    return covered


def _runs(covered: Columns, columns: Sequence[int]) -> list[tuple[int, int]]:
    """Runs of consecutive columns as (first, end), end excluded."""
    result = []
    while covered:
        lowest = covered & -covered
        above = covered + lowest  # the lowest run is gone, and carried to the bit behind it
        result.append((columns[lowest.bit_length() - 1], columns[(above & ~covered).bit_length() - 1]))
        covered &= above
    return result


CACHE_SIZE: Final = 1024  # sets of cores that planners ask for again and again; hash and box of each are found once
MOST_CORES: Final = 1 << 20  # of a rectangle; the library takes larger ones, and refuses them later


@dataclass(frozen=True, slots=True, order=True)
class CoreCoord:
    """One core: column ``x``, row ``y``.

    Examples:
        >>> ttnn.CoreCoord(3, 1).x
        3
    """

    x: int
    y: int

    def __post_init__(self) -> None:
        """Raises an error for negative or non-integer coordinates."""
        if not (type(self.x) is int and type(self.y) is int):
            _make_integers(self)
        if self.x < 0 or self.y < 0:
            raise ArgumentError(f"CoreCoord: coordinates must not be negative, not ({self.x}, {self.y})")

    def __str__(self) -> str:
        """As the real library prints it: ``x-y``."""
        return f"{self.x}-{self.y}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True, order=True)
class CoreRange:
    """A rectangle of cores.

    Attributes:
        start: Upper left core, also as a pair (x, y).
        end: Lower right core, included.

    Examples:
        >>> ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 1)).num_cores()
        8
    """

    start: CoreCoord
    end: CoreCoord

    def __post_init__(self) -> None:
        """Raises an error for an end before the start, too many cores, or a value that is not a core."""
        if not (isinstance(self.start, CoreCoord) and isinstance(self.end, CoreCoord)):
            corners = [_core_of(corner) for corner in (self.start, self.end)]
            if None in corners:
                raise ArgumentTypeError(
                    f"CoreRange: start and end must be CoreCoord, not {shown(self.start)} and {shown(self.end)}"
                )
            for name, corner in zip(("start", "end"), corners, strict=True):
                object.__setattr__(self, name, corner)
        if self.end.x < self.start.x or self.end.y < self.start.y:
            raise ArgumentError(
                f"Invalid core range for start_coord: {self.start}, end_coord: {self.end}\n"
                "CoreRange: end must not lie left of or above start"
            )
        if self.num_cores() > MOST_CORES:
            raise ArgumentError(
                f"CoreRange: {self.start} to {self.end} has more than {MOST_CORES:,} cores, which no device has"
            )

    @property
    def cols(self) -> int:
        """Columns of the rectangle."""
        return self.end.x - self.start.x + 1

    @property
    def rows(self) -> int:
        """Rows of the rectangle."""
        return self.end.y - self.start.y + 1

    def num_cores(self) -> int:
        """Cores in the rectangle."""
        return (self.end.x - self.start.x + 1) * (self.end.y - self.start.y + 1)

    def grid_size(self) -> CoreCoord:
        """Columns and rows as a coordinate, as in ttnn."""
        return CoreCoord(self.cols, self.rows)

    def contains(self, other: "CoreCoord | CoreRange") -> bool:
        """Whether a core or a whole rectangle lies inside."""
        first, last = (other, other) if isinstance(other, CoreCoord) else (other.start, other.end)
        return self.start.x <= first.x and self.start.y <= first.y and last.x <= self.end.x and last.y <= self.end.y

    def overlaps(self, other: "CoreRange") -> bool:
        """Whether the two rectangles share a core."""
        return (
            self.start.x <= other.end.x
            and other.start.x <= self.end.x
            and self.start.y <= other.end.y
            and other.start.y <= self.end.y
        )

    def cores(self, row_major: bool = True) -> Iterator[CoreCoord]:
        """The cores, row by row or column by column."""
        columns, rows = range(self.start.x, self.end.x + 1), range(self.start.y, self.end.y + 1)
        if row_major:
            return (CoreCoord(x, y) for y in rows for x in columns)
        return (CoreCoord(x, y) for x in columns for y in rows)

    def __str__(self) -> str:
        """As the real library prints it: ``[0-0 - 7-3]``."""
        return f"[{self.start} - {self.end}]"

    __repr__ = __str__


@dataclass(frozen=True, slots=True, init=False)
class CoreRangeSet:
    """Rectangles of cores that do not overlap.

    Attributes:
        ranges: The ranges in the given order; an unordered collection is sorted. As in ttnn, ``ranges()`` is a list.

    Examples:
        >>> row = ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 0))
        >>> cores = ttnn.CoreRangeSet([row])
        >>> cores.num_cores(), cores.contains(ttnn.CoreCoord(4, 0)), cores.bounding_box() == row
        (4, False, True)
    """

    ranges: CalledList[CoreRange]
    _num_cores: int = field(init=False, repr=False, compare=False)
    _box: CoreRange | None = field(init=False, repr=False, compare=False)  # found when it is asked for
    _hash: int | None = field(init=False, repr=False, compare=False)  # the same

    def __init__(self, ranges: Iterable[CoreRange] | CoreRange = ()) -> None:
        """Takes a collection of ranges, or a single range; raises ArgumentError if ranges overlap."""
        if isinstance(ranges, CoreRange):
            ranges = (ranges,)
        try:
            ordered = tuple(ranges)
        except TypeError:
            raise ArgumentTypeError(f"CoreRangeSet: ranges must be CoreRange objects, not {shown(ranges)}") from None
        for core_range in ordered:
            if not isinstance(core_range, CoreRange):
                raise ArgumentTypeError(
                    f"CoreRangeSet: ranges must be CoreRange objects, not {type(core_range).__name__}"
                )
        if len(ordered) > 1 and not _are_rising_cores(ordered):
            _require_apart(ordered)
        if isinstance(ranges, set | frozenset):
            ordered = tuple(sorted(ordered))
        object.__setattr__(self, "ranges", CalledList(ordered))
        object.__setattr__(self, "_box", ordered[0] if len(ordered) == 1 else None)
        object.__setattr__(self, "_hash", None)
        object.__setattr__(self, "_num_cores", sum([core_range.num_cores() for core_range in ordered]))

    def __hash__(self) -> int:
        """The hash of the ranges, cached because it is needed for every circular buffer."""
        known = self._hash
        if known is None:
            known = hash(self.ranges)
            object.__setattr__(self, "_hash", known)
        return known

    def num_cores(self) -> int:
        """Cores in all ranges."""
        return self._num_cores

    def empty(self) -> bool:
        """Whether the set has no cores."""
        return not self.ranges

    def cores(self, row_major: bool = True) -> tuple[CoreCoord, ...]:
        """All cores, range by range and row by row (or column by column), which is the order of shards."""
        return tuple(core for core_range in self.ranges for core in core_range.cores(row_major))

    def contains(self, other: "CoreCoord | CoreRange | CoreRangeSet") -> bool:
        """Whether a core, a range or a whole set lies inside."""
        if isinstance(other, CoreCoord):
            return any(core_range.contains(other) for core_range in self.ranges)
        wanted = (other,) if isinstance(other, CoreRange) else other.ranges
        if all(any(core_range.contains(part) for core_range in self.ranges) for part in wanted):
            return True
        mine = set(self.cores())
        return all(core in mine for part in wanted for core in part.cores())

    def bounding_box(self) -> CoreRange:
        """The smallest rectangle around all cores; raises ArgumentError for an empty set."""
        if not self.ranges:
            raise ArgumentError("CoreRangeSet: an empty set has no bounding box; check empty() first")
        box = self._box
        if box is None:
            first = CoreCoord(*(min(getattr(core_range.start, axis) for core_range in self.ranges) for axis in "xy"))
            last = CoreCoord(*(max(getattr(core_range.end, axis) for core_range in self.ranges) for axis in "xy"))
            box = CoreRange(first, last)
            object.__setattr__(self, "_box", box)
        return box

    def size(self) -> int:
        """The number of ranges."""
        return len(self.ranges)

    def to_list(self) -> list[dict[str, dict[str, int]]]:
        """The ranges in the real library's JSON form."""
        corners = ((core_range.start, core_range.end) for core_range in self.ranges)
        return [{"end": {"x": end.x, "y": end.y}, "start": {"x": start.x, "y": start.y}} for start, end in corners]

    def to_json(self) -> str:
        """The JSON text of the real library."""
        return json.dumps(self.to_list(), separators=(",", ":"))

    @classmethod
    def of_list(cls, ranges: Iterable[Mapping[str, Mapping[str, int]]]) -> "CoreRangeSet":
        """The inverse of `to_list`."""
        return cls(
            [CoreRange(CoreCoord(**core_range["start"]), CoreCoord(**core_range["end"])) for core_range in ranges]
        )

    def merge(self, other: "CoreRangeSet") -> "CoreRangeSet":
        """The cores of either set; `union` under ttnn's name."""
        return self.union(other)

    def subtract(self, other: "CoreRangeSet") -> "CoreRangeSet":
        """The cores that are not in the other set; `without` under ttnn's name."""
        return self.without(other)

    def union(self, other: "CoreRangeSet") -> "CoreRangeSet":
        """The cores of either set; equal neighboring rows are merged into ranges."""
        if self.contains(other):
            return self
        if other.contains(self):
            return other
        return _combined(self, other, or_)

    def shared(self, other: "CoreRangeSet") -> "CoreRangeSet":
        """The cores in both sets; equal neighboring rows are merged into ranges."""
        if self._lies_in(other):
            return self.merged()
        return other.merged() if other._lies_in(self) else _combined(self, other, and_)

    def without(self, other: "CoreRangeSet") -> "CoreRangeSet":
        """The cores that are not in the other set; equal neighboring rows are merged into ranges."""
        return CoreRangeSet() if self._lies_in(other) else _combined(self, other, without)

    def _lies_in(self, other: "CoreRangeSet") -> bool:
        """Whether the other set obviously contains these cores: it is equal, or one of its ranges contains them."""
        if self.ranges == other.ranges or not self.ranges:
            return True
        box = self.bounding_box()
        return any(core_range.contains(box) for core_range in other.ranges)

    def merged(self) -> "CoreRangeSet":
        """The same cores in few ranges: runs within a row; equal runs of neighboring rows are merged."""
        return self if len(self.ranges) < 2 else _combined(self, self, or_)

    def __str__(self) -> str:
        """As the real library prints it: ``{[0-0 - 7-2], [0-3 - 2-3]}``."""
        return "{" + ", ".join(map(str, self.ranges)) + "}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreGrid:
    """A grid of cores that starts at (0, 0): ``x`` columns, ``y`` rows.

    Examples:
        >>> ttnn.CoreGrid(x=8, y=4).num_cores
        32
    """

    x: int
    y: int

    def __post_init__(self) -> None:
        """Raises an error for a grid without cores, or for sizes that are not integers."""
        if not (type(self.x) is int and type(self.y) is int):
            _make_integers(self)
        if self.x < 1 or self.y < 1:
            raise ArgumentError(f"CoreGrid: x and y must be at least 1, not x={self.x}, y={self.y}")

    @property
    def num_cores(self) -> int:
        """Cores in the grid."""
        return self.x * self.y

    def core_range_set(self) -> CoreRangeSet:
        """The same cores as a set of one range."""
        return core_rectangle(self.x, self.y)

    def __repr__(self) -> str:
        """As the real library prints it."""
        return f"ttnn.CoreGrid(x={self.x}, y={self.y})"


def _are_rising_cores(ranges: tuple[CoreRange, ...]) -> bool:
    """Whether these are single cores in ascending order, row by row, which cannot overlap."""
    places = [(core_range.start.y, core_range.start.x) for core_range in ranges if core_range.start == core_range.end]
    return len(places) == len(ranges) and all(place < other for place, other in pairwise(places))


def _require_apart(ranges: tuple[CoreRange, ...]) -> None:
    """Raises ArgumentError if two ranges have a core in common."""
    for index, core_range in enumerate(ranges):
        for other in ranges[:index]:
            if core_range.overlaps(other):
                raise ArgumentError(
                    f"Cannot create CoreRangeSet with specified core ranges because core ranges {other} and "
                    f"{core_range} overlap!\nCoreRangeSet: give every core once"
                )


def _core_of(corner: object) -> CoreCoord | None:
    """A core, also from a pair of integers (x, y); None for anything else."""
    if isinstance(corner, tuple | list) and len(corner) == 2 and all(type(place) is int for place in corner):
        return CoreCoord(*corner)
    return corner if isinstance(corner, CoreCoord) else None


def _make_integers(coordinates: CoreCoord | CoreGrid) -> None:
    """Converts x and y from any integer type to int; raises ArgumentTypeError for anything else."""
    for name in ("x", "y"):
        value = getattr(coordinates, name)
        try:
            if isinstance(value, bool):
                raise TypeError("no number")
            object.__setattr__(coordinates, name, integer(value))
        except TypeError:
            owner = type(coordinates).__name__
            raise ArgumentTypeError(f"{owner}: {name} must be an integer, not {shown(value)}") from None


@lru_cache(CACHE_SIZE)
def first_cores(count: int, grid_cols: int, grid_rows: int, row_wise: bool = True) -> CoreRangeSet:
    """The first ``count`` cores of a grid, row by row (or column by column): full lines, then the partial line."""
    if not 0 <= count <= grid_cols * grid_rows:
        raise ArgumentError(
            f"first_cores: count must be 0 to {grid_cols * grid_rows} on a grid of {grid_cols}x{grid_rows} cores, "
            f"not {count}"
        )
    line_cores = grid_cols if row_wise else grid_rows
    full_lines, rest = divmod(count, line_cores)
    ranges = []
    if full_lines:
        ranges.append(_lines(0, full_lines, line_cores, row_wise))
    if rest:
        ranges.append(_lines(full_lines, 1, rest, row_wise))
    return CoreRangeSet(ranges)


@lru_cache(CACHE_SIZE)
def cores_from(start: CoreCoord, count: int, cores: CoreRangeSet, row_wise: bool = True) -> CoreRangeSet:
    """``count`` cores of a set from ``start`` on, range by range: a partial line, full lines and a partial line.

    Raises DeviceError if the set does not contain ``start``, or has too few cores after it.
    """
    ordered = cores.cores(row_wise)
    if count < 1:
        raise DeviceError("Target number of cores must be greater than 0\nask for 1 core or more")
    if count > len(ordered):
        text = f"Target number of cores {count} is greater than total available cores {len(ordered)}"
        raise DeviceError(f"{text}\nask for fewer cores")
    if start not in ordered:
        raise DeviceError(f"Start core must be inside sub_core_grids\n{cores} lacks {start}")
    first = ordered.index(start)
    taken = set(ordered[first : first + count])
    if len(taken) < count:
        text = f"Failed to assign all {count} requested cores"
        raise DeviceError(f"{text}\n{len(taken)} cores of {cores} are left from {start} on")
    own = ([core for core in core_range.cores(row_wise) if core in taken] for core_range in cores.ranges)
    line_of = attrgetter("y" if row_wise else "x")
    lines = [CoreRange(line[0], line[-1]) for part in own for line in (list(run) for _, run in groupby(part, line_of))]
    return CoreRangeSet(_joined_lines(lines, row_wise))


def _joined_lines(lines: Sequence[CoreRange], row_wise: bool) -> list[CoreRange]:
    """Rows (or columns) as rectangles: equal adjacent lines are merged."""
    along, across = ("x", "y") if row_wise else ("y", "x")
    sides = attrgetter(f"start.{along}", f"end.{along}")
    rectangles: list[CoreRange] = []
    for line in lines:
        last = rectangles[-1] if rectangles else None
        if last and sides(last) == sides(line) and getattr(line.start, across) == getattr(last.end, across) + 1:
            rectangles[-1] = CoreRange(last.start, line.end)
        else:
            rectangles.append(line)
    return rectangles


@lru_cache(CACHE_SIZE)
def core_rectangle(cols: int, rows: int) -> CoreRangeSet:
    """The first ``cols`` columns of the first ``rows`` rows of a grid, cached."""
    return CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(cols - 1, rows - 1)))


def _lines(first_line: int, lines: int, line_cores: int, row_wise: bool) -> CoreRange:
    """``lines`` rows (or columns) of ``line_cores`` cores, from row (or column) ``first_line``."""
    last_line = first_line + lines - 1
    if row_wise:
        return CoreRange(CoreCoord(0, first_line), CoreCoord(line_cores - 1, last_line))
    return CoreRange(CoreCoord(first_line, 0), CoreCoord(last_line, line_cores - 1))


@lru_cache(CACHE_SIZE)
def _combined(
    cores: CoreRangeSet, other: CoreRangeSet, operation: Callable[[Columns, Columns], Columns]
) -> CoreRangeSet:
    """The result of a set operation; equal neighboring rows are merged into ranges."""
    result = combined(_rectangles(cores), _rectangles(other), operation)
    return CoreRangeSet(
        [CoreRange(CoreCoord(left, top), CoreCoord(right, bottom)) for left, top, right, bottom in result]
    )


def _rectangles(cores: CoreRangeSet) -> list[Rectangle]:
    return [(core_range.start.x, core_range.start.y, core_range.end.x, core_range.end.y) for core_range in cores.ranges]
