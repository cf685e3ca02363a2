"""Arguments of convolutions as Python text that users can paste: configs, slices, memory configs, whole calls."""

from collections.abc import Iterator
from dataclasses import fields, replace
from enum import Enum

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, MemoryConfig
from device.numbers.formats import DataFormat
from ops.planners.conv.arguments import ConvCall, ConvConfig, Operand, SliceConfig, SliceType
from ttsim.runtime.types.configs import WormholeComputeKernelConfig
from ttsim.runtime.types.tensors import DataType

_SLICE_TYPES = {
    SliceType.L1_FULL: "Conv2dL1Full",
    SliceType.DRAM_HEIGHT: "Conv2dDRAMSliceHeight",
    SliceType.DRAM_WIDTH: "Conv2dDRAMSliceWidth",
}

_AS_GIVEN = ("in_channels", "out_channels", "batch_size", "input_height", "input_width", "kernel_size")
_DEFAULTS = {"stride": (1, 1), "padding": (0, 0, 0, 0), "output_padding": (0, 0), "dilation": (1, 1), "groups": 1,
             "mirror_kernel": True}  # fmt: skip


def estimate_source(call: ConvCall) -> str:
    """A convolution as an estimate of it: the call with descriptions for its tensors, on a ``device`` that is open.

    Prepared weights are described as they were before: raw, and to be prepared in the same format.
    """
    weights = _weights_format(call)
    tensors = {"input_tensor": _description(call.input.spec, on_host=call.input.on_host)}
    tensors["weight_tensor"] = _raw(call.weight, raw_weight_shape(call))
    if call.bias is not None:
        tensors["bias_tensor"] = _raw(call.bias, (1, 1, 1, call.out_channels))
    lines = [f"{name}={text}" for name, text in tensors.items()]
    lines += [f"{name}={getattr(call, name)}" for name in _AS_GIVEN]
    lines += [f"{name}={getattr(call, name)}" for name, usual in _DEFAULTS.items() if getattr(call, name) != usual]
    if call.out_format is not None:
        lines.append(f"dtype={_dtype(call.out_format)}")
    if (config := replace(call.conv_config, weights_format=weights)) != ConvConfig():
        lines.append(f"conv_config={conv_config_source(config)}")
    if call.compute_config is not None:
        lines.append(f"compute_config={compute_config_source(WormholeComputeKernelConfig.of(call.compute_config))}")
    if call.memory_config is not None:
        lines.append(f"memory_config={memory_config_source(call.memory_config)}")
    if call.slice_config is not None:
        lines.append(f"{slice_argument(call)}={slice_config_source(call.slice_config)}")
    if call.rules.by_phases:
        lines.append('lowering="phase"')
    arguments = [f"ttnn.{call.rules.function}", "device=device", *lines]
    return "\n".join(["ttnn.estimate_cycles(", *(f"    {one}," for one in arguments), ")"])


def memory_config_source(config: MemoryConfig) -> str:
    """A MemoryConfig."""
    named = {"DRAM_MEMORY_CONFIG": DRAM_MEMORY_CONFIG, "L1_MEMORY_CONFIG": L1_MEMORY_CONFIG}
    for name, one in named.items():
        if config == one:
            return f"ttnn.{name}"
    parts = [f"ttnn.TensorMemoryLayout.{config.memory_layout.name}", f"ttnn.BufferType.{config.buffer_type.name}"]
    if config.shard_spec is not None:
        grid, shape, orientation = config.shard_spec.grid, config.shard_spec.shape, config.shard_spec.orientation
        parts.append(f"ttnn.ShardSpec({_cores(grid)}, {list(shape)}, ttnn.ShardOrientation.{orientation.name})")
    return f"ttnn.MemoryConfig({', '.join(parts)})"


def conv_config_source(config: ConvConfig) -> str:
    """A Conv2dConfig: the fields that are not the default's."""
    default = ConvConfig()
    changed = {
        one.name: getattr(config, one.name)
        for one in fields(config)
        if getattr(config, one.name) != getattr(default, one.name)
    }
    return f"ttnn.Conv2dConfig({', '.join(text for name, value in changed.items() for text in _field(name, value))})"


def slice_config_source(config: SliceConfig) -> str:
    """A Conv2dSliceConfig."""
    kind = _SLICE_TYPES[config.slice_type]
    if config.slice_type is SliceType.L1_FULL:
        return "ttnn.Conv2dL1FullSliceConfig"
    return f"ttnn.Conv2dSliceConfig(slice_type=ttnn.{kind}, num_slices={config.num_slices})"


def compute_config_source(config: WormholeComputeKernelConfig) -> str:
    """A compute config: the fields that are not the default's."""
    default = WormholeComputeKernelConfig()
    changed = {name: value for name, value in vars(config).items() if value != getattr(default, name)}
    told = ", ".join(text for name, value in changed.items() for text in _field(name, value))
    return f"ttnn.WormholeComputeKernelConfig({told})"


def raw_weight_shape(call: ConvCall) -> tuple[int, ...]:
    """[C, O / groups, *kernel] of a transposed convolution, [O, C / groups, *kernel] of another."""
    sides = (call.in_channels, call.out_channels) if call.rules.transposed else (call.out_channels, call.in_channels)
    return (sides[0], sides[1] // call.groups, *call.kernel_size)


def slice_argument(call: ConvCall) -> str:
    """What the call's function names its slices."""
    return "dram_slice_config" if call.rules.transposed else "slice_config"


def _weights_format(call: ConvCall) -> DataFormat | None:
    """What weights are prepared as; None where that follows from the raw ones."""
    return call.conv_config.weights_format if call.weight.on_host else call.weight.spec.data_format


def _raw(operand: Operand, shape: tuple[int, ...]) -> str:
    """A tensor on the host: as it is, or what a prepared one was made of."""
    if operand.on_host:
        return _description(operand.spec, on_host=True)
    return f"ttnn.TensorDescription({shape})"


def _description(spec: TensorSpec, *, on_host: bool) -> str:
    parts = [str(tuple(spec.shape)), _dtype(spec.data_format), f"ttnn.{spec.layout.name}_LAYOUT"]
    if not on_host:
        parts.append(memory_config_source(spec.memory_config))
    return f"ttnn.TensorDescription({', '.join(parts)})"


def _dtype(data_format: DataFormat) -> str:
    return f"ttnn.{DataType.of(data_format).name.lower()}"


def _field(name: str, value: object) -> Iterator[str]:
    if name == "weights_format" and isinstance(value, DataFormat):
        yield f"weights_dtype={_dtype(value)}"
    elif name == "activation" and isinstance(value, tuple):
        kind, params = value
        numbers = "".join(f", {number!r}" for number in params)
        yield f"activation=ttnn.UnaryWithParam(ttnn.UnaryOpType.{kind.upper()}{numbers})"
    elif name == "replicate_padding":
        yield "padding_mode=ttnn.PaddingMode.Replicate"
    elif isinstance(value, CoreRangeSet):
        yield f"{name}={_cores(value)}"
    elif isinstance(value, Enum):
        yield f"{name}=ttnn.{type(value).__name__}.{value.name}"
    else:
        yield f"{name}={value!r}"


def _cores(cores: CoreRangeSet) -> str:
    return f"ttnn.CoreRangeSet([{', '.join(map(_range, cores.ranges))}])"


def _range(cores: CoreRange) -> str:
    return f"ttnn.CoreRange({_core(cores.start)}, {_core(cores.end)})"


def _core(core: CoreCoord) -> str:
    return f"ttnn.CoreCoord({core.x}, {core.y})"
