"""Tensors whose sides of 1 are repeated: the program, as ttnn 0.81.1 plans it on 8x8 cores, and its numbers."""

import re

import numpy as np
import pytest

import ttsim
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.shape.broadcast import plan_broadcast_to

SPEC = load_spec("wormhole_n150")


def planned(own, shape, layout=Layout.TILE):
    return plan_broadcast_to(TensorSpec(own, BFLOAT16, layout), shape, SPEC)


def test_all_cores_have_two_tiles_on_each_side():
    (step,) = [step for step in planned((1, 1, 1, 100), (1, 2, 40, 100)).steps if isinstance(step, Operation)]
    assert step.name == "BcastToOperation"
    assert [(str(buffer.cores), buffer.size_bytes) for buffer in step.circular_buffers] == [("{[0-0 - 7-7]}", 4096)] * 2


@pytest.mark.parametrize(
    ("call", "first"),
    [
        (((1, 32), (32,)), "Input tensor shape Shape([1, 32])(2) must be at least as large as the broadcast shape"),
        (((1, 32), (2, 1, 1, 1, 32)), "Tensor shape and broadcast size Shape([1, 32])(2) Shape([2, 1, 1, 1, 32])(5)"),
        (((2, 32), (3, 32)), "Input dimension -2 (size 2) cannot be broadcast to output dimension -2 (size 3)"),
        (((1, 32), (2, 32), Layout.ROW_MAJOR), "bcast_to: Invalid tensor memory layout Layout::ROW_MAJOR. Input"),
    ],
)
def test_refusals(call, first):
    with pytest.raises(DeviceError, match=re.escape(first)):
        planned(*call)


@pytest.mark.parametrize(
    ("own", "shape"), [((3, 1, 1, 70), (3, 2, 40, 70)), ((1, 40, 1), (2, 40, 33)), ((1, 1), (2, 1, 5, 6))]
)
def test_numbers(own, shape):
    numbers = np.random.default_rng(0).integers(0, 256, own).astype(np.float32)
    with ttsim.open_device() as device:
        tensor = ttsim.Tensor(numbers, ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
        result = ttsim.experimental.broadcast_to(tensor, shape).to_numpy()
    assert np.array_equal(result, np.broadcast_to(numbers, shape))
