"""Rows of ops.csv: device operations that a public call makes, planned as that call plans them.

A row of a profile is compared with the device operation of that name; a row of a port's report, such as
``ttnn.untilize (native path)``, with the whole call. Such rows come in pairs, one for each program that a release may
run; the row of the program that ttsim's plan does not run is not predicted. Where a report states no dtype, the nearer
of the dtypes of its tests counts; where it states no memory, DRAM.
"""

import re
from dataclasses import dataclass
from typing import Final

import ttsim as ttnn
from device.errors import TTSimError
from device.spec.device_spec import DeviceSpec
from ops.passes.cycles import base_name, operations_of, run_cycles
from tools.validate.calls import CALLS, Call, matmul_call
from tools.validate.operands import Asked
from tools.validate.prediction import (
    EARLY_2025,
    OF_2025,
    OF_2025_12,
    RUN_OF_EARLY_2025,
    LaterKernels,
    NotPredictedError,
    Prediction,
    Row,
    device_spec,
    measured_ns,
    run_of,
)
from ttsim.recording.profiling import planned
from ttsim.runtime.traces import RanCall

PORT: Final = re.compile(r"ttnn\.(\w+) \((native|generated) path\)")
UNSTATED: Final = {"permute": "bf16 fp32", "tilize": "bf16 fp32", "pad": "bf16 fp32", "concat": "bf16 fp32"}
COLUMNS: Final = (  # that tell configurations apart
    "device", "cores", "in_layout", "in_mem", "out_mem", "in_shard", "out_shard", "in1_shape", "in1_mem", "dtype_in0",
    "dtype_in1", "dtype_out",
)  # fmt: skip
L1_SMALL_BYTES: Final = 16384
VALIDATED: Final = ("Binary", "BinaryNg", "Unary")  # no constant is fitted to them by this package
# Of profiles in which BinaryNg is not yet today's, by what their names begin with. One has a date; the others multiply
# in the matrix unit and have attributes that it lacks
RELEASES: Final = {
    "ops_perf_results_2025_09": OF_2025, "bh20_oft": OF_2025_12, "bh_64_clip": OF_2025_12, "wh_clip": OF_2025_12
}  # fmt: skip
SAME: Final = {"Binary": "BinaryNg"}  # operations that took another's place
# What programs with compute threads of that run last longer than their data movement: the median of 43 rows. Those
# without last no longer (79 rows), nor do any of a later Wormhole profile (258 rows)
LATE_CYCLES: Final = 515


@dataclass(frozen=True)
class Planned:
    """A call's plan, and which of its device operations the row measured; all if it measured the call."""

    call: RanCall
    measured: tuple[int, ...]
    evidence: tuple[str, str]  # The class and the place of what was measured; none if there are several

    def cycles_on(self, spec: DeviceSpec) -> float:
        """Cycles of the measured operations."""
        operations = run_cycles(self.call.plan, spec, ran=self.call.ran).operations
        times = [operations[index].cycles for index in self.measured]
        return sum(time.cycles for time in times if time is not None)

    def computes(self, spec: DeviceSpec) -> bool:
        """Whether compute threads take part in what was measured."""
        operations = run_cycles(self.call.plan, spec, ran=self.call.ran).operations
        times = (operations[index].cycles for index in self.measured)
        works = (time.tile_work for time in times if time is not None)
        return any(work is not None and work.unpacked_tiles for work in works)


def predict_operation(row: Row) -> Prediction:
    """Predicts the kernel cycles of one row."""
    port = PORT.fullmatch(row["op"])
    name = port[1] if port else row["op"]
    if name not in CALLS:
        raise NotPredictedError(f"{name}: no call of its own makes it")
    spec = device_spec(row)
    if name in VALIDATED:
        known = (release for begins, release in RELEASES.items() if run_of(row).startswith(begins))
        spec = spec.replace(release=next(known, spec.release))
    plans = [
        planned_call(CALLS[name](Asked(row, spec, dtype)), spec, "" if port else SAME.get(name, name))
        for dtype in ([row["dtype_in0"]] if row["dtype_in0"] else UNSTATED.get(name, "bf16").split())
    ]
    generated = any("Codegen" in step.name for plan in plans for step in operations_of(plan.call.plan, plan.call.ran))
    if generated != bool(port and port[2] == "generated"):
        raise NotPredictedError("the program that this release does not run")
    measured = measured_ns(row) * float(row["clock_mhz"]) / 1000
    late = LATE_CYCLES if RUN_OF_EARLY_2025 in run_of(row) and plans[0].computes(spec) else 0

    def cycles_on(spec: DeviceSpec) -> tuple[float]:
        return (late + min((plan.cycles_on(spec) for plan in plans), key=lambda cycles: abs(late + cycles - measured)),)

    def later_cycles() -> float:
        return cycles_on(spec)[0] - late

    evidence = plans[0].evidence
    later = LaterKernels(evidence=evidence, cycles=later_cycles, measured_release=EARLY_2025) if late else None
    shown = f"{row['in_shape']}->{row['out_shape']} {row['config'][:60]}"
    return Prediction(
        row=row,
        spec=spec,
        program=plans[0],
        measured_ns=measured_ns(row),
        cycles_on=cycles_on,
        group=(name, row["in_mem"] or row["out_mem"] or "not stated"),
        architecture=row["arch"],
        configuration=(run_of(row), name, shown, *(row[column] for column in COLUMNS)),
        evidence=("", "") if late else evidence,
        later=later,
        fitted=name not in VALIDATED,
    )


def predict_matmul(row: Row) -> Prediction:
    """Predicts the kernel cycles of one row of a matmul without a program config."""
    spec = device_spec(row)
    plan = planned_call(matmul_call(Asked(row, spec, row["dtype_in0"])), spec, "Matmul")
    size = f"{row['batch']}x{row['M']}x{row['K']}x{row['N']}"
    return Prediction(
        row=row,
        spec=spec,
        program=plan,
        measured_ns=measured_ns(row),
        cycles_on=lambda spec: (plan.cycles_on(spec),),
        group=("matmul", row["memory"]),
        architecture=row["arch"],
        configuration=(size, row["memory"], row["dtype_in0"], row["dtype_in1"], row["fidelity"], row["config"]),
        evidence=plan.evidence,
    )


def planned_call(call: Call, spec: DeviceSpec, name: str) -> Planned:
    """The plan of a call on a device of its own; the operation of a name is measured, or all without one."""
    try:
        with ttnn.open_device(l1_small_size=L1_SMALL_BYTES, spec=spec, values="off") as device:
            calls = planned(call.function, call.arguments, call.options, device).ran
    except TTSimError as error:
        raise NotPredictedError(f"no plan: {error}") from error
    if len(calls) != 1:
        raise NotPredictedError(f"{len(calls)} calls run device operations, not one")
    (ran,) = calls
    names = [base_name(step.name) for step in operations_of(ran.plan, ran.ran)]
    measured = tuple(index for index, own in enumerate(names) if not name or own == name)
    if not measured or (name and len(measured) > 1):
        raise NotPredictedError(f"the call runs {', '.join(names) or 'nothing'}, not one {name}")
    timed = run_cycles(ran.plan, spec, ran=ran.ran).operations
    if any(timed[index].cycles is None for index in measured):
        raise NotPredictedError("the operation has no model of its cycles")
    kinds = [(timed[index].kind, timed[index].place) for index in measured]
    return Planned(ran, measured, kinds[0] if len(set(kinds)) == 1 else ("", ""))
