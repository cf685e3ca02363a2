"""Places that are not zero: the program, as ttnn 0.81.1 plans it on a device of 8x8 cores, and its numbers."""

import re

import numpy as np
import pytest

import ttsim
from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.nonzero import plan_nonzero

SPEC = load_spec("wormhole_n150")


@pytest.mark.parametrize(
    ("shape", "layout", "sizes"),
    [
        ((1, 1, 1, 100), Layout.ROW_MAJOR, [224, 64, 3200]),  # a page of 200 bytes, aligned in DRAM
        ((1, 1, 40, 100), Layout.TILE, [2048, 64, 128000]),
    ],
)
def test_one_core_lists_places(shape, layout, sizes):
    plan = plan_nonzero(TensorSpec(shape, BFLOAT16, layout), SPEC)
    (step,) = [step for step in plan.steps if isinstance(step, Operation)]
    assert step.name == "NonZeroIndicesDeviceOperation"
    assert {str(buffer.cores) for buffer in step.circular_buffers} == {"{[0-0 - 0-0]}"}
    assert [buffer.size_bytes for buffer in step.circular_buffers] == sizes


@pytest.mark.parametrize(
    ("shape", "place", "first"),
    [
        ((2, 100), None, "non_zero_indices: input must be rank-4, got rank 2"),
        ((1, 1, 1, 8), MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED), "non_zero_indices: output_memory_config must"),
    ],
)
def test_refusals(shape, place, first):
    with pytest.raises(DeviceError, match=re.escape(first)):
        plan_nonzero(TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR), SPEC, place=place)


def test_a_staging_buffer_beyond_l1_is_refused_once_results_are_allocated():
    (step,) = plan_nonzero(TensorSpec((1, 1, 1, 100000), BFLOAT16, Layout.ROW_MAJOR), SPEC).steps
    assert [output.tensor for output in step.outputs] == ["count", "places"]
    assert step.refused.splitlines()[0] == (
        "non_zero_indices: indices staging buffer requires 3200000 L1 bytes but per-core L1 is 1499136 bytes; maximum "
        "supported volume is ~46848 elements"
    )


def test_the_count_and_the_indices_of_each_element():
    numbers = np.zeros((2, 1, 3, 4), np.float32)
    numbers[0, 0, 2, 1], numbers[1, 0, 0, 3], numbers[1, 0, 1, 1] = 5, -1, -0.0
    with ttsim.open_device() as device:
        count, places = ttsim.nonzero(ttsim.from_numpy(numbers, ttsim.bfloat16, device=device))
        assert count.to_numpy()[0, 0, 0, 0] == 2
        assert places.to_numpy()[0, 0, 0, :8].tolist() == [0, 0, 2, 1, 1, 0, 0, 3]
    assert places.shape == (1, 1, 1, 96)


def test_bytes_of_block_floats_are_no_elements():
    with ttsim.open_device() as device:
        tensor = ttsim.zeros((1, 1, 32, 32), ttsim.bfloat8_b, ttsim.TILE_LAYOUT, device)
        with pytest.raises(ArgumentError, match="the real library takes bytes of bfloat8_b for elements"):
            ttsim.nonzero(tensor)
