"""Actions of recorded calls, held to what follows from shapes and the definition of a convolution alone."""

from itertools import islice
from math import prod

import pytest

from device.memory.memory_config import BufferType, Layout
from device.time.stages import SHARED
from ops.passes.counts import counts_of, counts_together
from ops.passes.cycles import run_cycles
from ops.planners.conv.plan import plan_convolution
from tools.golden.calls import DEVICE_OF
from tools.recorded import DATA, pair, planner_arguments, read_records
from ttsim import load_spec
from ttsim.report.cycles import whole_operation

EVERY = 5  # run of the sample: planning takes 40 ms
RECORDS = [
    record
    for record in islice(
        (
            record
            for name in ("recorded_runs.jsonl.gz", "unet_layer_runs.jsonl.gz")
            for record in read_records(DATA / name)
        ),
        None,
        None,
        EVERY,
    )
    if "error" not in record
]


def size_bytes(tensor):
    """All numbers of a tensor, with the padding to whole tiles."""
    if tensor.layout is Layout.TILE:
        return prod(tensor.padded_shape) // 1024 * tensor.data_format.tile_bytes
    return prod(tensor.matrix) * tensor.data_format.element_bytes


def in_dram(tensor):
    return tensor.memory_config.buffer_type is BufferType.DRAM


def products(inputs, kernel, stride, padding, dilation, output_padding):
    """Products along an axis: of each output with each tap that lies on an input, or on padding between none."""
    outputs = (inputs - 1) * stride - sum(padding) + dilation * (kernel - 1) + output_padding + 1
    return sum((o + padding[0] - tap * dilation) % stride == 0 for o in range(outputs) for tap in range(kernel))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["name"])
def test_counts_equal_shapes_and_definition(record):
    case, spec = record["case"], load_spec(DEVICE_OF[record["arch"]])
    call = planner_arguments(case, record["arch"])
    counts = []
    for operation in run_cycles(plan_convolution(call, spec, free_l1_bytes=1 << 20), spec).operations:
        taken, ends = whole_operation(operation.cycles), operation.ends
        own = counts_of(operation, taken, spec)
        counts.append(own)
        groups = [(group.cores.num_cores(), group) for group in taken.groups]
        assert own.idle_core_cycles == sum(count * (taken.cycles - group.cycles) for count, group in groups) + (
            taken.cycles * (spec.grid.cores - sum(count for count, _ in groups))
        )
        busy = (
            max((stage.busy_cycles for stage in group.stages if stage.stage not in SHARED), default=0)
            for _, group in groups
        )
        most = sum(count * min(spent, group.cycles) for spent, (count, group) in zip(busy, groups, strict=True))
        assert own.busy_core_cycles == most
        assert own.waiting_core_cycles >= 0
        if ends.whole:
            assert own.dram_written_bytes == (size_bytes(ends.written) if in_dram(ends.written) else 0)
        transfers = taken.transfers or ()
        assert not transfers or own.dram_read_bytes == sum(each.sent_bytes for each in transfers if each.from_dram)
        assert not transfers or own.dram_written_bytes == sum(each.sent_bytes for each in transfers if each.to_dram)
        assert all(each.taken_bytes >= each.sent_bytes for each in transfers if each.from_dram or each.to_dram)
        assert own.l1_read_bytes >= own.unpacked_bytes
        assert own.l1_written_bytes >= own.packed_bytes
    usual = (("kernel", 1), ("stride", 1), ("dilation", 1), ("output_padding", 0))
    kernel, stride, dilation, more = (pair(case.get(name, value)) for name, value in usual)
    area = prod(
        products(
            case[side], kernel[axis], stride[axis], call.padding[2 * axis : 2 * axis + 2], dilation[axis], more[axis]
        )
        for axis, side in enumerate("HW")
    )
    defined = case.get("batch", 1) * area * case["in_channels"] * case["out_channels"] // case.get("groups", 1)
    useful = sum(each.useful for each in counts_together(counts).multiply_adds)
    sliced = sum(counted.multiply_adds != () for counted in counts) > 1
    assert useful >= defined if sliced else useful == defined  # slices may compute outputs twice
    assert all(each.issued >= each.useful for counted in counts for each in counted.multiply_adds)
