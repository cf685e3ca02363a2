"""What nothing else beats in everything: the Pareto front."""

from collections.abc import Sequence


def front(costs: Sequence[Sequence[float]]) -> tuple[int, ...]:
    """Places of those that no other beats: none is at most as dear in all costs and cheaper in one.

    Args:
        costs: Of each candidate; all have as many, and less is better.

    Returns:
        In order of the first cost, then of the second, and so on; of equal candidates the first alone.
    """
    found: list[int] = []
    for at in sorted(range(len(costs)), key=lambda one: (tuple(costs[one]), one)):
        beaten = (all(held <= own for held, own in zip(costs[one], costs[at], strict=True)) for one in found)
        if not any(beaten):  # what comes later in order can beat none that came before
            found.append(at)
    return tuple(found)
