"""Integers counted up: the program, as ttnn 0.81.1 plans it, and its numbers."""

import numpy as np
import pytest

import ttsim
from device.cores import CoreCoord, CoreRange, CoreRangeSet, core_rectangle
from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import INT32, UINT16
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.plus_one import plan_plus_one, require_counts

SPEC = load_spec("wormhole_n150")


@pytest.mark.parametrize(("place", "bytes_"), [(DRAM_MEMORY_CONFIG, 96), (L1_MEMORY_CONFIG, 80)])
def test_one_core_holds_one_page(place, bytes_):
    """Twenty integers take 80 bytes, which DRAM aligns by 32 and L1 by 16."""
    core = CoreRangeSet(CoreRange(CoreCoord(1, 1), CoreCoord(1, 1)))
    plan = plan_plus_one(TensorSpec((4, 20), INT32, Layout.ROW_MAJOR, place), SPEC, cores=core)
    (step,) = [step for step in plan.steps if isinstance(step, Operation)]
    (buffer,) = step.circular_buffers
    assert (step.name, buffer.size_bytes, buffer.cores) == ("PlusOneDeviceOperation", bytes_, core)
    assert plan.results == {"output": "input"}


def in_rows(columns, high, wide, *, memory=BufferType.L1):
    """Four rows of 20 integers in shards."""
    place = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, memory, ShardSpec(core_rectangle(columns, 1), (high, wide)))
    return TensorSpec((4, 20), INT32, Layout.ROW_MAJOR, place)


@pytest.mark.parametrize(
    ("source", "cores", "once"),
    [(in_rows(4, 1, 20), 4, True), (in_rows(4, 1, 20), 1, False), (in_rows(2, 2, 20), 2, False)],
)
def test_cores_count_the_first_row_of_their_shards(source, cores, once):
    plan = plan_plus_one(source, SPEC, cores=core_rectangle(cores, 1))
    (step,) = [step for step in plan.steps if isinstance(step, Operation)]
    assert [(buffer.size_bytes, buffer.view_of) for buffer in step.circular_buffers] == [(80, "input")]
    assert (plan.without_values is None) == once
    if not once:
        with pytest.raises(ArgumentError, match=r"^plus_one: the real library has every core count all rows"):
            require_counts(source, core_rectangle(cores, 1))


def test_a_buffer_on_shards_holds_a_row():
    assert "not L1-resident" in plan_plus_one(in_rows(4, 1, 20, memory=BufferType.DRAM), SPEC).steps[-1].refused
    place = MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1, ShardSpec(core_rectangle(2, 1), (1, 12)))
    wide = plan_plus_one(TensorSpec((1, 24), INT32, Layout.ROW_MAJOR, place), SPEC)
    assert wide.steps[-1].refused.startswith("DFB 'in0' (entry_size 96 * num_entries 1 = 96 bytes) is larger than")


@pytest.mark.parametrize(
    ("shape", "data_format", "layout", "first"),
    [
        ((4,), UINT16, Layout.ROW_MAJOR, "Only INT32 and UINT32 is supported for inputs!"),
        ((32, 32), INT32, Layout.TILE, "Only ROW_MAJOR layout is supported for inputs!"),
        ((1, 1, 1, 1, 7), INT32, Layout.ROW_MAJOR, "must have 1 to 4 dimensions for input tensor"),
    ],
)
def test_refusals(shape, data_format, layout, first):
    with pytest.raises(DeviceError, match=f"^{first}"):
        plan_plus_one(TensorSpec(shape, data_format, layout), SPEC)


@pytest.mark.parametrize(
    ("skips", "kind", "counted"),
    [
        (False, np.int32, [1, 0, -(2**31), -4]),
        (True, np.int32, [1, -1, 2**31 - 1, -5]),
        (False, np.uint32, [1, 0, 2**31, 2**32 - 4]),
        (True, np.uint32, [1, 2**32 - 1, 2**31 - 1, 2**32 - 5]),
    ],
)
def test_integers_wrap_and_sentinels_can_stay(skips, kind, counted):
    numbers = np.array([0, -1, 2**31 - 1, -5], np.int64).astype(kind)
    with ttsim.open_device() as device:
        tensor = ttsim.from_numpy(numbers, ttsim.int32 if kind is np.int32 else ttsim.uint32, device=device)
        assert ttsim.plus_one(tensor, skip_negative_entries=skips) is tensor
        assert tensor.to_numpy().tolist() == counted
