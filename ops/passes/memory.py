"""The memory pass over a plan: the first pass, so that a call that does not fit fails before anything is computed.

A failed call leaves the device as before, except for the inputs that it releases.
"""

from collections.abc import Mapping

from device.errors import DeviceError
from device.machine import Machine
from device.memory.buffers import Buffer
from device.memory.layouts import TensorSpec, aligned_page_bytes
from device.memory.memory_config import BufferType
from device.numbers.formats import div_up
from device.plan import (
    MOVE,
    Allocate,
    CircularBuffer,
    Free,
    Operation,
    OperationBegin,
    OperationEnd,
    Plan,
    ReadTensor,
    Refuse,
    Relocate,
    Step,
    WrittenTensor,
)
from device.spec.device_spec import DeviceSpec


def run_memory(
    plan: Plan, device: Machine, inputs: Mapping[str, Buffer], *, dispatch: bool = True
) -> dict[str, Buffer]:
    """Allocates and releases the buffers of a plan in order, records this, and returns the results' buffers by name.

    ``inputs`` are buffers of the plan's tensors that are already on the device. Without ``dispatch`` nothing is placed
    (all addresses are 0) and no program is cached, as in a capture without dispatch. Raises DeviceError if a buffer or
    the circular buffers of a program do not fit, or the plan ends in a refusal; all that the plan had allocated is
    released.
    """
    context = _MemoryPass(device, dict(inputs), plan.tensors, dispatch=dispatch)
    try:
        for index, step in enumerate(plan.steps):
            context.take(index, step)
    except BaseException:
        context.undo(keep=inputs)
        raise
    return {name: context.buffers[name] for name in plan.results.values()}


def _overlap(before: Buffer, after: Buffer, spec: DeviceSpec) -> bool:
    """Whether the two places of a tensor that moves within a memory overlap: up in L1, down in DRAM.

    The library assumes that the pages of the new place, sharded or not, are distributed over all banks.
    """
    place = after.spec
    if before.spec.buffer_type is not place.buffer_type:
        return False
    in_l1 = place.buffer_type is BufferType.L1
    low, high = (before, after) if in_l1 else (after, before)
    bank_pages = div_up(place.size_bytes // place.page_bytes, spec.grid.cores if in_l1 else spec.dram.banks)
    return low.address + bank_pages * aligned_page_bytes(place.page_bytes, place.buffer_type, spec) > high.address


def _whole_pages_refusal(buffers: tuple[CircularBuffer, ...]) -> str | None:
    """The library's refusal of circular buffers without a whole number of pages; else None."""
    for buffer in buffers:
        if buffer.size_bytes % buffer.page_bytes:
            return (
                f"Total circular buffer size {buffer.size_bytes} B must be divisible by page size {buffer.page_bytes} "
                "B\n"
                "memory_config: leave it out; a move into shards that overlap the tensor needs pages of the same size"
            )
    return None


class _MemoryPass:
    """The buffers of a plan while it is read."""

    def __init__(
        self, device: Machine, buffers: dict[str, Buffer], tensors: Mapping[str, TensorSpec], *, dispatch: bool
    ) -> None:
        self.device = device
        self.buffers = buffers
        self.tensors = tensors
        self.dispatch = dispatch
        self.unkept: list[Buffer] = []
        self.index = 0

    def take(self, index: int, step: Step) -> None:
        """Runs one step."""
        self.index = index
        match step:
            case Allocate():
                self._allocate(step)
            case Free(tensor=tensor):
                self.device.free(self.buffers[tensor])
            case Relocate():
                self._relocate(step)
            case Operation():
                self._program(step)
            case Refuse(text=text, error=error):
                raise error(text)

    def undo(self, *, keep: Mapping[str, Buffer]) -> None:
        """Releases what was allocated, the latest first."""
        for name, buffer in reversed(self.buffers.items()):
            if name not in keep:
                self.device.free(buffer)

    def _allocate(self, step: Allocate) -> Buffer:
        buffer = self.device.allocate(
            step.buffer, step.tensor, by=step.by, placed=self.dispatch, tensor=self._spec(step)
        )
        self.buffers[step.tensor] = buffer
        return buffer

    def _spec(self, step: Allocate) -> TensorSpec | None:
        return self.tensors.get(step.tensor)

    def _relocate(self, step: Relocate) -> None:
        before = self.buffers[step.tensor]
        self.device.free(before)
        after = self._allocate(Allocate(step.tensor, step.buffer))
        if (after.address, after.spec.buffer_type) == (before.address, before.spec.buffer_type):
            return
        together = bool(step.overlapping) and _overlap(before, after, self.device.spec) and self._has_room(step, after)
        self._program(
            Operation(
                name=MOVE,
                inputs=(step.tensor,),
                circular_buffers=step.overlapping if together else step.circular_buffers,
                op=step.op,
                key=(MOVE, step.buffer, together),
                refused=_whole_pages_refusal(step.overlapping) if together else None,
            )
        )

    def _has_room(self, step: Relocate, after: Buffer) -> bool:
        """Whether all that a core moves fits below where it goes."""
        l1 = self.device.spec.l1
        limit = after.address if after.spec.buffer_type is BufferType.L1 else l1.bytes
        return l1.base_bytes + sum(buffer.size_bytes for buffer in step.overlapping) <= limit

    def _program(self, step: Operation) -> None:
        read, spec = self._read(step), self.device.spec
        self.device.record(
            OperationBegin(step.name, step.op, read, spec=spec, dispatched=self.dispatch, step=self.index)
        )
        try:
            for output in step.outputs:
                self._allocate(output)
            cached = self.dispatch and step.key in self.device.program_cache
            if cached:
                self.device.run_cached(step.key)
            else:
                self._make_program(step)
        except BaseException:
            self._abort(step)
            raise
        written = [output.tensor for output in step.outputs] or step.inputs[-1:]
        result = tuple(self._tensor(name) for name in written if name in self.tensors)
        self.device.record(OperationEnd(step.name, made=result, cached=cached))

    def _read(self, step: Operation) -> tuple[ReadTensor, ...]:
        names = (tensor for tensor in step.inputs if tensor in self.tensors and tensor in self.buffers)
        return tuple(ReadTensor(self._tensor(name), self.buffers[name].spec) for name in names)

    def _tensor(self, name: str) -> WrittenTensor:
        buffer = self.buffers[name]
        return WrittenTensor(buffer.number, buffer.address, self.tensors[name])

    def _abort(self, step: Operation) -> None:
        """Releases the outputs and the resident tensors of an operation whose program could not be built."""
        for buffer in self.unkept:
            self.device.free(buffer)
        for output in reversed(step.outputs):
            if output.tensor in self.buffers:
                self.device.free(self.buffers[output.tensor])
        self.device.record(OperationEnd(step.name, aborted=True))

    def _make_program(self, step: Operation) -> None:
        device = self.device
        if step.refused is not None:
            raise DeviceError(step.refused)
        for tensor in step.resident:
            result = device.allocate(
                tensor.buffer, tensor.tensor, by=tensor.by, placed=self.dispatch, tensor=self._spec(tensor)
            )
            self.unkept.append(result)
        if step.unfinished is not None:
            raise DeviceError(step.unfinished)
        resident = {tensor.tensor: buffer for tensor, buffer in zip(step.resident, self.unkept, strict=True)}
        known = {**self.buffers, **resident}
        addresses = {
            buffer.view_of: known[buffer.view_of].address
            for buffer in step.circular_buffers
            if buffer.view_of is not None
        }
        program = device.make_program(
            step.name, step.circular_buffers, addresses, placed=self.dispatch, dataflow=step.dataflow
        )
        if self.dispatch:
            device.cache_program(step.key, program, self.unkept)
        else:
            for buffer in self.unkept:
                device.free(buffer)
        self.unkept = []
