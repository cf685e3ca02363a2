"""Rows in a file, one JSON value a line, that survives whatever ends the process that writes it.

The first line says what the file is and which model made its rows. Lines are only ever appended; a last line that was
not finished is cut off when the file is opened again.
"""

import json
import os
from collections.abc import Iterable
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from device.errors import ArgumentError, shown
from ttsim.study.points.row import Row

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT: Final = 1  # raised when a field of `Row` changes its meaning or goes
HOW: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)  # the file is opened
UNLOCKED: Final = "this system has no file locks that ttsim knows: let no two sweeps write to {path} at once"


class Store:
    """An open file of rows; a context manager that closes it.

    Attributes:
        path: The file.
        rows: What it holds, by key.
        note: What the user should know of it; empty if nothing.
    """

    def __init__(self, path: Path, model: str) -> None:
        """Opens the file, or makes it.

        Args:
            path: The file; its folder is there.
            model: Version of the model that rows are to be of.

        Raises:
            ArgumentError: It is open in another process, no file of rows, or one of another model.
            OSError: It cannot be opened, read or written.
        """
        self.path = path
        self.rows: dict[str, Row] = {}
        self.note = "" if fcntl is not None else UNLOCKED.format(path=path)
        self._file = FileIO(os.open(path, HOW, 0o666), "r+")
        try:
            self._lock()
            self._recover(_line({"ttsim_rows": FORMAT, "model": model}))
        except BaseException:
            self._file.close()
            raise

    def append(self, rows: Iterable[Row]) -> None:
        """Adds rows; when this returns they are the system's, whatever becomes of the process.

        Raises:
            OSError: They cannot be written; what was written of them is cut off when the file is opened again.
        """
        made = list(rows)
        self._write(b"".join(_line(row.to_dict()) for row in made))
        self.rows |= {row.key: row for row in made}

    def close(self) -> None:
        """Closes the file, and lets others write it."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _lock(self) -> None:
        """Keeps others out, until the file is closed or the process ends.

        Raises:
            ArgumentError: Somebody else is in.
        """
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ArgumentError(
                f"{self.path} is being written by another process; wait until it ends, or give another file"
            ) from error

    def _recover(self, head: bytes) -> None:
        """Reads what is there, cuts off a line that was not finished, and begins a file that is new.

        Args:
            head: First line of a file of this model.
        """
        self._file.seek(0)
        content = self._file.readall()
        first, ended, _ = content.partition(b"\n")
        if not ended and head.startswith(first):  # new, or its first line was not finished
            self._file.truncate(0)
            self._write(head)
            return
        self._require(first + ended, head)
        whole = content.rfind(b"\n") + 1
        lines = content[len(head) : whole].splitlines(keepends=True)
        for number, line in enumerate(lines, start=2):
            row = _row(line)
            if row is not None:
                self.rows[row.key] = row
            elif number == len(lines) + 1:
                whole -= len(line)
            else:
                raise ArgumentError(f"{self.path}: line {number} is no row; delete that line, or the file")
        self._file.truncate(whole)

    def _require(self, first: bytes, head: bytes) -> None:
        """Refuses a file that was not begun with this first line."""
        if first == head:
            return
        said = _loaded(first)
        if not isinstance(said, dict) or "ttsim_rows" not in said:
            raise ArgumentError(f"{self.path} is there and no file of rows of ttsim; give another name")
        raise ArgumentError(
            f"{self.path} has rows of another version of ttsim: it begins with {shown(first.decode().strip())}, and "
            f"this version writes {head.decode().strip()}; rows are not mixed: give another file, or delete this one"
        )

    def _write(self, text: bytes) -> None:
        rest = memoryview(text)
        while rest:
            rest = rest[self._file.write(rest) :]


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _loaded(line: bytes) -> Any:
    """The value of a line; None if it is no JSON."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def _row(line: bytes) -> Row | None:
    """The row of a line; None if it is none."""
    values = _loaded(line)
    try:
        return Row.from_dict(values) if isinstance(values, dict) else None
    except (TypeError, ValueError):
        return None
