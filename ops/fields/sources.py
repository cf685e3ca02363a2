"""Where a device's figures come from: the comments behind them in its file, and in the files that it extends."""

import re
from pathlib import Path

from device.spec.device_spec import extended_files

_TABLE = re.compile(r"\s*\[(\w+)\]")
_KEY = re.compile(r"\s*(\w+)\s*=")
_COMMENT = re.compile(r"""^(?:[^#"']|"[^"]*"|'[^']*')*#\s*(.*)$""")


def sources_of(device: str | Path) -> dict[str, str]:
    """The comment behind each figure, by its name as in `ops.fields.field.Field`; the nearest file's counts.

    Args:
        device: A name of the catalog, or the path of a TOML file.

    Raises:
        SpecError: A file can not be read.
    """
    found: dict[str, str] = {}
    for one in extended_files(device):
        table = ""
        for line in one.text.splitlines():
            if header := _TABLE.match(line):
                table = f"{header[1]}."
            elif key := _KEY.match(line):
                comment = _COMMENT.match(line)
                found[table + key[1]] = comment[1] if comment else ""
    return found


def source_of(name: str, sources: dict[str, str]) -> str:
    """The comment of a field: its own, or that of the table or list in which it stands."""
    return next((sources[key] for key in sorted(sources, key=len, reverse=True) if _within(name, key)), "")


def _within(name: str, key: str) -> bool:
    return name == key or name.startswith((f"{key}.", f"{key}["))
