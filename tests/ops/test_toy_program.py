"""Adding a device operation: all that it takes stands in this file, and nothing else of the project knows it.

The toy multiplies every stick of a tensor in DRAM by a number. Its part before the tests is what a folder of programs
holds (work, circular buffers, values, cycles, meaning); its line in the table is `TABLE`.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from device.cores import CoreRangeSet, first_cores
from device.machine import Machine
from device.matrix_unit.arithmetic import EXACT
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16, div_up
from device.plan import Allocate, CircularBuffer, DeviceOp, Free, Operation, Plan
from device.spec.device_spec import load_spec
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles, binding_stage
from ops.op_model import OpModel, ValuesContext, cycles_of_work, given
from ops.op_models import OP_MODELS
from ops.passes.cycles import run_cycles
from ops.passes.memory import run_memory
from ops.passes.values import run_values
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ttsim import graph
from ttsim.recording.profiling import estimate_cycles, profile
from ttsim.runtime.device import Device
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor

START_CYCLES, STICK_CYCLES, SHARED_STICK_CYCLES = 1000, 50, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOp(DeviceOp):
    """Sticks times a number.

    Attributes:
        factor: The number.
        sticks: Sticks of the tensor.
        channels: Numbers of a stick.
        cores: Cores that share them.
    """

    factor: float
    sticks: int
    channels: int
    cores: CoreRangeSet


def circular_buffers(op):
    """Two sticks, so that one is read while the other is multiplied."""
    stick_bytes = op.channels * BFLOAT16.storage.itemsize
    return (
        CircularBuffer(
            name="stick", size_bytes=2 * stick_bytes, page_bytes=stick_bytes, data_format=BFLOAT16, cores=op.cores
        ),
    )


def scaled(op, inputs, context):
    """Products are rounded as the packer of the reading's arithmetic does it."""
    dst = given(inputs[0]).astype(np.float32) * np.float32(op.factor)
    return context.arithmetic.pack(dst, BFLOAT16, fp32_dest=True).astype(BFLOAT16.storage)


def scale_cycles(op, spec, *, contention=True):
    """Every core reads and multiplies its sticks one after the other; with contention, reading waits for the others."""
    share = div_up(op.sticks, op.cores.num_cores())
    read = share * (STICK_CYCLES + (SHARED_STICK_CYCLES if contention else 0))
    stages = (StageCycles(Stage.START, START_CYCLES), StageCycles(Stage.READER, read), StageCycles(Stage.MATH, share))
    cycles = START_CYCLES + read + share
    return OperationCycles(
        cycles=cycles,
        groups=(CoreGroupCycles(cores=op.cores, cycles=cycles, stages=stages),),
        bound_by=binding_stage(stages[1:]),
        dram_read_bytes=op.sticks * op.channels * BFLOAT16.storage.itemsize,
        contention_cycles=share * SHARED_STICK_CYCLES if contention else 0.0,
    )


MEANING = OpModel(op=ScaleOp, values=scaled, cycles=cycles_of_work(scale_cycles), fidelity_phases=lambda op: 2)
TABLE = {**OP_MODELS, ScaleOp: MEANING}

SPEC = load_spec("wormhole_n150")
STICKS, CHANNELS, CORES = 100, 64, 8
TENSOR = TensorSpec((1, 1, STICKS, CHANNELS), BFLOAT16, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
SHARE = 13  # sticks of the core with most of them
CYCLES = START_CYCLES + SHARE * (STICK_CYCLES + SHARED_STICK_CYCLES + 1)
NUMBERS = np.arange(STICKS * CHANNELS).reshape(TENSOR.shape).astype(BFLOAT16.storage)


def plan(factor=1 / 3):
    """The toy, and behind it an operation of the project."""
    op = ScaleOp(factor=factor, sticks=STICKS, channels=CHANNELS, cores=first_cores(CORES, 8, 8))
    scale = Operation(
        name="ScaleDeviceOperation",
        inputs=("input",),
        outputs=(Allocate("scaled", TENSOR.buffer(SPEC)),),
        circular_buffers=circular_buffers(op),
        op=op,
        key=("scale", op),
    )
    copy = Operation(
        name="CopyDeviceOperation",
        inputs=("scaled",),
        outputs=(Allocate("output", TENSOR.buffer(SPEC)),),
        op=CopyTensor(Conversion.COPY),
        key=("copy", TENSOR),
    )
    return Plan(
        steps=(scale, copy, Free("scaled")),
        tensors=dict.fromkeys(("input", "scaled", "output"), TENSOR),
        results={"output": "output"},
    )


def expected(factor=1 / 3):
    return EXACT.pack(NUMBERS.astype(np.float32) * np.float32(factor), BFLOAT16, fp32_dest=True)


def scale(x, *, factor=1 / 3, device):
    """The function that a user would call."""
    with device.function("toy.scale"):
        return run(plan(factor), {"input": x}, device, useful_flops=x.volume())["output"]


def opened(values="exact", op_models=TABLE):
    return Device(SPEC, values=values, op_models=op_models)


def uploaded(device):
    return Tensor.of_host(NUMBERS, TENSOR).to(device, DRAM_MEMORY_CONFIG)


def test_memory():
    machine = Machine(SPEC)
    results = run_memory(plan(), machine, {"input": machine.allocate(TENSOR.buffer(SPEC), "input")})
    assert sorted(one.name for one in machine.memory.live()) == ["input", "output"]
    assert set(results) == {"output"}


def test_values():
    got = run_values(plan(), {"input": NUMBERS}, ValuesContext(spec=SPEC, arithmetic=EXACT), op_models=TABLE)
    assert np.array_equal(got["output"].astype(np.float32), expected())


@pytest.mark.parametrize(("contention", "cycles"), [(True, CYCLES), (False, CYCLES - SHARE * SHARED_STICK_CYCLES)])
def test_cycles(contention, cycles):
    read = run_cycles(plan(), SPEC, contention=contention, op_models=TABLE)
    scale, copy = read.operations
    assert (scale.name, scale.cycles.cycles, scale.fidelity_phases) == ("ScaleDeviceOperation", cycles, 2)
    assert read.cycles == cycles + copy.cycles.cycles
    assert read.untimed == ()


@pytest.mark.parametrize("values", ["exact", "fast"])
def test_a_device_with_the_table_runs_it(values):
    with opened(values) as device:
        output = scale(uploaded(device), device=device)
        assert np.array_equal(output.cpu().to_numpy(), expected())


def test_a_graph_capture_shows_it():
    with opened("off") as device:
        x = uploaded(device)
        graph.begin_graph_capture(graph.RunMode.NORMAL)
        scale(x, device=device)
        trace = graph.end_graph_capture()
    names = graph.extract_calltrace(trace)
    assert [name for name in names if "::" not in name] == ["toy.scale", "ScaleDeviceOperation", "CopyDeviceOperation"]
    assert graph.extract_resource_usage_per_core(trace).peak_cb == 2 * CHANNELS * 2


def test_a_report_counts_it():
    with opened("off") as device:
        with profile(device) as profiled:
            scale(uploaded(device), device=device)
        report = profiled.report()
    first, second = report.operations
    assert (first.name, first.cycles, first.core_count) == ("ScaleDeviceOperation", CYCLES, CORES)
    assert (first.fidelity_phases, first.bound_by) == (2, "reader")
    assert first.traffic.dram_read_bytes == STICKS * CHANNELS * 2
    assert report.cycles == first.cycles + second.cycles
    assert report.calls[0].name == "toy.scale"
    assert "ScaleDeviceOperation" in str(report)
    assert "ScaleDeviceOperation: 1,793 cycles" in report.explain()


def test_an_estimate_reads_the_same_table():
    with opened() as device:
        x = uploaded(device)
        assert estimate_cycles(scale, x, device=device).operations[0].cycles == CYCLES


def test_without_its_line_in_the_table_nobody_knows_it():
    """There is no module state: what one device's table says, another's does not."""
    with opened(op_models=OP_MODELS) as device:
        x = uploaded(device)
        with pytest.raises(AssertionError, match=r"^nothing is known of ScaleOp"):
            scale(x, device=device)
    assert ScaleOp not in OP_MODELS
