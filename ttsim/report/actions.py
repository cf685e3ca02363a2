"""The table of energy, and the file of action counts in Accelergy's format."""

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from ops.passes.counts import ActionCounts, counts_together
from ttsim.report.cycle_report import CycleReport
from ttsim.report.cycles import CallTime, OperationTime, Totals
from ttsim.report.energy import ENTRIES, STATIC
from ttsim.report.formatting import TableColumn, percent, short_name, table_lines, time, wrapped

YAML_VERSION: Final = 0.4  # of Accelergy, whose reader of action counts takes the file
# The counts of each component, by the name of its action
COMPONENTS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "unpackers": {"convert_byte": "unpacked_bytes"},
        "packers": {"convert_byte": "packed_bytes"},
        "registers": {"read": "register_reads", "write": "register_writes"},
        "l1": {"read_byte": "l1_read_bytes", "write_byte": "l1_written_bytes"},
        "dram": {"read_byte": "dram_read_bytes", "write_byte": "dram_written_bytes"},
        "first_network": {"byte_link": "first_network_link_bytes"},
        "second_network": {"byte_link": "second_network_link_bytes"},
        "cores": {
            "busy_cycle": "busy_core_cycles",
            "waiting_cycle": "waiting_core_cycles",
            "idle_cycle": "idle_core_cycles",
        },
    }
)
PARTS: Final = len(ENTRIES) + 1
EXPONENTS: Final = ((-3, "m"), (-6, "u"), (-9, "n"), (-12, "p"))


def in_units(value: float, unit: str) -> str:
    """A value in the decimal unit that gives one to three digits before the point: 3.96 mJ."""
    if value >= 1 or not value:
        return f"{value:.3g} {unit}"
    power, prefix = next((each for each in EXPONENTS if value >= 10.0 ** each[0]), EXPONENTS[-1])
    return f"{value / 10.0**power:.3g} {prefix}{unit}"


class Line(NamedTuple):
    """A line of the table: an operation of a call, or a whole call."""

    name: str
    of: OperationTime | Totals


def _share(place: int, part: str) -> TableColumn[Line]:
    def shown(line: Line) -> str:
        energy = line.of.energy
        return percent(energy.by_part[part] / energy.femtojoules) if energy.by_part[part] else ""

    return TableColumn(part, shown, goes=PARTS - place)


ENERGY_TABLE: Final[Sequence[TableColumn[Line]]] = (
    TableColumn("operation", lambda line: short_name(line.name), words=True),
    TableColumn("time", lambda line: time(line.of.nanoseconds)),
    TableColumn("energy", lambda line: in_units(line.of.energy.joules, "J")),
    TableColumn("power", lambda line: in_units(line.of.energy.average_watts, "W")),
    TableColumn(
        "energy x time", lambda line: in_units(line.of.energy.energy_delay_joule_seconds, "Js"), goes=PARTS + 1
    ),
    *(_share(place, part) for place, part in enumerate((*ENTRIES, STATIC))),
)


def energy_lines(report: CycleReport, width: int | None = None) -> list[str]:
    """The energy of each operation and call, with the share of each part, and the basis of the figures."""
    lines = [line for call in report.calls for line in _lines(call)]
    if len(report.calls) > 1:
        lines.append(Line("all calls", report.total))
    below = [f"Energy: {report.total.energy.basis}."]
    least = list(dict.fromkeys(op.name for op in report.operations if op.actions.at_least))
    if least:
        below.append(
            f"At least, with each number of tiles, L1 and networks counted once: {', '.join(map(short_name, least))}."
        )
    return [
        *table_lines(ENERGY_TABLE, lines, width),
        *(line for text in below for line in wrapped(text, width, indent=2)),
    ]


def _lines(call: CallTime) -> Iterator[Line]:
    for op in call.operations:
        yield Line(op.name, op)
    if len(call.operations) != 1:
        yield Line(call.name, call.total)


def counts_yaml(reports: Sequence[CycleReport]) -> str:
    """The actions of all operations together, as YAML in Accelergy's format."""
    counts = counts_together(op.actions for report in reports for op in report.operations)
    lines = ["action_counts:", f"  version: {YAML_VERSION}", "  local:"]
    lines += _component("matrix_units", list(_products(counts)))
    for name, actions in COMPONENTS.items():
        lines += _component(name, [(action, {}, getattr(counts, count)) for action, count in actions.items()])
    return "\n".join([*lines, ""])


def _products(counts: ActionCounts) -> Iterator[tuple[str, dict[str, object], int]]:
    for each in counts.multiply_adds:
        kind = {"formats": each.formats, "fidelity_phases": each.fidelity_phases}
        yield "multiply_add", kind, each.issued


def _component(name: str, actions: Sequence[tuple[str, Mapping[str, object], int]]) -> Iterator[str]:
    """The lines of a component; empty if it has no actions."""
    if any(count for *_, count in actions):
        yield f"    - name: chip.{name}"
        yield "      action_counts:"
    for action, arguments, count in actions:
        if count:
            yield f"        - name: {action}"
            yield from ["          arguments:"] * bool(arguments)
            yield from (f"            {key}: {json.dumps(value)}" for key, value in arguments.items())
            yield f"          counts: {count}"
