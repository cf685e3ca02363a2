"""Measured configurations of every kind of program, and how a device with other figures would predict them.

Rows of one configuration are merged (median). Where a row of a convolution or a halo tells when the processors that
move data ended, that counts, too, with half the weight: totals alone can not tell what a program begins with from what
each of its blocks costs.
"""

import csv
import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.cycles import time_conv
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.data_movement.movement import Movement
from ops.programs.data_movement.movement_cycles import movement_cycles
from tools.validate.conv import (
    HaloRow,
    configuration,
    halo_configuration,
    halo_times_of,
    measured_ns,
    read_conv_row,
    read_halo_row,
)
from tools.validate.dispatch import (
    dispatch_configuration,
    dispatch_cycles_of,
    dispatch_kind,
    dispatch_measured_cycles,
    read_dispatch_row,
)
from tools.validate.gemm import (
    gemm_configuration,
    gemm_cycles_of,
    gemm_measured_cycles,
    is_named_program,
    read_gemm_row,
)
from tools.validate.layout_ops import layout_configuration, operation, read_layout_row
from tools.validate.prediction import OF_2025, NotPredictedError, Row

END_TIME_WEIGHT = 0.5

Predict: TypeAlias = Callable[[DeviceSpec], tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A configuration that was measured."""

    program: str
    spec: DeviceSpec
    held: frozenset[str] = frozenset()  # Figures of it that a fit leaves alone
    group: tuple[str, ...]
    configuration: tuple[str, ...]
    fold: object  # Cases that agree in it belong into one fold
    rows: int  # Rows that were merged
    # Cycles of the kernel; then, where they are known, when the readers' processors ended
    measured: tuple[float | None, ...]
    predict: Predict  # The same on a device

    @property
    def architecture(self) -> str:
        """Cases of one architecture are fitted together."""
        return self.spec.arch

    def error(self, spec: DeviceSpec) -> float:
        """Relative error of a prediction."""
        return self.predict(spec)[0] / _known(self.measured[0]) - 1.0

    def residuals(self, spec: DeviceSpec) -> list[float]:
        """What a fit makes small: the logarithm of predicted over measured, and errors of end times by the whole."""
        cycles, *ends = self.predict(spec)
        whole = _known(self.measured[0])
        found = [math.log(cycles / whole)]
        for predicted, measured in zip(ends, self.measured[1:], strict=True):
            if measured is not None:
                found.append(END_TIME_WEIGHT * (predicted - measured) / whole)
        return found


def _known(cycles: float | None) -> float:
    """The cycles of a kernel, which every case has."""
    return math.nan if cycles is None else cycles


def cases_in(folder: Path, programs: Collection[str] = ()) -> list[Case]:
    """The cases of the files of a folder that are there: of all programs, or of those that are named."""
    cases: list[Case] = []
    for program, read in READERS.items():
        path = folder / f"{program}.csv"
        if programs and program not in programs:
            continue
        if path.is_file():
            with path.open(encoding="utf-8", newline="") as lines:
                cases += read(csv.DictReader(lines))
    return cases


def conv_cases(rows: Iterable[Row]) -> list[Case]:
    """The convolutions measured in some rows."""
    return _merged(rows, configuration, _conv_case, lambda row: read_conv_row(row).counted)


def _conv_case(name: tuple[str, ...], rows: list[Row]) -> Case:
    conv = read_conv_row(rows[0])
    cycles = statistics.median(_cycles(row, measured_ns(row)) for row in rows)
    return Case(
        program="conv",
        spec=conv.spec,
        held=frozenset(OF_2025.get(conv.spec.arch, ()) if conv.older else ()),
        group=(rows[0]["device"], rows[0]["shard"], rows[0]["fidelity"]),
        configuration=name,
        fold=_per_core(conv.op),
        rows=len(rows),
        measured=(cycles, _ended(rows, "ncrisc_ns"), _ended(rows, "brisc_ns")),
        predict=partial(_conv_times, conv.op),
    )


def _conv_times(op: Conv2dOp, spec: DeviceSpec) -> tuple[float, ...]:
    timing = time_conv(op, spec)
    ends = (max(getattr(core, name).now.cycles for core in timing.cores) for name in ("reader", "second"))
    return timing.end.cycles, *ends


def _per_core(op: Conv2dOp) -> tuple[object, ...]:
    """What each core does: however images are cut, halves of one do not vouch for each other."""
    layout = op.layout
    return (layout.blocks, layout.shards.out_rows, layout.shards.out_width, op.problem.weight_format)


def halo_cases(rows: Iterable[Row]) -> list[Case]:
    """The halos measured in some rows."""
    return _merged(rows, halo_configuration, _halo_case)


def _halo_case(name: tuple[str, ...], rows: list[Row]) -> Case:
    halo, row = read_halo_row(rows[0]), rows[0]
    group = (row["device"], row["in_layout"].lower(), row["shard"])
    case = _plain("halo", name, rows, group, halo.spec, partial(_halo_times, halo))
    return replace(case, measured=(*case.measured, _ended(rows, "brisc_ns"), _ended(rows, "ncrisc_ns")))


def _halo_times(halo: HaloRow, spec: DeviceSpec) -> tuple[float, ...]:
    times = halo_times_of(halo, spec)
    return (times.cycles, *times.ends.max(axis=1).tolist())


def gemm_cases(rows: Iterable[Row]) -> list[Case]:
    """The matmuls measured in some rows that say which program ran."""
    return _merged(rows, gemm_configuration, _gemm_case, is_named_program)


def _gemm_case(name: tuple[str, ...], rows: list[Row]) -> Case:
    gemm = read_gemm_row(rows[0])
    return Case(
        program="gemm",
        spec=gemm.spec,
        group=(rows[0]["device"], rows[0]["grid"]),
        configuration=name,
        fold=name,
        rows=len(rows),
        measured=(statistics.median(gemm_measured_cycles(row) for row in rows),),
        predict=lambda spec: (gemm_cycles_of(gemm, spec),),
    )


def layout_cases(rows: Iterable[Row]) -> list[Case]:
    """The movements measured in some rows."""
    return _merged(rows, layout_configuration, _layout_case)


def _layout_case(name: tuple[str, ...], rows: list[Row]) -> Case:
    found = read_layout_row(rows[0])
    held = frozenset(OF_2025.get(found.spec.arch, ()))
    predict = partial(_moved, found.movement)
    return _plain("layout_ops", name, rows, (operation(rows[0]),), found.spec, predict, held=held)


def _moved(movement: Movement, spec: DeviceSpec) -> tuple[float, ...]:
    return (movement_cycles(movement, spec).cycles,)


def _plain(
    program: str,
    name: tuple[str, ...],
    rows: list[Row],
    group: tuple[str, ...],
    spec: DeviceSpec,
    predict: Predict,
    *,
    held: frozenset[str] = frozenset(),
) -> Case:
    """A case of profiler rows whose total alone counts."""
    cycles = statistics.median(_cycles(row, measured_ns(row)) for row in rows)
    return Case(
        program=program,
        spec=spec,
        group=group,
        configuration=name,
        fold=name,
        rows=len(rows),
        measured=(cycles,),
        predict=predict,
        held=held,
    )


def _ended(rows: list[Row], column: str) -> float | None:
    """When a processor ended, if rows say so."""
    return statistics.median(_cycles(row, float(row[column])) for row in rows) if rows[0][column] else None


def _cycles(row: Row, nanoseconds: float) -> float:
    return nanoseconds * float(row["clock_mhz"]) / 1000


def _merged(
    rows: Iterable[Row],
    name_of: Callable[[Row], tuple[str, ...]],
    case: Callable[[tuple[str, ...], list[Row]], Case],
    concerns: Callable[[Row], bool] = bool,
) -> list[Case]:
    """One case for each configuration; rows that can not be predicted are left out."""
    merged: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        try:
            if concerns(row):
                merged.setdefault(name_of(row), []).append(row)
        except NotPredictedError:
            continue
    cases = []
    for name, same in merged.items():
        try:
            cases.append(case(name, same))
        except NotPredictedError:
            continue
    return cases


def dispatch_cases(rows: Iterable[Row]) -> list[Case]:
    """The launches measured in some rows."""
    return _merged(rows, dispatch_configuration, _dispatch_case)


def _dispatch_case(name: tuple[str, ...], rows: list[Row]) -> Case:
    found = read_dispatch_row(rows[0])
    return Case(
        program="dispatch",
        spec=found.spec,
        group=(dispatch_kind(rows[0]),),
        configuration=name,
        fold=name[:-1],  # a test, with all its sizes
        rows=len(rows),
        measured=(statistics.median(dispatch_measured_cycles(row) for row in rows),),
        predict=lambda spec: (dispatch_cycles_of(found, spec),),
    )


READERS: Mapping[str, Callable[[Iterable[Row]], list[Case]]] = {
    "conv": conv_cases,
    "halo": halo_cases,
    "gemm": gemm_cases,
    "layout_ops": layout_cases,
    "dispatch": dispatch_cases,
}
