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


def read_report(path: Path) -> tuple[ReportedOperation, ...]:
    """The operations of a report, in order.

    Args:
        path: What ``to_json()`` of a report, ``run --json`` or ``exec --report`` wrote.

    Raises:
        ArgumentError: It is no such report.
        OSError: It cannot be read.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return tuple(_operation(one) for one in _operations(document))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArgumentError(
            f"compare: {shown(str(path))} is no report in JSON ({shown(str(error))}); give a file that run --json, "
            "exec --report or to_json() of a report wrote"
        ) from None


def _operations(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Of a network, of calls, or of layers that ran."""
    if "operations" in document:
        found: Sequence[Mapping[str, Any]] = document["operations"]
        return found
    if "calls" in document:
        return [one for call in document["calls"] for one in call["operations"]]
    reports = [layer["summary"]["cycles"] for layer in document["layers"] if layer["summary"] is not None]
    return [one for report in reports if report is not None for one in _operations(report)]


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
