"""npe_viz: network transfers of device operations as tt-npe writes them for ttnn-visualizer's page (form 1.0.0).

Writes a file for each program, and a manifest that maps device operations to these files. Only programs whose model
knows routes are written: halos, with all bytes from one core to another on one network as one transfer. Programs with
known bytes but no routes (multicasts of convolutions, pages from and to DRAM) and copies within a core are left out. A
timeline has at most 16 steps, to keep the file small. Nodes are device, row and column of the torus.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from device.time.network import Link
from ttsim.report.record import Record
from ttsim.report.timelines import NetworkLoad, Timeline, TimelineStep, Transfer

FORM: Final = "1.0.0"
NETWORKS: Final = ("NOC0", "NOC1")
WAYS: Final = (("SOUTH", "EAST"), ("NORTH", "WEST"))  # of each network: along a column, along a row
WRITE: Final = "WRITE_"
DIGITS: Final = 6  # decimals of rates and percents


def npe_files(record: Record) -> dict[str, str]:
    """The files by name; none if no transfer is known."""
    known = {program: f"program{program}.json" for program, _ in record.timelines}
    manifest = [
        {"global_call_count": op.call_count, "file": known[op.program]}
        for op in record.operations
        if op.program in known
    ]
    documents = {known[program]: _document(timeline, record) for program, timeline in record.timelines}
    files = {"manifest.json": manifest, **documents} if known else {}
    return {name: json.dumps(file, separators=(",", ":"), allow_nan=False) + "\n" for name, file in files.items()}


def _document(timeline: Timeline, record: Record) -> dict[str, Any]:
    device, arch = record.device_id, record.arch or "unknown"
    return {
        "common_info": {
            "version": FORM,
            "mesh_device": arch,
            "arch": arch,
            "cycles_per_timestep": timeline.step_cycles,
            "congestion_model_name": "ttsim",
            "num_rows": timeline.rows,
            "num_cols": timeline.columns,
            "dram_bw_util": 0.0,
            "link_util": _digits(timeline.whole.used),
            "link_demand": _digits(timeline.whole.demand),
            "max_link_demand": _digits(timeline.whole.most),
            "mcast_write_link_util": 0.0,
            "noc": _networks(timeline.load),
        },
        "chips": {str(device): [0, 0, 0, 0]},
        "noc_transfers": [_transfer(transfer, device) for transfer in timeline.transfers],
        "zones": [],
        "timestep_data": [_step(step, device) for step in timeline.steps],
    }


def _transfer(transfer: Transfer, device: int) -> dict[str, Any]:
    """A transfer; its links lead from the sender's interface to the receiver's interface."""
    network = NETWORKS[transfer.network]
    source, destination = ([device, row, column] for column, row in (transfer.source, transfer.destination))
    endpoints = {"src": source, "dst": [destination]}
    times = {"start_cycle": transfer.start_cycle, "end_cycle": transfer.end_cycle}
    links = (_link(transfer.network, link, device) for link in transfer.links)
    segment = {
        "device_id": device,
        **endpoints,
        "noc_type": network,
        "injection_rate": _digits(transfer.bytes_per_cycle),
        **times,
        "links": [[*source, f"{network}_IN"], *links, [*destination, f"{network}_OUT"]],
    }
    return {
        "id": transfer.number,
        "noc_event_type": WRITE,
        "fabric_event_type": False,
        "total_bytes": transfer.size_bytes,
        **endpoints,
        **times,
        "zones": "",
        "route": [segment],
    }


def _link(network: int, link: Link, device: int) -> list[Any]:
    return [device, link.row, link.col, f"{NETWORKS[network]}_{WAYS[network][link.along_row]}"]


def _step(step: TimelineStep, device: int) -> dict[str, Any]:
    return {
        "start_cycle": step.start_cycle,
        "end_cycle": step.end_cycle,
        "active_transfers": list(step.transfers),
        "link_demand": [[*_link(network, link, device), _digits(part)] for network, link, part in step.demand],
        "avg_link_demand": _digits(step.whole.demand),
        "avg_link_util": _digits(step.whole.used),
        "mcast_write_link_util": 0.0,
        "noc": _networks(step.load),
    }


def _networks(loads: Sequence[NetworkLoad]) -> dict[str, dict[str, float]]:
    keys = ("avg_link_demand", "avg_link_util", "max_link_demand")
    return {name: dict(zip(keys, map(_digits, load), strict=True)) for name, load in zip(NETWORKS, loads, strict=True)}


def _digits(figure: float) -> float:
    return round(figure, DIGITS)
