"""Sorted rows with their original indices, for sort and topk."""

from math import prod

import numpy as np

from device.numbers.formats import Array, DataFormat


def without_padding(source: Array, shape: tuple[int, ...]) -> Array:
    """Elements in a shape, without padding that a view may have included."""
    if source.size != prod(shape):
        rows, columns = (1, *shape)[-2:]
        source = source.reshape(-1, *source.shape[-2:])[:, :rows, :columns]
    return source.reshape(shape)


def ordered_rows(
    source: Array, shape: tuple[int, ...], count: int, *, descending: bool, index_format: DataFormat
) -> tuple[Array, Array]:
    """The first elements of each row in sorted order; equal elements by index.

    Args:
        source: Elements in storage of their format, possibly with padding.
        shape: The shape without padding.
        count: Elements of a row of the results; shorter rows are followed by unused padding.
        descending: Whether the largest come first.
        index_format: The format of the indices.

    Returns:
        Elements and indices, both [..., count].
    """
    source = without_padding(source, shape)
    numbers = source.astype(np.float64)
    places = np.argsort(-numbers if descending else numbers, axis=-1, kind="stable")[..., :count]
    picked = np.take_along_axis(source, places, axis=-1)
    behind = [(0, 0)] * (source.ndim - 1) + [(0, max(0, count - shape[-1]))]
    return np.pad(picked, behind), np.pad(places, behind).astype(index_format.storage)
