"""The factors of an average pool by window, and the sums of the matrix unit."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise, product

import numpy as np

from device.matrix_unit.arithmetic import Arithmetic, arithmetic_of, cut
from device.matrix_unit.exact import MatrixUnitMode
from device.memory.memory_config import FACE
from device.numbers.formats import Array, Integers, div_up, round_up
from ops.window import PaddedAxis, PaddedInput

ENTRY_WORDS = 3  # of a list of scalars: first output, scalar, last output + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Averaging:
    """The averaging rule of a pool."""

    padding_counts: bool = True  # The numbers of the padding are counted
    divisor: int | None = None  # What sums are divided by; None for how many numbers there are
    ceiling: tuple[int, int] = (0, 0)  # Rows and columns of the frame that only ceil_mode added, which never count
    fidelity_phases: int = 4  # Fidelity phases, 1 (LoFi) to 4 (HiFi4)
    fp32_dest: bool | None = None  # Dst is 32 bits wide; None: where a window is reduced in parts

    def is_uniform(self, frame: PaddedInput) -> bool:
        """Whether all windows have the same scalar."""
        if self.divisor is not None:
            return True
        axes = zip((frame.rows, frame.columns), self.ceiling, strict=True)
        padded = any(axis.before + axis.after - ceiling for axis, ceiling in axes)
        return self.ceiling == (0, 0) and (self.padding_counts or not padded)

    def counts(self, frame: PaddedInput) -> Integers:
        """The number of counted elements of each window of an image, [rows, columns]."""
        if self.is_uniform(frame):
            all_taps = frame.rows.kernel * frame.columns.kernel
            divisor = all_taps if self.divisor is None else self.divisor
            return np.full((frame.rows.outputs, frame.columns.outputs), divisor, np.int64)
        down, across = (
            self._lengths(axis, ceiling)
            for axis, ceiling in zip((frame.rows, frame.columns), self.ceiling, strict=True)
        )
        counts: Integers = np.multiply.outer(down, across)
        return counts

    def _lengths(self, axis: PaddedAxis, ceiling: int) -> Integers:
        """The number of counted elements of each window along an axis, [outputs]."""
        first = np.arange(axis.outputs, dtype=np.int64) * axis.stride - axis.before
        behind = first + axis.kernel
        if self.padding_counts:
            behind = np.minimum(behind, axis.input_length + axis.after - ceiling)
        else:
            first, behind = np.maximum(first, 0), np.minimum(behind, axis.input_length)
        lengths: Integers = np.maximum(behind - first, 0)
        return lengths

    def list_words(self, frame: PaddedInput, *, output_rows: int, cores: int) -> int:
        """uint16 words of the longest list of scalars of a core: an entry for every run of equal scalars."""
        counts = self.counts(frame).ravel()
        differs: list[bool] = (counts != np.roll(counts, 1)).tolist()
        changes: list[int] = [0, *accumulate(differs)]  # before each output of an image
        changed, size = changes[-1], len(counts)

        def until(output: int) -> int:
            images, place = divmod(output, size)
            return images * changed + changes[place]

        starts = _list_starts(frame, output_rows, cores)
        return ENTRY_WORDS * max(1 + until(start + output_rows) - until(start + 1) for start in starts)


def _list_starts(frame: PaddedInput, output_rows: int, cores: int) -> Iterator[int]:
    """The first output of each core's list within its image; the library wraps around after the last image."""
    size, output, start = frame.rows.outputs * frame.columns.outputs, 0, 0
    for _ in range(cores):
        yield start
        output += output_rows
        start = output % size
        if output // size == frame.batch:
            output -= frame.batch * size
            start = 0


def scalar_of(count: int) -> float:
    """1 / ``count`` truncated to bfloat16; infinity for 0."""
    with np.errstate(divide="ignore"):
        value = np.array([1], np.float32) / np.array([count], np.float32)
    return float((value.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)[0])


def averages(
    framed: Array,
    frame: PaddedInput,
    counts: Array,
    averaging: Averaging,
    arithmetic: Arithmetic,
    *,
    chunk: int,
    minus_one_quirk: bool,
) -> Array:
    """[outputs, columns, C] Dst of the averages of windows over rows of a frame, bfloat16 numbers as float32.

    ``counts`` [outputs, columns] are the element counts of the windows. ``chunk`` elements are summed at a time.
    """
    rows, columns = frame.rows, frame.columns
    outputs, taps = len(counts), [*product(range(rows.kernel), range(columns.kernel))]
    spans = [*pairwise([*range(0, len(taps), chunk), len(taps)])]
    halves = sum(div_up(end - begin, FACE) for begin, end in spans)
    windows = np.zeros((halves * FACE, outputs, columns.outputs, framed.shape[-1]), np.float32)
    place = 0
    for begin, end in spans:
        for number, (down, across) in enumerate(taps[begin:end]):
            below, behind = framed[down * rows.dilation :: rows.stride], across * columns.dilation
            windows[place + number] = below[:outputs, behind :: columns.stride][:, : columns.outputs]
        place += round_up(end - begin, FACE)
    mode = MatrixUnitMode(
        fidelity_phases=averaging.fidelity_phases, fp32_dest=bool(averaging.fp32_dest), minus_one_quirk=minus_one_quirk
    )
    arithmetic = arithmetic_of(arithmetic, windows)
    scalar_mask, number_mask = arithmetic.operand_masks(mode)
    windows, result = cut(windows, number_mask), np.empty(windows.shape[1:], np.float32)
    for count in np.unique(counts):
        nothing = not count and averaging.divisor is None  # the window is in the padding
        scalar = 0.0 if nothing else scalar_of(int(count))
        scalars = cut(np.full((1, len(windows)), scalar, np.float32), scalar_mask)
        chosen = counts == count
        operand = np.ascontiguousarray(windows[:, chosen]).reshape(len(windows), -1)
        dst = arithmetic.product(scalars, operand, mode=mode, half_counts=(1,) * halves)
        result[chosen] = dst.reshape(-1, windows.shape[-1])
    return result
