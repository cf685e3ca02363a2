"""What a pool program computes: the largest of the numbers under each window, channel by channel."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.numbers.block_floats import whole_groups
from device.numbers.formats import Array, DataFormat
from device.plan import Work
from ops.frame.frame import Frame
from ops.meaning import ValuesReading, given


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxPool(Work):
    """One program.

    Attributes:
        frame: The images with what lies around them, which is less than every number, and their windows.
        channels: Channels.
        channel_cores: Cores that split them.
        core_outputs: Outputs of a core.
        in_format: Format of the sticks that it reads.
        data_format: Format of the result.
        tiled: The result is in tiles.
    """

    frame: Frame
    channels: int
    channel_cores: int
    core_outputs: int
    in_format: DataFormat
    data_format: DataFormat
    tiled: bool

    @property
    def taps(self) -> int:
        """Numbers under a window."""
        return self.frame.rows.taps * self.frame.columns.taps


def largest(work: MaxPool, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    """[1, 1, N*OH*OW, C] in storage of the result's format, of sticks [..., C]."""
    rows, columns = work.frame.rows, work.frame.columns
    sticks = given(inputs[0]).reshape(-1, given(inputs[0]).shape[-1])[:, : work.channels].astype(np.float32)
    images = sticks[: work.frame.batch * rows.input_length * columns.input_length]
    images = images.reshape(work.frame.batch, rows.input_length, columns.input_length, work.channels)
    around = ((0, 0), (rows.before, rows.after), (columns.before, columns.after), (0, 0))
    framed = np.pad(images, around, constant_values=-np.inf)
    result = np.full((work.frame.batch, rows.outputs, columns.outputs, work.channels), -np.inf, np.float32)
    for down in range(rows.taps):
        for across in range(columns.taps):
            first_row, first_column = down * rows.spacing, across * columns.spacing
            met = framed[
                :,
                first_row : first_row + (rows.outputs - 1) * rows.step + 1 : rows.step,
                first_column : first_column + (columns.outputs - 1) * columns.step + 1 : columns.step,
            ]
            np.maximum(result, met, out=result)
    dst = result.reshape(1, 1, -1, work.channels)
    if work.data_format.is_block:
        dst = whole_groups(dst)
    packed = reading.arithmetic.pack(dst, work.data_format, fp32_dest=False)
    return packed[..., : work.channels].astype(work.data_format.storage)
