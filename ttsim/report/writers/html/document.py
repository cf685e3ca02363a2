"""A page as one self-contained document: the same bytes for the same page."""

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Final

from ttsim.report.advice import BOTTLENECK, SHOWN_FIGURES, advice_lines, paste_lines
from ttsim.report.explain import operation_lines
from ttsim.report.pages import Page, Part
from ttsim.report.writers.html import pictures, tables
from ttsim.report.writers.html.elements import Markup, joined, label, lines, more, section, table, tag, text


def _asset(name: str) -> str:
    return "\n" + files("ttsim.report.writers.html").joinpath(name).read_text(encoding="utf-8")


STYLE: Final = _asset("page.css")
SCRIPT: Final = _asset("page.js")
HASH: Final = f"sha256-{b64encode(sha256(SCRIPT.encode()).digest()).decode()}"


POLICY: Final = f"default-src 'none'; style-src 'unsafe-inline'; script-src '{HASH}'"  # nothing is loaded
SHOWN_CALLS: Final = 8  # explaining more calls would take more room than the tables
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
ROOFS: Final = "What each resource of the device needs at least, with all of it busy; the full width is what it takes."
NOTHING: Final = Markup("")
OPEN_ROWS: Final = 40  # longer tables open when asked for


def page_html(page: Page) -> str:
    """The document that shows a page."""
    several = len(page.parts) > 1
    links = (tag("li", tag("a", label(part.name), href=f"#part{at}")) for at, part in enumerate(page.parts))
    parts = (_part(part, at, part.name if several else "What ran") for at, part in enumerate(page.parts))
    body = joined(
        [
            tag("a", text("Skip to the report"), class_="skip", href="#report"),
            tag("header", tag("h1", label(page.title)), tag("p", text(f"{page.device}, {page.clock_hz / 1e9:g} GHz"))),
            tag("nav", tag("ul", *links), aria_label="Parts") if several else NOTHING,
            tag("main", table(*tables.OVERVIEW, page.parts) if several else NOTHING, *parts, id="report"),
            tag("footer", tag("p", text(page.counted))),
            tag("script", Markup(SCRIPT)),
        ]
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{label(page.title)}</title>
<style>{STYLE}</style>
</head>
<body>
{body}
</body>
</html>
"""


def _part(part: Part, at: int, heading: str) -> Markup:
    shown = tables.IN_DETAIL if part.detailed else tables.IN_ORDER
    return tag(
        "article",
        tag("h2", label(heading), id=f"part{at}"),
        _verdict(part),
        section(
            "Operations",
            _long(len(part.operations), "All operations", table(*shown, part.operations)),
            tables.sums_table("By kind", part.kinds),
            _long(len(part.layers), "By line of the script", tables.sums_table("By line of the script", part.layers)),
        ),
        section("What to change", *_changes(part)),
        section("L1 of a core", *_memory(part)),
        section("Timeline", *_timeline(part)),
        section("Cores", *_cores(part)),
        section("Roofline", *_roofline(part)),
        section("Issued and useful work", NOTHING if part.total is None else tables.flops_table(part.total)),
        section("Accuracy", tables.accuracy_table(part), lines(filter(None, [part.unknown_accuracy]))),
        section("Partition", table(*tables.PARTITIONS, part.partitions)),
        section("In words", *_words(part)),
        section("The call as Python" if len(part.sources) == 1 else "Calls as Python", *_sources(part)),
    )


def _verdict(part: Part) -> Markup:
    request = joined(joined([tag("dt", text(name)), tag("dd", text(value))]) for name, value in part.asked.items())
    said, style = lines(part.verdict), "verdict"
    if part.error is not None:
        said = joined([tag("p", tag("strong", text("It failed."))), tag("pre", text(part.error), tabindex=0)])
        style = "verdict failed"
    return joined([tag("div", said, class_=style), tag("dl", request)])


def _memory(part: Part) -> Iterator[Markup]:
    if part.l1 is not None and part.l1.blocks:
        yield tag("p", text("Operations from left to right, addresses upward."))
        yield pictures.l1_picture(part.l1, part.steps)
        yield table(*tables.MEMORY, part.memory)
        yield more(f"All {len(part.l1.blocks)} buffers", table(*tables.L1_BLOCKS, part.l1.blocks))


def _timeline(part: Part) -> Iterator[Markup]:
    if any(op.width_share for op in part.operations):
        yield tag("p", text(TIMELINE if part.stages else "Kernel time from left to right."))
        yield pictures.timeline(part.operations, part.stages, part.times)
        yield more("Stages in numbers", tables.stages_table(part.timed, part.stages) if part.detailed else NOTHING)
        yield lines(part.between)


def _cores(part: Part) -> Iterator[Markup]:
    if part.total is not None and part.grid is not None:
        yield tag("p", text(CORES))
        yield pictures.heat_maps(part.grid)
        yield more("Cores in numbers", table(*tables.GRID, part.grid.cores))


def _roofline(part: Part) -> Iterator[Markup]:
    if part.roofs:
        if part.chart is not None:
            yield pictures.roof_chart_picture(part.chart)
            yield tag("p", text(CHART))
        longest = f" The {len(part.roofs)} longest operations." if len(part.roofs) < len(part.operations) else ""
        yield tag("p", text(f"{ROOFS}{longest}"))
        yield pictures.roof_bars(part.roofs)
        yield more("Roofline in numbers", table(*tables.ROOFS, part.roofs))


def _changes(part: Part) -> Iterator[Markup]:
    if part.excesses:
        yield tag("p", text(GAINS))
        yield table(*tables.EXCESSES, part.excesses)
    advice = part.advice
    if advice is not None:
        together = [] if advice.together is None else [advice.together]
        yield table(*tables.CHANGES, (*advice.changes, *together, *advice.at_a_price))
        yield _source("\n".join(line.strip() for line in paste_lines(advice)))
        yield more("In words", lines(advice_lines(advice)))
        yield more(BOTTLENECK, table(*tables.MACHINE, advice.sensitivity[:SHOWN_FIGURES]))


def _words(part: Part) -> Iterator[Markup]:
    if len(part.calls) <= SHOWN_CALLS:
        yield from (lines(line.removeprefix("- ") for line in operation_lines(call)) for call in part.calls)


def _sources(part: Part) -> Iterator[Markup]:
    if len(part.sources) > 1:
        every = joined(joined([tag("h4", label(source.name)), _source(source.text)]) for source in part.sources)
        yield tag("p", text(SOURCES))
        yield more(f"{len(part.sources)} calls", every)
    else:
        yield from (_source(source.text) for source in part.sources)


def _source(source: str) -> Markup:
    return tag("pre", tag("code", text(source)), tabindex=0) if source else NOTHING


def _long(rows: int, heading: str, content: Markup) -> Markup:
    return content if rows <= OPEN_ROWS or not content else more(f"{heading} ({rows})", content)


def page_frame(page: Page) -> str:
    """The page in a frame whose scripts can reach nothing outside it."""
    return (
        f'<iframe title="{label(page.title)}" sandbox="allow-scripts" '
        'style="width: 100%; height: 40rem; border: 1px solid #8888; resize: vertical" '
        f'srcdoc="{escape(page_html(page))}"></iframe>'
    )
