"""Constraints of calls, compared with those that the real library 0.81.1 gave on its mock device."""

import numpy as np
import pytest

import ttsim
from tests.sizes import conv_sizes
from ttsim import graph

KIB = 1024
TILES, ROWS = ttsim.TILE_LAYOUT, ttsim.ROW_MAJOR_LAYOUT
DRAM, L1 = ttsim.DRAM_MEMORY_CONFIG, ttsim.L1_MEMORY_CONFIG


@pytest.fixture(scope="module")
def device():
    with ttsim.open_device(values="off", l1_small_size=32 * KIB) as opened:
        yield opened


def shards(scheme, height, width, columns, rows=1):
    grid = ttsim.CoreRangeSet([ttsim.CoreRange(ttsim.CoreCoord(0, 0), ttsim.CoreCoord(columns - 1, rows - 1))])
    shard_spec = ttsim.ShardSpec(grid, (height, width), ttsim.ShardOrientation.ROW_MAJOR)
    return ttsim.MemoryConfig(getattr(ttsim.TensorMemoryLayout, scheme), ttsim.BufferType.L1, shard_spec)


def spec(*shape, memory=DRAM, layout=TILES, dtype=ttsim.bfloat16):
    return ttsim.TensorSpec(shape, dtype, layout, memory_config=memory)


def banks(scheme, height, width, count):
    """Shards in so many banks of DRAM."""
    config = shards(scheme, height, width, count)
    return ttsim.MemoryConfig(config.memory_layout, ttsim.BufferType.DRAM, config.shard_spec)


WIDE = shards("HEIGHT_SHARDED", 32, 384, 3)  # rows of 192 columns and as much padding
CONV = {
    "input_tensor": spec(1, 1, 635, 32, layout=ROWS),
    "weight_tensor": ttsim.Tensor(np.zeros((40, 32, 2, 2)), ttsim.bfloat16),
    "bias_tensor": ttsim.Tensor(np.zeros((1, 1, 1, 40)), ttsim.bfloat16),
    "conv_config": ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat8_b, act_block_h_override=32),
    "slice_config": ttsim.Conv2dL1FullSliceConfig,
    "stride": (4, 4),
    **conv_sizes(5, 127, 32, 40, 2, 2),
}


def dram_columns(width):
    """The first operand and the program of a matmul by columns in two of twelve banks of DRAM."""
    return (
        spec(1, 1, 32, 192, memory=shards("WIDTH_SHARDED", 32, 96, 2)),
        spec(1, 1, 192, width, memory=banks("WIDTH_SHARDED", 192, 32, 12)),
    )


def dram_program(**fields):
    config = ttsim.MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig
    program = config(in0_block_w=3, per_core_M=1, per_core_N=2, **fields)
    return {"program_config": program, "memory_config": ttsim.L1_WIDTH_SHARDED_MEMORY_CONFIG}


THREE = (3, 64, 320)
HALVES = banks("HEIGHT_SHARDED", 96, 320, 2)
USAGES = {
    # shards of DRAM are put together in L1: 96 rows of 640 B, and four sticks of 672 B that align them
    "rows into banks": (ttsim.to_memory_config, (spec(*THREE, layout=ROWS), HALVES), {}, (0, 0, 64128, 0)),
    "out of banks": (ttsim.to_memory_config, (spec(*THREE, memory=HALVES), DRAM), {}, (0, 0, 4 * KIB, 0)),
    "between banks": (
        ttsim.reshard,
        (spec(*THREE, memory=HALVES), banks("WIDTH_SHARDED", 192, 160, 2)),
        {},
        (0, 0, 2 * KIB, 0),
    ),
    "rows out of banks": (
        ttsim.to_memory_config,
        (spec(*THREE, layout=ROWS, memory=HALVES), shards("BLOCK_SHARDED", 96, 160, 2, 2)),
        {},
        (0, 30 * KIB, 32000, 30 * KIB),
    ),
    "readers of two banks": (ttsim.matmul, dram_columns(64), dram_program(), (0, 10240, 43008, 4096)),
    # the numbers of these two are not known, but their memory is
    "heads with padding": (
        ttsim.experimental.nlp_concat_heads,
        (spec(2, 4, 64, 48, memory=L1),),
        {},
        (0, 4096, 36864, 2048),
    ),
    "activations of integers": (
        ttsim.subalpha,
        (*[spec(4, 287, 223, dtype=ttsim.uint32)] * 2, 1.0),
        {},
        (28672, 0, 28672, 0),
    ),
    # a slice of twice the rows that the cache has room for
    "sharded_to_interleaved_partial": (
        ttsim.sharded_to_interleaved_partial,
        (spec(1, 1, 96, 64, memory=shards("HEIGHT_SHARDED", 32, 64, 3)), spec(1, 1, 256, 64), 2, 0),
        {},
        (0, 4096, 4096, 0),
    ),
    # rows of two places that have parts of 64 bytes in common
    "assign": (
        ttsim.assign,
        (
            spec(1, 1, 50, 96, layout=ROWS, memory=shards("WIDTH_SHARDED", 50, 128, 7, 3)),
            spec(1, 1, 50, 96, layout=ROWS, memory=shards("HEIGHT_SHARDED", 2, 96, 8, 4)),
        ),
        {},
        (0, 13184, 13312, 384),
    ),
    # a mask of rows in L1 becomes one row, and tiles, there
    "softmax": (
        ttsim.scale_mask_softmax_in_place,
        (spec(1, 4, 128, 512), 0.5, spec(1, 1, 16, 32, layout=ROWS, memory=L1)),
        {},
        (0, 3136, 155712, 0),
    ),
    # cores align the rows of a convolution's input in a scratchpad
    "conv2d": (ttsim.conv2d, (), CONV, (14784, 57216, 57600, 4096)),
    # one block of 2x2 tiles
    "matmul": (
        ttsim.matmul,
        (spec(64, 64, memory=L1), spec(64, 64)),
        {"memory_config": ttsim.L1_BLOCK_SHARDED_MEMORY_CONFIG},
        (0, 10 * KIB, 26 * KIB, 8 * KIB),
    ),
    # of squares on the way one tile each, where the operands lie in no shards
    "hypot": (
        ttsim.hypot,
        (*[spec(3, 3, 2, memory=L1)] * 2,),
        {"memory_config": shards("HEIGHT_SHARDED", 32, 32, 3)},
        (12288, 6144, 18432, 2048),
    ),
    # shards of the tensor that hold no tile grow to one
    "shards of less than a tile": (
        ttsim.relu,
        (spec(160, 128, layout=ROWS, memory=shards("HEIGHT_SHARDED", 20, 128, 4, 2)),),
        {"memory_config": ttsim.L1_HEIGHT_SHARDED_MEMORY_CONFIG},
        (0, 13312, 21504, 8192),
    ),
    # the one axis of a tensor has nothing to swap with
    "transpose": (
        ttsim.transpose,
        (spec(16, layout=ROWS, dtype=ttsim.float32, memory=shards("BLOCK_SHARDED", 1, 8, 2, 8)), 0, 0),
        {},
        (0, 32, 32, 32),
    ),
    # a tensor of the device stays in its memory
    "to": (lambda x: x.to(x.device(), L1), (spec(32, 64),), {}, (0, 0, 0, 0)),
    # a method of tensors runs the same program
    "reshape": (lambda x: x.reshape(256, 16, 72), (spec(4, 384, 192),), {}, (0, 0, 5504, 0)),
    # the tensor of floats lies where the result does
    "clip": (
        ttsim.clip,
        (spec(64, 64, dtype=ttsim.int32),),
        {"min": 0.0, "memory_config": L1},
        (0, 8 * KIB, 24 * KIB, 4 * KIB),
    ),
    # rows are written without their padding, which shards them otherwise
    "slice": (
        ttsim.slice,
        (spec(1, 1, 100, 384, layout=ROWS), (0, 0, 0, 0), (1, 1, 96, 192)),
        {"memory_config": WIDE},
        (0, 48 * KIB, 55312, 24 * KIB),
    ),
    # rows are written as tiles, of which there are fewer than 16 bits count
    "untilize": (
        ttsim.untilize,
        (spec(1, 1, 65536, 32, memory=shards("HEIGHT_SHARDED", 65536, 32, 1)),),
        {},
        (0, 8192 * KIB, 8192 * KIB, 4096 * KIB),
    ),
}


@pytest.mark.parametrize("name", USAGES)
def test_usage_is_that_of_the_real_planner(device, name):
    op, arguments, named, usage = USAGES[name]
    if op is ttsim.conv2d:
        named = named | {"device": device}
    response = graph.query_op_constraints(op, device, *arguments, **named)
    assert (response.error_message, response.resource_usage) == (None, usage)


REPEATS = {
    # cores repeat their own rows, but never make rows longer
    "down": ((96, 64), shards("WIDTH_SHARDED", 96, 32, 2), ROWS, (2, 1), (192, 32)),
    "across": ((96, 64), shards("WIDTH_SHARDED", 96, 32, 2), ROWS, (1, 2), (96, 8)),
    "whole rows": ((96, 536), shards("WIDTH_SHARDED", 96, 536, 1), ROWS, (1, 2), (96, 536)),
    "blocks": ((100, 80), shards("BLOCK_SHARDED", 50, 40, 2, 2), ROWS, (1, 2), (32, 32)),
    "rank 5": ((1, 1, 1, 128, 128), shards("WIDTH_SHARDED", 128, 32, 4), TILES, (3, 1, 1, 1, 1), (384, 32)),
}


@pytest.mark.parametrize("name", REPEATS)
def test_repeated_shards_are_those_of_the_real_planner(device, name):
    shape, memory, layout, counts, shard_shape = REPEATS[name]
    source = spec(*shape, memory=memory, layout=layout)
    response = graph.query_op_constraints(ttsim.repeat, device, source, counts)
    assert tuple(response.output_tensor_specs[0].memory_config.shard_spec.shape) == shard_shape


def test_repeated_rows_take_as_many_pages_as_l1_holds(device):
    """Rows of 214,208 B: six pages, three of which are waited for together."""
    response = graph.query_op_constraints(ttsim.repeat, device, spec(3, 2, 2, 26776, layout=ROWS), (1, 1, 1, 4))
    assert tuple(response.resource_usage) == (1_285_248, 0, 1_285_248, 0)


ONE_CORE = shards("HEIGHT_SHARDED", 65536, 8, 1)
REFUSALS = {
    "blocks in banks": (
        ttsim.to_memory_config,
        (spec(*THREE, memory=banks("BLOCK_SHARDED", 192, 160, 2)), DRAM),
        {},
        "We don't support DRAM block sharding",
    ),
    "blocks into banks": (
        ttsim.interleaved_to_sharded,
        (spec(*THREE), banks("BLOCK_SHARDED", 192, 160, 2)),
        {},
        "We don't support DRAM block sharding",
    ),
    "sharded_to_interleaved": (
        ttsim.sharded_to_interleaved,
        (spec(*THREE, memory=HALVES), L1),
        {},
        "Input tensor must be in L1",
    ),
    # what a pool does not take comes before shards that do not hold its result
    "avg_pool2d": (
        ttsim.avg_pool2d,
        (spec(1, 1, 6144, 256, layout=ROWS, dtype=ttsim.float32), 1, 1, 6144, 256, (1, 3), (3, 3), (0, 1)),
        {"memory_config": shards("WIDTH_SHARDED", 6144, 64, 2)},
        "Only BFLOAT16 supported for now",
    ),
    "pad in front": (
        ttsim.pad,
        (spec(3, 16, 192), ((0, 0), (0, 0), (2, 1)), -2.0),
        {"memory_config": ttsim.L1_HEIGHT_SHARDED_MEMORY_CONFIG},
        "ttnn.pad: on device tile padding does not support front padding",
    ),
    "rows of blocks in banks": (
        ttsim.untilize_with_unpadding,
        (spec(40, 64, memory=banks("HEIGHT_SHARDED", 32, 64, 2)), [39, 63]),
        {},
        "HEIGHT_SHARDED -> HEIGHT_SHARDED output must be in L1; got buffer_type=BufferType::DRAM",
    ),
    "rows of tiles in banks": (
        ttsim.untilize_with_unpadding,
        (spec(40, 64, memory=banks("WIDTH_SHARDED", 64, 32, 2)), [39, 63]),
        {"memory_config": DRAM},
        "DFB 'sh_in' borrows memory from TensorParameter 'sh_input', but its TensorSpec is not L1-resident (L1 is "
        "required). Both L1 and L1_SMALL are accepted.",
    ),
    "operands in banks": (
        ttsim.matmul,
        (spec(1, 1, 128, 384, memory=banks("WIDTH_SHARDED", 128, 64, 6)), spec(1, 1, 384, 64)),
        {},
        "DFB 'in0_sharded' borrows memory from TensorParameter 'in0', but its TensorSpec is not L1-resident (L1 is "
        "required). Both L1 and L1_SMALL are accepted.",
    ),
    "rows of other banks": (
        ttsim.reshard,
        (spec(*THREE, layout=ROWS, memory=HALVES), banks("WIDTH_SHARDED", 192, 160, 2)),
        {},
        "Number of input (192) and output (384) pages must match",
    ),
    "dataflow pages": (
        ttsim.to_memory_config,
        (spec(1, 1, 65536, 8, layout=ROWS), ONE_CORE),
        {},
        "DFB 0: capacity 65536 exceeds the maximum 65535 (HW BUFFER_CAPACITY is 16 bits); reduce num_entries.",
    ),
    "pages": (
        ttsim.max_pool2d,
        (spec(1, 1, 66000, 8, layout=ROWS, memory=shards("HEIGHT_SHARDED", 66000, 8, 1)), 1, 264, 250, 8),
        {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0), "dilation": (1, 1)},
        "For buffer index 0, number of CB pages 66000 is greater than 65535. Would cause wraparound in the CB "
        "calculations.",
    ),
    # pages fill the rows of all three tensors: 15 of 32 bytes in a row of the result, whose index is 16
    "concat": (
        ttsim.concat,
        (
            [
                spec(1, 1, 9000, side, layout=ROWS, dtype=ttsim.uint32, memory=shards("HEIGHT_SHARDED", 9000, side, 1))
                for side in (48, 24, 48)
            ],
            3,
        ),
        {"memory_config": shards("HEIGHT_SHARDED", 9000, 120, 1)},
        "For buffer index 16, number of CB pages 135000 is greater than 65535. Would cause wraparound in the CB "
        "calculations.",
    ),
    # two pages of a row have no room beside all results in L1 together, so the older program repeats it
    "repeat": (
        ttsim.repeat,
        (spec(1, 2, 1, 96619, layout=ROWS, memory=L1), (1, 4, 3, 3)),
        {},
        "Statically allocated dataflow buffers on core range [0-0 - 7-7] grow to 3197904 B which is beyond max L1 size "
        "of 1499136 B",
    ),
    # which shards do not hold the result is seen before, or after, what else is wrong
    "broadcast_to": (
        ttsim.experimental.broadcast_to,
        (spec(320, 32), (3, 3, 320, 32)),
        {"memory_config": shards("HEIGHT_SHARDED", 96, 32, 4)},
        "Number of shards along height 30 must not exceed number of cores 4",
    ),
    "cumprod": (
        ttsim.cumprod,
        (spec(1, 50, 384, layout=ROWS, memory=shards("HEIGHT_SHARDED", 1, 384, 8, 7)), -1),
        {"dtype": ttsim.float32},
        "Number of shards along height 19200 must not exceed number of cores 56",
    ),
    "expand": (
        ttsim.expand,
        (spec(1, 1, 1, 1, dtype=ttsim.uint8), (40, 1, 32, -1)),
        {"memory_config": shards("BLOCK_SHARDED", 32, 32, 8, 8)},
        "Can only tilize bfloat16/float32 or int32/uint32/uint16 or fp8_e4m3 tensors",
    ),
    "slice": (
        ttsim.slice,
        (spec(1, 50, memory=shards("HEIGHT_SHARDED", 32, 64, 7, 8)), (0, 0), (1, 50), (3, 1)),
        {"memory_config": shards("WIDTH_SHARDED", 32, 32, 5, 8)},
        "Shard height 32 must match physical height 1 for width sharded",
    ),
    "heads of shards": (
        ttsim.experimental.nlp_create_qkv_heads,
        (spec(1, 1, 224, 1152, memory=shards("HEIGHT_SHARDED", 64, 1152, 1, 6)),),
        {"num_heads": 8, "num_kv_heads": 8, "memory_config": DRAM},
        "Shard spec shape[0] (64) must equal physical volume / padded shape[-1] (224)",
    ),
    "clone": (
        ttsim.clone,
        (spec(3, 3, 1, 151, 64, layout=ROWS),),
        {"dtype": ttsim.bfloat4_b},
        "Only TILE layout is supported for BFLOAT8_B dtype!",
    ),
    "add": (
        ttsim.add,
        (spec(1, 1, 128, 8, layout=ROWS, dtype=ttsim.uint8), spec(1, 1, 128, 8, dtype=ttsim.uint8)),
        {},
        "Can only tilize bfloat16/float32 or int32/uint32/uint16 or fp8_e4m3 tensors",
    ),
    "several readers of a bank": (
        ttsim.matmul,
        dram_columns(64),
        dram_program(num_workers_per_dram_bank=2),
        "MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig: num_workers_per_dram_bank > 1 is currently supported "
        "only on Blackhole",
    ),
    "concat of blocks": (
        ttsim.concat,
        ([spec(1, 1, 3000, 24, layout=ROWS, memory=shards("BLOCK_SHARDED", 3000, 24, 1))] * 2, 3),
        {"memory_config": shards("BLOCK_SHARDED", 3000, 48, 1)},
        "For buffer index 0, number of CB pages 72000 is greater than 65535. Would cause wraparound in the CB "
        "calculations.",
    ),
    # shards that do not hold the result come before rows that end between aligned addresses
    "pad": (
        ttsim.pad,
        (spec(2, 2, 1, 117, layout=ROWS, dtype=ttsim.float32), ((0, 16), (0, 2), (32, 0), (1, 2)), 0.0),
        {"memory_config": shards("HEIGHT_SHARDED", 1, 117, 8, 6)},
        "Shard width 117 must match physical width 234 for height sharded",
    ),
}


@pytest.mark.parametrize(
    ("shape", "free_bytes", "refusal"),
    [
        ((64, 64), 6816, None),  # tiles alone fit
        ((2048, 2048), 6816, "No solution found for single_block_size"),
        ((2048, 2048), 8864, None),
        ((2048, 2048), 2720, "single_block_size_limit must be at least 1"),
    ],
)
def test_rows_of_tiles_are_cut_by_the_free_l1(device, shape, free_bytes, refusal):
    """Of bfloat16 in DRAM; refusals are those of the real library with as much free below one tensor."""
    lowest = device.machine.spec.l1.base_bytes + free_bytes
    top = device.machine.spec.l1.bytes - device.machine.l1_small_bytes
    held = graph.AllocationRecord(ttsim.BufferType.L1, lowest, top - lowest)
    state = graph.MockAllocatorState().with_allocations([held])
    answer = graph.query_op_constraints_with_initial_state(ttsim.tilize, device, state, spec(*shape, layout=ROWS))
    error = answer.response.error_message
    assert (error and error.partition("\n")[0]) == refusal


def test_untilize_reads_ahead_only_where_l1_holds_two_rows(device):
    """Two rows of 128 tiles of float32 take 2 MiB, for each of 64 cores that has two."""
    wide = spec(4096, 4096, dtype=ttsim.float32)
    assert graph.query_op_constraints(ttsim.untilize, device, wide).error_message is None


@pytest.mark.parametrize(
    ("source", "usage"),
    [
        (spec(1, 1, 40, 6230), (1_198_080, 0, 1_198_080, 0)),  # two rows of 195 tiles read ahead, one written
        (spec(1, 1, 40, 4000), (1_024_000, 0, 1_024_000, 0)),  # two of both
        (spec(1, 1, 20, 8000), (0, 0, 24_576, 0)),  # padding of wide rows is cut off by an older program
        # and rows that have no room beside a result in L1 are untilized by one, too
        (spec(1, 1, 4096, 6240, memory=L1, dtype=ttsim.bfloat8_b), (0, 1_223_040, 1_351_616, 798_720)),
    ],
)
def test_generated_code_holds_as_many_rows_of_tiles_as_fit(device, source, usage):
    assert tuple(graph.query_op_constraints(ttsim.untilize, device, source).resource_usage) == usage


def test_numbers_that_are_not_known_are_refused_where_values_are_computed():
    with ttsim.open_device() as computing:
        heads = ttsim.ones((1, 2, 32, 48), layout=TILES, device=computing)
        with pytest.raises(ttsim.TTSimError, match='give a multiple of 32, or open the device with values="off"'):
            ttsim.experimental.nlp_concat_heads(heads)


def test_softmax_of_attention_returns_four_axes(device):
    response = graph.query_op_constraints(ttsim.transformer.attention_softmax, device, spec(128, 50), head_size=32)
    assert tuple(response.output_tensor_specs[0].shape) == (1, 1, 128, 50)


def test_a_normalization_allocates_its_result_before_its_checks(device):
    """HEIGHT shards are refused, but only where their copy has a place."""
    source = spec(1, 1, 24576, 128, dtype=ttsim.float32, memory=shards("HEIGHT_SHARDED", 1536, 128, 4, 4))
    held = graph.AllocationRecord(ttsim.BufferType.L1, 466_368, 1_000_000)
    state = graph.MockAllocatorState().with_allocations([held])
    for memory_config, first in ((None, "Out of Memory"), (DRAM, "Height sharded inputs are not supported.")):
        ask = graph.query_op_constraints_with_initial_state
        output = ask(ttsim.layer_norm, device, state, source, memory_config=memory_config)
        assert output.response.error_message.startswith(first)


@pytest.mark.parametrize(
    ("place", "usage", "first"),
    [
        (shards("WIDTH_SHARDED", 32, 48, 2), (0, 3072, 3840, 3072), ""),
        (
            banks("WIDTH_SHARDED", 32, 48, 2),
            (0, 0, 4864, 0),
            "Output shard row size 96 bytes must be aligned to 64 bytes buffer alignment requirement",
        ),
    ],
)
def test_rows_are_aligned_by_the_memory_that_they_go_to(place, usage, first):
    """32 rows of 96 B on Blackhole, whose L1 aligns 16 B and DRAM 64 B; and four sticks of 192 B that align them."""
    rows, tiles = (spec(32, 96, layout=layout) for layout in (ROWS, TILES))
    with ttsim.open_device(spec="blackhole_p150", values="off") as large:
        assert graph.query_op_constraints(ttsim.interleaved_to_sharded, large, rows, place).resource_usage == usage
        message = graph.query_op_constraints(ttsim.untilize, large, tiles, memory_config=place).error_message
    assert (message or "").partition("\n")[0] == first


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_begin_like_those_of_the_real_planner(device, name):
    op, arguments, named, first = REFUSALS[name]
    message = graph.query_op_constraints(op, device, *arguments, **named).error_message
    assert str(message).splitlines()[0] == first
