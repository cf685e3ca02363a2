"""TOML files that users write: read, their keys checked, tables within tables as names with dots."""

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from device.errors import ArgumentError, shown


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """What a file holds.

    Args:
        what: It should be, for messages, such as "a sweep".

    Raises:
        ArgumentError: The file is no TOML.
        OSError: The file cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:  # no TOML, no text, or no path at all
        raise ArgumentError(f"{path}: {what} is TOML: {error}") from error


def check_keys(where: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse a key that is not known, naming the nearest right spelling."""
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise ArgumentError(f"{where}: unknown key {shown(key)}; {hint}")


def leaves(table: Mapping[str, Any], *, whole: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """Names and what stands there: `dram.banks = 16` is a table within a table, and so is a quoted name with dots.

    Args:
        whole: A table within it that has one of these keys is a value.
    """
    waiting = [*table.items()][::-1]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, Mapping) and not set(value) & set(whole):
            waiting += [(f"{name}.{key}", one) for key, one in [*value.items()][::-1]]
        else:
            yield name, value
