import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.cores import CoreCoord, first_cores
from device.errors import DeviceError
from device.memory.layouts import TensorSpec, bank_of, decode_pages, encode_pages, page_places, side
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_HEIGHT_SHARDED_MEMORY_CONFIG,
    Layout,
    MemoryConfig,
    ShardSpec,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, FORMATS, UINT16, quantize
from device.spec.device_spec import load_spec
from tests.build import place, tensor_spec
from tests.shards import HEIGHT

WORMHOLE = load_spec("wormhole_n150")


def test_text_of_a_users_config_leaves_the_distribution_open():
    config = place("height/32x64/35")
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
    ("shape", "padded"), [((), (32, 32)), ((5,), (32, 32)), ((3, 33, 1), (3, 64, 32)), ((1, 1, 64, 64), (1, 1, 64, 64))]
)
def test_tiles_pad_the_last_two_axes(shape, padded):
    assert TensorSpec(shape, BFLOAT16, Layout.TILE).padded_shape == padded


@pytest.mark.parametrize(("layout", "padded"), [(Layout.ROW_MAJOR, (1,)), (Layout.TILE, (32, 32))])
def test_a_number_without_axes_is_padded_to_one_row_or_one_tile(layout, padded):
    assert TensorSpec((), BFLOAT16, layout).padded_shape == padded


def test_shards_pad_rows_to_whole_shards():
    tensor = tensor_spec("1x1x9x40 float32 block/5x16/3x2")
    buffer = tensor.buffer(WORMHOLE)
    assert tensor.padded_shape == (1, 1, 9, 48)
    assert (buffer.page_bytes, buffer.size_bytes, buffer.bank_bytes, buffer.num_cores) == (64, 27 * 64, 5 * 64, 6)


SHARDS = place("height/32x64/4")


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
def test_alignment_is_what_the_last_axes_are_padded_to_multiples_of(spec, alignment):
    assert spec.alignment == alignment


def test_an_alignment_pads_and_tells_tensors_apart():
    spec = TensorSpec([1, 1, 100, 40], BFLOAT16, Layout.TILE, SHARDS, alignment=(64, 64))
    assert spec.padded_shape == (1, 1, 128, 64)
    assert TensorSpec([3], BFLOAT16, Layout.TILE, alignment=(32, 64)).padded_shape == (32, 64)
    whole = TensorSpec([128, 64], BFLOAT16, Layout.TILE, SHARDS)
    assert whole.padded_shape == TensorSpec([128, 64], BFLOAT16, Layout.TILE, SHARDS, alignment=(32, 64)).padded_shape
    assert whole != TensorSpec([128, 64], BFLOAT16, Layout.TILE, SHARDS, alignment=(32, 64))


def test_pages_are_aligned_to_their_memory():
    assert tensor_spec("1x1x130x5").buffer(WORMHOLE).bank_bytes == 11 * 32  # 130 rows on 12 channels
    assert tensor_spec("1x1x130x5").buffer(load_spec("blackhole_p150")).bank_bytes == 17 * 64
    assert tensor_spec("1x1x130x5 l1").buffer(WORMHOLE).bank_bytes == 3 * 16


@given(st.lists(st.integers(1, 70), min_size=1, max_size=4), st.sampled_from(sorted(FORMATS)), st.sampled_from(Layout))
def test_a_bank_holds_its_share_of_the_pages(shape, name, layout):
    if FORMATS[name].is_block:
        layout = Layout.TILE
    buffer = TensorSpec(shape, FORMATS[name], layout).buffer(WORMHOLE)
    pages, rest = divmod(buffer.size_bytes, buffer.page_bytes)
    assert rest == 0
    page_distance = -(-buffer.page_bytes // WORMHOLE.dram.alignment_bytes) * WORMHOLE.dram.alignment_bytes
    assert (pages - 1) // WORMHOLE.dram.banks + 1 == buffer.bank_bytes // page_distance
    assert buffer.num_cores == 0


@pytest.mark.parametrize(
    ("shards", "text"),
    [
        ("height/48x64/4", r"Physical shard shape \(48, 64\) must be tile \{32, 32\} sized!"),
        ("height/32x32/4", "Shard width 32 must match physical width 64 for height sharded"),
        ("height/32x64/4", "Number of shards along height 8 must not exceed number of cores 4"),
        ("width/32x32/2", "Shard height 32 must match physical height 256 for width sharded"),
        ("width/256x32/1", "Number of shards along width 2 must not exceed number of cores 1"),
        ("block/32x32/9", "Shard grid must be one full rectangular grid for block sharded!"),
        ("block/64x32/24", "Number of shards along height 4 must not exceed number of rows 3 for row major orien"),
        ("block/32x64/3x1 col", "Number of shards along height 8 must not exceed number of columns 3 for column ma"),
    ],
)
def test_shards_that_do_not_hold_the_tensor(shards, text):
    with pytest.raises(DeviceError, match=f"^{text}"):
        tensor_spec(f"1x1x256x64 tile {shards}")


def test_what_cannot_be_a_buffer():
    with pytest.raises(DeviceError, match=r"^Only TILE layout is supported for BFLOAT8_B dtype!"):
        TensorSpec((1, 1, 32, 32), BFLOAT8_B, Layout.ROW_MAJOR)
    with pytest.raises(DeviceError, match=r"^bad optional access"):
        TensorSpec((1, 1, 32, 32), BFLOAT16, Layout.TILE, L1_HEIGHT_SHARDED_MEMORY_CONFIG).buffer(WORMHOLE)
    with pytest.raises(DeviceError, match=r"^MemoryConfig must have Shard Spec specified for sharded memory layout"):
        TensorSpec((1, 1, 32, 32), BFLOAT16, Layout.ROW_MAJOR, L1_HEIGHT_SHARDED_MEMORY_CONFIG).buffer(WORMHOLE)
    with pytest.raises(ValueError, match="shape must be two positive integers"):
        ShardSpec(first_cores(1, 8, 8), (0, 32))
    assert not DRAM_MEMORY_CONFIG.is_sharded()


@pytest.mark.parametrize(("text", "holding"), [("64x32 height/32x32/64", 2), ("33x96 block/32x32/8x8", 6)])
def test_cores_beyond_the_tensor_hold_no_shard(text, holding):
    buffer = tensor_spec(text).buffer(WORMHOLE)
    assert (buffer.num_cores, buffer.cores.num_cores()) == (holding, 64)


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("160x32 height/32x32/4x3", "{[0-0 - 3-0], [0-1 - 0-1]}"),
        ("160x32 height/32x32/4x3 col", "{[0-0 - 1-1], [0-2 - 0-2]}"),
        ("384x32 height/32x32/4x3", "{[0-0 - 3-2]}"),
        ("32x96 width/32x32/4x3", "{[0-0 - 2-0]}"),
        ("64x32 block/32x32/4x3", "{[0-0 - 0-1]}"),
        ("64x32 block/32x32/4x3 col", "{[0-0 - 1-0]}"),
    ],
)
def test_data_cores_are_the_first_of_the_grid_in_its_orientation(text, cores):
    assert str(tensor_spec(f"{text} tile").data_cores) == cores


def test_data_cores_of_several_ranges_are_merged():
    grid = first_cores(4, 4, 2).union(first_cores(8, 4, 2))
    config = MemoryConfig(HEIGHT, place("l1").buffer_type, ShardSpec(grid, (32, 32)))
    assert str(TensorSpec((256, 32), BFLOAT16, Layout.TILE, config).data_cores) == "{[0-0 - 3-1]}"


def test_only_sharded_tensors_have_shards():
    tensor = tensor_spec("64x64 tile height/32x64/2")
    assert tensor.shards is tensor.memory_config.shard_spec
    with pytest.raises(AssertionError, match="an interleaved tensor has no shards"):
        _ = tensor_spec("64x64 tile").shards


def places(tensor):
    found = page_places(tensor, WORMHOLE)
    return [(int(bank), int(offset)) for bank, offset in zip(found.banks, found.offsets, strict=True)]


def test_interleaved_pages_go_round_the_banks():
    found = places(tensor_spec("14x20"))
    assert (found[:2], found[12:]) == ([(0, 0), (1, 0)], [(0, 64), (1, 64)])
    assert places(tensor_spec("65x20 l1"))[63:] == [(63, 0), (0, 48)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("4x20 height/1x20/2x2 col", [(0, 0), (8, 0), (1, 0), (9, 0)]),
        ("2x32 width/2x16/2", [(0, 0), (1, 0), (0, 32), (1, 32)]),
        ("96x96 tile block/32x64/2x3", [(0, 0), (0, 2048), (1, 0), (8, 0)]),
        ("96x96 tile block/32x64/3x2 col", [(0, 0), (0, 2048), (8, 0), (1, 0)]),
        ("19x20 height/2x20/10", [(0, 0), (0, 48), (1, 0)]),
    ],
)
def test_shards_follow_the_cores(text, wanted):
    """Rows or columns of cores; WIDTH shards cut rows into pages."""
    assert places(tensor_spec(text))[: len(wanted)] == wanted
    assert places(tensor_spec("19x20 height/2x20/10"))[-1] == (bank_of(CoreCoord(1, 1), WORMHOLE), 0)


@given(
    data_format=st.sampled_from([BFLOAT16, FLOAT32, BFLOAT8_B, UINT16]),
    rows=st.integers(1, 70),
    cols=st.integers(1, 70),
    layout=st.sampled_from(list(Layout)),
    seed=st.integers(0, 99),
)
def test_pages_hold_the_values(data_format, rows, cols, layout, seed):
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
def test_no_two_pages_share_a_place(scheme, high, wide, tiled):
    unit = 32 if tiled else 8
    rows, cols = 64 * high, 64 * wide
    shards = {
        "height": f"height/32x{cols}/{3 * high}",
        "width": f"width/{rows}x{unit}/{8 * wide}",
        "block": f"block/64x32/{2 * wide}x{high}",
    }[scheme]
    tensor = tensor_spec(f"{rows}x{cols} {'tile' if tiled else 'rows'} {shards}")
    found, buffer = places(tensor), tensor.buffer(WORMHOLE)
    assert len(set(found)) == len(found) == buffer.size_bytes // buffer.page_bytes
    assert all(0 <= offset <= buffer.bank_bytes - buffer.page_bytes for _, offset in found)
    assert {bank for bank, _ in found} <= {bank_of(core, WORMHOLE) for core in tensor.shards.grid.cores()}


def test_a_side_counts_from_the_end_of_four_axes_or_more():
    assert [side((5, 7), axis) for axis in (0, 1, -1, -2, -3, -4)] == [5, 7, 7, 5, 1, 1]
    assert side((2, 3, 4, 5, 6), -5) == 2
    for shape, axis, text in (((5, 7), 2, "2 not in [-4, 2)"), ((2, 3, 4, 5, 6), -6, "-6 not in [-5, 5)")):
        with pytest.raises(DeviceError) as error:
            side(shape, axis)
        assert str(error.value).splitlines()[0] == f"ShapeBase[] index out of range. {text}"


def test_values_of_another_shape_are_refused():
    tensor = TensorSpec([4, 20], BFLOAT16, Layout.TILE)
    with pytest.raises(ValueError, match=r"shape \[4, 20\] \(padded \[32, 32\]\) holds values .*, not of \[20, 4\]"):
        encode_pages(np.zeros((20, 4), np.float32), tensor)


def test_a_changed_tensor_has_the_padding_that_its_fields_ask_for():
    spec = TensorSpec((3, 33, 1), BFLOAT16, Layout.TILE, padded_shape=(4, 64, 32))
    assert spec.changed(layout=Layout.ROW_MAJOR, data_format=None).padded_shape == (3, 33, 1)
    assert spec.changed(shape=(2, 2)) == TensorSpec((2, 2), BFLOAT16, Layout.TILE)
    assert spec.changed(padded_shape=(4, 64, 32)) == spec
