"""What the data movement operations do to numbers, on logical arrays in the storage type of their format.

Padding is not part of a logical array, so that sharding and moving change nothing. A view (a tensor under
another shape) has no operation of its own: arrays keep their elements in order, and every reader gives them the shape
that it needs.
"""

from typing import Final

import numpy as np

from device.matrix_unit.packer import without_nan
from device.matrix_unit.typecast import typecast
from device.numbers.formats import BFLOAT16, Array
from ops.programs.movement.work import (
    Conversion,
    CopyTensor,
    FoldWindows,
    PaddedSlice,
    PadImage,
    SliceWrite,
    Typecast,
    Window,
)

TILIZES: Final = frozenset({Conversion.TILIZE, Conversion.TILIZE_WITH_VAL_PADDING})


def partitioned(work: CopyTensor, values: Array) -> Array:
    """The same numbers; where rows become tiles, the packer makes infinities of NaNs in bfloat16."""
    return packed_tiles(values) if work.conversion in TILIZES else values


def packed_tiles(values: Array) -> Array:
    """Numbers of bfloat16, whose NaNs are infinities once a packer wrote them; of other formats as they are."""
    if values.dtype != BFLOAT16.storage or not np.isnan(values).any():
        return values
    return without_nan(values.astype(np.float32).view(np.uint32)).view(np.float32).astype(values.dtype)


def converted(work: Typecast, values: Array) -> Array:
    """Numbers in another format: block floats on their way through bfloat16 and back, where neighbors may differ."""
    return typecast(values, work.source_format, work.data_format)


def padded_image(work: PadImage, values: Array) -> Array:
    """Images [N, H, W, C] with zeros around them."""
    top, bottom, left, right = work.padding
    return np.pad(values.reshape(work.image), ((0, 0), (top, bottom), (left, right), (0, 0)))


def folded_windows(work: FoldWindows, values: Array) -> Array:
    """Windows as channels; their rows are slowest."""
    (rows, columns), (batch, height, width, channels) = work.window, work.image
    if any(work.padding):
        top, bottom, left, right = work.padding
        inner = (batch, height - top - bottom, width - left - right, channels)
        values = padded_image(PadImage(image=inner, padding=work.padding), values)
    split = values.reshape(batch, height // rows, rows, width // columns, columns, channels)
    folded = split.transpose(0, 1, 3, 2, 4, 5).reshape(batch, height // rows, width // columns, -1)
    return folded.astype(work.data_format.storage, copy=False)


def padded_slice(work: PaddedSlice, values: Array) -> Array:
    """The window of an image, as a view."""
    return values.reshape(work.window.shape)[_box(work.window)]


def written_slice(work: SliceWrite, source: Array, target: Array | None) -> Array:
    """The target with the source in its window, written in place; what lies beyond the window is dropped.

    Args:
        work: Which part of the image, and how wide the source is.
        source: Rows of the slice.
        target: What other slices wrote into the same image; None before the first of them.

    Returns:
        The image; what no slice has written is NaN.
    """
    window = work.window
    batch, rows, cols, channels = window.window_shape
    image = np.full(window.shape, np.nan, source.dtype) if target is None else target
    part = source.reshape(batch, -1, work.source_width, channels)[:, :rows, :cols]
    image[_box(window)][:, : part.shape[1]] = part
    return image


def _box(window: Window) -> tuple[slice, ...]:
    """The window as an index."""
    return tuple(slice(begin, end) for begin, end in zip(window.begins, window.ends, strict=True))
