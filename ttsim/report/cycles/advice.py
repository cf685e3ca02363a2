"""What would make calls faster, as frozen values: changes that were tried on the model, and what they gained."""

from dataclasses import dataclass

from ops.passes.sensitivity import Sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Another way to make the same call, tried on the model."""

    kind: str  # What was changed
    text: str  # The change in short: "shard_layout=HEIGHT_SHARDED"
    arguments: str  # The changed arguments of the call, to paste into a script that says ``import ttsim as ttnn``
    cycles: int  # What the call then takes
    saved_share: float  # Of its cycles as it is
    price: str = ""  # What is given up for it; empty if nothing is


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineChange:
    """Another machine, with the plan as it is."""

    figure: str  # What is changed, as part.field
    factor: float  # 2 or 0.5
    value: float  # The figure before
    saved_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What would help."""

    cycles: int
    changes: tuple[Change, ...] = ()  # Changes of the call's configs: of each kind the best, the most helpful first
    # The best of several such changes at once that was found; None if none is better than one alone
    together: Change | None = None
    at_a_price: tuple[Change, ...] = ()  # Changes that give something up, each by itself
    machine: tuple[MachineChange, ...] = ()  # Changes of the machine, the most helpful first
    sensitivity: tuple[Sensitivity, ...] = ()  # What each figure of the machine means, the strongest first
    tried: int = 0  # Calls that were planned and timed to find out


def machine_changes(
    sensitivities: tuple[Sensitivity, ...], *, least_share: float, most: int
) -> tuple[MachineChange, ...]:
    """Twice or half of each figure, whichever is better.

    Args:
        sensitivities: What was found of each figure.
        least_share: Of the time, that is worth telling.
        most: How many to tell.
    """
    found = []
    for one in sensitivities:
        times = [(time, factor) for factor, time in ((2.0, one.doubled_time), (0.5, one.halved_time)) if time]
        if times and 1 - min(times)[0] >= least_share:
            time, factor = min(times)
            found.append(MachineChange(figure=one.figure, factor=factor, value=one.value, saved_share=1 - time))
    return tuple(sorted(found, key=lambda one: (-one.saved_share, one.figure))[:most])
