"""What a tuner found, as values to use and to read."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

from device.time.stages import nanoseconds
from ops.planners.conv.arguments import Lowering
from ttsim.report.formatting import counted, cycles, percent, printable, printable_lines, time
from ttsim.runtime.types.configs import Conv2dConfig, Conv2dSliceConfig, WormholeComputeKernelConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A way to make a call that runs: its configs and its costs; ``options()`` returns them as arguments of the call.

    Examples:
        >>> choice = ttnn.Choice(
        ...     conv_config=ttnn.Conv2dConfig(), slice_config=None, compute_config=None, lowering="phase", arguments="",
        ...     cycles=100, nanoseconds=100.0, l1_peak_bytes=2048, rms_error=None, hands_on="")
        >>> choice.options()["lowering"]
        'phase'
    """

    conv_config: Conv2dConfig
    slice_config: Conv2dSliceConfig | None  # None for slices that the library chooses
    compute_config: WormholeComputeKernelConfig | None  # None for the library's
    lowering: str  # "zero_insertion", or "phase", which ttnn does not have
    arguments: str  # Keyword arguments of the call, to paste into a script that says ``import ttsim as ttnn``
    cycles: int  # Of all its device operations
    nanoseconds: float
    l1_peak_bytes: int  # Of a core, at the fullest moment of the call
    # Of its arithmetic against float64, of the output's standard deviation, on a small image with the call's own
    # channels; None where no field that changes the arithmetic was allowed
    rms_error: float | None
    hands_on: str  # Layout and place of its output

    def to_dict(self) -> dict[str, Any]:
        """Its figures, and its configs as Python."""
        names = ("arguments", "lowering", "cycles", "nanoseconds", "l1_peak_bytes", "rms_error", "hands_on")
        return {name: getattr(self, name) for name in names}

    def options(self, slice_name: str = "dram_slice_config") -> Mapping[str, Any]:
        """The choice as keyword arguments of the call, under the name that its function has for slices."""
        lowering = {} if self.lowering == Lowering.ZERO_INSERTION else {"lowering": self.lowering}
        configs = {slice_name: self.slice_config, "compute_config": self.compute_config}
        return {"conv_config": self.conv_config, **configs, **lowering}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """Ways to make a call on a device; ``print(tuned)`` describes ``tuned.best`` and the others. `tune` returns it.

    Examples:
        >>> tuned = ttnn.Tuned(
        ...     name="", device="wormhole_n150", given=None, given_error="", default=None, default_error="", front=(),
        ...     reasons=(), tried=0, alike=0, passed=0, refused=0, untried=0, least_untried_cycles=None)
        >>> tuned.best is None, tuned.gain is None
        (True, True)
    """

    name: str  # Of the call
    device: str
    given: Choice | None  # The call as it is given; None if it does not run
    given_error: str  # Why it does not; empty if it does
    default: Choice | None  # The call with ttnn's own choices: only what decides the result is kept of the configs
    default_error: str
    front: tuple[Choice, ...]  # Ways that nothing found beats or equals in cycles, L1 and error; the fastest first
    # Why the fastest is faster than the default, or than the call as given where the default does not run
    reasons: tuple[str, ...]
    tried: int  # Calls that were planned, placed and timed
    alike: int  # Calls that have the plan of a tried call
    passed: int  # Calls and families of calls that do not fit, or cannot be better
    refused: int  # Calls that turned out not to fit, or to be refused
    untried: int  # Families of calls that the effort did not suffice for; 0 if the search is complete
    least_untried_cycles: int | None  # The least cycles of these families

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
        """How many times faster than the call as it is given the best is; None if either does not run."""
        return None if self.best is None or self.given is None else self.given.cycles / self.best.cycles

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {**_plain(self), "gain": self.gain, "gain_over_given": self.gain_over_given}

    def __str__(self) -> str:
        """All of it in words."""
        ways = (
            ("as it is given", self.given, self.given_error),
            ("ttnn's default", self.default, self.default_error),
            ("the best found", self.best, "nothing that was tried runs"),
        )
        lines = [f"{printable(self.name)} on {self.device}"]
        lines += [f"  {what}: {_figures(way) if way else error.splitlines()[0]}" for what, way, error in ways]
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
            extent += ": the search is complete, up to gains of 1 %"
        else:
            left = percent(max(0.0, 1 - self.least_untried_cycles / self.best.cycles))
            extent += f", {self.untried:,} families left untried, which could save at most {left} more"
        return printable_lines("\n".join([*lines, f"  {extent}"]))


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


FIXED: Final = (
    "All other operations, arithmetic, formats, tiles or rows of outputs, and what comes out of a chain stay as they "
    "are; movements back to that are counted. Index tensors of all programs stay in L1_SMALL."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedLayer:
    """A convolution of a network, as it ran and as it is tuned.

    Examples:
        >>> ttnn.TunedLayer(where="model.py:7", function="ttnn.conv2d", note="not tuned").changed
        False
    """

    where: str  # The line of the script that ran it
    function: str  # The function of the library
    cycles_before: int = 0  # As it ran; 0 if it was left out
    cycles: int = 0  # As it is tuned
    moved_cycles: int = 0  # Further cycles to bring its output to where it is expected; below 0 if fewer than before
    choice: Choice | None = None  # How it is to be called; None if it was left out
    changed: bool = False  # Whether that differs from how it was called
    note: str = ""  # Why it was left out; empty if it was not


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedNetwork:
    """Ways to make the convolutions of a network, from `tune_network`; ``print(tuned)`` describes the changes.

    Examples:
        >>> network = ttnn.TunedNetwork(
        ...     device="wormhole_n150", clock_hz=10**9, cycles_before=300, cycles=200, layers=(), chains=0)
        >>> network.gain
        1.5
    """

    device: str
    clock_hz: int
    cycles_before: int  # Of all operations as they ran
    cycles: int  # The same with the convolutions tuned
    layers: tuple[TunedLayer, ...]  # The convolutions in order
    chains: int  # How many chains they form, of layers that hand their outputs to each other alone

    @property
    def gain(self) -> float:
        """How many times as fast the network is."""
        return self.cycles_before / self.cycles if self.cycles else 1.0

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        values = _plain(self)
        layers = values.pop("layers")
        return {"format": 1, **values, "gain": self.gain, "layers": layers}

    def __str__(self) -> str:
        """All of it in words."""
        before, after = (time(nanoseconds(cycles, self.clock_hz)) for cycles in (self.cycles_before, self.cycles))
        lines = [
            f"{counted(len(self.layers), 'convolution')} in {counted(self.chains, 'chain')} on {self.device}: "
            f"{cycles(self.cycles_before)} -> {cycles(self.cycles)} cycles of the whole network ({before} -> {after}), "
            f"{self.gain:.2f} times as fast"
        ]
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
