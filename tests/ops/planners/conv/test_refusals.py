"""What is refused of a call, and in which words: by its arguments, by its plan, or by a strict device.

First lines, and which of several comes first, are those of the real library, version 0.81.1, where it refuses the call.
"""

from dataclasses import replace

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import ArgumentError, TTSimError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, INT32, UINT8, UINT16, UINT32
from device.plan import Operation, Refuse
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import CONV2D, SliceType
from ops.planners.conv.checks import ROWS_OF_BLOCKS, check_arguments, check_possible, view_refusal
from ops.planners.conv.operands import operand_refusals
from ops.planners.conv.plan import check_call, plan_convolution
from ops.planners.conv.strict import check_strict, plan_fault
from tests.build import L1_FULL, TWO_SLICES, call, changed, cut, height_sharded, operand, sized_call
from tests.shards import BLOCK, HEIGHT, WIDTH, box, high, in_box

SPEC = load_spec("wormhole_n150")
FREE = 1300000
DRAM, L1, ROWS, TILES = DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout.ROW_MAJOR, Layout.TILE
ACROSS = SliceType.DRAM_WIDTH
IN_SHARDS = height_sharded(BufferType.L1)
BY_COLUMNS = operand(1, 1, 64, 32, place=in_box(HEIGHT, (8, 32), 8, orientation=ShardOrientation.COL_MAJOR))
INTERLEAVED, ND = TensorMemoryLayout.INTERLEAVED, TensorMemoryLayout.ND_SHARDED
POINT = {"kernel_size": (1, 1), "stride": (1, 1), "padding": (0, 0, 0, 0), "weight": operand(32, 32, 1, 1)}


def first_refusal(made, *, strict=True):
    """The first text that a call is refused with, on its way from its arguments to the end of its plan; else empty."""
    try:
        check_call(made, SPEC, strict=strict, free_l1_bytes=FREE)
        plan = plan_convolution(made, SPEC, free_l1_bytes=FREE)
    except TTSimError as error:
        return str(error)
    for step in plan.steps:
        if isinstance(step, Refuse):
            return step.text
        if isinstance(step, Operation) and (step.refused or step.unfinished):
            return f"{step.name}: {step.refused or step.unfinished}"
    return (strict and plan_fault(plan, made)) or ""


def conv2d(**changes):
    """An 8x8 image of 32 channels in L1."""
    return changed(sized_call((8, 8), (32, 64), rules=CONV2D, place=L1, padding=(1, 1, 1, 1)), **changes)


def tensor(*shape, **more):
    """A tensor in DRAM."""
    return operand(*shape, place=DRAM, **more)


def folded(**changes):
    """Windows of 2x2 side by side, which are folded."""
    plain = {"input": tensor(1, 1, 64, 32), "kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0, 0, 0)}
    return conv2d(enable_kernel_stride_folding=True, **plain | changes)


def wide_shards(width):
    spec = TensorSpec((1, 1, 64, 32), BFLOAT16, ROWS, high((32, width), 2), (1, 1, 64, width))
    return replace(tensor(1, 1, 64, 32), spec=spec)


NO_SHARDS = "Conv2d supports Height, Block or Width Sharded Layouts but got TensorMemoryLayout::"
NO_GRID = "Core grid must be provided when overriding sharding config"
NO_SHARD_GRID = "If override_sharding_config is set, core_grid must be set as well."
NO_OUTPUT_GRID = "When override_output_sharding_config is set to true, core_grid must have a value."
BAD_WIDTH = "Config Error: act_block_w_div must be greater than 0."
BAD_HEIGHT = "Config Error: act_block_h_override (17) must be a multiple of 32 (tile height)."
VOLUME = "Attempting to reshape between two shapes with different volumes"
LARGER = "MeshBuffer must be large enough to hold the tensor."
NOT_ROWS = "Host conv weights layout should be in row_major layout"
NO_TRANSPOSED_TYPE = "Unsupported data type for transform_weights_for_conv_transpose2d"
PREPARED = {"weight": tensor(1, 1, 288, 64, layout=TILES)}
PREPARED_FOR_32 = {"weight": tensor(1, 1, 288, 32, layout=TILES), "weights_format": None}
GRID = {"override_sharding_config": True}
OUTPUT = {"override_output_sharding_config": True}
LARGE_BLOCK = "Conv2d output block size 5 exceeds the per-core output size 1"
NO_REUSE = "Activation reuse needs act block h (1) to be bigger than output image width in tiles (1)"
REUSE = {"enable_activation_reuse": True, "shard_layout": HEIGHT}
RANK = "ShapeBase[] index out of range. {0} not in [-4, {0})".format

# Refused as the real library does: its first line, then ours with argument, value and way out.
# fmt: off
REAL = [
    (call(stride=(0, 1)), "stride must be greater than 0, got (0, 1)"),
    (call(act_block_h_override=17), BAD_HEIGHT),
    (call(act_block_w_div=0, shard_layout=WIDTH), BAD_WIDTH),
    (call(act_block_w_div=0), BAD_WIDTH),
    (call(in_channels=16), VOLUME),
    (call(input=tensor(1, 1, 64, 32, layout=TILES), input_height=7), VOLUME),
    (call(batch_size=2), LARGER),
    (call(input_height=9), LARGER),
    (call(input=operand(1, 1, 64, 32), input_height=9), LARGER),
    (call(batch_size=0), "Tensor volume is not 0, but shape volume is 0"),
    (call(weight=operand(32, 32, 3)), RANK(3)),
    (call(input=operand(1, 64, 32, place=L1)), RANK(3)),
    (call(input=operand(64, 32, place=L1)), RANK(2)),
    (call(input=operand(1, 1, 1, 64, 32, place=L1)), "Expected 4D shape"),
    (call(out_format=BFLOAT8_B, output_layout=ROWS), "Conv output can't be in Row Major if output dtype is BFloat8_B."),
    (call(**GRID, shard_layout=HEIGHT, slice_config=cut(2)), NO_SHARD_GRID),
    (call(**GRID, shard_layout=HEIGHT, slice_config=cut(1)), NO_GRID),
    (call(**GRID, input=IN_SHARDS), NO_SHARD_GRID),
    (call(**OUTPUT, slice_config=L1_FULL, shard_layout=BLOCK), NO_OUTPUT_GRID),
    (call(**OUTPUT, shard_layout=HEIGHT, core_grid=box(4, 4)),
     "Output sharding config override is only supported for BLOCK_SHARDED layout."),
    (call(shard_layout=INTERLEAVED), f"{NO_SHARDS}INTERLEAVED"),
    (call(shard_layout=ND, slice_config=L1_FULL), f"{NO_SHARDS}ND_SHARDED"),
    (call(input=IN_SHARDS, reshard_if_not_optimal=True), f"{NO_SHARDS}INTERLEAVED"),
    (call(input=operand(1, 1, 64, 32, place=L1), slice_config=TWO_SLICES),
     "Conv DRAM expects the input tensor to be in DRAM."),
    (call(input=height_sharded(BufferType.DRAM)), "Input Tensor to Conv DRAM should be in Interleaved Memory Layout"),
    # The input comes before the weights, and these before blocks.
    (call(batch_size=2, weight=operand(32, 32, 3), act_block_h_override=17), LARGER),
    (call(weight=operand(32, 32, 3), bias=operand(1, 1, 1, 16), act_block_h_override=17), RANK(3)),
    (call(bias=operand(1, 1, 1, 16), act_block_h_override=17), BAD_HEIGHT),
    # Height shards dealt by columns never suit.
    (call(input=BY_COLUMNS), f"{NO_SHARDS}INTERLEAVED"),
    (call(input=BY_COLUMNS, act_block_h_override=17), BAD_HEIGHT),
    (call(input=BY_COLUMNS, **GRID), NO_SHARD_GRID),
    (call(input=BY_COLUMNS, **GRID, core_grid=box(8)),
     "If override_sharding_config is set, shard_layout must be set as well."),
    # A missing grid is told as slices see it; of too many slices the plan tells.
    (call(**GRID, slice_config=cut(2), stride=(1, 1)), NO_SHARD_GRID),
    (call(**GRID, slice_config=cut(2), **POINT), NO_GRID),
    (call(**GRID, slice_config=cut(99), stride=(1, 1)), "Number of slices (99) exceeds the maximum allowed (9)"),
    (call(**OUTPUT, act_block_h_override=17, slice_config=cut(500)), "Number of slices (500) exceeds the maximum"),
    # A number of slices is looked for before the input is looked at.
    (call(input=BY_COLUMNS, slice_config=cut(0, ACROSS)), "get_cb_info expects conv_config.weights_dtype to be"),
    (call(input=BY_COLUMNS, slice_config=cut(0, ACROSS), act_block_h_override=17), BAD_HEIGHT),
    (call(input=BY_COLUMNS, slice_config=cut(2, ACROSS), weights_format=BFLOAT16),
     "Conv DRAM expects the input tensor to be in DRAM."),
    (sized_call((2, 2), (32, 512), (2, 2), slice_config=cut(0, ACROSS), act_block_h_override=160), LARGE_BLOCK),
    # Blocks of a scheme that the call gives are looked at after the format.
    (sized_call((2, 2), (32, 512), (2, 2), slice_config=cut(0), act_block_h_override=160, shard_layout=WIDTH),
     "get_cb_info expects conv_config.weights_dtype to be"),
    # Rows that readers keep are looked at first; a scheme that the library chooses is estimated before the rank.
    (call(slice_config=cut(0), **REUSE), NO_REUSE),
    (call(input=operand(1, 1, 1, 64, 32, place=L1), slice_config=L1_FULL, **REUSE | {"shard_layout": None}), NO_REUSE),
    (call(input=operand(1, 1, 1, 64, 32, place=L1), slice_config=L1_FULL, **REUSE), "Expected 4D shape"),
    # Rates of readers are asked for a scheme that is chosen, of a matmul, too.
    (conv2d(input=operand(1, 1, 16384, 32, place=L1, layout=TILES), input_height=128, input_width=128,
            kernel_size=(1, 1), padding=(0, 0, 0, 0), weight=operand(64, 32, 1, 1), out_format=BFLOAT4_B),
     "Unsupported output data type when calculating tilize cycles"),
    # Of an image without columns no slice is estimated.
    (call(slice_config=cut(0, ACROSS), padding=(1, 1, 9, 8), output_padding=(0, 0)),
     "DRAM Auto slice could not find valid slice configuration. Tried up to 0 slices for width-slicing"),
    (call(out_format=BFLOAT4_B, output_layout=ROWS, slice_config=cut(2), **OUTPUT), ROWS_OF_BLOCKS.splitlines()[0]),
    # So is one of an image of less than no columns, which the library takes for billions.
    (call(slice_config=cut(99, ACROSS), padding=(8, 9, 0, 0), output_padding=(0, 0)),
     "Number of slices (99) exceeds the maximum allowed (1)"),
    # A scheme that is chosen is estimated before its cores are looked at; one that is given is not.
    (call(slice_config=L1_FULL, act_block_h_override=17, act_block_w_div=0, **GRID, **OUTPUT), BAD_HEIGHT),
    (call(slice_config=L1_FULL, act_block_w_div=0, **GRID, **OUTPUT), NO_OUTPUT_GRID),
    (call(slice_config=L1_FULL, act_block_w_div=0, **GRID), BAD_WIDTH),
    (call(slice_config=L1_FULL, **GRID), NO_GRID),
    (call(slice_config=L1_FULL, shard_layout=WIDTH, act_block_h_override=17, act_block_w_div=0, **GRID, **OUTPUT),
     BAD_HEIGHT),
    (call(slice_config=L1_FULL, shard_layout=WIDTH, act_block_w_div=0, **GRID, **OUTPUT), NO_GRID),
    (call(slice_config=L1_FULL, shard_layout=WIDTH, act_block_w_div=0, **OUTPUT), NO_OUTPUT_GRID),
    # Slices come in shards, if their scheme is given; shards that stay are asked for their cores first.
    (call(slice_config=cut(2), act_block_h_override=17, **GRID, **OUTPUT), BAD_HEIGHT),
    (call(slice_config=cut(2), shard_layout=WIDTH, act_block_h_override=17, act_block_w_div=0, **GRID, **OUTPUT),
     NO_SHARD_GRID),
    (call(slice_config=cut(2), shard_layout=WIDTH, act_block_h_override=17, act_block_w_div=0, **OUTPUT),
     NO_OUTPUT_GRID),
    (call(input=IN_SHARDS, act_block_h_override=17, act_block_w_div=0, **GRID, **OUTPUT), NO_SHARD_GRID),
    (call(input=IN_SHARDS, act_block_h_override=17, act_block_w_div=0, **OUTPUT), NO_OUTPUT_GRID),
    # While a number of slices is looked for, nobody asks for the cores of a scheme that is given.
    (call(act_block_w_div=0, **GRID, **OUTPUT), NO_OUTPUT_GRID),
    (call(shard_layout=WIDTH, act_block_w_div=0, **GRID, **OUTPUT), BAD_WIDTH),
    # conv2d
    (conv2d(stride=(0, 1)), "stride must be greater than 0, got (0, 1)"),
    (conv2d(act_block_h_override=17), BAD_HEIGHT),
    (folded(input_height=7), "Padded input height (7) must be divisible by stride (2) for kernel stride folding."),
    (folded(kernel_size=(1, 2)), "Conv2D kernel stride folding: Stride must be less than or equal to kernel size"),
    (conv2d(input=tensor(1, 1, 64, 32), **OUTPUT),
     "Conv2D DRAM slicing doesn't support override_output_sharding_config."),
    (conv2d(input=tensor(1, 1, 64, 32), slice_config=cut(9), weight=operand(64, 32, 3, 3, layout=TILES)),
     "Number of slices (9) exceeds the maximum allowed"),
    (call(weight=operand(32, 32, 3), slice_config=cut()), "ShapeBase[] index out of range. 3 not in [-4, 3)"),
    # Weights and bias, once they are to be prepared
    (call(weight=operand(32, 32, 3, 3, data_format=INT32)), NO_TRANSPOSED_TYPE),
    (call(weight=operand(32, 32, 3, 3, data_format=BFLOAT8_B, layout=TILES)), NO_TRANSPOSED_TYPE),
    (call(weight=operand(32, 16, 3, 3, data_format=BFLOAT8_B, layout=TILES), groups=2),
     "Only TILE layout is supported for BFLOAT8_B dtype!"),
    (call(weight=tensor(1, 1, 288, 32, layout=TILES), bias=operand(1, 1, 1, 32)),
     "Device Operations expect device tensors as inputs"),
    (call(bias=operand(1, 1, 1, 16)), "Bias must have the same length as output channels"),
    (call(bias=operand(32, 1, 1, 1)), "Bias must have the same length as output channels"),
    (call(bias=operand(32)), "ShapeBase[] index out of range. 3 not in [-4, 1)"),
    (call(bias=operand(1, 32)), "ShapeBase[] index out of range. 3 not in [-4, 2)"),
    (call(bias=operand(1, 1, 1, 32, 1)), "Host conv bias should be 4D tensor"),
    (call(bias=operand(1, 1, 1, 32, layout=TILES)), "Host conv bias layout should be in row_major layout"),
    (call(bias=operand(1, 1, 2, 32)), "Host conv bias shape is not correct"),
    (conv2d(weight=operand(64, 32, 9)), "Host conv weights should be 4D tensor"),
    (conv2d(weight=operand(64, 32, 3, 3, data_format=INT32)), "Unsupported data type\n"),
    (conv2d(weight=operand(64, 32, 3, 3, layout=TILES)), NOT_ROWS),
    (conv2d(**PREPARED, weights_format=BFLOAT8_B), NOT_ROWS),
    (conv2d(bias=tensor(1, 1, 1, 64, layout=TILES), weights_format=BFLOAT8_B),
     "Host conv bias layout should be in row_major layout"),
    (conv2d(bias=operand(1, 1, 1, 16)), "Bias must have the same length as output channels"),
    (conv2d(bias=operand(1, 1, 32, 64)), "Host conv bias shape is not correct"),
]

ACCEPTED = [
    call(),
    call(bias=operand(1, 1, 1, 32)),
    call(input_height=7),
    # sharded DRAM where the number of slices may be one, or none are cut
    call(input=height_sharded(BufferType.DRAM), slice_config=cut(), weights_format=BFLOAT16, shard_layout=HEIGHT),
    call(input=height_sharded(BufferType.DRAM), output_padding=(0, 0), **POINT),
    call(input=tensor(1, 32, 8, 8)),
    call(input=operand(1, 1, 64, 32, place=L1), input_height=9),
    call(weight=operand(16, 32, 2, 2)),
    call(act_block_w_div=0, shard_layout=HEIGHT),
    call(core_grid=box(4, 4)),
    call(input=operand(1, 1, 64, 32, place=L1), slice_config=L1_FULL),
    call(input=IN_SHARDS, shard_layout=INTERLEAVED),  # shards that are kept
    call(dilation=(0, 0)),
    call(padding=(3, 3, 3, 3)),
    call(output_padding=(2, 2)),
    call(out_format=BFLOAT8_B, output_layout=ROWS, slice_config=L1_FULL, **POINT),  # a matmul makes tiles
    call(slice_config=cut(500), **OUTPUT, act_block_h_override=17),  # left to the plan
    conv2d(),
    conv2d(**PREPARED, bias=operand(1, 1, 1, 64)),  # a bias may come from the host though the weights do not
]

# Refused by us alone: what the real library crashes on, or, on strict devices, gets wrong.
OURS = [
    (call(in_channels=0, slice_config=L1_FULL), "conv_transpose2d: in_channels must be at least 1, not 0"),
    (call(kernel_size=(0, 3)), "conv_transpose2d: kernel_size must be at least (1, 1), not (0, 3)"),
    (call(groups=3), "conv_transpose2d: groups must divide in_channels, but 32 of weight_tensor is no multiple of 3"),
    (call(groups=8, out_channels=36), "conv_transpose2d: groups must divide out_channels, but 36 is no multiple of 8"),
    (call(groups=0), "conv_transpose2d: groups must be at least 1, not 0"),
    (call(dilation=(1, 0)), "conv_transpose2d: dilation must be at least (1, 1), not (1, 0)"),
    (call(padding=(1, 3, 1, 1)),
     "conv_transpose2d: padding must not exceed dilation * (kernel_size - 1), which is 2 here, not 3"),
    (call(**POINT), "conv_transpose2d: output_padding (1, 1) is ignored by a 1x1"),
    (call(input_height=7),
     "conv_transpose2d: batch_size=1, input_height=7, input_width=8, in_channels=32 are 1792 elements, but"),
    (call(input=operand(1, 1, 64, 32, place=L1), batch_size=2),
     "conv_transpose2d: batch_size=2, input_height=8, input_width=8, in_channels=32 are 4096 elements, but "
     "input_tensor has 2048"),
    (call(input=operand(1, 32, 8, 8)), "conv_transpose2d: input_tensor must be channels-last"),
    (call(input=operand(1, 1, 64, 32, data_format=INT32)),
     "conv_transpose2d: input_tensor must be a floating-point type"),
    (call(weights_format=INT32), "conv_transpose2d: conv_config.weights_dtype must be a floating-point type"),
    (call(weight=operand(16, 32, 3, 3)), "conv_transpose2d: weight_tensor must have the shape [32, 32, 3, 3]"),
    (call(weight=operand(32, 32, 2, 2)), "conv_transpose2d: weight_tensor must have the shape [32, 32, 3, 3]"),
    (call(groups=2), "conv_transpose2d: weight_tensor must have the shape [32, 16, 3, 3]"),
    (call(weight=operand(32, 32, 3, 3, layout=TILES)), "conv_transpose2d: weight_tensor on the host must be in"),
    (call(**PREPARED), "conv_transpose2d: weight_tensor on the device must be prepared for out_channels = 32"),
    (call(weight=tensor(layout=TILES)),
     "conv_transpose2d: weight_tensor on the device must be prepared for out_channels = 32, the size of its last axis, "
     "not have the shape []"),
    (call(bias=tensor(layout=TILES)),
     "conv_transpose2d: bias_tensor on the device must be prepared for out_channels = 32: it is TILE with shape []"),
    (call(bias=tensor(1, 1, 1, 32)),
     "conv_transpose2d: bias_tensor on the device must be prepared for out_channels = 32"),
    (conv2d(batch_size=0), "conv2d: batch_size must be at least 1"),
    (conv2d(groups=3), "conv2d: groups must divide in_channels"),
    (conv2d(groups=0), "conv2d: groups must be at least 1"),
    (conv2d(dilation=(0, 1)), "conv2d: dilation must be at least"),
    (conv2d(input_height=1, input_width=64, kernel_size=(1, 1), padding=(0, 0, 0, 0), groups=32, out_channels=32,
            weight=operand(32, 1, 1, 1)),
     "conv2d: groups=32 of one channel each: the real library repeats the weights of a row"),
    (conv2d(weight=operand(32, 64, 3, 3)), "conv2d: weight_tensor must have the shape [64, 32, 3, 3] (out_chann"),
    (conv2d(input_height=9),
     "conv2d: batch_size=1, input_height=9, input_width=8, in_channels=32 are 2304 elements, but input_tensor has"),
    # A 1x1 kernel with stride 3 sees the second slice's row below the image only.
    (conv2d(input=tensor(1, 1, 80, 32), input_height=5, input_width=16, kernel_size=(1, 1), stride=(3, 3),
            weight=operand(64, 32, 1, 1), slice_config=cut(2)),
     "conv2d: slice_config: one of 2 slices lies in the padding alone"),
]
# fmt: on


@pytest.mark.parametrize(("made", "line"), REAL)
def test_refusals_begin_as_the_real_library_does(made, line):
    text = first_refusal(made)
    assert text.startswith(line)
    assert len(text.splitlines()) == 2, "the real library's line, then ours: argument, value, way out"
    assert ":" in text.splitlines()[1]


@pytest.mark.parametrize(("made", "line"), OURS)
def test_what_the_real_library_crashes_on_or_gets_wrong(made, line):
    assert first_refusal(made).startswith(line)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        # the sizes of a weight count, not those of the call
        ({"weight": operand(32, 32, 3, 3), "groups": 2, "shard_layout": HEIGHT},
         "num_blocks_weight_w_per_core 1 should be equal to num_blocks_weight_w 2"),
        ({"weight": operand(32, 16, 3, 3), "groups": 2, "shard_layout": HEIGHT}, ""),
        ({"weight": operand(65, 16, 3, 3), "groups": 2, "shard_layout": HEIGHT}, "Block height 96 must be >= inner"),
        ({"out_channels": 129, "weight": operand(32, 128, 3, 3), "shard_layout": HEIGHT}, "Invalid weight shape."),
        ({"out_channels": 129, "weight": operand(32, 128, 3, 3), "shard_layout": BLOCK}, ""),  # on five cores
        ({"weight": operand(32, 32, 3, 3, layout=TILES), "shard_layout": HEIGHT}, "Block height 96 must be >= inner"),
    ],
)  # fmt: skip
def test_weights_of_other_sizes_than_the_call_says(changes, line):
    text = first_refusal(call(**changes), strict=False).removeprefix("Conv2dDeviceOperation: ")
    assert text.startswith(line) if line else not text


@pytest.mark.parametrize("made", ACCEPTED)
def test_what_the_real_library_accepts(made):
    check_arguments(made, SPEC)
    assert next(operand_refusals(made), None) is None


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (call(padding=(9, 9, 1, 1), output_padding=(0, 0)),
         r"^conv_transpose2d: padding \(9, 9, 1, 1\) leaves no output: it would be -1 high and 15 wide"),
        (conv2d(kernel_size=(11, 3)), r"^conv2d: kernel_size \(11, 3\) .* does not fit an image of 8 x 8"),
        (folded(input=wide_shards(64)), "^conv2d: folding windows of shards that are wider than 32 channels is not"),
    ],
)  # fmt: skip
def test_what_is_refused_where_nothing_is_computed_yet(made, text):
    with pytest.raises(ArgumentError, match=text):
        check_possible(made)


@pytest.mark.parametrize(
    ("made", "ran"),
    [
        (call(input=operand(1, 1, 64, 32, place=L1)), ["InterleavedToShardedDeviceOperation"]),
        (call(slice_config=TWO_SLICES), ["PaddedSliceDeviceOperation"]),
        (call(), ["InterleavedToShardedDeviceOperation"]),
        (sized_call((8, 8), (32, 32), (1, 1), place=L1), []),  # tiles are made afterwards
        (conv2d(), ["InterleavedToShardedDeviceOperation"]),
    ],
)
def test_operands_are_refused_once_the_programs_before_have_run(made, ran):
    bad = replace(made, weight=operand(*made.weight.spec.shape, data_format=INT32))
    check_strict(bad)
    steps = plan_convolution(bad, SPEC, free_l1_bytes=FREE).steps
    assert [step.name for step in steps if isinstance(step, Operation)] == ran
    assert (type(steps[-1]), steps[-1].error) == (Refuse, ArgumentError)
    assert steps[-1].text.startswith("Unsupported data type")


def rows(shape, layout, shard, columns, lines):
    return TensorSpec(shape, BFLOAT16, ROWS, in_box(layout, shard, columns, lines))


# fmt: off
IMAGES = [
    (rows((7, 3, 3, 576), BLOCK, (13, 116), 5, 5), (7, 3, 3, 576),
     "Changing the last dimension of a sharded tensor is not supported unless the shard width matches the input last "
     "dimension. Input shape: Shape([7, 3, 3, 580]), New shape: Shape([7, 3, 3, 576]), Shard width: 116\n"),
    (rows((1, 1, 900, 3), WIDTH, (900, 8), 4, 1), (1, 30, 30, 3),
     "Shard height 2400 must match physical height 900 for width sharded\n"),
    (rows((1, 1, 48, 403), HEIGHT, (32, 408), 7, 4), (1, 24, 2, 403),
     "For valid non-interleaved buffers page size 806 must equal buffer size 39168. For interleaved-buffers, buffer "
     "size should be divisible by the page size\n"),
    (rows((1, 1, 48, 408), HEIGHT, (32, 408), 7, 4), (1, 24, 2, 408), ""),
    (rows((1, 1, 48, 4), HEIGHT, (32, 8), 7, 4), (1, 24, 2, 4), ""),  # a buffer of whole narrow rows
]
# fmt: on


@pytest.mark.parametrize(("spec", "image", "text"), IMAGES)
def test_padded_rows_are_no_image(spec, image, text):
    refusal = view_refusal(spec, image)
    assert (refusal or "").startswith(text)
    assert (refusal is None) is (not text)


@pytest.mark.parametrize(
    ("data_format", "size", "first_line"),
    [
        (BFLOAT8_B, (31, 101), "Input tensor must be in L1"),
        (BFLOAT8_B, (32, 32), "Input Tensor to Conv DRAM should be in Interleaved Memory Layout"),  # a view
        (BFLOAT16, (31, 101), "Input Tensor to Conv DRAM should be in Interleaved Memory Layout"),
    ],
)
def test_block_floats_are_made_an_image_from_shards_in_l1_alone(data_format, size, first_line):
    """They are taken out of their shards first, by a program that reads L1."""
    result = sized_call(size, (28, 4), layout=TILES)
    place = replace(in_box(HEIGHT, (1088, 32), 3), buffer_type=BufferType.DRAM)
    spec = replace(result.input.spec, data_format=data_format, memory_config=place)
    assert first_refusal(replace(result, input=replace(result.input, spec=spec))).startswith(first_line)


# What only a plan shows


def small(channels, scheme, grid, **changes):
    """An 8x8 image in L1, kernel 2, stride 2, with as many output channels as input channels, on given cores."""
    left, top, right, bottom = grid
    cores = CoreRangeSet([CoreRange(CoreCoord(left, top), CoreCoord(right, bottom))])
    given = {"shard_layout": scheme, "override_sharding_config": True, "core_grid": cores}
    return sized_call((8, 8), (channels, channels), (2, 2), place=L1, layout=TILES, stride=(2, 2), **given | changes)


def in_format(made, data_format):
    spec = made.input.spec
    held = TensorSpec(spec.shape, data_format, spec.layout, spec.memory_config)
    return replace(made, input=replace(made.input, spec=held))


def weights(*shape):
    return {"weight": operand(*shape)}


def given_output(scheme, grid):
    return small(160, HEIGHT, grid, override_output_sharding_config=True, override_sharding_config=False,
                 shard_layout=scheme)  # fmt: skip


def pointwise(place=L1, layout=ROWS, out=32, **changes):
    return sized_call((8, 8), (64, out), (1, 1), place=place, layout=layout, with_bias=True, **changes)


def rows_of(count, channels, **changes):
    """A 1x1 kernel over 300 pixels, and an input of other rows or channels."""
    return sized_call((15, 20), (64, 32), (1, 1), with_bias=True, input=tensor(1, 1, count, channels), **changes)


def sticks(channels, **changes):
    return small(channels, HEIGHT, (0, 0, 3, 1), input=operand(1, 1, 64, channels, place=L1), **changes)


GAP = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(3, 0)), CoreRange(CoreCoord(0, 2), CoreCoord(3, 2))])
TURNED = CoreRangeSet([CoreRange(CoreCoord(1, 0), CoreCoord(2, 1))])
ONE, TWO = (f"MatmulDeviceOperation: MatmulMultiCoreReuseMultiCast{kind}ProgramConfig: " for kind in ("1D", ""))
CONV, HALO, MATMUL = (f"{name}DeviceOperation: " for name in ("Conv2d", "Halo", "Matmul"))
UNPLACED = f"{CONV}Multicast runtime arguments target an unplaced core"
NO_RATE = "Unsupported output data type when calculating tilize cycles"
ORIGIN = f"{HALO}Sliding-window shard grid core 0 is 2-0 but the origin-anchored row walk addresses it as 0-0."
PADDING = f"{CONV}Incorrect padding of input channels!"
WIDTHS = f"{MATMUL}The width of the first tensor must be equal to the height of the second tensor. "
CIRCULAR = "Cannot set circular buffer size to {}. This is larger than the associated dynamically allocated L1 ".format
UNTIL_END = MemoryConfig(HEIGHT, BufferType.L1)

# fmt: off
LATE = [
    # WIDTH cores without output channels
    (small(256, WIDTH, (0, 0, 3, 1)), ""),
    (small(128, WIDTH, (0, 0, 3, 1)), UNPLACED),
    (small(64, WIDTH, (0, 0, 0, 1)), ""),
    (small(64, WIDTH, (0, 0, 0, 3)), UNPLACED),
    (small(192, WIDTH, (0, 0, 6, 1)), UNPLACED),  # output cores beyond the columns of the input
    (small(96, WIDTH, (0, 0, 7, 1)), ""),
    (small(256, WIDTH, (0, 0, 3, 0)), ""),
    (small(128, WIDTH, (0, 0, 3, 1), input_height=64, input_width=1), f"{CONV}Reader indices buffer page size"),
    # cores that do not begin at the origin, or have a gap
    *((small(96, scheme, (2, 0, 5, 0)), ORIGIN) for scheme in (WIDTH, HEIGHT, BLOCK)),
    (small(96, HEIGHT, (0, 0, 0, 0), core_grid=GAP),
     f"{HALO}Sliding-window shard grid core 4 is 0-2 but the origin-anchored row walk addresses it as 0-1."),
    (small(256, HEIGHT, (0, 0, 3, 1), memory_config=UNTIL_END), "ReshardDeviceOperation: bad optional access"),
    (small(256, HEIGHT, (0, 0, 3, 1), out_format=BFLOAT8_B, output_layout=ROWS),
     f"{CONV}Only TILE layout is supported for BFLOAT8_B dtype!"),
    (small(32, HEIGHT, (0, 0, 3, 1), out_format=UINT16, output_layout=ROWS),
     f"{CONV}Untilize output requires BFLOAT16 or FLOAT32 data type but got DataType::UINT16"),
    (given_output(BLOCK, (0, 0, 3, 6)), "NHW cores must match for input and output when overriding the grid size."),
    (given_output(None, (0, 0, 1, 7)), "Output sharding config override is only supported for BLOCK_SHARDED layout."),
    (small(96, HEIGHT, (0, 0, 3, 1), activation=("leaky_relu", ())),
     f"{CONV}Undefined non-parametrized op type UnaryOpType::LEAKY_RELU"),
    # Formats without a rate, where shares are two tiles high, so that a second reader may pay
    (in_format(small(32, HEIGHT, (0, 0, 3, 1)), UINT16), ""),
    (in_format(small(32, HEIGHT, (0, 0, 3, 0)), UINT16), f"{CONV}{NO_RATE}"),
    (in_format(small(32, HEIGHT, (0, 0, 3, 0), force_split_reader=True), UINT16), f"{CONV}{NO_RATE}"),
    # Slices are chosen for an image of whole tiles; the rows of any other can not be moved in this format.
    (in_format(sized_call((64, 64), (32, 32), (2, 2), layout=TILES, stride=(2, 2)), UINT16), f"{NO_RATE}\n"),
    (in_format(sized_call((64, 33), (32, 32), (2, 2), layout=TILES, stride=(2, 2)), UINT16),
     "Can only work with bfloat16/float32 or int32/uint32 tensors"),
    # Rows of eight bits are no rows of bfloat16: 32 rows on a core, which L1 aligns to 16 bytes each.
    (in_format(sticks(16), UINT8), f"{HALO}{CIRCULAR(1024)}"),
    (in_format(sticks(32), UINT8), f"{HALO}{CIRCULAR(2048)}"),
    # Shards hold 16 channels of one column of cores, or 32 of two; 5 channels are padded to 8, and 9 to 16.
    (small(16, HEIGHT, (0, 0, 1, 3), input=operand(1, 1, 64, 5, place=L1)), PADDING),
    (small(16, HEIGHT, (0, 0, 1, 3), input=operand(1, 1, 64, 9, place=L1)), ""),
    (small(32, BLOCK, (0, 0, 1, 3), input=operand(1, 1, 64, 20, place=L1)), ""),
    # Weights are laid out by their own shape.
    (small(32, HEIGHT, (0, 0, 3, 1), **weights(32, 40, 2, 2)),
     f"{CONV}num_blocks_weight_w_per_core 1 should be equal to num_blocks_weight_w 2"),
    (call(bias=tensor(32), **PREPARED_FOR_32), f"{CONV}Bias should have batch == 1"),
    (call(bias=tensor(1, 32), **PREPARED_FOR_32), f"{CONV}ShapeBase[] index out of range. 3 not in [-4, 2)"),
    # Tiles of an image of fewer rows are a view of the tensor, whose slices are counted.
    (call(input=tensor(1, 9, 8, 32, layout=TILES), slice_config=cut(99)), "Number of slices (99) exceeds the maximum"),
    (call(weight=tensor(32, 32, 3, 3), output_layout=ROWS), f"{CONV}Weights should be in TILE layout."),
    (call(weight=tensor(32, 32, 3, 3), bias=operand(1, 1, 1, 32)), f"{CONV}Weights should be in TILE layout."),
    (small(32, HEIGHT, (0, 0, 3, 1), **weights(65, 32, 2, 2)), "Block height 64 must be >= inner dimension 192"),
    (small(64, HEIGHT, (0, 0, 3, 1), **weights(64, 20, 2, 2)),
     f"{CONV}Invalid weight shape. Incorrect weight tensor."),
    # One slice is found to do, so that the input of three axes is sharded; too many slices are so in any case.
    (sized_call((8, 8), (32, 32), (2, 2), slice_config=cut(), weights_format=BFLOAT16, input=tensor(1, 64, 32)),
     RANK(3)),
    (sized_call((8, 8), (32, 32), (2, 2), stride=(2, 2), slice_config=cut(40, ACROSS), input=tensor(1, 1, 65, 32)),
     "Number of slices (40) exceeds the maximum allowed"),
    # The first row of outputs of a 1x1 kernel at stride 3 is padding: the real library never gets past it.
    (conv2d(input=tensor(1, 1, 256, 32), input_height=16, input_width=16, kernel_size=(1, 1), stride=(3, 3),
            weight=operand(64, 32, 1, 1), slice_config=cut(6)), "No slice has input: 6 slices of type DRAM_HEIGHT"),
    # 1x1 kernels, which run as a matmul
    *((in_format(pointwise(shard_layout=scheme, layout=TILES), UINT32),
       f"{MATMUL}Unsupported data format for input A: DataType::UINT32") for scheme in (HEIGHT, BLOCK, None)),
    (pointwise(layout=TILES, weights_format=UINT32), f"{MATMUL}Unsupported data format for input B: DataType::UINT32"),
    (pointwise(in_box(WIDTH, (64, 32), 2), TILES), f"{TWO}Unsupported memory layout TensorMemoryLayout::WIDTH_"),
    (pointwise(shard_layout=BLOCK, activation=("leaky_relu", (0.1,))),
     f"{MATMUL}Unsupported UnaryOpType for fused activation: UnaryOpType::LEAKY_RELU"),
    (pointwise(out=64, shard_layout=BLOCK, **GRID, core_grid=box(4, 2)),
     f"{MATMUL}K dimension in tiles must match between input A (2) and input B (4)"),
    (pointwise(in_box(HEIGHT, (32, 64), 2), TILES, reshard_if_not_optimal=True), f"{NO_SHARDS}INTERLEAVED"),
    (rows_of(100, 40), WIDTHS),
    (rows_of(100, 90, shard_layout=HEIGHT), WIDTHS),
    (rows_of(350, 64, shard_layout=HEIGHT), f"{ONE}number of M blocks ceil(M/per_core_M)=11 "),
    (rows_of(350, 64, shard_layout=BLOCK), f"{TWO}Num output blocks along y (6) must be smaller "),
    (rows_of(100, 64, shard_layout=BLOCK), f"{TWO}per_core_M (2) must equal shard_shape[0] / "),
    (rows_of(600, 64, shard_layout=HEIGHT), "Target number of cores 19 is greater than total number of available core"),
    (pointwise(layout=TILES, shard_layout=HEIGHT, **GRID, core_grid=TURNED),
     f"{ONE}output shard grid {{[1-0 - 2-1]}} must lie within extent 2-2"),
    (pointwise(layout=TILES, shard_layout=BLOCK, **GRID, core_grid=TURNED),
     f"{TWO}output shard grid {{[1-0 - 2-1]}} must lie within extent 2-2"),
    (pointwise(in_box(HEIGHT, (64, 64), 2), TILES, out=64), f"{ONE}per_core_M (1) must equal"),
    (pointwise(in_box(BLOCK, (64, 32), 2, 2), TILES, out=64), f"{TWO}per_core_M (1) must equal"),
]
# fmt: on


@pytest.mark.parametrize(("made", "line"), LATE)
def test_what_only_a_plan_shows(made, line):
    text = first_refusal(made, strict=False)
    assert text.startswith(line)
    assert (not text) is (not line)


def test_weights_and_bias_are_laid_out_by_their_own_shapes():
    def prepared(made):
        tensors = plan_convolution(made, SPEC, free_l1_bytes=FREE).tensors
        return [tensors[name] for name in ("weight.prepared", "bias.prepared") if name in tensors]

    (wider,) = prepared(small(32, HEIGHT, (0, 0, 3, 1), **weights(32, 40, 2, 2)))
    (narrower,) = prepared(small(64, BLOCK, (0, 0, 1, 1), **weights(32, 20, 2, 2)))
    assert (wider.padded_shape, narrower.padded_shape[-1]) == ((1, 1, 128, 64), 64)
    biased = prepared(small(32, HEIGHT, (0, 0, 3, 1), **weights(32, 8, 2, 2), bias=operand(1, 1, 1, 32)))
    assert [tensor.shape[-1] for tensor in biased] == [8, 32]
