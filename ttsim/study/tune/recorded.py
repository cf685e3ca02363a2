"""The convolutions of a profile as questions for a tuner, and the chains in which one hands its output to the next."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from device.machine import Machine
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16, FLOAT32, DataFormat
from device.plan import MadeTensor, Operation
from ops.planners.conv.arguments import ConvCall, Operand, weight_format
from ops.programs.movement.work import CopyTensor
from ops.programs.tiling.work import TilizeOp
from ttsim.diagnose import MachineSnapshot, fill_order, raw_weight_shape
from ttsim.runtime.device import Device
from ttsim.runtime.traces import RanCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A convolution that ran."""

    number: int  # Of its call in the profile
    ran: RanCall
    # Its arguments, with raw weights: another config needs them prepared anew, which the host does once
    call: ConvCall
    output: TensorSpec  # What it handed on
    # The same after the call that only moved it elsewhere, if that alone read it; else None
    moved_to: TensorSpec | None


def chains(calls: Sequence[RanCall]) -> tuple[tuple[Recorded, ...], ...]:
    """The convolutions in order, together where the output of one goes into the next and nowhere else."""
    readers: dict[int, list[RanCall]] = {}
    for call in calls:
        for number in {made.number for _, made in call.inputs}:
            readers.setdefault(number, []).append(call)
    found: list[list[Recorded]] = []
    handed: int | None = None
    for number, ran in enumerate(calls):
        made = None if ran.asked is None else _output(ran)
        if ran.asked is None or made is None:
            handed = None
            continue
        own = readers.get(made.number, [])
        moved = _moved(own[0], made.spec) if len(own) == 1 else None
        one = Recorded(number=number, ran=ran, call=_unprepared(ran.asked), output=made.spec, moved_to=moved)
        if handed is not None and _input_number(ran) == handed:
            found[-1].append(one)
        else:
            found.append([one])
        handed = made.number if len(own) == 1 else None
    return tuple(map(tuple, found))


def _output(ran: RanCall) -> MadeTensor | None:
    """What a call handed on, if that is on the device."""
    return dict(ran.results).get(ran.plan.results.get("output", ""))


def _moved(ran: RanCall, source: TensorSpec) -> TensorSpec | None:
    """A tensor after a call that does nothing but bring it elsewhere; None for any other call."""
    steps, made = [step for step in ran.plan.steps if isinstance(step, Operation)], _output(ran)
    if made is None or not steps or not all(isinstance(step.work, CopyTensor | TilizeOp) for step in steps):
        return None
    same = (source.shape, source.data_format, source.layout)
    return made.spec if same == (made.spec.shape, made.spec.data_format, made.spec.layout) else None


def ground_of(one: Recorded, device: Device, given: TensorSpec) -> MachineSnapshot:
    """A device as it was before a call, with the call's input laid out in a given way.

    What lived then is allocated anew, from one end of each memory to the other, so that gaps between buffers close.
    """
    machine = Machine(device.spec, l1_small_bytes=device.machine.l1_small_bytes)
    number, held = _input_number(one.ran), {}
    for buffer in sorted(one.ran.before, key=lambda made: fill_order(made.buffer.buffer_type, made.address)):
        own = buffer.number == number
        made = machine.allocate(given.buffer(device.spec) if own else buffer.buffer, buffer.name)
        if own:
            held["input"] = made
    return MachineSnapshot(machine, held, device.strict)


def _input_number(ran: RanCall) -> int | None:
    """The buffer of a call's input; None if that is on the host."""
    made = dict(ran.inputs).get("input")
    return None if made is None else made.number


def _unprepared(call: ConvCall) -> ConvCall:
    """The call with raw weights and bias on the host, prepared in the format that they had."""
    formats = weight_format(call)
    weight = _raw(raw_weight_shape(call), formats)
    bias = None if call.bias is None else _raw((1, 1, 1, call.out_channels), formats)
    config = replace(call.conv_config, weights_format=formats)
    return replace(call, weight=weight, bias=bias, conv_config=config)


def _raw(shape: tuple[int, ...], prepared: DataFormat) -> Operand:
    data_format = FLOAT32 if prepared == FLOAT32 else BFLOAT16
    return Operand(spec=TensorSpec(shape, data_format, Layout.ROW_MAJOR), on_host=True)
