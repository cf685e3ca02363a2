"""Report classes with HTML for notebooks, and the page and the timeline of a saved report."""

from collections.abc import Iterator, Sequence

from device.spec.device_spec import DeviceSpec
from ttsim.report.cycle_report import CycleReport
from ttsim.report.network import NetworkReport
from ttsim.report.pages import Page, Source, page_of_calls, page_of_network, page_of_pass
from ttsim.report.trace import trace_json_gz
from ttsim.report.writers.html.document import page_frame, page_html
from ttsim.runtime.call_source import estimate_source
from ttsim.runtime.traces import RanCall


def page_of_run(network: NetworkReport, report: CycleReport, calls: Sequence[RanCall], spec: DeviceSpec) -> Page:
    """The page of a profile: its operations in order, and the cycles of the same calls."""
    return page_of_network(network, report, spec, tuple(_sources(network, calls)))


def _sources(network: NetworkReport, calls: Sequence[RanCall]) -> Iterator[Source]:
    """The convolutions as Python, each under the number of its first device operation."""
    first = {op.call: op for op in reversed(network.operations)}
    for number, call in enumerate(calls):
        if call.asked is not None:
            begins = first[number]
            place = f", {begins.where}" if begins.where else ""
            yield Source(f"#{begins.number} {call.function}{place}", estimate_source(call.asked))


def page_files(
    network: NetworkReport, report: CycleReport, calls: Sequence[RanCall], spec: DeviceSpec
) -> dict[str, bytes]:
    """Contents by extension: a self-contained ``html`` page and a Perfetto timeline ``trace.json.gz``."""
    page = page_of_run(network, report, calls, spec)
    return {
        "html": page_html(page).encode("utf-8"),
        "trace.json.gz": trace_json_gz(network.operations, spec),
    }


class ShownCycles(CycleReport):
    """A report on cycles with a notebook page."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """A page in a frame."""
        return page_frame(page_of_calls(self))


class ShownNetwork(NetworkReport):
    """A report on a network with a notebook page."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """A page in a frame."""
        return page_frame(page_of_pass(self))
