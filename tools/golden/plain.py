"""Texts of a record without what depends on the machine, the folder or the moment: the only place where that is cut."""

import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tools.golden.arrays import column_text

ROOT: Final = Path(__file__).resolve().parents[2]

# (pattern, what stands there instead): the reason is the comment of each
REPLACED: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(re.escape(str(ROOT))), "<project>"),  # where the clone lies
    (re.compile(re.escape(tempfile.gettempdir()) + r"/golden-[A-Za-z0-9_]+"), "<temporary>"),  # a command's own folder
    (re.compile(re.escape(sys.prefix) + r"(?=/)"), "<python>"),  # where Python lies
    (re.compile(re.escape(sys.base_prefix) + r"(?=/)"), "<python>"),  # where the Python of an environment lies
    (re.compile(r"\bat 0x[0-9a-f]{6,}"), "at <address>"),  # addresses of Python's objects
    (re.compile(r"\bin \d+\.\d+s\b"), "in <time> s"),  # how long pytest took
    (re.compile(r"^ttsim compiles its loops .*\n?", re.MULTILINE), ""),  # once on a machine
)
# Of ttsim's sources, or of a plan in words that users do not see.
HASH: Final = re.compile(r"(?<![.\w])[0-9a-f]{16}(?:[0-9a-f]{48})?(?!\w)")


def plain(text: str) -> str:
    """A text without what differs from machine to machine or from run to run."""
    for pattern, instead in REPLACED:
        text = pattern.sub(instead, text)
    return HASH.sub(_plain_hash, text)


def _plain_hash(match: re.Match[str]) -> str:
    """A mark for a hash; digits alone are a figure."""
    return match.group() if match.group().isdecimal() or match.group().isalpha() else "<hash>"


def lines_of(value: Any) -> str:
    """Data of JSON as lines of text: the path of an object, then its figures and words.

    A list of many objects with equal keys, such as the cores of a device, is a line for each key: the sum and a hash
    of its column, so that the key at fault is found without a line for each core.
    """
    lines: list[str] = []
    _walk("", value, lines.append)
    return "\n".join(lines)


MANY: Final = 17  # objects of a list from which on columns are hashed: more than the stages of an operation


def _walk(path: str, value: Any, write: Callable[[str], None]) -> None:
    if isinstance(value, Mapping):
        flat = {key: one for key, one in value.items() if _is_flat(one)}
        inline = ", ".join(f"{key}: {one!r}" for key, one in flat.items())
        if flat or not value:
            write(f"{path or 'all'} {inline}")
        for key, one in value.items():
            if key not in flat:
                _walk(f"{path}.{key}" if path else str(key), one, write)
    elif isinstance(value, list) and not _is_flat(value):
        keys = _shared_keys(value)
        if len(value) >= MANY and keys:
            write(f"{path} {len(value)} rows")
            for key in keys:
                write(f"{path}.{key} {column_text([row[key] for row in value])}")
        else:
            for index, one in enumerate(value):
                _walk(f"{path}[{index}]", one, write)
    else:
        write(f"{path} {value!r}")


def _is_flat(value: Any) -> bool:
    """Whether a value is a figure, a word, or a list of these."""
    if isinstance(value, list):
        return not any(isinstance(one, Mapping | list) for one in value)
    return not isinstance(value, Mapping)


def _shared_keys(rows: list[Any]) -> list[str]:
    """The keys of rows that all have the same flat ones; else none."""
    if not all(isinstance(row, Mapping) for row in rows):
        return []
    keys = list(rows[0])
    same = all(list(row) == keys and all(map(_is_flat, row.values())) for row in rows)
    return keys if same else []
