"""Pictures of a page, as inline SVG in shares of their width and height; each is told in a table, too."""

from collections.abc import Callable, Sequence
from typing import Final

from ttsim.report.cycles.explain import cycles, percent, time
from ttsim.report.memory.l1_map import CIRCULAR, L1Block, L1Map
from ttsim.report.page.figures import Cell, Deed, Grid, Roof
from ttsim.report.writers.html.elements import Markup, joined, label, share, tag, text

COLORS: Final = 8  # of operations, in order of their names' first appearance
KIND_CLASSES: Final = {CIRCULAR: "circular", "L1": "buffer", "L1_SMALL": "small"}
NAMED_HEIGHT: Final = 0.035  # of the picture: lower blocks have no room for a name
NUMBERED: Final = 40  # operations that an axis numbers one by one


def colors_of(deeds: Sequence[Deed]) -> dict[str, str]:
    """A class for each name of an operation."""
    names = dict.fromkeys(one.name for one in deeds)
    return {name: f"color{at % COLORS}" for at, name in enumerate(names)}


def timeline(deeds: Sequence[Deed], stages: Sequence[str]) -> Markup:
    """A lane for operations, and one for each stage of their slowest cores: the darker, the busier."""
    colors = colors_of(deeds)
    timed = [one for one in deeds if one.time is not None]
    bars = [_bar(one, f"{_told(one)}, bound by {one.time.bound_by}", colors[one.name], "") for one in timed if one.time]
    lanes = [_lane("operations", bars)]
    for stage in stages:
        found = []
        for one in timed:
            for own in one.time.stages if one.time else ():
                if own.stage == stage and own.busy_share:
                    told = f"{_told(one)}: {stage} busy {percent(own.busy_share)}, waiting {percent(own.stall_share)}"
                    found.append(_bar(one, told, "busy", f"{own.busy_share:.3f}"))
        lanes.append(_lane(stage, found))
    keys = (tag("li", tag("i", class_=color), label(name)) for name, color in colors.items())
    return joined([tag("div", *lanes, class_="lanes"), tag("ul", *keys, class_="key")])


def l1_picture(memory: L1Map) -> Markup:
    """Operations to the right, addresses of a core's L1 upward."""
    firmware = tag(
        "rect",
        tag("title", text(f"firmware: {memory.base_bytes:,} B")),
        class_="firmware",
        x="0",
        width="100%",
        y=share(1 - memory.base_share),
        height=share(memory.base_share),
    )
    numbers = range(memory.operations) if memory.operations <= NUMBERED else (0, f"... {memory.operations} operations")
    axis = tag("div", *(tag("span", text(f"#{one}")) for one in numbers), class_="axis", aria_hidden="true")
    keys = (tag("li", tag("i", class_=style), text(kind)) for kind, style in KIND_CLASSES.items())
    picture = tag(
        "svg",
        firmware,
        *map(_block, memory.blocks),
        class_="l1",
        role="img",
        aria_label=f"Buffers in L1 of a core over {memory.operations} operations; the table below lists them",
    )
    return joined([picture, axis, tag("ul", *keys, class_="key")])


def heat_maps(grid: Grid) -> Markup:
    """Four pictures of the same cores."""
    shown: tuple[tuple[str, Callable[[Cell], float], Callable[[Cell], str]], ...] = (
        ("at work", lambda one: one.share, lambda one: f"{cycles(one.cycles)} cycles"),
        ("busiest stage", lambda one: one.busy_share, lambda one: f"{cycles(one.busy_cycles)} cycles"),
        ("waiting", lambda one: one.stall_share, lambda one: f"{cycles(one.stall_cycles)} cycles"),
        ("circular buffers", lambda one: one.circular_share, lambda one: f"{one.circular_bytes:,} B"),
    )
    return tag("div", *(_heat_map(name, grid, of, told) for name, of, told in shown), class_="maps")


def roof_bars(roofs: Sequence[Roof]) -> Markup:
    """For each operation what matrix units, DRAM and networks need at least; the full width is what it takes."""
    shown = []
    for one in roofs:
        parts = (("math", one.math_share), ("DRAM", one.dram_share), ("network", one.network_share))
        bars = (
            tag(
                "rect",
                tag("title", text(f"{name} needs at least {percent(value)} of the time")),
                class_=f"roof-{name.lower()}",
                width=share(value),
                height=6,
                y=8 * at,
            )
            for at, (name, value) in enumerate(parts)
        )
        picture = tag("svg", *bars, class_="roof", aria_hidden="true")
        shown.append(tag("div", tag("span", label(f"#{one.deed.number} {one.deed.name}")), picture, class_="lane"))
    keys = (tag("li", tag("i", class_=f"roof-{name.lower()}"), text(name)) for name in ("math", "DRAM", "network"))
    return joined([tag("div", *shown, class_="lanes"), tag("ul", *keys, class_="key")])


def _told(one: Deed) -> str:
    taken = "" if one.time is None else f", {cycles(one.time.cycles)} cycles, {time(one.time.nanoseconds)}"
    return f"#{one.number} {one.name}{taken}"


def _bar(one: Deed, told: str, style: str, opacity: str) -> Markup:
    darkness = {"fill_opacity": opacity} if opacity else {}
    return tag(
        "rect",
        tag("title", label(told)),
        class_=style,
        x=share(one.left_share),
        width=share(one.width_share),
        height="100%",
        **darkness,
    )


def _lane(name: str, bars: Sequence[Markup]) -> Markup:
    return tag("div", tag("span", text(name)), tag("svg", *bars, class_="bars", aria_hidden="true"), class_="lane")


def _block(one: L1Block) -> Markup:
    held = one.held
    until = f"#{one.first}" if one.first == one.last else f"#{one.first} to #{one.last}"
    made = f", of {held.made}" if held.made else ""
    told = f"{held.name}: {held.kind}, {held.size_bytes:,} B at {held.address:,}, {until}{made}"
    named = [tag("text", label(held.name), x=4, y=12)] if one.height_share >= NAMED_HEIGHT else []
    return tag(
        "svg",
        tag("title", label(told)),
        tag("rect", class_=KIND_CLASSES[held.kind], width="100%", height="100%"),
        *named,
        x=share(one.left_share),
        y=share(one.top_share),
        width=share(one.width_share),
        height=share(one.height_share),
    )


def _heat_map(name: str, grid: Grid, of: Callable[[Cell], float], told: Callable[[Cell], str]) -> Markup:
    cells = (
        tag(
            "rect",
            tag("title", text(f"core {one.column}-{one.row}: {name} {told(one)}, {percent(of(one))}")),
            class_="cell",
            x=one.column,
            y=one.row,
            width=1,
            height=1,
            fill_opacity=f"{of(one):.3f}",
        )
        for one in grid.cells
    )
    picture = tag(
        "svg",
        *cells,
        class_="grid",
        viewBox=f"0 0 {grid.columns} {grid.rows}",
        role="img",
        aria_label=f"{name}, core by core; the table below has the numbers",
    )
    return tag("figure", picture, tag("figcaption", text(name)))
