"""Reads device operations from a report: JSON, or an ``ops_perf_results`` CSV of a real card or of ttsim.

The columns depend on the profiler's version: shapes are ``INPUT_0_W`` or ``INPUT_0_W_PAD[LOGICAL]``, and older files
have no ``DEVICE ARCH``. Only the operation and its time are required.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, Final

from device.errors import ArgumentError, shown
from device.spec.device_spec import catalog_names
from device.time.stages import nanoseconds
from ops.op_models import load_spec
from ttsim.report.comparison import BOUND, CORES, FIDELITY, OF_TENSORS, Difference, Reported, ReportedOperation
from ttsim.report.cycle_report import CycleReport
from ttsim.report.explain import FIDELITIES

LONGEST_PATH: Final = 200  # characters of a path in an error
NAME: Final = "OP CODE"
KIND: Final = "OP TYPE"
DEVICE: Final = "DEVICE ID"
ARCH: Final = "DEVICE ARCH"
TIME: Final = "DEVICE KERNEL DURATION [ns]"
ORDER: Final = "HOST START TS"
NEEDED: Final = (NAME, TIME)
ON_DEVICE: Final = "tt_dnn_device"
SIGNPOST: Final = "signpost"
TENSOR: Final = re.compile(r"((?:IN|OUT)PUT_\d+)_DATATYPE")
AXES: Final = "WZYX"
LOGICAL: Final = re.compile(r"^\d+\[(\d+)\]$")  # padded[logical]
MOMENT: Final = re.compile(r"\d{1,30}")
PLACE: Final = re.compile(r"DEV_\d+_")
Row = Mapping[str, str]


def read_rows(path: Path, device_id: int | None = None, *, where: str = "compare") -> Reported:
    """The operations of a profiler's file, without signposts and host operations.

    Raises ArgumentError for any other file, or if `device_id` does not select one device; OSError if it is unreadable.
    """
    named = f"{where}: {shown(str(path), LONGEST_PATH)}"
    try:
        rows = _rows(path)
        of_device = _of_device([row for row in rows if _on_device(row)], device_id)
        archs = sorted({row[ARCH] for row in of_device if row.get(ARCH)})
        if len(archs) > 1:
            raise ArgumentError(f"its operations are of {' and '.join(map(shown, archs))}; keep the rows of one")
        if all(MOMENT.fullmatch(row.get(ORDER, "")) for row in of_device):
            of_device.sort(key=lambda row: int(row[ORDER]))  # in the order of the host's launches
        arch = archs[0] if archs else ""
        others = Counter(row.get(KIND) != SIGNPOST for row in rows if not _on_device(row))
        left_out = tuple(
            f"{count:,} {('signpost', 'other row')[other]}{'s' * (count > 1)}"
            for other, count in sorted(others.items())
        )
        operations = tuple(map(_operation, of_device))
        return Reported(device=arch, arch=arch, clock_hz=0, operations=operations, left_out=left_out)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ArgumentError(f"{named} is no CSV of a profiler ({shown(str(error))})") from None
    except ArgumentError as error:
        raise ArgumentError(f"{named}: {error}") from None


def _rows(path: Path) -> list[Row]:
    """The nonempty rows by column; a byte order mark and spaces around names are ignored."""
    read = csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""), strict=True)
    head = [name.strip() for name in next(read, [])]
    missing = [name for name in NEEDED if name not in head]
    if missing:
        raise ArgumentError(
            f"it has no column {' and no '.join(missing)}; give an ops_perf_results CSV of tt-metal's profiler, or a "
            "report in JSON"
        )
    rows: list[Row] = [dict(zip(head, map(str.strip, row), strict=False)) for row in read if any(map(str.strip, row))]
    if not any(map(_on_device, rows)):
        raise ArgumentError("it has no row of a device operation; give a file with some")
    return rows


def _on_device(row: Row) -> bool:
    return bool(row.get(NAME)) and row.get(KIND, ON_DEVICE) in (ON_DEVICE, "")


def _of_device(rows: Sequence[Row], device_id: int | None) -> list[Row]:
    devices = sorted({row.get(DEVICE, "") for row in rows})
    listed = ", ".join(device if device.isdecimal() else shown(device) for device in devices[:8])
    listed += ", ..." * (len(devices) > 8)
    if device_id is None and len(devices) > 1:
        raise ArgumentError(f"it has the devices {listed}; choose one with --device-id")
    chosen = [row for row in rows if device_id is None or row.get(DEVICE, "") == str(device_id)]
    if not chosen:
        raise ArgumentError(f"it has no device {device_id}, but {listed}; correct --device-id")
    return chosen


def _operation(row: Row) -> ReportedOperation:
    cores = int(_number(row, "CORE COUNT") or 0)
    figures = {CORES: f"{cores or ''}", FIDELITY: row.get("MATH FIDELITY", "")}
    for tensor in map(TENSOR.fullmatch, row):
        figures |= {} if tensor is None else _tensor(tensor[1], row)
    return ReportedOperation(name=row[NAME], cycles=None, nanoseconds=_number(row, TIME), figures=figures)


def _number(row: Row, column: str) -> float | None:
    """A nonnegative number, or None for an empty cell; raises ArgumentError for anything else."""
    text = row.get(column, "")
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not (isfinite(number) and number >= 0):
        raise ArgumentError(f"{column} of {shown(row[NAME])} must be a number from 0 on, not {shown(text)}; correct it")
    return number


def _tensor(name: str, row: Row) -> dict[Difference, str]:
    """The figures of an operation's tensor; empty if the operation has no tensor of this name."""
    sides = [
        LOGICAL.sub(r"\1", row.get(f"{name}_{axis}_PAD[LOGICAL]") or row.get(f"{name}_{axis}", "")) for axis in AXES
    ]
    shape, dtype = "x".join(sides) if all(sides) else "", row.get(f"{name}_DATATYPE", "")
    values = (shape, dtype, row.get(f"{name}_LAYOUT", ""), PLACE.sub("", row.get(f"{name}_MEMORY", "")))
    figures = {(what, f"{name} {{}} -> {{}}"): value for what, value in zip(OF_TENSORS, values, strict=True)}
    return figures if shape or dtype else {}


def read_report(path: Path, device_id: int | None = None, *, where: str = "compare") -> Reported:
    """The operations of a report in a file, and the sums that it has.

    The file is the output of ``to_json()``, ``run --json``, ``exec --report`` or ``save_report``, or an
    ops_perf_results file ending in .csv, in which `device_id` chooses one of several devices. Raises ArgumentError for
    any other file, whose message begins with `where`, and OSError if it is unreadable.
    """
    with _reading(path, where):
        if path.suffix.lower() == ".csv":
            return read_rows(path, device_id, where=where)
        document = json.loads(path.read_text(encoding="utf-8"))
        return replace(_reported(_reports(document)), l1_peak_bytes=_l1_peak_bytes(document))


def read_layers(path: Path, where: str) -> dict[str, Reported]:
    """The operations of each layer in a file of ``run --json``, by the layer's name; raises like `read_report`."""
    with _reading(path, where):
        layers = json.loads(path.read_text(encoding="utf-8"))["layers"]
        return {str(layer["layer"]["name"]): _reported(_reports({"layers": [layer]})) for layer in layers}


def reported_of(report: CycleReport) -> Reported:
    """The operations of a report as they are read from its JSON."""
    return _reported([report.to_dict()])


@contextmanager
def _reading(path: Path, where: str) -> Iterator[None]:
    """A context that adds the file's name to errors."""
    try:
        yield
    except ArgumentError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ArithmeticError) as error:
        named = shown(str(path), LONGEST_PATH)
        problem = f"it has no {error}" if isinstance(error, KeyError) else shown(str(error))
        raise ArgumentError(
            f"{where}: {named} is no report in JSON ({problem}); give a file that run --json, "
            "exec --report or to_json() of a report wrote, or the ops_perf_results CSV of a card"
        ) from None


def _reported(reports: Sequence[Mapping[str, Any]]) -> Reported:
    """The operations of reports on one device, one after the other."""
    if not reports:
        return Reported(device="", clock_hz=0, operations=())
    device, clock_hz = str(reports[0]["device"]), int(reports[0]["clock_hz"])
    calls = (call for report in reports for call in ([report] if "operations" in report else report["calls"]))
    operations = tuple(_read_operation(op, clock_hz) for call in calls for op in call["operations"])
    name = device.partition(",")[0]  # a device of the catalog, changed or not
    arch = load_spec(name).arch if name in catalog_names() else ""
    return Reported(device=device, arch=arch, clock_hz=clock_hz, operations=operations, **_sums(reports))


def _sums(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The sums of reports; an expected error and a replay time only if there is one report."""
    sums: dict[str, Any] = {}
    totals = [report["total"] for report in reports if "total" in report]
    if len(totals) == len(reports):
        traffic = [total["traffic"] for total in totals]
        sums["dram_bytes"] = sum(int(own["dram_read_bytes"]) + int(own["dram_written_bytes"]) for own in traffic)
    if len(reports) == len(totals) == 1:
        error = totals[0]["error"]
        sums |= {"error_share": error["share"], "unmeasured_share": error["unmeasured_share"]}
    launches = [report["launches"]["readings"] for report in reports if "launches" in report]
    if len(reports) == len(launches) == 1:
        sums["replay_nanoseconds"] = int(launches[0][0]["total_nanoseconds"]) if launches[0] else 0
    return sums


def _l1_peak_bytes(document: Mapping[str, Any]) -> int | None:
    """The peak of L1 of a core; None if the document has no memory figures."""
    mark = document.get("network", document).get("high_water")
    if mark is not None:
        return int(mark["total_bytes"])
    summaries = [layer["summary"] for layer in document.get("layers", ())]
    return max((int(summary["l1"]["peak_total_bytes"]) for summary in summaries if summary is not None), default=None)


def _reports(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The reports of the layers that ran, the cycle report of a saved report, or the document itself."""
    if "cycles" in document and "network" in document:
        return [document["cycles"]]
    if "layers" not in document or "launches" in document:  # a network has layers of its own
        return [document]
    summaries = [layer["summary"] for layer in document["layers"]]
    return [summary["cycles"] for summary in summaries if summary is not None and summary["cycles"] is not None]


def _read_operation(op: Mapping[str, Any], clock_hz: int) -> ReportedOperation:
    stages = [(stage["stage"], stage["critical_cycles"], stage["busy_cycles"]) for stage in op.get("stages", ())]
    walked = any(critical for _, critical, _ in stages)
    cycles = None if op.get("untimed") else int(op["cycles"])
    return ReportedOperation(
        name=str(op["name"]),
        cycles=cycles,
        nanoseconds=None if cycles is None else nanoseconds(cycles, clock_hz),
        figures={
            CORES: f"{int(op['core_count']) or ''}",
            FIDELITY: FIDELITIES.get(int(op.get("fidelity_phases", 0)), ""),
            BOUND: str(op["bound_by"]),
        },
        stages={str(name): int(critical if walked else busy) for name, critical, busy in stages},
    )
