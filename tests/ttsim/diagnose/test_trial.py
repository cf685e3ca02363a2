"""Trials: what refuses a call is its result, a mistake of ours is not."""

import pytest

from device.errors import ArgumentError, DeviceError
from device.machine import Machine
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from ops.planners.conv.arguments import ConvCall, Operand
from ops.planners.conv.conv_transpose2d import CONV_TRANSPOSE2D
from ops.window import NoWindowError
from ttsim.diagnose import MachineSnapshot, attempt

MACHINE = Machine("wormhole_n150", l1_small_bytes=32768)
GROUND = MachineSnapshot(MACHINE, {}, strict=True)
CALL = ConvCall(
    rules=CONV_TRANSPOSE2D,
    input=Operand(spec=TensorSpec((1, 1, 64, 32), BFLOAT16, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG), on_host=True),
    weight=Operand(spec=TensorSpec((32, 32, 2, 2), BFLOAT16, Layout.ROW_MAJOR), on_host=True),
    in_channels=32,
    out_channels=32,
    batch_size=1,
    input_height=8,
    input_width=8,
    kernel_size=(2, 2),
)


def failing(monkeypatch, error):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr("ttsim.diagnose.plan_call", broken)


def test_a_call_that_fits():
    trial = attempt(CALL, GROUND)
    assert trial.error is None
    assert trial.events
    assert not MACHINE.memory.live()


@pytest.mark.parametrize("kind", [ArgumentError, DeviceError, NoWindowError])
def test_what_refuses_a_call_is_the_result(monkeypatch, kind):
    failing(monkeypatch, kind("no"))
    assert attempt(CALL, GROUND).error == "no"


@pytest.mark.parametrize("kind", [ValueError, KeyError, RuntimeError])
def test_a_mistake_comes_through(monkeypatch, kind):
    failing(monkeypatch, kind("a mistake"))
    with pytest.raises(kind):
        attempt(CALL, GROUND)
