"""The page of a layer that runs, of one that does not, and of hostile names."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from device.spec.device_spec import load_spec
from ttsim.report.formatting import cycles
from ttsim.report.memory import LayerResult
from ttsim.report.pages import page_of_layers
from ttsim.report.writers.html.assets import HASH, SCRIPT
from ttsim.report.writers.html.document import page_html
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.run import Settings, run_layer

SPEC = load_spec("wormhole_n150")
LAYER = Layer(name="up", in_channels=32, out_channels=32, input_height=8, input_width=8, stride=(2, 2))
HOSTILE = (
    '"><script>alert(1)</script>',
    "' onload='x",
    "a\nb\r\x00\x1b[31m\u202e",
    "]]><!-- &amp; --> </style></title>",
    "n" * 10_000,
    "\ud800",
)


class Reader(HTMLParser):
    """What a browser reads: elements in order, open ones, attributes, text."""

    VOID = ("meta",)

    def __init__(self, document: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words = ""
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
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


def test_equal_input_gives_equal_bytes(result) -> None:
    again = run_layer(LAYER, Settings(spec=SPEC, values="off", suggestions=False))
    assert page(result) == page(again)


def test_the_figures_are_those_of_the_report(result) -> None:
    words = Reader(page(result)).words
    summary = result.summary
    assert summary is not None
    assert summary.cycles is not None
    for operation in summary.cycles.operations:
        assert operation.name in words
        assert cycles(operation.cycles) in words
    for operation in summary.operations:
        assert f"{operation.used_bytes:,}" in words
        assert f"{operation.headroom_bytes:,}" in words
        for circular in operation.circular_buffers:
            assert circular.view or f"{circular.size_bytes:,}" in words
    math = summary.cycles.total.math
    assert f"{math.issued_flops:,}" in words
    assert f"{math.useful_flops:,}" in words
    assert result.source in words


def test_it_needs_nothing_else(result) -> None:
    read = Reader(page(result))
    assert not read.open
    assert not {"link", "img", "iframe", "object"} & set(read.names)
    assert read.names.count("script") == 1
    assert f"<script>{SCRIPT}</script>" in page(result)
    assert f"script-src '{HASH}'\"" in page(result)
    assert all(name != "src" and not (name == "href" and not value.startswith("#")) for name, value in read.attributes)


def test_what_does_not_run_says_why_first() -> None:
    failed = LayerResult(layer=LAYER, error="Out of Memory: <1> B\nand more")
    document = page(failed)
    assert "It failed." in document
    assert "Out of Memory: &lt;1&gt; B\nand more" in document
    assert "<h3>" not in document


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_names(name, result) -> None:
    plain = Reader(page(result, result))
    layer = replace(result.layer, name=name, input_dtype=name)
    summary = result.summary
    assert summary is not None
    operation = summary.operations[-1]
    circular = tuple(replace(one, name=name, cores=name) for one in operation.circular_buffers)
    changed = replace(summary, operations=(*summary.operations[:-1], replace(operation, circular_buffers=circular)))
    document = page(replace(result, layer=layer, summary=changed, source=name), result)
    document.encode("utf-8")
    read = Reader(document)
    assert not read.open
    assert set(read.names) == set(plain.names)
    assert {key for key, _ in read.attributes} == {key for key, _ in plain.attributes}
    assert not any(one in document for one in ("\x00", "\x1b", "\u202e", "\r"))


def test_long_names_do_not_fill_the_page(result) -> None:
    named = replace(result, layer=replace(result.layer, name="n" * 10_000))
    assert len(page(named)) < len(page(result)) + 1000
