"""Device operations of a report in JSON: of calls, of a network, or of layers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from device.errors import ArgumentError, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedOperation:
    """A device operation, as a report tells of it.

    Attributes:
        name: As a graph capture shows it.
        cycles: What it takes; None where no model knows it.
        bound_by: The stage that binds it.
        core_count: Cores that take part.
        stages: Cycles of the critical path, or busy ones where no path is known, by stage; none in a network's report.
    """

    name: str
    cycles: int | None
    bound_by: str
    core_count: int
    stages: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What a report tells.

    Attributes:
        device: Name of the device; empty if nothing ran.
        clock_hz: Its clock; 0 likewise.
        operations: In order.
    """

    device: str
    clock_hz: int
    operations: tuple[ReportedOperation, ...]


def read_report(path: Path) -> Reported:
    """What a report in a file tells.

    Args:
        path: What ``to_json()`` of a report, ``run --json`` or ``exec --report`` wrote.

    Raises:
        ArgumentError: It is no such report.
        OSError: It cannot be read.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        reports = _reports(document)
        operations = tuple(_operation(one) for report in reports for one in _operations(report))
        if not reports:
            return Reported(device="", clock_hz=0, operations=operations)
        return Reported(device=str(reports[0]["device"]), clock_hz=int(reports[0]["clock_hz"]), operations=operations)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArgumentError(
            f"compare: {shown(str(path))} is no report in JSON ({shown(str(error))}); give a file that run --json, "
            "exec --report or to_json() of a report wrote"
        ) from None


def _reports(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Those of the layers that ran, or the document itself."""
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


def _operation(one: Mapping[str, Any]) -> ReportedOperation:
    stages = [(stage["stage"], stage["critical_cycles"], stage["busy_cycles"]) for stage in one.get("stages", ())]
    walked = any(critical for _, critical, _ in stages)
    return ReportedOperation(
        name=str(one["name"]),
        cycles=None if one.get("untimed") else int(one["cycles"]),
        bound_by=str(one["bound_by"]),
        core_count=int(one["core_count"]),
        stages=tuple((str(name), int(critical if walked else busy)) for name, critical, busy in stages),
    )
