"""A network with hostile names as a page, and as a frame in a notebook."""

from html.parser import HTMLParser

import pytest

from device.cores import first_cores
from device.numbers.formats import BFLOAT16
from device.plan import CircularBuffer, Operation
from tests.ttsim.report.ran_operations import runs_of, untimed
from ttsim.report.cycle_report import cycle_report
from ttsim.report.cycles import CallRun
from ttsim.report.network import network_report
from ttsim.report.page_parts import Page, Source
from ttsim.report.pages import page_of_network
from ttsim.report.runs import LivingBuffer
from ttsim.report.writers.html.document import page_frame, page_html

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
    """What a browser reads: elements in order and their attributes, and those that are open."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.values: list[str] = []
        self.open: list[str] = []
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.values += [value for _, value in attrs]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def page_named(halo, conv, spec):
    """The page of a network where everything that a script can name is called so."""
    cores = first_cores(4, 8, 8)

    def named(name: str) -> Page:
        circular = CircularBuffer(
            name=name, size_bytes=2048, page_bytes=2048, data_format=BFLOAT16, cores=cores, view_of=None
        )
        living = LivingBuffer(name=name, memory="L1", bank_bytes=64, address=9000, function=name, where=name)
        step = Operation(name=name, inputs=(), circular_buffers=(circular,))
        ran = (halo, untimed(name, name), conv)
        runs = runs_of(spec, *ran, function=name, where=name, step=step, buffers=(living,), l1=(2048, 64))
        report = cycle_report([CallRun(name="f", ran=ran, spec=spec)], spec)
        sources = (Source(name=name, text=name), Source(name=name, text=f"x = {name!r}"))
        return page_of_network(network_report(runs, spec), report, spec, sources)

    return named


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_are_only_text(name, page_named) -> None:
    document = page_html(page_named(name))
    document.encode("utf-8")
    read = Reader(document)
    assert not read.open
    assert read.elements == Reader(page_html(page_named("name"))).elements
    assert not any(one in document for one in "\x00\x1b\r\t\u202e\u2028\x85")
    assert max(map(len, read.values)) < LONGEST_ATTRIBUTE
    assert len(document) < len(page_html(page_named("name"))) + 200_000  # Python is told whole, up to 20,000 characters


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_frame_holds_the_document_and_nothing_beside_it(name, page_named) -> None:
    read = Reader(page_frame(page_named(name)))
    assert read.elements == [("iframe", ("title", "sandbox", "style", "srcdoc"))]
    assert not read.open
    assert read.values[1] == "allow-scripts"  # and not those of the page around it
    assert read.values[3] == page_html(page_named(name))


def test_what_is_cut_says_how_long_it_was(page_named) -> None:
    assert "... (10,000 characters)" in page_html(page_named("n" * 10_000))
