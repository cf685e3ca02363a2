"""A network as a page: its operations in order, with what the same calls took."""

from dataclasses import replace

from tests.ttsim.report.page.ran_operations import ran
from ttsim.report.network import network_report
from ttsim.report.pages import page_of_network
from ttsim.report.writers.html.document import page_html


def test_a_network_is_one_part(report_with_a_move, spec) -> None:
    operations = [
        ran("HaloDeviceOperation", 1000, where="net.py:<3>"),
        ran("Move", None),
        ran("Conv2dDeviceOperation", 4000),
    ]
    network = network_report(operations, (), spec)
    (part,) = page_of_network(network, report_with_a_move, spec).parts
    assert [one.time and one.time.cycles for one in part.deeds] == [1000, None, 4000]
    assert [one.left_share for one in part.deeds] == [0.0, 0.2, 0.2]
    assert part.deeds[1].untimed == "nobody knows"
    assert part.verdict[0].startswith(
        "It ran: 5,000 cycles, 5.00 us of kernel time, in 3 device operations of one call"
    )
    document = page_html(page_of_network(network, report_with_a_move, spec))
    assert "net.py:&lt;3&gt;" in document
    assert "nobody knows" in document


def test_nothing_ran(report, spec) -> None:
    empty = replace(report, calls=(), total=replace(report.total, cores=()))
    (part,) = page_of_network(network_report([], (), spec), empty, spec).parts
    assert part.deeds == ()
    assert page_html(page_of_network(network_report([], (), spec), empty, spec))
