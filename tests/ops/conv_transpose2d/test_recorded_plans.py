"""Plans against all recorded calls that the real library runs in one piece: operations, circular buffers, buffers."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError
from device.events import BufferAllocated, BufferFreed, CircularBufferAllocated, OperationBegin, usage_per_core
from device.formats import FORMATS
from device.layouts import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
    TensorSpec,
)
from device.machine import Device
from device.spec import load_spec
from ops.conv_transpose2d.arguments import (
    ComputeConfig,
    ConvConfig,
    ConvTranspose2dArguments,
    Operand,
    SliceConfig,
    SliceType,
)
from ops.conv_transpose2d.lowering import is_matmul
from ops.conv_transpose2d.plan import plan_conv_transpose2d
from ops.run import run_memory

RECORDS = Path(__file__).resolve().parents[4] / "shared" / "oracle" / "ttnn" / "cases.jsonl.gz"
SPECS = {"wh": load_spec("wormhole_n150"), "bh": load_spec("blackhole_p150")}
LAYOUTS = {"ROW_MAJOR": Layout.ROW_MAJOR, "TILE": Layout.TILE}
PHASES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}
SLICES = {"H": SliceType.DRAM_HEIGHT, "W": SliceType.DRAM_WIDTH}
COMPUTE_FIELDS = ("fp32_dest_acc_en", "packer_l1_acc", "math_approx_mode", "dst_full_sync_en", "math_fidelity")
CONFIG_FIELDS = {
    "enable_act_double_buffer", "enable_weights_double_buffer", "full_inner_dim", "reallocate_halo_output",
    "config_tensors_in_dram", "force_split_reader", "act_block_w_div", "deallocate_activation", "transpose_shards",
    "reshard_if_not_optimal", "enable_kernel_stride_folding", "enable_activation_reuse",
}  # fmt: skip
LEAST_CALLS = 600


def pair(value):
    return tuple(value) if isinstance(value, list) else (value, value)


def sharding(name):
    return TensorMemoryLayout[f"{name}_SHARDED"]


def input_memory(case):
    if case.get("input_spec"):
        kind, shape, end = case["input_spec"]
        grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(*end))])
        return MemoryConfig(sharding(kind), BufferType.L1, ShardSpec(grid, tuple(shape)))
    return L1_MEMORY_CONFIG if case.get("input_memory") == "l1" else DRAM_MEMORY_CONFIG


def conv_config(case):
    given = case.get("conv_config", {})
    unknown = set(given) - CONFIG_FIELDS - {"padding_mode"}
    assert not unknown, unknown
    return ConvConfig(
        **{name: value for name, value in given.items() if name in CONFIG_FIELDS},
        replicate_padding=given.get("padding_mode") == "Replicate",
        weights_format=FORMATS[case["weights_dtype"]] if case.get("weights_dtype") else None,
        shard_layout=sharding(case["shard_layout"]) if case.get("shard_layout") else None,
        act_block_h_override=case.get("act_block_h_override") or 0,
        output_layout=LAYOUTS[case.get("output_layout") or "TILE"],
        activation=(case["activation"].lower(), ()) if case.get("activation") else None,
    )


def compute_config(case):
    if all(case.get(name) is None for name in COMPUTE_FIELDS):
        return None
    return ComputeConfig(
        phases=PHASES[case.get("math_fidelity") or "LoFi"],
        fp32_dest=bool(case.get("fp32_dest_acc_en")),
        packer_l1_acc=bool(case.get("packer_l1_acc")),
    )


def slice_config(given):
    if given is None:
        return None
    if given == "l1_full":
        return SliceConfig(slice_type=SliceType.L1_FULL)
    return SliceConfig(slice_type=SLICES[given[0]], num_slices=given[1] or 0)


def arguments(case):
    """The recorded call in the planner's words."""
    batch, height, width = case.get("batch", 1), case["H"], case["W"]
    channels, outputs, groups = case["in_channels"], case["out_channels"], case.get("groups", 1)
    padding = pair(case.get("padding", 0))
    shape = (batch, height, width, channels) if case.get("input_4d") else (1, 1, batch * height * width, channels)
    layout = LAYOUTS[case.get("input_layout", "ROW_MAJOR")]
    in_spec = TensorSpec(shape, FORMATS[case.get("input_dtype", "bfloat16")], layout, input_memory(case))
    raw = FORMATS[case.get("weights_in_dtype", "bfloat16")]
    weight = TensorSpec((channels, outputs // groups, *pair(case["kernel"])), raw, Layout.ROW_MAJOR)
    bias = Operand(spec=TensorSpec((1, 1, 1, outputs), raw, Layout.ROW_MAJOR), on_host=True)
    return ConvTranspose2dArguments(
        input=Operand(spec=in_spec, on_host=case.get("input_memory") == "host"),
        weight=Operand(spec=weight, on_host=True),
        bias=bias if case.get("has_bias") else None,
        in_channels=channels,
        out_channels=outputs,
        batch_size=batch,
        input_height=height,
        input_width=width,
        kernel_size=pair(case["kernel"]),
        stride=pair(case.get("stride", 1)),
        padding=padding if len(padding) == 4 else (padding[0], padding[0], padding[1], padding[1]),
        output_padding=pair(case.get("output_padding", 0)),
        dilation=pair(case.get("dilation", 1)),
        groups=groups,
        out_format=FORMATS[case["dtype"]] if case.get("dtype") else None,
        conv_config=conv_config(case),
        compute_config=compute_config(case),
        slice_config=slice_config(case.get("slice")),
        mirror_kernel=case.get("mirror_kernel", True),
    )


def operations(record):
    return [name.strip() for name in record["ops"] if name.strip().endswith("DeviceOperation")]


def recorded_calls():
    """Calls that came back, in one piece, with raw weights, no matmul, and the output where it was computed."""
    with gzip.open(RECORDS, "rt") as lines:
        for record in map(json.loads, lines):
            case = record["case"]
            if "error" in record or case.get("prep") or case.get("memory_config"):
                continue
            if "PaddedSliceDeviceOperation" not in operations(record):
                call = arguments(case)
                if not is_matmul(call):
                    yield record, call


def planned(record, call):
    """What planning and allocating a call does on a fresh device, in the record's words."""
    device = Device(SPECS[record["arch"]], l1_small_bytes=record["case"].get("l1_small_size", 32768))
    inputs = {}
    if not call.input.on_host:
        inputs["input"] = device.allocate(call.input.spec.buffer(device.spec), "input")
    device.recorders.append(heard := [])
    free = device.allocator.statistics(BufferType.L1).free_bytes_per_bank
    plan = plan_conv_transpose2d(call, device.spec, free_l1_bytes=free)
    run_memory(plan, device, inputs, dispatch=record["mode"] != "mock")
    return heard


def circular_buffers(heard):
    return [
        (event.operation, event.size_bytes, event.address, str(event.cores), str(int(event.view)))
        for event in heard
        if isinstance(event, CircularBufferAllocated)
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
def calls():
    if not RECORDS.exists():
        pytest.skip("the recorded runs (../shared/oracle/ttnn beside the checkout) are not here")
    return list(recorded_calls())


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
        *map(sharding, ("HEIGHT", "BLOCK", "WIDTH")),
    }
    met = {name for record, _ in calls for name in operations(record)}
    assert {"HaloDeviceOperation", "MoveDeviceOperation", "Conv2dDeviceOperation"} <= met
