"""Write the tables of docs/device-file.md: what fields mean, from the sources, and what they move, as measured.

usage: python -m tools.device_file [--all]

Writes the document with new tables. Fields that it does not have yet are measured on two cards; with --all every field
is, which takes minutes.
"""

import argparse
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ops.fields.effects import CYCLES, FAR, LAUNCHES, MEMORY, PLAN, REPORT, VALUES, effects
from ops.fields.field import fields_of
from ops.fields.samples import planners_samples, samples
from ops.fields.words import table_words, words_of
from ops.meanings import load_spec

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "device-file.md"
BEGIN, END = "### Device\n", "## Checks\n"
MEASURED = ("wormhole_n150", "blackhole_p150")
ORDER = (PLAN, MEMORY, VALUES, CYCLES, LAUNCHES, REPORT)
HEADER = "| field | unit | meaning | moves |\n|---|---|---|---|\n"

Keys: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A field, or a table within a table.

    Attributes:
        name: Its key.
        unit: Its unit, or what stands there.
        meaning: In a sentence.
        moves: What it moves.
    """

    name: str
    unit: str
    meaning: str
    moves: frozenset[str]

    def __str__(self) -> str:
        moves = ", ".join(one for one in ORDER if one in self.moves)
        return f"| `{self.name}` | {self.unit} | {_cell(self.meaning)} | {moves} |\n"


def documented(text: str) -> dict[str, set[str]]:
    """What the document says that each field moves."""
    said, table = {}, ""
    for line in text.splitlines():
        if line.startswith("### "):
            table = "" if line == BEGIN.strip() else f"{line[4:].strip('[]')}."
        if row := re.match(r"\| `(\w+)` \|.*\| ([\w, ]*) \|$", line):
            said[table + row[1]] = set(row[2].split(", ")) - {""}
    return said


def measured(known: Collection[str] = ()) -> dict[str, set[str]]:
    """What each field moves on any of the cards; entries of a list are one. Known ones are left out.

    What moves nothing on any of them at its double or its half is tried farther off.
    """
    found: dict[str, set[str]] = {}
    for far in ((), FAR):
        known = {*known, *(name for name, moves in found.items() if moves)}
        for name in MEASURED:
            spec = load_spec(name)
            fields = [field for field in fields_of(spec) if general(field.name) not in known]
            fields = [field for field in fields if field.numeric or not far]
            for one in effects(fields, samples(), spec, planned=planners_samples(), far=far):
                found.setdefault(general(one.field.name), set()).update(one.moves)
    return found


def general(name: str) -> str:
    """A field's name without its number in a list."""
    return re.sub(r"\[\d+\]", "", name)


def written(moves: Mapping[str, Iterable[str]]) -> str:
    """All tables; what each field moves is given."""
    tables: dict[Keys, list[Row]] = {}
    for field in fields_of(load_spec(MEASURED[0])):
        if any(field.path[at] for at in range(len(field.path)) if isinstance(field.path[at], int)):
            continue  # of a list, the first table stands for all
        moved = frozenset(moves[general(field.name)])
        *table, name = field.path
        tables.setdefault(tuple(table[:1]), [])
        tables.setdefault(tuple(table), []).append(
            Row(str(name), field.unit or _kind(field.value), words_of(field.path), moved)
        )
    for keys, rows in tables.items():
        if len(keys) > 1:
            kind = "list of tables" if isinstance(keys[-1], int) else "table"
            within = frozenset(move for row in rows for move in row.moves)
            tables[keys[:1]].append(Row(str(keys[1]), kind, words_of(keys[:2]), within))
    return "".join(_table(keys, rows) for keys, rows in tables.items())


def _table(keys: Keys, rows: Iterable[Row]) -> str:
    """One table: its heading, what it is, and what is in it."""
    heading = f"[{'.'.join(str(key) for key in keys if isinstance(key, str))}]" if keys else "Device"
    heading = f"[{heading}]" if keys and isinstance(keys[-1], int) else heading
    return f"### {heading}\n\n{table_words(keys)}\n\n{HEADER}{''.join(map(str, rows))}\n"


def _cell(sentence: str) -> str:
    """A sentence as a table has it."""
    plain = sentence.replace("``", "`").removesuffix(".")
    return plain[:1].lower() + plain[1:] if plain[1:2].islower() or plain[1:2] == " " else plain


def _kind(value: object) -> str:
    """What stands in place of a unit."""
    if isinstance(value, bool):
        return "true, false"
    return "list" if isinstance(value, list) else "text" if isinstance(value, str) else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the document."""
    parser = argparse.ArgumentParser(description="Write the tables of docs/device-file.md.")
    parser.add_argument("--all", action="store_true", help="measure all fields, not only new ones")
    options = parser.parse_args(arguments)
    text = DOCUMENT.read_text(encoding="utf-8")
    known = {} if options.all else documented(text)
    before, _, rest = text.partition(BEGIN)
    tables = written({**known, **measured(known)})
    DOCUMENT.write_text(before + tables + END + rest.partition(END)[2], encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
