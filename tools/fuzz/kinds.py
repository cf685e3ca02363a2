"""All kinds of random trials, by name."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Literal

from tools.fuzz import arguments, files, interrupts, threads
from tools.fuzz.calls import draw, pasteable
from tools.fuzz.finding import Finding
from tools.fuzz.oracles import disagreements, judge
from tools.fuzz.sequences.running import check as check_sequence

Check = Callable[[int, int], Finding]


def check_call(seed: int, index: int, *, values: Literal["fast", "exact"] = "fast") -> Finding:
    """Makes the call of a seed and an index on a strict device."""
    call = draw(seed, index)
    verdict = judge(call, values=values)
    return Finding(outcome=verdict.outcome, text=verdict.text, again=pasteable(call), seconds=verdict.seconds)


def check_call_exactly(seed: int, index: int) -> Finding:
    """The same, bit for bit."""
    return check_call(seed, index, values="exact")


def check_twins(seed: int, index: int) -> Finding:
    """Makes the call of a seed and an index in other ways, too, which must agree."""
    call = draw(seed, index)
    found = check_call(seed, index)
    if found.outcome != "right":
        return found
    differences = list(disagreements(call))
    if not differences:
        return found
    return replace(found, outcome="fault", text="; ".join(differences))


KINDS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "calls": check_call,
        "exact": check_call_exactly,
        "twins": check_twins,
        "arguments": arguments.check,
        "specs": files.check_spec,
        "layers": files.check_layers,
        "rows": files.check_rows,
        "interrupts": interrupts.check,
        "threads": threads.check,
        "sequences": check_sequence,
    }
)
