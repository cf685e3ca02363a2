"""Device operations and buffers of sort, as ttnn 0.81.1 plans them on a device of 8x8 cores."""

import re

import numpy as np
import pytest

import ttsim
from device.cores import first_cores
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16, FLOAT32, INT32, UINT16, UINT32
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.sort import SortArguments, has_order, plan_sort

SPEC = load_spec("wormhole_n150")


def planned(shape, dim=-1, data_format=BFLOAT16, layout=Layout.TILE):
    return plan_sort(TensorSpec(shape, data_format, layout), SortArguments(dim=dim), SPEC)


def operations(plan):
    return [
        (step.name.removesuffix("DeviceOperation"), *(buffer.size_bytes for buffer in step.circular_buffers))
        for step in plan.steps
        if isinstance(step, Operation)
    ]


@pytest.mark.parametrize(
    ("shape", "data_format", "expected"),
    [
        ((1, 1, 32, 64), BFLOAT16, [8192, 8192, 4096, 4096, 4096, 4096, 1024]),
        ((1, 1, 32, 1024), BFLOAT16, [8192, 8192, 65536, 65536, 4096, 4096, 1024]),
        ((1, 1, 64, 128), FLOAT32, [16384, 16384, 16384, 16384, 8192, 8192, 1024]),
        ((1, 1, 64, 128), UINT16, [16384, 16384, 16384, 16384, 8192, 8192, 1024, 2048, 2048]),
    ],
)
def test_circular_buffers(shape, data_format, expected):
    assert operations(planned(shape, data_format=data_format)) == [("Sort", *expected)]


@pytest.mark.parametrize(
    ("device", "layout", "columns", "data_format", "cores", "expected"),
    [
        # 64 cores hold four tiles each: two on their way in, out, to another core and back; where cores lie; a flag
        ("wormhole_n150", Layout.TILE, 8192, BFLOAT16, 64, [4096, 4096, 8192, 8192, *[4096] * 6, 4096, 2048]),
        # places beyond 65,535 take 32 bits; in rows a core tilizes its part
        (
            "wormhole_n150", Layout.ROW_MAJOR, 65536, BFLOAT16, 64,
            [65536, 8192, *[65536, 131072] * 3, *[4096, 8192] * 2, 4096, 2048],
        ),
        # 128 of 130 cores hold two tiles each; so many cores do not hold 512 tiles in equal parts
        ("blackhole_p150", Layout.TILE, 8192, FLOAT32, 128, [8192] * 10 + [4096, 2048]),
        ("blackhole_p150", Layout.TILE, 16384, BFLOAT16, 130, [4096, 4096, 8192, 8192, 4096, 4096]),
        # parts of integers are not exchanged: 63 cores of pairs, and one in the lead
        (
            "wormhole_n150", Layout.ROW_MAJOR, 4096, UINT16, 64,
            [8192, 8192, 16384, 16384, 8192, 8192, 8192, 8192, 64, 128, 2048, 2048],
        ),
    ],
)  # fmt: skip
def test_wide_rows_are_shared(device, layout, columns, data_format, cores, expected):
    plan = plan_sort(TensorSpec((1, 1, 32, columns), data_format, layout), SortArguments(), load_spec(device))
    assert operations(plan) == [("Sort", *expected)]
    (step,) = (step for step in plan.steps if isinstance(step, Operation))
    assert step.circular_buffers[0].cores.num_cores() == cores


def test_wide_rows_are_in_order():
    """65,535 columns are padded to 65,536, whose places take 32 bits."""
    numbers = np.random.default_rng(3).permutation(5000).astype(np.float32)[None] / 8
    with ttsim.open_device() as device:
        tensor = ttsim.from_numpy(numbers, ttsim.float32, layout=ttsim.TILE_LAYOUT, device=device)
        values, places = ttsim.sort(tensor, descending=True)
        assert np.array_equal(values.to_numpy(), -np.sort(-numbers))
        assert np.array_equal(places.to_numpy(), np.argsort(-numbers))
    plan = planned((1, 65535))
    assert [plan.tensors[name].data_format for name in plan.results.values()] == [BFLOAT16, UINT32]


@pytest.mark.parametrize(
    ("data_format", "expected"),
    [(BFLOAT16, [8192] * 4 + [1024] + [8192] * 4), (UINT16, [16384] * 4 + [1024] + [16384] * 4 + [256, 256])],
)
def test_rows_pass_whole_buffers(data_format, expected):
    assert operations(planned((64, 128), data_format=data_format, layout=Layout.ROW_MAJOR)) == [("Sort", *expected)]


HEIGHT = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(first_cores(2, 8, 8), (32, 256)))
HIGHER = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(first_cores(1, 8, 8), (64, 256)))


@pytest.mark.parametrize(
    ("dim", "place", "names", "ends_in"),
    [
        (-1, None, ["ShardedToInterleaved", "Sort", "InterleavedToSharded", "InterleavedToSharded"], HEIGHT),
        (-1, DRAM_MEMORY_CONFIG, ["ShardedToInterleaved", "Sort"], DRAM_MEMORY_CONFIG),
        (0, DRAM_MEMORY_CONFIG, ["ShardedToInterleaved", "Transpose", "Sort", "Transpose", "Transpose"], HEIGHT),
        (
            0,
            HIGHER,
            ["ShardedToInterleaved", "Transpose", "Sort", "Transpose", "Transpose", "Reshard", "Reshard"],
            HIGHER,
        ),
    ],
)
def test_shards_are_sorted_in_dram(dim, place, names, ends_in):
    source = TensorSpec((64, 256), BFLOAT16, Layout.TILE, HEIGHT)
    plan = plan_sort(source, SortArguments(dim=dim, place=place), SPEC)
    assert [name for name, *_ in operations(plan)] == names
    assert [plan.tensors[name].memory_config for name in plan.results.values()] == [ends_in] * 2


@pytest.mark.parametrize(
    ("shape", "dim", "names", "layout"),
    [
        ((1, 1, 32, 100), -1, ["FillPad", "Sort"], Layout.TILE),
        ((1, 1, 64, 96), -1, ["Pad", "Sort", "Slice", "Slice"], Layout.TILE),
        ((2, 3, 50, 70), -1, ["FillPad", "FillPad", "Pad", "Sort", "Slice", "Slice"], Layout.TILE),
        ((50, 70), 0, ["Transpose", "FillPad", "Sort", "Transpose", "Transpose"], Layout.TILE),
        ((64, 32), -1, ["Pad", "Sort", "Slice", "Slice"], Layout.ROW_MAJOR),
        ((150, 64), -1, ["Pad", "Sort", "Slice", "Slice"], Layout.ROW_MAJOR),
        ((2, 48, 64), -1, ["Sort"], Layout.ROW_MAJOR),
        ((33,), -1, ["Pad", "Pad", "Sort", *["Slice"] * 4], Layout.ROW_MAJOR),
    ],
)
def test_rows_are_padded_to_a_power_of_two(shape, dim, names, layout):
    plan = planned(shape, dim, layout=layout)
    assert [name for name, *_ in operations(plan)] == names
    assert {plan.tensors[name].shape for name in plan.results.values()} == {shape}


@pytest.mark.parametrize(
    ("call", "error", "first"),
    [
        (
            ((64, 96), 1, INT32),
            DeviceError,
            "Input tensor data type must be BFLOAT16, UINT16, or FLOAT32, got DataType::",
        ),
        (
            ((64, 3), 1, BFLOAT16, Layout.ROW_MAJOR),
            DeviceError,
            "Input shape inner dim 4 must be a power of two >= 64.",
        ),
    ],
)
def test_refusals(call, error, first):
    with pytest.raises(error, match=re.escape(first)):
        planned(*call)


def test_single_elements_are_not_sorted():
    call = SortArguments(dim=-1)
    assert [has_order(TensorSpec(shape, INT32, Layout.TILE), call) for shape in ((), (3, 1), (1, 3))] == [
        True,
        True,
        False,
    ]
    with pytest.raises(DeviceError, match="Sort dim 2 is out of range for rank-2 tensor"):
        has_order(TensorSpec((64, 96), BFLOAT16, Layout.TILE), SortArguments(dim=2))
