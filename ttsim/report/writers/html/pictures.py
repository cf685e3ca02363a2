"""Pictures of a page, as inline SVG in shares of their width and height; a table has the same figures."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Final

from ttsim.report.formatting import count_of, cycles, percent, time
from ttsim.report.memory import CIRCULAR, DEVICE_OPERATION, L1Block, L1Map
from ttsim.report.network import OpRun
from ttsim.report.pages import Grid, RoofChart, Tick
from ttsim.report.writers.html.elements import Markup, hint, image, label, picture, share, short, tag, text

COLORS: Final = tuple(f"color{at}" for at in range(12))  # of operations, in order of their names' first appearance
KIND_CLASSES: Final = {CIRCULAR: "circular", "L1": "buffer", "L1_SMALL": "small"}
NAMED_HEIGHT: Final = 0.035  # of the picture: lower blocks have no room for a name
LAST_SHARE: Final = 0.95  # of an axis: texts of later marks are right-aligned
NAMED_WIDTH: Final = 0.1  # of the picture: narrower blocks have no room for a name


def timeline(operations: Sequence[OpRun], stages: Sequence[str], times: Sequence[Tick]) -> Markup:
    """A lane for operations, and a lane for each stage of their slowest cores; darker bars are busier."""
    colors = dict(zip(dict.fromkeys(op.name for op in operations), cycle(COLORS), strict=False))  # CSS classes
    timed = [operation for operation in operations if not operation.untimed]
    bars = [_bar(op, f"{_summary(op)}, bound by {op.bound_by}{_by(op.place)}", colors[op.name]) for op in timed]
    lanes = [_lane("operations", bars), *(_stage_lane(stage, timed) for stage in stages)]
    axis = tag("div", tag("span"), _axis(times), class_="lane")
    name = "Timeline of operations and of the stages of their slowest cores; the table below has the numbers"
    return picture(name, tag("div", *lanes, axis, class_="lanes"), _key(colors))


def l1_picture(memory: L1Map, steps: Sequence[Tick]) -> Markup:
    """The map of L1: operations to the right, addresses upward."""
    place = {"x": "0", "width": "100%", "y": share(1 - memory.base_share), "height": share(memory.base_share)}
    firmware = tag("rect", hint(f"firmware: {memory.base_bytes:,} B"), class_="firmware", **place)
    name = f"Buffers in L1 of a core over {memory.operations} operations; the table below lists them"
    drawn = image(name, firmware, *map(_block, memory.blocks), class_="l1")
    return picture(name, drawn, _axis(steps), _key(KIND_CLASSES))


def roof_bars(roofs: Sequence[OpRun]) -> Markup:
    """For each operation the least time of matrix units, DRAM and networks, as shares of the operation's time."""
    shown = []
    for op in roofs:
        bars = []
        for at, (name, least) in enumerate(op.time.limit_shares.items() if op.time else ()):
            summary = hint(f"#{op.number} {op.name}: {name} needs at least {percent(least)} of the time")
            bars.append(tag("rect", summary, class_=f"roof-{name.lower()}", width=share(least), height=6, y=8 * at))
        name = tag("span", label(f"#{op.number} {op.name.removesuffix(DEVICE_OPERATION)}"))
        shown.append(tag("div", name, tag("svg", *bars, class_="roof", aria_hidden="true"), class_="lane"))
    title = "What matrix units, DRAM and networks need at least; the table below has the numbers"
    key = _key({name: f"roof-{name.lower()}" for name in ("math", "DRAM", "network")})
    return picture(title, tag("div", *shown, class_="lanes"), key)


def roof_chart_picture(chart: RoofChart) -> Markup:
    """The roofline chart."""
    lines = (
        tag("line", hint(name), class_="roofline", x1=share(x1), y1=share(y1), x2=share(x2), y2=share(y2))
        for name, (x1, y1), (x2, y2) in chart.lines
    )
    names = (
        tag("text", text(name), x=share(x), y=share(y), dx=-4, dy=-4, text_anchor="end")
        for name, _, (x, y) in chart.lines
    )
    scale = (
        tag("text", text(tick.text), x=4, y=share(1 - tick.share), dy=-2, class_="scale") for tick in chart.upward[:-1]
    )
    points = (tag("circle", hint(_placed(op)), cx=share(x), cy=share(y), r=5) for op, (x, y) in chart.points)
    name = "Roofline chart: work by bytes of DRAM to the right, work by time upward; the table has the numbers"
    return picture(name, image(name, *lines, *names, *scale, *points, class_="chart"), _axis(chart.across))


def _placed(op: OpRun) -> str:
    assert op.time is not None
    rate, intensity = count_of(op.time.issued_flops_per_second), count_of(op.time.roofline.issued_flops_per_dram_byte)
    return f"{_summary(op)}: issues {rate}FLOP/s, {intensity}FLOP of each byte from or to DRAM"


def _key(styles: Mapping[str, str]) -> Markup:
    return tag("ul", *(tag("li", tag("i", class_=style), label(name)) for name, style in styles.items()), class_="key")


def _summary(op: OpRun) -> str:
    taken = "" if op.untimed else f", {cycles(op.cycles)} cycles, {time(op.nanoseconds)}"
    return f"#{op.number} {short(op.name)}{taken}"


def _by(place: str) -> str:
    return f", of {short(place)}" if place else ""


def _axis(ticks: Sequence[Tick]) -> Markup:
    anchors = ("end" if tick.share > LAST_SHARE else "start" for tick in ticks)
    marks = (
        tag("text", text(tick.text), x=share(tick.share), y=12, text_anchor=anchor)
        for tick, anchor in zip(ticks, anchors, strict=True)
    )
    lines = (tag("line", x1=share(tick.share), x2=share(tick.share), y1=0, y2=3) for tick in ticks)
    return tag("svg", *lines, *marks, class_="axis", aria_hidden="true") if ticks else Markup("")


def _bar(op: OpRun, summary: str, style: str, **places: str) -> Markup:
    across = {"x": share(op.left_share), "width": share(op.width_share), "y": "0", "height": "100%"}
    return tag("rect", hint(summary), class_=style, **{**across, **places})


def _stage_lane(name: str, operations: Sequence[OpRun]) -> Markup:
    bars = []
    for operation in operations:
        for own in operation.time.stages if operation.time else ():
            if own.stage == name and (own.busy_cycles or own.critical_cycles):
                shares = f"busy {percent(own.busy_share)}, waiting {percent(own.stall_share)}"
                summary = f"{_summary(operation)}: {name} {shares}, {percent(own.critical_share)} of the critical path"
                busy = {"height": "65%", "fill_opacity": f"{own.busy_share:.3f}"}
                critical = {"y": "65%", "height": "35%", "fill_opacity": f"{own.critical_share:.3f}"}
                bars += [_bar(operation, summary, "busy", **busy), _bar(operation, summary, "critical", **critical)]
    return _lane(name, bars)


def _lane(name: str, bars: Sequence[Markup]) -> Markup:
    return tag("div", tag("span", text(name)), tag("svg", *bars, class_="bars", aria_hidden="true"), class_="lane")


def _block(block: L1Block) -> Markup:
    buffer = block.held
    until = f"#{block.first}" if block.first == block.last else f"#{block.first} to #{block.last}"
    place = f"{buffer.size_bytes:,} B at {buffer.address:,}, {until}{_by(buffer.made)}"
    style = KIND_CLASSES[buffer.kind]
    room = block.height_share >= NAMED_HEIGHT and block.width_share >= NAMED_WIDTH
    return tag(
        "svg",
        hint(f"{short(buffer.name)}: {buffer.kind}, {place}"),
        tag("rect", class_=style, width="100%", height="100%"),
        *([tag("text", label(buffer.name), class_=f"on-{style}", x=4, y=12)] if room else ()),
        x=share(block.left_share),
        y=share(block.top_share),
        width=share(block.width_share),
        height=share(block.height_share),
    )


def heat_maps(grid: Grid) -> Markup:
    """Heat maps of the cores, one for each figure."""
    maps = []
    for name, unit, whole, figures, shares in grid.maps:
        cells = []
        for core, figure, part in zip(grid.cores, figures, shares, strict=True):
            summary = f"core {core.column}-{core.row}: {name} {figure:,} {unit}, {percent(part)} {whole}"
            place = {"x": core.column, "y": core.row, "width": 1, "height": 1, "fill_opacity": f"{part:.3f}"}
            cells.append(tag("rect", hint(summary), class_="cell", **place))
        title = f"{name}, core by core; the table below has the numbers"
        drawn = image(title, *cells, class_="grid", viewBox=f"0 0 {grid.columns} {grid.rows}")
        least, most = min(figures), max(figures)
        span = f"{least:,} to {most:,} {unit}" if least < most else f"{most:,} {unit}"
        maps.append(tag("figure", drawn, tag("figcaption", tag("b", text(name)), text(f" {span}"))))
    return picture("Cores of the grid; the table below has the numbers", tag("div", *maps, class_="maps"))
