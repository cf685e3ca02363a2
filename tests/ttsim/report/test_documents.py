"""Documents as a browser reads them: one script of data, nothing to load, and names that mean harm."""

import json
from html.parser import HTMLParser

import pytest

from device.cores import first_cores
from device.numbers.formats import BFLOAT16
from device.plan import CircularBuffer, Operation
from tests.ttsim.report.ran_operations import runs_of, untimed
from tests.ttsim.report.shown_pages import data_of
from ttsim.report.cycle_report import cycle_report
from ttsim.report.cycles import CallRun
from ttsim.report.network import LivingBuffer, network_report
from ttsim.report.pages import Source, page_of_network
from ttsim.report.sections import Field, Page, document, spans, table
from ttsim.report.writers.html.document import LIBRARY, SCRIPT, STYLE, page_frame, page_html

MOST_BYTES = 200_000  # of what every page has: 1.5 MB hold it and the figures of a whole network
ELEMENTS = ["html", "head", *4 * ["meta"], "title", "style", "body", "noscript", "p", *3 * ["script"]]
HOSTILE = {
    "HTML": '"><script>alert(1)</script>',
    "attribute": "' onload='x' srcdoc=\"",
    "control": "a\nb\r\t\x00\x1b[31m\u202e\u2028\x85",
    "end of everything": "]]><!-- &amp; --> </style></title></script></svg></iframe>",
    "template": "$data ${script} $$",
    "long": "<&\"'" * 2_500,
    "surrogate": "\ud800",
}


class Reader(HTMLParser):
    """What a browser reads: elements in order, attributes, and the text of each script."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.elements, self.attributes, self.texts, self.inside = [], [], [], False
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += attrs
        self.texts.append("")
        self.inside = True

    def handle_data(self, data):
        if self.inside:
            self.texts[-1] += data

    def handle_endtag(self, tag):
        self.inside = False


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
def test_hostile_names_are_only_data(name, page_named) -> None:
    page = page_named(name)
    written, shown = page_html(page), document(page)
    written.encode("utf-8")
    assert written == page_html(page_named(name))
    read = Reader(written)
    assert read.elements == ELEMENTS
    assert data_of(written) == shown  # no script, text or comment ends the data
    assert read.texts[-2:] == [LIBRARY, SCRIPT]
    texts = json.dumps(shown, ensure_ascii=False)
    assert not any(character in texts for character in "\x00\x1b\r\t\u202e\u2028\x85\ud800")
    assert len(written) < len(page_html(page_named("name"))) + 200_000  # Python is shown whole, up to 20,000 characters
    assert ("... (10,000 characters)" in texts) == (len(name) == 10_000)
    frame = Reader(page_frame(page))  # holds the document and nothing beside it
    assert (frame.elements, [key for key, _ in frame.attributes]) == (
        ["iframe"],
        ["title", "sandbox", "style", "srcdoc"],
    )
    assert frame.attributes[1] == ("sandbox", "allow-scripts")  # and not those of the page around it
    assert frame.attributes[3] == ("srcdoc", written)


def test_a_page_loads_nothing_and_runs_only_its_own_scripts(page_named) -> None:
    read = Reader(page_html(page_named("name")))
    attributes = dict(read.attributes)
    assert not {"src", "href"} & attributes.keys()
    (policy,) = (value for _, value in read.attributes if value.startswith("default-src 'none'"))
    assert policy.count("sha256-") == 3
    assert all(policy.count(word) == 1 for word in ("style-src", "script-src"))
    assert read.texts[7] == STYLE
    assert len(page_html(page_named("name"))) < MOST_BYTES


def test_a_table_drops_columns_without_a_figure_and_names_the_operations_of_its_rows() -> None:
    fields = [Field[int]("a", lambda row: row, "number", total=True), Field[int]("b", lambda row: None)]
    found = table("name", "Title", fields, [5, 6], ops=[[1, 2, 3, 7], []])
    assert found["columns"] == [{"name": "a", "unit": "number", "total": True}]
    assert (found["rows"], found["ops"]) == ([[5], [6]], [[1, 3, 7, 7], []])
    assert spans(range(4, 6)) == [4, 5]
