"""Pages as a browser reads them: of a layer, of one that fails, and of a network, with names that mean harm."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from device.cores import first_cores
from device.numbers.formats import BFLOAT16
from device.plan import CircularBuffer, Operation
from device.spec.device_spec import load_spec
from tests.ttsim.report.ran_operations import LAYER, runs_of, untimed
from ttsim.report.cycle_report import cycle_report
from ttsim.report.cycles import CallRun
from ttsim.report.formatting import TableColumn, cycles
from ttsim.report.memory import LayerResult
from ttsim.report.network import LivingBuffer, network_report
from ttsim.report.pages import Page, Source, page_of_layers, page_of_network
from ttsim.report.writers.html.document import HASH, SCRIPT, page_frame, page_html
from ttsim.report.writers.html.elements import hint, label, more, section, table, tag, text
from ttsim.study.layers.run import Settings, run_layer

SPEC = load_spec("wormhole_n150")
LONGEST_ATTRIBUTE = 300  # escaped: a name of 120 characters in a label
HOSTILE = {
    "HTML": '"><script>alert(1)</script>',
    "attribute": "' onload='x' srcdoc=\"",
    "control": "a\nb\r\t\x00\x1b[31m\u202e\u2028\x85",
    "end of everything": "]]><!-- &amp; --> </style></title></script></svg></iframe>",
    "long": "<&\"'" * 2_500,
    "surrogate": "\ud800",
}


class Reader(HTMLParser):
    """What a browser reads: elements in order with their attributes, and text; all elements are closed."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.elements, self.attributes, self.open, self.words = [], [], [], ""
        self.feed(document)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


@pytest.fixture(scope="module")
def result() -> LayerResult:
    return run_layer(LAYER, Settings(spec=SPEC, values="off", suggestions=False))


def page(*results: LayerResult) -> str:
    return page_html(page_of_layers(results, SPEC))


def test_names_are_one_line_and_texts_have_theirs() -> None:
    assert label("a\n<b>") == "a\\n&lt;b&gt;"
    assert text("a\n<b>") == "a\n&lt;b&gt;"
    assert tag("p", class_="a", aria_label='"x"') == '<p class="a" aria-label="&quot;x&quot;"></p>'
    assert label("n" * 121) == "n" * 120 + "... (121 characters)"
    assert hint("n" * 401) == f"<title>{'n' * 400}... (401 characters)</title>"  # a hint is cut later
    assert section("Heading") == section("Heading", text("")) == more("Heading", text("")) == ""
    columns = [TableColumn[str]("#", lambda row: row, words=True), TableColumn[str]("nothing", lambda row: "")]
    assert ("nothing" in table("Caption", columns, ["0"]), table("Caption", columns, [])) == (False, "")


def test_the_figures_of_a_layer_are_those_of_the_report_and_it_needs_nothing_else(result) -> None:
    document, summary = page(result), result.summary
    read, math = Reader(document), summary.cycles.total.math
    figures = [result.source, f"{math.issued_flops:,}", f"{math.useful_flops:,}"]
    for op, use in zip(summary.cycles.operations, summary.operations, strict=True):
        buffers = [f"{circular.size_bytes:,}" for circular in use.circular_buffers if not circular.view]
        figures += [op.name, cycles(op.cycles), f"{use.used_bytes:,}", f"{use.headroom_bytes:,}", *buffers]
    assert [figure for figure in figures if figure not in read.words] == []
    names = [name for name, _ in read.elements]
    assert not {"link", "img", "iframe", "object"} & set(names)
    assert names.count("script") == 1
    assert f"<script>{SCRIPT}</script>" in document
    assert f"script-src '{HASH}'\"" in document
    assert all(name != "src" and not (name == "href" and not value.startswith("#")) for name, value in read.attributes)


def test_what_does_not_run_says_why_first() -> None:
    document = page(LayerResult(layer=LAYER, error="Out of Memory: <1> B\nand more"))
    assert "It failed." in document
    assert "Out of Memory: &lt;1&gt; B\nand more" in document
    assert "<h3>" not in document


@pytest.mark.parametrize("name", [HOSTILE["end of everything"], HOSTILE["control"]])
def test_hostile_names_of_a_layer_stay_names(name, result) -> None:
    use = result.summary.operations[-1]
    changed = replace(use, circular=tuple(event._replace(name=name) for event in use.circular))
    summary = replace(result.summary, operations=(*result.summary.operations[:-1], changed))
    layer = replace(result.layer, name=name, input_dtype=name)
    document = page(replace(result, layer=layer, summary=summary, source=name), result)
    read = Reader(document)
    assert set(read.elements) == set(Reader(page(result, result)).elements)
    assert not any(one in document for one in ("\x00", "\x1b", "\u202e", "\r"))


@pytest.fixture
def page_named(halo, conv, spec):
    """The page of a network where everything that a script can name is called so."""
    cores = first_cores(4, 8, 8)

    def named(name: str) -> Page:
        circular = CircularBuffer(name=name, size_bytes=2048, page_bytes=2048, data_format=BFLOAT16, cores=cores)
        living = LivingBuffer(name=name, memory="L1", bank_bytes=64, address=9000, function=name, where=name)
        step = Operation(name=name, inputs=(), circular_buffers=(circular,))
        ran = (halo, untimed(name, name), conv)
        runs = runs_of(spec, *ran, function=name, where=name, step=step, buffers=(living,), l1=(2048, 64))
        report = cycle_report([CallRun(name="f", ran=ran, spec=spec)], spec)
        sources = (Source(name, name), Source(name, f"x = {name!r}"))
        return page_of_network(network_report(runs, spec), report, spec, sources)

    return named


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_of_a_network_are_only_text(name, page_named) -> None:
    document, plain = page_html(page_named(name)), page_html(page_named("name"))
    document.encode("utf-8")
    read = Reader(document)
    assert read.elements == Reader(plain).elements
    assert not any(one in document for one in "\x00\x1b\r\t\u202e\u2028\x85")
    assert max(len(value) for _, value in read.attributes) < LONGEST_ATTRIBUTE
    assert len(document) < len(plain) + 200_000  # Python is told whole, up to 20,000 characters
    assert ("... (10,000 characters)" in document) == (len(name) == 10_000)
    frame = Reader(page_frame(page_named(name)))  # holds the document and nothing beside it
    assert frame.elements == [("iframe", ("title", "sandbox", "style", "srcdoc"))]
    assert frame.attributes[1] == ("sandbox", "allow-scripts")  # and not those of the page around it
    assert frame.attributes[3] == ("srcdoc", document)
