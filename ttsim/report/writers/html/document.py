"""A page as one self-contained document: the same bytes for the same page."""

from html import escape
from typing import Final

from ttsim.report.advice import advice_lines, paste_lines
from ttsim.report.explain import operation_lines
from ttsim.report.pages import Page, Part
from ttsim.report.writers.html import pictures, tables
from ttsim.report.writers.html.assets import HASH, SCRIPT, STYLE
from ttsim.report.writers.html.elements import Markup, joined, label, lines, more, section, tag, text

POLICY: Final = f"default-src 'none'; style-src 'unsafe-inline'; script-src '{HASH}'"  # nothing is loaded
TOLD_CALLS: Final = 8  # of more, the words would be longer than the tables
TIMELINE: Final = (
    "Kernel time from left to right. Below, for each stage of the slowest cores, how busy it is while the operation "
    "runs (wide bar), and how much of the critical path is its (narrow bar): the stronger the color, the more."
)
CORES: Final = (
    "The stronger the color, the more: cycles of all cycles, circular buffers of L1, bytes that are moved of the core "
    "that moves most. Where a model does not tell cores apart, each moves as many bytes as the others."
)
GAINS: Final = (
    "Where there is most to gain: what operations take above the least that matrix units, DRAM and networks need for "
    "them. No operation gets all of it back."
)
SOURCES: Final = (
    "As an estimate of each call on a device that is open; suggestions=True tries other configs. A halo's output is "
    "moved there, too, if L1 has a better place for it."
)
CHART: Final = (
    "Each point is an operation that multiplies and moves bytes from or to DRAM: issued work of each byte to the "
    "right, of each second upward, in powers of ten. Below the lines is what the machine can do."
)
OPEN_ROWS: Final = 40  # longer tables open when asked for


def page_html(page: Page) -> str:
    """The document.

    Args:
        page: What it shows.
    """
    several = len(page.parts) > 1
    head = joined(
        [
            Markup('<meta charset="utf-8">'),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Markup('<meta name="color-scheme" content="light dark">'),
            tag("title", label(page.title)),
            tag("style", Markup(STYLE)),
        ]
    )
    links = (tag("li", tag("a", label(one.name), href=f"#part{at}")) for at, one in enumerate(page.parts))
    body = joined(
        [
            tag("a", text("Skip to the report"), class_="skip", href="#report"),
            tag("header", tag("h1", label(page.title)), tag("p", text(f"{page.device}, {page.clock_hz / 1e9:g} GHz"))),
            tag("nav", tag("ul", *links), aria_label="Parts") if several else Markup(""),
            tag(
                "main",
                tables.overview_table(page) if several else Markup(""),
                *(_part(one, at, one.name if several else "What ran") for at, one in enumerate(page.parts)),
                id="report",
            ),
            tag("footer", tag("p", text(page.counted))),
            tag("script", Markup(SCRIPT)),
        ]
    )
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'


def _part(part: Part, at: int, heading: str) -> Markup:
    return tag(
        "article",
        tag("h2", label(heading), id=f"part{at}"),
        _verdict(part),
        section(
            "Operations",
            _long(
                len(part.operations), "All operations", tables.operations_table(part.operations, detailed=part.detailed)
            ),
            _sums(part),
        ),
        section("What to change", _changes(part)),
        section("L1 of a core", *_memory(part)),
        section("Timeline", *_timeline(part)),
        section("Cores", *_cores(part)),
        section("Roofline", *_roofline(part)),
        section("Issued and useful work", Markup("") if part.total is None else tables.flops_table(part.total)),
        section("Accuracy", _accuracy(part)),
        section("Partition", tables.partitions_table(part.partitions)),
        section("In words", *_words(part)),
        section("The call as Python" if len(part.sources) == 1 else "Calls as Python", *_sources(part)),
    )


def _verdict(part: Part) -> Markup:
    asked = joined(joined([tag("dt", text(name)), tag("dd", text(value))]) for name, value in part.asked)
    if part.error is not None:
        told = joined([tag("p", tag("strong", text("It failed."))), tag("pre", text(part.error), tabindex=0)])
        return joined([tag("div", told, class_="verdict failed"), tag("dl", asked)])
    return joined([tag("div", lines(part.verdict), class_="verdict"), tag("dl", asked)])


def _sums(part: Part) -> Markup:
    return joined(
        [
            tables.sums_table("By kind", part.kinds),
            _long(len(part.layers), "By line of the script", tables.sums_table("By line of the script", part.layers)),
        ]
    )


def _memory(part: Part) -> tuple[Markup, ...]:
    if part.l1 is None or not part.l1.blocks:
        return ()
    return (
        tag("p", text("Operations from left to right, addresses upward.")),
        pictures.l1_picture(part.l1, part.steps),
        tables.memory_table(part.memory),
        more(f"All {len(part.l1.blocks)} buffers", tables.l1_table(part.l1)),
    )


def _timeline(part: Part) -> tuple[Markup, ...]:
    if not any(one.width_share for one in part.operations):
        return ()
    return (
        tag("p", text(TIMELINE if part.stages else "Kernel time from left to right.")),
        pictures.timeline(part.operations, part.stages, part.times),
        more("Stages in numbers", tables.stages_table(part.operations, part.stages) if part.detailed else Markup("")),
        lines(part.between),
    )


def _cores(part: Part) -> tuple[Markup, ...]:
    if part.total is None or part.grid is None:
        return ()
    return (
        tag("p", text(CORES)),
        pictures.heat_maps(part.grid),
        more("Cores in numbers", tables.grid_table(part.grid)),
    )


def _roofline(part: Part) -> tuple[Markup, ...]:
    if not part.roofs:
        return ()
    told = "What each resource of the device needs at least, with all of it busy; the full width is what it takes."
    if len(part.roofs) < len(part.operations):
        told = f"{told} The {len(part.roofs)} longest operations."
    chart = Markup("")
    if part.chart is not None:
        chart = joined([pictures.roof_chart_picture(part.chart), tag("p", text(CHART))])
    return (
        chart,
        tag("p", text(told)),
        pictures.roof_bars(part.roofs),
        more("Roofline in numbers", tables.roof_table(part.roofs)),
    )


def _changes(part: Part) -> Markup:
    gains = joined([tag("p", text(GAINS)), tables.excesses_table(part.excesses)]) if part.excesses else Markup("")
    advice = part.advice
    if advice is None:
        return gains
    return joined(
        [
            gains,
            tables.advice_table(advice),
            _source("\n".join(one.strip() for one in paste_lines(advice))),
            more("In words", lines(advice_lines(advice))),
            more("Which part of the machine it hangs on", tables.machine_table(advice))
            if advice.sensitivity
            else Markup(""),
        ]
    )


def _words(part: Part) -> tuple[Markup, ...]:
    if len(part.calls) > TOLD_CALLS:
        return ()
    return tuple(lines(line.removeprefix("- ") for line in operation_lines(call)) for call in part.calls)


def _accuracy(part: Part) -> Markup:
    if part.accuracy is not None:
        return tables.accuracy_table(part.accuracy)
    return lines([part.unknown_accuracy] if part.unknown_accuracy else [])


def _sources(part: Part) -> tuple[Markup, ...]:
    if len(part.sources) <= 1:
        return tuple(_source(one.text) for one in part.sources)
    every = joined(joined([tag("h4", label(one.name)), _source(one.text)]) for one in part.sources)
    return (tag("p", text(SOURCES)), more(f"{len(part.sources)} calls", every))


def _source(source: str) -> Markup:
    return tag("pre", tag("code", text(source)), tabindex=0) if source else Markup("")


def _long(rows: int, heading: str, content: Markup) -> Markup:
    return content if rows <= OPEN_ROWS or not content else more(f"{heading} ({rows})", content)


def page_frame(page: Page) -> str:
    """The frame, whose scripts can reach nothing outside it.

    Args:
        page: What it shows.
    """
    return (
        f'<iframe title="{label(page.title)}" sandbox="allow-scripts" '
        'style="width: 100%; height: 40rem; border: 1px solid #8888; resize: vertical" '
        f'srcdoc="{escape(page_html(page))}"></iframe>'
    )
