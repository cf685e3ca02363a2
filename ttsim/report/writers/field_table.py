"""The fields of a device for a terminal, drawn with rich."""

from rich.console import Console
from rich.table import Table

from ttsim.report.devices import DeviceFigures, moved
from ttsim.report.writers.cycle_table import escaped

LEGEND = (
    "moves: measured on small calls of every program. Cycles are those of plans that are held, launch those that pass "
    "between their kernels; numbers are elasticities, log(cycles) over log(figure). On another clock a cycle takes "
    "another time."
)


def print_fields(console: Console, device: DeviceFigures) -> None:
    """A row for each field."""
    table = Table(title=escaped(device.name), title_justify="left", show_edge=False, pad_edge=False)
    for heading in ("field", "value", "unit", "better", "moves", "source"):
        table.add_column(heading, justify="right" if heading == "value" else "left", overflow="fold")
    for field in device.fields:
        words = "; ".join(moved(field)) or "nothing here"
        value = f"{field.value:,}" if type(field.value) in (int, float) else str(field.value)
        cells = (field.name, value, field.unit, field.better, words, field.source)
        table.add_row(*map(escaped, cells))
    console.print(table)
    console.print(LEGEND, highlight=False, soft_wrap=True)
