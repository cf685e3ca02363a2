"""Circular buffers of data movement programs, by hand: a line a case.

A line says the program with its options, both tensors (an empty one is the first, or follows from it), and each
buffer's bytes and cores, with the tensor on which it lies, or `pad` for a scratchpad. The device is a Wormhole,
or a Blackhole where the line says so.
"""

from dataclasses import replace
from math import prod

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout
from device.numbers.formats import UINT16
from ops.builder import PlanTensor
from ops.op_models import load_spec
from ops.programs.data_movement.channels import hwc_buffers
from ops.programs.data_movement.concat import page_buffers, ragged_buffers, shard_views, turned_buffers
from ops.programs.data_movement.conversions import rows_of
from ops.programs.data_movement.copy import Conversion
from ops.programs.data_movement.copy_buffers import buffers_of_copy
from ops.programs.data_movement.fold import fold_buffers
from ops.programs.data_movement.pad import fill_buffers, pad_buffers
from ops.programs.data_movement.permute import permute_buffers, transpose_buffers
from ops.programs.data_movement.reshape import stick_buffers, tile_buffers
from ops.programs.data_movement.slice import Cut, padded_slice_buffers, slice_buffers, slice_write_buffers
from ops.programs.data_movement.upsample import (
    interleaved_buffers,
    interval_words,
    page_buffers as upsampled_page_buffers,
    shard_buffers,
)
from tests.build import buffer_rows, place, tensor_spec

SOME = place("height/32x32/4").shard_spec.grid
WORMHOLE, BLACKHOLE = load_spec("wormhole_n150"), load_spec("blackhole_p150")
CASES = """
# a row of tiles on each of four cores
Tilize | 128x128 | 128x128 tile l1 | 8192@4, 8192@4
# on one core
Tilize alone | 128x128 | 128x128 tile | 8192@1, 8192@1
# 320 tiles of 8 KiB in half of L1: 80 of float32, of which 64 divide them; a row of padding leaves room for 81
Tilize alone | 32x10240 float32 | 32x10240 float32 tile | 64*4096@1, 64*4096@1
TilizeWithValPadding alone | 30x3200 float32 | 30x3200 float32 tile | 50*4096@1, 50*4096@1
UntilizeWithUnpadding alone | 30x3200 float32 tile | 30x3200 float32 | 50*4096@1, 50*4096@1
Untilize alone | 32x38400 tile bfloat8_b | 32x38400 | 200*1088@1, 200*2048@1
# a tile at a time
Tilize by_tile | 128x128 height/64x128/2 | 128x128 tile height/64x128/2 | 2048@1, 2048@1
# three tiles across on three of four cores
Untilize some | 32x96 tile | 32x96 | 2*2048@3, 2*2048@3
Untilize alone | 128x128 tile | 128x128 | 8192@1, 8192@1
Untilize alone | 128x128 tile width/128x32/4 | 128x128 | 8192@1, 8192@1
Untilize alone | 128x128 tile | 128x128 width/128x32/4 | 2048@1, 2048@1
Tilize | 128x128 height/64x128/2 | 128x128 tile height/64x128/2 | 16384@2 in, 16384@2 out
Tilize | 128x128 height/64x128/2 | 128x128 tile l1 | 8*2048@2 in, 4*2048@2
Tilize | 128x128 height/64x128/2 | 128x128 tile | 8192@4, 8192@4
# a tile and a half each
Tilize | 128x128 height/48x128/3 | 128x128 tile l1 | 8192@4, 8192@4
Tilize | 128x128 width/128x32/4 | 128x128 tile height/64x128/2 | 8192@4, 8192@4
Untilize | 128x128 tile height/64x128/2 | 128x128 height/64x128/2 | 16384@2 in, 16384@2 out
# two rows of tiles on their way
Untilize | 128x128 tile height/64x128/2 | 128x128 height/32x128/4 | 8*2048@2 in, 8*2048@2
# a core has one row alone
Untilize | 128x128 tile height/32x128/4 | 128x128 height/64x128/2 | 4*2048@4 in, 4*2048@4
Untilize | 128x128 tile height/96x128/2 | 128x128 | 16384@2, 16384@2
Untilize | 128x128 tile width/128x32/4 | 128x128 block/64x64/2x2 | 4*2048@4 in, 2*2048@4
Untilize | 128x128 tile | 128x128 height/64x128/2 | 8192@4, 8192@4
# two rows of four tiles a core: one ahead
Untilize | 4096x128 float32 tile l1 | 4096x128 float32 l1 | 32768@64, 32768@64
# two tiles of each format are on their way
Copy | 64x96 tile | 64x96 bfloat8_b tile l1 | 2*2048@6, 2*1088@6
Copy | 64x96 tile | 64x96 tile | 2*2048@6
# rows of 140 bytes are put together in a scratchpad from pages of 48
Copy | 50x70 | 50x70 width/50x24/3 | 96@50, 140@50 pad
Copy | 50x70 | 50x70 l1 | 2*144@50, 140@50 pad
# 100 of 128 rows: the last of two shards has 36 rows of 208 bytes
UntilizeWithUnpadding | 100x100 tile height/64x128/2 | 100x100 height/64x100/2 | 8*2048@2 in, 16*2048@2, 36*208@2 out
UntilizeWithUnpadding | 100x100 tile height/64x128/2 | 100x100 | 16384@2 in, 16384@2
# rows of half a tile have a writer of their own
UntilizeWithUnpadding | 4x96x32 tile height/192x32/2 | 4x96x16 height/192x16/2 | 6*2048@2 in, 16*2048@2, 192*32@2 out
# two images of two rows of tiles each, a tile wide; and a stick of padding
TilizeWithValPadding | 1x2x50x128 width/100x32/4 | 1x2x50x128 tile width/128x32/4 | 4*2048@4, 4*2048@4 out, 64@4 pad
# blocks of 64 rows: the second row of cores holds none of 64 or 32 rows
InterleavedToSharded | 64x128 tile | 64x128 tile block/64x64/2x2 | 4*2048@2 out
InterleavedToSharded | 32x128 tile | 32x128 tile block/64x64/2x2 | 4*2048@2 out
# 128 columns fill two of four WIDTH shards of 64
InterleavedToSharded | 32x128 tile | 32x128 tile width/32x64/4 | 2*2048@2 out
ShardedToInterleaved | 32x128 tile width/32x64/4 | 32x128 tile | 2*2048@2 in
Reshard | 32x128 tile height/32x128/4 | 32x128 tile width/32x64/4 | 2*2048@2 out
ShardedToInterleaved | 64x64 tile height/32x64/2 | 64x64 bfloat8_b tile | 2*2048@2 in, 2*1088@2
# sticks of 128 bytes on their way into shards are aligned in a scratchpad of four with room to shift them
InterleavedToSharded | 64x64 | 64x64 height/32x64/2 | 32*128@2 out, 4*160@2 pad
# rows of 140 bytes, five in a shard: two shards of five aligned rows
Reshard | 40x70 height/5x70/8 | 40x70 height/10x70/4 | 10*144@4 out, 2*5*144@4
# 72 rows of 8 bytes, which L1 aligns to 16, in one shard of 96: the view is no larger than the tensor
Reshard | 72x4 height/36x4/2 | 72x4 height/96x4/1 | 72*8@1 out, 2*36*16@1
# three rows of 100 bytes, which L1 aligns to 112: whole aligned pages
Reshard | 3x50 height/3x50/2 | 3x50 height/3x50/2 | 2*112@1 out, 2*3*112@1
# The rows of the shards that are written count for both: 64 bytes, which L1 aligns, and 24, which it does not
# the program of HEIGHT shards alone aligns rows: those of DRAM become columns where they are
Reshard | 64x16 height/16x16/4 dram | 64x16 width/64x8/2 | 64*16@2 out
Reshard | 16x12 height/32x12/1 | 16x12 height/32x32/1 | 16*64@1 out
Reshard | 16x12 height/8x32/2 | 16x12 height/16x12/1 | 12*32@1 out, 2*8*32@1
# 40 tiles across in blocks of one: a stick of 64 bytes with room to shift it at both ends
Tilize | 32x1280 | 32x1280 tile | 2048@40, 2048@40, 128@40 pad
# 8 rows of 8 tiles on 64 cores: a tile each, two on their way; block floats become bfloat16
UntilizeCodegen | 256x256 bfloat8_b tile | 256x256 | 2*1088@64, 2*2048@64
# rows that stay whole pass two at a time
Permute 1023 | 2x3x8x5 | 3x2x8x5 | 2*32@48
Permute 1023 | 2x3x8x5 l1 | 3x2x8x5 l1 | 2*16@48
# blocks of 32: two down and two across each image
Permute 0132 | 1x5x33x47 | 1x5x47x33 | 4096@20, 4096@20, 4096@20
# whole tiles
Permute 1023 | 1x2x64x96 tile | 2x1x64x96 tile | 4096@12
# that are turned
Permute 1032 | 1x2x64x96 tile | 2x1x96x64 tile | 4096@12, 4096@12
# rows: 27 rows of each tile filled
Permute 0213 | 1x5x32x32 tile | 1x32x5x32 tile | 4096@32, 32@32
# turned: five rows of each tile filled
Permute 0312 | 1x5x32x64 tile | 1x64x5x32 tile | 4096@64, 32@64, 4096@64
# rows that fill their tiles
Permute 2103 | 32x5x32x32 tile | 32x5x32x32 tile | 4096@64
# 64 rows, a block of 3 by 32 each
Permute 0321 | 1x3x64x32 tile | 1x32x64x3 tile | 4096@64, 4096@64, 4096@64
# half a tile's row is 32 bytes; a read from Blackhole's DRAM is 64
Permute blackhole 0321 | 1x3x64x32 tile | 1x32x64x3 tile | 4160@64, 4160@64, 4160@64
Permute blackhole 0321 | 1x3x64x32 tile l1 | 1x32x64x3 tile l1 | 4096@64, 4096@64, 4096@64
Transpose 23 | 1x1x50x70 tile | | 4096@6, 4096@6
# 16 images leave half a tile empty
Transpose 12 | 1x16x64x64 tile | | 4096@64, 512@64
# block floats are bytes there
Transpose 12 | 1x16x64x64 bfloat4_b tile | | 1152@64, 256@64
Transpose 12 | 1x64x64x64 tile | | 4096@64
Transpose 01 | 16x1x64x32 tile | | 4096@32
# tiles are turned in their shards by all cores
Transpose 23 | 1x16x64x64 tile height/128x64/8 | height/128x64/8 | 8*2048@64 in, 8*2048@64 out
# two images of 64 rows to a core: sticks as they lie, two tiles across twice, and four tiles of an image
Transpose 23 | 1x16x64x64 height/128x64/8 | height/128x64/8 | 128*128@8 in, 128*128@8 out, 2*2*2048@8, 4*2048@8
# ten tiles high
Transpose 23 | 1x8x320x32 height/320x32/8 | height/32x320/8 | 20480@8 in, 20480@8 out, 4096@8, 20480@8, 20480@8, 40960@8
# three tiles across and two down: a core of its own for the only image
Transpose 23 | 1x1x50x70 height/4x70/13 | height/32x64/3 | 2*3*2048@1, 2*2*2048@1, 6*2048@1
# six rows of 512 bytes on each of the cores; where shards hold them whole, they stay there
Transpose 12 | 1x3x128x256 height/7x256/63 | height/7x256/63 | 6*512@64
Transpose 12 | 1x4x128x256 height/8x256/64 | height/8x256/64 | 8*512@64 in, 8*512@64 out
# 864 rows of 80 bytes: 14 of a core count as 32, all of 2,560 bytes at once; from byte 40 on a row takes 96
Slice 0,0,5,20 1,1,1,1 | 2x16x64x96 l1 | 2x12x36x40 l1 | 2*32*96@64, 4*4@64 pad
Slice 0,0,5,16 1,1,1,1 | 2x16x64x96 l1 | 2x12x36x40 l1 | 2*32*80@64, 4*4@64 pad
# 16 rows of 206 bytes, each at a distance of 208: 16 such rows are the most of 32 that 4,096 bytes hold
Slice 0,0,16,24 1,1,1,1 | 1x1x64x128 l1 | 1x1x16x103 l1 | 2*16*208@16, 16@16 pad
# steps read whole rows
Slice 0,0,24,0 1,1,1,2 | 1x8x224x64 l1 | 1x8x24x8 l1 | 2*128@64
# tiles pass two at a time
Slice 0,0,0,0 1,1,1,1 | 1x5x33x47 tile l1 | 1x5x32x47 tile l1 | 2*2048@10, 16@10 pad
# rows are cut out of shards where they lie
Slice 0,0,8,0 1,1,1,1 | 3x2x40x32 height/120x32/2 | 3x2x14x32 height/42x32/2 | 120*64@2 in, 42*64@2 out
# the tiles of four rows twice, the view of the slice, and a stick of padding
PaddedSlice | 1x1x448x181 float32 tile | block/448x24/8 | 32768@8, 32768@8, 43008@8 out, 96@8
PaddedSlice | 1x1x96x96 float32 tile | height/96x96/1 | 49152@1, 49152@1, 36864@1 out, 384@1
PaddedSlice | 1x1x288x18 tile | block/288x8/3 | 8192@3, 8192@3, 4608@3 out, 16@3
PaddedSlice | 1x1x32x256 bfloat8_b tile | block/32x32/8 | 4352@8, 8192@8, 2048@8 out, 64@8
PaddedSlice | 1x1x96x328 bfloat8_b tile | block/96x48/7 | 8704@7, 16384@7, 9216@7 out, 96@7
PaddedSlice | 1x1x64x1888 tile | block/64x240/8 | 65536@8, 65536@8, 30720@8 out, 480@8
# nothing but the view
PaddedSlice | 1x1x128x64 float32 | height/128x64/1 |
PaddedSlice | 1x1x352x104 | block/352x16/7 | 11264@7 out, 32@7
PaddedSlice | 1x1x192x8 | height/192x8/1 | 3072@1 out, 128@1
PaddedSlice | 1x1x160x160 | block/160x24/7 | 7680@7 out, 48@7, 704@7
PaddedSlice | 1x1x32x280 | block/32x40/7 | 2560@7 out, 1216@7
PaddedSlice blackhole | 1x1x32x2 | height/32x8/1 | 512@1 out, 16@1, 256@1
PaddedSlice blackhole | 1x1x32x272 float32 | block/32x24/12x1 | 3072@12 out, 96@12, 2304@12
PaddedSlice blackhole | 1x1x64x64 float32 | block/64x8/8 | 2048@8 out, 640@8
# rows are waited for in groups: two are 2,048 bytes or more
Pad 0 | 1x1x2048x542 l1 | 1x1x2048x544 l1 | 16*2*1088@64, 1088@64 pad
# rows at multiples of 16 bytes, which are none of 32
Pad 0 | 1x1x2048x64 l1 | 1x1x2048x66 l1 | 16*15*144@64, 160@64 pad, 160@64 pad
# rows that begin behind the number are aligned, too
Pad 1 | 1x1x2048x257 l1 | 1x1x2048x259 l1 | 16*4*528@64, 544@64 pad, 544@64 pad
Pad 0 | 1x1x2048x24 l1 | 1x1x2048x26 l1 | 16*32*64@64, 64@64 pad
# tiles pass two at a time beside one of the number
Pad 0 | 1x3x256x256 tile l1 | 1x3x288x256 tile l1 | 2*2048@64, 2048@64 pad
# 3 * 64 rows on 64 cores: three of 128 bytes, which become 192; then four of them, 66 rows to an image
Pad 0 | 1x3x64x64 height/3x64/64 | 1x3x64x96 height/3x96/64 | 3*128@64 in, 3*192@64 out, 192@64 pad
Pad 0 | 1x3x64x96 height/3x96/64 | 1x3x66x96 height/4x96/64 | 3*192@64 in, 4*192@64 out, 192@64
# three channels are 6 bytes, 32 apart: two windows of four, and one of them without gaps; 16 windows
Fold 22 | 1x8x8x3 l1 | 1x4x4x12 l1 | 2*4*32@16, 4*6@16
Fold 12 | 1x64x64x16 l1 | 1x64x32x32 l1 | 2*2*32@64
# 64 rows of images, a core each: two tiles, two tiles' rows, and 32 windows of two sticks of 32 bytes
Fold 12 | 1x64x64x16 tile l1 | 1x64x32x32 l1 | 4096@64, 4096@64, 2048@64
Fold 12 | 1x64x64x16 bfloat8_b tile l1 | 1x64x32x32 l1 | 2*1088@64, 4096@64, 2048@64
# a hundred parts on 64 cores: two for each of 50, not one or two for each of 64
Fold 22 | 1x20x20x16 l1 | 1x10x10x64 l1 | 2*4*32@50
Fold 22 | 1x200x64x16 tile l1 | 1x100x32x64 l1 | 4096@50, 4096@50, 32*4*32@50
# sticks of six bytes lie 16 apart in shards, four of them, 24 bytes, 32
Fold 22 | 1x8x8x3 height/64x3/1 | 1x4x4x12 height/16x12/1 | 64*16@1 in, 16*32@1 out
# pages of a concatenation are aligned as in DRAM if the first tensor lies there
Concat | 50x40 | 50x70 l1 | 2*160@50
Concat | 50x40 l1 | 50x70 l1 | 2*144@50
# 20 and 30 columns: a tile each, and two of the result, on as many cores as there are rows of tiles
ConcatRagged | 64x20 tile | 64x50 tile | 4*2048@2, 2*2048@2, 2*2048@2, 4*2048@2
# shards lie where they are; rows of 20 elements take 40 bytes and lie 48 apart
ConcatShards | 64x32 tile height/32x32/2 | 64x96 tile height/32x96/2 | 2048@2 in, 2048@2 in, 6144@2 out
ConcatShards | 32x80 width/32x20/4 | 64x80 width/64x20/4 | 1536@4 in, 1536@4 in, 3072@4 out
# block floats are bfloat16 while they are turned
ConcatTurned | 64x32 bfloat8_b tile height/32x32/2 | 64x64 bfloat8_b tile height/32x64/2 | 1088@2 in, 1088@2 in, \
2176@2 out, 2048@2, 2048@2, 4096@2, 2176@2
# sticks of 24 channels fill 64 bytes, and are two where a core has several; four pages of a result
Upsample | 49x24 | 49x24 | 64@49
Upsample | 65x24 | 65x24 | 2*64@64
Upsample | 64x96 bfloat8_b tile | 128x96 | 3*1088@2, 3*2048@2
UpsamplePages | 1x10x10x24 | | 4*64@64
UpsampleShards | 28x24 height/7x24/4 | 112x24 height/28x24/4 | 7*48@4 in, 28*48@4 out, 16@4 lists
# rows of 140 bytes are read from multiples of 64 on, twice; rows of 100 have eight places
Reshape | 50x70 | 70x50 | 2*256@64 pad, 8*144@64 pad
# two processors move rows that divide each other
Reshape | 1x3x96x160 float32 | 3x15360 float32 | 2*704@64 pad, 61456@64 pad, 2*704@64 pad, 61456@64 pad
Reshape | 1x3x96x160 float32 l1 | 3x15360 float32 l1 | 2*704@64 pad, 61456@64 pad, 2*704@64 pad, 61456@64 pad
# 16 segments of 16 bytes, a tile in and a tile out
Reshape | 49x32 tile | 1x7x7x32 tile | 16*16@7, 2048@7, 2048@7 pad
# a mask for each side on which tiles hold padding
FillPad | 1x5x33x47 tile | | 2*2048@15, 2048@15, 2048@15, 2*2048@15
FillPad | 1024x24 tile | | 2*2048@32, 2048@32, 2*2048@32
# 16 of 32 rows within 4096 bytes; one; shards and tiles are written as they lie
SliceWrite | 456x37 float32 l1 | | 5120@64
SliceWrite blackhole | 304x1258 l1 | | 5120@130
SliceWrite blackhole | 1530x30 l1 | | 4096@130
SliceWrite blackhole | 416x48 l1 | | 8192@130
SliceWrite blackhole | 240x4 l1 | | 4096@130
SliceWrite | 64x32 height/32x32/2 | |
SliceWrite | 64x32 tile l1 | |
"""


def buffers_of(program, source_text, target_text):
    name, *words = program.split()
    spec, source = BLACKHOLE if "blackhole" in words else WORMHOLE, tensor_spec(source_text)
    if name == "Transpose":
        swapped, shape = tuple(map(int, words[-1])), list(source.shape)
        for axis, other in zip(swapped, swapped[::-1], strict=True):
            shape[axis] = source.shape[other]
        target = TensorSpec(shape, source.data_format, source.layout, place(target_text))
        return transpose_buffers(PlanTensor("in", source), PlanTensor("out", target), swapped, spec)
    if name == "PaddedSlice":
        where, (*_, rows, columns) = place(target_text), source.shape
        padded = (1, 1, rows, -(-columns // where.shard_spec.shape[1]) * where.shard_spec.shape[1])
        result = rows_of(source, source.shape, where, padded)
        return padded_slice_buffers(PlanTensor("in", source), PlanTensor("out", result), spec)
    target = tensor_spec(target_text or source_text)
    tensors = PlanTensor("in", source), PlanTensor("out", target)
    match name:
        case "Permute":
            return permute_buffers(source, target, tuple(map(int, words[-1])), spec)
        case "Fold":
            return fold_buffers(*tensors, tuple(map(int, words[-1])), spec)
        case "Slice":
            begins, steps = (tuple(map(int, word.split(","))) for word in words)
            sides = zip(begins, target.shape, steps, strict=True)
            ends = tuple(begin + side * step for begin, side, step in sides)
            op = Cut(shape=source.shape, begins=begins, ends=ends, steps=steps)
            assert op.result_shape == target.shape
            return slice_buffers(op, *tensors, spec)
        case "SliceWrite":
            return slice_write_buffers(source, spec)
        case "Pad":
            return pad_buffers(*tensors, int(words[-1]), spec)
        case "FillPad":
            return fill_buffers(source, spec)
        case "Concat":
            return page_buffers([source, target], target, spec)
        case "ConcatShards" | "ConcatTurned":
            write = shard_views if name == "ConcatShards" else turned_buffers
            return write([tensors[0], tensors[0]], tensors[1], spec)
        case "ConcatRagged":
            return ragged_buffers([source, source], target, spec)
        case "Upsample":
            return interleaved_buffers(source, target, spec)
        case "UpsampleShards":
            small = replace(place("height/1x8/4"), buffer_type=BufferType.L1_SMALL)
            lists = PlanTensor("lists", TensorSpec((4, 8), UINT16, source.layout, small))
            return shard_buffers(*tensors, lists, 48, spec)
        case "UpsamplePages":
            return upsampled_page_buffers(source, spec)
        case "Reshape":
            tiled = source.layout is Layout.TILE
            return tile_buffers(source, target, 16, spec) if tiled else stick_buffers(source, target, spec)
    more = {"on_one_core": bool({"alone", "by_tile"} & set(words)), "by_tile": "by_tile" in words}
    return buffers_of_copy(Conversion(name), *tensors, spec, **more, within=SOME if "some" in words else None)


@pytest.mark.parametrize("case", [line for line in CASES.strip().splitlines() if not line.startswith("#")])
def test_buffers_by_hand(case):
    program, source_text, target_text, wanted = (part.strip() for part in case.split("|"))
    rows = [
        f"{size}@{cores}" + f" {'pad' if scratchpad else view_of or ''}".rstrip()
        for _, size, cores, view_of, scratchpad in buffer_rows(
            buffers_of(program, source_text, target_text), "view_of", "scratchpad"
        )
    ]
    assert rows == [evaluated(buffer) for buffer in wanted.split(", ") if buffer]


def evaluated(text):
    """A buffer whose bytes are worked out: "2*32@4 pad" is "64@4 pad"."""
    size, rest = text.split("@")
    return f"{prod(map(int, size.split('*')))}@{rest}"


@pytest.mark.parametrize(
    ("free_bytes", "slots"), [(2 * 256 + 8 * 144, 8), (2 * 256 + 3 * 144, 3), (2 * 256 + 431, 2), (0, 1)]
)
def test_rows_are_put_together_in_as_many_places_as_l1_has_room_for(free_bytes, slots):
    """Two tensors of 140 bytes a row, 160 bytes with what aligns them, of which a core has 2 and 1."""
    source, target = tensor_spec("50x70 l1"), tensor_spec("70x50 l1")
    taken = sum(tensor.buffer(WORMHOLE).bank_bytes for tensor in (source, target))
    tight = WORMHOLE.replace(l1_bytes=WORMHOLE.l1.bytes - WORMHOLE.l1.usable_bytes + taken + free_bytes)
    _, made = stick_buffers(source, target, tight)
    assert made.size_bytes == slots * 144


@pytest.mark.parametrize(
    ("rows", "width", "repeats", "shard_rows", "intervals"),
    [
        (64, 64, 2, 64, 1),  # a core has one row: each processor one repetition of it
        (7, 7, 1, 49, 1),  # nothing is repeated: either half is one run
        (7, 7, 3, 49, 8),  # 21 rows behind one another; a row's first repetition follows the row before it
        (16, 8, 3, 2, 2),  # 6 sticks of a core: three each, that lie in two shards
        (4, 4, 1, 1, 1),  # one stick: a single processor gathers it
    ],
)
def test_a_list_has_as_many_intervals_as_the_longest_needs(rows, width, repeats, shard_rows, intervals):
    assert interval_words(rows, width, repeats, shard_rows) == 2 * 4 * intervals


def test_channels_last_gather_a_block_of_pixels_of_every_channel():
    """Eight channels of 128 pixels of 2 bytes, and four tiles of 2048 bytes in each of three stages."""
    source, target = tensor_spec("1x1x8x256 width/8x128/2"), tensor_spec("1x1x256x8 height/128x8/2")
    buffers = hwc_buffers(PlanTensor("in", source), PlanTensor("out", target))
    assert [buffer.size_bytes for buffer in buffers] == [2048, 2048, 8192, 8192, 8192, 2048]
