"""Bars and scatter charts with a Pareto front, as self-contained SVG."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import Final, NamedTuple, NewType, TypeAlias

from ttsim.report.formatting import printable, printable_lines
from ttsim.report.sections import short
from ttsim.study.store import front

Markup = NewType("Markup", str)

STEPS: Final = (1, 2, 5, 10)
MOST_TICKS: Final = 6
WIDE: Final = 50  # least ratio of the ends of a logarithmic axis


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """An axis from `low` to `high`, linear or logarithmic."""

    low: float  # At its beginning
    high: float  # At its end; above the beginning
    logarithmic: bool = False  # Whether ratios lie evenly

    def share(self, value: float) -> float:
        """The position of a value on the axis, 0 to 1."""
        low, high, at = map(log10, (self.low, self.high, value)) if self.logarithmic else (self.low, self.high, value)
        return (at - low) / (high - low)

    def ticks(self) -> list[float]:
        """Round values on the axis."""
        if not self.logarithmic:
            step = _step((self.high - self.low) / MOST_TICKS)
            return [step * at for at in range(ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9) + 1)]
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        values = [factor * 10.0**power for power in powers for factor in STEPS[:-1]]
        inside = [value for value in values if self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)]
        whole = [value for value in inside if round(log10(value), 9).is_integer()]
        return whole if len(inside) > 2 * MOST_TICKS else inside


def scale_of(values: list[float], *, from_zero: bool = False) -> Scale:
    """An axis that covers some values, with round ends; logarithmic if the values are positive and far apart.

    With `from_zero`, as for bars, the axis begins at 0 and is linear.
    """
    low, high = min(values), max(values)
    if from_zero:
        low = min(low, 0.0)
    elif low > 0 and high / low > WIDE:
        power = 10.0 ** floor(log10(low))  # the greatest round value that is at most `low`
        below = power * max(factor for factor in STEPS if factor * power <= low * (1 + 1e-9))
        return Scale(low=below, high=_step(high), logarithmic=True)
    if low == high:
        room = abs(low) / 2 or 1.0
        low, high = (low, high + room) if from_zero else (low - room, high + room)
    step = _step((high - low) / MOST_TICKS)
    return Scale(low=step * floor(low / step + 1e-9), high=step * ceil(high / step - 1e-9))


def _step(size: float) -> float:
    """The least 1, 2 or 5 times a power of ten that is at least `size`."""
    power = 10.0 ** floor(log10(size))
    return power * next(factor for factor in STEPS if factor * power >= size * (1 - 1e-9))


def number(value: float) -> str:
    """A value as an axis names it: 1,200 or 0.05 or 3.5M."""
    size = abs(value)
    for least, prefix in ((1e9, "G"), (1e6, "M")):
        if size >= least:
            return f"{value / least:.4g}{prefix}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"


WIDTH: Final = 900  # pixels of every chart
MARGIN: Final = 12
BAR_HEIGHT: Final = 240
DOTS_HEIGHT: Final = 260
AXIS_WIDTH: Final = 70
TITLE_HEIGHT: Final = 34
LETTER: Final = 7.0  # pixels, about, of a letter
COLORS: Final = 8
STYLE: Final = """
svg { --ground: #ffffff; --ink: #1c2024; --quiet: #5b6570; --line: #d5dae0;
  --c0: #2f6db5; --c1: #d9822b; --c2: #3b9461; --c3: #b5446e; --c4: #7a5bb0; --c5: #8a6a3b;
  --c6: #2a9aa8; --c7: #7c8794; }
@media (prefers-color-scheme: dark) { svg { --ground: #14181c; --ink: #e6e9ec; --quiet: #a2adb8; --line: #39424b;
  --c0: #6ea8ea; --c1: #f0a860; --c2: #6cc492; --c3: #e584a6; --c4: #b39ae0; --c5: #c9a877;
  --c6: #63c9d6; --c7: #a2adb8; } }
.ground { fill: var(--ground); }
text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.title { font-size: 15px; font-weight: 600; }
.quiet { fill: var(--quiet); }
.middle { text-anchor: middle; } .end { text-anchor: end; }
.grid { stroke: var(--line); stroke-width: 1; }
.front { fill: none; stroke-width: 2; }
""" + "\n".join(f".color{at} {{ fill: var(--c{at}); }} .stroke{at} {{ stroke: var(--c{at}); }}" for at in range(COLORS))


def label(value: str) -> Markup:
    """A name, on one line."""
    return Markup(escape(printable(short(value))))


def tag(name: str, *children: Markup, **attributes: object) -> Markup:
    """An element; `class_` is its class, other underscores are hyphens."""
    attribute_text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{label(str(value))}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{attribute_text}>{''.join(children)}</{name}>")


def tooltip(words: str) -> Markup:
    """A text that shows over its element."""
    return tag("title", Markup(escape(printable_lines(words))))


def joined(elements: Iterable[Markup]) -> Markup:
    """Elements one after the other."""
    return Markup("\n".join(element for element in elements if element))


class Frame(NamedTuple):
    """The area of a chart's values, in pixels."""

    left: float
    top: float
    width: float
    height: float

    def across(self, share: float) -> float:
        """Pixels from the left."""
        return self.left + share * self.width

    def down(self, share: float) -> float:
        """Pixels from the top, for a share from the bottom."""
        return self.top + (1 - share) * self.height

    def upward(self, scale: Scale, name: str) -> Iterator[Markup]:
        """Horizontal lines with the values of a vertical axis, and its name above."""
        yield written(name, self.left, self.top - 8, "quiet")
        for value in scale.ticks():
            y = self.down(scale.share(value))
            yield line(self.left, y, self.across(1), y)
            yield written(number(value), self.left - 6, y + 4, "end")

    def sideways(self, scale: Scale, name: str) -> Iterator[Markup]:
        """Vertical lines with the values of a horizontal axis, and its name below."""
        bottom = self.down(0)
        for value in scale.ticks():
            x = self.across(scale.share(value))
            yield line(x, self.top, x, bottom)
            yield written(number(value), x, bottom + 16, "middle")
        yield written(name, self.across(0.5), bottom + 34, "middle", "quiet")


def written(value: str, x: float, y: float, *classes: str) -> Markup:
    """A text at a position; classes choose whether its start, middle or end is there."""
    attributes = {"class_": " ".join(classes)} if classes else {}
    return tag("text", label(value), x=pixels(x), y=pixels(y), **attributes)


def line(x1: float, y1: float, x2: float, y2: float) -> Markup:
    """A thin line of a frame."""
    return tag("line", x1=pixels(x1), y1=pixels(y1), x2=pixels(x2), y2=pixels(y2), class_="grid")


def box(x: float, y: float, width: float, height: float, words: str, class_: str, opacity: float = 1.0) -> Markup:
    """A rectangle with a tooltip."""
    sides = {"x": pixels(x), "y": pixels(y), "width": pixels(width), "height": pixels(height)}
    return tag(
        "rect",
        tooltip(words),
        class_=class_,
        fill_opacity=f"{opacity:.3f}",
        **sides,
    )


def key(names: Sequence[str], y: float) -> tuple[Markup, float]:
    """A legend of the series' colors from height `y` on, and its height; empty for a single series."""
    if len(names) < 2:
        return Markup(""), 0.0
    elements, x, lines = [], float(MARGIN), 1
    for at, name in enumerate(names):
        room = 26 + LETTER * len(name)
        if x > MARGIN and x + room > WIDTH:
            x, lines = float(MARGIN), lines + 1
        top = y + 18 * (lines - 1)
        elements += [box(x, top, 12, 12, name, color(at)), written(name, x + 17, top + 10)]
        x += room
    return joined(elements), 18.0 * lines + 6


def color(at: int) -> str:
    """The CSS class of a series."""
    return f"color{at % COLORS}"


def pixels(value: float) -> str:
    """A length, short."""
    return f"{value:.1f}".removesuffix(".0")


def cut(name: str, width: float) -> str:
    """A name, shortened in its middle to fit a width."""
    room = max(4, int(width / LETTER))
    return name if len(name) <= room else f"{name[: (room - 1) // 2]}…{name[len(name) - room // 2 :]}"


Drawn: TypeAlias = tuple[list[Markup], float]  # elements below the title, and the bottom of the chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Values of several series, side by side in groups."""

    title: str
    value_name: str  # The measured figure, with its unit
    groups: tuple[str, ...]
    # Name and values of each series, one value for each group; None if unknown
    series: tuple[tuple[str, tuple[float | None, ...]], ...]

    def drawn(self) -> Drawn | None:
        """A bar for each value; None without any value."""
        known = [value for _, values in self.series for value in values if value is not None]
        if not known:
            return None
        keys, key_height = key([name for name, _ in self.series], TITLE_HEIGHT)
        frame = Frame(AXIS_WIDTH, TITLE_HEIGHT + key_height + 24, WIDTH - AXIS_WIDTH - MARGIN, BAR_HEIGHT)
        scale, group = scale_of(known, from_zero=True), frame.width / len(self.groups)
        width = 0.8 * group / len(self.series)
        zero = frame.down(scale.share(0.0))
        elements = [keys, *frame.upward(scale, self.value_name)]
        for at, name in enumerate(self.groups):
            left = frame.left + (at + 0.1) * group
            for order, (series, values) in enumerate(self.series):
                value = values[at]
                if value is not None:
                    end = frame.down(scale.share(value))
                    words, x = f"{name}, {series}: {number(value)}", left + order * width
                    elements.append(box(x, min(zero, end), width, max(abs(zero - end), 0.5), words, color(order)))
            elements.append(written(cut(name, group), left + 0.4 * group, frame.down(0) + 16, "middle"))
        return elements, frame.down(0) + 34


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A candidate."""

    x: float
    y: float
    name: str
    series: str = ""  # Its series, which decides its color


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Candidates by two costs; a line joins the Pareto front of each series."""

    title: str
    x_name: str  # The first cost, with its unit
    y_name: str  # The second cost, with its unit
    dots: tuple[Dot, ...]

    def drawn(self) -> Drawn | None:
        """A dot for each candidate, large ones on the front; None without any candidate."""
        if not self.dots:
            return None
        names = list(dict.fromkeys(dot.series for dot in self.dots))
        keys, key_height = key(names, TITLE_HEIGHT)
        frame = Frame(AXIS_WIDTH, TITLE_HEIGHT + key_height + 24, WIDTH - AXIS_WIDTH - 3 * MARGIN, DOTS_HEIGHT)
        across, up = scale_of([dot.x for dot in self.dots]), scale_of([dot.y for dot in self.dots])
        elements = [keys, joined(frame.sideways(across, self.x_name)), *frame.upward(up, self.y_name)]
        for at, name in enumerate(names):
            own = [dot for dot in self.dots if dot.series == name]
            places = [(pixels(frame.across(across.share(dot.x))), pixels(frame.down(up.share(dot.y)))) for dot in own]
            best = front([(dot.x, dot.y) for dot in own])
            path = " ".join(",".join(places[order]) for order in best)
            elements.append(tag("polyline", points=path, class_=f"front stroke{at % COLORS}"))
            for order, (dot, (x, y)) in enumerate(zip(own, places, strict=True)):
                words = f"{dot.name}: {number(dot.x)} {self.x_name}, {number(dot.y)} {self.y_name}"
                shape = {"r": 5, "fill_opacity": "1"} if order in best else {"r": 3, "fill_opacity": "0.45"}
                elements.append(
                    tag(
                        "circle",
                        tooltip(words),
                        cx=x,
                        cy=y,
                        class_=color(at),
                        **shape,
                    )
                )
        return elements, frame.down(0) + 46


Chart = Bars | Scatter


def _drawn(chart: Chart) -> tuple[Markup, float]:
    """A chart as SVG elements from its upper left corner on, and its height in pixels."""
    nothing = [written("nothing to show: no value is known", MARGIN, TITLE_HEIGHT + 16, "quiet")]
    elements, height = chart.drawn() or (nothing, TITLE_HEIGHT + 40)
    return joined([written(chart.title, MARGIN, 22, "title"), *elements]), height


def to_svg(charts: Sequence[Chart]) -> str:
    """Charts one below the other, as an SVG file."""
    groups, top = [], 0.0
    for markup, height in map(_drawn, charts):
        groups.append(tag("g", markup, transform=f"translate(0 {pixels(top)})"))
        top += height
    return str(_svg(joined(groups), max(top, 1.0), "charts")) + "\n"


def _svg(markup: Markup, height: float, title: str) -> Markup:
    background = tag("rect", class_="ground", width=WIDTH, height=pixels(height))
    sides = {"width": WIDTH, "height": pixels(height), "viewBox": f"0 0 {WIDTH} {pixels(height)}"}
    return tag(
        "svg", tag("style", Markup(STYLE)), background, markup,
        xmlns="http://www.w3.org/2000/svg", role="img", aria_label=title, **sides,
    )  # fmt: skip
