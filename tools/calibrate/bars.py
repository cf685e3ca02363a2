"""Error bars from evidence: errors of configurations that a fit had not seen, by class of program and place.

A bar is half of what nine of ten new configurations are not to exceed, or the mean of those measured if that is larger.
Nine of ten is the larger of two figures: the ninth of ten of the errors themselves, and a prediction interval of
Student's t. Its spread joins the class's own with that of a typical class of the architecture, which counts as
`TYPICAL` configurations; so a few rows that agree, or are all alike, do not make a bar of nearly zero. A program that
changes formats on its way moves its pages as the program that does not, and is no better known. Where
families share a class (matmuls that the library plans: of a benchmark, of profiled networks), each that has ten
configurations in it is covered, since a large benchmark says little of networks. Rows of kernels that were replaced
count with what reports say of today's kernels; a class of such rows alone names their release.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import ceil, fsum, sqrt
from statistics import NormalDist, fmean, median
from typing import Final, NamedTuple

from ops.programs.data_movement.copy import FORMAT_CHANGED
from tools.calibrate.evidence import Evidence

COVERED: Final = 0.9
TYPICAL: Final = 4  # configurations
MANY: Final = 10  # configurations of a family in a class that are covered by themselves
Class = tuple[str, str, str]  # class of program, architecture, place


class Bar(NamedTuple):
    """What is known of a class, in parts of the measured cycles."""

    mean: float  # Mean absolute error
    within: float  # What nine of ten new errors are not to exceed
    configurations: int
    older_release: str = ""  # Of the kernels that were measured, where today's were not


def ninth_of_ten(errors: Sequence[float]) -> float:
    """Of n errors the one of rank 0.9 (n + 1), or the largest."""
    sizes = sorted(map(abs, errors))
    return sizes[min(ceil(COVERED * (len(sizes) + 1)), len(sizes)) - 1]


def student(share: float, freedom: int) -> float:
    """What the size of Student's t does not exceed in a share of cases, by Fisher's series (1 % off at 5 degrees)."""
    z = NormalDist().inv_cdf((1 + share) / 2)
    terms = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + sum(term / float(freedom) ** power for power, term in enumerate(terms, start=1))


def within(errors: Sequence[float], typical: float) -> float:
    """What nine of ten new errors are not to exceed; `typical` is the root mean square error of a typical class."""
    count = len(errors) + TYPICAL
    spread = sqrt((fsum(error * error for error in errors) + TYPICAL * typical**2) / count)
    return max(ninth_of_ten(errors), student(COVERED, count) * spread * sqrt(1 + 1 / count))


def bars(evidence: Sequence[Evidence]) -> dict[Class, Bar]:
    """The bar of every class, by name."""
    classes: defaultdict[Class, list[float]] = defaultdict(list)
    families: defaultdict[Class, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    releases: defaultdict[Class, list[str]] = defaultdict(list)
    for case in evidence:
        if case.kind:
            key = case.kind, case.architecture, case.place
            classes[key].append(case.stated)
            families[key][case.family].append(case.stated)
            releases[key].append(case.older_release)
    older = {key: known[0] if all(known) else "" for key, known in releases.items()}
    spreads: defaultdict[str, list[float]] = defaultdict(list)
    for key, errors in classes.items():
        if len(errors) >= TYPICAL and not older[key]:
            spreads[key[1]].append(sqrt(fmean(error * error for error in errors)))
    typical = {architecture: median(known) for architecture, known in spreads.items()}
    most = {
        key: max(
            within(errors, typical.get(key[1], 0.0))
            for errors in (own, *families[key].values())
            if errors is own or len(errors) >= MANY
        )
        for key, own in classes.items()
    }
    plain = {key: (key[0].removesuffix(FORMAT_CHANGED), *key[1:]) for key in classes}
    return {
        key: Bar(fmean(map(abs, own)), max(most[key], most.get(plain[key], 0.0)), len(own), older[key])
        for key, own in sorted(classes.items())
    }


def bars_text(found: dict[Class, Bar]) -> str:
    """The tables of `ops/passes/expected_errors.toml`."""
    tables: dict[tuple[str, str], list[str]] = {}
    for (kind, architecture, place), bar in found.items():
        figures = f"mean = {bar.mean:.3f}, within = {bar.within:.3f}, configurations = {bar.configurations}"
        release = f', older_release = "{bar.older_release}"' if bar.older_release else ""
        row = f'"{place}" = {{ {figures}{release} }}'
        tables.setdefault((kind, architecture), []).append(row)
    heads = ((f'["{kind}".{architecture}]', rows) for (kind, architecture), rows in tables.items())
    return "\n\n".join("\n".join([head, *rows]) for head, rows in heads)
