"""How far cycles are to be expected off: what models missed of measurements that their fit had not seen.

The figures stand in `expected_errors.toml`, by what was measured and on which architecture (docs/cycles.md, Errors).
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
    """An error of a model."""

    share: float  # Mean absolute error, of the measured cycles
    configurations: int  # How many were measured
    architecture: str  # On which it was measured


@cache
def expected_errors() -> Mapping[str, tuple[ExpectedError, ...]]:
    """All errors, by what was measured."""
    table = tomllib.loads(files("ops.readings").joinpath("expected_errors.toml").read_text(encoding="utf-8"))
    return MappingProxyType(
        {
            name: tuple(
                ExpectedError(share=row["mean"], configurations=row["configurations"], architecture=architecture)
                for architecture, row in rows.items()
            )
            for name, rows in table.items()
        }
    )


def expected_error(measured_as: str, architecture: str) -> ExpectedError | None:
    """What is to be expected of a model; None if nothing of its kind was measured anywhere.

    Args:
        measured_as: Under which name it was measured.
        architecture: Where it runs; if it was measured on others alone, the largest of their errors counts.
    """
    rows = expected_errors().get(measured_as, ())
    here = [one for one in rows if one.architecture == architecture]
    return max(here or rows, key=lambda one: one.share, default=None)
