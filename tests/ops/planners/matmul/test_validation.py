from dataclasses import replace

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import ArgumentError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16, INT32
from ops.planners.matmul import MatmulArguments, validate

ONE_CORE = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(0, 0))])
SHARDED = MemoryConfig(
    TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(ONE_CORE, (64, 96), ShardOrientation.ROW_MAJOR)
)


def matrix(*shape, data_format=BFLOAT16, layout=Layout.TILE, place=DRAM_MEMORY_CONFIG):
    return TensorSpec(shape, data_format, layout, place)


def call(**changes):
    good = MatmulArguments(
        first=matrix(64, 96), second=matrix(96, 128), bias=None, out_format=None, memory_config=DRAM_MEMORY_CONFIG
    )
    return replace(good, **changes)


def test_good_calls_pass():
    validate(call())
    validate(call(first=matrix(1, 1, 64, 96), bias=matrix(128)))
    validate(call(bias=matrix(1, 1, 1, 128)))
    validate(call(first=matrix(2, 3, 64, 96)))
    validate(call(first=matrix(2, 64, 96), second=matrix(2, 96, 128)))
    validate(call(first=matrix(1, 64, 96), second=matrix(2, 96, 128)))
    validate(call(first=matrix(96, 64), second=matrix(128, 96), transpose_a=True, transpose_b=True))


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"second": matrix(64, 128)},
            "The width of the first tensor must be equal to the height of the second tensor. "
            "Mismatch: width=96 height=64",
        ),
        ({"first": matrix(64, 96, layout=Layout.ROW_MAJOR)}, "Inputs to matmul must be tilized"),
        ({"first": matrix(64, 96, data_format=INT32)}, "Unsupported data format for input A: DataType::INT32"),
        ({"second": matrix(96, 128, data_format=INT32)}, "Unsupported data format for input B: DataType::INT32"),
        ({"second": matrix(2, 96, 128)}, "When in1 rank greater than in0 rank front dimensions need to be 1"),
        (
            {"first": matrix(1, 1, 64, 96), "second": matrix(2, 96, 128)},
            "Batched (non-bcast) matmul requires inputs of the same rank, got a_shape rank: 4 vs b_shape rank: 3",
        ),
        (
            {"first": matrix(2, 3, 64, 96), "second": matrix(1, 3, 96, 128)},
            "bmm (non-bcast matmul) expects input tensors of shapes BCMK*BCKN=BCMN or batch dimension 0 mismatch: "
            "a=2 vs b=1 (dimension mismatch only allowed when all batch dimensions of a are size 1 and using "
            "MatmulMultiCoreReuseMultiCast1DProgramConfig with fuse_batch=false, fused_activation=none, "
            "mcast_in0=false, and non-sharded inputs for in0 reuse optimization)",
        ),
    ],
)
def test_what_the_real_library_refuses(changes, line):
    with pytest.raises(ArgumentError) as refused:
        validate(call(**changes))
    assert str(refused.value).splitlines()[0] == line


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"first": matrix(96)}, "input_tensor_a must have at least two axes"),
        ({"out_format": INT32}, "dtype must be one of bfloat16, float32, bfloat8_b, bfloat4_b, not int32"),
        ({"first": matrix(64, 96, place=SHARDED)}, "input_tensor_a must be interleaved, not HEIGHT_SHARDED"),
        ({"memory_config": SHARDED}, "memory_config must be interleaved"),
        ({"bias": matrix(64, 128)}, r"bias must be a single row of 128 columns, \[\.\.\., 1, 128\]"),
        ({"bias": matrix(1, 64)}, "bias must be a single row of 128 columns"),
        ({"bias": matrix()}, r"bias must be a single row of 128 columns, .* not the shape \[\]"),
        ({"bias": matrix(1, 128, layout=Layout.ROW_MAJOR)}, "bias must be in TILE layout"),
    ],
)
def test_what_is_not_simulated(changes, text):
    with pytest.raises(ArgumentError, match=text):
        validate(call(**changes))
