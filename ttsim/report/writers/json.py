"""Reports as JSON: the figures under their field names; equal runs give equal bytes."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from device.spec.device_spec import DeviceSpec
from ttsim.report.devices import DeviceFigures, differences
from ttsim.report.formatting import text
from ttsim.report.links import links_dict
from ttsim.report.memory import LayerResult
from ttsim.report.record import Record
from ttsim.report.rows import as_dict

FORMAT = 2  # raised when a field changes its meaning or goes
SAVED_FORMAT = 1  # of a saved report


def layers_as_json(results: Sequence[LayerResult], *, links: bool = False) -> str:
    """A document with one entry for each layer: its request, its summary, or its error and the last operations.

    With ``links``, an entry also has the loads of network links.
    """
    return text({"format": FORMAT, "layers": [{**entry(result), **_links(result, links)} for result in results]})


def _links(result: LayerResult, asked: bool) -> dict[str, Any]:
    report = None if result.summary is None else result.summary.cycles
    return {"links": links_dict(report)} if asked and report is not None else {}


def entry(result: LayerResult) -> dict[str, Any]:
    """One layer."""
    return {
        "layer": asdict(result.layer),
        "summary": None if result.summary is None else as_dict(result.summary),
        "error": result.error,
        "reached": [as_dict(operation) for operation in result.reached],
    }


def devices_as_json(specs: Sequence[DeviceSpec]) -> str:
    """A document with the figures of devices; for two devices also their differences."""
    document: dict[str, Any] = {"format": FORMAT, "devices": [spec.to_dict() for spec in specs]}
    if len(specs) == 2:
        document["differences"] = [asdict(difference) for difference in differences(*specs)]
    return text(document)


def fields_as_json(devices: Sequence[DeviceFigures]) -> str:
    """A document with every field of devices, and its effects."""
    return text({"format": FORMAT, "devices": [asdict(device) for device in devices]})


def report_json(record: Record) -> str:
    """A saved report: the reports on cycles and on the network, in one file."""
    cycles, network = record.cycles.to_dict(), record.network.to_dict()
    return text({"format": SAVED_FORMAT, "name": record.name, "cycles": cycles, "network": network}) + "\n"
