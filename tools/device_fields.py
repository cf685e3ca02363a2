"""Write the tables of docs/reference/device-fields.md: what fields mean, where figures come from, what they move.

usage: python -m tools.device_fields [--all]

Writes the document with new tables: names, units and meanings from the sources, where figures come from by the comments
of two cards' files, what fields move as measured on these cards. Fields that the document does not have yet are
measured; with --all every field is, which takes about half a minute.
"""

import re
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ops.op_models import load_spec
from ops.sensitivity.effects import CYCLES, FAR, LAUNCHES, MEMORY, PLAN, REPORT, VALUES, effects
from ops.sensitivity.fields import fields_of, source_of, sources_of, table_words, words_of
from ops.sensitivity.samples import planners_samples, samples
from tools.command import run_tool, tool_parser

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "reference" / "device-fields.md"
BEGIN = "### Device\n"
MEASURED = ("wormhole_n150", "blackhole_p150")
ORDER = (PLAN, MEMORY, VALUES, CYCLES, LAUNCHES, REPORT)
HEADER = "| field | unit | meaning | moves | source |\n|---|---|---|---|---|\n"
_ROW = re.compile(r"\| `(\w+)` \|.*\| ([\w, ]*) \| [^|]* \|$")

Keys: TypeAlias = tuple[str | int, ...]


class Row(NamedTuple):
    """A field, or a table within a table."""

    name: str
    unit: str  # Its unit, or what stands there
    meaning: str
    moves: frozenset[str]
    source: str  # Where the figures of the cards come from

    def __str__(self) -> str:
        moves = ", ".join(name for name in ORDER if name in self.moves)
        return f"| `{self.name}` | {self.unit} | {_cell(self.meaning)} | {moves} | {self.source} |\n"


def documented(text: str) -> dict[str, set[str]]:
    """The effects of each field according to the document."""
    said, table = {}, ""
    for line in text.splitlines():
        if line.startswith("### "):
            table = "" if line == BEGIN.strip() else f"{line[4:].strip('[]')}."
        if row := _ROW.match(line):
            said[table + row[1]] = set(row[2].split(", ")) - {""}
    return said


def measured(known: Collection[str] = ()) -> dict[str, set[str]]:
    """The effects of each unknown field on any of the cards; entries of a list are one field.

    A field that moves nothing at its double or its half is tried farther off.
    """
    result: dict[str, set[str]] = {}
    for far in ((), FAR):
        known = {*known, *(name for name, moves in result.items() if moves)}
        for name in MEASURED:
            spec = load_spec(name)
            fields = [field for field in fields_of(spec) if general(field.name) not in known]
            fields = [field for field in fields if field.numeric or not far]
            moved = effects(fields, samples(), spec, planned=planners_samples(), far=far, elasticities=False)
            for effect in moved:
                result.setdefault(general(effect.field.name), set()).update(effect.moves)
    return result


def general(name: str) -> str:
    """A field's name without its number in a list."""
    return re.sub(r"\[\d+\]", "", name)


def written(moves: Mapping[str, Iterable[str]]) -> str:
    """All tables; what each field moves is given."""
    tables: dict[Keys, list[Row]] = {}
    sources = {card: sources_of(card) for card in MEASURED}
    for field in fields_of(load_spec(MEASURED[0])):
        if any(field.path[at] for at in range(len(field.path)) if isinstance(field.path[at], int)):
            continue  # of a list, the first table stands for all
        moved = frozenset(moves[general(field.name)])
        *table, name = field.path
        tables.setdefault(tuple(table[:1]), [])
        tables.setdefault(tuple(table), []).append(
            Row(str(name), field.unit or _kind(field.value), words_of(field.path), moved, _source(field.name, sources))
        )
    for keys, rows in tables.items():
        if len(keys) > 1:
            kind = "list of tables" if isinstance(keys[-1], int) else "table"
            within = frozenset(move for row in rows for move in row.moves)
            tables[keys[:1]].append(Row(str(keys[1]), kind, words_of(keys[:2]), within, ""))
    return "".join(_table(keys, rows) for keys, rows in tables.items()).removesuffix("\n")


def _table(keys: Keys, rows: Iterable[Row]) -> str:
    heading = f"[{'.'.join(str(key) for key in keys if isinstance(key, str))}]" if keys else "Device"
    heading = f"[{heading}]" if keys and isinstance(keys[-1], int) else heading
    return f"### {heading}\n\n{table_words(keys)}\n\n{HEADER}{''.join(map(str, rows))}\n"


def _source(name: str, sources: Mapping[str, dict[str, str]]) -> str:
    """The source of a figure on each card; once, where all are the same."""
    said = {card: source_of(name, source).replace("|", "/") for card, source in sources.items()}
    if len(set(said.values())) == 1:
        return said[MEASURED[0]]
    return "; ".join(f"{card}: {source}" for card, source in said.items())


def _cell(sentence: str) -> str:
    plain = sentence.replace("``", "`").removesuffix(".")
    return plain[:1].lower() + plain[1:] if plain[1:2].islower() or plain[1:2] == " " else plain


def _kind(value: object) -> str:
    """The text in place of a unit."""
    if isinstance(value, bool):
        return "true, false"
    return "list" if isinstance(value, list) else "text" if isinstance(value, str) else ""


def main() -> None:
    """Write the document."""
    parser = tool_parser("tools.device_fields", __doc__)
    parser.add_argument("--all", action="store_true", help="measure all fields, not only new ones")
    text = DOCUMENT.read_text(encoding="utf-8")
    known = {} if parser.parse_args().all else documented(text)
    DOCUMENT.write_text(text.partition(BEGIN)[0] + written({**known, **measured(known)}), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(run_tool("tools.device_fields", main))
