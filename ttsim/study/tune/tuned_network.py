"""What a tuner found for the convolutions of a network, as values to use and to read."""

from dataclasses import dataclass
from typing import Any, Final

from device.time.stages import nanoseconds
from ttsim.report.cycles.explain import cycles, time
from ttsim.report.printable import printable, printable_lines
from ttsim.study.tune.tuned import Choice

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
            {name: getattr(one, name) for name in TunedLayer.__dataclass_fields__ if name != "choice"}
            | {"choice": None if one.choice is None else one.choice.to_dict()}
            for one in self.layers
        ]
        names = ("device", "clock_hz", "cycles_before", "cycles", "chains", "gain")
        return {"format": 1, **{name: getattr(self, name) for name in names}, "layers": layers}

    def __str__(self) -> str:
        """All of it in words."""
        before, after = (time(nanoseconds(one, self.clock_hz)) for one in (self.cycles_before, self.cycles))
        lines = [
            f"{len(self.layers)} convolutions in {self.chains} chains on {self.device}: "
            f"{cycles(self.cycles_before)} -> {cycles(self.cycles)} cycles of the whole network ({before} -> {after}), "
            f"{self.gain:.2f} times as fast",
            *(line for one in self.layers for line in _layer_lines(one)),
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
