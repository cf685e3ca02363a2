"""What is known of every measured configuration: its errors in sample and left out, and the family it counts in."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from tools.calibrate.cases import Case
from tools.validate.gemm import TUNED

FAMILIES: Final = {  # by the class of a program, or the operation that a row names
    "convolutions": ("Conv2d",),
    "halos": ("Halo",),
    "InterleavedToSharded, ShardedToInterleaved": ("InterleavedToSharded", "ShardedToInterleaved"),
    "tilize, untilize": ("Tilize", "Untilize", "tilize", "untilize"),
    "element-wise": ("Binary", "Unary"),
    "permute, transpose": ("Permute", "Transpose", "permute"),
    "concat, slice, pad": ("Concat", "Slice", "Pad", "concat", "pad"),
    "repeat": ("Repeat", "repeat"),
    "pools, upsample": ("Pool", "Upsample"),
    "launches": ("dispatch",),
}
NOT_OF_ONE: Final = ("PaddedSlice", "SliceWrite")  # whose names begin as others'
OTHERS: Final = "other movements"
TUNED_MATMULS, PLANNED_MATMULS, PROFILED_MATMULS = "tuned matmuls", "planned matmuls", "matmuls of profiles"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A measured configuration; errors are relative."""

    family: str
    architecture: str
    kind: str  # The class of its program, as error bars are sorted; empty for several programs
    place: str
    rows: int
    catalog: float  # Error with the catalog's figures
    unseen: float  # With figures that were fitted without its fold of configurations
    without_source: float  # Without its source
    without_network: float  # Without the network whose profile it is from
    older_release: str = ""  # The release whose kernels were measured, where the errors are those of today's kernels

    @property
    def stated(self) -> float:
        """What counts for error bars: the error of a configuration left out, no better than what reports say of it."""
        return max(self.unseen, self.catalog, key=abs)


def family_of(case: Case) -> str:
    """The family that a case counts in."""
    kind, program = case.prediction.evidence[0], case.program
    if kind.startswith("Matmul") or program in ("gemm", "matmul"):
        if program == "matmul" or "profiled" in case.prediction.group[-1]:
            return PROFILED_MATMULS
        return TUNED_MATMULS if TUNED in case.prediction.row["config"] else PLANNED_MATMULS
    named = kind or program.removeprefix("ops ")
    if named in NOT_OF_ONE:
        return OTHERS
    return next((family for family, names in FAMILIES.items() if named.startswith(names)), OTHERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyErrors:
    """Errors of a family on an architecture, as parts of the measured cycles."""

    family: str
    architecture: str
    configurations: int
    catalog: float  # Mean absolute errors
    bias: float  # The mean of `catalog`'s errors with their signs
    unseen: float
    without_source: float
    without_network: float
    covered: float | None  # Part of the configurations whose unseen error is within twice their bar; None without bars


def summed(evidence: Sequence[Evidence], shares: dict[tuple[str, str, str], float]) -> list[FamilyErrors]:
    """Errors by family and architecture; `shares` are the bars of classes of programs, architectures and places.

    Every row counts once, with the kernels that it was measured with.
    """
    groups: dict[tuple[str, str], list[Evidence]] = {}
    own_kernels = [case for case in evidence if not case.older_release]
    for case in sorted(own_kernels, key=lambda case: (case.family, case.architecture)):
        groups.setdefault((case.family, case.architecture), []).append(case)
    found = []
    for (family, architecture), own in groups.items():
        barred = [
            abs(case.unseen) <= 2 * shares[case.kind, architecture, case.place]
            for case in own
            if (case.kind, architecture, case.place) in shares
        ]
        found.append(
            FamilyErrors(
                family=family,
                architecture=architecture,
                configurations=len(own),
                bias=fmean(case.catalog for case in own),
                covered=fmean(barred) if barred else None,
                **{
                    name: fmean(abs(getattr(case, name)) for case in own)
                    for name in ("catalog", "unseen", "without_source", "without_network")
                },
            )
        )
    return found


HEADINGS: Final = (
    "family", "architecture", "configurations", "in sample %", "bias %", "cross-validated %", "source left out %",
    "network left out %", "within twice the bar %",
)  # fmt: skip


def cells_of(row: FamilyErrors) -> tuple[str, ...]:
    """A row of the table."""
    shares = (row.catalog, row.bias, row.unseen, row.without_source, row.without_network)
    shown = (f"{100 * share:{sign}.1f}" for share, sign in zip(shares, ("", "+", "", "", ""), strict=True))
    covered = "" if row.covered is None else f"{100 * row.covered:.0f}"
    return (row.family, row.architecture, str(row.configurations), *shown, covered)


def markdown(rows: Sequence[FamilyErrors]) -> str:
    """The table of docs/reference/cycles.md."""
    lines = [HEADINGS, ("---", "---", *["---:"] * (len(HEADINGS) - 2)), *map(cells_of, rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
