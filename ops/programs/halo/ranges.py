"""Which part of the frame each core needs: one contiguous range of sticks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device.numbers.integers import Integers
from ops.frame.frame import Frame, data_before, window_starts


@dataclass(frozen=True, slots=True)
class StickRanges:
    """The sticks of every core that splits the rows, in core order. No range is empty.

    Attributes:
        starts: [cores] first stick.
        stops: Last stick + 1.
        first_data: Data sticks of the frame below ``starts``.
        last_stick_data: Data sticks below the last stick.
        stop_data: Data sticks below ``stops``.
        begins_with_padding: Whether the first stick is padding.
    """

    starts: Integers
    stops: Integers
    first_data: Integers
    last_stick_data: Integers
    stop_data: Integers
    begins_with_padding: NDArray[np.bool_]

    @property
    def max_sticks(self) -> int:
        """Sticks of the core with the most of them: the height of every core's shard."""
        return int((self.stops - self.starts).max())


def most_sticks(frame: Frame, *, output_rows: int, cores: int) -> int:
    """`max_sticks` of the `stick_ranges` of these arguments."""
    starts, stops = _bounds(frame, output_rows=output_rows, cores=cores)
    return int((stops - starts).max())


def stick_ranges(frame: Frame, *, output_rows: int, cores: int) -> StickRanges:
    """The sticks between the first and the last that a core's outputs read (docs/planning.md, Halo).

    Columns outside the windows are included, which makes the range contiguous. A core behind the last output gets the
    range of the last output once more, as in the real library.

    Args:
        frame: The frame.
        output_rows: Outputs of one core; the last cores may have fewer.
        cores: Cores among which the outputs are split.
    """
    starts, stops = _bounds(frame, output_rows=output_rows, cores=cores)
    below = data_before(frame, np.concatenate([starts, starts + 1, stops - 1, stops])).reshape(4, cores)
    return StickRanges(
        starts=starts,
        stops=stops,
        first_data=below[0],
        last_stick_data=below[2],
        stop_data=below[3],
        begins_with_padding=below[0] == below[1],
    )


def _bounds(frame: Frame, *, output_rows: int, cores: int) -> tuple[Integers, Integers]:
    """First stick, and last stick + 1, of every core."""
    first = np.arange(cores, dtype=np.int64) * output_rows
    last = np.minimum(first + (output_rows - 1), frame.outputs - 1)
    bounds = window_starts(frame, np.concatenate([np.minimum(first, last), last]))
    return bounds[:cores], bounds[cores:] + (frame.reach + 1)
