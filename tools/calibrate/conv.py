"""The fit of the convolution's constants (`ConvCosts`) to rows of conv.csv.

Rows of one configuration are merged (median). Where a row tells when the readers' processors ended, that counts, too,
with half the weight: totals alone can not tell what a program begins with from what each of its blocks costs.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.cycles import time_conv
from ops.programs.conv2d.work import ConvWork
from tools.calibrate.fit import Fit, fit_constants, folds_of
from tools.validate.conv import configuration, measured_ns, read_conv_row, with_costs
from tools.validate.prediction import NotPredictedError, Row

END_TIME_WEIGHT = 0.5
FOLDS = 5

# What each constant is expected to be, and where that comes from. Constants of ConvCosts that are not here are not
# fitted: the rows do not tell them apart from others.
PRIORS: Mapping[str, Mapping[str, float]] = {
    "wormhole_b0": {
        "tilize_row_cycles": 40.0,  # guess
        "start_cycles": 800.0,  # guess
        "read_issue_cycles": 19.0,  # noc_latencies.yaml: 18 for stateful reads
        "tilize_factor": 1.0,  # the planner's own table
        "unpack_block_float_cycles": 26.0,  # GEMM_FLOPS: 23 to 26 cycles a product in large matmuls of bfp8 in LoFi
        "unpack_16bit_cycles": 44.0,  # GEMM_FLOPS: 46 to 50 cycles a product in large matmuls of bf16 in HiFi2
        "stationary_tile_cycles": 18.0,  # guess: half a tile
        "matmul_call_cycles": 10.0,  # guess
        "subblock_cycles": 80.0,  # guess
        "reload_tile_cycles": 26.0,  # single-core matmul baselines
        "weight_issue_cycles": 38.0,  # guess
        "weight_multicast_cycles": 500.0,  # noc_latencies.yaml: about 400, and the handshake
        "weight_receiver_cycles": 3.0,  # noc_latencies.yaml
        "act_multicast_cycles": 420.0,  # guess
        "act_multicast_bytes_per_cycle": 23.3,  # noc_latencies.yaml
        "bias_tile_cycles": 55.0,  # guess
    },
    "blackhole": {
        "tilize_row_cycles": 40.0,  # guess
        "start_cycles": 700.0,  # guess
        "read_issue_cycles": 17.0,  # guess, near Wormhole's
        "tilize_factor": 0.5,  # tt-llk: a fast tilize that the planner's table does not know
        "unpack_block_float_cycles": 16.5,  # GEMM_FLOPS: 18 cycles a product
        "unpack_16bit_cycles": 16.5,  # GEMM_FLOPS
        "matmul_call_cycles": 5.0,  # guess
        "subblock_cycles": 28.0,  # guess
        "reload_tile_cycles": 22.0,  # guess
        "weight_issue_cycles": 47.0,  # guess; noc_latencies.yaml: 36 for reads without addresses to work out
        "weight_multicast_cycles": 500.0,  # noc_latencies.yaml: about 350, and the handshake
        "weight_receiver_cycles": 3.6,  # noc_latencies.yaml
        "act_multicast_cycles": 870.0,  # guess
        "act_multicast_bytes_per_cycle": 57.7,  # the planner's multicast rate
        "bias_tile_cycles": 50.0,  # guess
    },
}


@dataclass(frozen=True, slots=True)
class ConvCase:
    """A configuration that was measured.

    Attributes:
        spec: The device.
        work: The program.
        architecture: Cases of one architecture are fitted together.
        group: (device, shard scheme, fidelity), for tables.
        configuration: Its name.
        cycles: Measured kernel cycles.
        reader_cycles: When the first reader's processor ended; None where that is not known.
        second_cycles: The same for the second reader's.
        rows: Rows that were merged.
        older: Measured with software of 2025.
    """

    spec: DeviceSpec
    work: ConvWork
    architecture: str
    group: tuple[str, ...]
    configuration: tuple[str, ...]
    cycles: float
    reader_cycles: float | None
    second_cycles: float | None
    rows: int
    older: bool

    @property
    def plan(self) -> tuple[object, ...]:
        """What each core does: cases that agree in it belong into one fold, however their images are cut."""
        layout, problem = self.work.layout, self.work.problem
        return (
            self.architecture,
            layout.blocks,
            layout.shards.out_rows,
            layout.shards.out_width,
            problem.weight_format,
        )


def conv_cases(rows: Iterable[Row]) -> list[ConvCase]:
    """The configurations measured in some rows."""
    merged: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        try:
            counted = read_conv_row(row).counted
        except NotPredictedError:
            continue
        if counted:
            merged.setdefault(configuration(row), []).append(row)
    return [_case(name, same) for name, same in merged.items()]


def _case(name: tuple[str, ...], rows: list[Row]) -> ConvCase:
    conv, clock = read_conv_row(rows[0]), float(rows[0]["clock_mhz"]) / 1000

    def ended(column: str) -> float | None:
        return clock * statistics.median(float(row[column]) for row in rows) if rows[0][column] else None

    return ConvCase(
        spec=conv.spec,
        work=conv.work,
        architecture=rows[0]["arch"],
        group=(rows[0]["device"], rows[0]["shard"], rows[0]["fidelity"]),
        configuration=name,
        cycles=clock * statistics.median(measured_ns(row) for row in rows),
        reader_cycles=ended("ncrisc_ns"),
        second_cycles=ended("brisc_ns"),
        rows=len(rows),
        older=conv.older,
    )


def costs_for(case: ConvCase, values: Mapping[str, float]) -> DeviceSpec:
    """The device of a case with other constants; the tilize factor is the older software's where the case is older."""
    used = {name: value for name, value in values.items() if not (case.older and name == "tilize_factor")}
    return with_costs(case.spec, **used)


def predicted_error(case: ConvCase, values: Mapping[str, float]) -> float:
    """Relative error of a prediction with other constants."""
    return time_conv(case.work, costs_for(case, values)).end.cycles / case.cycles - 1.0


def _residuals(cases: Sequence[ConvCase], values: Mapping[str, float]) -> list[float]:
    found: list[float] = []
    for case in cases:
        timing = time_conv(case.work, costs_for(case, values))
        found.append(math.log(timing.end.cycles / case.cycles))
        for processor, measured in ((timing.reader, case.reader_cycles), (timing.second, case.second_cycles)):
            if measured is not None:
                found.append(END_TIME_WEIGHT * (processor.now.cycles - measured) / case.cycles)
    return found


def fit_conv(cases: Sequence[ConvCase], architecture: str) -> Fit:
    """Fit the constants of one architecture to its cases among `cases`."""
    own = [case for case in cases if case.architecture == architecture]
    return fit_constants(lambda values: _residuals(own, values), PRIORS[architecture])


def cross_validated_errors(cases: Sequence[ConvCase], architecture: str, *, seed: int) -> list[tuple[ConvCase, float]]:
    """Errors of every case of an architecture with constants that were fitted without its fold."""
    own = [case for case in cases if case.architecture == architecture]
    plans = list(dict.fromkeys(case.plan for case in own))
    errors: list[tuple[ConvCase, float]] = []
    for fold in folds_of(plans, FOLDS, seed):
        values = fit_conv([case for case in own if case.plan not in fold], architecture).values
        errors += [(case, predicted_error(case, values)) for case in own if case.plan in fold]
    return errors
