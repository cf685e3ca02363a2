"""What people look at after a run: a page and a timeline, as files."""

from collections.abc import Iterator, Sequence

from device.spec.device_spec import DeviceSpec
from ttsim.diagnose import estimate_source
from ttsim.report.cycles.report import CycleReport
from ttsim.report.network.figures import PassOperation
from ttsim.report.network.report import NetworkReport
from ttsim.report.page.figures import Page, Source
from ttsim.report.page.pages import page_of_network
from ttsim.report.page.trace import trace_of
from ttsim.report.writers.chrome_trace import trace_json_gz
from ttsim.report.writers.html.document import page_html
from ttsim.runtime.traces import RanCall


def page_of_run(network: NetworkReport, report: CycleReport, calls: Sequence[RanCall], spec: DeviceSpec) -> Page:
    """The page of all that a profile saw.

    Args:
        network: The operations in order.
        report: The cycles of the same calls.
    """
    return page_of_network(network, report, spec, tuple(_sources(network, calls)))


def _sources(network: NetworkReport, calls: Sequence[RanCall]) -> Iterator[Source]:
    """The convolutions as Python, each under the number of its first device operation."""
    first: dict[int, PassOperation] = {}
    for one in network.operations:
        first.setdefault(one.call, one)
    for number, call in enumerate(calls):
        if call.asked is not None:
            begins = first[number]
            place = f", {begins.where}" if begins.where else ""
            yield Source(name=f"#{begins.number} {call.function}{place}", text=estimate_source(call.asked))


def page_files(
    network: NetworkReport, report: CycleReport, calls: Sequence[RanCall], spec: DeviceSpec
) -> dict[str, bytes]:
    """Files by the ends of their names: ``html``, which needs nothing else, and ``trace.json.gz`` for Perfetto.

    The arguments are those of `page_of_run`.
    """
    page = page_of_run(network, report, calls, spec)
    return {
        "html": page_html(page).encode("utf-8"),
        "trace.json.gz": trace_json_gz(trace_of(page.parts[0], spec)),
    }
