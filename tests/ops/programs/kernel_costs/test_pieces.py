"""What circular buffers are made of."""

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import buffer, paged_buffer, scratchpad, shard_view, tile_buffer

SPEC = load_spec("wormhole_n150")
CORES = first_cores(2, 8, 8)


def test_a_buffer_of_pages_has_room_for_all_of_them():
    made = paged_buffer("rows", 3, 80, BFLOAT16, CORES, "tensor")
    assert (made.size_bytes, made.page_bytes, made.view_of, made.cores) == (240, 80, "tensor", CORES)
    assert buffer("rows", 240, BFLOAT16, CORES).page_bytes == 240


def test_a_page_of_tiles_is_a_tile_of_the_format():
    """A tile of bfloat8_b: 1,024 mantissas and 64 exponents."""
    made = tile_buffer("tiles", 2, BFLOAT8_B, CORES)
    assert (made.size_bytes, made.page_bytes, made.view_of) == (2 * 1088, 1088, None)


def test_a_scratchpad_is_the_programs_own():
    made = scratchpad("row", 96, BFLOAT16, CORES)
    assert (made.size_bytes, made.page_bytes, made.scratchpad) == (96, 96, True)


def test_a_view_is_as_long_as_the_shard_with_its_rows_aligned():
    """Rows of 20 elements take 40 bytes; L1 aligns pages to 16."""
    place = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(CORES, (5, 20)))
    rows = PlanTensor("x", TensorSpec((10, 20), BFLOAT16, Layout.ROW_MAJOR, place))
    view = shard_view("shards", rows, SPEC)
    assert (view.size_bytes, view.cores, view.view_of) == (5 * 48, CORES, "x")
