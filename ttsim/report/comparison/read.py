"""Device operations of a report: in JSON, of calls, of a network or of layers; or in a profiler's rows."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from device.errors import ArgumentError, shown
from device.spec.device_spec import catalog_names
from device.time.stages import nanoseconds
from ops.op_models import load_spec
from ttsim.report.comparison.figures import Reported, ReportedOperation
from ttsim.report.comparison.profiler_rows import LONGEST_PATH, read_rows
from ttsim.report.cycles.explain import FIDELITIES


def read_report(path: Path, device_id: int | None = None) -> Reported:
    """What a report in a file tells.

    Args:
        path: What ``to_json()`` of a report, ``run --json``, ``exec --report`` or ``save_report`` wrote; or, ending in
            .csv, the ops_perf_results of a card or of ours.
        device_id: Which device of a CSV that has several.

    Raises:
        ArgumentError: It is no such report.
        OSError: It cannot be read.
    """
    try:
        if path.suffix.lower() == ".csv":
            return read_rows(path, device_id)
        document = json.loads(path.read_text(encoding="utf-8"))
        reports = _reports(document)
        if not reports:
            return Reported(device="", clock_hz=0, operations=())
        name, clock_hz = str(reports[0]["device"]), int(reports[0]["clock_hz"])
        found = [_operation(one, clock_hz) for report in reports for one in _operations(report)]
        return Reported(device=name, arch=_arch(name), clock_hz=clock_hz, operations=tuple(found))
    except ArgumentError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ArithmeticError) as error:
        named = shown(str(path), LONGEST_PATH)
        raise ArgumentError(
            f"compare: {named} is no report in JSON ({shown(str(error))}); give a file that run --json, "
            "exec --report or to_json() of a report wrote, or the ops_perf_results CSV of a card"
        ) from None


def _arch(device: str) -> str:
    """The architecture of a device of the catalog, changed or not; of others nothing is known."""
    name = device.partition(",")[0]
    return load_spec(name).arch if name in catalog_names() else ""


def _reports(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Those of the layers that ran, that on cycles of a saved report, or the document itself."""
    if "cycles" in document and "network" in document:
        return [document["cycles"]]
    if "layers" not in document or "launches" in document:  # a network has layers of its own
        return [document]
    summaries = [layer["summary"] for layer in document["layers"]]
    return [one["cycles"] for one in summaries if one is not None and one["cycles"] is not None]


def _operations(report: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Of a network, or of calls."""
    if "operations" in report:
        found: Sequence[Mapping[str, Any]] = report["operations"]
        return found
    return [one for call in report["calls"] for one in call["operations"]]


def _operation(one: Mapping[str, Any], clock_hz: int) -> ReportedOperation:
    stages = [(stage["stage"], stage["critical_cycles"], stage["busy_cycles"]) for stage in one.get("stages", ())]
    walked = any(critical for _, critical, _ in stages)
    cycles = None if one.get("untimed") else int(one["cycles"])
    return ReportedOperation(
        name=str(one["name"]),
        cycles=cycles,
        nanoseconds=None if cycles is None else nanoseconds(cycles, clock_hz),
        bound_by=str(one["bound_by"]),
        core_count=int(one["core_count"]),
        fidelity=FIDELITIES.get(int(one.get("fidelity_phases", 0)), ""),
        stages=tuple((str(name), int(critical if walked else busy)) for name, critical, busy in stages),
    )
