"""report.json: the reports on cycles and on the network, in one file."""

from ttsim.report.plain import text
from ttsim.report.record.figures import Record

FORMAT = 1  # raised when a field changes its meaning or goes


def report_json(record: Record) -> str:
    """The file's text."""
    cycles, network = record.cycles.to_dict(), record.network.to_dict()
    return text({"format": FORMAT, "name": record.name, "cycles": cycles, "network": network}) + "\n"
