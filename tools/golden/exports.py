"""Files that other tools open, as text: what `save_report` writes of a call."""

import gzip
import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

import ttsim
from tools.golden.answers import execute, namespace, opened, outcome
from tools.golden.calls import Call
from tools.golden.plain import lines_of, plain
from tools.golden.store import Sections, title

EVERY: Final = 40  # calls of a group of which the first one's files are recorded


def exported(call: Call) -> bool:
    """Whether the files of a call are recorded."""
    return call.number % (EVERY // 4 if call.group in ("network", "trace", "repeated") else EVERY) == 0


def export_sections(call: Call, device: str) -> Sections:
    """The files that `save_report` writes of a call, whether it runs or fails."""
    with opened(call, device, strict=False) as simulated, ttsim.profile(simulated) as profile:
        names = namespace(simulated, random=False)
        found = {**outcome(lambda: execute(call.given, names), named="given")}
        if not found:
            found |= outcome(lambda: execute(call.text, names), named="result")
        with tempfile.TemporaryDirectory(prefix="golden-") as temporary:
            folder = Path(temporary)
            found |= outcome(lambda: ttsim.save_report(folder, profile), named="saving")
            paths = sorted(path for path in folder.rglob("*") if path.is_file())
            found |= {f"file {path.relative_to(folder).as_posix()}": plain(file_text(path)) for path in paths}
    name = f"{call.name} {device}"
    return {title(name, aspect): text for aspect, text in found.items()}


def file_text(path: Path) -> str:
    """A file as text with short lines: databases as statements, JSON as lines of figures and words."""
    if path.suffix == ".sqlite":
        with closing(sqlite3.connect(path)) as database:
            return "\n".join(database.iterdump())
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    text = content.decode("utf-8", errors="backslashreplace")
    if path.name.endswith((".json", ".json.gz")):
        return lines_of(json.loads(text))
    return text
