"""Runs of padding sticks of a frame: where they lie, and what lies in those below a number.

They are numbered from the beginning of the frame. Where all runs of data are alike, everything asked here has a closed
form (`PaddingRuns`); of other frames, runs are listed (`ListedPadding`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from device.numbers.integers import Integers
from ops.frame.frame import Frame, data_sticks, frame_sources
from ops.programs.halo.runs import run_length
from ops.programs.halo.transfers import StickRanges

Copies: TypeAlias = Callable[[Integers], Integers]  # copies that fill runs of so many sticks each


@dataclass(frozen=True, slots=True)
class PaddingRuns:
    """Padding ahead of the data, behind every ``span`` data sticks, and behind the last; the ends may be empty."""

    frame: Frame  # The frame; it neither replicates nor cuts inputs off
    span: int  # Data sticks between two runs

    def within(self, ranges: StickRanges) -> tuple[Integers, Integers]:
        """[cores] the first run that a core's range reaches, and the last one + 1."""
        low = -(-(ranges.first_data + ~ranges.begins_with_padding) // self.span)
        return low, np.maximum(ranges.last_stick_data // self.span + 1, low)

    def begins(self, numbers: Integers) -> Integers:
        """The first stick of each run."""
        return np.where(numbers > 0, data_sticks(self.frame, numbers * self.span - 1) + 1, 0)

    def ends(self, numbers: Integers) -> Integers:
        """The last stick + 1 of each run."""
        data = numbers * self.span
        return np.where(data < self.frame.data, data_sticks(self.frame, data), self.frame.sticks)

    def below(self, numbers: Integers, copies: Copies) -> Integers:
        """[2, ...] sticks of all runs below each number, and copies that fill them."""
        frame, before = self.frame, numbers - 1
        row, runs = frame.columns.input_length, frame.data // self.span
        between = np.minimum(np.maximum(before, 0), runs - 1)
        after_image = between * self.span // (row * frame.rows.input_length)
        after_row = between * self.span // row - after_image
        first, inner, row_end, image_end, last = copies(self._lengths()).tolist()
        filled = first + inner * (between - after_row - after_image) + row_end * after_row + image_end * after_image
        any_below = numbers > 0
        sticks = any_below * (self.ends(before) - before * self.span)
        return np.array([sticks, any_below * filled + last * (numbers > runs)])

    def _lengths(self) -> Integers:
        """Sticks ahead of the data, between data of a row, behind a row, behind an image, and behind the data."""
        rows, columns = self.frame.rows, self.frame.columns
        first = rows.before * columns.length + columns.before
        data_row = (columns.input_length - 1) * columns.insertion + 1
        row_end = rows.insertion * columns.length - data_row
        image_end = (rows.length - (rows.input_length - 1) * rows.insertion) * columns.length - data_row
        return np.array([first, columns.insertion - 1, row_end, image_end, image_end - first])


@dataclass(frozen=True, slots=True)
class ListedPadding:
    """Runs of any frame, the end of the frame as the last, even if none lie there."""

    begin: Integers  # [runs] first stick
    end: Integers  # Last stick + 1

    def within(self, ranges: StickRanges) -> tuple[Integers, Integers]:
        """As `PaddingRuns.within`."""
        low = np.searchsorted(self.end, ranges.starts, side="right")
        return low, np.maximum(np.searchsorted(self.begin, ranges.stops, side="left"), low)

    def begins(self, numbers: Integers) -> Integers:
        """As `PaddingRuns.begins`."""
        return self.begin[np.minimum(numbers, len(self.begin) - 1)]

    def ends(self, numbers: Integers) -> Integers:
        """As `PaddingRuns.ends`."""
        return self.end[np.minimum(numbers, len(self.end) - 1)]

    def below(self, numbers: Integers, copies: Copies) -> Integers:
        """As `PaddingRuns.below`."""
        lengths = self.end - self.begin
        total = np.zeros((2, len(lengths) + 1), np.int64)
        np.cumsum([lengths, copies(lengths)], axis=1, out=total[:, 1:])
        return total[:, numbers]


def padding_runs(frame: Frame) -> PaddingRuns | ListedPadding:
    """All runs of neighboring padding sticks; `transfers.list_padding` lists the parts of them that cores need."""
    span = run_length(frame)
    if span is not None:
        return PaddingRuns(frame, span)
    held = np.flatnonzero(frame_sources(frame, 0, frame.sticks) >= 0)
    begin, end = np.append(0, held + 1), np.append(held, frame.sticks)
    filled = end > begin
    filled[-1] = True
    return ListedPadding(begin[filled], end[filled])
