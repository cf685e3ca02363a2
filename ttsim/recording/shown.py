"""Reports as users get them: notebooks show them as the page that other files have."""

from dataclasses import fields

from ttsim.report.cycles.report import CycleReport
from ttsim.report.network.report import NetworkReport
from ttsim.report.page.calls import page_of_calls, page_of_pass
from ttsim.report.writers.html.notebook import page_frame


class ShownCycles(CycleReport):
    """A report on cycles."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """A page in a frame."""
        return page_frame(page_of_calls(self))


class ShownNetwork(NetworkReport):
    """A report on a network."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """A page in a frame."""
        return page_frame(page_of_pass(self))


def shown_cycles(report: CycleReport) -> ShownCycles:
    """The same report; what it finds out when asked for stays so."""
    return ShownCycles(**vars(report))


def shown_network(report: NetworkReport) -> ShownNetwork:
    """The same report."""
    return ShownNetwork(**{one.name: getattr(report, one.name) for one in fields(report)})
