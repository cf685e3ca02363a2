"""What a pool program computes: the largest of the numbers under each window, channel by channel."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.host.parts import parts_of
from device.matrix_unit.packer import without_nan
from device.numbers.block_floats import whole_groups
from device.numbers.formats import Array, DataFormat
from device.plan import Work
from ops.frame.frame import Frame
from ops.meaning import ValuesReading, given


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxPool(Work):
    """One program."""

    frame: Frame  # The images with what lies around them, which is less than every number, and their windows
    channels: int
    channel_cores: int  # Cores that split them
    core_outputs: int
    in_format: DataFormat  # Format of the sticks that it reads
    data_format: DataFormat
    tiled: bool  # The result is in tiles

    @property
    def taps(self) -> int:
        """Numbers under a window."""
        return self.frame.rows.taps * self.frame.columns.taps


def largest(work: MaxPool, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    """[1, 1, N*OH*OW, C] in storage of the result's format, of sticks [..., C].

    A NaN is larger than infinity, or less than its negative, and packed as that.
    """
    rows, columns, batch = work.frame.rows, work.frame.columns, work.frame.batch
    sticks = given(inputs[0]).reshape(-1, given(inputs[0]).shape[-1])[:, : work.channels]
    sticks = sticks[: batch * rows.input_length * columns.input_length]
    images = sticks.reshape(batch, rows.input_length, columns.input_length, work.channels)
    result = np.empty((batch, rows.outputs, columns.outputs, work.channels), work.data_format.storage)

    def pool(band: tuple[int, slice]) -> None:
        image, part = band
        outputs = result[image, part]
        dst = _largest(_framed(images[image], work.frame, part.start, len(outputs)), work.frame, len(outputs))
        if work.data_format.is_block:
            dst = whole_groups(dst)
        packed = reading.arithmetic.pack(dst, work.data_format, fp32_dest=False)
        outputs[...] = packed[..., : work.channels]

    parts = list(parts_of(rows.outputs, rows.step * columns.length * work.channels))
    reading.arithmetic.each(pool, [(image, part) for image in range(batch) for part in parts])
    return result.reshape(1, 1, -1, work.channels)


def _framed(image: Array, frame: Frame, first: int, outputs: int) -> Array:
    """The frame's rows [rows, columns, C] under so many rows of windows, float32: less than every number around."""
    rows, columns = frame.rows, frame.columns
    begin = first * rows.step - rows.before  # in the image, where both may lie outside
    end = begin + (outputs - 1) * rows.step + rows.reach + 1
    inside = slice(max(begin, 0), max(min(end, rows.input_length), 0))
    if (inside.start, inside.stop) == (begin, end) and not columns.before and not columns.after:
        return _ordered(image[inside].astype(np.float32))
    framed = np.full((end - begin, columns.length, image.shape[-1]), -np.inf, np.float32)
    part = image[inside]
    framed[inside.start - begin :, columns.before :][: len(part), : columns.input_length] = part
    return _ordered(framed)


def _ordered(values: Array) -> Array:
    """float32 with the infinity of its sign for every NaN."""
    return without_nan(values.view(np.uint32)).view(np.float32)


def _largest(framed: Array, frame: Frame, outputs: int) -> Array:
    """[outputs, columns, C] the largest under each window of rows of a frame."""
    rows, columns = frame.rows, frame.columns
    result = np.full((outputs, columns.outputs, framed.shape[-1]), -np.inf, np.float32)
    for down in range(rows.taps):
        for across in range(columns.taps):
            first_row, first_column = down * rows.spacing, across * columns.spacing
            met = framed[
                first_row : first_row + (outputs - 1) * rows.step + 1 : rows.step,
                first_column : first_column + (columns.outputs - 1) * columns.step + 1 : columns.step,
            ]
            np.maximum(result, met, out=result)
    return result
