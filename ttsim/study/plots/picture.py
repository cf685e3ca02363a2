"""The parts of charts: frames with axes, texts, keys, and the documents they stand in."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ttsim.report.writers.html.elements import Markup, joined, label, tag, text
from ttsim.study.plots.scale import Scale, number

WIDTH: Final = 900  # pixels of every chart
MARGIN: Final = 12
TITLE_HEIGHT: Final = 34
LETTER: Final = 7.0  # pixels, about, of a letter
COLORS: Final = 8
STYLE: Final = """
svg { --ground: #ffffff; --ink: #1c2024; --quiet: #5b6570; --line: #d5dae0; --hot: #d9822b;
  --c0: #2f6db5; --c1: #d9822b; --c2: #3b9461; --c3: #b5446e; --c4: #7a5bb0; --c5: #8a6a3b;
  --c6: #2a9aa8; --c7: #7c8794; }
@media (prefers-color-scheme: dark) { svg { --ground: #14181c; --ink: #e6e9ec; --quiet: #a2adb8; --line: #39424b;
  --hot: #b3661a; --c0: #6ea8ea; --c1: #f0a860; --c2: #6cc492; --c3: #e584a6; --c4: #b39ae0; --c5: #c9a877;
  --c6: #63c9d6; --c7: #a2adb8; } }
.ground { fill: var(--ground); }
text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.title { font-size: 15px; font-weight: 600; }
.quiet { fill: var(--quiet); }
.middle { text-anchor: middle; } .end { text-anchor: end; }
.grid { stroke: var(--line); stroke-width: 1; }
.cell { fill: var(--hot); stroke: var(--ground); stroke-width: 1; }
.none { fill: var(--line); fill-opacity: .35; }
.front { fill: none; stroke-width: 2; }
""" + "\n".join(f".color{at} {{ fill: var(--c{at}); }} .stroke{at} {{ stroke: var(--c{at}); }}" for at in range(COLORS))


class Drawn(NamedTuple):
    """A chart as markup."""

    markup: Markup  # Elements of SVG, from the left upper corner on
    height: float  # Pixels; all are as wide
    title: str  # What it shows


class Frame(NamedTuple):
    """Where values are drawn, in pixels."""

    left: float
    top: float
    width: float
    height: float

    def across(self, share: float) -> float:
        """Pixels from the left."""
        return self.left + share * self.width

    def down(self, share: float) -> float:
        """Pixels from the top, of a share from the bottom."""
        return self.top + (1 - share) * self.height


def written(value: str, x: float, y: float, *classes: str) -> Markup:
    """A text; its baseline begins, or with a class ends or has its middle, there."""
    given = {"class_": " ".join(classes)} if classes else {}
    return tag("text", label(value), x=pixels(x), y=pixels(y), **given)


def titled(title: str) -> Markup:
    """The heading of a chart."""
    return written(title, MARGIN, 22, "title")


def line(x1: float, y1: float, x2: float, y2: float) -> Markup:
    """A thin line of a frame."""
    return tag("line", x1=pixels(x1), y1=pixels(y1), x2=pixels(x2), y2=pixels(y2), class_="grid")


def box(x: float, y: float, width: float, height: float, told: str, class_: str, opacity: float = 1.0) -> Markup:
    """A rectangle that says what it is where the pointer rests on it."""
    sides = {"x": pixels(x), "y": pixels(y), "width": pixels(width), "height": pixels(height)}
    return tag("rect", tag("title", text(told)), class_=class_, fill_opacity=f"{opacity:.3f}", **sides)


def upward(frame: Frame, scale: Scale, name: str) -> Markup:
    """Lines across a frame, with the values of an axis that goes up, and its name above."""
    parts = [written(name, frame.left, frame.top - 8, "quiet")]
    for value in scale.ticks():
        y = frame.down(scale.share(value))
        parts += [
            line(frame.left, y, frame.left + frame.width, y),
            written(number(value), frame.left - 6, y + 4, "end"),
        ]
    return joined(parts)


def sideways(frame: Frame, scale: Scale, name: str) -> Markup:
    """Lines up a frame, with the values of an axis that goes to the right, and its name below."""
    parts, bottom = [], frame.top + frame.height
    for value in scale.ticks():
        x = frame.across(scale.share(value))
        parts += [line(x, frame.top, x, bottom), written(number(value), x, bottom + 16, "middle")]
    return joined([*parts, written(name, frame.left + frame.width / 2, bottom + 34, "middle", "quiet")])


def key(names: Sequence[str], y: float) -> tuple[Markup, float]:
    """Colors with the names of series, in lines from some height on, and their height; nothing for a single one."""
    if len(names) < 2:
        return Markup(""), 0.0
    parts, x, lines = [], float(MARGIN), 1
    for at, name in enumerate(names):
        room = 26 + LETTER * len(name)
        if x > MARGIN and x + room > WIDTH:
            x, lines = float(MARGIN), lines + 1
        top = y + 18 * (lines - 1)
        parts += [box(x, top, 12, 12, name, color(at)), written(name, x + 17, top + 10)]
        x += room
    return joined(parts), 18.0 * lines + 6


def color(at: int) -> str:
    """The class of a series."""
    return f"color{at % COLORS}"


def pixels(value: float) -> str:
    """A length, short."""
    return f"{value:.1f}".removesuffix(".0")


def cut(name: str, width: float) -> str:
    """A name, shortened in its middle to what fits a width."""
    room = max(4, int(width / LETTER))
    return name if len(name) <= room else f"{name[: (room - 1) // 2]}…{name[len(name) - room // 2 :]}"


def svg_document(charts: Iterable[Drawn]) -> str:
    """Charts one below the other, as an SVG file."""
    parts, top = [], 0.0
    for one in charts:
        parts.append(tag("g", one.markup, transform=f"translate(0 {pixels(top)})"))
        top += one.height
    return str(_svg(joined(parts), max(top, 1.0), "charts")) + "\n"


def html_document(title: str, charts: Iterable[Drawn]) -> str:
    """Charts one below the other, as a page that needs nothing else."""
    figures = joined(tag("figure", _svg(one.markup, one.height, one.title)) for one in charts)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = joined(
        [
            Markup('<meta charset="utf-8">'),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Markup('<meta name="color-scheme" content="light dark">'),
            tag("title", label(title)),
            tag("style", Markup("figure { margin: 0 0 1rem; } svg { max-width: 100%; height: auto; }")),
        ]
    )
    body = joined([tag("h1", label(title), style="font: 600 20px system-ui, sans-serif"), figures])
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'


def _svg(markup: Markup, height: float, title: str) -> Markup:
    ground = tag("rect", class_="ground", width=WIDTH, height=pixels(height))
    sides = {"width": WIDTH, "height": pixels(height), "viewBox": f"0 0 {WIDTH} {pixels(height)}"}
    style = tag("style", Markup(STYLE))
    return tag("svg", style, ground, markup, xmlns="http://www.w3.org/2000/svg", role="img", aria_label=title, **sides)
