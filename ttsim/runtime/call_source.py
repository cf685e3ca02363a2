"""Arguments of convolutions as Python text that users can paste: configs, slices, memory configs, whole calls."""

from collections.abc import Iterator
from dataclasses import fields, replace
from enum import Enum

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, MemoryConfig
from device.numbers.formats import DataFormat
from ops.planners.conv.arguments import ConvCall, ConvConfig, Lowering, Operand, SliceConfig, SliceType
from ttsim.runtime.types.configs import WormholeComputeKernelConfig
from ttsim.runtime.types.tensors import DataType

# The line of an error above changes of the call that fit, one a line
WHAT_FITS = "What fits, each simulated on this device as it is now, the smallest change first:"
_AS_GIVEN = ("in_channels", "out_channels", "batch_size", "input_height", "input_width", "kernel_size")
_DEFAULTS = {"stride": (1, 1), "padding": (0, 0, 0, 0), "output_padding": (0, 0), "dilation": (1, 1), "groups": 1,
             "mirror_kernel": True}  # fmt: skip


def estimate_source(call: ConvCall) -> str:
    """Python source that estimates a convolution on an open ``device``, with descriptions of its tensors.

    Prepared weights are described as raw weights to be prepared in the same format.
    """
    weights = call.conv_config.weights_format if call.weight.on_host else call.weight.spec.data_format
    config, compute = replace(call.conv_config, weights_format=weights), call.compute_config
    lowering = call.rules.lowering
    changed = (name for name, usual in _DEFAULTS.items() if getattr(call, name) != usual)
    texts = {
        "input_tensor": _description(call.input.spec, on_host=call.input.on_host),
        "weight_tensor": _raw(call.weight, raw_weight_shape(call)),
        "bias_tensor": _raw(call.bias, (1, 1, 1, call.out_channels)) if call.bias else "",
        **{name: str(getattr(call, name)) for name in (*_AS_GIVEN, *changed)},
        "dtype": source(call.out_format) if call.out_format else "",
        "conv_config": conv_config_source(config) if config != ConvConfig() else "",
        "compute_config": compute_config_source(WormholeComputeKernelConfig.of(compute)) if compute else "",
        "memory_config": memory_config_source(call.memory_config) if call.memory_config else "",
        slice_argument(call): slice_config_source(call.slice_config) if call.slice_config else "",
        "lowering": "" if lowering is Lowering.ZERO_INSERTION else f'"{lowering}"',
    }
    arguments = "".join(f"    {name}={text},\n" for name, text in texts.items() if text)
    return f"ttnn.estimate_cycles(\n    ttnn.{call.rules.function},\n    device=device,\n{arguments})"


def source(value: object) -> str:
    """A value as Python source with ttnn's names for formats, enum members and cores; other values by ``repr``."""
    match value:
        case DataFormat():
            return f"ttnn.{DataType.of(value).name.lower()}"
        case CoreRangeSet():
            return f"ttnn.CoreRangeSet([{', '.join(map(source, value.ranges))}])"
        case CoreRange():
            return f"ttnn.CoreRange({source(value.start)}, {source(value.end)})"
        case CoreCoord():
            return f"ttnn.CoreCoord({value.x}, {value.y})"
        case Enum():
            return f"ttnn.{type(value).__name__}.{value.name}"
    return repr(value)


def memory_config_source(config: MemoryConfig) -> str:
    """A MemoryConfig."""
    for name, named in (("DRAM_MEMORY_CONFIG", DRAM_MEMORY_CONFIG), ("L1_MEMORY_CONFIG", L1_MEMORY_CONFIG)):
        if config == named:
            return f"ttnn.{name}"
    arguments = [source(config.memory_layout), source(config.buffer_type)]
    if (shards := config.shard_spec) is not None:
        arguments.append(f"ttnn.ShardSpec({source(shards.grid)}, {list(shards.shape)}, {source(shards.orientation)})")
    return f"ttnn.MemoryConfig({', '.join(arguments)})"


def conv_config_source(config: ConvConfig) -> str:
    """A Conv2dConfig with the fields that differ from the default."""
    names = [field.name for field in fields(config)]
    return f"ttnn.Conv2dConfig({', '.join(_changed(names, config, ConvConfig()))})"


def compute_config_source(config: WormholeComputeKernelConfig) -> str:
    """A compute config with the fields that differ from the default."""
    default = WormholeComputeKernelConfig()
    return f"ttnn.WormholeComputeKernelConfig({', '.join(_changed(list(vars(config)), config, default))})"


def slice_config_source(config: SliceConfig) -> str:
    """A Conv2dSliceConfig."""
    if config.slice_type is SliceType.L1_FULL:
        return "ttnn.Conv2dL1FullSliceConfig"
    side = "Height" if config.slice_type is SliceType.DRAM_HEIGHT else "Width"
    return f"ttnn.Conv2dSliceConfig(slice_type=ttnn.Conv2dDRAMSlice{side}, num_slices={config.num_slices})"


def raw_weight_shape(call: ConvCall) -> tuple[int, ...]:
    """[C, O / groups, *kernel] for a transposed convolution, [O, C / groups, *kernel] for other convolutions."""
    sides = (call.in_channels, call.out_channels) if call.rules.transposed else (call.out_channels, call.in_channels)
    return (sides[0], sides[1] // call.groups, *call.kernel_size)


def slice_argument(call: ConvCall) -> str:
    """The name of the slice config parameter of the call's function."""
    return "dram_slice_config" if call.rules.transposed else "slice_config"


def _raw(operand: Operand, shape: tuple[int, ...]) -> str:
    """The tensor on the host; for a prepared tensor, the raw tensor that it was prepared from."""
    return _description(operand.spec, on_host=True) if operand.on_host else f"ttnn.TensorDescription({shape})"


def _description(spec: TensorSpec, *, on_host: bool) -> str:
    place = "" if on_host else f", {memory_config_source(spec.memory_config)}"
    layout = f"ttnn.{spec.layout.name}_LAYOUT"
    return f"ttnn.TensorDescription({tuple(spec.shape)}, {source(spec.data_format)}, {layout}{place})"


def _changed(names: list[str], config: object, default: object) -> Iterator[str]:
    """The fields of a config that differ from the defaults, under ttnn's names and in its notation."""
    for name in names:
        value = getattr(config, name)
        if value == getattr(default, name):
            continue
        if name == "weights_format":
            yield f"weights_dtype={source(value)}"
        elif name == "activation":
            kind, params = value
            arguments = [f"ttnn.UnaryOpType.{kind.upper()}", *map(repr, params)]
            yield f"activation=ttnn.UnaryWithParam({', '.join(arguments)})"
        elif name == "replicate_padding":
            yield "padding_mode=ttnn.PaddingMode.Replicate"
        else:
            yield f"{name}={source(value)}"
