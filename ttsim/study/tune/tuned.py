"""The results of a tuner."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

from device.time.stages import nanoseconds
from ops.planners.conv.arguments import Lowering
from ttsim.report.formatting import counted, cycles, percent, printable, printable_lines, time
from ttsim.runtime.shown import Headed, html_table
from ttsim.runtime.types.configs import Conv2dConfig, Conv2dSliceConfig, WormholeComputeKernelConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Configs of a call that runs, and their costs; ``options()`` returns the configs as arguments of the call.

    Attributes:
        conv_config: Blocks and shards.
        slice_config: Slices; None if the library chooses them.
        compute_config: Fidelity and accumulators; None for the library's defaults.
        lowering: "zero_insertion", or "phase", which ttnn does not have.
        arguments: Keyword arguments of the call, to paste into a script that says ``import ttsim as ttnn``.
        cycles: Cycles of all device operations of the call.
        nanoseconds: Kernel time of the call.
        l1_peak_bytes: Peak of L1 per core during the call.
        rms_error: Error against float64 as a share of the output's standard deviation, on a small image with the call's
            own channels; None if no field that changes the arithmetic was allowed.
        hands_on: Layout and memory of the output.

    Examples:
        >>> choice = ttnn.Choice(
        ...     conv_config=ttnn.Conv2dConfig(), slice_config=None, compute_config=None, lowering="phase", arguments="",
        ...     cycles=100, nanoseconds=100.0, l1_peak_bytes=2048, rms_error=None, hands_on="")
        >>> choice.options()["lowering"]
        'phase'
    """

    conv_config: Conv2dConfig
    slice_config: Conv2dSliceConfig | None
    compute_config: WormholeComputeKernelConfig | None
    lowering: str
    arguments: str
    cycles: int
    nanoseconds: float
    l1_peak_bytes: int
    rms_error: float | None
    hands_on: str

    def to_dict(self) -> dict[str, Any]:
        """The figures, and the configs as Python."""
        names = ("arguments", "lowering", "cycles", "nanoseconds", "l1_peak_bytes", "rms_error", "hands_on")
        return {name: getattr(self, name) for name in names}

    def options(self, slice_name: str = "dram_slice_config") -> Mapping[str, Any]:
        """The choice as keyword arguments of the call's function."""
        lowering = {} if self.lowering == Lowering.ZERO_INSERTION else {"lowering": self.lowering}
        configs = {slice_name: self.slice_config, "compute_config": self.compute_config}
        return {"conv_config": self.conv_config, **configs, **lowering}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Tuned(Headed):
    """The result of `tune`: configs of a call on a device; ``print(tuned)`` describes ``tuned.best`` and the others.

    Attributes:
        name: Name of the call.
        device: Name of the device.
        given: The call with its given config; None if it does not run.
        given_error: Why the given call does not run; empty if it runs.
        default: The call with ttnn's own choices; only the settings that decide the result are kept.
        default_error: Why the default does not run; empty if it runs.
        front: The Pareto front of choices in cycles, L1 and error, fastest first.
        reasons: Why the fastest is faster than the default, or than the given call if the default does not run.
        tried: Number of calls that were planned, placed and timed.
        alike: Number of calls with the plan of a tried call.
        passed: Number of calls and families of calls that do not fit, or cannot be better.
        refused: Number of tried calls that do not fit, or are refused.
        untried: Number of groups of calls left when the effort was exhausted; 0 if the search is complete.
        least_untried_cycles: A lower bound of the cycles of untried calls.
        space: The searched fields and their values; no other field was changed.

    Examples:
        >>> tuned = ttnn.Tuned(
        ...     name="", device="wormhole_n150", given=None, given_error="", default=None, default_error="", front=(),
        ...     reasons=(), tried=0, alike=0, passed=0, refused=0, untried=0, least_untried_cycles=None, space=())
        >>> tuned.best is None, tuned.gain is None
        (True, True)
    """

    name: str
    device: str
    given: Choice | None
    given_error: str
    default: Choice | None
    default_error: str
    front: tuple[Choice, ...]
    reasons: tuple[str, ...]
    tried: int
    alike: int
    passed: int
    refused: int
    untried: int
    least_untried_cycles: int | None
    space: tuple[str, ...]

    @property
    def best(self) -> Choice | None:
        """The fastest choice; None if no tried call runs."""
        return self.front[0] if self.front else None

    @property
    def gain(self) -> float | None:
        """The speed-up of the best choice over ttnn's default; None if either does not run."""
        return None if self.best is None or self.default is None else self.default.cycles / self.best.cycles

    @property
    def gain_over_given(self) -> float | None:
        """The speed-up of the best choice over the given call; None if either does not run."""
        return None if self.best is None or self.given is None else self.given.cycles / self.best.cycles

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return {**_plain(self), "gain": self.gain, "gain_over_given": self.gain_over_given}

    @property
    def ways(self) -> tuple[tuple[str, Choice | None, str], ...]:
        """The given call, ttnn's default and the best: name, choice, and the error if there is no choice."""
        return (
            ("as it is given", self.given, self.given_error),
            ("ttnn's default", self.default, self.default_error),
            ("the best found", self.best, "nothing that was tried runs"),
        )

    @property
    def headline(self) -> str:
        """The call, its device and the best choice, in one line."""
        what, best, error = self.ways[-1]
        return f"{printable(self.name)} on {self.device}, {what}: {_figures(best) if best else error}"

    def _repr_html_(self) -> str:
        rows = [_cells(what, way, error) for what, way, error in self.ways]
        rows += [_cells("smaller or more exact", choice, "") for choice in self.front[1:]]
        return html_table([CELLS, *rows], words=(CELLS[0], CELLS[-1]), caption=f"{self.name} on {self.device}")

    def __str__(self) -> str:
        """All results as text."""
        lines = [f"{printable(self.name)} on {self.device}"]
        lines += [f"  {what}: {_figures(way) if way else error.splitlines()[0]}" for what, way, error in self.ways]
        if self.best is not None:
            gains = (("ttnn's default", self.gain), ("the call as it is given", self.gain_over_given))
            words = ", ".join(f"{gain:.2f} times as fast as {what}" for what, gain in gains if gain is not None)
            words = words or "neither the call as it is given nor ttnn's default runs"
            lines += [f"  {words}", f"  {self.best.arguments}", f"  output {self.best.hands_on}"]
            lines += [f"  {reason}" for reason in self.reasons]
        if len(self.front) > 1:
            lines.append("  Slower, and smaller or more exact:")
            lines += [f"    {_figures(choice)}: {choice.arguments}" for choice in self.front[1:]]
        extent = f"{self.tried:,} calls tried, {self.alike:,} like these, {self.passed:,} passed over by bounds"
        if not self.untried or self.best is None or self.least_untried_cycles is None:
            extent += ": complete within this space"
        else:
            left = percent(max(0.0, 1 - self.least_untried_cycles / self.best.cycles))
            extent += f", {self.untried:,} groups of calls left untried, which could save at most {left} more"
        return printable_lines("\n".join([*lines, f"  {extent}", f"  Space: {'; '.join(self.space)}"]))


def _plain(value: Any) -> Any:
    """Records as dicts, and tuples as lists."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Choice):
        return value.to_dict()
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)} if is_dataclass(value) else value


def _figures(choice: Choice) -> str:
    error = "" if choice.rms_error is None else f", error {choice.rms_error:.2e}"
    return f"{cycles(choice.cycles)} cycles, {choice.l1_peak_bytes:,} B of L1{error}"


CELLS: Final = ("way", "cycles", "time", "L1 peak B", "error", "arguments")


def _cells(what: str, choice: Choice | None, error: str) -> list[str]:
    """A choice as cells of a table, or the reason why it does not run."""
    if choice is None:
        return [what, "", "", "", "", error.splitlines()[0]]
    rms = "" if choice.rms_error is None else f"{choice.rms_error:.2e}"
    return [what, cycles(choice.cycles), time(choice.nanoseconds), f"{choice.l1_peak_bytes:,}", rms, choice.arguments]


FIXED: Final = (
    "All other operations, arithmetic, formats, tiles or rows of outputs, and what comes out of a chain stay as they "
    "are; movements back to that are counted. Index tensors of all programs stay in L1_SMALL."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedLayer:
    """A convolution of a network before and after tuning.

    Attributes:
        where: The line of the script that ran it.
        function: The function of the library.
        cycles_before: Cycles before tuning; 0 if the layer was not tuned.
        cycles: Cycles after tuning.
        moved_cycles: Additional cycles to copy its output to the expected memory; negative if fewer than before.
        choice: The tuned configs; None if the layer was not tuned.
        changed: Whether the tuned configs differ from those of the script.
        note: Why the layer was not tuned; empty if it was.

    Examples:
        >>> ttnn.TunedLayer(where="model.py:7", function="ttnn.conv2d", note="not tuned").changed
        False
    """

    where: str
    function: str
    cycles_before: int = 0
    cycles: int = 0
    moved_cycles: int = 0
    choice: Choice | None = None
    changed: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TunedNetwork(Headed):
    """The result of `tune_network`: configs of the convolutions of a network; ``print(tuned)`` describes the changes.

    Attributes:
        device: Name of the device.
        clock_hz: Clock of the worker cores, in Hz.
        cycles_before: Cycles of all operations before tuning.
        cycles: Cycles of all operations after tuning.
        layers: The convolutions in order.
        chains: Number of chains: convolutions that pass their outputs only to each other.

    Examples:
        >>> network = ttnn.TunedNetwork(
        ...     device="wormhole_n150", clock_hz=10**9, cycles_before=300, cycles=200, layers=(), chains=0)
        >>> network.gain
        1.5
    """

    device: str
    clock_hz: int
    cycles_before: int
    cycles: int
    layers: tuple[TunedLayer, ...]
    chains: int

    @property
    def gain(self) -> float:
        """The speed-up of the network."""
        return self.cycles_before / self.cycles if self.cycles else 1.0

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        values = _plain(self)
        layers = values.pop("layers")
        return {"format": 1, **values, "gain": self.gain, "layers": layers}

    @property
    def headline(self) -> str:
        """The cycles of the network before and after, in one line."""
        before, after = (time(nanoseconds(cycles, self.clock_hz)) for cycles in (self.cycles_before, self.cycles))
        return (
            f"{counted(len(self.layers), 'convolution')} in {counted(self.chains, 'chain')} on {self.device}: "
            f"{cycles(self.cycles_before)} -> {cycles(self.cycles)} cycles of the whole network ({before} -> {after}), "
            f"{self.gain:.2f} times as fast"
        )

    def _repr_html_(self) -> str:
        head = ("where", "function", "cycles before", "cycles", "cycles to move its output", "what to change")
        rows = (
            (layer.where, layer.function, cycles(layer.cycles_before), cycles(layer.cycles), f"{layer.moved_cycles:+,}",
             layer.choice.arguments if layer.choice and layer.changed else layer.note)
            for layer in self.layers
        )  # fmt: skip
        return html_table([head, *rows], words=(*head[:2], head[-1]), caption=self.headline)

    def __str__(self) -> str:
        """All results as text."""
        lines = [self.headline]
        for layer in self.layers:
            head = f"  {printable(layer.where)}, {layer.function}: "
            if layer.choice is None:
                lines.append(head + layer.note)
            elif not layer.changed:
                lines.append(f"{head}{cycles(layer.cycles)} cycles, best as it is")
            else:
                moved = f", and {layer.moved_cycles:+,} cycles to move its output" if layer.moved_cycles else ""
                lines.append(f"{head}{cycles(layer.cycles_before)} -> {cycles(layer.cycles)} cycles{moved}")
                lines.append(f"    {layer.choice.arguments}")
        return printable_lines("\n".join([*lines, FIXED]))
