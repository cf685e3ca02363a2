"""A recorded call in the planner's words."""

from collections.abc import Mapping
from typing import Any

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import FORMATS
from ops.planners.conv.arguments import (
    CONV_TRANSPOSE2D,
    ComputeConfig,
    ConvCall,
    ConvConfig,
    Operand,
    SliceConfig,
    SliceType,
)

LAYOUTS = {"ROW_MAJOR": Layout.ROW_MAJOR, "TILE": Layout.TILE}
PHASES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}
SLICES = {"H": SliceType.DRAM_HEIGHT, "W": SliceType.DRAM_WIDTH}
COMPUTE_FIELDS = ("fp32_dest_acc_en", "packer_l1_acc", "math_approx_mode", "dst_full_sync_en", "math_fidelity")
CONFIG_FIELDS = frozenset({
    "enable_act_double_buffer", "enable_weights_double_buffer", "full_inner_dim", "reallocate_halo_output",
    "config_tensors_in_dram", "force_split_reader", "act_block_w_div", "deallocate_activation", "transpose_shards",
    "reshard_if_not_optimal", "enable_kernel_stride_folding", "enable_activation_reuse",
})  # fmt: skip


def planner_arguments(case: Mapping[str, Any]) -> ConvCall:
    """The arguments that `plan_convolution` takes.

    Raises:
        ValueError: The case has a config field that is not known here.
    """
    batch, height, width = case.get("batch", 1), case["H"], case["W"]
    channels, outputs, groups = case["in_channels"], case["out_channels"], case.get("groups", 1)
    padding = _pair(case.get("padding", 0))
    top, bottom, left, right = padding if len(padding) == 4 else (padding[0], padding[0], padding[1], padding[1])
    shape = (batch, height, width, channels) if case.get("input_4d") else (1, 1, batch * height * width, channels)
    layout = LAYOUTS[case.get("input_layout", "ROW_MAJOR")]
    in_spec = TensorSpec(shape, FORMATS[case.get("input_dtype", "bfloat16")], layout, _input_memory(case))
    raw = FORMATS[case.get("weights_in_dtype", "bfloat16")]
    weight = TensorSpec((channels, max(outputs // groups, 1), *_pair(case["kernel"])), raw, Layout.ROW_MAJOR)
    bias = Operand(spec=TensorSpec((1, 1, 1, outputs), raw, Layout.ROW_MAJOR), on_host=True)
    kernel, stride, more, dilation = (
        (rows, columns)
        for rows, columns in (
            _pair(case.get(name, default))
            for name, default in (("kernel", 1), ("stride", 1), ("output_padding", 0), ("dilation", 1))
        )
    )
    return ConvCall(
        rules=CONV_TRANSPOSE2D,
        input=Operand(spec=in_spec, on_host=case.get("input_memory") == "host"),
        weight=Operand(spec=weight, on_host=True),
        bias=bias if case.get("has_bias") else None,
        in_channels=channels,
        out_channels=outputs,
        batch_size=batch,
        input_height=height,
        input_width=width,
        kernel_size=kernel,
        stride=stride,
        padding=(top, bottom, left, right),
        output_padding=more,
        dilation=dilation,
        groups=groups,
        out_format=FORMATS[case["dtype"]] if case.get("dtype") else None,
        conv_config=_conv_config(case),
        compute_config=_compute_config(case),
        slice_config=_slice_config(case.get("slice")),
        mirror_kernel=case.get("mirror_kernel", True),
    )


def _pair(value: Any) -> tuple[int, ...]:
    return (value, value) if isinstance(value, int) else tuple(value)


def _sharding(name: str) -> TensorMemoryLayout:
    return TensorMemoryLayout[f"{name}_SHARDED"]


def _input_memory(case: Mapping[str, Any]) -> MemoryConfig:
    if case.get("input_spec"):
        kind, shape, end = case["input_spec"]
        grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(*end))])
        return MemoryConfig(_sharding(kind), BufferType.L1, ShardSpec(grid, tuple(shape)))
    return L1_MEMORY_CONFIG if case.get("input_memory") == "l1" else DRAM_MEMORY_CONFIG


def _conv_config(case: Mapping[str, Any]) -> ConvConfig:
    given = case.get("conv_config", {})
    unknown = set(given) - CONFIG_FIELDS - {"padding_mode"}
    if unknown:
        raise ValueError(f"{case['name']}: conv_config has fields that are not read here: {sorted(unknown)}")
    return ConvConfig(
        **{name: value for name, value in given.items() if name in CONFIG_FIELDS},
        replicate_padding=given.get("padding_mode") == "Replicate",
        weights_format=FORMATS[case["weights_dtype"]] if case.get("weights_dtype") else None,
        shard_layout=_sharding(case["shard_layout"]) if case.get("shard_layout") else None,
        act_block_h_override=case.get("act_block_h_override") or 0,
        output_layout=LAYOUTS[case.get("output_layout") or "TILE"],
        activation=(case["activation"].lower(), ()) if case.get("activation") else None,
    )


def _compute_config(case: Mapping[str, Any]) -> ComputeConfig | None:
    if all(case.get(name) is None for name in COMPUTE_FIELDS):
        return None
    return ComputeConfig(
        fidelity_phases=PHASES[case.get("math_fidelity") or "LoFi"],
        fp32_dest=bool(case.get("fp32_dest_acc_en")),
        packer_l1_acc=bool(case.get("packer_l1_acc")),
    )


def _slice_config(given: Any) -> SliceConfig | None:
    if given is None:
        return None
    if given == "l1_full":
        return SliceConfig(slice_type=SliceType.L1_FULL)
    return SliceConfig(slice_type=SLICES[given[0]], num_slices=given[1] or 0)
