"""Pictures of charts."""

from collections.abc import Sequence
from typing import Final

from ttsim.report.writers.html.elements import Markup, joined, tag, text
from ttsim.study.front import front
from ttsim.study.plots.charts import Bars, Chart, Dot, HeatMap, Scatter
from ttsim.study.plots.picture import (
    COLORS,
    LETTER,
    MARGIN,
    TITLE_HEIGHT,
    WIDTH,
    Drawn,
    Frame,
    box,
    color,
    cut,
    html_document,
    key,
    pixels,
    sideways,
    svg_document,
    titled,
    upward,
    written,
)
from ttsim.study.plots.scale import number, scale_of

ROW_HEIGHT: Final = 30
BAR_HEIGHT: Final = 240
DOTS_HEIGHT: Final = 260
AXIS_WIDTH: Final = 70
PALEST, DARKEST = 0.08, 0.95


def to_svg(charts: Sequence[Chart]) -> str:
    """Charts one below the other, as an SVG file."""
    return svg_document(map(drawn, charts))


def to_html(title: str, charts: Sequence[Chart]) -> str:
    """Charts one below the other, as a page that needs nothing else."""
    return html_document(title, map(drawn, charts))


def drawn(chart: Chart) -> Drawn:
    """A picture; of a chart without any value, one that says so."""
    if isinstance(chart, HeatMap):
        return _heat_map(chart)
    return _bars(chart) if isinstance(chart, Bars) else _scatter(chart)


def _nothing(title: str) -> Drawn:
    told = written("nothing to show: no value is known", MARGIN, TITLE_HEIGHT + 16, "quiet")
    return Drawn(joined([titled(title), told]), TITLE_HEIGHT + 40, title)


def _heat_map(chart: HeatMap) -> Drawn:
    """A cell for each value, the darker the more, with the value in it."""
    known = [value for row in chart.cells for value in row if value is not None]
    if not known:
        return _nothing(chart.title)
    names = max([len(chart.y_name), *map(len, chart.rows)])
    left = min(WIDTH / 3, MARGIN + 8 + LETTER * names)
    frame = Frame(left, TITLE_HEIGHT + 40, WIDTH - left - MARGIN, ROW_HEIGHT * len(chart.rows))
    scale, width = scale_of(known), frame.width / len(chart.columns)
    parts = [titled(chart.title), written(chart.x_name, frame.across(0.5), TITLE_HEIGHT + 10, "middle", "quiet")]
    parts.append(written(cut(chart.y_name, left), left - 8, frame.top - 8, "end", "quiet"))
    for at, name in enumerate(chart.columns):
        parts.append(written(cut(name, width), frame.left + (at + 0.5) * width, frame.top - 8, "middle"))
    for down, (name, cells) in enumerate(zip(chart.rows, chart.cells, strict=True)):
        top = frame.top + ROW_HEIGHT * down
        parts.append(written(cut(name, left - 8), left - 8, top + 19, "end"))
        for at, value in enumerate(cells):
            x, told = frame.left + at * width, f"{chart.x_name} {chart.columns[at]}, {chart.y_name} {name}: "
            if value is None:
                parts.append(box(x, top, width, ROW_HEIGHT, f"{told}does not run", "none"))
                continue
            shade = PALEST + (DARKEST - PALEST) * scale.share(value)
            parts.append(box(x, top, width, ROW_HEIGHT, f"{told}{number(value)} {chart.unit}", "cell", shade))
            parts.append(written(cut(number(value), width), x + width / 2, top + 19, "middle"))
    bottom = frame.top + frame.height
    parts.append(written(f"{chart.unit}, least {number(min(known))}", left, bottom + 18, "quiet"))
    return Drawn(joined(parts), bottom + 34, chart.title)


def _bars(chart: Bars) -> Drawn:
    """A bar for each value, groups from left to right."""
    known = [value for _, values in chart.series for value in values if value is not None]
    if not known:
        return _nothing(chart.title)
    keys, key_height = key([name for name, _ in chart.series], TITLE_HEIGHT)
    frame = Frame(AXIS_WIDTH, TITLE_HEIGHT + key_height + 24, WIDTH - AXIS_WIDTH - MARGIN, BAR_HEIGHT)
    scale, group = scale_of(known, from_zero=True), frame.width / len(chart.groups)
    width = 0.8 * group / len(chart.series)
    zero = frame.down(scale.share(0.0))
    parts = [titled(chart.title), keys, upward(frame, scale, chart.value_name)]
    for at, name in enumerate(chart.groups):
        left = frame.left + (at + 0.1) * group
        for order, (series, values) in enumerate(chart.series):
            value = values[at]
            if value is not None:
                end = frame.down(scale.share(value))
                told = f"{name}, {series}: {number(value)}"
                x = left + order * width
                parts.append(box(x, min(zero, end), width, max(abs(zero - end), 0.5), told, color(order)))
        parts.append(written(cut(name, group), left + 0.4 * group, frame.top + frame.height + 16, "middle"))
    return Drawn(joined(parts), frame.top + frame.height + 34, chart.title)


def _scatter(chart: Scatter) -> Drawn:
    """A dot for each candidate, and a line that joins those of a series that no other of it beats."""
    if not chart.dots:
        return _nothing(chart.title)
    names = list(dict.fromkeys(one.series for one in chart.dots))
    keys, key_height = key(names, TITLE_HEIGHT)
    frame = Frame(AXIS_WIDTH, TITLE_HEIGHT + key_height + 24, WIDTH - AXIS_WIDTH - 3 * MARGIN, DOTS_HEIGHT)
    across, up = scale_of([one.x for one in chart.dots]), scale_of([one.y for one in chart.dots])

    def place(one: Dot) -> tuple[str, str]:
        return pixels(frame.across(across.share(one.x))), pixels(frame.down(up.share(one.y)))

    parts = [titled(chart.title), keys, sideways(frame, across, chart.x_name), upward(frame, up, chart.y_name)]
    for at, name in enumerate(names):
        own = [one for one in chart.dots if one.series == name]
        best = front([(one.x, one.y) for one in own])
        path = " ".join(",".join(place(own[one])) for one in best)
        parts.append(tag("polyline", points=path, class_=f"front stroke{at % COLORS}"))
        parts += [_dot(one, chart, place(one), color(at), large=order in best) for order, one in enumerate(own)]
    return Drawn(joined(parts), frame.top + frame.height + 46, chart.title)


def _dot(one: Dot, chart: Scatter, at: tuple[str, str], style: str, *, large: bool) -> Markup:
    told = f"{one.name}: {number(one.x)} {chart.x_name}, {number(one.y)} {chart.y_name}"
    shape = {"r": 5, "fill_opacity": "1"} if large else {"r": 3, "fill_opacity": "0.45"}
    return tag("circle", tag("title", text(told)), cx=at[0], cy=at[1], class_=style, **shape)
