"""The cycles of whole plans."""

from dataclasses import dataclass, replace

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from device.plan import (
    MOVE,
    Allocate,
    CircularBuffer,
    DeviceOp,
    Operation,
    OperationBegin,
    OperationEnd,
    Plan,
    Relocate,
)
from device.spec.device_spec import load_spec
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.builder import PlanBuilder, PlanTensor
from ops.launch import LaunchedProgram
from ops.op_model import NoModelError, OpModel, values_of_first
from ops.passes.cycles import (
    ARGUMENTS,
    BINARY_BYTES,
    TimedOperation,
    ends_of,
    launches_of,
    operations_of,
    run_cycles,
    steps_that_ran,
)
from ops.planners.conv.arguments import ConvConfig, SliceConfig, SliceType
from ops.planners.conv.plan import plan_convolution
from tests.build import sized_call
from tests.shards import HEIGHT

SPECS = [load_spec("wormhole_n150"), load_spec("blackhole_p150")]
TENSOR = TensorSpec((1, 1, 32, 32), BFLOAT16, Layout.TILE)

SLICES = tuple(
    step
    for tensor in ("x", "y")
    for step in (
        Operation(name="Halo", inputs=(tensor,)),
        Relocate(tensor, TENSOR.buffer(SPECS[0])),
        Operation(name="Conv", inputs=(tensor,)),
    )
)

PLANNED = Plan(steps=SLICES, tensors={"x": TENSOR, "y": TENSOR})
each_device = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)


def plan(spec, place=L1_MEMORY_CONFIG, *, side=32, channels=64, **changes):
    """A transposed convolution of stride 2."""
    usual = {"stride": (2, 2), "conv_config": ConvConfig(shard_layout=HEIGHT)}
    result = sized_call((side, side), (channels, 64), (2, 2), place=place, **usual | changes)
    return plan_convolution(result, spec, free_l1_bytes=spec.l1.usable_bytes // 2)


@each_device
def test_every_device_operation_is_timed_in_order(spec):
    result = plan(spec)
    read = run_cycles(result, spec)
    named = [
        step.name if isinstance(step, Operation) else "MoveDeviceOperation"
        for step in result.steps
        if isinstance(step, Operation | Relocate)
    ]
    assert [operation.name for operation in read.operations] == named
    assert "HaloDeviceOperation" in named
    assert "Conv2dDeviceOperation" in named
    assert read.untimed == ()
    assert read.clock_hz == spec.clock_hz
    assert read.cycles == sum(operation.cycles.cycles for operation in read.operations)
    assert all(operation.cycles.cycles > 0 for operation in read.operations)
    # Where a relocation is known to have moved nothing, its move is left out.
    ran = tuple(index for index, step in enumerate(result.steps) if isinstance(step, Operation))
    assert run_cycles(result, spec, ran=ran).operations == tuple(
        operation for operation in read.operations if operation.name != MOVE
    )
    assert named.count(MOVE) == 1


@each_device
def test_slices_are_timed_one_by_one(spec):
    cut = SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=4)
    read = run_cycles(plan(spec, DRAM_MEMORY_CONFIG, side=64, slice_config=cut), spec)
    names = [operation.name for operation in read.operations]
    assert names.count("Conv2dDeviceOperation") == 4
    assert names.count("PaddedSliceDeviceOperation") == 4
    assert read.untimed == ()


def test_an_operation_that_the_device_refuses_has_no_cycles():
    """Eight column blocks of a matmul on one column of cores: its links lead nowhere."""
    steps = (Operation(name="Matmul", inputs=("x",), refused="Num output blocks along x (8)\nuse more columns"),)
    with pytest.raises(DeviceError, match=r"Num output blocks along x \(8\)"):
        run_cycles(Plan(steps=steps, tensors={"x": TENSOR}), SPECS[0])


@pytest.mark.parametrize("still", [(), (1, 4), (1,), (4,)])
def test_a_tensor_may_stay_where_it_is(still):
    """Of two relocations the one that moved its tensor is found by its place in the plan: names are the same."""
    ran = tuple(index for index in range(6) if index not in still)
    moved = [tensor for index, tensor in ((1, "x"), (4, "y")) if index in ran]
    names = ["Halo", MOVE, "Conv"] * 2
    assert [operation.name for operation in operations_of(PLANNED, ran)] == [names[index] for index in ran]
    assert [operation.inputs[0] for operation in operations_of(PLANNED, ran) if operation.name == MOVE] == moved


def test_steps_that_ran_are_told_by_their_events():
    events = [
        OperationBegin("ttnn.f"),
        OperationBegin("Halo", step=0),
        OperationEnd("Halo"),
        OperationBegin("Conv", step=2),
    ]
    assert steps_that_ran(events) == (0, 2)


@dataclass(frozen=True, slots=True)
class Fancy(DeviceOp):
    """A work that only tables of this file know."""


def fancy_cycles(op_models):
    tensor = TensorSpec((1, 1, 32, 32), BFLOAT16, Layout.TILE)
    step = Operation(name="Fancy", inputs=("x",), outputs=(Allocate("y", tensor.buffer(SPECS[0])),), op=Fancy())
    return run_cycles(Plan(steps=(step,), tensors={"x": tensor, "y": tensor}), SPECS[0], op_models=op_models)


def raising(error):
    def cycles(op, ends, context):
        raise error

    return {Fancy: OpModel(op=Fancy, values=values_of_first(lambda op, values: values), cycles=cycles)}


@pytest.mark.parametrize(
    ("op_models", "reason"),
    [
        ({Fancy: replace(raising(None)[Fancy], cycles=None, no_model="too fancy")}, "too fancy"),
        (raising(NoModelError("only on Tuesdays")), "only on Tuesdays"),
    ],
)
def test_what_has_no_model_says_so(op_models, reason):
    read = fancy_cycles(op_models)
    assert read.untimed == read.operations == (TimedOperation("Fancy", None, reason, place="DRAM"),)
    assert read.cycles == 0


SPEC = load_spec("wormhole_n150")
WIDE, NARROW = (CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(column, 1))) for column in (7, 3))


def launch(*stages, buffers=(), spec=SPEC):
    """The launch of one operation on 16 cores with some stages that work, and its circular buffers' cores."""
    step = Operation(
        name="One",
        inputs=("x",),
        outputs=(Allocate("y", TENSOR.buffer(SPEC)),),
        circular_buffers=tuple(
            CircularBuffer(name=str(at), size_bytes=2048, page_bytes=2048, data_format=BFLOAT16, cores=cores)
            for at, cores in enumerate(buffers)
        ),
        key="one",
    )
    group = CoreGroupCycles(cores=WIDE, cycles=100, stages=tuple(StageCycles(stage, 10) for stage in stages))
    cycles = OperationCycles(cycles=100, groups=(group,), bound_by=Stage.START) if stages else None
    plan = Plan(steps=(step,), tensors={"x": TENSOR, "y": TENSOR})
    (result,) = launches_of(plan, [TimedOperation("One", cycles)], spec)
    return result


@pytest.mark.parametrize(
    ("stages", "buffers", "figures"),
    [
        ((Stage.START, Stage.READER, Stage.WRITER), (WIDE, WIDE), (16, 2, 2, 1, 1, 2)),
        *(
            ((Stage.READER, stage), (WIDE,), (16, 5, 5, 1, 1, 1))  # compute threads need three more
            for stage in (Stage.TILIZE, Stage.UNPACK, Stage.MATH, Stage.PACK, Stage.BIAS, Stage.UNTILIZE)
        ),
        # Senders and receivers of multicasts have kernels and groups of their own.
        ((Stage.READER, Stage.MATH, Stage.WEIGHT_MULTICAST), (WIDE,), (16, 5, 6, 2, 1, 1)),
        ((Stage.MATH, Stage.ACT_MULTICAST, Stage.WEIGHT_MULTICAST), (WIDE,), (16, 5, 7, 4, 1, 1)),
        # Cores with other circular buffers are a group; without any the cycles know the cores.
        ((Stage.READER,), (WIDE, NARROW, WIDE), (16, 2, 2, 2, 2, 3)),
        ((Stage.READER,), (), (16, 2, 2, 1, 1, 0)),
        ((), (NARROW,), (8, 5, 5, 1, 1, 1)),  # without a model all processors have a kernel, which takes nothing
    ],
)
def test_kernels_of_an_operation(stages, buffers, figures):
    """Cores, processors, binaries, groups of kernels and of circular buffers, and circular buffers."""
    cores, processors, binaries, groups, buffer_groups, circular_buffers = figures
    found = launch(*stages, buffers=buffers)
    assert found.program == LaunchedProgram(
        name="One", cores=cores, processors=processors, binaries=binaries, binary_bytes=BINARY_BYTES, groups=groups,
        circular_buffers=circular_buffers, buffer_groups=buffer_groups, arguments=ARGUMENTS, key="one")  # fmt: skip
    assert found.kernel_cycles == (100 if stages else 0)


def test_a_relocation_launches_a_move():
    plan = Plan(steps=(Relocate("x", TENSOR.buffer(SPEC)),), tensors={"x": TENSOR})
    (found,) = launches_of(plan, [TimedOperation(MOVE, None)], SPEC)
    assert found.name == MOVE


def test_a_target_is_written_whole_as_an_output_is_and_an_input_in_part():
    tensor = TensorSpec((1, 1, 64, 64), BFLOAT16, Layout.TILE)
    builder = PlanBuilder(load_spec("wormhole_n150"), dict.fromkeys(("x", "y", "target"), tensor))
    x, y, target = map(builder.tensor, ("x", "y", "target"))
    made = builder.run("Copy", DeviceOp(), [x], PlanTensor("made", tensor))
    builder.run("Fill", DeviceOp(), [x, y])
    apart = ends_of(builder.steps[0], builder.finish({"output": made}))
    builder.written_into(made, target)
    into, in_part = (ends_of(step, builder.finish({"output": target})) for step in builder.steps)
    assert (apart.whole, into.whole, in_part.whole) == (True, True, False)
    assert (apart.written, apart.others, into.others) == (tensor, (), (tensor,))
