"""Runs a script or tests with ttsim in place of ttnn, and writes reports on a script's devices."""

import os
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from device.errors import ArgumentError, shown
from ttsim.dropin.choices import environment
from ttsim.dropin.finder import ttnn_is_ttsim
from ttsim.recording.profiling import Profile
from ttsim.recording.saving import save_report
from ttsim.runtime.device import Device
from ttsim.runtime.session import current, remember
from ttsim.study.check.budgets import Script
from ttsim.study.networks.recorder import Recorder, text_of
from ttsim.study.tune.network import advice_on_longest, tune_network

LONGEST_PATH = 200  # characters of a folder in a line
PLUGIN = "ttsim.pytest_plugin"


def run_tests(arguments: Sequence[str]) -> int:
    """Runs pytest with the plugin; returns its exit code; raises ArgumentError if pytest is not installed."""
    if find_spec("pytest") is None:
        raise ArgumentError("pytest: it is not installed; install ttsim[test]")
    return int(import_module("pytest").main(["-p", PLUGIN, *arguments]))


def run_script(
    path: Path,
    arguments: Sequence[str],
    report: Path | None = None,
    tell: Callable[[str], object] | None = None,
    *,
    tunes: bool = False,
    record: Path | None = None,
    progress: Callable[[str], AbstractContextManager[object]] = nullcontext,
) -> str:
    """Runs a script with the ``sys.argv`` and ``sys.path`` that Python would set; returns the tuner's results, if any.

    Errors of the script are raised after the report is written. Paths are relative to the folder at the start, even if
    the script changes its folder.

    Args:
        report: A folder for reports on the devices; see `write_reports`. None for no report.
        tell: Receives a line about each device that made a call, after its report is written.
        tunes: Also tune the convolutions of each device.
        record: A file for the calls of the device that the script opens (ttsim/study/networks/recorder.py).
        progress: Shows the progress of long steps.
    """
    file, folder = path.absolute(), None if report is None else report.absolute()
    written = None if record is None else record.absolute()
    watching: AbstractContextManager[list[Profile]] = watched() if report is not None or tunes else nullcontext([])
    with watching as profiles, listened(Recorder if record is not None else None) as recorders:
        try:
            with ttnn_is_ttsim(), as_program(path, arguments):
                runpy.run_path(str(file), run_name="__main__")
            if written is not None:
                written.write_text(text_of(recorders), encoding="utf-8", newline="")
        finally:
            if folder is not None:
                with progress("reports"):
                    lines = list(write_reports(profiles, folder))
                for line in lines:
                    if tell is not None:
                        tell(line)
    if not tunes:
        return ""
    convolved = [profile for profile in profiles if any(call.asked is not None for call in profile.calls)]
    with progress("tuning"):
        return "\n".join(str(tune_network(profile)) for profile in convolved) or "no device ran a convolution"


def script_profiles(script: Script) -> list[Profile]:
    """The profiles of the devices that a script opens; raises the errors of the script.

    The script's output goes to stderr. Working folder, environment and modules of the script's folder are restored, so
    that one process can run several scripts.
    """
    file, folder, modules = script.path.absolute(), Path.cwd(), set(sys.modules)
    try:
        with (
            environment(script.variables),
            redirect_stdout(sys.stderr),
            watched() as profiles,
            ttnn_is_ttsim(),
            as_program(file, script.arguments),
        ):
            runpy.run_path(str(file), run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    finally:
        os.chdir(folder)
        for name in set(sys.modules) - modules:
            if Path(getattr(sys.modules[name], "__file__", None) or "").is_relative_to(file.resolve().parent):
                del sys.modules[name]
    return profiles


def within(trace: TracebackType | None, path: str) -> TracebackType | None:
    """The part of a traceback from the first frame in a script; None if there is no such frame."""
    part = trace
    while part is not None and part.tb_frame.f_code.co_filename != path:
        part = part.tb_next
    return part


@contextmanager
def as_program(path: Path, arguments: Sequence[str]) -> Iterator[None]:
    """A context that sets ``sys.argv`` and ``sys.path`` for a program."""
    before = sys.argv, list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.path[0:1] = [str(path.resolve().parent)]
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before


@contextmanager
def watched() -> Iterator[list[Profile]]:
    """A context that profiles every device that this thread opens."""

    def profiled(device: Device) -> Profile:
        profile = Profile(device)
        device.profilers.append(profile.calls)
        return profile

    with listened(profiled) as profiles:
        yield profiles


T = TypeVar("T")


@contextmanager
def listened(make: Callable[[Device], T] | None) -> Iterator[list[T]]:
    """A context that calls a function, if given, with every device that this thread opens."""
    made: list[T] = []

    def watch(device: object) -> None:
        if isinstance(device, Device) and make is not None:
            made.append(make(device))

    before = current()
    remember(replace(before, watchers=(*before.watchers, watch)))
    try:
        yield made
    finally:
        remember(replace(current(), watchers=before.watchers))


def write_reports(profiles: Sequence[Profile], folder: Path) -> Iterator[str]:
    """Writes the report of each device that made a call, in order of opening, and yields a line about each.

    device0.txt and device0.json have the cycles call by call; network0.txt and network0.json have all calls as one
    network; report0.html is a self-contained page. `save_report` writes this page, report0.json,
    report0.trace.json.gz, and files for other tools in the folder ``generated``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number, profile in enumerate(profile for profile in profiles if profile.calls):
        report = profile.report()
        (folder / f"device{number}.txt").write_text(f"{report.table()}\n\n{report.explain()}\n", encoding="utf-8")
        (folder / f"device{number}.json").write_text(report.to_json() + "\n", encoding="utf-8")
        network = profile.network()
        (folder / f"network{number}.txt").write_text(f"{network.table()}\n", encoding="utf-8")
        (folder / f"network{number}.json").write_text(network.to_json() + "\n", encoding="utf-8")
        profile.advice = advice_on_longest(profile)
        save_report(folder, profile, name=f"report{number}")
        yield f"device{number} in {shown(str(folder), LONGEST_PATH)}: {network.headline}"
