"""Calls of operations that are refused: tensors, a call, and how the error begins, by class and first line."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import ttsim as ttnn
from tests.build import place
from tests.shards import BLOCK, HEIGHT, WIDTH, high, in_box, wide
from tests.sizes import conv_sizes
from tests.ttsim.api.calls import put, put_all, refusal

L1, DRAM = ttnn.L1_MEMORY_CONFIG, ttnn.DRAM_MEMORY_CONFIG
HWC, CHW = ttnn.experimental.convert_to_hwc, ttnn.experimental.convert_to_chw
COLUMNS = ttnn.ShardOrientation.COL_MAJOR
BARE = ttnn.L1_WIDTH_SHARDED_MEMORY_CONFIG
BILINEAR = {"mode": "bilinear"}
OTHER_WIDTH = "Device: Changing the last dimension of a sharded tensor is not supported"
NO_RECTANGLE = place("height/32x32/10")  # a row of cores, and two of the next
GRID = ttnn.CoreGrid(x=1, y=1).core_range_set()
OFF = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(3, 3), ttnn.CoreCoord(4, 4))])
IMAGE = "2x3x32x64"
SOFTMAX = ttnn.SoftmaxShardedMultiCoreProgramConfig(
    compute_with_storage_grid_size=(2, 1), subblock_w=1, block_h=1, block_w=2
)
NOT_IN_L1 = "Device: Only L1 buffers can have an associated circular buffer!"


def pool(x, kernel=(2, 2), stride=(2, 2), padding=(0, 0), dilation=(1, 1), **options):
    """max_pool2d of images [N, H, W, C], or of 2 images of 6 x 6 x 16 as rows."""
    batch, height, width, channels = x.shape if x.shape[1] > 1 else (2, 6, 6, 16)
    return ttnn.max_pool2d(x, batch, height, width, channels, kernel, stride, padding, dilation, **options)


def convolved(x, kernel=2):
    """conv_transpose2d of images [N, H, W, C] to 32 channels, without overlap."""
    batch, height, width, channels = x.shape
    weight = ttnn.Tensor(np.ones((channels, 32, kernel, kernel)), ttnn.bfloat16)
    sizes = conv_sizes(height, width, channels, 32, kernel, kernel, batch=batch)
    tensors = {"input_tensor": x, "weight_tensor": weight, "device": x.device()}
    return ttnn.conv_transpose2d(**tensors, **sizes, stride=(kernel, kernel))


def in_dram(config):
    return replace(config, buffer_type=ttnn.BufferType.DRAM)


OFF_ROW_0 = in_dram(high((32, 64), 9))
LATER_ROW = "Device: Invalid DRAM shard grid: shard core (0, 1) is not on row 0."


def borrowing(buffer, tensor):
    """The error of a program that borrows the shards of a tensor in DRAM."""
    return f"Device: DFB '{buffer}' borrows memory from TensorParameter '{tensor}', but its TensorSpec is not L1-resid"


REFUSED = [
    # concat and stack
    ("1x1x32x64 tile + 1x1x32x32 tile", lambda *x: ttnn.concat(x, 2),
     "Device: All dimensions must be the same size except"),
    ("32x32 tile", lambda x: ttnn.concat(x, 2), "ArgumentType: concat: tensors must be a sequence of tensors, not "),
    *(("32x32", lambda x, tensors=tensors: ttnn.concat(tensors, 7),
       "Device: ttnn.concat: expected a non-empty list of Tensors!\n") for tensors in ((), [])),
    # nothing is joined once rows have another axis, which those of 33 columns in shards of 17 cannot have
    ("2x32 tile", lambda x: ttnn.repeat_interleave(x, 0, 1), "Device: ttnn.concat: expected a non-empty list of Tens"),
    ("32", lambda x: ttnn.repeat_interleave(x, 0, 0), "Device: ttnn.concat: expected a non-empty list of Tensors!\n"),
    ("1x1x3x65 rows width/3x33/2", lambda x: ttnn.repeat_interleave(x, 0, 0),
     f"{OTHER_WIDTH} unless the shard width matches the input last dimension. Input shape: Shape([1, 1, 3, 66]), New "),
    ("64x64 height/64x64/1 dram + 64x64 height/32x64/2 dram", lambda *x: ttnn.concat(x, 1),
     "Device: Sharded tensors must have the same grid."),
    ("64x64 height/64x64/1 dram + 64x64 width/64x64/1", lambda *x: ttnn.concat(x, 1),
     "Device: Sharded tensors must have the same memory layout."),
    # a shard of 58 rows ends within images of 3, of which a core joins 58 runs of three tensors and four more
    ("58x3x96 block/58x48/2x3", lambda x: ttnn.concat([x, x, x], 1),
     "Device: Block-sharded height concat: 62 transfers per core, past the 56 the runtime-arg budget allows (28 per "
     "RISC at 9 args each). A core walks only the leading indices its own rows cover -- about 58 / 3 grid rows"),
    ("64x64 height/64x64/1 dram", lambda x: ttnn.concat([x, x], 1, groups=2),
     "Device: Groups > 1 is not supported for DRAM-sharded concat (groups=2 was provided)."),
    ("64x8 tile float32 + 8x8 tile bfloat4_b", lambda *x: ttnn.concat(x, 0),
     "Device: Only TILE layout is supported for BFLOAT8_B dtype!"),
    ("32x32 tile", lambda x: ttnn.concat([x], 0, output_tensor=x),
     "Device: optional output tensor currently unsupported!\n"),
    # Rows of 7 bfloat16 are turned first: 4,096 rows of the other tensor leave no room for the buffers of that
    ("1x1x256x128 rows block/256x32/4 + 1x1x256x7 rows block/64x7/1x4", lambda *x: ttnn.concat(x, -1),
     "Device: bad optional access"),
    ("1x1x4096x128 rows block/4096x32/4 + 1x1x4096x7 rows block/1024x7/1x4", lambda *x: ttnn.concat(x, -1),
     "CircularBuffer: Statically allocated dataflow"),
    ("1x1x64x64 tile height/32x64/2 + 1x1x64x64 tile", lambda *x: ttnn.concat(x, 2),
     "Device: All tensors must be sharded"),
    ("1x1x64x64 rows + 1x1x64x64 rows height/32x64/2", lambda *x: ttnn.concat(x, 2),
     "Device: All tensors must be sharded"),
    ("170x150 tile width/192x32/5", lambda x: ttnn.concat([x, x], 1),  # padded to 320 bytes until they are gathered
     "Device: Current concat implementation requires aligned last dim when"),
    ("1x1x1x32 rows", lambda x: ttnn.concat([x, x], 0, memory_config=ttnn.L1_WIDTH_SHARDED_MEMORY_CONFIG),
     "Device: MemoryConfig must have Shard Spec specified for sharded memory layout"),
    ("32x32", lambda x: ttnn.stack([], 0), "Device: Stack expects at least one tensor"),
    ("32x64 tile", lambda x: ttnn.stack([x], 3), "Device: Dimension out of range"),
    ("32x64 tile", lambda x: ttnn.stack([x], -4), "Device: Dimension out of range"),
    ("32x64", lambda x: ttnn.stack([None], 0), "ArgumentType: stack: input_tensors must be a sequence of tensors"),
    # fold
    ("2x8x12x16", lambda x: ttnn.fold(x, 3, 2), "Device: Fold: logical H (8) must be divisible by stride_h (3)."),
    ("4x1x16x32 tile", lambda x: ttnn.fold(x, 2, 1), "Device: Fold: logical H (1) must be divisible by stride_h (2)."),
    ("2x8x12x16", lambda x: ttnn.fold(x, 0, 2), "Device: Fold: stride_h (0) and stride_w (2) must be > 0"),
    ("2x8x12x16", lambda x: ttnn.fold(x, 2, 2, use_transpose_as_fold=True, collapse_output=True),
     "Device: Fold: collapse_output=True is not supported with use_transpose_as_fold=True"),
    ("8x12x16", lambda x: ttnn.fold(x, 2, 2, use_transpose_as_fold=True),
     "Device: ShapeBase[] index out of range. 3 not in [-4, 3)"),
    ("1x2x8x12x16", lambda x: ttnn.fold(x, 2, 2, use_transpose_as_fold=True),
     "Device: Permute dimensions must match input tensor rank"),
    ("2x8x12x16", lambda x: ttnn.fold(x, 0, 2, use_transpose_as_fold=True),
     "NotSimulated: fold: the real library crashes on windows of (0, 2)"),
    # 8 channels of images show the padding of their tiles; 32 do not, until rows are folded
    ("1x8x64x64 tile", lambda x: ttnn.fold(x, 4, 2, use_transpose_as_fold=True),
     "NotSimulated: reshape_on_device: the padding of tiles shows"),
    ("1x32x64x64 tile", lambda x: ttnn.fold(x, 4, 2, use_transpose_as_fold=True),
     "Device: Tile reshape requires the input and output to have the same tile-padded physical volume, but got input "
     "131072 and output 262144."),
    # whole tiles are cut with their padding, of unknown numbers
    ("320x2 tile", lambda x: ttnn.slice(x, [0, 0], [320, 84]),
     "Device: Ends 96 must be less than or equal to the shape of the tensor 32"),
    ("320x2 tile", lambda x: ttnn.slice(x, [0, 32], [320, 40]),
     "Device: Slice start[1] (32) must be less than input tensor shape[1] (32)"),
    ("320x2 tile", lambda x: ttnn.slice(x, [0, 0], [320, 20]), "NotSimulated: slice: the box ends at [320, 20]"),
    ("320x2 tile", lambda x: ttnn.slice(x, [1, 0], [320, 20]),
     "Device: Ends 20 must be less than or equal to the shape of the tensor 2"),
    ("2x4x32x16 uint32", lambda x: ttnn.fold(x, 2, 1), "NotSimulated: fold: the library takes the bytes of uint32"),
    ("2x1x32x128 tile",
     lambda x: ttnn.repeat(x, [1, 2, 1, 1], memory_config=in_dram(in_box(BLOCK, (64, 32), 6, 1))),
     "Device: We don't support DRAM block sharding"),
    # expand looks at the last side first
    ("2x1x3", lambda x: ttnn.expand(x, [2, -3, 3]),
     "Device: Expand dimension size must be -1 or non-negative (got -3)"),
    ("2x1x3", lambda x: ttnn.expand(x, [2, -3, 4]), "Device: Only size 1 dimensions can be expanded in the output"),
    ("2x1x3", lambda x: ttnn.expand(x, [-5, 2, 3, 3]), "Device: Leading dimension must be non-negative (got -5)"),
    # squeeze, reshape and slice
    (IMAGE, lambda x: ttnn.squeeze(x, -6),
     "Device: Dimension out of range (expected to be in range of [-4,3], but got -2)"),
    (IMAGE, lambda x: ttnn.squeeze(x, [-5, 9]),
     "Device: Dimension out of range (expected to be in range of [-4,3], but got 9)"),
    (IMAGE, lambda x: ttnn.squeeze(x, [1, -3]), "Device: dim 1 appears multiple times in the list of dims"),
    (IMAGE, lambda x: ttnn.reshape(x, [-1, -1, 64]),
     "Device: Shape cannot have more than 1 elements that is set to -1! Shape used: (-1,-1,64,)"),
    (IMAGE, lambda x: ttnn.reshape(x, -1), "ArgumentType: ttnn.reshape(): incompatible function arguments."),
    (IMAGE, lambda x: ttnn.view(x, -1), "ArgumentType: ttnn.view(): incompatible function arguments.\nview: shape"),
    (IMAGE, lambda x: ttnn.experimental.view(x, -1), "ArgumentType: ttnn.experimental.view(): incompatible function"),
    (IMAGE, lambda x: ttnn.reshape(x, [0, -1]), "Device: cannot reshape tensor of 0 elements into shape (0,-1,)"),
    (IMAGE, lambda x: ttnn.reshape(x, [-2, -96, 64]),
     "Device: Attempting to reshape between two shapes with different volumes"),
    (f"{IMAGE} tile", lambda x: ttnn.reshape(x, [-1, 64], [192, 64]), "ArgumentType: ttnn.reshape(): incompatible"),
    ("1x16x50 tile bfloat4_b", lambda x: ttnn.slice(x, [0, 0, 0], [1, 1, 50], [1, 3, 2]),
     "Device: Only TILE layout is supported for BFLOAT8_B dtype!"),
    ("256x160 tile width/256x32/5", lambda x: ttnn.slice(x, [37, 0], [256, 160], memory_config=BARE),
     "Device: bad optional access"),
    ("64x32 tile", lambda x: ttnn.slice(x, [0, 0], [64, 32], [2, 1], memory_config=high((16, 32), 2)),
     "Device: Physical shard shape (16, 32) must be tile {32, 32} sized!"),
    ("2x8x12x16", lambda x: ttnn.fold(x, 2, 2, padding=(1, 2, 3)),
     "ArgumentType: fold: padding must be 2, 4 or 6 numbers"),
    ("2x8x12x16", lambda x: ttnn.fold(x, 2, 2, padding=(0, -1)),
     "ArgumentType: fold: padding must be numbers of at least 0"),
    ("2x8x12x16 rows height/64x16/3", lambda x: ttnn.fold(x, 2, 2, padding=(1, 1, 1, 1, 0, 16)),
     "NotSimulated: fold: ttsim does not calculate numbers of images in HEIGHT shards"),
    ("1x20x20x16 rows block/58x8/2x7", lambda x: ttnn.fold(x, 2, 2),  # 100 windows, 14 to a shard, fill 8 rows of cores
     "Device: Number of shards along height 8 must not exceed number of rows 7"),
    # permute and transpose
    (f"{IMAGE} tile", lambda x: ttnn.permute(x, (0, 1, 2)),
     "Device: The number of dimensions in the tensor input does not"),
    (f"{IMAGE} tile", lambda x: ttnn.permute(x, (0, 0, 3, 2)),
     "Device: Invalid permutation: duplicate or out of range value"),
    (IMAGE, lambda x: ttnn.permute(x, (0, 0, 3, 2)), "NotSimulated: permute: an axis occurs twice in [0, 0, 3, 2]"),
    (IMAGE, lambda x: ttnn.permute(x, 3), "ArgumentType: permute: dims must be a sequence of integers, not 3"),
    (f"{IMAGE} tile bfloat8_b height/32x64/6", lambda x: ttnn.permute(x, (3, 2, 1, 0)),
     "Argument: permute: bfloat8_b in shards, of more than four axes, or of four bits is moved as bytes, which"),
    (IMAGE, lambda x: ttnn.transpose(x, 2, 3, memory_config={}),
     "ArgumentType: transpose: memory_config must be a MemoryConfig, not {}"),
    (IMAGE, lambda x: ttnn.transpose(5, 1, 2), "ArgumentType: transpose: input_tensor must be a Tensor, not 5"),
    (IMAGE, lambda x: ttnn.transpose(x, 1, 1, memory_config=high((96, 64), 2)),
     "Device: Clone: mixed sharded/interleaved layout not currently supported"),
    ("64 tile", lambda x: ttnn.transpose(x, 0, -1), "Device: Can't convert shape rank\n"),
    *((IMAGE, call, f"Device: Index is out of bounds for the rank, should be between 0 and 3 however is {index}\n")
      for axis, index in ((4, 4), (-5, 2**64 - 1))
      for call in (lambda x, axis=axis: ttnn.transpose(x, axis, 0), lambda x, axis=axis: ttnn.concat([x, x], axis),
                   lambda x, axis=axis: ttnn.permute(x, (0, 1, 2, axis)))),
    # pad
    (IMAGE, lambda x: ttnn.pad(x, (1.5, 1), 1.5),
     "ArgumentType: pad: padding must be pairs for at most 4 axes, not (1.5, 1)"),
    (IMAGE, lambda x: ttnn.pad(x, ((0, 1),) * 5, 0.0),
     "Device: ttnn.pad: padding len can't be larger than input tensor rank"),
    (IMAGE, lambda x: ttnn.pad(x, ((0, -1),), 0.0), "ArgumentType: pad: padding must be pairs of numbers of"),
    ("1x1x11x8", lambda x: ttnn.pad(ttnn.tilize_with_val_padding(x, [1, 1, 64, 32], 3.0), ((0, 0), (0, 1)), 0.0),
     "Device: Output size cannot fit input with offset"),
    # convert_to_hwc and convert_to_chw
    (f"{IMAGE} tile", CHW, "Device: Input tensor must be sharded to infer output memory config"),
    ("1x1x8x144 width/8x72/2", HWC, "Device: Shard height 72 must be multiple of tile width (32)"),
    ("1x1x4x128 width/4x64/2 dram", HWC,
     "Device: When input tensor is in DRAM, output memory_config must be explicitly specified"),
    ("1x1x4x128 width/4x64/2", lambda x: HWC(x, memory_config=high((64, 4), 2)),
     "Device: Output shard width must be rounded "
     "up to next multiple of 8 to satisfy alignment constraints (width was 4)"),
    ("4x128 width/4x64/2", HWC, "Device: ShapeBase[] index out of range. 2 not in [-4, 2)"),
    ("1x1x40x128 width/40x64/2", HWC, "Device: C must be less than or equal to 32 (was 40)"),
    ("1x1x32x128 tile width/32x64/2", HWC, "Device: Input tensor must be in row-major layout"),
    ("1x1x4x128 width/4x64/2", lambda x: HWC(x, memory_config=L1), "Device: Output tensor must be height sharded"),
    # The result is made first, then the channels, the layout and the shards of the tensor are looked at.
    ("1x1x4x128 width/4x64/2", lambda x: HWC(x, memory_config=L1, dtype=ttnn.bfloat8_b),
     "Device: Only TILE layout is supported for BFLOAT8_B dtype!"),
    ("1x1x40x128", lambda x: HWC(x, memory_config=L1), "Device: C must be less than or equal to 32 (was 40)"),
    ("1x1x32x128 tile", lambda x: HWC(x, memory_config=L1), "Device: Input tensor must be in row-major layout"),
    ("1x1x8x128 height/4x128/2", lambda x: HWC(x, memory_config=L1), "Device: Input tensor must be width sharded"),
    ("1x1x4x128 float32 width/4x64/2", lambda x: HWC(x, dtype=ttnn.bfloat16),
     "Device: Output shard width 4 must be multiple of 8 to satisfy alignment"),
    # The library counts the result in elements of the source
    ("1x1x16x1792 float32 width/16x224/8", lambda x: HWC(x, dtype=ttnn.bfloat16),
     "Device: Cannot set circular buffer size to 14336. This is larger than "),
    ("1x1x1x64x4 tile height/32x32/2", CHW,
     "Device: Shard height 4 must match physical height 64 for width sharded"),
    ("1x2x64x4 tile height/64x32/2", CHW, "Device: Expected input tensor to be shape [1, 1, HW, C]"),
    ("1x1x128x40 tile height/64x64/2", CHW, "Device: C must be less than or equal to 32 (was 40)"),
    ("1x1x120x4 tile height/64x32/2", CHW, "Device: HW must be divisible by tile size"),
    ("1x1x128x4 tile height/64x32/3", CHW, "Device: Mismatch between core grid and input/shard shapes"),
    ("1x1x32x4 rows height/8x4/4", CHW, "Device: Shard height must be divisible by tile size"),
    ("1x128x4 rows height/64x4/2", CHW, "Device: ShapeBase[] index out of range. 3 not in [-4, 3)"),
    ("128 rows width/1x64/2", HWC, "Device: ShapeBase[] index out of range. 1 not in [-4, 1)"),
    ("1x1x128x4 rows height/64x4/2", CHW, "Device: Cannot set circular buffer size to 4096"),
    # reshape and squeeze
    ("2x3x40x64", lambda x: ttnn.reshape(x, (7, 7)), "Device: Invalid arguments to reshape"),
    ("2x3x40x64 tile", lambda x: ttnn.reshape(x, x.padded_shape, x.padded_shape),
     "NotSimulated: reshape: a shape that shows or hides padding is not simulated"),
    ("2x3x40x64", lambda x: ttnn.reshape(x, (6, 40, 64), (6, 64, 64)), "NotSimulated: reshape: rows have no padding"),
    ("1x64x32 uint16", lambda x: ttnn.reshape(x, (1, 32, 64)),
     "Device: Can only work with bfloat16/float32 or int32/uint32 tensors\n"),
    ("1x60 width/1x24/3", lambda x: ttnn.squeeze(x, 0), "Device: "),  # vectors lose the padding of their shards
    ("1x60 tile width/32x32/2", lambda x: ttnn.squeeze(x, 0), "Device: "),
    ("1 width/1x8/1", ttnn.squeeze, "Device: Shard height 8 must match physical height 1 for width sharded"),
    ("64x64", lambda x: ttnn.squeeze(x, 1.5), "ArgumentType: squeeze: dim must be an integer, not 1.5"),
    ("1x64x64", lambda x: ttnn.unsqueeze(x, 5),
     "Device: Dimension out of range (expected to be in range of [-4,3], but got 5)"),
    # slice
    ("2x3x40x64", lambda x: ttnn.slice(x, [0, 0, 0], [1, 1, 1]),
     "Device: Input rank 4 and begins 3 must have the same size"),
    ("2x3x40x64", lambda x: x[:, :, :41], "Device: Ends 41 must be less than or equal to the shape of the tensor 40"),
    ("2x3x40x64", lambda x: x[:, :, 5:3], "Device: End 3 must be greater than or equal to start 5"),
    ("2x3x40x64", lambda x: x[:, :, ::0], "Device: Step(2) = 0 should be positive"),
    ("2x3x40x64", lambda x: ttnn.slice(x, [0] * 4, 3), "ArgumentType: slice: slice_end must be a sequence of integers"),
    ("2x3x40x64", lambda x: x.cpu()[:, :, ::2], "Device: Host tensors cannot be accessed with non-unit stride"),
    ("2x3x40x64 tile bfloat8_b", lambda x: x[..., ::2], "Device: Strided slice is not supported for BFLOAT8 tensors"),
    # Two images of seven rows in BLOCK shards: both programs refuse, and the program that makes rows comes first
    ("64 height/1x64/2", lambda x: ttnn.slice(x, [0], [10]), "Device: Shard shape must be 1D for 1D tensor!"),
    ("64 height/1x64/2", lambda x: ttnn.slice(x, [0], [50]),
     "Device: For valid non-interleaved buffers page size 100 must equal buffer size 128."),
    ("128 block/1x32/4x1", lambda x: ttnn.slice(x, [0], [36]), OTHER_WIDTH),
    ("50 height/1x50/1 dram", lambda x: x[:37], borrowing("sharded_in", "input")),
    ("128 width/1x32/4", lambda x: ttnn.slice(x, [0], [16]),
     "Device: Shard height 2 must match physical height 1 for width sharded"),
    ("64x2 tile", lambda x: ttnn.slice(x, [10, 0], [20, 2], memory_config=high((64, 32), 1)),
     "Device: Input row-major shard width 2 gives page size 4 bytes, which must be"),
    ("32x32 tile", lambda x: ttnn.concat([x, x], groups=-1), "ArgumentType: ttnn.concat(): incompatible function"),
    ("1x1x8x64", lambda x: ttnn.experimental.convert_to_hwc(x, memory_config=DRAM),
     "Device: Input tensor must be sharded\n"),
    # upsample
    ("2x3x20x64 tile", lambda x: ttnn.upsample(x, 2), "Device: Tiled input must be tile-aligned"),
    ("2x3x32x16 tile float32", lambda x: ttnn.upsample(x, 2), "Device: Tiled input must be tile-aligned"),
    ("1x1x32x32 tile float32", lambda x: ttnn.upsample(x, (2, 1)),
     "Argument: upsample: tiles of float32 come out cut to bfloat16"),
    (f"{IMAGE} tile", lambda x: ttnn.upsample(x, 1.5), "Device: Unsupported upsample configuration:"),
    (f"{IMAGE} height/96x64/2", lambda x: ttnn.upsample(x, 2, memory_config=DRAM), "Device: bad optional access"),
    (IMAGE, lambda x: ttnn.upsample(x, 2, memory_config=high((96, 64), 2)),
     "Device: Output memory config is sharded but input memory config is not"),
    # which comes before the mode, the factors and the rank
    (IMAGE, lambda x: ttnn.upsample(x, 0, mode="cubic", memory_config=high((96, 64), 2)),
     "Device: Output memory config is sharded but input memory config is not"),
    ("1x2x3x20x64", lambda x: ttnn.upsample(x, 2, memory_config=high((96, 64), 2)),
     "Device: Output memory config is sharded but input memory config is not"),
    ("1x2x3x20x64", lambda x: ttnn.upsample(x, 0), "Device: scale_factor_h must be positive, got 0"),
    (IMAGE, lambda x: ttnn.upsample(x, (1, 0)), "Device: scale_factor_w must be positive, got 0"),
    (IMAGE, lambda x: ttnn.upsample(x, (float("inf"), 2)), "Argument: upsample: scale_factor inf by 2 makes sides of"),
    (f"{IMAGE} height/64x64/3", lambda x: ttnn.upsample(x, 2, **BILINEAR, memory_config=DRAM),
     "Device: bad optional access"),
    ("1x32x8x64 tile height/32x64/32", lambda x: ttnn.upsample(x, 2, **BILINEAR),
     "Argument: upsample: the real library takes the padding of tiles of [1, 32, 8, 64] for pixels"),
    ("1x32x32x64 height/32x64/32", lambda x: ttnn.upsample(
        x, 2, **BILINEAR, compute_kernel_config=ttnn.WormholeComputeKernelConfig(fp32_dest_acc_en=True)),
     "Device: fp32_dest_acc_en as true not supported for upsample bilinear"),
    (IMAGE, lambda x: ttnn.upsample(x, 2, mode="cubic"), "Device: mode must be 'nearest' or 'bilinear'"),
    (IMAGE, lambda x: ttnn.upsample(x, (1, 2, 3)),
     "ArgumentType: upsample: scale_factor must be a number or two of them"),
    ("3x32x64", lambda x: ttnn.upsample(x, 2), "Device: ShapeBase[] index out of range. 3 not in [-4, 3)"),
    # 72 padded channels on 2 columns of cores are 72 bytes a stick, 80 aligned; shards of 24 channels have 48
    ("1x2x32x64", lambda x: ttnn.upsample(ttnn.to_memory_config(x, in_box(BLOCK, (32, 24), 2, 3, COLUMNS)), 2),
     "Device: DFB 'upsample_shard_in' (entry_size 80 * num_entries 32 = 2560 bytes)"),
    (f"{IMAGE} block/64x24/3x3", lambda x: ttnn.upsample(x, 2, memory_config=L1),
     "Device: Input and output sticks should have same size"),
    ("1x8x8x32", lambda x: ttnn.upsample(x, 1.5, **BILINEAR), "Device: bilinear mode requires integer scale factors"),
    ("1x8x8x32 tile", lambda x: ttnn.upsample(x, 2, **BILINEAR), "Device: Physical shard shape (1, 32) must be tile"),
    ("1x8x8x40 float32", lambda x: ttnn.upsample(x, 2, **BILINEAR),
     "Device: Bilinear upsample requires BFLOAT16 input"),
    ("1x8x8x40", lambda x: ttnn.upsample(x, 2, **BILINEAR), "Device: input channels should be divisible by 32"),
    ("1x8x8x128 float32 width/64x24/6", lambda x: ttnn.upsample(x, 2, **BILINEAR), OTHER_WIDTH),
    ("1x8x8x32 float32", lambda x: ttnn.upsample(
        ttnn.to_memory_config(x, in_box(HEIGHT, (16, 32), 2, 2, COLUMNS)), 2, **BILINEAR),
     "Device: Sliding-window shard grid core 1 is 0-1 but the origin-anchored row walk addresses it as 1-0"),
    # rotate
    ("1x8x8x64 tile", lambda x: ttnn.rotate(x, 30.0), "Device: Input tensor must be in ROW_MAJOR layout"),
    ("1x8x8x64", lambda x: ttnn.rotate(x, 30.0, expand=True), "Device: expand=True is not supported."),
    ("1x8x8x64 tile", lambda x: ttnn.rotate(x, 30.0, memory_config=in_box(HEIGHT, (8, 64), 1, 9)),
     "Device: Invalid shard grid: shard core (0, 8) has no L1 bank on this device, which has 64 of them."),
    ("1x8x8x64 tile", lambda x: ttnn.rotate(x, 30.0, memory_config=ttnn.L1_BLOCK_SHARDED_MEMORY_CONFIG),
     "Device: MemoryConfig must have Shard Spec specified for sharded memory layout"),
    ("1x8x8x64", lambda x: ttnn.rotate(x, 30.0, interpolation_mode="cubic"),
     "Device: Only 'nearest' and 'bilinear' interpolation_mode are supported, got 'cubic'"),
    ("1x8x8x64 block/8x32/2x8", lambda x: ttnn.rotate(x, 30.0),
     "Device: Only height sharding is supported for rotate operation. Got memory layout 4"),
    ("1x8x8x320", lambda x: ttnn.rotate(x, 30.0, interpolation_mode="bilinear"), "Device: Wide reduction"),
    ("1x8x8x64 float32", lambda x: ttnn.rotate(x, 30.0, fill=1.0), "Argument: rotate: the real library fills float32"),
    ("1x8x8x64 height/8x64/8", lambda x: ttnn.rotate(x, 30.0, memory_config=DRAM),
     "Device: Only L1 buffers can have an associated circular buffer!"),
    # Layouts and places
    ("64x64", lambda x: ttnn.tilize_with_val_padding(x, [32, 64], 0.0),
     "Device: Output tensor shape Shape([32, 64]) must be greater than or equal to input shape Shape"),
    ("60", lambda x: ttnn.tilize_with_val_padding(x, [64, 32], 0.0),
     "Device: Output tensor shape Shape([64, 32]) must be "),
    ("50x60", lambda x: ttnn.tilize_with_val_padding(x, [64, 60], 0.0),
     "Device: To be tilizable output tensor shape Shape([64, 60]) must be divisible by tile size"),
    ("2x50x60", lambda x: ttnn.tilize_with_val_padding(x, [64, 64], 0.0),
     "Device: ShapeBase[] index out of range. 2 not in [-4, 2)"),
    ("64", ttnn.tilize, "Device: Input tensor height (1) must be divisible by tile height (32)"),
    ("64 width/1x32/2", lambda x: ttnn.tilize(x, memory_config=L1, use_multicore=False),
     "Device: Input tensor height (1)"),
    ("64x64", ttnn.untilize, "Device: Can only untilize tile major data"),
    ("1x1x64x64", lambda x: ttnn.untilize_with_unpadding(x, [0, 0, 9, 9]), "Device: Can only untilize tile major data"),
    ("64x64 tile", lambda x: ttnn.untilize_with_unpadding(x, 9),
     "ArgumentType: output_tensor_end must be a sequence of integers, not 9"),
    ("64x64 tile", ttnn.tilize, "Device: Can only tilize row major data"),
    ("64x64 tile", lambda x: ttnn.to_memory_config(x, high((16, 64), 4)),
     "Device: Physical shard shape (16, 64) must be tile"),
    *(("64x64 tile", lambda x, call=call: call(x, memory_config=ttnn.L1_BLOCK_SHARDED_MEMORY_CONFIG),
       "Device: bad optional access")
      for call in (ttnn.clone, partial(ttnn.typecast, dtype=ttnn.float32),
                   partial(ttnn.to_layout, layout=ttnn.ROW_MAJOR_LAYOUT))),
    ("64x64", lambda x: ttnn.clone(x, memory_config=ttnn.L1_BLOCK_SHARDED_MEMORY_CONFIG),
     "Device: MemoryConfig must have Shard Spec specified"),
    ("64x64 tile", lambda x: ttnn.typecast(x, ttnn.float32, memory_config=high((32, 64), 2)),
     "Device: Typecast operation requires Input and Output memory layout to match"),
    ("64x32 tile", lambda x: ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT, sub_core_grids=GRID),
     "Device: sub_core_grid untilize only supports tensors one tile row tall, got height 64 with tile height 32"),
    ("60x32 tile height/32x32/2", lambda x: ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT, sub_core_grids=GRID),
     "Device: Sharded untilize does not support sub core grid specification"),
    ("32x32", lambda x: ttnn.tilize(x, sub_core_grids=ttnn.CoreRangeSet([])),
     "Device: vector::_M_range_check: __n (which is 0) >= this->size() (which is 0)"),
    # 52 tiles across and ten down are cut into blocks of a tile, which one core does not hold
    ("300x1640", lambda x: ttnn.tilize_with_zero_padding(x, sub_core_grids=GRID),
     "Device: vector::_M_range_check: __n (which is 1) >= this->size() (which is 1)"),
    ("64x64", lambda x: ttnn.to_layout(x, ttnn.TILE_LAYOUT, memory_config=ttnn.L1_BLOCK_SHARDED_MEMORY_CONFIG),
     "Device: bad optional access"),
    # the place of rows must have whole tiles, but they need not hold the padding of the tiles
    ("4x8x96 tile", lambda x: ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT, memory_config=high((30, 96), 2)),
     "Device: Physical shard shape (30, 96) must be tile {32, 32} sized!"),
    ("4x8x96 float32 tile",
     lambda x: ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT, ttnn.bfloat16, memory_config=high((32, 96), 1)),
     "Device: dtype cannot be different from tensor dtype"),
    ("64 height/1x64/1", lambda x: ttnn.to_layout(x, ttnn.TILE_LAYOUT, memory_config=L1),
     "Device: ttnn::to_layout: Cannot convert a sharded device tensor with rank 1 to TILE_LAYOUT."),
    ("1x4x4x7x33 tile width/512x32/2", lambda x: ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT),
     f"{OTHER_WIDTH} unless the shard width matches the input last dimension. Input shape: Shape([4, 4, 7, 64]), New"),
    ("1x4x4x7x33 tile width/512x64/1", lambda x: ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT),
     "Device: Shard height 217 must match physical height 112 for width sharded"),
    ("32x32", lambda x: ttnn.tilize(x, memory_config=ttnn.L1_BLOCK_SHARDED_MEMORY_CONFIG),
     "Device: bad optional access"),
    ("32x32", lambda x: ttnn.untilize(x, memory_config=ttnn.L1_BLOCK_SHARDED_MEMORY_CONFIG),
     "Device: MemoryConfig must have Shard Spec specified"),
    ("64x32 tile", lambda x: ttnn.untilize_with_unpadding(x, [63]),
     "Device: ShapeBase[] index out of range. 1 not in [-4, 1)"),
    ("64x32 tile", lambda x: ttnn.untilize_with_unpadding(x, [63, 31], memory_config=BARE),
     "Device: bad optional access"),
    ("1x1x4x64x32 tile", lambda x: ttnn.untilize_with_unpadding(x, [0, 0, 3, 63, 31, 1]),
     "Device: Attempting to reshape between two shapes with different volumes"),
    ("1x3x4x64x96 tile width/768x32/3", lambda x: ttnn.untilize_with_unpadding(x, [0, 1, 3, 63, 95]),
     "Device: Input tensor padded shape[0] (3) must equal output shape[0] (2)"),
    ("96x160 tile width/96x32/5", lambda x: ttnn.untilize_with_unpadding(x, [95, 160], memory_config=L1),
     "Device: Input tensor width difference (4294967295) must be less than shard width (32)"),
    ("96x160 tile", lambda x: ttnn.untilize_with_unpadding(x, [95, 160]),
     "NotSimulated: untilize_with_unpadding: ttsim does not simulate what lies behind [96, 160]"),
    ("60x32 uint8", lambda x: ttnn.tilize_with_val_padding(x, [30, 30], 0), "Device: Can only tilize bfloat16/float32"),
    ("2x1x3x60x32", lambda x: ttnn.tilize_with_val_padding(x, [2, 1, 2, 64, 32], 0),
     "Device: Output tensor shape Shape([2, 2, 64, 32]) must be greater than or equal to input shape Shape([2, 3, 60"),
    ("32x32", lambda x: ttnn.to_layout(x.cpu(), ttnn.TILE_LAYOUT, dtype="x"),
     "ArgumentType: ttnn.to_layout(): incompatible"),
    ("64x64 tile height/32x64/2", lambda x: ttnn.interleaved_to_sharded(x, high((64, 64), 1)),
     "Device: Input tensor memory layout must be INTERLEAVED, but got TensorMemoryLayout::HEIGHT_SHARDED"),
    *((f"64x64 {layout}", lambda x, change=change: change(x, ttnn.L1_BLOCK_SHARDED_MEMORY_CONFIG), text)
      for layout, text in (("tile", "Device: bad optional access"), ("rows", "Device: MemoryConfig must have"))
      for change in (ttnn.interleaved_to_sharded, ttnn.reshard)),
    ("64x64", lambda x: ttnn.interleaved_to_sharded(x, L1), "Device: Output memory config must be sharded"),
    ("64x64 tile height/32x64/2", lambda x: ttnn.sharded_to_interleaved(x, high((64, 64), 1)),
     "Device: Output memory config must be Interleaved"),
    ("64x64", lambda x: ttnn.to_memory_config(x, ttnn.L1_BLOCK_SHARDED_MEMORY_CONFIG), "Device: bad optional access"),
    ("64x64", lambda x: ttnn.to_memory_config(x, ttnn.L1_BLOCK_SHARDED_MEMORY_CONFIG, ttnn.float32),
     "Device: MemoryConfig must have Shard Spec specified"),
    ("64x64 tile", lambda x: ttnn.to_memory_config(x, in_dram(in_box(BLOCK, (16, 16), 2, 2))),
     "Device: We don't support DRAM block sharding"),
    ("1x1x32x64 tile width/32x32/2 dram + 1x1x64x64 tile",
     lambda x, y: ttnn.sharded_to_interleaved_partial(x, y, 2, 1),
     "Device: Only L1 buffers can have an associated circular buffer!"),
    *(("2x64x96 tile", lambda x, shape=shape: ttnn.untilize(x, memory_config=wide(shape, 8), use_multicore=False), text)
      for shape, text in (
          ((128, 24), "Device: Output shard width 24 must be a multiple of tile width 32 for single core"),
          ((128, 64), "Device: Uneven output shard width 64 for tensor width 96 not supported for single core"))),
    ("64x64 tile", lambda x: ttnn.reshard(x, high((32, 64), 2)), "Device: input must be sharded"),
    ("64x64 tile height/32x64/2", lambda x: ttnn.reshard(x, L1), "Device: output must be sharded"),
    ("50x96 tile width/64x32/3 + 1x96 tile width/32x32/3", lambda x, y: ttnn.reshard(x, L1, output_tensor=y),
     "Device: Input tensor logical shape (Shape([50, 96])) must equal output tensor logical shape (Shape([1, 96]))"),
    ("64x64 tile height/32x64/2 + 64x64 float32 tile height/64x64/1",
     lambda x, y: ttnn.reshard(x, L1, output_tensor=y),
     "Device: Input tensor dtype (DataType::BFLOAT16) must equal output tensor dtype (DataType::FLOAT32)"),
    # 40 columns in shards of 16 go to shards of 24, of two columns of cores that a grid of four has
    *(("1x1x64x40 block/32x16/3x2", lambda x, change=change: change(x, in_box(BLOCK, (32, 24), 4, 2)),
       "Argument: reshard: rows of 40 do not fill their shards") for change in (ttnn.reshard, ttnn.to_memory_config)),
    ("64x32 rows + 64x32 rows", lambda *x: ttnn.concat(x, 0, memory_config=place("block/128x32/1x1 dram")),
     "Device: We don't support DRAM block sharding"),
    # what differs from the tensor comes before shards that do not hold it, and before a format that has no rows
    ("1x2x64x32 + 1x1x64x32", lambda x, y: ttnn.to_memory_config(x, wide((64, 8), 4), output_tensor=y),
     "Device: Input tensor shape Shape([1, 2, 64, 32]) does not match output tensor shape Shape([1, 1, 64, 32])"),
    ("64x32 + 64x32 height/32x32/2",
     lambda x, y: ttnn.to_memory_config(x, L1, dtype=ttnn.bfloat4_b, output_tensor=y),
     "Device: Mismatched output memory config."),
    # a target that cannot be dealt into is copied to, which looks at the memory; BLOCK shards in DRAM come first
    ("2x31 rows width/2x16/2 + 2x31 rows width/2x1/32",
     lambda x, y: ttnn.to_memory_config(x, wide((2, 8), 4), output_tensor=y),
     "Device: Mismatched output memory config. Check"),
    ("64x32 tile + 64x32 tile height/32x32/2",
     lambda x, y: ttnn.to_memory_config(x, place("block/64x32/1x1 dram"), output_tensor=y),
     "Device: We don't support DRAM block sharding"),
    ("1x1x2x24x32 width/48x8/4", lambda x: ttnn.experimental.convert_to_hwc(x),
     "Device: Input shape must be rank 4 (was rank 5)"),
    # rows of 48 bytes, in DRAM, which aligns 32
    ("50x72 float32 width/50x12/6 dram", lambda x: ttnn.tilize_with_zero_padding(x, memory_config=L1),
     "Device: Input row-major shard width 12 gives page size 48 bytes, which must be aligned to 16 bytes L1 SRAM"),
    ("8x12 height/4x12/2", lambda x: ttnn.reshard(x, high((8, 32), 1)),
     "Argument: reshard: rows of 12 do not fill their shards of 12 and 32 columns"),
    ("1x1x64x44 block/32x20/3x2", lambda x: ttnn.reshard(x, in_box(BLOCK, (32, 24), 4, 2)),  # first what ttnn refuses
     "Device: Input row-major shard width 20 with data type DataType::BFLOAT16"),
    ("64x8 width/64x8/1 dram", lambda x: ttnn.reshard(x, high((32, 8), 2)),  # rows of 16 bytes, 32 of which DRAM aligns
     "Device: Input row-major shard width 8 with data type DataType::BFLOAT16 gives page size 16 bytes, which must be "
     "aligned to 16 bytes for reshard"),
    ("64x24 width/64x16/2 dram", lambda x: ttnn.reshard(x, in_dram(wide((64, 8), 3))),
     "Device: Number of input (128) and output (192) pages must match"),
    ("64x12 width/64x12/1 dram", lambda x: ttnn.reshard(x, in_dram(wide((64, 16), 1))),
     "Device: Input and output tensors must have the same page size. Input page size: 24, Output page size: 32"),
    ("96x64 height/32x64/24", lambda x: ttnn.typecast(x, ttnn.bfloat16, memory_config=high((32, 64), 8)),
     "Device: Output tensor should have same number of cores 8 as input tensor 24"),
    *((f"2x1x1x160x190 {shards}", change, text)
      for shards, text in (("block/64x32/6x5", OTHER_WIDTH),
                           ("height/64x192/5", "Device: For valid non-interleaved buffers page size 380 must"))
      for change in (ttnn.tilize_with_zero_padding, lambda x: ttnn.to_layout(x, ttnn.TILE_LAYOUT))),
    ("2x50x60 tile height/32x64/4", ttnn.untilize,
     "Argument: untilize: images of 50 rows are padded to 64 in the shards"),
    ("1x1x2x64x60 tile", ttnn.untilize, "Device: MeshBuffer must be large enough to hold the tensor."),
    ("1x1x1x64x96 tile block/32x64/2x2", ttnn.untilize, OTHER_WIDTH),
    ("50 tile height/32x64/1", ttnn.untilize, "Device: Shard shape must be 1D for 1D tensor!"),
    ("50 tile bfloat4_b height/32x64/1", ttnn.untilize,
     "Device: Only TILE layout is supported for BFLOAT8_B dtype!"),
    ("32 tile height/64x32/1", lambda x: ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT),
     "Device: Shard shape must be 1D for 1D"),
    ("50 tile height/32x64/1 bfloat4_b", ttnn.untilize, "Device: Only TILE layout is supported for BFLOAT8_B dtype!"),
    ("50 tile width/32x32/2 bfloat4_b", ttnn.untilize,
     "Device: Shard height 32 must match physical height 1 for width sharded"),
    ("50 tile height/32x64/1 bfloat4_b", lambda x: ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT),
     "Device: Only TILE layout is supported for BFLOAT8_B dtype!"),
    # Sharded images in tiles whose rows a reshape deals anew
    ("1x5x5x32 tile height/32x32/8", convolved,
     "Device: Shard height 47 must match physical height 376 for width sharded"),
    ("1x5x15x32 tile block/32x32/1x5", convolved,
     "Device: Number of shards along height 5 must not exceed number of rows 3 for row major orientation!"),
    ("2x1x32x192 tile width/64x32/3x2", lambda x: convolved(x, 1),
     "Device: MatmulMultiCoreReuseMultiCastProgramConfig: Num output blocks along x (6) must be smaller than or "),
    ("1x5x15x32 tile", lambda x: convolved(ttnn.to_memory_config(x, NO_RECTANGLE)), "Device: bad optional access\n"),
    # Elements
    ("1x1x32x32 tile + 1x1x32x64 tile", ttnn.add, "Device: Invalid subtile broadcast type\n"),
    ("1x1x32x50 tile + 1x1x32x51 tile", ttnn.add, "Device: Invalid subtile broadcast type\n"),
    ("1x1x32x50 tile + 1x1x1x51 tile", ttnn.add, "Device: Broadcasting rule violation at dimension index -1"),
    ("32x32 tile", lambda x: ttnn.add(x.cpu(), x), "Device: Input tensor A must be on device, got storage type"),
    ("32x32 tile", lambda x: ttnn.add(x, x.cpu()), "Device: Input tensor B must be on device, got storage type"),
    ("32x32 tile", lambda x: ttnn.add(x, x, output_tensor=x.cpu()), "Device: Input tensor output must be on device"),
    ("32x32 tile", lambda x: ttnn.add(x, x, speed=1),
     "ArgumentType: ttnn.add(): incompatible function arguments.\nadd: there"),
    ("32x32 tile", lambda x: ttnn.relu(x, speed=1),
     "ArgumentType: ttnn.relu(): incompatible function arguments.\nrelu: there is no 'speed'"),
    ("32x32 tile", lambda x: ttnn.add(x, x, use_legacy=True),
     "ArgumentType: ttnn.add(): incompatible function arguments.\nadd: there is no 'use_legacy' in release 0.81.1"),
    ("32x32 tile", lambda x: ttnn.div(x, x, use_legacy=None),
     "ArgumentType: ttnn.div(): incompatible function arguments.\ndiv: there is no 'use_legacy' in release 0.81.1"),
    ("32x32 tile", lambda x: ttnn.add_(x, x, sub_device_id=1), "NotSimulated: add_: sub_device_id is not simulated"),
    ("32x32 tile", lambda x: ttnn.add(x, "1"), "ArgumentType: ttnn.add(): incompatible function arguments.\n"
     "add: input_tensor_b must be a Tensor or a number, not '1'"),
    ("32x32 tile", lambda x: ttnn.sub(2.0, 3.0), "ArgumentType: ttnn.subtract(): incompatible function arguments.\n"
     "subtract: input_tensor_a must be a Tensor, not 2.0"),
    ("32x32 tile", lambda x: ttnn.add(x, 1, activations="rely"), "Argument: add: there is no activation 'rely'"),
    ("1x1x1x32 tile + 1x1x32x32 tile", ttnn.add_,
     "Device: Shape of Output tensor Shape([1, 1, 1, 32]) provided does not"),
    ("32x32 rows + 32x32 tile", ttnn.add_,
     "Argument: add_: the result goes into a tensor in rows, and the real library"),
    ("32x32 tile int32", ttnn.exp, "Device: Unary: UnaryOpType::EXP does not support integer input dtype"),
    ("32x32 tile", lambda x: ttnn.sigmoid(x, mode=ttnn.SigmoidMode.FastApproximate),
     "NotSimulated: sigmoid: mode=FastApproximate has no numbers here"),
    ("32x32 rows", lambda x: ttnn.sigmoid(x, vector_mode=2), "NotSimulated: sigmoid: vector_mode=2 of rows has no"),
    ("32x32 tile", lambda x: ttnn.sigmoid(x, vector_mode=-1), "Device: Invalid Vector mode value. Expected vector "
     "mode C (2) or RC (4) for sigmoid\n"),
    ("32x32 tile", lambda x: ttnn.gelu(x, variant=ttnn.GeluVariant.FastLut), "NotSimulated: gelu: variant=FastLut has"),
    ("32x32 tile", lambda x: ttnn.gelu(x, variant=ttnn.GeluVariant.Tanh, fast_and_approximate_mode=True),
     "ArgumentType: ttnn.gelu(): incompatible function arguments.\n"),
    ("32x32 tile", lambda x: ttnn.elu(x, 1.0), "ArgumentType: ttnn.elu(): incompatible function arguments.\n"
     "elu: 1 by position are too many"),
    ("32x32 tile int32", lambda x: ttnn.polygamma(x, 12),
     "Device: polygamma order must be in range [1, 11], got 12\n"),
    ("32x32 tile", lambda x: ttnn.polygamma(x, 0), "Device: polygamma order must be in range [1, 11], got 0\n"),
    ("32x32 tile", lambda x: ttnn.polygamma(x, 2, output_tensor=x),
     "ArgumentType: ttnn.polygamma(): incompatible function arguments."),
    ("32x32 tile", lambda x: ttnn.elu(x, alpha="x"), "ArgumentType: ttnn.elu(): incompatible function arguments.\n"
     "elu: alpha must be a number, not 'x'"),
    ("64 height/1x64/2", ttnn.relu, "Device: Rank must be at least 2\n"),
    ("64 int32 height/1x64/2", ttnn.hardswish, "Device: Unary: UnaryOpType::HARDSWISH does not support integer input"),
    # tensors of too few axes
    ("32 + 1x32", lambda x, y: ttnn.bcast(x, y, ttnn.BcastOpMath.MUL, ttnn.BcastOpDim.H),
     "Device: To be tilizable output tensor shape Shape([32]) must be divisible by tile size (32, 32)\n"),
    ("7 + 1x32", lambda x, y: ttnn.bcast(x, y, ttnn.BcastOpMath.MUL, ttnn.BcastOpDim.H),
     "Device: Input tensor A width (7) must equal input tensor B width (32) for height broadcast"),
    ("32x32 tile + 32 tile", lambda x, y: ttnn.addmm(x, x, y),
     "Argument: ShapeBase[] index out of range. 1 not in [-4, 1)\naddmm: "),
    ("32x32 tile + 32 tile", lambda x, y: ttnn.addmm(y, x, x),
     "Argument: ShapeBase[] index out of range. 1 not in [-4, 1)\naddmm: "),
    # more heads than columns
    ("1x1x32x32 tile", lambda x: ttnn.experimental.nlp_create_qkv_heads(x, num_heads=31, num_kv_heads=1),
     "Device: num_q_heads (31) + 2 * num_kv_heads (1) exceeds the fused width (32)"),
    ("1x1x32x32 tile + 1x1x32x32 tile",
     lambda x, y: ttnn.experimental.nlp_create_qkv_heads(x, y, num_heads=40, num_kv_heads=2),
     "Device: num_q_heads (40) exceeds the Q width (32)"),
    ("1x1x32x32 tile + 1x1x32x32 tile",
     lambda x, y: ttnn.experimental.nlp_create_qkv_heads(x, y, num_heads=1, num_kv_heads=40),
     "Device: 2 * num_kv_heads (40) exceeds the KV width (32)"),
    # a result that is written is looked at before formats and sides, and a result's shards before formats
    ("192 tile + 64x32 tile", ttnn.eq_, "Device: Shape of Output tensor Shape([192]) provided does not match the "
     "broadcasted output shape Shape([64, 192])"),
    ("1x32 tile + 4x2x32 tile float32", ttnn.logical_or_, "Device: Shape of Output tensor Shape([1, 32]) provided does "
     "not match the broadcasted output shape Shape([4, 2, 32])"),
    ("2x32 tile int32", lambda x: ttnn.celu(x, memory_config=place("height/1x8/2")),
     "Device: Physical shard shape (1, 8) must be tile {32, 32} sized!"),
    ("2x32x32 tile + 1x1x32 tile bfloat8_b", lambda x, y: ttnn.lerp(x, y, 0.5),
     "Device: Expected the same dtype as start (input), for end\n"),
    ("32x32 tile + 32x32 tile bfloat8_b", ttnn.bias_gelu,
     "Device: Mixed dtype is not supported for binary operation BinaryOpType::BIAS_GELU, dtype A: "),
    ("32x32 tile + 32x32 tile bfloat8_b", lambda x, y: ttnn.isclose(x, y, rtol=-1.0),
     "Device: Mixed dtype is not supported for binary operation BinaryOpType::ISCLOSE"),
    ("32x32 tile + 32x32 tile", lambda x, y: ttnn.isclose(x, y, rtol=-1.0),
     "Device: isclose: rtol must be a finite, non-negative value, got -1\n"),
    ("32x32 tile + 32x32 tile bfloat8_b", ttnn.isclose,
     "Device: Mixed dtype is not supported for binary operation BinaryOpType::ISCLOSE, dtype A: DataType::BFLOAT16, "),
    ("32x32 tile + 32x32 tile", lambda x, y: ttnn.mac(x, 2.0, x, output_tensor=y),
     "ArgumentType: ttnn.mac(): incompatible function arguments."),
    ("64x32 tile + 64x32 tile float32 height/32x32/2",
     lambda x, y: ttnn.maximum(x, 2.0, dtype=ttnn.float32, output_tensor=y),
     "Device: Typecast operation requires Input and Output memory layout to match."),
    ("32x32 tile uint32", lambda x: ttnn.add(x, -1.0),
     "Device: Binary operation BinaryOpType::ADD with a DataType::UINT32 tensor cannot represent the scalar -1: "),
    ("32x32 tile uint16", lambda x: ttnn.add(x, -1), "NotSimulated: add: -1 with a tensor of uint16 is not simulated"),
    ("64x32 tile + 32x64 tile", lambda x, y: ttnn.cumsum(x, 0, out=y),
     "Device: Shape mismatch: input tensor shape Shape([64, 32]) does not match output tensor shape "),
    ("64x32 tile + 32x64 tile", lambda x, y: ttnn.cumsum(x, 7, out=y), "Device: Shape mismatch: input tensor shape "),
    ("64x32 tile + 32x64 tile", lambda x, y: ttnn.cumprod(x, 7, out=y.cpu()),
     "Device: Preallocated output tensor must be on device\n"),
    ("64x32 tile + 64x32 tile float32", lambda x, y: ttnn.cumprod(x, 0, out=y),
     "Argument: cumprod: out is float32 in TILE, and the real library leaves it so while "),
    # a tensor that receives the result
    ("64x64 tile + 64x32 tile", lambda x, y: ttnn.add(x, x, dtype=ttnn.float32, output_tensor=y),
     "Device: If both output dtype and output tensor are provided, their dtypes should match\n"),
    ("64x64 tile + 64x64 tile", lambda x, y: ttnn.maximum(x, 2.0, dtype=ttnn.float32, output_tensor=y),
     "Device: If both output dtype and output tensor are provided, their dtypes should match\n"),
    ("64x64 tile int32 + 64x32", lambda x, y: ttnn.exp(x, output_tensor=y),
     "Device: Preallocated output dtype DataType::BFLOAT16 is not compatible with input dtype DataType::INT32. "),
    ("64x64 tile + 64x32", lambda x, y: ttnn.exp(x, output_tensor=y),
     "Device: Unary: Preallocated output shape must match computed shape. Computed: Shape([64, 64]), "),
    ("64x64 tile + 64x64", lambda x, y: ttnn.exp(x, output_tensor=y),
     "Device: Unary: Output format (tile/row-major) must match input when preallocated. Output: 0, Input: 1\n"),
    ("64x64 tile + 64x32", lambda x, y: ttnn.typecast(x, ttnn.int32, output_tensor=y),
     "Device: If both output dtype and output tensor provided dtype should match\n"),
    ("64x64 tile + 64x32", lambda x, y: ttnn.typecast(x, ttnn.bfloat16, output_tensor=y),
     "Device: Typecast operation requires input and preallocated output logical shapes to match. Input shape: Shape("
     "[64, 64]), Preallocated output shape: Shape([64, 32])\n"),
    ("64x64 tile + 64x64", lambda x, y: ttnn.typecast(x, ttnn.bfloat16, output_tensor=y),
     "Device: Typecast operation requires input and output layouts to match. Input layout: Layout::TILE, Output "),
    ("64x64 tile + 64x32", lambda x, y: ttnn.to_memory_config(x, ttnn.L1_MEMORY_CONFIG, output_tensor=y),
     "Device: Input tensor shape Shape([64, 64]) does not match output tensor shape Shape([64, 32])\n"),
    ("64x64 tile + 64x64", lambda x, y: ttnn.to_memory_config(x, ttnn.L1_MEMORY_CONFIG, output_tensor=y),
     "Device: Input tensor layout (Layout::TILE) must equal output tensor layout (Layout::ROW_MAJOR)\n"),
    ("64x64 tile + 64x64 tile float32", lambda x, y: ttnn.to_memory_config(x, ttnn.L1_MEMORY_CONFIG, output_tensor=y),
     "Device: Mismatched output memory config. "),
    ("64x64 tile + 64x64 tile float32",
     lambda x, y: ttnn.to_memory_config(x, ttnn.DRAM_MEMORY_CONFIG, output_tensor=y),
     "Device: Mismatched output dtype\n"),
    ("64x64", lambda x: ttnn.typecast(x, ttnn.float32, sub_core_grids=ttnn.CoreGrid(x=2, y=1).core_range_set()),
     "Device: Typecast operation does not support sub_core_grids when input tensor is in Row-Major layout.\n"),
    ("64x64", lambda x: ttnn.typecast(x, ttnn.bfloat8_b, sub_core_grids=GRID), "Device: Only TILE layout is supported"),
    # with functions of operands or of the result a number is a second operand
    ("64x64 tile", lambda x: ttnn.bitwise_and(x, 2, activations=["relu"]),
     "Device: Input tensor A dtype DataType::BFLOAT16 is not supported for binary operation BinaryOpType::BITWISE_"),
    # only sums in bfloat16 have an exact mode
    ("64x64 tile + 64x64 tile", lambda x, y: ttnn.add(x, y, fast_and_approximate_mode=False, dtype=ttnn.float32),
     "Device: fast_and_approximate_mode=false is only supported for a BFLOAT16 output on binary operation BinaryOp"),
    ("64x64 tile float32", lambda x: ttnn.rsub_(x, 2.0, fast_and_approximate_mode=False),
     "Device: fast_and_approximate_mode=false is only supported for a BFLOAT16 output on binary operation BinaryOp"),
    # ttnn's own names of operands
    ("64x64 tile", lambda x: ttnn.eq_(x, input_tensor_b=2.0), "ArgumentType: ttnn.eq_(): incompatible"),
    ("64x64 tile", lambda x: ttnn.multiply_(x, input_tensor_b=2.0), "ArgumentType: ttnn.multiply_(): incompatible"),
    ("64x64 tile", lambda x: ttnn.unary_chain(x, []), "Device: Op chain cannot be empty\n"),
    ("64x64 tile", lambda x: ttnn.unary_chain(x, ["relu"]), "ArgumentType: ttnn.unary_chain(): incompatible function"),
    ("64x64 tile", lambda x: ttnn.unary_chain(x, [ttnn.UnaryOpType.RELU, ttnn.UnaryOpType.IDENTITY]),
     "Device: Unary: UnaryOpType::IDENTITY uses a dedicated compute kernel and must be the only op in the chain "),
    ("64x64 tile", lambda x: ttnn.unary_chain(x, [ttnn.UnaryWithParam(ttnn.UnaryOpType.RELU, 1.0)]),
     "Device: operator should support at least one parameter but op_type UnaryOpType::RELU does not\n"),
    ("64x64 tile int32", lambda x: ttnn.unary_chain(x, [ttnn.UnaryOpType.ABS]),
     "Device: Unary: UnaryOpType::ABS does not support integer input dtype DataType::INT32\n"),
    ("64x64 tile", lambda x: ttnn.bitcast(x, ttnn.float32), "NotSimulated: bitcast: elements of bfloat16"),
    ("64x64 tile", lambda x: ttnn.bitcast(x, ttnn.float32, output_tensor=x),
     "Device: If both output dtype and output tensor provided dtype should match\n"),
    ("64x64 tile", lambda x: ttnn.polyval(x, []), "Device: polyval requires at least one coefficient\n"),
    ("64x64 tile int32", lambda x: ttnn.mean(x, 7), "Device: ttnn.mean does not support integer inputs"),
    ("64x64 tile", lambda x: ttnn.hardtanh(x, max_val=None), "ArgumentType: ttnn.hardtanh(): incompatible"),
    ("64x64 rows int32", lambda x: ttnn.pow(x, 2, memory_config=ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG),
     "Device: bad optional access\n"),
    ("64x64 tile", lambda x: ttnn.add_(x, input_b=2.0), "ArgumentType: ttnn.add_(): incompatible"),
    # cores that a call may use
    ("64x64 tile block/32x32/2x2", lambda x: ttnn.relu(x, sub_core_grids=ttnn.CoreGrid(x=2, y=1).core_range_set()),
     "NotSimulated: relu: shards on cores beside sub_core_grids are not simulated"),
    ("64x64 tile block/32x32/2x2", lambda x: ttnn.relu(x, sub_core_grids=ttnn.CoreGrid(x=1, y=2).core_range_set()),
     "Device: Kernel 'reader' is setting runtime_arg_values for node 1-0, but the kernel does not run on that node.\n"),
    ("64x64 tile block/32x32/2x2", lambda x: ttnn.add(x, x, sub_core_grids=ttnn.CoreGrid(x=2, y=1).core_range_set()),
     "NotSimulated: add: shards on cores beside sub_core_grids are not simulated"),
    ("64x64 tile int32", lambda x: ttnn.mac(x, x, x, sub_core_grids=ttnn.CoreGrid(x=2, y=1).core_range_set()),
     "Device: ttnn::mac: sub_core_grids is not supported when the operation falls back to the composite path."),
    ("64x64 tile", lambda x: ttnn.add(x, x, sub_core_grids=4), "ArgumentType: ttnn.add(): incompatible"),
    ("64x64 tile", lambda x: ttnn.relu(x, sub_core_grids=ttnn.CoreGrid(x=9, y=1).core_range_set()),
     "Device: WorkUnitSpec 'eltwise_unary' targets node (8,0), which is out of bounds. The compute worker grid on this "
     "device is 8x8.\n"),
    ("64x64 tile", lambda x: ttnn.where(x, x, x, sub_core_grids=ttnn.CoreGrid(x=1, y=9).core_range_set()),
     "NotSimulated: where: sub_core_grids has the core 0-8, and the device 8x8 cores"),
    ("64x64 tile", lambda x: ttnn.add(x, x, sub_core_grids=ttnn.CoreRangeSet([])),
     "Device: Core grid must contain at least one core\n"),
    # block floats
    ("32x32 tile", lambda x: ttnn.arange(4, dtype=ttnn.bfloat8_b, device=x.device()), "Device: Unsupported dtype\n"),
    ("64", lambda x: ttnn.typecast(x, ttnn.bfloat8_b, memory_config=high((32, 64), 1)),
     "Device: Only TILE layout is supported for BFLOAT8_B dtype!"),
    ("32x32 tile", lambda x: ttnn.zeros((64, 64), ttnn.bfloat8_b, ttnn.ROW_MAJOR_LAYOUT, x.device(), wide((32, 64), 1)),
     "Device: Shard height 32 must match physical height 64 for width sharded"),
    ("32x32 tile", lambda x: ttnn.zeros((4, 4), ttnn.bfloat4_b, ttnn.ROW_MAJOR_LAYOUT, x.device()),
     "Device: Only TILE layout is supported for BFLOAT8_B dtype!\n"),
    ("2x32 tile", lambda x: ttnn.permute(x, (1, 0), pad_value=None), "ArgumentType: "),
    ("2x32 tile", lambda x: ttnn.transpose(x, 1, 0, pad_value=None), "ArgumentType: "),
    ("2x3x32x64 tile", lambda x: ttnn.chunk(x, 2, 4),
     "Device: ... Invalid dimension for chunk operation, 4 needs to be greater than 4\n"),
    ("64x96 height/16x96/4", lambda x: ttnn.transpose(x, 0, 1, pad_value=-1),
     "Device: Non-zero padding -1 is not supported for any transpose other than HC.\n"),
    ("2x3x64x96 tile", lambda x: ttnn.transpose(x, 0, 1, pad_value=1.5),
     "Device: Non-zero padding 1.5 is not supported for any transpose other than HC.\n"),
    ("40x90 tile", lambda x: ttnn.transpose(x, 0, 1, pad_value=1),
     "Device: Non-zero padding 1 is not supported for any transpose other than HC.\n"),
    ("1x1x40x140 width/40x48/3", lambda x: ttnn.tilize_with_val_padding(x, [1, 2, 32, 160], 0.0),
     "Device: Tensor with shape Shape([1, 1, 40, 140]) (Shape([1, 2, 32, 160])) cannot be sharded because alignment "
     "will have rank greater than 2!"),
    ("1x1x64x64 tile height/32x64/2 + 1x1x64x64 tile",
     lambda x, y: ttnn.reshard(x, place("width/64x32/2"), output_tensor=y), "Device: output must be sharded\n"),
    # vectors are joined as rows
    ("100 block/1x24/5x8", lambda x: ttnn.concat([x, x], -1),
     "Device: Changing the last dimension of a sharded tensor is not supported unless the shard width matches the "
     "input last dimension. Input shape: Shape([120]), New shape: Shape([1, 100]), Shard width: 24"),
    ("100 block/1x128/1x1", lambda x: ttnn.concat([x, x], -1),
     "Device: For valid non-interleaved buffers page size 200 must equal buffer size 256."),
    # rows become tiles without padding, which is asked before the shards are looked at
    ("1x1x60x64 height/16x64/4", ttnn.triu,
     "Device: to_layout: Converting layout to Layout::TILE implicitly changed physical shape from (60, 64) to ("),
    # which rows fill with the padding of their shards
    ("2x32x128 width/64x22/6", ttnn.tril,
     "Device: to_layout: Converting layout to Layout::TILE implicitly changed physical shape from (64, 132) to "
     "(64, 160)"),
    ("1x1x64x64 height/16x64/4", ttnn.triu, "Device: Physical shard shape (16, 64) must be tile {32, 32} sized!"),
    ("1x1x60x64 height/16x64/4", lambda x: ttnn.to_dtype(x.cpu(), ttnn.bfloat8_b),
     "Device: Physical shard shape (16, 64) must be tile {32, 32} sized!"),
    ("1x5x25x96 height/25x96/5", lambda x: ttnn.tilize_with_val_padding(x, [1, 5, 24, 96], 0.0),
     "Device: Physical shard shape (25, 96) must be tile {32, 32} sized!"),
    ("1x5x25x96 height/25x96/5", lambda x: ttnn.tilize_with_val_padding(x, [5, 32, 96], 0.0),
     "Device: Physical shard shape (25, 96) must be tile {32, 32} sized!"),
    ("1x1x1x255x7 tile block/32x32/1x8", lambda x: ttnn.slice(x, [0, 0, 0, 0, 4], [1, 1, 1, 255, 6]),
     "Device: For valid non-interleaved buffers page size 14 must equal buffer size 16320."),
    ("58x24 height/29x24/2", lambda x: ttnn.reshard(x, in_dram(wide((58, 32), 1))),
     "Device: Input and output tensors must have the same page size. Input page size: 48, Output page size: 64"),
    # windows are looked at behind the padding
    ("1x3x8x64 tile", lambda x: ttnn.fold(x, 2, 0, padding=(1, 1)),
     "Device: ttnn.pad: on device tile padding does not support front padding"),
    ("1x3x8x64 tile", lambda x: ttnn.fold(x, 2, 0), "Device: Fold: stride_h (2) and stride_w (0) must be > 0."),
    ("3x8x64", lambda x: ttnn.fold(x, 2, 0), "Device: Fold: stride_h (2) and stride_w (0) must be > 0."),
    # rows of more than four axes are seen with four
    ("2x1x8x1x24 tile width/512x32/1", lambda x: ttnn.concat([x, x], 3),
     "Device: Shard height 21 must match physical height 16 for width sharded"),
    ("2x1x8x24 tile width/64x32/1", lambda x: ttnn.stack([x, x], 3),
     "Device: Shard height 21 must match physical height 16 for width sharded"),
    # the same axis twice is a copy
    ("2 width/1x1/2", lambda x: ttnn.transpose(x, 0, -1, memory_config=ttnn.DRAM_MEMORY_CONFIG),
     "Device: Clone: mixed sharded/interleaved layout not currently supported."),
    ("70 width/1x16/5", lambda x: ttnn.transpose(x, 0, 0),
     OTHER_WIDTH + " unless the shard width matches the input last dimension. Input shape: Shape([1, 1, 1, 80]), New "),
    ("70 height/1x80/1", lambda x: ttnn.transpose(x, 0, -1),
     "Device: For valid non-interleaved buffers page size 140 must equal buffer size 160."),
    # pages of shards are aligned in their own memory
    ("1x1x45x24 height/45x24/1 dram", lambda x: ttnn.typecast(x, ttnn.float32),
     "Device: Typecast operation requires sharded input tensor page size (48 bytes) to be aligned to L1 (16 bytes)"),
    # the cores of a result are looked for before operands
    ("1x2x64x64 tile uint32", lambda x: ttnn.softmax(x, -1, memory_config=OFF_ROW_0), LATER_ROW),
    ("1x2x64x64 tile uint32",
     lambda x: ttnn.transformer.scaled_dot_product_attention(x, x, x, memory_config=OFF_ROW_0), LATER_ROW),
    ("1x2x64x64 tile", lambda x: ttnn.experimental.rotate_half(x, memory_config=OFF_ROW_0), LATER_ROW),
    ("1x2x64x64 tile uint32",
     lambda x: ttnn.group_norm(x, num_groups=2, core_grid=ttnn.CoreGrid(y=1, x=1), inplace=False,
                               memory_config=OFF_ROW_0), LATER_ROW),
    ("1x3x16x40 float32 width/48x8/5 + 1x3x1x1 tile float32",
     lambda *x: ttnn.batch_norm(x[0], running_mean=x[1], running_var=x[1]),
     "Device: Physical shard shape (48, 8) must be tile {32, 32} sized!"),
    # heads of none, and on too few cores
    ("1x1x32x96 tile block/32x96/1x1",
     lambda x: ttnn.experimental.create_qkv_heads(x, num_heads=0, memory_config=ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG),
     "Device: num_q_heads must be greater than 0"),
    ("1x1x32x32 tile block/32x32/1x1 + 1x1x32x64 tile block/32x64/1x1",
     lambda *x: ttnn.experimental.create_qkv_heads_from_separate_tensors(*x, num_heads=1, num_kv_heads=0),
     "Device: num_kv_heads must be greater than 0"),
    ("1x8x32x64 tile height/32x64/8", lambda x: ttnn.experimental.nlp_concat_heads_decode(x, num_heads=0),
     "Device: Cannot get bounding_box of an empty CoreRangeSet!"),
    # cores are not chosen for a result that the caller gives
    ("1x2x8x64 tile height/32x64/2 + 1x1x32x64 tile height/32x64/1 dram",
     lambda *x: ttnn.experimental.nlp_concat_heads_decode(x[0], num_heads=1, sub_core_grids=OFF, output_tensor=x[1]),
     borrowing("q_out", "output")),
    ("1x8x32x64 tile height/32x64/8 + 1x1x32x128 tile",
     lambda *x: ttnn.experimental.nlp_concat_heads_decode(x[0], num_heads=2, sub_core_grids=GRID, output_tensor=x[1]),
     "Device: Subcoregrids must have at least num_heads cores"),
    # attention of other ranks
    ("64 tile + 1x2x64x64 tile + 1x2x64x64 tile + 1x1x32x64 tile",
     lambda *x: ttnn.transformer.scaled_dot_product_attention(*x[:3], is_causal=False, attn_mask=x[3]),
     "Device: ShapeBase[] index out of range. 2 not in [-4, 1)"),
    ("1x2x32x64 tile + 2x64x64 tile + 1x2x64x64 tile",
     lambda *x: ttnn.transformer.scaled_dot_product_attention(*x, is_causal=False),
     "Device: K and V batch must match. Got K: 2, V: 1"),
    # caches of other ranks
    ("64x64 tile + 1x1x64x64 tile + 1x4 int32", ttnn.experimental.paged_fill_cache,
     "Device: ShapeBase[] index out of range. 2 not in [-4, 2)"),
    ("4x1x64x64 tile + 64x64 tile + 1x4 int32", ttnn.experimental.paged_fill_cache,
     "Device: ShapeBase[] index out of range. 3 not in [-4, 2)"),
    ("4x1x64x64 tile + 2x1x64x64 tile + 2x4 int32 + 2 int32",
     lambda *x: ttnn.experimental.paged_fill_cache(*x[:3], valid_seq_len_tensor=x[3]),
     "Device: valid_seq_len tensor must contain exactly 1 element, got logical_volume=2"),
    ("4x1x64x64 tile + 2x1x64x64 tile + 2x4 int32 + 1 int32",
     lambda *x: ttnn.experimental.paged_fill_cache(*x[:3], valid_seq_len_tensor=x[3]),
     "Device: valid_seq_len tensor is only supported when cache_position_modulo is set (bounded fill)"),
    ("4x2x64x64 tile + 1x2x1x32x64 tile block/64x32/2x1", lambda *x: ttnn.update_cache(*x, 3),
     "Device: Input tensor shard width (32) must equal padded width (64)"),
    ("4x2x64x64 tile + 1x2x64x64 tile", lambda *x: ttnn.update_cache(*x, 3),
     "Device: Input batch height (64) must equal cache batch (4) rounded up to a tile"),
    # rows of a table
    ("1x8 rows uint32 + 14x32 rows", lambda x, y: ttnn.embedding(x, y, memory_config=place("height/8x32/1 dram")),
     "Device: Embedding sharded Row Major output must be in L1: the reader writes rows straight into its own shard"),
    # numbers that no integer of 32 bits is
    *(("32x64 tile uint32", lambda x, call=call: call(x), f"Argument: {name}: ") for name, call in (
        ("relu_min", lambda x: ttnn.relu_min(x, float("nan"))),
        ("relu_max", lambda x: ttnn.relu_max(x, 1e30)),
        ("fill", lambda x: ttnn.fill(x, 1 << 40)),
        ("fill", lambda x: ttnn.fill(x, float("-inf"))),
        ("unary_chain", lambda x: ttnn.unary_chain(x, [ttnn.UnaryWithParam(ttnn.UnaryOpType.RELU_MAX, 1e30)])),
    )),
    # tensors without axes
    ("32x64 tile", lambda x: ttnn.prelu(ttnn.sum(x, dim=None), x),
     "Device: ShapeBase[] index out of range. 1 not in [-4, 0)"),
    ("32x64 tile", lambda x: ttnn.rms_norm(x, bias=ttnn.sum(x, dim=None)),
     "Device: Input and beta padded widths must match and beta logical width must be >= input logical width"),
    ("32x64 tile", lambda x: ttnn.transformer.scaled_dot_product_attention(*[ttnn.sum(x, dim=None)] * 3),
     "Device: ShapeBase[] index out of range. 0 not in [-4, 0)"),
    # rotary embeddings of other ranks
    ("32x64 tile", lambda x: ttnn.experimental.rotary_embedding_llama(*[ttnn.sum(x, dim=None)] * 4),
     "Device: ShapeBase[] index out of range. 0 not in [-4, 0)"),
    ("32x64 tile + 1x1x32x64 tile + 1x1x32x64 tile + 1x1x32x32 tile", ttnn.experimental.rotary_embedding_llama,
     "Device: ShapeBase[] index out of range. 2 not in [-4, 2)"),
    (f"1x2x64x64 tile{' + 1x1x64x64 tile height/64x64/1' * 2} + 1x1x32x32 tile",
     ttnn.experimental.rotary_embedding_llama,
     "Device: HEIGHT_SHARDED cos shard height must equal TILE_HEIGHT for prefill RoPE"),
    ("1x2x64x64 tile + 1x1x64x64 tile width/64x32/2 + 1x1x64x64 tile height/32x64/2 + 1x1x32x32 tile",
     ttnn.experimental.rotary_embedding_llama,
     "Device: Cos and sin must both be HEIGHT_SHARDED or both be INTERLEAVED for prefill RoPE"),
    ("1x2x64x64 tile + 1x1x64x64 tile width/64x32/2 + 1x1x64x64 tile + 1x1x32x32 tile",
     ttnn.experimental.rotary_embedding_llama, "Device: Cos tensor must be either INTERLEAVED or HEIGHT_SHARDED for"),
    ("4x3x64x64 width/768x48/2", ttnn.transformer.concatenate_heads,
     "Device: Head size (64) cannot have tile padding. Ensure that the head size is not padded."),
    ("2x32x64 tile + 1x1x32x64 tile + 1x1x32x64 tile + 1x1x32x32 tile", ttnn.experimental.rotary_embedding_llama,
     "Device: ShapeBase[] index out of range. 3 not in [-4, 3)"),
    ("1x2x32x64 tile + 1x1x32x64 tile + 64 tile + 1x1x32x32 tile", ttnn.experimental.rotary_embedding_llama,
     "Device: Cos and Sin dims must match"),
    ("1x2x32x65 tile height/32x96/2 + 1x1x32x64 tile + 1x1x32x64 tile + 1x1x32x32 tile",
     lambda *x: ttnn.experimental.rotary_embedding_llama(*x, is_decode_mode=True),
     "Device: Head dim must be a multiple of TILE_WIDTH in decode mode"),
    ("1x2x32x64 tile + 64 tile + 64 tile", ttnn.experimental.rotary_embedding,
     "Device: Cosine cache dimensions must match input dimensions. Expected (1, 1, 64), but got Shape([32, 64])."),
    ("1x2x64x64 tile + 1x1x40x64 tile + 1x1x64x64 tile", ttnn.experimental.rotary_embedding,
     "Device: Cosine and Sine cache dimensions must match."),
    ("1x2x32x64 tile + 64 tile + 1x1x32x64 tile", ttnn.experimental.rotary_embedding,
     "Device: Cosine and Sine cache dimensions must match. Cos cache dimensions: Shape([32, 64]), Sin"),
    # programs of attention and norms that work on shards where they lie, in L1
    ("1x2x32x64 tile height/32x64/2 dram", lambda x: ttnn.softmax_in_place(x, program_config=SOFTMAX),
     borrowing("in0", "src")),
    ("1x2x32x64 tile height/32x64/2 + 1x2x32x64 tile height/32x64/2 dram",
     lambda *x: ttnn.scale_mask_softmax_in_place(x[0], 0.5, x[1], program_config=SOFTMAX, is_causal_mask=True),
     borrowing("fused_attn", "mask")),
    ("1x2x32x64 tile height/64x64/1 dram",
     lambda x: ttnn.transformer.concatenate_heads(x, memory_config=ttnn.L1_BLOCK_SHARDED_MEMORY_CONFIG),
     borrowing("in0", "input")),
    ("1x2x32x64 tile height/64x64/1",
     lambda x: ttnn.experimental.nlp_concat_heads(x, memory_config=in_dram(wide((32, 128), 1))),
     borrowing("out0", "output")),
    ("1x2x32x64 tile height/32x64/2 + 1x1x32x128 tile width/32x64/2 dram",
     lambda *x: ttnn.experimental.nlp_concat_heads_decode(x[0], num_heads=2, output_tensor=x[1]),
     borrowing("q_out", "output")),
    ("8x2x64x64 tile + 1x2x32x64 tile height/32x64/2 dram", lambda *x: ttnn.fill_cache(*x, 0),
     borrowing("src0", "input")),
    ("8x2x64x64 tile + 1x2x32x64 tile height/32x64/2 dram", lambda *x: ttnn.update_cache(*x, 3),
     borrowing("input", "input")),
    ("2x32x64x64 tile + 1x2x32x64 tile height/32x64/2 dram",
     lambda *x: ttnn.experimental.paged_update_cache(*x, update_idxs=[3, 4]), borrowing("input_shard", "input")),
    ("1x1x32x192 tile block/32x96/2x1 dram",
     lambda x: ttnn.experimental.create_qkv_heads(x, num_heads=2, memory_config=ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG),
     NOT_IN_L1),
    ("1x2x32x64 tile + 2x1x64x64 tile + 2x1x64x64 tile",
     lambda *x: ttnn.transformer.scaled_dot_product_attention_decode(
         *x, cur_pos=[3, 4], memory_config=in_dram(high((32, 64), 2))), NOT_IN_L1),
    ("1x1x64x64 height/32x64/2 dram",
     lambda x: ttnn.group_norm(x, num_groups=2, core_grid=ttnn.CoreGrid(y=1, x=2), inplace=False,
                               memory_config=high((32, 64), 2), input_mask=ttnn.create_group_norm_input_mask(64, 2, 1)
                               .to(x.device())), NOT_IN_L1),
    # max_pool2d
    ("32", lambda x: ttnn.max_pool2d(x, 1, 1, 1, 32, (1, 1), (1, 1), (0, 0), (1, 1)),
     "Device: Pool2D: Input tensor must be rank 2, 3, or 4, got rank 1"),
    ("64x32", lambda x: ttnn.max_pool2d(x, 1, 8, 8, 4, (1, 1), (1, 1), (0, 0), (1, 1)),
     "Device: Pool2D: For rank-2 input [H, W], batch_size and channels must be 1, got batch_size=1, channels=4"),
    ("1x32x8", lambda x: ttnn.max_pool2d(x, 2, 8, 8, 1, (1, 1), (1, 1), (0, 0), (1, 1)),
     "Device: Pool2D: For rank-3 input [H, W, C], batch_size must be 1, got 2"),
    ("1x32x8", lambda x: ttnn.max_pool2d(x, 1, 8, 8, 4, (1, 1), (1, 1), (0, 0), (1, 1)),
     "Device: Pool2D: For rank-3 input [H, W, C], dimensions must match: input_h=8, input_w=8, channels=4, but got "
     "shape Shape([1, 32, 8])"),
    ("1x1x72x16", lambda x: pool(x, (3, 3), padding=(2, 1)),
     "Device: Pool2D: Padding (2, 2, 1) should not exceed half of kernel size (3, 3)"),
    ("1x1x72x16", lambda x: pool(x, stride=(0, 1)),
     "Device: Pool2D: Stride must be greater than 0 in both dimensions, got (0"),
    ("1x1x72x16", lambda x: pool(x, (9, 9)), "Device: Pool2D: Effective kernel size (9, 9) cannot exceed padded input"),
    ("1x1x72x16", lambda x: pool(x, dilation=(1, 6)), "Device: Pool2D: Effective kernel size (2, 7) can"),
    ("1x1x72x16", lambda x: pool(x, dtype=ttnn.float32),
     "Device: Currently only BFLOAT16, BFLOAT8_B, and BFLOAT4_B output data formats are supported"),
    ("1x1x72x16", lambda x: pool(x, memory_config=ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG), "Device: bad optional access"),
    ("1x1x72x16", lambda x: pool(x, dtype=ttnn.bfloat8_b),
     "Device: BFLOAT8_B/BFLOAT4_B output data format is not supported with ROW_MAJOR layout"),
    ("1x1x72x16", lambda x: ttnn.max_pool2d(x, 2, 6, 6, 16, (2, 2), (2, 2), (0, 0)),
     "ArgumentType: ttnn.max_pool2d(): incompatible function arguments."),
    ("1x1x72x16", lambda x: pool(x, dram_slice_config=1),
     "ArgumentType: ttnn.max_pool2d(): incompatible function arguments."),
    ("1x1x72x16 float32", pool, "Device: Only BFLOAT16 supported for now\ninput_tensor: "),
    ("1x1x72x16 uint16", pool, "Device: Only BFLOAT16 supported for now\ninput_tensor: "),
    ("1x1x72x16 int32", pool, "Device: max_pool2d: input_tensor holds int32, whose bytes"),
    ("1x1x72x16 width/72x8/3", pool,
     "Device: For width and block sharding, input channels (16) should be divisible by num_shards (3)"),
    ("2x6x6x16 height/9x16/8", pool, "Device: Number of shards along height 48 must not exceed number of cores 8"),
    ("6x8x64 height/24x64/2", lambda x: ttnn.adaptive_avg_pool2d(x, 1, 6, 8, 64, (6, 8)),
     "Device: Number of shards along height 12 must not exceed number of cores 2"),
    ("2x6x6x16 tile", lambda x: pool(x, applied_shard_scheme=WIDTH),
     "Device: Shard height 384 must match physical height 96 for width sharded"),
]  # fmt: skip


@pytest.mark.parametrize(("tensors", "call", "text"), REFUSED, ids=range(len(REFUSED)))
def test_an_error_begins_as_that_of_the_real_library(device, tensors, call, text):
    placed = put_all(device, tensors)
    error = refusal(lambda: call(*placed))
    assert error.startswith(text), error
    assert all(tensor.is_allocated() for tensor in placed)


LOST = [  # what calls say of a tensor that was deallocated
    (lambda lost, kept: ttnn.add(lost, kept), "Input Tensor A"),
    (lambda lost, kept: ttnn.add(kept, lost), "Input Tensor B"),
    (lambda lost, kept: ttnn.add(lost, lost), "Input Tensor A"),
    (lambda lost, kept: ttnn.multiply(lost, 2.0), "Input Tensor"),
    (lambda lost, kept: ttnn.typecast(lost, ttnn.float32), "Input Tensor"),
    (lambda lost, kept: ttnn.to_memory_config(lost, DRAM), "Input Tensor"),
    (lambda lost, kept: ttnn.transpose(lost, 2, 3), "Input Tensor"),
    (lambda lost, kept: ttnn.permute(lost, (0, 1, 3, 2)), "Input Tensor"),
    (lambda lost, kept: ttnn.slice(lost, [0, 0, 0, 0], [1, 1, 32, 32]), "Input Tensor"),
    (lambda lost, kept: ttnn.concat([kept, lost], 3), "Tensor"),
    (lambda lost, kept: ttnn.reshape(lost, (1, 1, 128, 32)), "Tensor"),
    (lambda lost, kept: ttnn.move(lost), "Tensor"),
    (lambda lost, kept: ttnn.upsample(lost, 2), "upsample expects an allocated device tensor as input"),
    (lambda lost, kept: ttnn.matmul(lost, kept), "Operand to matmul must be on device"),
    (lambda lost, kept: ttnn.matmul(kept, lost), "Input Tensor"),
]


@pytest.mark.parametrize(("call", "words"), LOST, ids=range(len(LOST)))
def test_a_deallocated_tensor_is_named_as_the_real_library_names_it(device, call, words):
    lost, kept = put_all(device, "1x1x64x64 tile l1 + 1x1x64x64 tile l1")
    ttnn.deallocate(lost)
    line = f"{words} is not allocated" if words.endswith(("Tensor", "A", "B")) else words
    assert refusal(lambda: call(lost, kept)).startswith(f"Device: {line}\nit was deallocated")


def test_a_move_that_overlaps_needs_whole_pages(device):
    """1,300 rows of 33 parts of 16 bytes: a core of 64 has 671 parts, 10,736 bytes, no whole number of rows."""
    above = put(device, "256x256 tile bfloat8_b l1", np.zeros((256, 256)))  # 1,088 bytes of each bank
    x = put(device, "1300x260 l1")
    ttnn.deallocate(above)
    text = "Device: Total circular buffer size 10736 B must be divisible by page size 528 B"
    assert refusal(lambda: ttnn.move(x, memory_config=in_box(WIDTH, (1300, 8), 8, 7))).startswith(text)


def test_rows_that_the_real_library_loses_are_refused_on_a_lenient_device():
    with ttnn.open_device(l1_small_size=32768, strict=False) as device:
        x = put(device, "1x1x2x80 width/2x40/2")
        assert refusal(lambda: ttnn.reshard(x, in_box(BLOCK, (1, 24), 5, 2))).startswith("Device: unordered_map::at")
        integers = put(device, "1x1x72x16 int32")
        assert pool(integers).dtype is ttnn.bfloat16


@pytest.mark.parametrize(
    ("ranges", "first"),
    [
        ([(1, 2, 3, 4)], "core 0 is 1-2 but the origin-anchored row walk addresses it as 0-0"),
        ([(0, 0, 4, 0), (0, 2, 3, 2)], "core 5 is 0-2 but the origin-anchored row walk addresses it as 0-1"),
    ],
)
def test_pooled_shards_lie_on_rows_of_cores_from_the_first_one_on(device, ranges, first):
    cores = [ttnn.CoreRange(ttnn.CoreCoord(a, b), ttnn.CoreCoord(c, d)) for a, b, c, d in ranges]
    shards = place("height/8x16/9")
    config = replace(shards, shard_spec=shards.shard_spec.changed(grid=ttnn.CoreRangeSet(cores)))
    x = ttnn.to_memory_config(put(device, "1x1x72x16"), config)
    assert refusal(lambda: pool(x)).startswith(f"Device: Sliding-window shard grid {first}")


def test_places_are_read_as_they_are_meant():
    assert (wide((64, 32), 2), in_box(BLOCK, (32, 32), 3, 2)) == (place("width/64x32/2"), place("block/32x32/3x2"))
