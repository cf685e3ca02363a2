"""Pages of a tensor: which bank and offset each has, and the bytes in it.

A bank of L1 is a core, numbered row by row over the worker grid. (The real library deals interleaved L1 pages to the
same cores in a shuffled order; addresses do not depend on it.)
"""

from typing import NamedTuple

import numpy as np

from device.cores import CoreCoord
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, ShardOrientation, ShardSpec, TensorMemoryLayout
from device.memory.tiles import TILE, tilize, untilize
from device.numbers.formats import Array, decode_rows, decode_tiles, encode_rows, encode_tiles
from device.numbers.integers import div_up, round_up
from device.spec.device_spec import DeviceSpec


class PagePlaces(NamedTuple):
    """Where pages lie, in page order."""

    banks: Array  # int64 [pages]
    offsets: Array  # int64 [pages], bytes from the buffer's address


def bank_of(core: CoreCoord, spec: DeviceSpec) -> int:
    """The L1 bank of a core."""
    return core.y * spec.grid.cols + core.x


def page_places(tensor: TensorSpec, spec: DeviceSpec) -> PagePlaces:
    """Bank and offset of every page of a tensor, pages counted along the rows of its padded matrix.

    Interleaved pages go round the banks. A shard's pages lie one after the other on its core, row by row.
    """
    config = tensor.memory_config
    in_dram = config.buffer_type is BufferType.DRAM
    page_rows, page_cols, page_bytes = _page_grid(tensor)
    stride = round_up(page_bytes, (spec.dram if in_dram else spec.l1).alignment_bytes)
    pages = np.arange(page_rows * page_cols)
    if config.shard_spec is None:
        count = spec.dram.banks if in_dram else spec.grid.cores
        return PagePlaces(pages % count, pages // count * stride)
    unit = TILE if tensor.layout is Layout.TILE else 1
    shard_rows = config.shard_spec.shape[0] // unit
    shard_cols = config.shard_spec.shape[1] // unit if unit == TILE else 1
    shard_row, row = np.divmod(pages // page_cols, shard_rows)
    shard_col, col = np.divmod(pages % page_cols, shard_cols)
    cores = _shard_banks(config.memory_layout, config.shard_spec, spec)
    if config.memory_layout is TensorMemoryLayout.BLOCK_SHARDED:
        across = config.shard_spec.orientation is ShardOrientation.ROW_MAJOR
        banks = cores[shard_row, shard_col] if across else cores[shard_col, shard_row]
    else:
        banks = cores[0, shard_row * div_up(page_cols, shard_cols) + shard_col]
    return PagePlaces(banks, (row * shard_cols + col) * stride)


def encode_pages(values: Array, tensor: TensorSpec) -> Array:
    """Bytes of a tensor's pages.

    Args:
        values: Of the tensor's shape, or of its padded shape; what is missing is zero.
        tensor: Shape, format and layout.

    Returns:
        uint8 [pages, page_bytes].

    Raises:
        ValueError: ``values`` has another shape.
    """
    matrix = _padded_values(values, tensor).reshape(tensor.matrix)
    _, _, page_bytes = _page_grid(tensor)
    if tensor.layout is Layout.TILE:
        return encode_tiles(tilize(matrix), tensor.data_format).reshape(-1, page_bytes)
    return encode_rows(matrix, tensor.data_format).reshape(-1, page_bytes)


def decode_pages(pages: Array, tensor: TensorSpec) -> Array:
    """Values of a tensor's pages; inverse of ``encode_pages``.

    Args:
        pages: uint8 [pages, page_bytes].
        tensor: Shape, format and layout.

    Returns:
        The tensor's padded shape, in its format's storage type.
    """
    rows, cols = tensor.matrix
    if tensor.layout is Layout.TILE:
        tiles = decode_tiles(pages.reshape(div_up(rows, TILE), div_up(cols, TILE), -1), tensor.data_format)
        return untilize(tiles).reshape(tensor.padded_shape)
    return decode_rows(pages.reshape(rows, -1), tensor.data_format).reshape(tensor.padded_shape)


def _page_grid(tensor: TensorSpec) -> tuple[int, int, int]:
    """Pages along the height and the width of a tensor's padded matrix, and bytes of one."""
    rows, cols = tensor.matrix
    if tensor.layout is Layout.TILE:
        return div_up(rows, TILE), div_up(cols, TILE), tensor.data_format.tile_bytes
    shards = tensor.memory_config.shard_spec
    page_cols = max(cols if shards is None else shards.shape[1], 1)
    return rows, cols // page_cols, page_cols * tensor.data_format.storage.itemsize


def _shard_banks(layout: TensorMemoryLayout, shards: ShardSpec, spec: DeviceSpec) -> Array:
    """Banks of a shard grid: [grid rows, grid cols] for block shards, else [1, cores] in the order of dealing."""
    if layout is TensorMemoryLayout.BLOCK_SHARDED:
        box = shards.grid.bounding_box()
        return np.array([bank_of(core, spec) for core in box.cores()]).reshape(box.rows, box.cols)
    row_major = shards.orientation is ShardOrientation.ROW_MAJOR
    return np.array([[bank_of(core, spec) for core in shards.grid.cores(row_major)]])


def _padded_values(values: Array, tensor: TensorSpec) -> Array:
    """Values of the tensor's padded shape."""
    if values.shape == tensor.padded_shape:
        return values
    if values.shape != tensor.shape or len(tensor.shape) > len(tensor.padded_shape):
        raise ValueError(
            f"a tensor of shape {list(tensor.shape)} (padded {list(tensor.padded_shape)}) holds values of one of these "
            f"shapes, not of {list(values.shape)}; reshape them first"
        )
    lead = (1,) * (len(tensor.padded_shape) - len(tensor.shape))
    padded = np.zeros(tensor.padded_shape, values.dtype)
    padded[tuple(slice(side) for side in lead + tensor.shape)] = values.reshape(lead + tensor.shape)
    return padded
