"""Plans against all recorded calls that the real library runs in one piece: operations, circular buffers, buffers."""

import gzip
import json
from collections import Counter

import pytest

from device.errors import DeviceError
from device.machine import Machine
from device.memory.memory_config import BufferType, TensorMemoryLayout
from device.plan import BufferAllocated, BufferFreed, CircularBufferAllocated, OperationBegin, usage_per_core
from device.spec.device_spec import load_spec
from ops.passes.memory import run_memory
from ops.planners.conv.plan import plan_convolution
from tools.recorded.arguments import planner_arguments

RECORDS = "oracle/ttnn/cases.jsonl.gz"
SPECS = {"wh": load_spec("wormhole_n150"), "bh": load_spec("blackhole_p150")}
LEAST_CALLS = 600


def operations(record):
    return [name.strip() for name in record["ops"] if name.strip().endswith("DeviceOperation")]


def recorded_calls(path):
    """Calls that came back, in one piece, with raw weights, no matmul, and the output where it was computed."""
    with gzip.open(path, "rt") as lines:
        for record in map(json.loads, lines):
            case = record["case"]
            if "error" in record or case.get("prep") or case.get("memory_config"):
                continue
            if "PaddedSliceDeviceOperation" not in operations(record):
                call = planner_arguments(case)
                if not call.is_matmul:
                    yield record, call


def planned(record, call):
    """What planning and allocating a call does on a fresh device, in the record's words."""
    device = Machine(SPECS[record["arch"]], l1_small_bytes=record["case"].get("l1_small_size", 32768))
    inputs = {}
    if not call.input.on_host:
        inputs["input"] = device.allocate(call.input.spec.buffer(device.spec), "input")
    device.recorders.append(heard := [])
    free = device.allocator.statistics(BufferType.L1).free_bytes_per_bank
    plan = plan_convolution(call, device.spec, free_l1_bytes=free)
    run_memory(plan, device, inputs, dispatch=record["mode"] != "mock")
    return heard


def circular_buffers(heard):
    """Those that a capture with dispatch shows."""
    return [
        (event.operation, event.size_bytes, event.address, str(event.cores), str(int(event.view)))
        for event in heard
        if isinstance(event, CircularBufferAllocated) and not event.dataflow
    ]


def buffers(heard):
    return [
        (
            "allocate" if isinstance(event, BufferAllocated) else "deallocate",
            event.buffer.buffer_type.name.removesuffix("_SMALL"),
            event.address,
            event.buffer.size_bytes,
            event.buffer.page_bytes,
            event.buffer.memory_layout.name,
            event.buffer.bank_bytes,
        )
        for event in heard
        if isinstance(event, BufferAllocated | BufferFreed)
    ]


def recorded_buffers(record):
    """Releases were recorded without page, layout and bank: None there."""
    names = ("ev", "type", "address", "size", "page_size", "layout", "max_size_per_bank")
    return [tuple(one.get(name) for name in names) for one in record["buffers"]]


def first_difference(have, want):
    """The first entries that differ where something was recorded, or the lengths; None if there is no difference."""
    for one, other in zip(have, want, strict=False):
        if any(w is not None and h != w for h, w in zip(one, other, strict=True)):
            return one, other
    return None if len(have) == len(want) else (len(have), len(want))


def differences(record, call):
    """Aspect and first difference, for each aspect in which the plan is not what was recorded."""
    try:
        heard = planned(record, call)
    except (DeviceError, ValueError) as error:
        return {"refused": str(error)}
    ran = [event.name for event in heard if isinstance(event, OperationBegin)]
    want = [
        (one["op"], one["size"], one["address"], one["cores"], one["globally_allocated"])
        for one in record["cbs"]
        if one["op"] in ("HaloDeviceOperation", "Conv2dDeviceOperation")
    ]
    found = {
        "operations": None if ran == operations(record) else (ran, operations(record)),
        "circular buffers": first_difference(circular_buffers(heard), want),
        "buffers": first_difference(buffers(heard), recorded_buffers(record)),
    }
    peaks = record.get("resource_per_core")
    if isinstance(peaks, dict) and record["mode"] != "mock":
        have = tuple(usage_per_core(heard))
        want_peaks = tuple(peaks[name] for name in ("peak_cb", "peak_l1", "peak_total"))
        found["peaks"] = None if have == want_peaks else (have, want_peaks)
    return {aspect: wrong for aspect, wrong in found.items() if wrong is not None}


@pytest.fixture(scope="module")
def calls(recordings):
    return list(recorded_calls(recordings(RECORDS)))


def test_recorded_plans(calls):
    found = {f"{record['set']}/{record['name']}": differences(record, call) for record, call in calls}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_recorded_calls_are_many_and_varied(calls):
    assert len(calls) > LEAST_CALLS
    assert {(record["arch"], record["mode"]) for record, _ in calls} == {
        (arch, mode) for arch in ("wh", "bh") for mode in ("sim", "mock", "plan")
    }
    assert Counter(call.conv_config.shard_layout for _, call in calls).keys() == {
        None,
        TensorMemoryLayout.HEIGHT_SHARDED,
        TensorMemoryLayout.BLOCK_SHARDED,
        TensorMemoryLayout.WIDTH_SHARDED,
    }
    met = {name for record, _ in calls for name in operations(record)}
    assert {"HaloDeviceOperation", "MoveDeviceOperation", "Conv2dDeviceOperation"} <= met
