"""Tiles of rows and rows of tiles: operation and buffers."""

import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.plan import Operation
from ops.builder import PlanBuilder, PlanTensor
from ops.op_model import CyclesContext, Ends, ValuesContext
from ops.op_models import OP_MODELS, load_spec
from ops.programs.data_movement.conversions import tilized_by, untilized_by
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.copy_buffers import shard_buffers, tiling_buffers, untilize_codegen_buffers
from tests.shards import BLOCK, HEIGHT, WIDTH, in_box


@pytest.mark.parametrize(
    ("conversion", "made_format", "measured_as"),
    [
        (Conversion.TILIZE, BFLOAT16, "Tilize"),
        (Conversion.TILIZE, BFLOAT8_B, ""),  # changes the format on the way
        (Conversion.UNTILIZE_CODEGEN, BFLOAT16, ""),
    ],
)
def test_a_program_is_measured_as_it_is_around_convolutions(conversion, made_format, measured_as):
    rows, tiles = (
        TensorSpec((1, 1, 64, 64), data_format, layout, DRAM_MEMORY_CONFIG)
        for data_format, layout in ((BFLOAT16, Layout.ROW_MAJOR), (made_format, Layout.TILE))
    )
    ends = Ends(read=rows, written=tiles) if conversion is Conversion.TILIZE else Ends(read=tiles, written=rows)
    op = CopyTensor(conversion, (BFLOAT16, made_format))
    assert OP_MODELS[CopyTensor].describe(op, ends, load_spec("wormhole_n150")).measured_as == measured_as


@pytest.mark.parametrize(
    ("conversion", "rows", "on_one_core", "buffers"),
    [
        (Conversion.UNTILIZE, 4096, False, [(64, 32768), (64, 32768)]),  # two rows of four tiles a core: one ahead
        (Conversion.UNTILIZE, 4096, True, [(1, 16384), (1, 16384)]),
        (Conversion.TILIZE, 4096, True, [(1, 16384), (1, 16384)]),
    ],
)
def test_one_core_has_one_row_of_tiles_at_a_time_in_plan_and_cycles(conversion, rows, on_one_core, buffers):
    """Buffers as the real library plans them for use_multicore=False."""
    spec = load_spec("wormhole_n150")
    layouts = (Layout.TILE, Layout.ROW_MAJOR) if conversion is Conversion.UNTILIZE else (Layout.ROW_MAJOR, Layout.TILE)
    source, made = (TensorSpec((1, 1, rows, 128), FLOAT32, layout, L1_MEMORY_CONFIG) for layout in layouts)
    plan = PlanBuilder(spec, {"input": source})
    if conversion is Conversion.UNTILIZE:
        untilized_by(plan, plan.tensor("input"), made, "output", on_one_core=on_one_core)
    else:
        place = made.memory_config
        tilized_by(plan, plan.tensor("input"), "output", place=place, whole=True, on_one_core=on_one_core)
    (step,) = plan.finish({"output": "output"}).steps
    assert isinstance(step, Operation)
    assert [(one.cores.num_cores(), one.size_bytes) for one in step.circular_buffers] == buffers
    model, ends = OP_MODELS[CopyTensor], Ends(read=source, written=made)
    assert model.cycles is not None
    cycles = model.cycles(step.op, ends, CyclesContext(spec=spec, contention=True))
    assert cycles.cores == buffers[0][0]


def values(source, source_format, data_format, kept=None):
    op = CopyTensor(Conversion.UNTILIZE_WITH_UNPADDING, (source_format, data_format), kept=kept)
    context = ValuesContext(spec=load_spec("wormhole_n150"), arithmetic=EXACT)
    return OP_MODELS[CopyTensor].values(op, [source], context)


def test_what_is_kept_begins_with_the_first_element():
    source = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert values(source, FLOAT32, FLOAT32, (1, 2, 3)).tolist() == [[[0, 1, 2], [4, 5, 6]]]
    assert values(source, FLOAT32, FLOAT32) is source


def test_another_format_rounds_what_is_kept_alone():
    """64 shares its exponent with 1.25 no more once it is cut off."""
    source = np.float32([[1.25, 1.25, 64.0]])
    assert values(source, FLOAT32, BFLOAT8_B).astype(np.float32).tolist() == [[1, 1, 64]]
    assert values(source, FLOAT32, BFLOAT8_B, (1, 2)).astype(np.float32).tolist() == [[1.25, 1.25]]


SPEC = load_spec("wormhole_n150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE
SHAPE = (1, 1, 128, 128)


HIGH, HIGHER = in_box(HEIGHT, (64, 128), 2), in_box(HEIGHT, (32, 128), 4)
UNEVEN, WIDE = in_box(HEIGHT, (96, 128), 2), in_box(WIDTH, (128, 32), 4)
BLOCKS = in_box(BLOCK, (64, 64), 2, 2)


def tensor(name, place, layout, shape=SHAPE, data_format=BFLOAT16):
    return PlanTensor(name, TensorSpec(shape, data_format, layout, place))


def made(conversion, before, after, **more):
    """Tiles of each buffer, its cores, and whether it is a view."""
    layouts = (ROWS, TILES) if "Tilize" in conversion.value and "Un" not in conversion.value else (TILES, ROWS)
    read, written = tensor("read", before, layouts[0]), tensor("written", after, layouts[1])
    buffers = tiling_buffers(conversion, read, written, SPEC, **more)
    return [(one.size_bytes // 2048, one.cores.num_cores(), one.view_of is not None) for one in buffers]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, [(4, 4, False), (4, 4, False)]),  # a row of tiles on each of 4 cores
        (HIGH, HIGH, [(8, 2, True), (8, 2, True)]),
        (HIGH, L1_MEMORY_CONFIG, [(8, 2, True), (4, 2, False)]),
        (HIGH, DRAM_MEMORY_CONFIG, [(4, 4, False), (4, 4, False)]),
        (in_box(HEIGHT, (48, 128), 3), L1_MEMORY_CONFIG, [(4, 4, False), (4, 4, False)]),  # a tile and a half each
        (WIDE, HIGH, [(4, 4, False), (4, 4, False)]),
    ],
)
def test_rows_become_tiles(before, after, expected):
    assert made(Conversion.TILIZE, before, after) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (HIGH, HIGH, [(8, 2, True), (8, 2, True)]),
        (HIGH, HIGHER, [(8, 2, True), (8, 2, False)]),  # two rows of tiles are on their way
        (HIGHER, HIGH, [(4, 4, True), (4, 4, False)]),  # a core has one row alone
        (UNEVEN, DRAM_MEMORY_CONFIG, [(8, 2, False), (8, 2, False)]),
        (WIDE, BLOCKS, [(4, 4, True), (2, 4, False)]),
        (DRAM_MEMORY_CONFIG, HIGH, [(4, 4, False), (4, 4, False)]),
    ],
)
def test_tiles_become_rows(before, after, expected):
    assert made(Conversion.UNTILIZE, before, after) == expected


def test_one_core_has_one_row_of_tiles_on_its_way():
    alone = [(4, 1, False), (4, 1, False)]
    assert made(Conversion.UNTILIZE, DRAM_MEMORY_CONFIG, DRAM_MEMORY_CONFIG, on_one_core=True) == alone
    assert made(Conversion.UNTILIZE, WIDE, DRAM_MEMORY_CONFIG, on_one_core=True) == alone
    assert made(Conversion.UNTILIZE, DRAM_MEMORY_CONFIG, WIDE, on_one_core=True) == [(1, 1, False), (1, 1, False)]


def test_rows_of_an_image_are_on_their_way_where_padding_is_cut_off():
    """100 of 128 rows: the last of two shards has 36 rows of 208 bytes."""
    read = tensor("read", HIGH, TILES, (1, 1, 100, 100))
    written = tensor("written", in_box(HEIGHT, (64, 100), 2), ROWS, (1, 1, 100, 100))
    buffers = tiling_buffers(Conversion.UNTILIZE_WITH_UNPADDING, read, written, SPEC)
    assert [one.size_bytes for one in buffers] == [8 * 2048, 16 * 2048, 36 * 208]
    apart = tensor("written", DRAM_MEMORY_CONFIG, ROWS, (1, 1, 100, 100))
    buffers = tiling_buffers(Conversion.UNTILIZE_WITH_UNPADDING, read, apart, SPEC)
    assert [one.size_bytes for one in buffers] == [8 * 2048, 8 * 2048]


def test_rows_of_half_a_tile_have_a_writer_of_their_own():
    read = tensor("read", in_box(HEIGHT, (192, 32), 2), TILES, (1, 4, 96, 32))
    written = tensor("written", in_box(HEIGHT, (192, 16), 2), ROWS, (1, 4, 96, 16))
    assert tiling_buffers(Conversion.UNTILIZE_WITH_UNPADDING, read, written, SPEC)[1].size_bytes == 16 * 2048


def test_width_shards_are_padded_image_by_image():
    """Two images of two rows of tiles each, a tile wide; and a stick of padding."""
    read = tensor("read", in_box(WIDTH, (100, 32), 4), ROWS, (1, 2, 50, 128))
    written = tensor("written", in_box(WIDTH, (128, 32), 4), TILES, (1, 2, 50, 128))
    first, result, stick = tiling_buffers(Conversion.TILIZE_WITH_VAL_PADDING, read, written, SPEC)
    assert (first.size_bytes, result.size_bytes, result.view_of) == (4 * 2048, 4 * 2048, "written")
    assert (stick.size_bytes, stick.scratchpad) == (64, True)


@pytest.mark.parametrize("rows", [64, 32])
def test_blocks_are_dealt_by_the_cores_that_hold_some(rows):
    """Blocks of 64 rows: the second row of cores holds none of 64 or 32 rows."""
    read = tensor("read", DRAM_MEMORY_CONFIG, TILES, (1, 1, rows, 128))
    written = tensor("written", BLOCKS, TILES, (1, 1, rows, 128))
    (view,) = shard_buffers(Conversion.INTERLEAVED_TO_SHARDED, read, written, SPEC)
    assert (str(view.cores), view.view_of) == ("{[0-0 - 1-0]}", "written")


@pytest.mark.parametrize(
    ("conversion", "before", "after"),
    [
        (Conversion.INTERLEAVED_TO_SHARDED, DRAM_MEMORY_CONFIG, in_box(WIDTH, (32, 64), 4)),
        (Conversion.SHARDED_TO_INTERLEAVED, in_box(WIDTH, (32, 64), 4), DRAM_MEMORY_CONFIG),
        (Conversion.RESHARD, in_box(HEIGHT, (32, 128), 4), in_box(WIDTH, (32, 64), 4)),
    ],
)
def test_programs_that_deal_shards_run_on_the_cores_that_hold_some(conversion, before, after):
    """128 columns fill two of four WIDTH shards of 64."""
    read, written = (tensor(name, place, TILES, (1, 1, 32, 128)) for name, place in (("r", before), ("w", after)))
    (view,) = shard_buffers(conversion, read, written, SPEC)
    assert str(view.cores) == "{[0-0 - 1-0]}"


def test_shards_of_rows_that_l1_would_align_are_read_into_room_of_their_own():
    """Rows of 140 bytes, 5 of them in a shard: two shards of 5 aligned rows."""
    read = tensor("read", in_box(HEIGHT, (5, 70), 8), ROWS, (1, 1, 40, 70))
    written = tensor("written", in_box(HEIGHT, (10, 70), 4), ROWS, (1, 1, 40, 70))
    view, room = shard_buffers(Conversion.RESHARD, read, written, SPEC)
    assert (view.size_bytes, room.size_bytes, room.view_of) == (10 * 144, 2 * 5 * 144, None)


def test_the_view_of_a_reshard_is_no_larger_than_the_tensor():
    """72 rows of 8 bytes, which L1 aligns to 16, in one shard of 96."""
    read = tensor("read", in_box(HEIGHT, (36, 4), 2), ROWS, (1, 1, 72, 4))
    written = tensor("written", in_box(HEIGHT, (96, 4), 1), ROWS, (1, 1, 72, 4))
    view, room = shard_buffers(Conversion.RESHARD, read, written, SPEC)
    assert (view.size_bytes, room.size_bytes) == (72 * 8, 2 * 36 * 16)


def test_the_view_of_a_reshard_holds_whole_aligned_pages():
    """Three rows of 100 bytes, which L1 aligns to 112."""
    read, written = (tensor(name, in_box(HEIGHT, (3, 50), 2), ROWS, (1, 1, 3, 50)) for name in ("read", "written"))
    view, room = shard_buffers(Conversion.RESHARD, read, written, SPEC)
    assert (view.size_bytes, room.size_bytes) == (2 * 112, 2 * 3 * 112)


def test_rows_of_tiles_are_cut_into_pieces_that_fill_the_cores():
    """8 rows of 8 tiles on 64 cores: a tile each, two on their way; block floats become bfloat16."""
    tiles = TensorSpec((1, 1, 256, 256), BFLOAT8_B, TILES)
    rows = TensorSpec((1, 1, 256, 256), BFLOAT16, ROWS)
    buffers = untilize_codegen_buffers(tiles, rows, SPEC)
    assert [(one.size_bytes, one.cores.num_cores()) for one in buffers] == [(2 * 1088, 64), (2 * 2048, 64)]
