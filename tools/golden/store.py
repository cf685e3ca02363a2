"""The files of a record: plain text in sections, compressed, the same bytes for the same sections."""

import lzma
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

SUFFIX: Final = ".txt.xz"
PRESET: Final = 1  # of xz: higher ones take three times as long for a tenth less

Sections = dict[str, str]  # title -> text


def title(name: str, aspect: str) -> str:
    """The title of a section: what was asked, and which aspect of the answer the section holds."""
    return f"{name} | {aspect}"


def write_sections(path: Path, sections: Mapping[str, str]) -> None:
    """Writes sections into a compressed text file in the order of their titles.

    A title is a line of its own; each line of a section's text follows with one space in front.
    """
    lines: list[str] = []
    for name in sorted(sections):
        lines.append(name)
        lines += [f" {line}" for line in sections[name].split("\n")]
    text = "".join(f"{line}\n" for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text.encode(errors="backslashreplace"), preset=PRESET))


def read_sections(path: Path) -> Sections:
    """The sections of a file.

    Raises:
        ValueError: The file is no file of a record.
    """
    try:
        text = lzma.decompress(path.read_bytes()).decode()
    except (lzma.LZMAError, UnicodeDecodeError):
        raise ValueError(f"{path} is no file of a record; `python -m tools.golden write` writes such files") from None
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.split("\n")[:-1]:
        if line.startswith(" "):
            lines.append(line[1:])
        else:
            lines = found[line] = []
    return {name: "\n".join(lines) for name, lines in found.items()}


def record_files(folder: Path) -> list[str]:
    """The files of a record, as paths below its folder; raises ValueError where the folder holds none."""
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob(f"*{SUFFIX}"))
    if not found:
        raise ValueError(f"{folder} holds no record; `python -m tools.golden write {folder}` writes one")
    return found


def clear(folder: Path, parts: Iterable[str], only: str = "") -> None:
    """Removes the files of some parts of an earlier record whose path contains a text."""
    for part in parts:
        for path in sorted((folder / part).glob(f"*{SUFFIX}")):
            if only in f"{part}/{path.name.removesuffix(SUFFIX)}":
                path.unlink()
