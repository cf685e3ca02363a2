"""Make a recorded call again, on a simulated device."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import ttsim
from tools.recorded.records import PEAK_FIELDS, Floats, Outcome, Record, inputs, pair
from ttsim.device import Values

SPEC_OF_ARCH = {"wh": "wormhole_n150", "bh": "blackhole_p150"}
SHARDINGS = {"HEIGHT": "HEIGHT_SHARDED", "BLOCK": "BLOCK_SHARDED", "WIDTH": "WIDTH_SHARDED"}


def run(record: Record) -> Outcome:
    """Make the recorded call on a fresh simulated device; without values where none were recorded."""
    case = record["case"]
    outcome = Outcome()
    values: Values = "fast" if record["mode"] == "sim" else "off"
    device = ttsim.open_device(
        device_id=0, l1_small_size=case.get("l1_small_size", 32768), spec=SPEC_OF_ARCH[record["arch"]], values=values
    )
    mode = ttsim.graph.RunMode.NO_DISPATCH if record["mode"] == "mock" else ttsim.graph.RunMode.NORMAL
    try:
        arguments = call_arguments(case, device)
        ttsim.graph.begin_graph_capture(mode)
        try:
            output, size, (weight, bias) = ttsim.conv_transpose2d(
                **arguments, return_output_dim=True, return_weights_and_bias=True
            )
        finally:
            trace = ttsim.graph.end_graph_capture()
            outcome.fields.update(read_trace(trace))
        outcome.fields.update(
            output=describe(output),
            weight_prepared=describe(weight),
            bias_prepared=None if bias is None else describe(bias),
            output_hw=list(size),
        )
        if values == "fast":
            outcome.values = np.array(output.cpu().to_list(), dtype=np.float32)
    except (RuntimeError, ValueError, TypeError) as error:
        outcome.error = str(error)
    finally:
        ttsim.close_device(device)
    return outcome


def call_arguments(case: Mapping[str, Any], device: Any) -> dict[str, Any]:
    """The keyword arguments of the recorded call, tensors placed where they lay."""
    x, w, b = inputs(case)
    n, height, width, channels = x.shape
    weights_dtype = dtype_of(case.get("weights_in_dtype", "bfloat16"))
    compute = {
        key: case[key]
        for key in ("fp32_dest_acc_en", "packer_l1_acc", "math_approx_mode", "dst_full_sync_en")
        if case.get(key) is not None
    }
    if case.get("math_fidelity"):
        compute["math_fidelity"] = getattr(ttsim.MathFidelity, case["math_fidelity"])
    common: dict[str, Any] = {
        "device": device,
        "in_channels": channels,
        "out_channels": case["out_channels"],
        "batch_size": n,
        "input_height": height,
        "input_width": width,
        "kernel_size": pair(case["kernel"]),
        "stride": pair(case.get("stride", 1)),
        "padding": pair(case.get("padding", 0)),
        "dilation": pair(case.get("dilation", 1)),
        "groups": case.get("groups", 1),
        "conv_config": conv_config(case),
        "compute_config": ttsim.init_device_compute_kernel_config(device.arch(), **compute) if compute else None,
        "dram_slice_config": slice_config(case.get("slice")),
    }
    mirror = {} if case.get("mirror_kernel") is None else {"mirror_kernel": case["mirror_kernel"]}
    arguments: dict[str, Any] = {
        "input_tensor": place(x, case, device),
        "weight_tensor": ttsim.Tensor(w, weights_dtype),
        "bias_tensor": ttsim.Tensor(b, weights_dtype) if case.get("has_bias") else None,
        "output_padding": pair(case.get("output_padding", 0)),
        "dtype": dtype_of(case["dtype"]) if case.get("dtype") else None,
        **common,
        **mirror,
    }
    if case.get("memory_config"):
        arguments["memory_config"] = getattr(ttsim, case["memory_config"])
    if case.get("prep"):
        prepare(arguments, common, mirror, case)
    return arguments


def prepare(
    arguments: dict[str, Any], common: Mapping[str, Any], mirror: Mapping[str, Any], case: Mapping[str, Any]
) -> None:
    """Send weight and bias of the call through the two preparation functions first."""
    x = arguments["input_tensor"]
    shared: dict[str, Any] = {
        "input_memory_config": x.memory_config(),
        "input_layout": x.layout,
        "input_dtype": dtype_of(case.get("input_dtype", "bfloat16")),
        "output_dtype": arguments["dtype"],
        **common,
    }
    bias = arguments["bias_tensor"]
    arguments["weight_tensor"] = ttsim.prepare_conv_transpose2d_weights(
        weight_tensor=arguments["weight_tensor"],
        weights_format="IOHW",
        output_padding=arguments["output_padding"],
        has_bias=bias is not None,
        **shared,
        **mirror,
    )
    if bias is not None:
        arguments["bias_tensor"] = ttsim.prepare_conv_transpose2d_bias(bias_tensor=bias, **shared)


def place(x: Floats, case: Mapping[str, Any], device: Any) -> Any:
    """The input tensor, where and as the recorded call had it."""
    n, height, width, channels = x.shape
    shaped = x if case.get("input_4d") else x.reshape(1, 1, n * height * width, channels)
    layout = layout_of(case.get("input_layout", "ROW_MAJOR"))
    tensor = ttsim.Tensor(shaped, dtype_of(case.get("input_dtype", "bfloat16")), layout=layout)
    if case.get("input_memory") == "host":
        return tensor
    memory = ttsim.L1_MEMORY_CONFIG if case.get("input_memory") == "l1" else ttsim.DRAM_MEMORY_CONFIG
    if case.get("input_spec"):
        kind, shard, end = case["input_spec"]
        grid = ttsim.CoreRangeSet({ttsim.CoreRange(ttsim.CoreCoord(0, 0), ttsim.CoreCoord(*end))})
        memory = ttsim.MemoryConfig(
            getattr(ttsim.TensorMemoryLayout, SHARDINGS[kind]),
            ttsim.BufferType.L1,
            ttsim.ShardSpec(grid, shard, ttsim.ShardOrientation.ROW_MAJOR),
        )
    return tensor.to(device, memory)


def conv_config(case: Mapping[str, Any]) -> Any:
    """The Conv2dConfig of a case, None where the call had none."""
    fields = dict(case.get("conv_config", {}))
    if case.get("weights_dtype"):
        fields["weights_dtype"] = dtype_of(case["weights_dtype"])
    if case.get("shard_layout"):
        fields["shard_layout"] = getattr(ttsim.TensorMemoryLayout, SHARDINGS[case["shard_layout"]])
    if case.get("act_block_h_override"):
        fields["act_block_h_override"] = case["act_block_h_override"]
    if case.get("output_layout"):
        fields["output_layout"] = layout_of(case["output_layout"])
    if case.get("activation"):
        fields["activation"] = ttsim.UnaryWithParam(getattr(ttsim.UnaryOpType, case["activation"].upper()))
    return ttsim.Conv2dConfig(**fields) if fields else None


def slice_config(recorded: Any) -> Any:
    """The slice config of a case: None, the L1 path, or slices of an axis."""
    if recorded is None:
        return None
    if recorded == "l1_full":
        return ttsim.Conv2dL1FullSliceConfig
    axis, count = recorded
    kind = ttsim.Conv2dDRAMSliceHeight if axis == "H" else ttsim.Conv2dDRAMSliceWidth
    return ttsim.Conv2dSliceConfig(slice_type=kind, **({} if count is None else {"num_slices": count}))


def dtype_of(name: str) -> Any:
    """The data type of that name."""
    return getattr(ttsim, name)


def layout_of(name: str) -> Any:
    """The layout of that name."""
    return {"ROW_MAJOR": ttsim.ROW_MAJOR_LAYOUT, "TILE": ttsim.TILE_LAYOUT}[name]


def describe(tensor: Any) -> dict[str, Any]:
    """A tensor's spec in the record's words."""
    return {
        "shape": list(tensor.shape),
        "padded_shape": list(tensor.padded_shape),
        "dtype": str(tensor.dtype),
        "layout": str(tensor.layout),
        "memory_config": str(tensor.memory_config()),
    }


def read_trace(trace: Any) -> dict[str, Any]:
    """Device operations, circular buffers, buffers and peaks of a captured graph, in the record's words."""
    ops: list[str] = []
    circular: list[dict[str, Any]] = []
    buffers: list[dict[str, Any]] = []
    stack: list[str] = []
    for node in trace:
        kind, parameters = node["node_type"], node.get("params") or {}
        if kind == "function_start":
            stack.append(parameters["name"])
            ops.append(parameters["name"])
        elif kind == "function_end" and stack:
            stack.pop()
        elif kind == "circular_buffer_allocate":
            circular.append({**parameters, "op": stack[-1] if stack else None, "cores": parameters["core_range_set"]})
        elif kind in ("buffer_allocate", "buffer_deallocate"):
            buffers.append({**parameters, "ev": kind.removeprefix("buffer_")})
    usage = ttsim.graph.extract_resource_usage_per_core(trace)
    peaks = {key: getattr(usage, key) for key in PEAK_FIELDS}
    return {"ops": ops, "cbs": circular, "buffers": buffers, "resource_per_core": peaks}
