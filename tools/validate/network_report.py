"""Tables and sentences about the times of a network."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from device.spec.device_spec import DeviceSpec
from tools.validate.network_rows import TimedKind, WholeFigure
from tools.validate.network_run import LayerTime, Software

NS_PER_US = 1e3
NS_PER_MS = 1e6
KERNELS = ("Conv2d", "Matmul")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTime:
    """A network on one device."""

    model: str
    spec: DeviceSpec
    times: Mapping[Software, Sequence[LayerTime]]  # What became of its steps, by whose kernels were timed
    figures: Sequence[WholeFigure]  # What is known of the whole, on devices of this architecture; measurements first
    measured: WholeFigure | None  # The measurement on this device; None if there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over a network."""

    calls_ns: float  # Of all calls of convolutions
    between_ns: float  # Of what is timed between them
    operations: int  # Device operations that are timed
    left_out: Mapping[str, int]  # Those of the real library that are not simulated, by name
    failed: int  # Layers without a time, or with a part of it missing

    @property
    def timed_ns(self) -> float:
        """Everything that is timed."""
        return self.calls_ns + self.between_ns


def totals(times: Sequence[LayerTime]) -> Totals:
    """Sum up."""
    return Totals(
        calls_ns=sum(one.time_ns for one in times),
        between_ns=_sum(one for layer in times for one in layer.between),
        operations=sum(len(one.operations) + len(one.between) for one in times),
        left_out=Counter(name for one in times for name in one.left_out),
        failed=sum(bool(one.reason) for one in times),
    )


def layers_table(network: NetworkTime) -> Table:
    """One line for each layer, in microseconds; stages as the release has them."""
    table = Table(title=f"{network.model} on {network.spec.name}: calls of convolutions, predicted us")
    for heading in ("layer", "shape", "output on"):
        table.add_column(heading)
    for heading in ("halo", "move", "conv", "other", *(one.value for one in network.times), "before it"):
        table.add_column(heading, justify="right")
    first, *others = network.times.values()
    for number, one in enumerate(first):
        if one.step.row is None:
            continue
        parts = [_named(one.operations, names) for names in (("Halo",), ("Move",), KERNELS)]
        cells = [*parts, one.time_ns - sum(parts), one.time_ns, *(other[number].time_ns for other in others)]
        shown = [_us(cell) for cell in cells] if one.operations else ["-"] * len(cells)
        before = _us(_sum(one.between)) if one.between else ""
        table.add_row(one.step.row["layer"], shape(one), one.scheme, *shown, before)
    return table


def kinds_table(network: NetworkTime) -> Table:
    """Sums by kind of operation, in microseconds."""
    table = Table(title=f"{network.model} on {network.spec.name}: predicted us by kind of operation")
    for heading in ("where", "operation"):
        table.add_column(heading)
    for heading in ("count", *(one.value for one in network.times)):
        table.add_column(heading, justify="right")
    for where, chosen in (("in the calls", "operations"), ("between them", "between")):
        sums: list[dict[str, list[float]]] = []
        for times in network.times.values():
            found: dict[str, list[float]] = {}
            for one in times:
                for kind in getattr(one, chosen):
                    found.setdefault(kind.name, []).append(kind.time_ns)
            sums.append(found)
        for name, spent in sorted(sums[0].items(), key=lambda item: -sum(item[1])):
            table.add_row(where, name, str(len(spent)), *(_us(sum(each.get(name, ()))) for each in sums))
    return table


def whole_table(network: NetworkTime) -> Table:
    """The sum beside every figure of the whole network, in milliseconds."""
    table = Table(title=f"{network.model} on {network.spec.name}: the sum beside the whole network")
    table.add_column("what")
    for heading in ("ms", *(f"timed, {one.value}" for one in network.times)):
        table.add_column(heading, justify="right")
    sums = [totals(times) for times in network.times.values()]
    table.add_row("calls of convolutions", "", *(_ms(one.calls_ns) for one in sums))
    table.add_row("what stands between them", "", *(_ms(one.between_ns) for one in sums))
    table.add_row("all that is timed", "", *(_ms(one.timed_ns) for one in sums))
    for figure in network.figures:
        row = figure.row
        kind = "measured" if figure.measured else "target"
        source = f"{row['source_path']}" if figure.measured else row["notes"] or row["source_path"]
        shares = (f"{100 * (one.timed_ns / figure.time_ns - 1):+.1f} %" for one in sums)
        table.add_row(f"{kind}, {row['device']}: {source}", _ms(figure.time_ns), *shares)
    return table


def sentences(network: NetworkTime) -> list[str]:
    """What the sum is, and what it leaves out, in words."""
    lines = []
    for software, times in network.times.items():
        sums = totals(times)
        missing = ", ".join(f"{count} {name}" for name, count in sums.left_out.items())
        count = sum(sums.left_out.values())
        text = f"{network.spec.name}, kernels of the {software.value}: the convolutions take {_ms(sums.calls_ns)} ms"
        text += f", with what stands between them {_ms(sums.timed_ns)} ms in {sums.operations} operations."
        text += f" Left out: {count} operations ({missing})." if count else " Nothing is left out."
        if network.measured is not None:
            text += _against(sums, network.measured, count)
        else:
            text += " There is no measurement of this device."
        if sums.failed:
            text += f" The sum is too low: {sums.failed} layers are listed as not timed."
        lines.append(text)
    if len(network.times) > 1 and network.measured is not None:
        lines.append(
            "The measurement does not say its software. That it is of 2025 is inferred: it lies near the target of the "
            "2025-12 tree and far from the current one."
            if _near_older_target(network)
            else "The measurement does not say its software."
        )
    lines.append(
        "Only totals of this network are published, no time of a layer or an operation: errors of operations may "
        "cancel out in the sum. No constant was fitted to the total; the readings (shards that a profile shows, whose "
        "software) were chosen with it known."
    )
    return lines


def _near_older_target(network: NetworkTime) -> bool:
    """Whether the target nearest to the measurement is that of the tree of 2025."""
    if network.measured is None:
        return False
    whole = network.measured.time_ns
    targets = [one for one in network.figures if not one.measured]
    nearest = min(targets, key=lambda one: abs(one.time_ns - whole), default=None)
    return nearest is not None and "2025" in nearest.row["notes"]


def _against(sums: Totals, measured: WholeFigure, left_out: int) -> str:
    """The sum beside a measurement."""
    whole = measured.time_ns
    counted = f", {measured.operations} were measured" if measured.operations else ""
    return (
        f" With them {sums.operations + left_out} operations run here{counted}. "
        f"Of the measured {_ms(whole)} ms the convolutions are {100 * sums.calls_ns / whole:.1f} %, "
        f"all that is timed {100 * sums.timed_ns / whole:.1f} %."
    )


def problems_table(rows: Iterable[tuple[str, str]]) -> Table:
    """Layers and rows without a time, with the reason."""
    table = Table(title="not timed")
    table.add_column("layer or row")
    table.add_column("reason")
    for name, reason in rows:
        table.add_row(name, reason)
    return table


def shape(one: LayerTime) -> str:
    """What a layer computes, in short."""
    row = one.step.row or {}
    kind = "T" if row["op"] == "conv_transpose2d" else ""
    return f"{row['in_h']}x{row['in_w']} {row['in_c']}->{row['out_c']} {kind}k{row['k']}s{row['s']}"


def _named(kinds: Iterable[TimedKind], names: Sequence[str]) -> float:
    return _sum(one for one in kinds if one.name in names)


def _sum(kinds: Iterable[TimedKind]) -> float:
    return sum(one.time_ns for one in kinds)


def _us(time_ns: float) -> str:
    return f"{time_ns / NS_PER_US:.1f}"


def _ms(time_ns: float) -> str:
    return f"{time_ns / NS_PER_MS:.3f}"
