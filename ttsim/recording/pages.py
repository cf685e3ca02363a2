"""What people look at after a run: a page and a timeline, as files."""

from device.spec.device_spec import DeviceSpec
from ttsim.report.cycles.report import CycleReport
from ttsim.report.network.report import NetworkReport
from ttsim.report.page.pages import page_of_network
from ttsim.report.page.trace import trace_of
from ttsim.report.writers.chrome_trace import trace_json_gz
from ttsim.report.writers.html.document import page_html


def page_files(network: NetworkReport, report: CycleReport, spec: DeviceSpec) -> dict[str, bytes]:
    """Files by the ends of their names: ``html``, which needs nothing else, and ``trace.json.gz`` for Perfetto.

    Args:
        network: The operations in order.
        report: The cycles of the same calls.
        spec: The device.
    """
    page = page_of_network(network, report, spec)
    return {
        "html": page_html(page).encode("utf-8"),
        "trace.json.gz": trace_json_gz(trace_of(page.parts[0], spec)),
    }
