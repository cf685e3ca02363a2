"""Repeat the fits of halo, matmul, data movement and dispatch constants; show in-sample and cross-validated errors.

usage: python -m tools.calibrate.programs [halo|gemm|layout_ops|dispatch ...] [--rows FOLDER]

Rows of one configuration are merged (median). Cross-validation deals configurations into 5 folds and predicts each
with constants fitted to the others; of dispatch all sizes of a test are left out together. Constants that are not
listed are sourced, and not fitted.
"""

import argparse
import csv
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from rich.table import Table

from device.spec.device_spec import DeviceSpec
from device.spec.tables import Costs
from ops.launch.costs import DispatchCosts
from ops.programs.halo.costs import HaloCosts
from ops.programs.matmul.costs import MatmulCosts
from ops.programs.movement.costs import MovementCosts
from ops.programs.movement.cycles import movement_cycles
from tools.calibrate.fit import Fit, fit_constants, folds_of
from tools.validate.conv import measured_ns
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
    is_tuned_utilization,
    read_gemm_row,
)
from tools.validate.halo import halo_configuration, halo_cycles_of, read_halo_row
from tools.validate.layout_ops import layout_configuration, operation, read_layout_row
from tools.validate.prediction import NotPredictedError, Row
from tools.validate.report import console, error_table
from tools.validate.summary import Errors, sum_up_errors

ROWS = Path(__file__).resolve().parents[2] / "tests" / "data" / "measured"
FOLDS = 5

Described: TypeAlias = tuple[DeviceSpec, tuple[str, ...], Callable[[DeviceSpec], float]]

HALO_PRIORS: Mapping[str, float] = {
    "start_cycles": 500.0,  # guess
    "dram_config_cycles": 700.0,  # guess: a read from DRAM and its setup
    "pad_write_cycles": 20.0,  # noc_latencies.yaml: 18 for stateful transfers
    "segment_cycles": 36.0,  # noc_latencies.yaml: a small read
    "waiting_share": 0.9,  # guess: nearly all
    "untilize_block_cycles": 350.0,  # guess
    "untilize_narrow_tile_cycles": 80.0,  # tt-llk pack-untilize
}
GEMM_PRIORS: Mapping[str, Mapping[str, float]] = {
    "wormhole_b0": {
        "start_cycles": 2500.0,  # guess
        "product_cycles": 3.0,  # guess
        "unpack_bytes_per_cycle": 44.0,  # GEMM_FLOPS: 46 cycles a product of large matmuls of bf16
        "read_issue_cycles": 40.0,  # noc_latencies.yaml: 26, and an address to work out
        "k_block_cycles": 250.0,  # guess
        "compute_block_cycles": 200.0,  # guess
    },
    "blackhole": {
        "start_cycles": 5500.0,  # guess
        "product_cycles": 3.0,  # guess
        "read_issue_cycles": 40.0,  # noc_latencies.yaml: 36
        "k_block_cycles": 400.0,  # guess
        "compute_block_cycles": 200.0,  # guess
    },
}
MOVEMENT_PRIORS: Mapping[str, float] = {
    "start_cycles": 400.0,  # guess
    "waited_page_cycles": 10.0,  # guess
    "bounce_cycles": 50.0,  # guess
    "dram_read_share": 1.0,  # all
    "dram_write_share": 0.8,  # guess
    "dram_stick_share": 0.45,  # guess
    "stick_read_cycles": 70.0,  # guess
    "stick_read_bytes_per_cycle": 8.4,  # guess
    "stick_write_cycles": 52.0,  # guess
    "box_stick_cycles": 150.0,  # guess
    "box_tile_cycles": 470.0,  # guess: a write to DRAM that is waited for
    "local_stick_cycles": 32.0,  # noc_latencies.yaml: a small write, and an address to work out
    "reshard_cycles": 700.0,  # guess
    "reshard_bytes_per_cycle": 45.0,  # guess
}
DISPATCH_PRIORS: Mapping[str, Mapping[str, float]] = {
    "wormhole_b0": {
        "fetch_cycles": 2500.0,
        "fetch_binary_cycles": 75.0,
        "binary_bytes_per_cycle": 16.5,
        "config_bytes_per_cycle": 20.0,
        "command_cycles": 250.0,
        "write_cycles": 1300.0,
        "write_core_cycles": 14.0,
        "write_binary_cycles": 100.0,
        "write_group_cycles": 400.0,
        "argument_core_cycles": 21.0,
        "start_cycles": 850.0,
        "start_buffer_cycles": 10.0,
    },
    "blackhole": {
        "fetch_cycles": 2500.0,
        "fetch_binary_cycles": 60.0,
        "binary_bytes_per_cycle": 26.0,
        "config_bytes_per_cycle": 26.0,
        "command_cycles": 280.0,
        "write_cycles": 1400.0,
        "write_core_cycles": 9.0,
        "write_binary_cycles": 150.0,
        "write_group_cycles": 500.0,
        "argument_core_cycles": 42.0,
        "start_cycles": 1000.0,
        "start_buffer_cycles": 1.0,
    },
}  # read off the rows by hand, each where it alone decides


@dataclass(frozen=True, slots=True)
class Case:
    """A configuration that was measured.

    Attributes:
        spec: The device.
        architecture: Cases of one architecture are fitted together.
        group: For tables.
        configuration: Its name.
        cycles: Measured kernel cycles.
        rows: Rows that were merged.
        predict: Cycles on a device with other constants.
    """

    spec: DeviceSpec
    architecture: str
    group: tuple[str, ...]
    configuration: tuple[str, ...]
    cycles: float
    rows: int
    predict: Callable[[DeviceSpec], float]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of program.

    Attributes:
        costs: Its constants.
        priors: By architecture, what its constants are expected to be.
        concerns: Whether a row is of this kind.
        configuration: Name of a row's configuration.
        cycles: Measured cycles of a row.
        case: Device, group and prediction of a row.
        left_out_with: What cases have in common that are left out together; by its configuration each alone.
    """

    costs: type[Costs]
    priors: Mapping[str, Mapping[str, float]]
    concerns: Callable[[Row], bool]
    configuration: Callable[[Row], tuple[str, ...]]
    cycles: Callable[[Row], float]
    case: Callable[[Row], Described]
    left_out_with: Callable[[tuple[str, ...]], tuple[str, ...]] = tuple


def _profiled_cycles(row: Row) -> float:
    return measured_ns(row) * float(row["clock_mhz"]) / 1000


def _halo_case(row: Row) -> Described:
    halo = read_halo_row(row)
    return halo.spec, (row["device"], row["in_layout"].lower()), partial(halo_cycles_of, halo)


def _gemm_case(row: Row) -> Described:
    gemm = read_gemm_row(row)
    return gemm.spec, (row["device"], row["grid"]), partial(gemm_cycles_of, gemm)


def _layout_case(row: Row) -> Described:
    found = read_layout_row(row)

    def predict(spec: DeviceSpec) -> float:
        return movement_cycles(found.movement, spec).cycles

    return found.spec, (operation(row),), predict


def _dispatch_case(row: Row) -> Described:
    found = read_dispatch_row(row)
    return found.spec, (dispatch_kind(row),), partial(dispatch_cycles_of, found)


def _test_of(configuration: tuple[str, ...]) -> tuple[str, ...]:
    """The test of a configuration of dispatch, without its size."""
    return configuration[:-1]


def _is_anything(row: Row) -> bool:
    return bool(row)


KINDS: Mapping[str, Kind] = {
    "halo": Kind(HaloCosts, {"blackhole": HALO_PRIORS}, _is_anything, halo_configuration, _profiled_cycles, _halo_case),
    "gemm": Kind(MatmulCosts, GEMM_PRIORS, is_tuned_utilization, gemm_configuration, gemm_measured_cycles, _gemm_case),
    "layout_ops": Kind(
        MovementCosts,
        {"blackhole": MOVEMENT_PRIORS},
        _is_anything,
        layout_configuration,
        _profiled_cycles,
        _layout_case,
    ),
    "dispatch": Kind(
        DispatchCosts,
        DISPATCH_PRIORS,
        _is_anything,
        dispatch_configuration,
        dispatch_measured_cycles,
        _dispatch_case,
        _test_of,
    ),
}


def cases_of(kind: Kind, rows: Iterable[Row]) -> list[Case]:
    """The configurations measured in some rows; rows that can not be predicted are left out."""
    merged: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if kind.concerns(row):
            merged.setdefault(kind.configuration(row), []).append(row)
    cases = []
    for name, same in merged.items():
        try:
            found = kind.case(same[0])
        except NotPredictedError:
            continue
        spec, group, predict = found
        cycles = statistics.median(kind.cycles(row) for row in same)
        cases.append(Case(spec, same[0]["arch"], group, name, cycles, len(same), predict))
    return cases


def predicted_error(kind: Kind, case: Case, values: Mapping[str, float]) -> float:
    """Relative error of a prediction with other constants."""
    costs = replace(cast(Any, case.spec.costs_of(kind.costs)), **values)
    return case.predict(case.spec.with_costs(costs)) / case.cycles - 1.0


def fit_kind(kind: Kind, cases: Sequence[Case], architecture: str) -> Fit:
    """Fit the constants of one architecture."""
    own = [case for case in cases if case.architecture == architecture]

    def residuals(values: Mapping[str, float]) -> list[float]:
        return [float(np.log1p(predicted_error(kind, case, values))) for case in own]

    return fit_constants(residuals, kind.priors[architecture])


def cross_validated_errors(
    kind: Kind, cases: Sequence[Case], architecture: str, seed: int = 0
) -> list[tuple[Case, float]]:
    """Errors of every case with constants that were fitted without its fold."""
    own = [case for case in cases if case.architecture == architecture]
    errors: list[tuple[Case, float]] = []
    left_out: dict[tuple[str, ...], list[Case]] = {}
    for case in own:
        left_out.setdefault(kind.left_out_with(case.configuration), []).append(case)
    for fold in folds_of(list(left_out), FOLDS, seed):
        seen = [case for case in own if kind.left_out_with(case.configuration) not in fold]
        values = fit_kind(kind, seen, architecture).values
        errors += [(case, predicted_error(kind, case, values)) for name in fold for case in left_out[name]]
    return errors


def grouped(errors: Sequence[tuple[Case, float]]) -> list[tuple[tuple[str, ...], Errors]]:
    """Errors of all cases and of each group."""
    names = [("all",), *sorted({case.group for case, _ in errors})]
    parts = [[pair for pair in errors if name in (("all",), pair[0].group)] for name in names]
    return [
        (name, sum_up_errors([error for _, error in part], rows=sum(case.rows for case, _ in part)))
        for name, part in zip(names, parts, strict=True)
    ]


def constants_table(title: str, kind: Kind, fit: Fit, case: Case) -> Table:
    """Every fitted constant with its prior."""
    table = Table(title=title)
    table.add_column("constant")
    for heading in ("prior", "fitted", "pull", "catalog"):
        table.add_column(heading, justify="right")
    catalog = case.spec.costs_of(kind.costs)
    for name, value in fit.values.items():
        prior = kind.priors[case.architecture][name]
        table.add_row(name, f"{prior:g}", f"{value:.4g}", f"{fit.pulls[name]:+.1f}", f"{getattr(catalog, name):g}")
    return table


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(
        prog="tools.calibrate.programs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], metavar="KIND", help=f"one of {', '.join(KINDS)}")
    parser.add_argument("--rows", type=Path, default=ROWS, metavar="FOLDER", help="where KIND.csv lies")
    options = parser.parse_args()
    screen = console()
    for name in options.kinds or KINDS:
        kind = KINDS[name]
        with (options.rows / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
            cases = cases_of(kind, csv.DictReader(lines))
        for architecture in kind.priors:
            own = [case for case in cases if case.architecture == architecture]
            if not own:
                continue
            fit = fit_kind(kind, cases, architecture)
            screen.print(constants_table(f"{name}, {architecture}: constants of {kind.costs.TABLE}", kind, fit, own[0]))
            seen = [(case, predicted_error(kind, case, fit.values)) for case in own]
            screen.print(error_table(f"{name}, {architecture}: in sample", grouped(seen)))
            unseen = cross_validated_errors(kind, cases, architecture)
            screen.print(error_table(f"{name}, {architecture}: cross-validated by configuration", grouped(unseen)))


if __name__ == "__main__":
    main()
