"""The cycles of whole plans."""

import time
from dataclasses import replace

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from device.plan import Allocate, Operation, Plan, Relocate
from device.spec.device_spec import load_spec
from ops.calls.convolution.arguments import (
    ConvConfig,
    ConvTranspose2dArguments,
    Operand,
    SliceConfig,
    SliceType,
)
from ops.calls.convolution.plan import plan_conv_transpose2d
from ops.readings.cycles import run_cycles

SPECS = [load_spec("wormhole_n150"), load_spec("blackhole_p150")]
each_device = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)


def plan(spec, place=L1_MEMORY_CONFIG, *, side=32, channels=64, **changes):
    """A transposed convolution of stride 2."""
    facts = {
        "input": Operand(
            spec=TensorSpec((1, 1, side * side, channels), BFLOAT16, Layout.ROW_MAJOR, place), on_host=False
        ),
        "weight": Operand(spec=TensorSpec((channels, 64, 2, 2), BFLOAT16, Layout.ROW_MAJOR), on_host=True),
        "in_channels": channels,
        "out_channels": 64,
        "batch_size": 1,
        "input_height": side,
        "input_width": side,
        "kernel_size": (2, 2),
        "stride": (2, 2),
        "conv_config": ConvConfig(shard_layout=TensorMemoryLayout.HEIGHT_SHARDED),
    }
    return plan_conv_transpose2d(
        ConvTranspose2dArguments(**facts | changes), spec, free_l1_bytes=spec.l1.usable_bytes // 2
    )


@each_device
def test_every_device_operation_is_timed_in_order(spec):
    made = plan(spec)
    read = run_cycles(made, spec)
    named = [
        step.name if isinstance(step, Operation) else "MoveDeviceOperation"
        for step in made.steps
        if isinstance(step, Operation | Relocate)
    ]
    assert [one.name for one in read.operations] == named
    assert "HaloDeviceOperation" in named
    assert "Conv2dDeviceOperation" in named
    assert read.untimed == ()
    assert read.clock_hz == spec.clock_hz
    assert read.cycles == sum(one.cycles.cycles for one in read.operations)
    assert all(one.cycles.cycles > 0 for one in read.operations)


@each_device
def test_slices_are_timed_one_by_one(spec):
    cut = SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=4)
    read = run_cycles(plan(spec, DRAM_MEMORY_CONFIG, side=64, slice_config=cut), spec)
    names = [one.name for one in read.operations]
    assert names.count("Conv2dDeviceOperation") == 4
    assert names.count("PaddedSliceDeviceOperation") == 4
    assert read.untimed == ()


@each_device
def test_sharing_never_makes_a_plan_faster(spec):
    made = plan(spec)
    assert run_cycles(made, spec).cycles >= run_cycles(made, spec, contention=False).cycles


@each_device
def test_a_relocation_counts_as_a_move(spec):
    made = plan(spec)
    without = replace(made, steps=tuple(step for step in made.steps if not isinstance(step, Relocate)))
    names = [[one.name for one in run_cycles(p, spec).operations] for p in (made, without)]
    assert names[0].count("MoveDeviceOperation") == names[1].count("MoveDeviceOperation") + 1


def test_what_has_no_model_says_so():
    tensor = TensorSpec((1, 1, 32, 32), BFLOAT16, Layout.TILE)
    buffer = tensor.buffer(SPECS[0])
    step = Operation(name="FancyDeviceOperation", inputs=("x",), outputs=(Allocate("y", buffer),))
    read = run_cycles(Plan(steps=(step,), tensors={"x": tensor, "y": tensor}), SPECS[0])
    assert [one.name for one in read.untimed] == ["FancyDeviceOperation"]
    assert "there is no model of Fancy" in read.untimed[0].reason
    assert read.cycles == 0


@each_device
def test_a_layer_is_planned_and_timed_quickly(spec):
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        run_cycles(plan(spec, side=64), spec)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.1  # ten times what it takes on an idle machine
