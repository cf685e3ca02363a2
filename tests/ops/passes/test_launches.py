"""What is launched of a plan."""

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16
from device.plan import MOVE, Allocate, CircularBuffer, Operation, Plan, Relocate
from device.spec.device_spec import load_spec
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.launch import LaunchedProgram
from ops.passes.cycles import ARGUMENTS, BINARY_BYTES, TimedOperation, launches_of

SPEC = load_spec("wormhole_n150")
TENSOR = TensorSpec((1, 1, 32, 32), BFLOAT16, Layout.TILE)
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
    (found,) = launches_of(plan, [TimedOperation("One", cycles)], spec)
    return found


def test_data_movement_needs_two_processors():
    assert launch(Stage.START, Stage.READER, Stage.WRITER, buffers=(WIDE, WIDE)).program == LaunchedProgram(
        name="One",
        cores=16,
        processors=2,
        binaries=2,
        binary_bytes=BINARY_BYTES,
        circular_buffers=2,
        arguments=ARGUMENTS,
        key="one",
    )


def test_a_single_data_movement_processor_has_one_kernel():
    alone = SPEC.replace(data_movement_processors=1)
    assert launch(Stage.READER, Stage.WRITER, buffers=(WIDE,), spec=alone).program.processors == 1


@pytest.mark.parametrize("stage", [Stage.TILIZE, Stage.UNPACK, Stage.MATH, Stage.PACK, Stage.BIAS, Stage.UNTILIZE])
def test_compute_threads_need_three_more(stage):
    found = launch(Stage.READER, stage, buffers=(WIDE,)).program
    assert (found.processors, found.binaries, found.groups) == (5, 5, 1)


def test_senders_and_receivers_of_multicasts_have_kernels_and_groups_of_their_own():
    one = launch(Stage.READER, Stage.MATH, Stage.WEIGHT_MULTICAST, buffers=(WIDE,)).program
    two = launch(Stage.MATH, Stage.ACT_MULTICAST, Stage.WEIGHT_MULTICAST, buffers=(WIDE,)).program
    assert [(found.binaries, found.groups, found.buffer_groups) for found in (one, two)] == [(6, 2, 1), (7, 4, 1)]


def test_cores_with_other_circular_buffers_are_a_group():
    found = launch(Stage.READER, buffers=(WIDE, NARROW, WIDE)).program
    assert (found.cores, found.groups, found.buffer_groups, found.circular_buffers) == (16, 2, 2, 3)


def test_without_circular_buffers_the_cycles_know_the_cores():
    assert launch(Stage.READER).program.cores == 16
    assert launch(Stage.READER).kernel_cycles == 100


def test_without_a_model_all_processors_have_a_kernel_that_takes_nothing():
    found = launch(buffers=(NARROW,))
    assert (found.program.cores, found.program.processors, found.kernel_cycles) == (8, 5, 0)


def test_a_relocation_launches_a_move():
    plan = Plan(steps=(Relocate("x", TENSOR.buffer(SPEC)),), tensors={"x": TENSOR})
    (found,) = launches_of(plan, [TimedOperation(MOVE, None)], SPEC)
    assert found.name == MOVE
