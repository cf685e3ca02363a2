"""Reports as files that other tools open, laid out as tt-metal lays out its own."""

import re
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from device.errors import ArgumentError, ArgumentTypeError, shown
from ttsim.recording.memory_reports import memory_reports
from ttsim.recording.profiling import Profile, page_of_run
from ttsim.recording.record import record_of
from ttsim.report.export.npe import npe_files
from ttsim.report.export.profiler import device_log, ops_perf_results
from ttsim.report.export.visualizer import config, database
from ttsim.report.trace import trace_json_gz
from ttsim.report.writers.html.document import page_html
from ttsim.report.writers.json import report_json
from ttsim.runtime.types.call import require_type

OF_TIME: Final = (
    "profile_log_device.csv",
    "npe_viz/manifest.json",
)  # viewers ignore the other files without these
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
MEMORY: Final = Path("generated") / "ttnn" / "reports"
PERFORMANCE: Final = Path("generated") / "profiler" / "reports"
USAGE: Final = Path("generated") / "reports"


def save_report(directory: str | Path, profile: Profile, *, name: str = "report") -> Path:
    """Writes what a profile saw as files that the field's tools open; the same bytes for the same calls.

    The directory is one for ``ttnn-visualizer --tt-metal-home``. It gets generated/ttnn/reports/<name> (db.sqlite and
    config.json), generated/profiler/reports/<name> (ops_perf_results_<name>.csv, which tt-perf-report reads, too,
    profile_log_device.csv, and npe_viz if anything is known to go from core to core; none of them if no device
    operation ran, since viewers refuse a table without rows), generated/reports/<name>_*.csv (how full the memories
    are now, or were before the device was closed, as ``dump_device_memory_state`` tells it), <name>.html (a page that
    needs nothing else), <name>.trace.json.gz (a timeline for Perfetto) and <name>.json.
    Several reports may share one.

    Args:
        directory: Where; it is made. Files of an earlier report of the same name are replaced.
        profile: What to write; it may go on.
        name: Of the report.

    Returns:
        The directory.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: The name cannot be that of a file everywhere, or the directory none at all.
        OSError: A file cannot be written.
    """
    if not isinstance(directory, str | Path):
        raise ArgumentTypeError(f"save_report: directory must be a path, not {shown(directory)}")
    require_type("save_report", Profile, profile=profile)
    require_type("save_report", str, name=name)
    if NAME.fullmatch(name) is None:
        raise ArgumentError(
            "save_report: name must be up to 100 letters, digits, underscores, points and hyphens, none of the "
            f"last two in front, not {shown(name)}"
        )
    folder = Path(directory)
    files = report_files(profile, name)
    for path in {PERFORMANCE / name / file for file in (f"ops_perf_results_{name}.csv", *OF_TIME)} - set(files):
        _remove(folder / path)
    for path, content in files.items():
        try:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        except ValueError:
            raise ArgumentError(
                f"save_report: directory must be a path that the system can have, not {shown(directory)}"
            ) from None
    return folder


def reserved_name(directory: str | Path, name: str) -> str:
    """The first name of ``<name>``, ``<name>-2``, ``<name>-3`` ... that no report of the directory has.

    The name is reserved at once, so that processes that ask at the same time get different names; makes the directory;
    raises OSError if the directory cannot be written to.
    """
    for number in count(1):
        free = name if number == 1 else f"{name}-{number}"
        try:
            (Path(directory) / MEMORY / free).mkdir(parents=True)
        except FileExistsError:
            if not (Path(directory) / MEMORY).is_dir():
                raise
            continue
        break
    return free


def report_files(profile: Profile, name: str) -> dict[Path, bytes]:
    """The files of a report, by their paths below its directory."""
    record, spec = record_of(profile, name), profile.device.spec
    page = page_of_run(record.network, record.cycles, profile.ran, spec)
    usage = memory_reports(profile.device, before_closing=True)
    texts = {
        MEMORY / name / "config.json": config(record),
        Path(f"{name}.json"): report_json(record),
        **{USAGE / f"{name}_{file}": text for file, text in usage.items()},
    }
    if record.operations:  # viewers refuse tables without rows
        times = {f"ops_perf_results_{name}.csv": ops_perf_results(record), OF_TIME[0]: device_log(record)}
        times |= {f"npe_viz/{file}": text for file, text in npe_files(record).items()}
        texts |= {PERFORMANCE / name / file: text for file, text in times.items()}
    return {
        MEMORY / name / "db.sqlite": database(record),
        Path(f"{name}.html"): page_html(page).encode(),
        Path(f"{name}.trace.json.gz"): trace_json_gz(record.network.operations, spec),
        **{path: text.encode() for path, text in texts.items()},
    }


def _remove(path: Path) -> None:
    """Removes a file of an earlier report, if the file exists."""
    with suppress(FileNotFoundError, NotADirectoryError, ValueError):
        path.unlink()
