"""What must hold of the memory in any call that a device accepts, read from its events by a referee of its own."""

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, strategies as st

from device.errors import TTSimError
from device.machine import Machine
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, BufferType, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.plan import BufferAllocated, BufferFreed, CircularBufferAllocated, CircularBuffersFreed, Operation
from device.spec.device_spec import load_spec
from ops.passes.memory import run_memory
from ops.planners.conv.arguments import ComputeConfig, ConvConfig, SliceConfig, SliceType
from ops.planners.conv.checks import check_arguments, check_possible, check_slices
from ops.planners.conv.plan import plan_convolution
from ops.planners.conv.strict import check_strict, plan_fault
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.data_movement.slice import SliceWrite
from tests.build import operand, sized_call

SPECS = {name: load_spec(name) for name in ("wormhole_n150", "blackhole_p150")}
MEMORIES = (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL)
SCHEMES = [None, *(TensorMemoryLayout[f"{name}_SHARDED"] for name in ("HEIGHT", "BLOCK", "WIDTH"))]
FORMATS = [BFLOAT16, BFLOAT16, FLOAT32, BFLOAT8_B]
L1_SMALL_BYTES = 32768


@st.composite
def configs(draw):
    output_layout = draw(st.sampled_from(list(Layout)))
    return ConvConfig(
        weights_format=draw(st.sampled_from([None, BFLOAT8_B, FLOAT32])),
        shard_layout=draw(st.sampled_from(SCHEMES)),
        output_layout=output_layout,
        act_block_h_override=draw(st.sampled_from([0, 0, 32, 64, 96])),
        deallocate_activation=draw(st.booleans()),
        reallocate_halo_output=draw(st.booleans()),
        config_tensors_in_dram=draw(st.booleans()),
        enable_act_double_buffer=draw(st.booleans()),
        enable_weights_double_buffer=draw(st.booleans()),
        transpose_shards=draw(st.booleans()),
        force_split_reader=draw(st.sampled_from([None, True, False])),
    )


@st.composite
def calls(draw):
    """Calls on all paths, small and large, that are sane."""
    kernel, stride = draw(st.tuples(st.integers(1, 4), st.integers(1, 4))), draw(st.integers(1, 3))
    side = st.integers(1, 60)
    size, channels, outputs = draw(st.tuples(side, side)), draw(st.integers(1, 300)), draw(st.integers(1, 300))
    batch = draw(st.integers(1, 3))
    data_format = draw(st.sampled_from(FORMATS))
    layout = Layout.TILE if data_format.is_block else draw(st.sampled_from(list(Layout)))
    place = draw(st.sampled_from(["dram", "l1", "host"]))
    memory = {"dram": DRAM_MEMORY_CONFIG, "l1": L1_MEMORY_CONFIG, "host": None}[place]
    kind = draw(st.sampled_from([None, *SliceType]))
    call = sized_call(
        size,
        (channels, outputs),
        kernel,
        batch=batch,
        with_bias=draw(st.booleans()),
        stride=(stride, stride),
        padding=tuple(draw(st.integers(0, kernel[n] - 1)) for n in (0, 0, 1, 1)),
        output_padding=tuple(draw(st.integers(0, stride - 1)) for _ in range(2)),
        out_format=draw(st.sampled_from([None, BFLOAT16, BFLOAT8_B])),
        conv_config=draw(configs()),
        compute_config=draw(st.sampled_from([None, ComputeConfig(fp32_dest=True), ComputeConfig(packer_l1_acc=True)])),
        slice_config=None if kind is None else SliceConfig(slice_type=kind, num_slices=draw(st.integers(0, 5))),
    )
    image = operand(1, 1, batch * size[0] * size[1], channels, place=memory, data_format=data_format, layout=layout)
    return replace(call, input=image)


def fill(device, sizes):
    """Tensors of others, with holes between them."""
    spec = TensorSpec((1, 1, 32, 512), BFLOAT16, Layout.TILE, L1_MEMORY_CONFIG)
    kept = [
        device.allocate(replace(spec, shape=(1, 1, 32, 2048 * size), padded_shape=None).buffer(device.spec), "other")
        for size in sizes
    ]
    for one in kept[::2]:
        device.free(one)
    return kept[1::2]


def made(call, device):
    """The plan of a call, and its input on the device; calls that are refused are no examples."""
    try:
        check_arguments(call, device.spec)
        check_possible(call)
        check_slices(call)
        check_strict(call)
        inputs = {}
        if not call.input.on_host:
            inputs["input"] = device.allocate(call.input.spec.buffer(device.spec), "input")
        free = device.allocator.statistics(BufferType.L1).free_bytes_per_bank
        plan = plan_convolution(call, device.spec, free_l1_bytes=free)
        assume(plan_fault(plan, call) is None)
        return plan, inputs
    except TTSimError:
        assume(False)
        raise


class Referee:
    """Follows events, and refuses what no memory can do."""

    def __init__(self, device):
        self.l1, dram = device.spec.l1, device.spec.dram
        small = device.l1_small_bytes
        self.bounds = {
            BufferType.DRAM: (dram.base_bytes, dram.base_bytes + dram.usable_bytes, dram.alignment_bytes),
            BufferType.L1: (self.l1.base_bytes, self.l1.bytes - small, 32),
            BufferType.L1_SMALL: (self.l1.bytes - small, self.l1.bytes, 32),
        }
        self.live = {}
        self.circular = []
        for one in device.memory.live():
            self.take(BufferAllocated(one.number, one.name, one.address, one.spec))

    def take(self, event):
        match event:
            case BufferAllocated():
                self.placed(event)
            case BufferFreed():
                before = self.live.pop(event.number)
                assert before[1] == event.address
            case CircularBuffersFreed():
                self.circular.clear()
            case CircularBufferAllocated(view=True):
                assert self.lies_on_a_buffer(event)
            case CircularBufferAllocated():
                self.stacked(event)
            case _:
                pass

    def placed(self, event):
        """A buffer stays in its bank and meets no other one."""
        kind, start, end = event.buffer.buffer_type, event.address, event.address + event.buffer.bank_bytes
        lowest, highest, alignment = self.bounds[kind]
        assert lowest <= start < end <= highest
        assert start % alignment == 0
        assert all(other is not kind or end <= first or last <= start for other, first, last in self.live.values())
        self.live[event.number] = (kind, start, end)

    def stacked(self, event):
        """A circular buffer is in L1, below all buffers, and meets no other one on a core."""
        start, end = event.address, event.address + event.size_bytes
        assert self.l1.base_bytes <= start < end <= self.l1.bytes
        assert all(kind is not BufferType.L1 or end <= first for kind, first, _ in self.live.values())
        for cores, first, last in self.circular:
            shared = any(core_range.overlaps(other) for core_range in cores.ranges for other in event.cores.ranges)
            assert not shared or end <= first or last <= start
        self.circular.append((event.cores, start, end))

    def lies_on_a_buffer(self, event):
        return any(
            kind is not BufferType.DRAM and start <= event.address and event.address + event.size_bytes <= end
            for kind, start, end in self.live.values()
        )


def writes(plan, call):
    """How often each pixel of the output is written: [N, OH, OW]."""
    height, width = call.output_lengths()
    counts = np.zeros((call.batch_size, height, width), int)
    operations = [step for step in plan.steps if isinstance(step, Operation)]
    slices = [step.op for step in operations if isinstance(step.op, SliceWrite)]
    for part in slices:
        counts[tuple(slice(*bounds) for bounds in zip(part.window.begins[:3], part.window.ends[:3], strict=True))] += 1
    if not slices:
        counts += 1
    return counts


def shards_hold_every_stick_once(op):
    """Shards of equal height, none of them empty, hold all rows of a convolution's output."""
    rows, cores, height = op.problem.out_rows, op.layout.config.nhw_cores, op.layout.shards.out_rows
    return (cores - 1) * height < rows <= cores * height


def statistics(device):
    return [device.allocator.statistics(kind) for kind in MEMORIES]


@given(calls(), st.sampled_from(sorted(SPECS)), st.lists(st.integers(1, 40), max_size=6))
def test_memory(call, spec, others):
    device = Machine(SPECS[spec], l1_small_bytes=L1_SMALL_BYTES)
    kept = fill(device, others)
    at_first = statistics(device)
    plan, inputs = made(call, device)
    referee = Referee(device)
    device.recorders.append(heard := [])
    results = {}
    try:
        results = run_memory(plan, device, inputs)
        refused = False
    except TTSimError:
        refused = True
    if not refused:
        for event in heard:
            referee.take(event)
        assert (writes(plan, call) == 1).all()
        ops = [step.op for step in plan.steps if isinstance(step, Operation) and isinstance(step.op, Conv2dOp)]
        assert all(map(shards_hold_every_stick_once, ops))
    for result in (*results.values(), *inputs.values()):
        device.free(result)
    device.clear_program_cache()
    assert statistics(device) == at_first
    assert all(one.allocated for one in kept)
    assert {one.number for one in device.memory.live()} == {one.number for one in kept}
