"""Measured configurations of every kind of program, and how a device with other figures would predict them.

Rows of one configuration are merged (median). Where a row of a convolution or a halo tells when the processors that
move data ended, that counts, too, with half the weight: totals alone can not tell what a program begins with from what
each of its blocks costs.
"""

import math
import re
import statistics
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from device.spec.device_spec import DeviceSpec
from tools.validate.prediction import Prediction
from tools.validate.rows import understood_rows, validator_name

PROGRAMS: Final = ("conv", "halo", "gemm", "matmul", "layout_ops", "ops", "dispatch")
END_TIME_WEIGHT: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A configuration that was measured."""

    program: str  # The kind of its rows; of ops, with the operation
    prediction: Prediction  # Of the first of its rows
    rows: int  # Rows that were merged
    measured: float  # Cycles of the kernel
    ends: tuple[float | None, ...] = ()  # Cycles after which its processors ended, where that is known

    @property
    def spec(self) -> DeviceSpec:
        """The device."""
        return self.prediction.spec

    @property
    def fold(self) -> tuple[str, object]:
        """Cases that agree in it belong into one fold."""
        return self.program, self.prediction.fold or self.prediction.configuration

    @property
    def source(self) -> str:
        """Where it was measured: a file of a repository, or a thread of it."""
        row = self.prediction.row
        return f"{row['source_repo']} {row['source_path']}".partition(" comment")[0].partition(" description")[0]

    @property
    def network(self) -> str:
        """The network whose profile it is from: of autoports the model, else the file's first words; or the source."""
        model = re.search(r"models/autoports/(\w+?)/", self.source)
        profile = re.search(r"/((?:bh|wh)\w*?_[a-z0-9]+)\w*\.csv", self.source)
        return next((found[1] for found in (model, profile) if found), self.source)

    @property
    def count(self) -> int:
        """How many residuals it has."""
        return 1 + sum(end is not None for end in self.ends)

    def error(self, spec: DeviceSpec) -> float:
        """Relative error of the prediction on a device."""
        return self.prediction.cycles_on(spec)[0] / self.measured - 1.0

    def residuals(self, spec: DeviceSpec) -> list[float]:
        """The residuals of a fit: the logarithm of predicted over measured, and errors of end times by the whole."""
        cycles, *end_cycles = self.prediction.cycles_on(spec)
        pairs = zip(end_cycles, self.ends, strict=True)
        late = [END_TIME_WEIGHT * (end - known) / self.measured for end, known in pairs if known is not None]
        return [math.log(cycles / self.measured), *late]


def cases_in(folder: Path, programs: Collection[str] = ()) -> list[Case]:
    """The cases of the files of a folder that are there: of all programs, or of those that are named."""
    names = [name for name in PROGRAMS if not programs or name in programs]
    paths = [(name, path) for name in names for path in (folder / f"{name}.csv", *sorted(folder.glob(f"{name}_*.csv")))]
    files = [(name, path) for name, path in paths if path.is_file() and validator_name(path) == name]
    return [case for name, path in files for case in cases_of(name, understood_rows(path)[0])]


def cases_of(program: str, predictions: Iterable[Prediction]) -> list[Case]:
    """One case for each measured configuration."""
    merged: dict[tuple[str, ...], list[Prediction]] = {}
    for prediction in predictions:
        if prediction.counted:
            merged.setdefault(prediction.configuration, []).append(prediction)
    return [
        Case(
            program=f"{program} {same[0].group[0]}" if program == "ops" else program,
            prediction=same[0],
            rows=len(same),
            measured=statistics.median(row.measured_cycles for row in same),
            ends=tuple(_ended(same, column) for column in same[0].ends),
        )
        for same in merged.values()
    ]


def _ended(predictions: list[Prediction], column: str) -> float | None:
    """When a processor ended, if rows say so."""
    if not predictions[0].row[column]:
        return None
    return statistics.median(float(case.row[column]) * float(case.row["clock_mhz"]) / 1000 for case in predictions)
