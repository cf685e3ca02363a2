"""Places of results, and which program goes there or why none does: a line a case, on a Wormhole.

A line says the rule with its options, the tensor, the place (or tensor) that is asked for, and what follows: a place,
the name of a program, or the first words of a refusal. A scheme alone is a place whose shards the program chooses.
"""

from dataclasses import replace

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardOrientation, ShardSpec
from device.numbers.formats import BFLOAT16
from device.plan import Operation, Refuse
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.shape.permute import plan_transpose
from ops.planners.shape.to_layout import in_other_layout
from ops.programs.data_movement.conversions import copied, tilized_by, unpadded_by, untilized_by
from ops.programs.data_movement.copy import Conversion, CopyTensor, Uneven, uneven
from ops.programs.data_movement.copy_buffers import images_of_shard
from ops.programs.data_movement.fold import folds_tiles, whole_windows
from ops.programs.data_movement.permute import (
    adjusted,
    even_shards,
    is_native,
    place_of_swap,
    swapped_shape,
    with_shards,
)
from ops.programs.data_movement.placement import move_up, resharding, tilized, to_config, to_shards, viewed
from ops.programs.data_movement.reshape import resharded_place
from ops.programs.data_movement.slice import Window, sliced_input
from tests.build import N150, SCHEMES, place, tensor_spec

CASES = """
# shards that are swapped where they lie: full ones in L1, of whole tiles' worth, on the same cores
Native | 1x3x64x64 height/16x64/12 | height/16x64/12 | True
Native | 1x3x64x64 height/16x64/12 | height/32x64/11 | False
Native | 1x1x50x70 height/4x70/13 | height/4x70/13 | False
Native | 1x1x96x64 tile height/64x64/2 | height/64x64/2 | False
Native | 1x1x64x64 tile height/32x64/2 dram | height/32x64/2 dram | False
Native | 1x1x64x64 tile block/32x32/2x2 | block/32x32/2x2 | False
Swap 23 | 1x1x128x64 tile height/32x64/4 | | width/64x32/4
Swap 23 | 1x3x64x64 tile height/96x64/2 | | height/96x64/2
# 48 rows
Swap 23 | 1x2x64x96 tile height/32x96/4 | | l1
Swap 12 | 1x32x64x64 tile height/32x64/64 | | height/32x64/64
Swap 23 | 1x1x50x70 height/4x70/13 | | height
Swap 01 | 2x2x64x64 tile height/32x64/8 | | height/32x64/8
# as many shards of another shape; a quarter of 31 rows is no shard
Adjust 1x16x64x32 | 1x16x64x64 | height/1024x32/2 | height/1024x16/2
Adjust 1x1x31x64 | 1x16x64x64 | height/256x64/4 | None
# 70 rows as tiles are three shards; a chain goes on with their share of 70 images of 64 padded rows
Chosen 1x1x70x50 | 1x1x50x70 height/4x70/13 | height | height/32x64/3
Chosen 1x70x64x1 | 1x70x1x50 height/32x64/3 | height | height/2048x1/3
Chosen 1x70x64x1 | 1x70x1x50 height/32x64/3 | l1 | l1
# of 3200 rows (100 tiles) 64 cores have 50 each, which is two tiles: 50 cores hold them all
Even | 1x1x128x640 | width | width/128x32/20
Even | 1x1x128x640 | block | block/32x96/7x4
Even | 1x1x3200x64 | height | height/64x64/50
Even | 2x50x32x40 | height | height/64x64/50
Even | 1x1x40x3200 | width | width/64x64/50
# 129 tiles: 65 rows or columns of 4128 for each of 64 cores are three tiles, on 43 of them
Even | 1x1x4128x64 | height | height/96x64/43
Even | 1x1x40x4128 | width | width/64x96/43
# 38 rows and columns a core are two tiles
Even | 1x1x300x300 | block | block/64x64/5x5
Even col | 1x1x128x640 | block | block/32x96/4x7 col
Even col | 1x1x3200x64 | height | height/64x64/50 col
# buffers that are views of rows are circular buffers
Dataflow 23 | 1x16x64x64 tile height/128x64/8 | | True
Dataflow 23 | 1x16x64x64 height/128x64/8 | | False
Dataflow 12 | 1x4x128x256 height/64x256/8 | | False
Dataflow 23 | 1x1x50x70 height/7x70/8 | | True
# shards stay on their cores, or as many rows and columns of cores as divide the tensor
Reshape | 1400x192 tile l1 | height/64x192/8x4 | height/64x192/8x4
Reshape | 1408x64 tile l1 | width/1920x32/8x7 | width/1408x32/8x7
Reshape | 360x32 tile l1 | block/640x32/7x3 | block/128x32/1x3
Reshape | 42x32 tile l1 | block/64x32/2x3 col | block/32x32/2x1 col
Reshape | 13944x32 tile l1 | block/12416x32/1x3 | block/6976x32/1x2
# one shard holds all rows
Reshape | 25x32 tile l1 | height/32x32/6x4 | width/32x32/6x4
# a grid that is no rectangle gives the sharding up
Reshape | 300x32 tile l1 | height/32x32/11 | l1
# rows of any length
Reshape | 6x11 l1 | height/2x30/2x2 | height/2x11/2x2
Reshape | 6x10 l1 | width/2x10/3 | width/6x4/3
# tiles keep their shards
View 32x50 | 1x1x32x50 tile width/32x32/2 | | width/32x32/2
View 50 | 50 tile width/32x32/2 | | Changing the last dimension of a sharded tensor
View 8x30 | 1x1x8x30 block/8x16/2x1 | | Changing the last dimension of a sharded tensor
View 8x30 | 1x1x8x30 width/8x32/1 | | For valid non-interleaved buffers page size 60 must equal buffer size 512
View 8x32 | 1x1x8x32 height/4x32/2 | | height/4x32/2
# cores share the rows of tiles without their padding in whole tiles, on the cores of the tiles
Unpad 1x1x100x100 | 1x1x100x100 tile height/64x128/2 | height/64x128/2 | height/64x100/2
Unpad 1x1x100x100 | 1x1x100x100 tile width/128x32/4 | width/128x32/4 | width/100x32/4
Unpad 1x1x100x100 | 1x1x100x100 tile block/64x64/2x2 | block/64x64/2x2 | block/64x64/2x2
Unpad 1x1x100x40 | 1x1x100x100 tile block/64x64/2x2 | block/64x64/2x2 | block/64x32/2x2
Unpad 1x1x100x100 | 1x1x100x100 tile height/64x128/2 | height/16x100/8 | height/64x100/2
Unpad 1x1x100x100 | 1x1x100x100 tile height/64x128/2 | height/16x128/8 | height/64x100/2
Unpad 1x1x100x100 | 1x1x100x100 tile | height/16x100/8 | height/32x100/8
Unpad 1x2x50x100 | 1x2x50x100 tile | block/64x64/2x2 | block/64x64/2x2
# shards of several whole images keep as many
Unpad 1x4x50x100 | 1x4x50x100 tile height/128x128/3 | height/128x128/3 | height/100x100/3
Unpad 1x6x7x130 | 1x6x7x130 tile height/64x160/3 | height/64x160/3 | height/14x130/3
Unpad 1x2x50x100 | 1x2x50x100 tile height/64x128/3 | height/64x128/3 | height/64x100/3
Unpad 1x3x33x64 | 1x3x33x64 tile height/96x64/3 | height/96x64/3 | height/64x64/3
Unpad 1x5x50x32 | 1x5x50x32 tile height/160x32/3 | height/160x32/3 | height/100x32/3
Images | 1x4x50x100 tile height/128x128/3 | | 2
Images | 1x2x50x100 tile height/64x128/3 | | 0
Unpad 1x1x100x100 | 1x1x100x100 tile height/64x128/2 | width/128x32/4 | Shard height 128 must match physical height 100
Unpad 1x1x100x100 | 1x1x100x100 tile width/128x32/4 | block/64x64/2x2 | WIDTH_SHARDED -> BLOCK_SHARDED requires matc
Unpad 1x2x50x100 | 1x2x50x100 tile width/128x32/4 | block/64x32/4x2 | Can only write unbatched output for WIDTH_SHARDED
# shards of as many columns go to the other scheme as asked for
Unpad 1x1x100x100 | 1x1x100x100 tile width/128x32/4 | block/64x32/4x2 | block/64x32/4x2
Unpad 1x1x100x100 | 1x1x100x100 tile block/64x32/4x2 | width/100x32/6 | width/100x32/6
Unpad 1x1x100x100 | 1x1x100x100 tile width/128x32/4 dram | block/64x32/4x2 | DFB 'sh_in' borrows memory from Tens
Unpad 1x1x100x40 | 1x1x100x100 tile width/128x32/4 | block/64x32/2x2 | WIDTH_SHARDED -> BLOCK_SHARDED requires the out
Unpad 1x2x50x40 | 1x2x50x100 tile width/128x32/4 | block/64x32/2x2 | WIDTH_SHARDED -> BLOCK_SHARDED requires the out
Unpad 1x1x100x100 | 1x1x100x100 tile width/128x32/4 | height/64x128/2 | Output memory config layout (TensorMemoryLay
Unpad 1x2x50x100 | 1x2x50x100 tile width/128x32/4 | dram | Can only write unbatched output interleaved
Unpad 1x2x50x100 | 1x2x50x100 tile block/64x64/2x2 | block/64x64/2x2 | Can only write unbatched output for BLOCK_SHARDED
Unpad 1x1x100x100 | 1x1x100x100 tile block/64x64/2x2 | height/64x128/2 | Output memory config layout (TensorMemoryLa
# WIDTH shards are cut within the last of them
Unpad 1x1x100x40 | 1x1x100x100 tile width/128x32/4 | width/128x32/4 | Input tensor width (128) must equal output wid
Unpad 1x1x100x40 | 1x1x100x100 tile width/128x32/4 | dram | Input tensor width difference (88) must be less than shard
# 15 rows of windows of 80 pixels; the last shards hold whole rows of windows already
Fold 22 | 1x30x40x8 height/300x8/4 | | height/80x8/15
Fold 21 | 1x64x64x16 height/64x16/64 | | height/128x16/32
Fold 12 | 1x64x64x16 height/256x16/16 | | height/256x16/16
FoldTiles 22 | 1x64x64x16 tile l1 | | True
# six bytes are no whole words; a row of windows of 2 MB; no tiles
FoldTiles 22 | 1x8x8x3 tile l1 | | False
FoldTiles 22 | 1x8x8192x64 tile l1 | | False
FoldTiles 22 | 1x64x64x16 l1 | | False
# rows that are padded stay in their WIDTH shards, of as many columns as tiles have; in other schemes as asked for
Pad | 50x64 width/50x32/2 | width/64x64/1 | width/64x32/2
Pad | 50x48 width/50x24/2 | width/64x64/1 | width/64x64/1
Pad | 50x64 height/25x64/2 | height/64x64/1 | height/64x64/1
Pad | 50x100 width/50x64/3 | width/64x32/4 | width/64x64/3
# a vector in two axes
Pad 32x128 | 100 width/1x64/2 | width/32x32/4 | width/32x32/4
Pad | 50x64 width/50x16/4 | width/64x64/1 | Physical shard shape (64, 16) must be tile {32, 32} sized!
# three shards of 24 columns are 48 bytes a row, of 20 columns 40
Pad 16 | 50x72 width/50x24/3 | dram | dram
Pad 16 | 50x60 width/50x20/3 | dram | Input row-major shard width 20 gives page size 40 bytes, which must be aligned to
Pad 32 | 50x72 width/50x24/3 | dram | Input row-major shard width 24 gives page size 48 bytes, which must be aligned to
Layout | 40x64 height/20x64/2 | | Physical shard shape (20, 64) must be tile
Layout | 64x64 | | Tilize bfloat16
Layout | 50x64 | | TilizeWithValPadding bfloat16
Layout | 64x64 tile | | UntilizeCodegen bfloat16
# float32 has no program of its own, nor have shards
Layout | 64x64 float32 tile | | Untilize float32
Layout | 64x64 tile height/32x64/2 | | Untilize bfloat16
Layout | 64x64 bfloat8_b tile | | UntilizeCodegen bfloat16
Layout | 50x64 tile | | UntilizeWithUnpadding bfloat16
# one core takes no shards, and no program that was generated
TilizeAlone | 64x64 height/32x64/2 | height/32x64/2 | Multicore must be enabled for sharded input
UntilizeAlone | 64x64 tile | 64x64 | Untilize
UntilizeAlone | 96x64 tile height/64x64/2 | 96x64 | Uneven input shard height 64 for tensor height 96 not supported for
Tilize | 64x32 | 64x32 tile | Tilize
Tilize | 64x32 width/64x8/4 dram | 64x32 tile | Input row-major shard width 8 bytes gives page size 16 bytes, which must
Tilize | 64x40 | 64x64 tile | Input tensor width (40) must be divisible by tile width (32)
Tilize | 40x64 | 64x64 tile | Input tensor height (40) must be divisible by tile height (32)
TilizeWithValPadding | 50x64 uint8 | 50x64 uint8 tile | Can only tilize bfloat16/float32 or int32/
Copy | 64x64 | 64x64 float32 | Only tile layout supports dtype conversion
Untilize | 64x64 tile height/32x64/2 | 64x60 height/32x60/2 | Output shard row size 120 bytes must be
Reshard | 1x4 height/1x4/1 | 1x4 height/1x4/1 | DataflowBufferSpec 'shard' has num_entries = 0.
Reshard | 6x280 width/6x40/7 | 6x280 block/1x48/8x8 | unordered_map::at
Reshard | 2x1x8x128 height/16x128/1 dram | 2x1x8x128 block/3x24/7x7 | Reshard
# rows of padding between the images of shards become rows of the result
Kept | 2x50x64 tile height/64x64/2 | 2x50x64 height/64x64/2 | (2, 64, 64)
Kept | 1x50x64 tile height/64x64/1 | 1x50x64 height/64x64/1 | None
Kept | 2x50x64 tile | 2x50x64 height/64x64/2 | None
# a window that is the whole image is dealt to shards of all channels as any tensor; other windows are cut out
Window 2 | 5x2x2x24 | height/32x24/1 | InterleavedToSharded
Window 1 | 5x2x2x24 | height/32x24/1 | PaddedSlice
Window 2 | 5x2x2x20 | height/32x24/1 | PaddedSlice
Window 2 | 5x2x2x32 | width/20x32/1 | InterleavedToSharded
Window 2 | 5x2x2x8 | width/20x32/1 | PaddedSlice
Window 2 | 5x2x2x8 | block/32x8/1x1 | InterleavedToSharded
Window 2 | 5x2x2x32 tile | height/32x32/1 | PaddedSlice
# rows that do not fill what L1 aligns are not cut out of rows
Window 2 | 1x4x8x2 uint8 | height/32x8/1 | Output row size 8 must be aligned to the destination buffer BufferType::L1
Window 2 | 1x4x8x2 uint8 | height/32x16/1 | PaddedSlice
Window 2 | 1x4x8x2 uint8 tile | height/32x8/1 | PaddedSlice
# the result of a convolution is refused its place when all else has run
Result | 32x32 tile height/32x32/1 | block/32x32/1x1 dram | We don't support DRAM block sharding
Result | 32x32 tile height/32x32/1 | height/32x64/1 | Shard width 64 must match physical width 32 for height sharded
Result | 32x32 tile height/32x32/1 | width/32x32/40 dram | Invalid DRAM shard grid:
Result | 32x32 tile height/32x32/1 | height | bad optional access
# as tt-metal's to_memory_config and the checks of its Reshard: tiles always, HEIGHT shards that stay HEIGHT
Deal | 1x1x32x24 height/32x24/1 | height/32x24/1 | Reshard
Deal | 1x1x32x23 height/32x23/1 | height/32x24/1 | Reshard
Deal | 1x1x32x32 tile block/32x32/1x1 | height/32x64/1 | Reshard
# 8 columns of bfloat16 fill 16 bytes, and not 32, which another device, or DRAM, aligns
Deal | 1x1x32x16 block/32x16/1x1 | block/32x32/1x1 | Reshard
Deal | 1x1x32x12 block/32x12/1x1 | block/32x32/1x1 | Copy
Deal | 1x1x32x79 block/32x79/1x1 | height/32x472/1 | Copy
Deal | 1x1x32x80 block/32x80/1x1 | height/32x472/1 | None
Deal | 1x1x32x32 width/32x32/1 | block/32x32/1x1 | Reshard
Deal | 1x1x32x20 width/32x20/1 | block/32x20/1x1 | Copy
Deal | 1x1x32x12 float32 block/32x12/1x1 | height/32x48/1 | None
Deal | 1x1x32x8 block/32x8/1x1 | block/32x16/1x1 | Reshard
Deal 32 | 1x1x32x8 block/32x8/1x1 | block/32x16/1x1 | Copy
Deal | 1x1x32x8 block/32x8/1x1 dram | block/32x32/1x1 | Copy
Deal | 1x1x32x16 block/32x16/1x1 dram | block/32x32/1x1 | Reshard
# recorded: what is lost is refused, crashes the real library, or hangs it; units of padding are counted out by the last
# column of the grid alone, which has just the columns of cores that are used, or more
Uneven | 1x2x3x280 width/6x40/1x7 | block/1x24/12x10 | MOVED
Uneven | 1x2x3x280 width/6x40/1x7 | block/1x24/13x10 | LOST
Uneven | 1x2x3x255 width/6x40/1x7 | block/1x24/13x10 | LOST
# 11 whole shards
Uneven | 1x2x3x264 width/6x40/1x7 | block/1x24/13x10 | MOVED
Uneven | 1x2x3x280 width/6x40/1x7 | block/5x24/13x10 | LOST
Uneven | 1x2x3x280 width/6x40/1x7 | block/4x24/13x10 | MISPLACED
Uneven | 1x2x3x280 width/6x40/1x7 | block/1x24/6x12 col | MOVED
Uneven | 1x2x3x280 width/6x40/1x7 | block/1x24/6x13 col | LOST
# by a program of its own
Uneven | 1x2x3x280 width/6x40/1x7 | width/6x24/13x1 | MOVED
Uneven | 1x1x8x12 height/4x12/2 | height/8x12/1 | MOVED
Uneven | 1x1x8x12 height/4x12/2 | height/8x32/1 | MISPLACED
Uneven | 1x1x2x12 height/1x12/2 | height/1x32/2 | MOVED
# tiles and whole shards
Uneven | 1x1x64x40 tile block/32x32/4x2 | block/32x64/4x2 | MOVED
Uneven | 1x1x64x40 block/32x16/4x2 | height/16x48/4x1 | MOVED
Uneven | 1x1x64x48 block/32x16/4x2 | block/32x24/4x2 | MOVED
"""


def where(text):
    """A place, of which the scheme alone may be said."""
    return MemoryConfig(SCHEMES[text], BufferType.L1) if text in SCHEMES else place(text)


def planned(write, source, *arguments, spec=N150, **options):
    """The program of the one step of a plan, or why it is refused; the step, and its result."""
    builder = PlanBuilder(spec, {"input": source})
    result = write(builder, builder.tensor("input"), *arguments, **options)
    (step,) = builder.steps
    return step.refused or step.name.removesuffix("DeviceOperation"), step, result.spec


def answer(rule, tensor, text):
    """What follows from a rule."""
    asked, (name, *words) = where(text), rule.split()
    option = words[0] if words else ""
    shape = tuple(map(int, option.split("x"))) if "x" in option else (int(option),) if option.isdigit() else ()
    axes = tuple(map(int, option)) if option.isdigit() else ()
    match name:
        case "Native":
            return is_native(tensor, asked)
        case "Swap":
            return place_of_swap(tensor, axes)
        case "Adjust":
            fitted = adjusted(asked.shard_spec, tensor.shape, shape, tensor.layout)
            return fitted and replace(asked, shard_spec=fitted)
        case "Chosen":
            return with_shards(tensor, shape, asked, N150)
        case "Even":
            orientation = ShardOrientation.COL_MAJOR if words else ShardOrientation.ROW_MAJOR
            return replace(asked, shard_spec=even_shards(tensor.shape, asked.memory_layout, orientation, N150.grid))
        case "Dataflow":
            (step,) = plan_transpose(tensor, *axes, N150).steps
            return step.dataflow
        case "Reshape":
            return resharded_place(tensor, asked)
        case "View":
            result = viewed(tensor, shape, N150)
            assert result.shape == shape
            return result.memory_config
        case "Unpad":
            _, step, result = planned(unpadded_by, tensor, shape, asked, "output")
            assert step.refused or (result.shape, step.op.kept) == (shape, None if shape == tensor.shape else shape)
            return step.refused or result.memory_config
        case "Images":
            return images_of_shard(tensor)
        case "Fold":
            return whole_windows(tensor, axes, N150)
        case "FoldTiles":
            return folds_tiles(tensor, axes, N150)
        case "Uneven":
            return uneven(tensor, TensorSpec(tensor.shape, tensor.data_format, tensor.layout, asked)).name
        case "Pad":
            spec = N150.replace(l1_alignment_bytes=int(option)) if axes else N150
            options = {"place": asked, "padded_shape": shape if "x" in option else None, "whole": False}
            _, step, result = planned(tilized_by, tensor, "output", spec=spec, **options)
            assert bool(step.refused) is not bool(step.circular_buffers)
            return step.refused or result.memory_config
        case "Deal":
            spec = N150.replace(l1_alignment_bytes=int(option or 16))
            conversion = resharding(tensor, asked, spec)
            return conversion and conversion.value
        case _:
            return program_of(name, axes, tensor, asked, text)


def program_of(name, axes, tensor, asked, text):
    """Which program goes to a place, or why none does."""
    match name:
        case "Layout":
            other = Layout.TILE if tensor.layout is Layout.ROW_MAJOR else Layout.ROW_MAJOR
            program, _, result = planned(in_other_layout, tensor, other, "output")
            assert (result.shape, result.layout, result.memory_config) == (tensor.shape, other, tensor.memory_config)
            return f"{program} {result.data_format}"
        case "TilizeAlone":
            return planned(tilized_by, tensor, "output", place=asked, whole=True, on_one_core=True)[0]
        case "UntilizeAlone":
            program, step, _ = planned(untilized_by, tensor, tensor_spec(text), "output", on_one_core=True)
            assert step.op.on_one_core
            return program
        case "Kept":
            return planned(untilized_by, tensor, tensor_spec(text), "output")[1].op.padded
        case "Window":
            window = Window(shape=tensor.shape, begins=(0,) * 4, ends=(tensor.shape[0], *axes, *tensor.shape[2:]))
            program, _, result = planned(sliced_input, tensor, window, asked, "slice")
            assert result.shape == (1, 1, tensor.shape[0] * axes[0] * tensor.shape[2], tensor.shape[3])
            return program
        case "Result":
            builder = PlanBuilder(N150, {"input": tensor})
            builder.run("Work", CopyTensor(Conversion.COPY), [builder.tensor("input")], PlanTensor("y", tensor))
            to_config(builder, builder.tensor("y"), asked, "z")
            first, last = builder.steps
            assert first.name == "Work"
            return last.text if isinstance(last, Refuse) else last.refused
        case _:
            target = tensor_spec(text)
            program, step, _ = planned(
                lambda builder, source: copied(builder, Conversion(name), source, target, "output"), tensor
            )
            assert bool(step.refused) is not bool(step.circular_buffers)
            assert step.op.formats == (tensor.data_format, target.data_format)
            return program


@pytest.mark.parametrize("case", [line for line in CASES.strip().splitlines() if not line.startswith("#")])
def test_places_by_hand(case):
    rule, tensor, asked, wanted = (part.strip() for part in case.split("|"))
    try:
        result = answer(rule, tensor_spec(tensor), asked)
    except DeviceError as error:
        result = str(error)
    if isinstance(result, MemoryConfig):
        assert result == where(wanted)
    else:
        assert str(result).startswith(wanted)


@pytest.mark.parametrize(
    ("source", "width", "first", "last", "order", "result"),
    [
        ("1x1x3x280 width/3x40/7x1", 24, (1, 0), (12, 9), "ROW_MAJOR", Uneven.MISPLACED),
        # with one row (column) of cores more than it takes, which lies where the others would be counted from 0
        ("1x1x3x200 width/3x40/5x1", 32, (1, 0), (8, 1), "ROW_MAJOR", Uneven.MOVED),
        ("1x1x3x200 width/3x40/5x1", 32, (0, 1), (1, 8), "COL_MAJOR", Uneven.MOVED),
    ],
)
def test_a_grid_that_does_not_begin_at_the_first_core_is_taken_for_another(source, width, first, last, order, result):
    rows, cores = tensor_spec(source), CoreRangeSet(CoreRange(CoreCoord(*first), CoreCoord(*last)))
    target = MemoryConfig(SCHEMES["block"], BufferType.L1, ShardSpec(cores, (3, width), ShardOrientation[order]))
    assert uneven(rows, TensorSpec(rows.shape, rows.data_format, rows.layout, target)) is result


def test_width_shards_of_a_convolution_keep_rows_of_padding_and_fill_their_own_columns():
    shape, rows = (1, 1, 60, 40), place("height/32x40/2")
    builder = PlanBuilder(N150, {"input": TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR, rows, (1, 1, 64, 40))})
    copy = to_shards(builder, builder.tensor("input"), place("width/64x24/2"), "copy")
    assert (copy.spec.shape, copy.spec.padded_shape) == (shape, (1, 1, 64, 48))


def test_rows_keep_their_padding_and_tiles_get_other():
    assert swapped_shape(tensor_spec("1x3x8x32 tile"), (1, 2)) == (1, 8, 32, 32)
    assert swapped_shape(tensor_spec("1x1x70x50 height/32x64/3"), (2, 3)) == (1, 1, 64, 70)


@pytest.mark.parametrize(("memory", "sizes"), [("l1", [4096, 2048]), ("height/32x32/1", [0, 0])])
def test_pages_that_are_moved_up_go_through_buffers_of_their_own(memory, sizes):
    """A tile of a core twice, or all of its tiles where both places overlap."""
    builder = PlanBuilder(N150, {"input": tensor_spec(f"32x32 tile {memory}")})
    move_up(builder, builder.tensor("input"))
    (step,) = builder.steps
    buffers = step.circular_buffers, step.overlapping
    assert [sum(buffer.size_bytes for buffer in those) for those in buffers] == sizes


def test_rows_of_height_shards_are_padded_across_and_down_before_they_become_tiles():
    """Five cores share 144 rows, then 160, of which each takes a tile."""
    place_of_rows = place("height/32x96/5")
    source = TensorSpec((1, 1, 144, 80), BFLOAT16, Layout.ROW_MAJOR, place_of_rows, (1, 1, 144, 96))
    builder = PlanBuilder(N150, {"input": source})
    result = tilized(builder, builder.tensor("input"), "tiles")
    plan = builder.finish({"tiles": result})
    names = [step.name.removesuffix("DeviceOperation") for step in plan.steps if isinstance(step, Operation)]
    assert names == ["Pad", "Pad", "Tilize"]
    dealt = [plan.tensors[name].shards.shape for name in ("tiles.across", "tiles.down", "tiles")]
    assert dealt == [[29, 96], [32, 96], [32, 96]]
