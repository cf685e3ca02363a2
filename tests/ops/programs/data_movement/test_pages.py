"""Pages that a core of a data movement program reads and writes: a line a case, worked out by hand.

A line says the program with its options, both tensors (an empty one is the first), and the movement: cores x blocks;
for each side how pages are accessed, the pages of a core * their bytes / all pages, and + the pages asked for before a
wait; tiles or rows of tiles that a core changes, and words that it fills. The device is a Wormhole, or a Blackhole.
"""

import pytest

from device.numbers.formats import BFLOAT16
from device.spec.device_spec import load_spec
from ops.programs.data_movement.concat import Concatenate
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.pad import FillPad
from ops.programs.data_movement.permute import Permute
from ops.programs.data_movement.repeat import RepeatTensor
from ops.programs.data_movement.reshape import Reshape
from ops.programs.data_movement.slice import slice_movement, slice_write_movement
from ops.programs.data_movement.upsample import Upsample, UpsampleProgram
from tests.build import tensor_spec

WORMHOLE, BLACKHOLE = load_spec("wormhole_n150"), load_spec("blackhole_p150")
CASES = """
InterleavedToSharded | 640x64 tile | 640x64 tile height/32x64/20 | 20 x 1, WAIT 2*2048/40 +2, -
InterleavedToSharded | 640x64 | 640x64 height/32x64/20 | 20 x 1, STICKS 32*128/640, -
# cores without a shard take no part
InterleavedToSharded | 640x64 tile | 640x64 tile height/32x64/40 | 20 x 1, WAIT 2*2048/40 +2, -
ShardedToInterleaved | 640x64 tile height/32x64/20 | 640x64 tile | 20 x 1, -, STREAM 2*2048/40
ShardedToInterleaved | 640x64 height/32x64/20 | 640x64 | 20 x 1, -, STICKS 32*128/640
Reshard | 640x64 tile height/32x64/20 | 640x64 tile height/64x64/10 | 10 x 1, STREAM 1*8192/10, -
Reshard | 640x64 tile height/32x64/20 | 640x64 tile block/320x32/2x2 | 4 x 1, STREAM 10*2048/40, -
# sticks move in four pieces where a plan does not know how far, tiles in one
Move | 640x64 height/32x64/20 | | 20 x 1, LOCAL 4*1024/80, -
Move | 640x64 tile height/32x64/20 | | 20 x 1, LOCAL 1*4096/20, -
Move | 640x64 | | 64 x 10, WAIT 10*128/640, WAIT 10*128/640
Copy | 640x64 tile | | 40 x 1, WAIT 1*2048/40, WAIT 1*2048/40
# copies of shards are shared out over all cores
Copy | 1280x64 | 1280x64 height/320x64/4 | 64 x 20, WAIT 20*128/1280, WAIT 20*128/1280
Copy | 1280x64 height/320x64/4 | 1280x64 | 64 x 20, WAIT 20*128/1280, WAIT 20*128/1280
Typecast | 640x64 tile | | 40 x 1, WAIT 1*2048/40, WAIT 1*2048/40, cast 1
# shards in place, if both formats take as much; otherwise tile by tile, found among shards
Typecast | 640x64 tile height/160x64/4 | | 4 x 1, -, -, cast 10
Typecast | 64x32 tile height/32x32/2 | 64x32 tile bfloat8_b height/32x32/2 | 2 x 1, WAIT 1*2048/2 found, \
WAIT 1*1088/2 found, cast 1
Tilize | 640x64 | 640x64 tile | 20 x 1, BATCH 32*128/640 +32, FLUSH 2*2048/40, tilized 2
Tilize always | 640x64 | 640x64 tile | 20 x 1, STICKS 32*128/640, WAIT 2*2048/40, tilized 2
Tilize | 640x64 height/32x64/20 | 640x64 tile height/32x64/20 | 20 x 1, -, -, tilized 2
TilizeWithValPadding | 640x64 | 640x64 tile | 20 x 1, BATCH 32*128/640 +32, FLUSH 2*2048/40, tilized 2
TilizeWithValPadding always | 640x64 | 640x64 tile | 20 x 1, WAIT 32*128/640, WAIT 2*2048/40, tilized 2
Untilize | 640x64 tile | 640x64 | 20 x 1, WAIT 2*2048/40, ROWS 32*128/640, untilized 1
Untilize | 640x64 tile height/32x64/20 | 640x64 height/32x64/20 | 20 x 1, -, -, untilized 1
UntilizeWithUnpadding | 640x64 tile | 640x64 | 20 x 1, WAIT 2*2048/40, EACH 32*128/640, untilized 1
# the last of three rows of tiles has 6 sticks; of 24 images of 4 rows of tiles, a core has two rows, of 64 or 39 sticks
UntilizeWithUnpadding | 70x41 tile | 70x41 | 3 x 1, WAIT 2*2048/6, EACH 32*82/70, untilized 1
UntilizeWithUnpadding | 24x103x32 tile | 24x103x32 | 48 x 2, WAIT 2*2048/96, EACH 64*64/2472, untilized 2
# 10 rows of 8 tiles for all cores, in pieces; none is cut where padding is dropped
UntilizeCodegen blackhole | 320x256 tile | 320x256 | 80 x 1, BATCH 1*2048/80, PIECES 32*64/2560, untilized 1
UntilizeCodegen blackhole | 320x250 tile | 320x250 | 10 x 1, BATCH 8*2048/80 +8, GENERATED 32*500/320, untilized 1
PaddedSlice | 640x64 tile | 640x64 height/32x64/20 | 20 x 1, WAIT 2*2048/40 +2, INSIDE 1*4096/20, untilized 1
PaddedSlice | 640x64 | 640x64 height/32x64/20 | 20 x 1, STICKS 32*128/640, -
# channels that the image lacks are copied and filled stick by stick; whole tiles go in one piece for each row of tiles.
# Two cores across read two tiles and one of 16 rows of tiles
PaddedSlice | 8x64x64 tile | 512x96 block/256x48/2x2 | 4 x 8, WAIT 16*2048/48 +2, INSIDE 512*96/1024, untilized 8
PaddedSlice | 8x64x64 tile | 512x64 height/128x64/4 | 4 x 4, WAIT 8*2048/32 +2, INSIDE 4*4096/16, untilized 4
# a part of each row touches more tiles: 20 rows touch three each, and ten cores begin within a tile. A last core with
# fewer sticks reads fewer; cores with parts of the same tiles read them all
PaddedSlice 0-64 | 64x64x64 tile | 720x64 height/64x64/12 | 12 x 2, WAIT 4*2048/46 +2, INSIDE 2*4096/24, untilized 2
PaddedSlice 30-66 | 64x64x64 tile | 720x64 height/64x64/12 | 12 x 6, WAIT 12*2048/140 +2, INSIDE 6*1408/72, untilized 6
PaddedSlice | 1x64x96 tile | 64x96 block/64x8/12x1 | 12 x 2, WAIT 2*2048/24, INSIDE 64*16/768, untilized 2
# shards are wider than the 3 channels, and no core reads for channels behind them
PaddedSlice | 1x64x3 tile | 64x3 height/32x8/2 | 2 x 1, WAIT 1*2048/2, INSIDE 32*16/64, untilized 1
# 37x64 numbers: two tiles of four have padding
FillPad | 37x64 tile | | 4 x 1, WAIT 1*2048/2, WAIT 1*2048/2
SliceWrite | 640x64 tile height/32x64/20 | 640x64 tile | 20 x 1, -, WAIT 2*2048/40
SliceWrite | 640x64 height/32x64/20 | 640x64 | 20 x 1, -, BOX 32*128/640
Reshape | 640x64 tile | | 40 x 1, WAIT 2*2048/80, WAIT 1*2048/40
Reshape | 640x64 | | 64 x 1, WAIT 5*128/640, WAIT 5*128/640
# parts of sticks that begin between two units of DRAM bounce: 112 bytes are no multiple of 64, 120 are padded to 128
InterleavedToSharded blackhole | 128x64 | 128x64 height/64x64/4x2 | 2 x 1, STICKS 64*128/128, -
InterleavedToSharded blackhole | 128x56 | 128x56 height/64x56/4x2 | 2 x 1, BOUNCE 64*112/128 +4, -
InterleavedToSharded blackhole | 128x60 | 128x60 height/64x60/4x2 | 2 x 1, STICKS 64*120/128, -
InterleavedToSharded blackhole | 128x96 | 128x96 block/64x24/4x2 | 8 x 1, BOUNCE 64*48/512 +4, -
InterleavedToSharded blackhole | 128x64 | 128x64 block/64x16/4x2 | 8 x 1, BOUNCE 64*32/512 +4, -
InterleavedToSharded blackhole | 128x64 l1 | 128x64 block/64x16/4x2 | 8 x 1, STREAM 64*32/512, -
# as the library did until 2025
InterleavedToSharded always | 128x64 | 128x64 height/64x64/4x2 | 2 x 1, BOUNCE 64*128/128, -
# 2x2 tiles of each of two images: 64 parts of sticks of 128 B an image, and four tiles; 19 rows of 64 B
Tilize | 2x1x64x1280 | 2x1x64x1280 tile | 20 x 4, WAIT 128*128/2560, FLUSH 8*2048/160, tilized 8
TilizeWithValPadding | 1x256 | 1x256 tile | 1 x 1, BATCH 1*512/1, FLUSH 8*2048/8, tilized 8, filled 3968
TilizeWithValPadding | 19x1280 | 19x1280 tile | 40 x 1, WAIT 19*64/760, FLUSH 1*2048/40, tilized 1, filled 208
# up to 25 * 1152 bytes are asked for before a wait
InterleavedToSharded | 128000x64 tile | 128000x64 tile height/6400x64/20 | 20 x 1, WAIT 400*2048/8000 +14, -
InterleavedToSharded | 160x64 tile | 160x64 tile height/32x64/10 | 5 x 1, WAIT 2*2048/10 +2, -
# 128 rows of four faces, 32 bytes each, for 64 cores; each waits for its tiles
# two blocks of 32 by 40 elements are cut into four of up to 32 by 32, a core each: 2 x 32 rows of two pieces are read,
# 2 x 40 rows of one written
Permute 0132 | 1x2x32x40 l1 | 1x2x40x32 l1 | 4 x 1, STICKS 32*64/128, STICKS 20*64/80
UpsampleSticks | 1x32x32x32 | 1x64x64x32 | 64 x 16, WAIT 16*64/1024, WAIT 64*64/4096 +4
# a row of tiles on 32 cores
UpsampleTiles | 1x32x32x32 tile | 1x64x64x32 | 32 x 1, WAIT 1*2048/32, ROWS 128*64/4096, untilized 1
UpsampleShards | 1x32x32x32 height/256x32/4 | 1x64x64x32 height/1024x32/4 | 4 x 1, -, INSIDE 512*64/4096
# 120 rows of 60 cores; 40 bytes are no multiple of 16, so that a core copies 7 * 40 bytes by itself; a row's two parts
Repeat 2 | 1x1x40x32 | 1x1x120x32 | 60 x 1, BATCH 2*64/120 +2, BATCH 2*64/120
Repeat 3 | 1x1x40x20 | 1x1x40x160 | 40 x 1, BATCH 1*40/40, BATCH 1*320/40, filled 280
Concat 3 | 1x1x64x48 | 1x1x64x96 | 64 x 1, BATCH 2*96/128 +2, FLUSH 1*192/64
Concat 2 | 1x1x64x48 | 1x1x128x48 | 64 x 2, BATCH 2*96/128, FLUSH 2*96/128
UpsamplePages | 1x32x32x32 | 1x48x48x32 | 64 x 36, WAIT 36*64/2304, WAIT 36*64/2304
"""


def movement_of(program, source, target):
    name, *words = program.split()
    spec = BLACKHOLE if {"blackhole", "always"} & set(words) else WORMHOLE
    if name == "Permute":
        return Permute(shape=source.shape, axes=tuple(map(int, words[0]))).movement(source, target, spec)
    if name == "PaddedSlice":
        columns = tuple(map(int, words[0].split("-"))) if words else None
        return slice_movement(source, target, spec, columns=columns)
    if name == "SliceWrite":
        return slice_write_movement(source, target, spec)
    if name == "FillPad":
        return FillPad().movement(source, target, spec)
    if name == "Reshape":
        return Reshape(()).movement(source, target, spec)
    if name in ("Repeat", "Concat"):
        axis = int(words[0])
        count = target.shape[axis] // source.shape[axis]
        joined = Concatenate(axis=axis, shapes=(source.shape,) * count)
        repeated = RepeatTensor(shape=source.shape, axis=axis, count=count)
        return (repeated if name == "Repeat" else joined).movement(source, target, spec)
    if name.startswith("Upsample"):
        factor, kernel = target.shape[1] / source.shape[1], UpsampleProgram(name.removeprefix("Upsample").lower())
        formats = {"source_format": BFLOAT16, "data_format": BFLOAT16}
        op = Upsample(program=kernel, shape=source.shape, scale=(factor, factor), **formats)
        return op.movement(source, target, spec)
    spec = spec.replace(release="2025") if "always" in words else spec
    return CopyTensor(Conversion(name)).movement(source, target, spec)


def text_of(movement):
    def side(pages):
        if pages is None:
            return "-"
        ahead = "" if pages.in_flight == 1 else f" +{pages.in_flight}"
        ahead += " found" if pages.by_number else ""
        name = pages.access.name.replace("LOCAL_STICKS", "INSIDE")
        return f"{name} {pages.core_pages}*{pages.page_bytes}/{pages.all_pages}{ahead}"

    work = {"tilized": movement.tilized_tiles, "untilized": movement.untilized_rows, "cast": movement.cast_tiles}
    words = [f"{word} {count}" for word, count in (work | {"filled": movement.stores}).items() if count]
    cores = f"{movement.cores.num_cores()} x {movement.blocks}"
    return ", ".join([cores, side(movement.reads), side(movement.writes), *words])


@pytest.mark.parametrize("case", [line for line in CASES.strip().splitlines() if not line.startswith("#")])
def test_pages_by_hand(case):
    program, source, target, wanted = (part.strip() for part in case.split("|"))
    read = tensor_spec(source)
    assert text_of(movement_of(program, read, tensor_spec(target) if target else read)) == wanted
