"""A whole record: its parts, and the work that each takes."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tools.golden.answers import Aspects, answers, computed
from tools.golden.calls import DEVICES, Call, write_calls
from tools.golden.commands import COMMANDS, command_sections, export_aspects, exported, surface_sections
from tools.golden.experiments import EXPERIMENTS, LAYERS
from tools.golden.store import SUFFIX, Sections, clear, each, titled, write_sections
from tools.machine import load_loops


@dataclass(frozen=True, slots=True)
class Task:
    """A file of a record, and what makes its sections."""

    path: str  # Of the file below the record's folder, without its suffix
    cost: float  # How long it takes, against the others: the longest begin first
    make: Callable[[], Sections]  # Gives the sections; it is run in another process


def write_record(
    folder: Path,
    calls: Sequence[Call],
    parts: Iterable[str] = (),
    *,
    only: str = "",
    processes: int | None = None,
) -> float:
    """Writes a record, or the files of some parts whose path contains ``only``; returns the seconds that this took.

    ``calls`` are all calls of the record. Other files stay as they are. ``processes`` None is one for each core.
    """
    begun, chosen = time.perf_counter(), dict.fromkeys(parts or PARTS)
    tasks = [task for part in chosen for task in PARTS[part](part, calls) if only in task.path]
    if not tasks:
        raise ValueError(f"no file of {', '.join(chosen)} has {only!r} in its path")
    clear(folder, chosen, only)
    write_calls(folder, calls)
    each(partial(run_task, folder), sorted(tasks, key=lambda task: -task.cost), processes)
    return time.perf_counter() - begun


def run_task(folder: Path, task: Task) -> None:
    """Makes a file of a record."""
    write_sections(folder / f"{task.path}{SUFFIX}", task.make())


def _of_calls(
    ask: Callable[[Call], Mapping[str, Aspects]],
    wanted: Callable[[Call], object],
    file_of: Callable[[Call], str],
    part: str,
    calls: Sequence[Call],
) -> list[Task]:
    """Files of answers to calls: of those that are wanted, several in a file."""
    files = defaultdict[str, list[Call]](list)
    for call in filter(wanted, calls):
        files[file_of(call)].append(call)
    return [Task(f"{part}/{file}", float(len(own)), partial(_asked, ask, own)) for file, own in files.items()]


def _asked(ask: Callable[[Call], Mapping[str, Aspects]], calls: Sequence[Call]) -> Sections:
    sections: Sections = {}
    for call in calls:
        for name, aspects in ask(call).items():
            sections |= titled(f"{call.name} {name}", aspects)
    return sections


def _plans(call: Call) -> dict[str, Aspects]:
    """The answers to a call without values, on both devices, strict and not."""
    sections = {}
    for device in DEVICES:
        sections[f"{device} strict"] = strict = answers(call, device, strict=True)
        sections[f"{device} not strict"] = answers(call, device, strict=False, known=strict)
    return sections


def _values(call: Call) -> dict[str, Aspects]:
    """Hashes of the exact and the fast values of a call on its own devices, which are not strict.

    Compiled loops are there from the first call on: numpy, which works until they are compiled, sums in another order.
    """
    load_loops()
    return {
        device: computed(call, device, "exact", strict=False) | computed(call, device, "fast", strict=False)
        for device in call.values
    }


def _exports(call: Call) -> dict[str, Aspects]:
    """The files of a call, on both devices."""
    return {device: export_aspects(call, device) for device in DEVICES}


def _of_makers(makers: Mapping[str, Callable[[], Sections]], part: str, calls: Sequence[Call]) -> list[Task]:
    """Files that no calls are needed for, each with its maker."""
    return [Task(f"{part}/{file}", 5.0, make) for file, make in makers.items()]


_COMMANDS: Final = {name.replace(" ", "-"): partial(command_sections, name) for name in COMMANDS}
_EXPERIMENTS: Final = {
    f"{kind}-{layer}": partial(experiment, layer) for kind, experiment in EXPERIMENTS.items() for layer in LAYERS
}
PARTS: Final[Mapping[str, Callable[[str, Sequence[Call]], list[Task]]]] = {
    "plans": partial(_of_calls, _plans, lambda call: True, lambda call: call.chunk),
    "values": partial(_of_calls, _values, lambda call: call.values, lambda call: call.group),
    "exports": partial(_of_calls, _exports, exported, lambda call: call.group),
    "commands": partial(_of_makers, _COMMANDS),
    "experiments": partial(_of_makers, _EXPERIMENTS),
    "names": partial(_of_makers, {"ttsim": surface_sections}),
}  # a new part is one more entry: it gives the files of calls
