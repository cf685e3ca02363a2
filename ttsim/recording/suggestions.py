"""Searches for faster configs of a call; each config is planned, placed and timed on a copy of the device.

The search is bounded and deterministic: first every single change, then the best change combined with every other
change, as long as the combination saves time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import Any, Final

from device.errors import ArgumentError, DeviceError
from device.memory.memory_config import TILE, BufferType, MemoryConfig, TensorMemoryLayout
from ops.planners.conv.arguments import Lowering, default_compute_config
from ttsim.report.advice import Advice, Change
from ttsim.runtime.call_source import compute_config_source, conv_config_source, slice_config_source
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.configs import (
    Conv2dConfig,
    Conv2dDRAMSliceHeight,
    Conv2dDRAMSliceWidth,
    Conv2dL1FullSliceConfig,
    Conv2dSliceConfig,
    MathFidelity,
    WormholeComputeKernelConfig,
)
from ttsim.runtime.types.tensors import TensorDescription, bfloat8_b, bfloat16

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


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call with changed arguments."""

    kind: str  # The changed field
    text: str  # The change in short
    options: Mapping[str, Any]  # Keyword arguments that differ from the call's
    price: str = ""  # The loss, such as precision; empty if there is none


def attempts(function: Any, options: Mapping[str, Any]) -> Iterator[Attempt]:
    """The single changes of a call; empty if the function has no convolution config."""
    known = signature(function).parameters
    if "conv_config" not in known:
        return
    config = options.get("conv_config") or Conv2dConfig()
    yield from _layouts(config, options)
    yield from _slices(options, "slice_config" if "slice_config" in known else "dram_slice_config")
    yield from _arithmetic(config, options)
    if "lowering" in known:
        price = "a lowering of this library that ttnn does not have"
        lowerings = (Lowering.PHASE, *([Lowering.GROUPED] if options.get("groups", 1) > 1 else []))
        for name in (lowering.value for lowering in lowerings if options.get("lowering") != lowering):
            yield Attempt("lowering", f'lowering="{name}"', {"lowering": name}, price)


def arguments_source(options: Mapping[str, Any]) -> str:
    """The changed arguments as Python source."""

    def source(value: Any) -> str:
        match value:
            case Conv2dConfig():
                return conv_config_source(value.argument())
            case WormholeComputeKernelConfig():
                return compute_config_source(value)
            case Conv2dSliceConfig():
                return slice_config_source(value.argument())
            case str():
                return f'"{value}"'
        return f"{value}"

    return ", ".join(f"{name}={source(value)}" for name, value in options.items())


def _changed(argument: str, config: Any, text: str = "", price: str = "", **changes: Any) -> Attempt:
    """A config with changed fields; the first field names the attempt."""
    kind, value = next(iter(changes.items()))
    options = {argument: type(config)(**{**vars(config), **changes})}
    return Attempt(kind, text or f"{kind}={getattr(value, 'name', value)}", options, price)


def _layouts(config: Conv2dConfig, options: Mapping[str, Any]) -> Iterator[Attempt]:
    changed = partial(_changed, "conv_config", config)
    memory = _place(options.get("input_tensor"))
    reshard = config.reshard_if_not_optimal or (memory is not None and memory.is_sharded())
    for scheme in SCHEMES:
        if scheme is not config.shard_layout:
            yield changed(shard_layout=scheme, reshard_if_not_optimal=reshard)
            if config.act_block_h_override:
                text = f"shard_layout={scheme.name}, act_block_h_override=0"
                yield changed(text, shard_layout=scheme, reshard_if_not_optimal=reshard, act_block_h_override=0)
    flags = ("enable_act_double_buffer", "enable_weights_double_buffer")
    others: list[tuple[str, Any]] = [("act_block_h_override", tiles * TILE) for tiles in BLOCK_TILES]
    others += [(flag, not getattr(config, flag)) for flag in flags]
    others += [("force_split_reader", True), ("force_split_reader", False)]
    yield from (changed(**{name: value}) for name, value in others if value != getattr(config, name))


def _slices(options: Mapping[str, Any], name: str) -> Iterator[Attempt]:
    """Other slices of an input in DRAM or on the host, and no slices; `name` is the parameter for slices."""
    memory = _place(options.get("input_tensor"))
    if memory is not None and memory.buffer_type is not BufferType.DRAM:
        return
    if options.get(name) is not None:
        yield Attempt(name, "automatic slices", {name: None})
    yield Attempt(name, "no slices", {name: Conv2dL1FullSliceConfig})
    for side, axis in (("height", Conv2dDRAMSliceHeight), ("width", Conv2dDRAMSliceWidth)):
        for count in SLICES:
            config = Conv2dSliceConfig(slice_type=axis, num_slices=count)
            yield Attempt(name, f"{count} slices of the {side}", {name: config})


def _arithmetic(config: Conv2dConfig, options: Mapping[str, Any]) -> Iterator[Attempt]:
    """Changes of partial sums, and changes of fidelity and formats, which lose precision."""
    weights = options.get("weight_tensor")
    chosen = config.weights_dtype or getattr(weights, "dtype", None)
    source = getattr(options.get("input_tensor"), "dtype", None)
    compute = options.get("compute_config")
    if compute is None:  # missing formats count as bfloat16
        default = default_compute_config((source or bfloat16).format, (chosen or bfloat16).format)
        compute = WormholeComputeKernelConfig.of(default)
    changed = partial(_changed, "compute_config", compute)
    if not compute.packer_l1_acc:
        yield changed(packer_l1_acc=True)
    for fidelity in LESS_EXACT.get(compute.math_fidelity, ()):
        yield changed(price="fewer bits of each product", math_fidelity=fidelity)
    if compute.fp32_dest_acc_en:
        yield changed(price="sums in bfloat16", fp32_dest_acc_en=False)
    if _place(weights) is None and chosen is not None and not chosen.format.is_block:
        text, price = "weights_dtype=bfloat8_b", "the weights lose precision"
        yield _changed("conv_config", config, text, price, weights_dtype=bfloat8_b)


def _place(tensor: Any) -> MemoryConfig | None:
    """The memory config of a tensor or a tensor description; None on the host."""
    if isinstance(tensor, Tensor):
        return None if tensor.device() is None else tensor.memory_config()
    return tensor.memory_config if isinstance(tensor, TensorDescription) else None


TRIALS: Final = 64
EFFORT: Final = 5000  # of all trials together, so that large images and many slices do not take many seconds
LEAST_SHARE: Final = 0.01  # of the cycles: smaller gains are not reported


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The measured cost of a call."""

    cycles: int  # All operations that have a model
    untimed: int  # Operations without one
    effort: int  # The cost of the trial, in steps of plans
    scheme: str = ""  # The shard scheme that the library chose; empty if it chose none


Tried = tuple[Attempt, Measured]


class Search:
    """The trials of one call and their number; `measure` returns the cost with other keyword arguments or raises."""

    def __init__(
        self, function: Callable[..., Any], options: Mapping[str, Any], measure: Callable[[Mapping[str, Any]], Measured]
    ) -> None:
        self.function, self.options, self.measure = function, dict(options), measure
        self.tried = self.effort = 0

    def run(self, before: Measured) -> Advice:
        """The advice for a call with this cost."""
        singles = self._tried(attempts(self.function, self.options), self.options, before)
        free, priced = (
            _best_of_each([single for single in singles if bool(single[0].price) is price], before)
            for price in (False, True)
        )
        together = self._together(*free[0], before) if free else None
        changes, at_a_price = (tuple(_change(*trial, before) for trial in trials) for trials in (free, priced))
        return Advice(cycles=before.cycles, changes=changes, together=together, at_a_price=at_a_price, tried=self.tried)

    def _together(self, attempt: Attempt, best: Measured, before: Measured) -> Change | None:
        """The best single change combined with further changes; None if no combination saves time."""
        texts, used, options = [attempt.text], {attempt.kind}, {**self.options, **attempt.options}
        while True:
            free = (each for each in attempts(self.function, options) if each.kind not in used and not each.price)
            better = _best_of_each(self._tried(free, options, before), best)
            if not better:
                break
            attempt, best = better[0]
            texts.append(attempt.text)
            used.add(attempt.kind)
            options.update(attempt.options)
        changed = {name: value for name, value in options.items() if value is not self.options.get(name)}
        whole = Attempt("together", ", ".join(texts), changed)
        return _change(whole, best, before) if len(texts) > 1 else None

    def _tried(self, others: Iterable[Attempt], options: Mapping[str, Any], before: Measured) -> list[Tried]:
        """The costs of changed calls, without failing calls and calls with additional operations without a model."""
        tried = []
        for attempt in others:
            if self.tried >= TRIALS or self.effort >= EFFORT:
                break
            self.tried += 1
            try:
                took = self.measure({**options, **attempt.options})
            except (ArgumentError, DeviceError):
                self.effort += before.effort
                continue
            self.effort += took.effort
            if took.untimed <= before.untimed:
                other = took.scheme if took.scheme != before.scheme else ""
                then = f" (the library then chooses {other})" if other else ""
                tried.append((replace(attempt, text=f"{attempt.text}{then}"), took))
        return tried


def _best_of_each(tried: Iterable[Tried], before: Measured) -> list[Tried]:
    """The best change of each kind that saves at least `LEAST_SHARE`, the best change first."""
    best: dict[str, Tried] = {}
    for attempt, took in tried:
        worth = took.cycles <= (1 - LEAST_SHARE) * before.cycles
        if worth and (attempt.kind not in best or took.cycles < best[attempt.kind][1].cycles):
            best[attempt.kind] = (attempt, took)
    return sorted(best.values(), key=lambda trial: trial[1].cycles)


def _change(attempt: Attempt, took: Measured, before: Measured) -> Change:
    arguments, saved_share = arguments_source(attempt.options), 1 - took.cycles / before.cycles
    return Change(attempt.kind, attempt.text, arguments, took.cycles, saved_share, attempt.price)
