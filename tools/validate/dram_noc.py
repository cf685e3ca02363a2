"""Rows of dram_noc.csv: how long one core waits for transfers of one size, all by themselves on the chip.

Transfers are issued one behind the other, then waited for together. A row says how many, how large, and who is at the
other end: a core of the same column (`same_axis`) or off both axes, all cores, a bank of DRAM, or all banks in turn.
"""

from collections.abc import Callable
from functools import partial

from device.spec.device_spec import DeviceSpec, load_spec
from device.time.network import Torus, answer_cycles, page_cycles, read_latency_cycles, torus_of
from device.time.stages import nanoseconds
from ops.programs.kernel_costs import (
    StickCosts,
    TransferCosts,
    burst_cycles,
    multicast_burst_cycles,
    write_latency_cycles,
)
from tools.validate.devices import CARDS
from tools.validate.prediction import NotPredictedError, Prediction, Row

MEASURED = "NoC transfer latency"
STATEFUL = "stateful API"
CONFIGURATION = (
    *("arch", "mechanism", "pattern", "subordinates", "num_transactions", "transaction_bytes"),
    *("same_axis", "linked", "loopback"),
)


def predict_transfers(row: Row) -> Prediction:
    """Predict one row.

    Raises:
        NotPredictedError: It is no row of transfers of one core, but a bandwidth or a bound.
    """
    if not row["op"].startswith(MEASURED) or row["unit"] != "cycles":
        raise NotPredictedError("the row does not say how long one core waits for transfers of one size")
    spec = load_spec(CARDS[row["arch"]])
    mechanism = f"{row['mechanism']}{', stateful' if STATEFUL in row['op'] else ''}"
    cycles = read_transfers(row, spec)
    return Prediction(
        row=row,
        measured_ns=float(row["value"]) * 1000 / float(row["clock_mhz"]),
        predict_ns=lambda: nanoseconds(cycles(), spec.clock_hz),
        group=(spec.name, mechanism, f"{row['pattern']}{', linked' if _is_linked(row) else ''}"),
        architecture=row["arch"],
        configuration=(row["op"], *(row[name] for name in CONFIGURATION)),
    )


def read_transfers(row: Row, spec: DeviceSpec) -> Callable[[], float]:
    """Works out the cycles from the first issue of a row's transfers until the last is answered.

    Raises:
        NotPredictedError: The mechanism is not known, or there are no transfers.
    """
    count, transfer_bytes = int(row["num_transactions"]), int(row["transaction_bytes"])
    if min(count, transfer_bytes) < 1:
        raise NotPredictedError(f"there must be transfers of at least a byte, not {count} of {transfer_bytes}")
    costs, link, links = spec.costs_of(TransferCosts), spec.noc.link_bytes_per_cycle, _links(row, torus_of(spec))
    if row["mechanism"] == "multicast write":
        receivers = int(row["subordinates"])
        return partial(multicast_burst_cycles, spec, count, transfer_bytes, receivers, links, linked=_is_linked(row))
    rate, latency = link, answer_cycles(spec.noc, links)
    if "single bank" in row["pattern"]:
        rate = 1 / page_cycles(spec, 1.0, spec.costs_of(StickCosts).page_rate_share)
    match row["mechanism"]:
        case "unicast read":
            issue = costs.stateful_issue_cycles if STATEFUL in row["op"] else costs.read_issue_cycles
        case "unicast write":
            issue = costs.write_issue_cycles
        case "DRAM read":
            issue = costs.page_issue_cycles if "interleaved" in row["pattern"] else costs.read_issue_cycles
            latency = read_latency_cycles(spec)
        case "DRAM write":
            issue, latency = costs.write_issue_cycles, write_latency_cycles(spec, in_dram=True)
        case other:
            raise NotPredictedError(f"{other} is no transfer of the model")
    return partial(burst_cycles, issue, count, transfer_bytes, latency, rate)


def _is_linked(row: Row) -> bool:
    return row["linked"] == "true"


def _links(row: Row, torus: Torus) -> int:
    """Links that a transfer and its answer pass: of the column's ring, the row's, or both.

    Whoever multicasts to others only (no loopback) lies off their row or column.
    """
    around = row["loopback"] == "true"
    if row["same_axis"] == "true" or (around and row["pattern"] == "L1 one-to-column"):
        return torus.rows
    return torus.cols if around and row["pattern"] == "L1 one-to-row" else torus.cols + torus.rows
