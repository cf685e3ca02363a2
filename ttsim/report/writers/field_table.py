"""The fields of a device for a terminal, drawn with rich."""

from rich.console import Console

from ttsim.report.devices import DeviceFigures, moved
from ttsim.report.printable import short_name
from ttsim.report.writers.terminal import say, show

LEGEND = (
    "moves: measured on small calls of every program. Cycles are those of plans that are held, launch those that pass "
    "between their kernels; numbers are elasticities, log(cycles) over log(figure). On another clock a cycle takes "
    "another time."
)


def print_fields(console: Console, device: DeviceFigures) -> None:
    """Each field with its value, and below it what it moves and where it is from."""
    show(console, [short_name(device.name, console.width)], style="bold")
    for field in device.fields:
        value = f"{field.value:,}" if type(field.value) in (int, float) else str(field.value)
        better = f", {field.better} is better" if field.better else ""
        say(console, f"{field.name} = {' '.join(filter(None, (value, field.unit)))}{better}", indent=4)
        say(console, f"    moves: {'; '.join(moved(field)) or 'nothing here'}", indent=8)
        say(console, f"    source: {field.source}", indent=8)
    say(console, LEGEND, indent=2)
