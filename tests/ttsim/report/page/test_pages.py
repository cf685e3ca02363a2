"""A network as a page: its operations in order, with what the same calls took."""

from tests.ttsim.report.ran_operations import runs_of, untimed
from ttsim.report.cycle_report import cycle_report
from ttsim.report.network import network_report
from ttsim.report.pages import page_of_network, page_of_pass
from ttsim.report.runs import Runs
from ttsim.report.writers.html.document import page_html


def test_a_network_is_one_part(report_with_a_move, halo, conv, spec) -> None:
    places = [{"where": "net.py:<3>"}, {}, {}]
    network = network_report(runs_of(spec, halo, untimed(), conv, facts=places), spec)
    (part,) = page_of_network(network, report_with_a_move, spec).parts
    assert [one.time and one.time.cycles for one in part.operations] == [1000, None, 4000]
    assert [one.left_share for one in part.operations] == [0.0, 0.2, 0.2]
    assert part.operations[1].untimed == "nobody knows"
    assert part.verdict[0].startswith(
        "It ran: 5,000 cycles, 5.00 us of kernel time, in 3 device operations of one call"
    )
    assert part.stages == ("start", "reader", "math", "network", "dram")
    assert (part.roofs[0].op.number, part.excesses[0].op.number, len(part.chart.points)) == (2, 2, 1)
    (of_network,) = page_of_pass(network).parts
    assert (of_network.stages, of_network.roofs, of_network.excesses, of_network.chart) == ((), (), (), None)
    document = page_html(page_of_network(network, report_with_a_move, spec))
    assert "net.py:&lt;3&gt;" in document
    assert "nobody knows" in document


def test_nothing_ran(spec) -> None:
    page = page_of_network(network_report(Runs(spec.clock_hz, spec), spec), cycle_report([], spec), spec)
    assert page.parts[0].operations == ()
    assert page_html(page)
