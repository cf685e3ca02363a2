"""The files of a record: plain text in sections, compressed, the same bytes for the same sections; their comparison."""

import lzma
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from multiprocessing import get_context
from pathlib import Path
from typing import Final, Literal, TypeVar

SUFFIX: Final = ".txt.xz"
PRESET: Final = 1  # of xz: higher ones take three times as long for a tenth less

Sections = dict[str, str]  # title -> text
T = TypeVar("T")
R = TypeVar("R")


def each(function: Callable[[T], R], items: Sequence[T], processes: int | None = None) -> list[R]:
    """A function of every item, in so many processes (None: one on each core); 1 works in this one."""
    workers = min(processes or os.cpu_count() or 1, len(items))
    if workers <= 1:
        return list(map(function, items))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(function, items))


def title(name: str, aspect: str) -> str:
    """The title of a section: what was asked, and which aspect of the answer the section holds."""
    return f"{name} | {aspect}"


def titled(name: str, aspects: Mapping[str, str]) -> Sections:
    """The aspects of an answer as sections."""
    return {title(name, aspect): text for aspect, text in aspects.items()}


def write_sections(path: Path, sections: Mapping[str, str], *, preset: int = PRESET) -> None:
    """Writes sections into a compressed text file in the order of their titles.

    A title is a line of its own; each line of a section's text follows with one space in front.
    """
    newline = "\n"
    text = "".join(f"{name}\n {sections[name].replace(newline, newline + ' ')}\n" for name in sorted(sections))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text.encode(errors="backslashreplace"), preset=preset))


def read_sections(path: Path) -> Sections:
    """The sections of a file; raises ValueError if the file is no file of a record."""
    try:
        text = lzma.decompress(path.read_bytes()).decode()
    except (lzma.LZMAError, UnicodeDecodeError):
        raise ValueError(f"{path} is no file of a record; `python -m tools.golden write` writes such files") from None
    sections = (section.split("\n ", 1) for section in re.split(r"\n(?! )", text)[:-1])
    return {name: content.replace("\n ", "\n") for name, content in sections}


def record_files(folder: Path) -> list[str]:
    """The files of a record, as paths below its folder; raises ValueError where the folder holds none."""
    lines = sorted(path.relative_to(folder).as_posix() for path in folder.rglob(f"*{SUFFIX}"))
    if not lines:
        raise ValueError(f"{folder} holds no record; `python -m tools.golden write {folder}` writes one")
    return lines


def clear(folder: Path, parts: Iterable[str], only: str = "") -> None:
    """Removes the files of some parts of an earlier record whose path contains a text."""
    for part in parts:
        for path in sorted((folder / part).glob(f"*{SUFFIX}")):
            if only in f"{part}/{path.name.removesuffix(SUFFIX)}":
                path.unlink()


Kind = Literal["only before", "only after", "figure", "text"]
FIGURE: Final = re.compile(r"(?<![A-Za-wyz_\d])[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")  # of 8x8, too; not float32
DIGEST: Final = re.compile(r"\b[0-9a-f]{20}\b")
OUTCOME: Final = re.compile(r"\| (?:without dispatch: )?(?:result|error of result|error of given)$")
LONGEST: Final = 300  # characters of a line that is shown


@dataclass(frozen=True, slots=True)
class Difference:
    """A section that is not the same in both records."""

    part: str  # Folder of the file
    name: str  # Title of the section
    kind: Kind  # Whether figures alone differ, or words too, or which record alone has the section
    of: str  # The class: the aspect, and the lines without figures from where they differ
    lines: tuple[str, str]  # The first line that differs, of the first record and of the second
    size: int  # Characters of both sections together: the smallest example is the easiest to look into


def compare_records(
    before: Path,
    after: Path,
    *,
    parts: Iterable[str] = (),
    only: str = "",
    processes: int | None = None,
) -> list[Difference]:
    """All sections that differ, of all files or of those of some parts whose path contains a text."""
    chosen = set(parts)
    files = sorted({*record_files(before), *record_files(after)})
    files = [file for file in files if only in file and (not chosen or file.split("/")[0] in chosen)]
    if not files:
        raise ValueError(f"no file of the chosen parts has {only!r} in its path")
    compare = partial(compare_files, before, after)
    return list(chain.from_iterable(each(compare, files, processes)))


def compare_files(before: Path, after: Path, file: str) -> list[Difference]:
    """The differences of a file; a record that lacks it lacks all of its sections."""
    paths = (before / file, after / file)
    if all(path.exists() for path in paths) and paths[0].read_bytes() == paths[1].read_bytes():
        return []
    old, new = (read_sections(path) if path.exists() else {} for path in paths)
    return list(differences(file.split("/")[0], old, new))


def differences(part: str, old: Sections, new: Sections) -> Iterator[Difference]:
    """The differences between the sections of two files."""
    for name in sorted({*old, *new}):
        aspect = name.rpartition(" | ")[2]
        if name in new and name in old:
            if new[name] != old[name]:
                yield _difference(part, name, aspect, old[name], new[name])
        else:
            kind: Kind = "only before" if name in old else "only after"
            text = old.get(name, new.get(name, ""))
            first = " ".join(text.split("\n")[: 2 if aspect.endswith(("error of result", "error of given")) else 1])
            shown = (first[:LONGEST], "") if name in old else ("", first[:LONGEST])
            yield Difference(part, name, kind, f"{aspect}: {_template(first)}", shown, len(text))


def _difference(part: str, name: str, aspect: str, old: str, new: str) -> Difference:
    """The first line that differs, from shortly before the character that differs."""
    pairs = zip_longest(old.split("\n"), new.split("\n"), fillvalue="")
    before, after = next((line, other) for line, other in pairs if line != other)
    at = next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
    begin = max(0, before.rfind(" ", 0, max(0, at - LONGEST // 3)) + 1)
    lines = (before[begin : begin + LONGEST], after[begin : begin + LONGEST])
    templates = [_template(line) for line in (before, after)]
    kind: Kind = "figure" if templates[0] == templates[1] else "text"
    of = f"{aspect}: {' -> '.join(dict.fromkeys(templates))}"
    return Difference(part, name, kind, of, lines, len(old) + len(new))


def _template(text: str) -> str:
    """A text with N for every figure and H for every hash."""
    return FIGURE.sub("N", DIGEST.sub("H", text))[:LONGEST]


def summary(differences: Iterable[Difference], *, most: int = 40) -> Iterator[str]:
    """Lines about differences: how many there are of each part and class, and the smallest example of each class.

    Where a call runs in one record and is refused in the other, all its other sections differ as well: these are
    counted in one line.
    """
    calls = defaultdict[tuple[str, str], list[Difference]](list)
    for difference in differences:
        calls[difference.part, difference.name.rpartition(" | ")[0]].append(difference)
    classes = defaultdict[tuple[str, Kind, str], list[Difference]](list)
    following, left = 0, Counter[str]()
    for group in calls.values():
        outcomes = [entry for entry in group if entry.kind.startswith("only") and OUTCOME.search(entry.name)]
        following += len(group) - len(outcomes) if outcomes else 0
        for difference in outcomes or group:
            classes[difference.part, difference.kind, difference.of].append(difference)
    for (part, kind, of), group in sorted(classes.items(), key=lambda item: (item[0][0], -len(item[1]), item[0])):
        left[part] += 1
        if left[part] <= most:
            smallest = min(group, key=lambda difference: (difference.size, difference.name))
            yield f"{part}, {len(group)} x {kind}: {of}"
            yield f"    {smallest.name}"
            yield from (f"    {mark} {line}" for mark, line in zip("-+", smallest.lines, strict=True) if line)
    yield from (f"{part}: {number - most} more classes" for part, number in left.items() if number > most)
    if following:
        yield f"{following} more sections of calls that run in one record and are refused in the other"
