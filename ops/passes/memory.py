"""The memory pass over a plan: the first pass, so that a call that does not fit fails before anything is computed.

A failed call leaves the device as before, except for the inputs that it releases.
"""

from collections.abc import Mapping

from device.errors import DeviceError
from device.machine import Machine
from device.memory.buffers import Buffer
from device.memory.layouts import BufferSpec, TensorSpec, aligned_page_bytes
from device.memory.memory_config import BufferType
from device.numbers.formats import div_up
from device.plan import (
    MOVE,
    Allocate,
    Free,
    L1Use,
    Operation,
    OperationBegin,
    OperationEnd,
    Plan,
    ReadTensor,
    Refuse,
    Relocate,
    Step,
    UsagePerCore,
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


def usage_without_dispatch(plan: Plan) -> UsagePerCore:
    """`usage_per_core` of the events of `run_memory` without dispatch, for a plan that runs on inputs in DRAM.

    Every program is made, its config tensors are released at its end, and a tensor that is relocated stays at its
    address.
    """
    use, held = L1Use(), dict[str, BufferSpec]()

    def hold(allocation: Allocate | Relocate) -> None:
        if allocation.buffer.size_bytes:  # no capture shows the buffer of an empty tensor
            held[allocation.tensor] = allocation.buffer
            use.add(allocation.buffer)

    def release(tensor: str) -> None:
        if tensor in held:
            use.remove(held.pop(tensor))

    for step in plan.steps:
        match step:
            case Allocate():
                hold(step)
            case Free(tensor=tensor):
                release(tensor)
            case Relocate(tensor=tensor):
                release(tensor)
                hold(step)
            case Operation(outputs=outputs, resident=resident, circular_buffers=buffers):
                for allocation in (*outputs, *resident):
                    hold(allocation)
                use.remove_circular_buffers()
                own_bytes = sum([buffer.size_bytes for buffer in buffers if buffer.view_of is None])
                use.add_circular_buffers(own_bytes, dataflow=step.dataflow)
                for allocation in resident:
                    release(allocation.tensor)
    return use.peaks


def _overlap(before: Buffer, after: Buffer, spec: DeviceSpec) -> bool:
    """Whether the old and new addresses of a moved tensor overlap: up in L1, down in DRAM.

    The library assumes that the pages at the new address, sharded or not, are distributed over all banks.
    """
    place = after.spec
    if before.spec.buffer_type is not place.buffer_type:
        return False
    in_l1 = place.buffer_type is BufferType.L1
    low, high = (before, after) if in_l1 else (after, before)
    bank_pages = div_up(place.size_bytes // place.page_bytes, spec.grid.cores if in_l1 else spec.dram.banks)
    return low.address + bank_pages * aligned_page_bytes(place.page_bytes, place.buffer_type, spec) > high.address


class _MemoryPass:
    """The buffers of a plan while it is read."""

    def __init__(
        self, device: Machine, buffers: dict[str, Buffer], tensors: Mapping[str, TensorSpec], *, dispatch: bool
    ) -> None:
        self.device, self.buffers, self.tensors, self.dispatch = device, buffers, tensors, dispatch

    def take(self, index: int, step: Step) -> None:
        """Runs one step."""
        match step:
            case Allocate():
                self.buffers[step.tensor] = self._allocated(step)
            case Free(tensor=tensor):
                self.device.free(self.buffers[tensor])
            case Relocate():
                self._relocate(index, step)
            case Operation():
                self._program(index, step)
            case Refuse(text=text, error=error):
                raise error(text)

    def undo(self, *, keep: Mapping[str, Buffer]) -> None:
        """Frees all allocated buffers, the latest first."""
        for name, buffer in reversed(self.buffers.items()):
            if name not in keep:
                self.device.free(buffer)

    def _allocated(self, step: Allocate) -> Buffer:
        spec = self.tensors.get(step.tensor)
        return self.device.allocate(step.buffer, step.tensor, by=step.by, placed=self.dispatch, tensor=spec)

    def _relocate(self, index: int, step: Relocate) -> None:
        """Allocates a tensor again; if both addresses overlap and it fits, all of it is read before it is written."""
        before = self.buffers[step.tensor]
        self.device.free(before)
        after = self.buffers[step.tensor] = self._allocated(Allocate(step.tensor, step.buffer))
        if (after.address, after.spec.buffer_type) == (before.address, before.spec.buffer_type):
            return
        l1, refused = self.device.spec.l1, None
        limit = after.address if after.spec.buffer_type is BufferType.L1 else l1.bytes
        fits = l1.base_bytes + sum(buffer.size_bytes for buffer in step.overlapping) <= limit
        together = bool(step.overlapping) and fits and _overlap(before, after, self.device.spec)
        ragged = [buffer for buffer in step.overlapping if buffer.size_bytes % buffer.page_bytes]
        if together and ragged:
            refused = (
                f"Total circular buffer size {ragged[0].size_bytes} B must be divisible by page size "
                f"{ragged[0].page_bytes} B\n"
                "memory_config: leave it out; a move into shards that overlap the tensor needs pages of the same size"
            )
        buffers, key = step.overlapping if together else step.circular_buffers, (MOVE, step.buffer, together)
        inputs = (step.tensor,)
        move = Operation(name=MOVE, inputs=inputs, circular_buffers=buffers, op=step.op, key=key, refused=refused)
        self._program(index, move)

    def _program(self, index: int, step: Operation) -> None:
        device, resident = self.device, list[Buffer]()
        inputs = [name for name in step.inputs if name in self.tensors and name in self.buffers]
        read = tuple([ReadTensor(self._tensor(name), self.buffers[name].spec) for name in inputs])
        device.record(OperationBegin(step.name, step.op, read, spec=device.spec, dispatched=self.dispatch, step=index))
        try:
            for output in step.outputs:
                self.buffers[output.tensor] = self._allocated(output)
            cached = self.dispatch and step.key in device.program_cache
            if cached:
                device.run_cached(step.key)
            else:
                self._make_program(step, resident)
        except BaseException:
            outputs = [self.buffers[name] for name in [out.tensor for out in step.outputs] if name in self.buffers]
            for buffer in (*resident, *reversed(outputs)):
                device.free(buffer)
            device.record(OperationEnd(step.name, aborted=True))
            raise
        written = [output.tensor for output in step.outputs] or step.written
        result = tuple(self._tensor(name) for name in written if name in self.tensors)
        device.record(OperationEnd(step.name, made=result, cached=cached))

    def _tensor(self, name: str) -> WrittenTensor:
        buffer = self.buffers[name]
        return WrittenTensor(buffer.number, buffer.address, self.tensors[name])

    def _make_program(self, step: Operation, resident: list[Buffer]) -> None:
        """Builds a program; its config tensors are added to ``resident`` as they are allocated."""
        if step.refused is not None:
            raise DeviceError(step.refused)
        if step.room is not None and self.dispatch and self.device.l1_room_bytes < step.room.size_bytes:
            raise DeviceError(step.room.refusal.format(room=self.device.l1_room_bytes))
        for tensor in step.resident:
            resident.append(self._allocated(tensor))
        if step.unfinished is not None:
            raise DeviceError(step.unfinished)
        known = {**self.buffers, **dict(zip([tensor.tensor for tensor in step.resident], resident, strict=True))}
        views = {buffer.view_of for buffer in step.circular_buffers if buffer.view_of is not None}
        program = self.device.make_program(
            step.name,
            step.circular_buffers,
            {view: known[view].address for view in views},
            placed=self.dispatch,
            dataflow=step.dataflow,
        )
        if self.dispatch:
            self.device.cache_program(step.key, program, resident)
        else:
            for buffer in resident:
                self.device.free(buffer)
