"""Measures the subjects of budgets: layers, calls of operations, reports and scripts."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

from device.errors import DeviceError, TTSimError, shown
from ops.sensitivity.changes import load_spec
from ttsim.recording.profiling import Profile, planned
from ttsim.report.comparison import Reported
from ttsim.report.formatting import counted
from ttsim.report.reported import read_report, reported_of
from ttsim.runtime.types.layer import Layer
from ttsim.study.ask.question import call_of
from ttsim.study.check.budgets import Budget, Script, Subject
from ttsim.study.executor import workers
from ttsim.study.layers.run import Settings, call, make_inputs, place

RunScript = Callable[[Script], Sequence[Profile]]  # Raises whatever the script raises


class Measurement(NamedTuple):
    """The measured figures of an entry."""

    report: Reported | None  # None if it does not run
    error: str = ""  # Why it does not run


def measure(
    budgets: Sequence[Budget],
    run_script: RunScript,
    *,
    processes: int | None,
    watch: Callable[[int], Callable[[], object]] = lambda steps: lambda: None,
) -> list[Measurement]:
    """Measures each budget, in order, in as many processes as a sweep would start.

    `watch` gets the number of budgets and returns a function that is called after each. Raises ArgumentError for an
    invalid report, OSError if a report cannot be read, DeviceError if a process dies.
    """
    done, measurements = watch(len(budgets)), list[Measurement]()
    with workers(processes=processes, scheduler=None, quick=len(budgets)) as team, team.start() as executor:
        try:
            for measurement in executor.map(partial(measured, run_script=run_script), budgets):
                measurements.append(measurement)
                done()
        except BrokenExecutor:
            name = budgets[len(measurements)].name
            raise DeviceError(
                f"check: a process died while it measured {shown(name)} or a budget behind it; measure them one by one "
                "with --processes 1"
            ) from None
    return measurements


def measured(budget: Budget, run_script: RunScript) -> Measurement:
    """Measures one budget; raises like `measure`."""
    subject = budget.subject
    if isinstance(subject, Path):
        return Measurement(read_report(subject, where=f"check: line {budget.line}"))
    try:
        profile = _profile(subject, budget, run_script)
        report = reported_of(profile.report())
    except (Exception, SystemExit) as error:
        if not isinstance(subject, Script) and not isinstance(error, TTSimError):  # scripts alone may raise anything
            raise
        return Measurement(None, _words_of(error, subject))
    return Measurement(replace(report, l1_peak_bytes=profile.network().high_water.total_bytes))


def _profile(subject: Layer | Script | Mapping[str, Any], budget: Budget, run_script: RunScript) -> Profile:
    """The profile of a subject on its device; raises the errors of the subject."""
    if isinstance(subject, Layer):
        return _of_layer(subject, budget)
    if isinstance(subject, Script):
        return _of_script(subject, run_script)
    op, args, kwargs, device = call_of(subject)
    return planned(op, args, kwargs, device)


def _words_of(error: BaseException, subject: Subject) -> str:
    """An error in one line, with the line of the script that raised it."""
    words = str(error) if isinstance(error, TTSimError) else f"{type(error).__name__}: {error}"
    line = "; ".join(part.strip(" ;") for part in words.splitlines())
    file = str(subject.path.absolute()) if isinstance(subject, Script) else None
    places = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == file]
    return f"line {places[-1]}: {line}" if places else line


def _of_layer(layer: Layer, budget: Budget) -> Profile:
    settings = Settings(
        spec=load_spec(budget.device),
        values="off",
        l1_small_size=budget.l1_small_size,
        strict=budget.strict,
        suggestions=False,
    )
    placed = place(layer, make_inputs(layer, values=False), settings)
    with placed.device:
        return call(placed).profile


def _of_script(script: Script, run_script: RunScript) -> Profile:
    profiles = [profile for profile in run_script(script) if profile.calls]
    if len(profiles) != 1:
        raise DeviceError(
            f"the script made calls on {counted(len(profiles), 'device')}, and a budget is one device's; write a "
            "report of each device by ttsim exec --report, and budgets of the reports"
        )
    return profiles[0]
