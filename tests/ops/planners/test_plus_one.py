"""Integers counted up: the program, as ttnn 0.81.1 plans it, and its numbers."""

import numpy as np
import pytest

import ttsim
from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import INT32, UINT16
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.plus_one import plan_plus_one

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
