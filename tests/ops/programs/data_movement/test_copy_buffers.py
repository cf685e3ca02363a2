"""Circular buffers of the programs that copy, redistribute, tilize and untilize, by hand."""

import pytest

from ops.builder import PlanTensor
from ops.op_models import load_spec
from ops.programs.data_movement.copy import Conversion
from ops.programs.data_movement.copy_buffers import buffers_of_copy, move_buffers
from tests.build import buffer_rows, tensor_spec

SPEC, BLACKHOLE = load_spec("wormhole_n150"), load_spec("blackhole_p150")
TILE, HALF = 2048, 1088  # bytes of a tile of bfloat16, and of bfloat8_b


def buffers(conversion, read, made, *, alone=False):
    """Bytes and cores of each buffer, and the tensor that it lies on, or "pad" for a scratchpad."""
    tensors = [PlanTensor(name, tensor_spec(text)) for name, text in (("read", read), ("made", made))]
    made_buffers = buffers_of_copy(Conversion(conversion), *tensors, SPEC, on_one_core=alone)
    return [
        (buffer.size_bytes, buffer.cores.num_cores(), "pad" if buffer.scratchpad else buffer.view_of)
        for buffer in made_buffers
    ]


HIGH, HIGHER, WIDE = "height/64x128/2", "height/32x128/4", "width/128x32/4"
CAST = [(2 * TILE, 2, "read"), (2 * HALF, 2, None)]
BLOCKS, IN_FOUR = "block/64x64/2x2", [(4 * TILE, 4, None)] * 2
IN_PLACE = [(8 * TILE, 2, "read"), (8 * TILE, 2, "made")]


@pytest.mark.parametrize(
    ("conversion", "before", "after", "expected"),
    [
        ("Tilize", "dram", "l1", IN_FOUR),  # a row of tiles on each of four cores
        ("Tilize alone", "dram", "dram", [(4 * TILE, 1, None)] * 2),  # on one core
        ("Untilize alone", "dram", "dram", [(4 * TILE, 1, None)] * 2),
        ("Untilize alone", WIDE, "dram", [(4 * TILE, 1, None)] * 2),
        ("Untilize alone", "dram", WIDE, [(TILE, 1, None)] * 2),
        ("Tilize", HIGH, HIGH, IN_PLACE),
        ("Tilize", HIGH, "l1", [(8 * TILE, 2, "read"), (4 * TILE, 2, None)]),
        ("Tilize", HIGH, "dram", IN_FOUR),
        ("Tilize", "height/48x128/3", "l1", IN_FOUR),  # a tile and a half each
        ("Tilize", WIDE, HIGH, IN_FOUR),
        ("Untilize", HIGH, HIGH, IN_PLACE),
        ("Untilize", HIGH, HIGHER, [(8 * TILE, 2, "read"), (8 * TILE, 2, None)]),  # two rows of tiles on their way
        ("Untilize", HIGHER, HIGH, [(4 * TILE, 4, "read"), (4 * TILE, 4, None)]),  # a core has one row alone
        ("Untilize", "height/96x128/2", "dram", [(8 * TILE, 2, None)] * 2),
        ("Untilize", WIDE, BLOCKS, [(4 * TILE, 4, "read"), (2 * TILE, 4, None)]),
        ("Untilize", "dram", HIGH, IN_FOUR),
    ],
)
def test_rows_of_four_tiles(conversion, before, after, expected):
    name, alone = conversion.split()[0], "alone" in conversion
    layouts = ("rows", "tile") if name == "Tilize" else ("tile", "rows")
    read, result = (f"1x1x128x128 {layout} {place}" for layout, place in zip(layouts, (before, after), strict=True))
    assert buffers(name, read, result, alone=alone) == expected


@pytest.mark.parametrize(
    ("conversion", "read", "made", "expected"),
    [
        # two rows of four tiles a core: one ahead
        ("Untilize", "4096x128 float32 tile l1", "4096x128 float32 l1", [(32768, 64, None)] * 2),
        # two tiles of each format are on their way
        ("Copy", "64x96 tile", "64x96 bfloat8_b tile l1", [(2 * TILE, 6, None), (2 * HALF, 6, None)]),
        ("Copy", "64x96 tile", "64x96 tile", [(2 * TILE, 6, None)]),
        # rows of 140 bytes are put together in a scratchpad from pages of 48
        ("Copy", "50x70", "50x70 width/50x24/3", [(96, 50, None), (140, 50, "pad")]),
        ("Copy", "50x70", "50x70 l1", [(2 * 144, 50, None), (140, 50, "pad")]),
        # 100 of 128 rows: the last of two shards has 36 rows of 208 bytes
        (
            "UntilizeWithUnpadding",
            "100x100 tile height/64x128/2",
            "100x100 height/64x100/2",
            [(8 * TILE, 2, "read"), (16 * TILE, 2, None), (36 * 208, 2, "made")],
        ),
        ("UntilizeWithUnpadding", "100x100 tile height/64x128/2", "100x100", [IN_PLACE[0], (8 * TILE, 2, None)]),
        # rows of half a tile have a writer of their own
        (
            "UntilizeWithUnpadding",
            "1x4x96x32 tile height/192x32/2",
            "1x4x96x16 height/192x16/2",
            [(6 * TILE, 2, "read"), (16 * TILE, 2, None), (192 * 32, 2, "made")],
        ),
        # two images of two rows of tiles each, a tile wide; and a stick of padding
        (
            "TilizeWithValPadding",
            "1x2x50x128 width/100x32/4",
            "1x2x50x128 tile width/128x32/4",
            [(4 * TILE, 4, None), (4 * TILE, 4, "made"), (64, 4, "pad")],
        ),
        # blocks of 64 rows: the second row of cores holds none of 64 or 32 rows
        ("InterleavedToSharded", "64x128 tile", f"64x128 tile {BLOCKS}", [(4 * TILE, 2, "made")]),
        ("InterleavedToSharded", "32x128 tile", f"32x128 tile {BLOCKS}", [(4 * TILE, 2, "made")]),
        # 128 columns fill two of four WIDTH shards of 64
        ("InterleavedToSharded", "32x128 tile", "32x128 tile width/32x64/4", [(2 * TILE, 2, "made")]),
        ("ShardedToInterleaved", "32x128 tile width/32x64/4", "32x128 tile", [(2 * TILE, 2, "read")]),
        ("Reshard", "32x128 tile height/32x128/4", "32x128 tile width/32x64/4", [(2 * TILE, 2, "made")]),
        (
            "ShardedToInterleaved",
            "64x64 tile height/32x64/2",
            "64x64 bfloat8_b tile",
            [(2 * TILE, 2, "read"), (2 * HALF, 2, None)],
        ),
        # sticks of 128 bytes on their way into shards are aligned in a scratchpad of four with room to shift them
        ("InterleavedToSharded", "64x64", "64x64 height/32x64/2", [(32 * 128, 2, "made"), (4 * 160, 2, "pad")]),
        # rows of 140 bytes, five in a shard: two shards of five aligned rows
        ("Reshard", "40x70 height/5x70/8", "40x70 height/10x70/4", [(10 * 144, 4, "made"), (2 * 5 * 144, 4, None)]),
        # 72 rows of 8 bytes, which L1 aligns to 16, in one shard of 96: the view is no larger than the tensor
        ("Reshard", "72x4 height/36x4/2", "72x4 height/96x4/1", [(72 * 8, 1, "made"), (2 * 36 * 16, 1, None)]),
        # three rows of 100 bytes, which L1 aligns to 112: whole aligned pages
        ("Reshard", "3x50 height/3x50/2", "3x50 height/3x50/2", [(2 * 112, 1, "made"), (2 * 3 * 112, 1, None)]),
        # 40 tiles across in blocks of one: a stick of 64 bytes with room to shift it at both ends
        ("Tilize", "32x1280", "32x1280 tile", [(TILE, 40, None), (TILE, 40, None), (64 + 2 * 32, 40, "pad")]),
        # 8 rows of 8 tiles on 64 cores: a tile each, two on their way; block floats become bfloat16
        ("UntilizeCodegen", "256x256 bfloat8_b tile", "256x256", [(2 * HALF, 64, None), (2 * TILE, 64, None)]),
    ],
)
def test_buffers_by_hand(conversion, read, made, expected):
    assert buffers(conversion, read, made) == expected


def test_a_move_takes_two_pages_or_all_of_a_core():
    """130 rows on 64 cores: three each, of 144 bytes with what aligns them."""
    source = tensor_spec("130x70 l1")
    apart, overlapping = move_buffers(source, source, SPEC)
    assert buffer_rows(apart, "page_bytes") == [("pages", 2 * 144, 64, 144)]
    assert buffer_rows(overlapping, "page_bytes") == [("pages", 3 * 144, 64, 144)]


@pytest.mark.parametrize(
    ("rows", "channels", "size", "cores"),
    [
        (416, 1258, 163840, "{[0-0 - 12-0]}"),
        (1536, 30, 4096, "{[0-0 - 12-2], [0-3 - 8-3]}"),
        (240, 4, 4096, "{[0-0 - 7-0]}"),
        (131 * 32, 4, 4096, "{[0-0 - 12-9]}"),  # one core has two tile rows
        (512, 256, 4096, "{[0-0 - 12-8], [0-9 - 10-9]}"),  # no padding: a core for each of 16 x 8 tiles
        (416, 1280, 16384, "{[0-0 - 12-9]}"),  # 13 rows of 40 tiles in 10 pieces each
        (131 * 32, 64, 8192, "{[0-0 - 12-9]}"),  # more rows than cores
    ],
)
def test_untilizing_by_generated_code(rows, channels, size, cores):
    tiles, result = (tensor_spec(f"1x1x{rows}x{channels} {layout} l1") for layout in ("tile", "rows"))
    found = buffers_of_copy(Conversion.UNTILIZE_CODEGEN, PlanTensor("x", tiles), PlanTensor("y", result), BLACKHOLE)
    assert [(one.name, one.size_bytes, str(one.cores)) for one in found] == [
        ("tiles", size, cores),
        ("rows", size, cores),
    ]
