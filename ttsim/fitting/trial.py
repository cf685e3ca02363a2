"""Trying a call on a copy of a device's memory, without touching the device."""

from collections.abc import Mapping
from typing import NamedTuple

from device.errors import ArgumentError, DeviceError
from device.events import Event
from device.machine import Machine
from device.memory.buffers import Buffer
from device.memory.memory_config import BufferType
from device.plan import Plan
from ops.calls.conv2d import validation as of_conv2d
from ops.calls.conv2d.plan import left_of, plan_conv2d
from ops.calls.conv_transpose2d import validation as of_conv_transpose2d
from ops.calls.conv_transpose2d.phase_lowering import require_phase_weights, require_phases
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.phase_program import runs_by_phases
from ops.calls.convolution.plan import plan_convolution
from ops.calls.convolution.soundness import require_sound
from ops.frame.axis import NoWindowError
from ops.readings.memory import run_memory


class Ground(NamedTuple):
    """A device as it is, for trials."""

    machine: Machine  # The device; it is read only
    held: Mapping[str, Buffer]  # Buffers of the call's own tensors, by their names in a plan
    strict: bool  # Whether calls that the real library gets wrong are refused


class Trial(NamedTuple):
    """What a trial showed."""

    events: tuple[Event, ...]  # What happened; nothing if the call was refused before
    # Why it failed; None if it fits. (The text alone: an exception kept here would keep the caller's frames alive, and
    # with them tensors.)
    error: str | None
    plan: Plan | None = None  # What was planned; None if it was refused before


def attempt(
    call: ConvArguments,
    ground: Ground,
    *,
    l1_small_bytes: int | None = None,
    cached: bool = True,
    returns_weights: bool = True,
) -> Trial:
    """Plan a call and allocate it on a copy.

    Args:
        call: Its arguments; an input that lies elsewhere than the one on the device is moved there first.
        l1_small_bytes: Another size of the L1_SMALL region.
        cached: False: on a device whose program cache was cleared.
        returns_weights: The caller keeps the prepared weights and bias.
    """
    events: list[Event] = []
    plan: Plan | None = None
    try:
        _require_allowed(call, strict=ground.strict)
        machine = _copy(ground, l1_small_bytes, cached=cached)
        twins = l1_small_bytes is None
        inputs = {name: _input(machine, name, buffer, call, twins=twins) for name, buffer in ground.held.items()}
        free_l1_bytes = machine.allocator.statistics(BufferType.L1).free_bytes_per_bank
        machine.recorders.append(events)
        planned = plan_convolution if call.rules.transposed else plan_conv2d
        plan = planned(call, machine.spec, free_l1_bytes=free_l1_bytes, returns_weights=returns_weights)
        if ground.strict:
            require_sound(plan, call if call.rules.transposed else left_of(call, plan))
        if call.rules.by_phases:
            require_phase_weights(plan, call)
        run_memory(plan, machine, inputs)
    except (ArgumentError, DeviceError, NoWindowError) as error:
        return Trial(tuple(events), str(error), plan)
    return Trial(tuple(events), None, plan)


def _require_allowed(call: ConvArguments, *, strict: bool) -> None:
    """Raises what the call itself raises before it is planned."""
    if not call.rules.transposed:
        of_conv2d.validate(call)
        of_conv2d.require_possible(call)
        if strict:
            of_conv2d.require_sane(call)
        return
    of_conv_transpose2d.validate(call)
    of_conv_transpose2d.require_possible(call)
    of_conv_transpose2d.require_possible_slices(call)
    if strict:
        of_conv_transpose2d.require_sane(call)
    if runs_by_phases(call):
        require_phases(call)


def _copy(ground: Ground, l1_small_bytes: int | None, *, cached: bool) -> Machine:
    """A device in the same state; or one that was opened with another L1_SMALL region, with the same tensors."""
    if l1_small_bytes is None:
        copy = ground.machine.copy()
        if not cached:
            copy.clear_program_cache()
        return copy
    kept = {one.number for program in ground.machine.program_cache.values() for one in program.resident}
    skipped = kept | {one.number for one in ground.held.values()}
    reopened = Machine(ground.machine.spec, l1_small_bytes=l1_small_bytes)
    live = [one for one in ground.machine.memory.live() if one.number not in skipped]
    for one in sorted(live, key=lambda buffer: fill_order(buffer.spec.buffer_type, buffer.address)):
        reopened.allocate(one.spec, one.name)
    return reopened


def fill_order(memory: BufferType, address: int) -> int:
    """In this order buffers fill an empty memory as it is filled: DRAM from below, L1 from the top."""
    return address if memory is BufferType.DRAM else -address


def _input(machine: Machine, name: str, buffer: Buffer, call: ConvArguments, *, twins: bool) -> Buffer:
    """One of the call's tensors on the copy: its twin, or a new one (beside it, if the input is to lie elsewhere)."""
    wanted = call.input.spec.buffer(machine.spec) if name == "input" else buffer.spec
    if twins and buffer.allocated and wanted == buffer.spec:
        return machine.memory.at(buffer.spec.buffer_type, buffer.address)
    return machine.allocate(wanted, name)
