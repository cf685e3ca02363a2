"""Tables of devices for a terminal, drawn with rich: all devices, the fields of one, the differences of two."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from device.spec.device_spec import DeviceSpec
from ops.sensitivity.fields import fields_of
from ttsim.report.devices import DeviceFigures, FieldDifference, differences, moved
from ttsim.report.formatting import short_name
from ttsim.report.writers.table import kib
from ttsim.report.writers.terminal import escaped, say, show

NUMBERS = ("cores", "clock", "L1 a core", "DRAM banks", "DRAM")


def print_devices(console: Console, specs: Sequence[DeviceSpec]) -> None:
    """One line for each device; all figures of a single device, and the differences of two devices."""
    console.print(overview(specs))
    if len(specs) == 1:
        for field in fields_of(specs[0]):
            console.print(escaped(f"{field.name} = {field.value} {field.unit}".rstrip()), highlight=False)
    elif len(specs) == 2:
        print_differences(console, *specs)


def overview(specs: Sequence[DeviceSpec]) -> Table:
    """A row for each device."""
    table = _plain_table()
    table.add_column("device", overflow="fold")
    table.add_column("architecture", no_wrap=True)
    for heading in NUMBERS:
        table.add_column(heading, justify="right", no_wrap=True)
    for spec in specs:
        table.add_row(
            escaped(spec.name),
            escaped(spec.arch),
            f"{spec.grid.cols}x{spec.grid.rows}",
            f"{spec.clock_hz / 1e9:g} GHz",
            kib(spec.l1.usable_bytes),
            str(spec.dram.banks),
            f"{spec.dram.peak_bytes_per_second / 1e9:g} GB/s",
        )
    return table


def print_differences(console: Console, first: DeviceSpec, second: DeviceSpec) -> None:
    """A row for each field that differs, below the name of its table."""
    changes = differences(first, second)
    text = "1 field differs" if len(changes) == 1 else f"{len(changes) or 'no'} fields differ"
    console.print(escaped(f"\n{text}\nA: {first.name}\nB: {second.name}\n"), highlight=False)
    table = _plain_table()
    for heading in ("field", "unit", "A", "B", "B/A"):
        left = heading in ("field", "unit")
        table.add_column(heading, justify="left" if left else "right", no_wrap=left, overflow="fold")
    part = ""
    for change in changes:
        inner, _, name = change.name.rpartition(".")
        if inner != part:
            table.add_row(escaped(f"[{inner}]"))
            part = inner
        table.add_row(*map(escaped, (name, change.unit, _shown(change.before), _shown(change.after), _ratio(change))))
    if changes:
        console.print(table)


def _plain_table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}".removesuffix(".0") if type(value) in (int, float) else str(value)


def _ratio(change: FieldDifference) -> str:
    return "" if change.ratio is None else f"{change.ratio:.3g}"


LEGEND = (
    "moves: measured on small calls of every program. Cycles are those of plans that are held, launch those that pass "
    "between their kernels; numbers are elasticities, log(cycles) over log(figure). On another clock a cycle takes "
    "another time."
)


def print_fields(console: Console, device: DeviceFigures) -> None:
    """Each field with its value, then its effects and its source."""
    show(console, [short_name(device.name, console.width)], style="bold")
    for field in device.fields:
        value = f"{field.value:,}" if type(field.value) in (int, float) else str(field.value)
        better = f", {field.better} is better" if field.better else ""
        say(console, f"{field.name} = {' '.join(filter(None, (value, field.unit)))}{better}", indent=4)
        say(console, f"    moves: {'; '.join(moved(field)) or 'nothing here'}", indent=8)
        say(console, f"    source: {field.source}", indent=8)
    say(console, LEGEND, indent=2)
