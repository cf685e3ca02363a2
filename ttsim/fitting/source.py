"""Configs as Python that can be pasted into a script that says ``import ttsim as ttnn``."""

from collections.abc import Iterator
from dataclasses import fields
from enum import Enum

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.numbers.formats import DataFormat
from ops.calls.convolution.arguments import ConvConfig, SliceConfig, SliceType
from ttsim.types.compute_config import WormholeComputeKernelConfig
from ttsim.types.dtypes import DataType

_SLICE_TYPES = {
    SliceType.L1_FULL: "Conv2dL1Full",
    SliceType.DRAM_HEIGHT: "Conv2dDRAMSliceHeight",
    SliceType.DRAM_WIDTH: "Conv2dDRAMSliceWidth",
}


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


def _field(name: str, value: object) -> Iterator[str]:
    if name == "weights_format" and isinstance(value, DataFormat):
        yield f"weights_dtype=ttnn.{DataType.of(value).name.lower()}"
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
