import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.errors import DeviceError
from device.memory.layouts import TensorSpec, bank_of, decode_pages, encode_pages, page_places
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_HEIGHT_SHARDED_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, FORMATS, UINT16, quantize
from device.spec.device_spec import load_spec

WORMHOLE = load_spec("wormhole_n150")
SPECS = {"wh": WORMHOLE, "bh": load_spec("blackhole_p150")}


def test_text_of_a_users_config_leaves_the_distribution_open() -> None:
    config = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(first_cores(35, 8, 8), (32, 64)))
    assert str(config) == (
        "MemoryConfig(memory_layout=TensorMemoryLayout::HEIGHT_SHARDED,buffer_type=BufferType::L1,"
        'shard_spec=ShardSpec{grid=[{"start":{"x":0,"y":0},"end":{"x":7,"y":3}, '
        '{"start":{"x":0,"y":4},"end":{"x":2,"y":4}], '
        "shape=[32, 64], orientation=ShardOrientation::ROW_MAJOR},nd_shard_spec=std::nullopt,"
        "created_with_nd_shard_spec=0,per_core_allocation=0,range_lockstep_allocation=0)"
    )
    assert config == config.reported()
    assert hash(config) == hash(config.reported())


@pytest.mark.parametrize(
    ("shape", "padded"),
    [((), (32, 32)), ((5,), (32, 32)), ((3, 33, 1), (3, 64, 32)), ((1, 1, 64, 64), (1, 1, 64, 64))],
)
def test_tiles_pad_the_last_two_axes(shape: tuple[int, ...], padded: tuple[int, ...]) -> None:
    assert TensorSpec(shape, BFLOAT16, Layout.TILE).padded_shape == padded


def test_shards_pad_rows_to_whole_shards() -> None:
    shards = ShardSpec(CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(2, 1))), (5, 16))
    config = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1, shards)
    tensor = TensorSpec((1, 1, 9, 40), FLOAT32, Layout.ROW_MAJOR, config)
    buffer = tensor.buffer(WORMHOLE)
    assert tensor.padded_shape == (1, 1, 9, 48)
    assert (buffer.page_bytes, buffer.size_bytes, buffer.bank_bytes, buffer.num_cores) == (64, 27 * 64, 5 * 64, 6)


SHARDS = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(first_cores(4, 8, 8), (32, 64)))


@pytest.mark.parametrize(
    ("spec", "alignment"),
    [
        (TensorSpec([5, 7], BFLOAT16, Layout.TILE), (32, 32)),
        (TensorSpec([5, 7], BFLOAT16, Layout.ROW_MAJOR), (1,)),
        (TensorSpec([128, 64], BFLOAT16, Layout.TILE, SHARDS), (32, 32)),
        (TensorSpec([128, 64], BFLOAT16, Layout.ROW_MAJOR, SHARDS), (64,)),
        (TensorSpec([128, 64], BFLOAT16, Layout.TILE, SHARDS, alignment=(32, 64)), (32, 64)),
        (TensorSpec([128, 64], BFLOAT16, Layout.ROW_MAJOR, SHARDS, alignment=(32, 32)), (32, 64)),
        (TensorSpec([5, 7], BFLOAT16, Layout.TILE, padded_shape=(32, 32)), (32, 32)),
        (TensorSpec([5, 7], BFLOAT16, Layout.TILE, padded_shape=(64, 32)), (64, 32)),
        (TensorSpec([5, 7], BFLOAT16, Layout.ROW_MAJOR, padded_shape=(5, 7)), (1,)),
        (TensorSpec([5, 7], BFLOAT16, Layout.ROW_MAJOR, padded_shape=(5, 8)), (5, 8)),
        (TensorSpec([7], BFLOAT16, Layout.ROW_MAJOR, padded_shape=(8,)), (8,)),
        (TensorSpec([2, 3, 5, 7], BFLOAT16, Layout.TILE, padded_shape=(2, 4, 32, 64)), (256, 128, 32, 64)),
    ],
)
def test_alignment_is_what_the_last_axes_are_padded_to_multiples_of(
    spec: TensorSpec, alignment: tuple[int, ...]
) -> None:
    assert spec.alignment == alignment


def test_an_alignment_pads_and_tells_tensors_apart() -> None:
    spec = TensorSpec([1, 1, 100, 40], BFLOAT16, Layout.TILE, SHARDS, alignment=(64, 64))
    assert spec.padded_shape == (1, 1, 128, 64)
    assert TensorSpec([3], BFLOAT16, Layout.TILE, alignment=(32, 64)).padded_shape == (32, 64)
    whole = TensorSpec([128, 64], BFLOAT16, Layout.TILE, SHARDS)
    assert whole.padded_shape == TensorSpec([128, 64], BFLOAT16, Layout.TILE, SHARDS, alignment=(32, 64)).padded_shape
    assert whole != TensorSpec([128, 64], BFLOAT16, Layout.TILE, SHARDS, alignment=(32, 64))


def test_pages_are_aligned_to_their_memory() -> None:
    tensor = TensorSpec((1, 1, 130, 5), BFLOAT16, Layout.ROW_MAJOR)
    assert tensor.buffer(WORMHOLE).bank_bytes == 11 * 32  # 130 rows on 12 channels
    assert tensor.buffer(SPECS["bh"]).bank_bytes == 17 * 64
    in_l1 = TensorSpec((1, 1, 130, 5), BFLOAT16, Layout.ROW_MAJOR, L1_MEMORY_CONFIG)
    assert in_l1.buffer(WORMHOLE).bank_bytes == 3 * 16


@given(st.lists(st.integers(1, 70), min_size=1, max_size=4), st.sampled_from(sorted(FORMATS)), st.sampled_from(Layout))
def test_a_bank_holds_its_share_of_the_pages(shape: list[int], name: str, layout: Layout) -> None:
    if FORMATS[name].is_block:
        layout = Layout.TILE
    buffer = TensorSpec(shape, FORMATS[name], layout).buffer(WORMHOLE)
    pages, rest = divmod(buffer.size_bytes, buffer.page_bytes)
    assert rest == 0
    page_distance = -(-buffer.page_bytes // WORMHOLE.dram.alignment_bytes) * WORMHOLE.dram.alignment_bytes
    assert (pages - 1) // WORMHOLE.dram.banks + 1 == buffer.bank_bytes // page_distance
    assert buffer.num_cores == 0


def sharded(
    layout: TensorMemoryLayout, grid: CoreRangeSet, shape: tuple[int, int], *, column: bool = False
) -> MemoryConfig:
    orientation = ShardOrientation.COL_MAJOR if column else ShardOrientation.ROW_MAJOR
    return MemoryConfig(layout, BufferType.L1, ShardSpec(grid, shape, orientation))


HEIGHT, WIDTH, BLOCK = (
    TensorMemoryLayout.HEIGHT_SHARDED,
    TensorMemoryLayout.WIDTH_SHARDED,
    TensorMemoryLayout.BLOCK_SHARDED,
)


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (
            sharded(HEIGHT, first_cores(4, 8, 8), (48, 64)),
            r"^Physical shard shape \(48, 64\) must be tile \{32, 32\} sized!",
        ),
        (
            sharded(HEIGHT, first_cores(4, 8, 8), (32, 32)),
            "^Shard width 32 must match physical width 64 for height sharded",
        ),
        (
            sharded(HEIGHT, first_cores(4, 8, 8), (32, 64)),
            "^Number of shards along height 8 must not exceed number of cores 4",
        ),
        (
            sharded(WIDTH, first_cores(2, 8, 8), (32, 32)),
            "^Shard height 32 must match physical height 256 for width sharded",
        ),
        (
            sharded(WIDTH, first_cores(1, 8, 8), (256, 32)),
            "^Number of shards along width 2 must not exceed number of cores 1",
        ),
        (
            sharded(BLOCK, first_cores(9, 8, 8), (32, 32)),
            "^Shard grid must be one full rectangular grid for block sharded!",
        ),
        (
            sharded(BLOCK, first_cores(24, 8, 8), (64, 32)),
            "^Number of shards along height 4 must not exceed number of rows 3 for row major orientation!",
        ),
        (
            sharded(BLOCK, first_cores(3, 8, 8), (32, 64), column=True),
            "^Number of shards along height 8 must not exceed number of columns 3 for column major orientation!",
        ),
    ],
)
def test_shards_that_do_not_hold_the_tensor(config: MemoryConfig, text: str) -> None:
    with pytest.raises(DeviceError, match=text):
        TensorSpec((1, 1, 256, 64), BFLOAT16, Layout.TILE, config)


def test_what_cannot_be_a_buffer() -> None:
    with pytest.raises(DeviceError, match=r"^Only TILE layout is supported for BFLOAT8_B dtype!"):
        TensorSpec((1, 1, 32, 32), BFLOAT8_B, Layout.ROW_MAJOR)
    with pytest.raises(DeviceError, match=r"^Shard spec must be provided for sharded tensors"):
        TensorSpec((1, 1, 32, 32), BFLOAT16, Layout.TILE, L1_HEIGHT_SHARDED_MEMORY_CONFIG).buffer(WORMHOLE)
    with pytest.raises(ValueError, match="shape must be two positive integers"):
        ShardSpec(first_cores(1, 8, 8), (0, 32))
    assert not DRAM_MEMORY_CONFIG.is_sharded()


@pytest.mark.parametrize(
    ("scheme", "shape", "shard", "holding"),
    [("HEIGHT_SHARDED", (64, 32), (32, 32), 2), ("BLOCK_SHARDED", (33, 96), (32, 32), 6)],
)
def test_cores_beyond_the_tensor_hold_no_shard(scheme: str, shape: list[int], shard: list[int], holding: int) -> None:
    shards = ShardSpec(first_cores(64, 8, 8), shard)
    config = MemoryConfig(TensorMemoryLayout[scheme], BufferType.L1, shards)
    buffer = TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR, config).buffer(load_spec("wormhole_n150"))
    assert buffer.num_cores == holding
    assert buffer.cores == shards.grid


@pytest.mark.parametrize(
    ("scheme", "orientation", "shape", "shard", "cores"),
    [
        ("HEIGHT_SHARDED", "ROW_MAJOR", (160, 32), (32, 32), "{[0-0 - 3-0], [0-1 - 0-1]}"),
        ("HEIGHT_SHARDED", "COL_MAJOR", (160, 32), (32, 32), "{[0-0 - 1-1], [0-2 - 0-2]}"),
        ("HEIGHT_SHARDED", "ROW_MAJOR", (384, 32), (32, 32), "{[0-0 - 3-2]}"),
        ("WIDTH_SHARDED", "ROW_MAJOR", (32, 96), (32, 32), "{[0-0 - 2-0]}"),
        ("BLOCK_SHARDED", "ROW_MAJOR", (64, 32), (32, 32), "{[0-0 - 0-1]}"),
        ("BLOCK_SHARDED", "COL_MAJOR", (64, 32), (32, 32), "{[0-0 - 1-0]}"),
    ],
)
def test_data_cores_are_the_first_of_the_grid_in_its_orientation(
    scheme: str, orientation: str, shape: list[int], shard: list[int], cores: str
) -> None:
    grid = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(3, 2)))
    shards = ShardSpec(grid, shard, ShardOrientation[orientation])
    config = MemoryConfig(TensorMemoryLayout[scheme], BufferType.L1, shards)
    assert str(TensorSpec(shape, BFLOAT16, Layout.TILE, config).data_cores) == cores


def test_data_cores_of_several_ranges_are_merged() -> None:
    grid = CoreRangeSet([CoreRange(CoreCoord(0, row), CoreCoord(3, row)) for row in range(2)])
    config = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(grid, (32, 32)))
    assert str(TensorSpec((256, 32), BFLOAT16, Layout.TILE, config).data_cores) == "{[0-0 - 3-1]}"


def test_only_sharded_tensors_have_shards() -> None:
    shards = ShardSpec(first_cores(2, 8, 8), (32, 64))
    place = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, shards)
    assert TensorSpec((64, 64), BFLOAT16, Layout.TILE, place).shards is shards
    with pytest.raises(AssertionError, match="an interleaved tensor has no shards"):
        _ = TensorSpec((64, 64), BFLOAT16, Layout.TILE).shards


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
