"""Odd values as arguments of the public functions: each is taken or refused by name, and the device stays whole."""

import gc
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from tools.fuzz.finding import Finding, block_tables, tried

ODD: Final = [
    "None",
    "True",
    "0",
    "-1",
    "1",
    "3",
    "7",
    "31",
    "4096",
    "1<<31",
    "(1<<32)-1",
    "1<<40",
    "1<<70",
    "1.5",
    "-0.0",
    "2+1j",
    "float('nan')",
    "float('inf')",
    "'x'",
    "''",
    "'relu'",
    "'\\x1b[31m\\u202e\\0'",
    "'x'*10000",
    "b'ab'",
    "()",
    "[]",
    "{}",
    "{1,2}",
    "(1,)",
    "(1,1)",
    "(0,0)",
    "(2,0)",
    "(-1,1)",
    "(7,7)",
    "(1,1,1,1)",
    "(1,2,3)",
    "[None,1]",
    "(1<<31,1)",
    "(65536,65536)",
    "(1.5,1)",
    "('a','b')",
    "range(2)",
    "iter([1,1])",
    "np.int64(3)",
    "np.uint8(200)",
    "np.float32(2)",
    "np.nan",
    "np.zeros(0)",
    "np.zeros(0,np.float32)",
    "np.ma.masked_array(f,f>0)",
    "np.zeros((2,2),np.float32)",
    "np.array([1,1])",
    "np.array('x')",
    "np.array([None])",
    "np.zeros((1,0,3),np.float32)",
    "np.zeros((1,4,4,2),np.float16)",
    "np.full((1,4,4,2),np.inf,np.float32)",
    "object()",
    "len",
    "ttsim",
    "Ellipsis",
    "h",
    "x",
    "t",
    "w",
    "b",
    "single",
    "ttsim.to_layout(single,ttsim.TILE_LAYOUT).to(d)",
    "empty",
    "freed",
    "foreign",
    "d",
    "other",
    "closed",
    "ttsim.bfloat16",
    "ttsim.bfloat8_b",
    "ttsim.uint8",
    "ttsim.TILE_LAYOUT",
    "ttsim.ROW_MAJOR_LAYOUT",
    "ttsim.L1_MEMORY_CONFIG",
    "ttsim.L1_HEIGHT_SHARDED_MEMORY_CONFIG",
    "shards",
    "half",
    "ttsim.Conv2dConfig()",
    "ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceHeight,num_slices=3)",
    "ttsim.Conv2dL1FullSliceConfig",
    "ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat16)",
    "ttsim.CoreCoord(0,0)",
    "cores",
    "ttsim.UnaryWithParam(ttsim.UnaryOpType.RELU)",
    "ttsim.BufferType.L1",
    "ttsim.Arch.BLACKHOLE",
]


PRELUDE: Final = """\
import numpy as np, ttsim
from ttsim import graph, onednn
d = ttsim.open_device(l1_small_size=32768, values="fast")
other, closed = ttsim.open_device(l1_small_size=32768), ttsim.open_device()
closed.close()
ones = np.ones((1, 1, 32, 32), np.float32)
h, t = ttsim.Tensor(ones, ttsim.bfloat16), ttsim.Tensor(ones, ttsim.bfloat16, d, ttsim.TILE_LAYOUT)
x = ttsim.Tensor(ones, ttsim.bfloat16, d)
w = ttsim.Tensor(np.ones((32, 32, 2, 2), np.float32), ttsim.bfloat16)
b = ttsim.Tensor(np.ones((1, 1, 1, 32), np.float32), ttsim.bfloat16)
row = ttsim.Tensor(np.ones((1, 1, 1, 32), np.float32), ttsim.bfloat16, d, ttsim.TILE_LAYOUT)
single, empty = ttsim.Tensor(np.float32(1), ttsim.bfloat16), ttsim.Tensor(np.zeros((0, 3), np.float32), ttsim.bfloat16)
freed, foreign = ttsim.Tensor(ones, ttsim.bfloat16, d), ttsim.Tensor(ones, ttsim.bfloat16, other)
freed.deallocate()
f = np.ones((1, 4, 4, 2), np.float32)
k, o = np.ones((3, 3, 2, 2), np.float32), np.ones((1, 6, 6, 2), np.float32)
cores = ttsim.CoreRangeSet([ttsim.CoreRange(ttsim.CoreCoord(0, 0), ttsim.CoreCoord(1, 0))])
layouts, l1 = ttsim.TensorMemoryLayout, ttsim.BufferType.L1
shards = ttsim.MemoryConfig(layouts.HEIGHT_SHARDED, l1, ttsim.ShardSpec(cores, [32, 32]))
half = ttsim.MemoryConfig(layouts.WIDTH_SHARDED, l1, ttsim.ShardSpec(cores, [32, 16]))
"""

_SIZES: Final = {
    "in_channels": "32",
    "out_channels": "32",
    "batch_size": "1",
    "input_height": "4",
    "input_width": "8",
    "kernel_size": "(2, 2)",
    "stride": "(1, 1)",
    "padding": "(0, 0)",
    "dilation": "(1, 1)",
    "groups": "1",
}
_CONFIG: Final = {"conv_config": "ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat16)", "compute_config": "None"}
_CALL: Final = {"input_tensor": "x", "weight_tensor": "w", "bias_tensor": "b", "device": "d", **_SIZES, **_CONFIG}
_COMING: Final = {"input_memory_config": "ttsim.DRAM_MEMORY_CONFIG", "input_layout": "ttsim.ROW_MAJOR_LAYOUT"}
_PREPARED: Final = {**_COMING, **_SIZES, **_CONFIG, "device": "d", "input_dtype": "ttsim.bfloat16"}
_ONEDNN: Final = {
    "strides": "[1, 1]",
    "pads_begin": "[0, 0]",
    "pads_end": "[0, 0]",
    "dilations": "[1, 1]",
    "auto_pad": "'none'",
    "output_padding": "None",
    "groups": "1",
    "data_format": "'NXC'",
    "device": "d",
    "precision": "'ieee'",
}
_FIELDS: Final = [
    "weights_dtype",
    "activation",
    "deallocate_activation",
    "reallocate_halo_output",
    "act_block_h_override",
    "act_block_w_div",
    "reshard_if_not_optimal",
    "override_sharding_config",
    "shard_layout",
    "core_grid",
    "transpose_shards",
    "output_layout",
    "enable_act_double_buffer",
    "enable_weights_double_buffer",
    "full_inner_dim",
    "config_tensors_in_dram",
    "padding_mode",
]

# Arguments by position have names that begin with an underscore.
CALLS: Final = MappingProxyType(
    {
        "ttsim.conv_transpose2d": {**_CALL, "output_padding": "(0, 0)", "dram_slice_config": "None", "dtype": "None"}
        | {"memory_config": "None", "mirror_kernel": "True", "return_output_dim": "False", "lowering": "'frame'"},
        "ttsim.conv2d": {**_CALL, "slice_config": "None", "dtype": "None", "memory_config": "None"},
        "ttsim.prepare_conv_transpose2d_weights": {**_PREPARED, "weight_tensor": "w", "weights_format": "'IOHW'"}
        | {"has_bias": "True", "output_padding": "(0, 0)", "dram_slice_config": "None", "mirror_kernel": "True"},
        "ttsim.prepare_conv_transpose2d_bias": {**_PREPARED, "bias_tensor": "b", "dram_slice_config": "None"},
        "ttsim.conv2d(conv_config": dict.fromkeys(_FIELDS, ""),
        "ttsim.conv_transpose2d(conv_config": dict.fromkeys(_FIELDS, ""),
        "ttsim.query_op_constraints": {name: value for name, value in _CALL.items() if name != "device"}
        | {"spec": "'wormhole_n150'", "input_tensor": "ttsim.TensorDescription((1, 1, 32, 32))"},
        "ttsim.estimate_cycles": {"_": "ttsim.conv_transpose2d", **_CALL},
        "ttsim.TensorDescription": {"_": "(1, 1, 32, 32)", "_2": "ttsim.bfloat16", "_3": "ttsim.TILE_LAYOUT"},
        "ttsim.matmul": {"_": "t", "_2": "t", "transpose_a": "False", "memory_config": "None", "dtype": "None"}
        | {"activation": "None", "compute_kernel_config": "None", "core_grid": "None", "program_config": "None"},
        "ttsim.linear": {
            "_": "t",
            "_2": "t",
            "bias": "row",
            "transpose_b": "False",
            "memory_config": "None",
        }
        | {"dtype": "None", "activation": "'relu'", "compute_kernel_config": "None"},
        "ttsim.open_device": {"device_id": "0", "l1_small_size": "32768", "spec": "None", "values": "'fast'"}
        | {"cycles": "True", "strict": "True", "trace_region_size": "0", "num_command_queues": "1"},
        "ttsim.Tensor": {"_": "ones", "_2": "ttsim.bfloat16", "_3": "d", "_4": "ttsim.TILE_LAYOUT", "_5": "shards"},
        "ttsim.from_torch": {"_": "ones", "dtype": "None", "layout": "None", "device": "d", "memory_config": "None"},
        "ttsim.from_numpy": {"_": "ones", "dtype": "ttsim.bfloat16"},
        "ttsim.as_tensor": {"_": "ones", "dtype": "ttsim.bfloat16", "device": "d"},
        "ttsim.to_device": {"_": "h", "_2": "d", "memory_config": "None"},
        "ttsim.from_device": {"_": "t"},
        "ttsim.to_layout": {"_": "x", "_2": "ttsim.TILE_LAYOUT", "dtype": "None", "memory_config": "None"},
        "ttsim.to_dtype": {"_": "h", "_2": "ttsim.float32"},
        "ttsim.typecast": {"_": "t", "_2": "ttsim.bfloat8_b"},
        "ttsim.to_memory_config": {"_": "t", "_2": "shards", "dtype": "None"},
        "ttsim.reshape": {"_": "t", "_2": "(1, 1, 64, 16)", "memory_config": "None"},
        "ttsim.is_tensor_storage_on_device": {"_": "t"},
        "x.to": {"_": "d", "_2": "None"},
        "h.reshape": {"_": "32", "_2": "32"},
        "ttsim.get_memory_view": {"_": "d", "_2": "ttsim.BufferType.L1"},
        "ttsim.profile": {"_": "d"},
        "ttsim.synchronize_device": {"_": "d"},
        "ttsim.load_spec": {"_": "'wormhole_n150'"},
        "d.spec.replace": {"name": "'mine'", "clock_hz": "1", "grid_cols": "8", "l1_bytes": "1 << 20"},
        "ttsim.CoreCoord": {"_": "0", "_2": "0"},
        "ttsim.CoreRange": {"_": "ttsim.CoreCoord(0, 0)", "_2": "ttsim.CoreCoord(1, 1)"},
        "ttsim.CoreRangeSet": {"_": "[ttsim.CoreRange(ttsim.CoreCoord(0, 0), ttsim.CoreCoord(1, 1))]"},
        "ttsim.CoreGrid": {"x": "1", "y": "1"},
        "ttsim.ShardSpec": {"_": "cores", "_2": "[32, 32]", "_3": "ttsim.ShardOrientation.ROW_MAJOR"},
        "ttsim.MemoryConfig": {"_": "ttsim.TensorMemoryLayout.INTERLEAVED", "_2": "ttsim.BufferType.L1", "_3": "None"},
        "ttsim.UnaryWithParam": {"_": "ttsim.UnaryOpType.RELU", "_2": "1.0"},
        "ttsim.Conv2dConfig": dict.fromkeys(_FIELDS, ""),
        "ttsim.Conv2dSliceConfig": {"slice_type": "ttsim.Conv2dDRAMSliceHeight", "num_slices": "2"},
        "ttsim.WormholeComputeKernelConfig": {"math_fidelity": "ttsim.MathFidelity.LoFi", "packer_l1_acc": "True"},
        "ttsim.init_device_compute_kernel_config": {"_": "d.arch()", "math_fidelity": "ttsim.MathFidelity.LoFi"},
        "graph.extract_calltrace": {"_": "[]"},
        "graph.extract_peak_L1_memory_usage": {"_": "[]"},
        "graph.extract_resource_usage_per_core": {"_": "[]", "_2": "None"},
        "onednn.conv_transpose": {"_": "f", "_2": "k", "_3": "None", **_ONEDNN, "weights_format": "'XOI'"}
        | {"lowering": "'frame'", "dst_shape": "None", "strict": "False"},
        "onednn.conv_transpose_backward_data": {"_": "o", "_2": "k", **_ONEDNN, "src_shape": "None"},
        "onednn.conv_transpose_backward_weights": {"_": "f", "_2": "o", "_3": "[3, 3, 2, 2]", **_ONEDNN}
        | {"diff_weights_shape": "None"},
        "onednn.conv_transpose_backprop_filters": {"_": "f", "_2": "o", "_3": "[3, 3, 2, 2]", **_ONEDNN},
    }
)


def drawn(seed: int, index: int) -> str:
    """A call as Python, after PRELUDE: always the same of a seed and an index."""
    rng = np.random.default_rng([seed, index])
    name = str(rng.choice(list(CALLS)))
    usual = CALLS[name]
    changed = rng.choice(list(usual), size=min(len(usual), int(rng.choice([1, 1, 1, 2, 3]))), replace=False)
    return written(name, {str(one): str(rng.choice(ODD)) for one in changed})


def written(name: str, odd: Mapping[str, str]) -> str:
    """A call of CALLS as Python, with other values for some arguments."""
    given = {**CALLS[name], **odd}
    text = ", ".join(value if one.startswith("_") else f"{one}={value}" for one, value in given.items() if value)
    if name.endswith("(conv_config"):
        rest = ", ".join(f"{one}={value}" for one, value in _CALL.items() if one != "conv_config")
        return f"{name}=ttsim.Conv2dConfig({text}), {rest})"
    return f"{name}({text})"


def check(seed: int, index: int) -> Finding:
    """Makes a call; it may be refused in the library's words only, and leaves the device as it was."""
    text = drawn(seed, index)
    names: dict[str, object] = {}
    exec(PRELUDE, names)
    device = names["d"]
    before = block_tables(device)  # type: ignore[arg-type]
    found = tried(lambda: eval(text, names), again=f"{PRELUDE}{text}")
    gc.collect(0)
    device.clear_program_cache()  # type: ignore[attr-defined]
    consumed = "deallocate_activation" in text or "closed" in text
    if found.outcome != "fault" and not consumed and block_tables(device) != before:  # type: ignore[arg-type]
        return Finding(outcome="fault", text="blocks are left", again=found.again, seconds=found.seconds)
    return found
