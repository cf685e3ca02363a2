"""The third reading of a plan: what every device operation takes, one after the other.

What is in it: the kernels of every device operation, from the first core's start to the last core's end. What is not:
the preparation of tensors on the host, transfers between host and device, and the dispatch between operations.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from device.memory.layouts import TensorSpec
from device.plan import Operation, Plan, Relocate
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.programs.conv2d.cycles import conv_cycles
from ops.programs.conv2d.work import ConvWork
from ops.programs.halo.cycles import halo_cycles
from ops.programs.halo.plan import HaloArguments, HaloWork, plan_halo
from ops.programs.matmul.config import MatmulWork
from ops.programs.matmul.cycles import matmul_cycles
from ops.programs.movement.cycles import movement_cycles
from ops.programs.movement.movements import movement_of
from ops.programs.movement.work import PaddedSlice, SliceWrite
from ops.programs.patch_matmul.cycles import patch_cycles
from ops.programs.patch_matmul.work import FillRows, PatchMatmul, PixelMatmul, SumSections
from ops.readings.memory import MOVE

Tensors = Mapping[str, TensorSpec]


@dataclass(frozen=True, slots=True)
class TimedOperation:
    """A device operation of a plan and its cycles.

    Attributes:
        name: As a graph capture shows it.
        cycles: What it takes; None where there is no model of it.
        reason: Why there is none; empty if there is.
    """

    name: str
    cycles: OperationCycles | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlanCycles:
    """A plan's device operations in time.

    Attributes:
        operations: In order.
        clock_hz: Of the device.
    """

    operations: tuple[TimedOperation, ...]
    clock_hz: int

    @property
    def cycles(self) -> float:
        """All operations that have a model, one after the other."""
        return sum(one.cycles.cycles for one in self.operations if one.cycles is not None)

    @property
    def untimed(self) -> tuple[TimedOperation, ...]:
        """Operations that are missing in `cycles`."""
        return tuple(one for one in self.operations if one.cycles is None)


def run_cycles(plan: Plan, spec: DeviceSpec, *, contention: bool = True) -> PlanCycles:
    """What the device operations of a plan take.

    A tensor that is to be relocated counts as moved: whether its address changes, only the memory reading knows.
    Equal programs (slices often are) are timed once.

    Args:
        plan: The plan.
        spec: The device.
        contention: Whether cores wait for each other at links and banks.
    """
    timed: list[TimedOperation] = []
    known: dict[object, TimedOperation] = {}
    for step in plan.steps:
        if isinstance(step, Relocate):
            step = Operation(name=MOVE, inputs=(step.tensor,), work=step.work)
        if not isinstance(step, Operation):
            continue
        same = (step.name, step.key, step.work, *(plan.tensors.get(name) for name in _ends(step)))
        if same not in known:
            known[same] = _timed(step, plan.tensors, spec, contention=contention)
        timed.append(known[same])
    return PlanCycles(tuple(timed), spec.clock_hz)


def _ends(step: Operation) -> tuple[str, str]:
    """The tensor an operation reads first and the one that it writes."""
    return step.inputs[0], step.outputs[0].tensor if step.outputs else step.inputs[-1]


def _timed(step: Operation, tensors: Tensors, spec: DeviceSpec, *, contention: bool) -> TimedOperation:
    try:
        return TimedOperation(step.name, _cycles(step, tensors, spec, contention=contention))
    except ValueError as error:
        return TimedOperation(step.name, None, str(error))


def _cycles(step: Operation, tensors: Tensors, spec: DeviceSpec, *, contention: bool) -> OperationCycles:
    """The model of each kind of work.

    Raises:
        ValueError: There is none.
    """
    read, written = (tensors[name] for name in _ends(step))
    match step.work:
        case ConvWork():
            return conv_cycles(step.work, spec, contention=contention)
        case HaloWork():
            plan = plan_halo(_halo_arguments(step), input_tensor="", output_tensor="")
            return halo_cycles(plan, spec, contention=contention)
        case PatchMatmul() | PixelMatmul() | FillRows() | SumSections():
            return patch_cycles(step.work, spec, contention=contention)
        case MatmulWork():
            sharded = [tensor.memory_config.is_sharded() for tensor in (read, written)]
            return matmul_cycles(step.work, spec, in_sharded=sharded[0], out_sharded=sharded[1], contention=contention)
        case PaddedSlice(window=window):
            columns = (window.begins[2], window.ends[2])
            return movement_cycles(
                movement_of(step.name, read, written, spec, window=columns), spec, contention=contention
            )
        case SliceWrite(window=window):
            shape = (1, 1, prod(window.window_shape[:-1]), window.window_shape[-1])
            written = TensorSpec(shape, written.data_format, written.layout, written.memory_config)
    return movement_cycles(movement_of(step.name, read, written, spec), spec, contention=contention)


def _halo_arguments(step: Operation) -> HaloArguments:
    """What decided a halo's program: its key holds it."""
    parts = step.key if isinstance(step.key, tuple) else ()
    found = next((part for part in parts if isinstance(part, HaloArguments)), None)
    if found is None:
        raise ValueError(f"{step.name}: its key does not say what decided it; build it by plan_halo's arguments")
    return found
