"""What the data movement operations do to numbers, on logical arrays in the storage type of their format.

Padding is not part of a logical array, so that sharding, moving and tilizing change nothing. A view (a tensor under
another shape) has no operation of its own: arrays keep their elements in order, and every reader gives them the shape
that it needs.
"""

from collections.abc import Sequence
from typing import assert_never

import numpy as np

from device.numbers.formats import Array, DataFormat, quantize
from ops.programs.movement.work import (
    FillPad,
    FoldWindows,
    PaddedSlice,
    PadImage,
    Relayout,
    Reshape,
    SliceWrite,
    Typecast,
    Window,
)

Work = Relayout | Reshape | Typecast | FillPad | PadImage | FoldWindows | PaddedSlice | SliceWrite


def result(work: Work, inputs: Sequence[Array | None]) -> Array:
    """What an operation makes, or what it leaves in its last input if it makes nothing.

    Args:
        work: What is computed.
        inputs: Arrays of the operation's inputs, in order; None for one that nobody has written.
    """
    first = inputs[0] if inputs else None
    if first is None:
        raise AssertionError(f"{work} reads a tensor that nobody has written")
    match work:
        case Relayout() | FillPad():
            return first
        case Reshape(shape=shape):
            return first.reshape(shape)
        case Typecast(data_format=data_format):
            return converted(first, data_format)
        case PadImage(image=image, padding=(top, bottom, left, right)):
            return np.pad(first.reshape(image), ((0, 0), (top, bottom), (left, right), (0, 0)))
        case FoldWindows():
            return _folded(work, first)
        case PaddedSlice(window=window):
            return _image(first, window)[_box(window)]
        case SliceWrite(window=window, source_width=source_width):
            return _written(inputs[-1], first, window, source_width)
    assert_never(work)


def _folded(work: FoldWindows, values: Array) -> Array:
    """Windows as channels; their rows are slowest."""
    (rows, columns), (batch, height, width, channels) = work.window, work.image
    split = values.reshape(batch, height // rows, rows, width // columns, columns, channels)
    folded = split.transpose(0, 1, 3, 2, 4, 5).reshape(batch, height // rows, width // columns, -1)
    return folded.astype(work.data_format.storage, copy=False)


def converted(values: Array, data_format: DataFormat) -> Array:
    """Numbers in another format.

    Only block floats on their way through bfloat16 and back take this path: their groups of 16 keep their neighbors,
    so that they fit the shared exponents again and no rounding happens.
    """
    return quantize(values, data_format)


def _written(target: Array | None, source: Array, window: Window, source_width: int) -> Array:
    """The target with the source in its window, written in place; what lies beyond the window is dropped.

    Args:
        target: What other slices wrote into the same image; None before the first of them.
        source: Rows of the slice.
        window: Which part of the image.
        source_width: Columns of an image row of the source.

    Returns:
        The image; what no slice has written is NaN.
    """
    batch, rows, cols, channels = window.window_shape
    image = np.full(window.shape, np.nan, source.dtype) if target is None else target
    part = source.reshape(batch, -1, source_width, channels)[:, :rows, :cols]
    image[_box(window)][:, : part.shape[1]] = part
    return image


def _image(values: Array, window: Window) -> Array:
    """The array as the image tensor that the window belongs to."""
    return values.reshape(window.shape)


def _box(window: Window) -> tuple[slice, ...]:
    """The window as an index."""
    return tuple(slice(begin, end) for begin, end in zip(window.begins, window.ends, strict=True))
