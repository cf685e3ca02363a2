"""What is different about an operation in two reports, as far as both tell it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ttsim.report.comparison.figures import ReportedOperation, ReportedTensor

TOLD_STAGES = 2
MISSING, MODEL, CORES, FIDELITY, SHAPES, DTYPES, LAYOUTS, MEMORY, BOUND, STAGES = (
    "matched", "known times", "cores", "fidelity", "shapes", "data types", "layouts", "memory", "bound", "stages"
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A difference."""

    what: str  # Differs: cores, fidelity, shapes ..
    text: str  # How, in words


def causes_of(
    before: ReportedOperation | None, after: ReportedOperation | None, *, stages: bool = True
) -> tuple[Cause, ...]:
    """What is different, the stages that changed most last.

    Args:
        before: In the first report; None if it is not there.
        after: In the second; None likewise.
        stages: Whether cycles of their stages compare: those of two clocks do not.
    """
    if before is None or after is None:
        return (Cause(what=MISSING, text="only after" if before is None else "only before"),)
    if (before.nanoseconds is None) != (after.nanoseconds is None):
        return (Cause(what=MODEL, text=f"no time {'before' if before.nanoseconds is None else 'after'}"),)
    found = [*_configs(before, after), *_tensors(before, after)]
    if stages:
        found += _stages(dict(before.stages), dict(after.stages))
    return tuple(Cause(what=what, text=text) for what, text in found)


def _configs(before: ReportedOperation, after: ReportedOperation) -> Iterator[tuple[str, str]]:
    if before.core_count != after.core_count and before.core_count and after.core_count:
        yield CORES, f"{before.core_count} -> {after.core_count} cores"
    if before.fidelity != after.fidelity and before.fidelity and after.fidelity:
        yield FIDELITY, f"{before.fidelity} -> {after.fidelity}"
    if before.bound_by != after.bound_by and before.bound_by and after.bound_by:
        yield BOUND, f"bound by {before.bound_by} -> {after.bound_by}"


def _tensors(before: ReportedOperation, after: ReportedOperation) -> Iterator[tuple[str, str]]:
    """Of tensors that both tell of."""
    others: Mapping[str, ReportedTensor] = {one.name: one for one in after.tensors}
    for one in before.tensors:
        other = others.get(one.name)
        if other is None:
            continue
        sides = (
            (SHAPES, one.shape, other.shape),
            (DTYPES, one.dtype, other.dtype),
            (LAYOUTS, one.layout, other.layout),
            (MEMORY, one.memory, other.memory),
        )
        yield from ((what, f"{one.name} {was} -> {now}") for what, was, now in sides if was and now and was != now)


def _stages(were: Mapping[str, int], are: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    if not were or not are:  # a network's report has none
        return
    changes = {name: are.get(name, 0) - were.get(name, 0) for name in {**were, **are}}
    most = sorted((name for name in changes if changes[name]), key=lambda name: -abs(changes[name]))
    yield from ((STAGES, f"{name} {changes[name]:+,}") for name in most[:TOLD_STAGES])
