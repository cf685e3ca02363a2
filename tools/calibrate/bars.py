"""Error bars from evidence: errors of configurations that a fit had not seen, by class of program and place.

A bar is half of what nine of ten such errors do not exceed, or their mean if that is larger. Few configurations tell
little: a class of fewer than `FEW` gets at least the bar of all classes of its architecture together.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import ceil
from statistics import fmean
from typing import Final

from tools.calibrate.cases import Case

COVERED: Final = 0.9
FEW: Final = 4
Class = tuple[str, str, str]  # class of program, architecture, place


def within(errors: Sequence[float]) -> float:
    """The error that nine of ten new ones do not exceed: of n errors the one of rank 0.9 (n + 1), or the largest."""
    sizes = sorted(map(abs, errors))
    return sizes[min(ceil(COVERED * (len(sizes) + 1)), len(sizes)) - 1]


def bars(errors: Sequence[tuple[Case, float]]) -> dict[Class, tuple[float, float, int]]:
    """Mean absolute error, `within` and count of every class, by name."""
    classes: defaultdict[Class, list[float]] = defaultdict(list)
    together: defaultdict[str, list[float]] = defaultdict(list)
    for case, error in errors:
        kind, place = case.prediction.evidence
        if kind:
            classes[kind, case.spec.arch, place].append(error)
            together[case.spec.arch].append(error)
    result = {}
    for key, own in sorted(classes.items()):
        least = 0.0 if len(own) >= FEW else within(together[key[1]])
        result[key] = (fmean(map(abs, own)), max(within(own), least), len(own))
    return result


def bars_text(found: dict[Class, tuple[float, float, int]]) -> str:
    """The tables of `ops/passes/expected_errors.toml`."""
    tables: dict[tuple[str, str], list[str]] = {}
    for (kind, architecture, place), (mean, most, count) in found.items():
        row = f'"{place}" = {{ mean = {mean:.3f}, within = {most:.3f}, configurations = {count} }}'
        tables.setdefault((kind, architecture), []).append(row)
    heads = ((f'["{kind}".{architecture}]', rows) for (kind, architecture), rows in tables.items())
    return "\n\n".join("\n".join([head, *rows]) for head, rows in heads)
