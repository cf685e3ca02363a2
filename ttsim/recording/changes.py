"""Other configs for a convolution that computes the same, or nearly: what is worth trying to make it faster.

Nothing is tried here. A change that gives up precision, or that the real library does not have, names its price.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Final

from device.memory.memory_config import TILE, BufferType, MemoryConfig, TensorMemoryLayout
from ops.planners.conv.arguments import default_compute_config
from ttsim.diagnose import compute_config_source, conv_config_source, slice_config_source
from ttsim.runtime.tensor import Tensor
from ttsim.types.configs import (
    Conv2dConfig,
    Conv2dDRAMSliceHeight,
    Conv2dDRAMSliceWidth,
    Conv2dL1FullSliceConfig,
    Conv2dSliceConfig,
    MathFidelity,
    WormholeComputeKernelConfig,
)
from ttsim.types.tensors import DataType, TensorDescription, bfloat8_b, bfloat16

SCHEMES: Final = (
    TensorMemoryLayout.HEIGHT_SHARDED,
    TensorMemoryLayout.BLOCK_SHARDED,
    TensorMemoryLayout.WIDTH_SHARDED,
)
BLOCK_TILES: Final = (0, 1, 2, 4, 8, 16, 32)  # heights of an activation block; 0 is all rows of a core
SLICES: Final = (2, 4)
LESS_EXACT: Final = {
    MathFidelity.HiFi4: (MathFidelity.HiFi2, MathFidelity.LoFi),
    MathFidelity.HiFi3: (MathFidelity.HiFi2, MathFidelity.LoFi),
    MathFidelity.HiFi2: (MathFidelity.LoFi,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A changed call."""

    kind: str  # What is changed
    text: str  # The change in short
    options: Mapping[str, Any] = field(default_factory=dict)  # Keyword arguments that differ from the call's
    price: str = ""  # What is given up; empty if nothing is


def attempts(function: Any, options: Mapping[str, Any]) -> Iterator[Attempt]:
    """Changes of a call, one at a time; none for a function that takes no config of a convolution."""
    known = signature(function).parameters
    if "conv_config" not in known:
        return
    config = options.get("conv_config") or Conv2dConfig()
    yield from _layouts(config, options)
    yield from _slices(options, "slice_config" if "slice_config" in known else "dram_slice_config")
    yield from _arithmetic(config, options)
    if "lowering" in known and options.get("lowering", "frame") == "frame":
        price = "a lowering of this library that ttnn does not have"
        yield Attempt(kind="lowering", text='lowering="phase"', options={"lowering": "phase"}, price=price)


def arguments_source(options: Mapping[str, Any]) -> str:
    """Changed arguments, as Python."""
    parts = []
    for name, value in options.items():
        if isinstance(value, Conv2dConfig):
            parts.append(f"{name}={conv_config_source(value.argument())}")
        elif isinstance(value, WormholeComputeKernelConfig):
            parts.append(f"{name}={compute_config_source(value)}")
        elif isinstance(value, Conv2dSliceConfig):
            parts.append(f"{name}={slice_config_source(value.argument())}")
        else:
            parts.append(f'{name}="{value}"' if isinstance(value, str) else f"{name}={value}")
    return ", ".join(parts)


def _layouts(config: Conv2dConfig, options: Mapping[str, Any]) -> Iterator[Attempt]:
    """Scheme, blocks, buffers, readers."""
    memory = _place(options.get("input_tensor"))
    sharded = memory is not None and memory.is_sharded()
    blocks = [rows * TILE for rows in BLOCK_TILES if rows * TILE != config.act_block_h_override]
    for scheme in SCHEMES:
        if scheme is not config.shard_layout:
            changes = {"shard_layout": scheme, "reshard_if_not_optimal": config.reshard_if_not_optimal or sharded}
            yield _with(config, "shard_layout", f"shard_layout={scheme.name}", **changes)
            if config.act_block_h_override:
                text = f"shard_layout={scheme.name}, act_block_h_override=0"
                yield _with(config, "shard_layout", text, **changes, act_block_h_override=0)
    for rows in blocks:
        yield _with(config, "act_block_h_override", f"act_block_h_override={rows}", act_block_h_override=rows)
    for name in ("enable_act_double_buffer", "enable_weights_double_buffer"):
        other = not getattr(config, name)
        yield _with(config, name, f"{name}={other}", **{name: other})
    for split in (True, False):
        if split is not config.force_split_reader:
            yield _with(config, "force_split_reader", f"force_split_reader={split}", force_split_reader=split)


def _slices(options: Mapping[str, Any], name: str) -> Iterator[Attempt]:
    """Other slices of an input in DRAM or on the host, and none; the argument's name is the function's."""
    memory, given = _place(options.get("input_tensor")), options.get(name)
    if memory is not None and memory.buffer_type is not BufferType.DRAM:
        return
    axes = {"height": Conv2dDRAMSliceHeight, "width": Conv2dDRAMSliceWidth}
    if given is not None:
        yield Attempt(kind=name, text="automatic slices", options={name: None})
    yield Attempt(kind=name, text="no slices", options={name: Conv2dL1FullSliceConfig})
    for side, axis in axes.items():
        for count in SLICES:
            config = Conv2dSliceConfig(slice_type=axis, num_slices=count)
            yield Attempt(kind=name, text=f"{count} slices of the {side}", options={name: config})


def _arithmetic(config: Conv2dConfig, options: Mapping[str, Any]) -> Iterator[Attempt]:
    """Where partial sums are added; and fidelity and formats, at the price of precision."""
    weights = options.get("weight_tensor")
    chosen = config.weights_dtype or getattr(weights, "dtype", None)
    source = getattr(options.get("input_tensor"), "dtype", None)
    compute = options.get("compute_config") or _default_compute(source, chosen)
    if not compute.packer_l1_acc:
        yield _computing(compute, "packer_l1_acc", "packer_l1_acc=True", packer_l1_acc=True)
    for fidelity in LESS_EXACT.get(compute.math_fidelity, ()):
        text = f"math_fidelity={fidelity.name}"
        yield _computing(compute, "math_fidelity", text, "fewer bits of each product", math_fidelity=fidelity)
    if compute.fp32_dest_acc_en:
        text = "fp32_dest_acc_en=False"
        yield _computing(compute, "fp32_dest_acc_en", text, "sums in bfloat16", fp32_dest_acc_en=False)
    if _place(weights) is None and chosen is not None and not chosen.format.is_block:
        made = _with(config, "weights_dtype", "weights_dtype=bfloat8_b", weights_dtype=bfloat8_b)
        yield Attempt(kind=made.kind, text=made.text, options=made.options, price="the weights lose precision")


def _default_compute(source: DataType | None, weights: DataType | None) -> WormholeComputeKernelConfig:
    """What a call computes with that says nothing; an input or weights that it lacks count as bfloat16."""
    default = default_compute_config((source or bfloat16).format, (weights or bfloat16).format)
    return WormholeComputeKernelConfig.of(default)


def _place(tensor: Any) -> MemoryConfig | None:
    """Where a tensor, or one that is described, lies on the device; None if it is on the host."""
    if isinstance(tensor, Tensor):
        return None if tensor.device() is None else tensor.memory_config()
    return tensor.memory_config if isinstance(tensor, TensorDescription) else None


def _with(config: Conv2dConfig, kind: str, text: str, **changes: Any) -> Attempt:
    return Attempt(kind=kind, text=text, options={"conv_config": Conv2dConfig(**{**vars(config), **changes})})


def _computing(compute: WormholeComputeKernelConfig, kind: str, text: str, price: str = "", **changes: Any) -> Attempt:
    changed = WormholeComputeKernelConfig(**{**vars(compute), **changes})
    return Attempt(kind=kind, text=text, options={"compute_config": changed}, price=price)
