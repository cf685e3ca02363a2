"""A pytest plugin that writes what became of each test, and what its devices did, as a line of JSON.

The file is named by the variable `RESULTS_VARIABLE`; lines are appended. `WEIGHTS_VARIABLE` asks for random weights.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import pytest

from tools.networks.weights import install
from ttsim.dropin.script import watched
from ttsim.recording.profiling import Profile

RESULTS_VARIABLE: Final = "TTSIM_NETWORKS_RESULTS"
WEIGHTS_VARIABLE: Final = "TTSIM_NETWORKS_WEIGHTS"
ENDS = pytest.StashKey[list[tuple[str, str]]]()


def pytest_configure() -> None:
    """Makes torch go on without files of weights, if asked for."""
    if os.environ.get(WEIGHTS_VARIABLE):
        install()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Runs a test with every device that it opens profiled."""
    start, item.stash[ENDS] = perf_counter(), []
    with watched() as profiles:
        result = yield
    outcome, message = [*item.stash[ENDS], ("passed", "")][0]
    _write({"test": item.nodeid, "outcome": outcome, "message": message, "seconds": round(perf_counter() - start, 1)}
           | _figures(profiles))  # fmt: skip
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Notes how a part of a test ended, if not well."""
    report: Any = yield
    if not report.passed:
        text = (
            report.longrepr[2] if isinstance(report.longrepr, tuple) else call.excinfo.exconly() if call.excinfo else ""
        )
        item.stash[ENDS].append((report.outcome, _first_line(text)))
    return report  # type: ignore[no-any-return]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Notes a file whose tests cannot be collected."""
    if not report.passed:
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
        message = _first_line(lines[0] if lines else text)
        _write({"test": report.nodeid, "outcome": report.outcome, "message": message, "seconds": 0.0})


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:300] if text.strip() else ""


def _figures(profiles: list[Profile]) -> dict[str, float | int]:
    """Device operations, those without a time, calls on the host, and the kernel time of all others."""
    runs = [run for profile in profiles if profile.ran for run in [profile.runs()]]
    operations = [operation for run in runs for operation in run]
    return {
        "operations": len(operations),
        "untimed": sum(bool(operation.untimed) for operation in operations),
        "milliseconds": round(max((run.nanoseconds for run in runs), default=0.0) / 1e6, 3),
    }


def _write(line: dict[str, Any]) -> None:
    with Path(os.environ[RESULTS_VARIABLE]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
