import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec, bank_of, decode_pages, encode_pages, page_places
from device.memory.memory_config import (
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, UINT16, quantize
from device.spec.device_spec import load_spec

WORMHOLE = load_spec("wormhole_n150")
BLOCK = TensorMemoryLayout.BLOCK_SHARDED


def on_cores(
    layout: TensorMemoryLayout, cores: CoreRangeSet, shape: list[int], *, row_major: bool = True
) -> MemoryConfig:
    orientation = ShardOrientation.ROW_MAJOR if row_major else ShardOrientation.COL_MAJOR
    return MemoryConfig(layout, BufferType.L1, ShardSpec(cores, shape, orientation))


def grid(cols: int, rows: int) -> CoreRangeSet:
    return CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(cols - 1, rows - 1)))


def places(tensor: TensorSpec) -> list[tuple[int, int]]:
    found = page_places(tensor, WORMHOLE)
    return [(int(bank), int(offset)) for bank, offset in zip(found.banks, found.offsets, strict=True)]


def test_interleaved_pages_go_round_the_banks() -> None:
    tensor = TensorSpec([14, 20], BFLOAT16, Layout.ROW_MAJOR)
    assert places(tensor)[:2] == [(0, 0), (1, 0)]
    assert places(tensor)[12:] == [(0, 64), (1, 64)]
    in_l1 = TensorSpec([65, 20], BFLOAT16, Layout.ROW_MAJOR, MemoryConfig(buffer_type=BufferType.L1))
    assert places(in_l1)[63:] == [(63, 0), (0, 48)]


def test_height_shards_follow_the_cores() -> None:
    config = on_cores(TensorMemoryLayout.HEIGHT_SHARDED, first_cores(10, 8, 8), [2, 20])
    found = places(TensorSpec([19, 20], BFLOAT16, Layout.ROW_MAJOR, config))
    assert found[:3] == [(0, 0), (0, 48), (1, 0)]
    assert found[-1] == (bank_of(CoreCoord(1, 1), WORMHOLE), 0)


def test_height_shards_may_go_down_the_columns() -> None:
    config = on_cores(TensorMemoryLayout.HEIGHT_SHARDED, grid(2, 2), [1, 20], row_major=False)
    found = places(TensorSpec([4, 20], BFLOAT16, Layout.ROW_MAJOR, config))
    assert [bank for bank, _ in found] == [0, 8, 1, 9]


def test_width_shards_cut_rows_into_pages() -> None:
    config = on_cores(TensorMemoryLayout.WIDTH_SHARDED, first_cores(2, 8, 8), [2, 16])
    found = places(TensorSpec([2, 32], BFLOAT16, Layout.ROW_MAJOR, config))
    assert found == [(0, 0), (1, 0), (0, 32), (1, 32)]


def test_block_shards_of_tiles() -> None:
    across = on_cores(BLOCK, grid(2, 3), [32, 64])
    tensor = TensorSpec([96, 96], BFLOAT16, Layout.TILE, across)
    assert places(tensor)[:4] == [(0, 0), (0, 2048), (1, 0), (8, 0)]
    down = on_cores(BLOCK, grid(3, 2), [32, 64], row_major=False)
    tensor = TensorSpec([96, 96], BFLOAT16, Layout.TILE, down)
    assert places(tensor)[:4] == [(0, 0), (0, 2048), (8, 0), (1, 0)]


@given(
    fmt=st.sampled_from([BFLOAT16, FLOAT32, BFLOAT8_B, UINT16]),
    rows=st.integers(1, 70),
    cols=st.integers(1, 70),
    layout=st.sampled_from(list(Layout)),
    seed=st.integers(0, 99),
)
def test_pages_hold_the_values(fmt: object, rows: int, cols: int, layout: Layout, seed: int) -> None:
    assert fmt in (BFLOAT16, FLOAT32, BFLOAT8_B, UINT16)
    data_format = next(one for one in (BFLOAT16, FLOAT32, BFLOAT8_B, UINT16) if one is fmt)
    if data_format.is_block:
        layout = Layout.TILE
    tensor = TensorSpec([rows, cols], data_format, layout)
    values = np.random.default_rng(seed).integers(0, 100, (rows, cols)).astype(np.float32)
    padded = np.zeros(tensor.padded_shape, np.float32)
    padded[:rows, :cols] = values
    held = quantize(padded, data_format)
    pages = encode_pages(quantize(values, data_format) if not data_format.is_block else held, tensor)
    buffer = tensor.buffer(WORMHOLE)
    assert pages.shape == (buffer.size_bytes // buffer.page_bytes, buffer.page_bytes)
    assert np.array_equal(decode_pages(pages, tensor), held)


@given(st.sampled_from(["height", "width", "block"]), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_no_two_pages_share_a_place(scheme: str, high: int, wide: int, tiled: bool) -> None:
    unit = 32 if tiled else 8
    layout = Layout.TILE if tiled else Layout.ROW_MAJOR
    rows, cols = 64 * high, 64 * wide
    config = {
        "height": on_cores(TensorMemoryLayout.HEIGHT_SHARDED, first_cores(3 * high, 8, 8), [32, cols]),
        "width": on_cores(TensorMemoryLayout.WIDTH_SHARDED, first_cores(8 * wide, 8, 8), [rows, unit]),
        "block": on_cores(BLOCK, grid(2 * wide, high), [64, 32]),
    }[scheme]
    tensor = TensorSpec([rows, cols], BFLOAT16, layout, config)
    found, buffer = places(tensor), tensor.buffer(WORMHOLE)
    assert len(set(found)) == len(found) == buffer.size_bytes // buffer.page_bytes
    assert all(0 <= offset <= buffer.bank_bytes - buffer.page_bytes for _, offset in found)
    assert config.shard_spec is not None
    assert {bank for bank, _ in found} <= {bank_of(core, WORMHOLE) for core in config.shard_spec.grid.cores()}


def test_values_of_another_shape_are_refused() -> None:
    tensor = TensorSpec([4, 20], BFLOAT16, Layout.TILE)
    with pytest.raises(ValueError, match=r"shape \[4, 20\] \(padded \[32, 32\]\) holds values .*, not of \[20, 4\]"):
        encode_pages(np.zeros((20, 4), np.float32), tensor)
