"""A whole record: its parts, the work that each takes, and the processes that do it."""

import json
import os
import platform
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from tools.golden.answers import answers, computed
from tools.golden.calls import DEVICES, Call, write_calls
from tools.golden.commands import COMMANDS, command_sections, export_sections, exported, surface_sections
from tools.golden.experiments import EXPERIMENTS, LAYERS, experiment_sections
from tools.golden.store import SUFFIX, Sections, clear, title, write_sections
from tools.machine import load_loops, processor

PARTS: Final = ("plans", "values", "exports", "commands", "experiments", "names")
ABOUT: Final = "about.json"


@dataclass(frozen=True, slots=True)
class Task:
    """A file of a record, and what makes its sections."""

    path: str  # Of the file below the record's folder, without its suffix
    cost: float  # How long it takes, against the others: the longest begin first
    make: Callable[[], Sections]  # Gives the sections; it is run in another process


def write_record(
    folder: Path,
    calls: Sequence[Call],
    parts: Iterable[str] = PARTS,
    *,
    only: str = "",
    processes: int | None = None,
) -> float:
    """Writes a record, or the files of some parts whose path contains ``only``; returns the seconds that this took.

    ``calls`` are all calls of the record. Other files stay as they are. ``processes`` None is one for each core.
    """
    begun = time.perf_counter()
    tasks = [task for part in dict.fromkeys(parts) for task in tasks_of(part, calls) if only in task.path]
    if not tasks:
        raise ValueError(f"no file of {', '.join(parts)} has {only!r} in its path")
    clear(folder, parts, only)
    write_calls(folder, calls)
    (folder / ABOUT).write_text(json.dumps(about(), indent=1) + "\n", encoding="utf-8")
    tasks.sort(key=lambda task: -task.cost)
    workers = min(processes or os.cpu_count() or 1, len(tasks))
    if workers <= 1:
        for task in tasks:
            run_task(folder, task)
        return time.perf_counter() - begun
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(run_task, folder, task) for task in tasks]):
            done.result()
    return time.perf_counter() - begun


def run_task(folder: Path, task: Task) -> None:
    """Makes a file of a record."""
    write_sections(folder / f"{task.path}{SUFFIX}", task.make())


def tasks_of(part: str, calls: Sequence[Call]) -> list[Task]:
    """The files of a part."""
    if part == "commands":
        names = {name: name.replace(" ", "-") for name in COMMANDS}
        return [Task(f"{part}/{file}", 5.0, partial(command_sections, name)) for name, file in names.items()]
    if part == "experiments":
        pairs = [(kind, layer) for kind in EXPERIMENTS for layer in LAYERS]
        return [
            Task(f"{part}/{kind}-{layer}", 20.0, partial(experiment_sections, kind, layer)) for kind, layer in pairs
        ]
    if part == "names":
        return [Task(f"{part}/ttsim", 5.0, surface_sections)]
    makes, wanted = {
        "plans": (plan_sections, calls),
        "values": (value_sections, [call for call in calls if call.values]),
        "exports": (exports_of, [call for call in calls if exported(call)]),
    }[part]
    chunks = defaultdict[str, list[Call]](list)
    for call in wanted:
        chunks[call.chunk if part == "plans" else call.group].append(call)
    return [Task(f"{part}/{chunk}", float(len(group)), partial(makes, tuple(group))) for chunk, group in chunks.items()]


def plan_sections(calls: Sequence[Call]) -> Sections:
    """The answers to calls without values, on both devices, strict and not."""
    sections: Sections = {}
    for call in calls:
        for device in DEVICES:
            strict = answers(call, device, strict=True)
            free = answers(call, device, strict=False, known=strict)
            for kind, aspects in (("strict", strict), ("not strict", free)):
                sections |= {title(f"{call.name} {device} {kind}", aspect): text for aspect, text in aspects.items()}
    return sections


def value_sections(calls: Sequence[Call]) -> Sections:
    """Hashes of the exact and the fast values of calls, each on its own devices, which are not strict.

    Compiled loops are there from the first call on: numpy, which works until they are compiled, sums in another order.
    """
    load_loops()
    sections: Sections = {}
    for call in calls:
        for device in call.values:
            for values in ("exact", "fast"):
                aspects = computed(call, device, values, strict=False)
                sections |= {title(f"{call.name} {device}", aspect): text for aspect, text in aspects.items()}
    return sections


def exports_of(calls: Sequence[Call]) -> Sections:
    """The files of calls, on both devices."""
    sections: Sections = {}
    for call in calls:
        for device in DEVICES:
            sections |= export_sections(call, device)
    return sections


def about() -> dict[str, object]:
    """On what a record was written, and which of its parts depend on that; nothing here is compared."""
    versions = {}
    for package in ("numpy", "ml_dtypes", "rich", "numba", "torch", "pytest"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "machine": {"processor": processor(), "system": platform.system(), "python": platform.python_version()},
        "packages": versions,
        "what differs from machine to machine": {
            "values, fast": "sums in floating point: the same on processors with the same vector instructions, "
            "where both have numba or neither",
            "commands, help": "argparse breaks lines as the version of Python does",
            "commands, pytest": "as the version of pytest writes it",
            "names, annotations": "as the version of Python writes them; of extras only where they are installed",
        },
    }
