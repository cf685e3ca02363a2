"""What a tuner found, as values to use and to read."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from device.time.stages import nanoseconds
from ttsim.report.formatting import cycles, percent, printable, printable_lines, time
from ttsim.runtime.types.configs import Conv2dConfig, Conv2dSliceConfig, WormholeComputeKernelConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A way to make a call that runs.

    Attributes:
        conv_config: Its Conv2dConfig.
        slice_config: Its slices; None for those that the library chooses.
        compute_config: Its compute config; None for the library's.
        lowering: "frame", or "phase", which ttnn does not have.
        arguments: These as keyword arguments of the call, to paste into a script that says ``import ttsim as ttnn``.
        cycles: Of all its device operations.
        nanoseconds: The same in time.
        l1_peak_bytes: Of a core, at the fullest moment of the call.
        rms_error: Of its arithmetic against float64, of the output's standard deviation, on a small image with the
            call's own channels; None where nothing that changes it was allowed.
        hands_on: Layout and place of its output.
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
        """Its figures, and its configs as Python."""
        names = ("arguments", "lowering", "cycles", "nanoseconds", "l1_peak_bytes", "rms_error", "hands_on")
        return {name: getattr(self, name) for name in names}

    def options(self, slice_name: str = "dram_slice_config") -> Mapping[str, Any]:
        """The choice as keyword arguments of the call, under the name that its function has for slices."""
        lowering = {} if self.lowering == "frame" else {"lowering": self.lowering}
        configs = {slice_name: self.slice_config, "compute_config": self.compute_config}
        return {"conv_config": self.conv_config, **configs, **lowering}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What was found for a call on a device.

    Attributes:
        name: Of the call.
        device: Of the device.
        given: The call as it is given; None if it does not run.
        given_error: Why it does not; empty if it does.
        default: The same with ttnn's own choices: only what decides the result is kept of the configs.
        default_error: Likewise.
        front: Ways to make it that nothing found beats or equals in cycles, L1 and error; the fastest first.
        reasons: Why the fastest is faster, from the reports on it and on the default (on the call as given where the
            default does not run).
        tried: Calls that were planned, placed and timed.
        alike: Calls that have the plan of one of these.
        passed: Calls and families of calls passed over, because they do not fit, or cannot be better.
        refused: Calls that turned out not to fit, or to be refused.
        untried: Families of calls that the effort did not suffice for; 0 if the search is complete.
        least_untried_cycles: What those take at least.
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

    @property
    def best(self) -> Choice | None:
        """The fastest; None if nothing that was tried runs."""
        return self.front[0] if self.front else None

    @property
    def gain(self) -> float | None:
        """How many times faster than ttnn's default the best is; None if either does not run."""
        return None if self.best is None or self.default is None else self.default.cycles / self.best.cycles

    @property
    def gain_over_given(self) -> float | None:
        """How many times faster than the call as it is given; None likewise."""
        return None if self.best is None or self.given is None else self.given.cycles / self.best.cycles

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("given", "default"):
            values[name] = values[name] and values[name].to_dict()
        values |= {"front": [choice.to_dict() for choice in self.front], "reasons": list(self.reasons)}
        return values | {"gain": self.gain, "gain_over_given": self.gain_over_given}

    def __str__(self) -> str:
        """All of it in words."""
        lines = [f"{printable(self.name)} on {self.device}"]
        lines += [
            _line("as it is given", self.given, self.given_error),
            _line("ttnn's default", self.default, self.default_error),
            _line("the best found", self.best, "nothing that was tried runs"),
        ]
        if self.best is not None:
            lines += [f"  {_gains(self)}", f"  {self.best.arguments}", f"  output {self.best.hands_on}"]
            lines += [f"  {reason}" for reason in self.reasons]
        if len(self.front) > 1:
            lines.append("  Slower, and smaller or more exact:")
            lines += [f"    {_figures(choice)}: {choice.arguments}" for choice in self.front[1:]]
        return printable_lines("\n".join([*lines, f"  {_extent(self)}"]))


def _line(what: str, choice: Choice | None, error: str) -> str:
    return f"  {what}: {error.splitlines()[0] if choice is None else _figures(choice)}"


def _figures(choice: Choice) -> str:
    error = "" if choice.rms_error is None else f", error {choice.rms_error:.2e}"
    return f"{cycles(choice.cycles)} cycles, {choice.l1_peak_bytes:,} B of L1{error}"


def _gains(tuned: Tuned) -> str:
    gains = [("ttnn's default", tuned.gain), ("the call as it is given", tuned.gain_over_given)]
    words = [f"{gain:.2f} times as fast as {what}" for what, gain in gains if gain is not None]
    return ", ".join(words) or "neither the call as it is given nor ttnn's default runs"


def _extent(tuned: Tuned) -> str:
    text = f"{tuned.tried:,} calls tried, {tuned.alike:,} like these, {tuned.passed:,} passed over by bounds"
    if not tuned.untried or tuned.best is None or tuned.least_untried_cycles is None:
        return f"{text}: the search is complete, up to gains of 1 %"
    left = max(0.0, 1 - tuned.least_untried_cycles / tuned.best.cycles)
    return f"{text}, {tuned.untried:,} families left untried, which could save at most {percent(left)} more"


FIXED: Final = (
    "All other operations, arithmetic, formats, tiles or rows of outputs, and what comes out of a chain stay as they "
    "are; movements back to that are counted. Index tensors of all programs stay in L1_SMALL."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedLayer:
    """A convolution of a network.

    Attributes:
        where: The line of the script that ran it.
        function: The function of the library.
        cycles_before: As it ran; 0 if it was left out.
        cycles: As it is tuned.
        moved_cycles: What it takes more, beside them, to bring its output to where it is expected; below 0 if less.
        choice: How it is to be called; None if it was left out.
        changed: Whether that differs from how it was called.
        note: Why it was left out; empty if it was not.
    """

    where: str
    function: str
    cycles_before: int = 0
    cycles: int = 0
    moved_cycles: int = 0
    choice: Choice | None = None
    changed: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedNetwork:
    """What was found for a network.

    Attributes:
        device: Name of the device.
        clock_hz: Its clock.
        cycles_before: Of all operations as they ran.
        cycles: The same with the convolutions tuned.
        layers: The convolutions in order.
        chains: How many chains they form, of layers that hand their outputs to each other alone.
    """

    device: str
    clock_hz: int
    cycles_before: int
    cycles: int
    layers: tuple[TunedLayer, ...]
    chains: int

    @property
    def gain(self) -> float:
        """How many times as fast the network is."""
        return self.cycles_before / self.cycles if self.cycles else 1.0

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        layers = [
            {field.name: getattr(layer, field.name) for field in fields(layer) if field.name != "choice"}
            | {"choice": layer.choice and layer.choice.to_dict()}
            for layer in self.layers
        ]
        names = ("device", "clock_hz", "cycles_before", "cycles", "chains", "gain")
        return {"format": 1, **{name: getattr(self, name) for name in names}, "layers": layers}

    def __str__(self) -> str:
        """All of it in words."""
        before, after = (time(nanoseconds(cycles, self.clock_hz)) for cycles in (self.cycles_before, self.cycles))
        lines = [
            f"{len(self.layers)} convolutions in {self.chains} chains on {self.device}: "
            f"{cycles(self.cycles_before)} -> {cycles(self.cycles)} cycles of the whole network ({before} -> {after}), "
            f"{self.gain:.2f} times as fast",
            *(line for layer in self.layers for line in _layer_lines(layer)),
            FIXED,
        ]
        return printable_lines("\n".join(lines))


def _layer_lines(layer: TunedLayer) -> list[str]:
    head = f"  {printable(layer.where)}, {layer.function}: "
    if layer.choice is None:
        return [head + layer.note]
    if not layer.changed:
        return [f"{head}{cycles(layer.cycles)} cycles, best as it is"]
    moved = f", and {layer.moved_cycles:+,} cycles to move its output" if layer.moved_cycles else ""
    return [
        f"{head}{cycles(layer.cycles_before)} -> {cycles(layer.cycles)} cycles{moved}",
        f"    {layer.choice.arguments}",
    ]
