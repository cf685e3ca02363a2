"""Rows of dispatch.csv: programs launched one after the other, as tt-metal's benchmark of program dispatch does it.

All its tests replay a trace, whatever their names say, and take the time from one program to the next. Its kernels do
nothing, or wait for a number of cycles; they are as large as the row says. What the name of a test leaves open stands
in the benchmark's source: the cores that no harvesting takes away, eight groups, and the groups and the slow kernel of
those tests that hide fast programs behind a slow one.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from device.spec.device_spec import DeviceSpec, load_spec
from device.time.network import Torus, answer_cycles, page_cycles, read_latency_cycles, torus_of
from ops.launch import Launch, LaunchedProgram, Replay, kernel_end_nanoseconds
from ops.programs.kernel_costs import (
    StickCosts,
    TransferCosts,
    burst_cycles,
    multicast_burst_cycles,
    write_latency_cycles,
)
from tools.validate.prediction import CARDS, NotPredictedError, Prediction, Row

GOLDEN: Final = "CI golden"
GRIDS: Final = {"wormhole_b0": (8, 7), "blackhole": (12, 9)}  # columns and rows that every card has
ETHERNET_BOARD: Final = "wormhole_n300"  # whose Ethernet cores dispatch
PROCESSORS: Final = {
    **dict.fromkeys(("brisc_only", "ncrisc_only", "one_processor", "sems_", "eth_dispatch", "256_bytes_brisc_only"), 1),
    **{"trisc_only": 3, "brisc_trisc_only": 4},
}  # of a core that have a kernel, by what a test's name begins with; else all five
ALL_CORES: Final = ("all_cores", "kernel_groups", "maxed_config", "only_all_processors")
GROUPS: Final = 8
SLOW_KERNEL_CYCLES: Final = 40_000  # of the tests that hide fast programs behind a slow one
CACHE_KERNEL_CYCLES: Final = 2_000  # of the test that overflows the prefetcher's cache
FASTEST_BYTES: Final = 256
MOST_ARGUMENTS, MOST_BUFFERS, MOST_SEMAPHORES = 128, 32, 4
ROUNDS: Final = 6  # until a queue runs evenly; the second half counts


def predict_dispatch(row: Row) -> Prediction:
    """Predicts the time of one iteration of the benchmark; raises NotPredictedError if the row is of another one."""
    spec, programs = launches(row)
    return Prediction(
        row=row,
        spec=spec,
        program=programs,
        measured_ns=float(row["value"]) * 1000,
        cycles_on=partial(iteration_cycles, programs),
        group=(row["device"], next(kind for kind, text in KINDS.items() if re.search(text, row["test"]))),
        architecture=row["arch"],
        configuration=(row["arch"], row["test"], row["size_bytes"]),
        fold=(row["arch"], row["test"]),  # with all its sizes
    )


def iteration_cycles(programs: tuple[Launch, ...], spec: DeviceSpec) -> tuple[float]:
    """Cycles from one iteration to the next, once the queue runs evenly."""
    end_ns = kernel_end_nanoseconds(programs * ROUNDS, spec, Replay.TRACE)
    counted = ROUNDS // 2
    taken = end_ns[-1] - end_ns[len(end_ns) - 1 - counted * len(programs)]
    return (taken / counted * spec.clock_hz / 1e9,)


KINDS: Final = {
    "slow kernels": r"_kernel_all|256_bytes|shadow|prefetcher",
    "groups": r"kernel_groups|8g",
    "arguments": r"rta|maxed",
    "Ethernet": r"^eth_dispatch$",
    "kernels and buffers": "",
}  # what a test is about, for tables, by what its name holds; the first counts


def launches(row: Row) -> tuple[DeviceSpec, tuple[Launch, ...]]:
    """The device of a row, and what one iteration of its benchmark launches; raises NotPredictedError."""
    if row["kind"] != GOLDEN or row["arch"] not in CARDS:
        raise NotPredictedError(f"no time from program to program of a known run ({row['quantity']})")
    test, size = row["test"].removesuffix("_trace"), int(row["size_bytes"])
    columns, rows = GRIDS[row["arch"]]
    spec = load_spec(ETHERNET_BOARD if test == "eth_dispatch" else CARDS[row["arch"]])
    by_cycles = test.startswith("256_bytes")
    shadow = re.search(r"kernel_groups_(\d+)_shadow", test)
    kernel_groups = 1 if "kernel_groups" not in test else columns - 1 if shadow else GROUPS
    buffer_groups = GROUPS if test.endswith("_8g") else 1
    processors = next((count for words, count in PROCESSORS.items() if test.startswith(words)), 5)
    everywhere = any(word in test for word in ALL_CORES)
    cores = columns * rows if everywhere else rows if "left_processors" in test else 1
    program = LaunchedProgram(
        name=test,
        cores=cores,
        processors=processors,
        binaries=processors * kernel_groups,
        binary_bytes=FASTEST_BYTES if by_cycles else size,
        groups=max(kernel_groups, buffer_groups),
        buffer_groups=buffer_groups,
        circular_buffers=_number(r"(\d+)_?cb", test),
        arguments=_number(r"_(\d+)_rta", test),
        common_arguments=_number(r"_(\d+)_crta", test),
        semaphores=MOST_SEMAPHORES if test.startswith("sems_") else _number(r"_(\d+)sem", test),
    )
    if test.startswith("maxed_config"):
        program = replace(program, arguments=MOST_ARGUMENTS, circular_buffers=MOST_BUFFERS, semaphores=MOST_SEMAPHORES)
    kernel_cycles = size if by_cycles else _number(r"^(\d+)_kernel_", test)
    if test == "load_prefetcher_test":
        kernel_cycles = CACHE_KERNEL_CYCLES
    if not shadow:
        return spec, (Launch(program, kernel_cycles),)
    return spec, (Launch(program, SLOW_KERNEL_CYCLES), *[Launch(program, 0)] * int(shadow[1]))


def _number(pattern: str, test: str) -> int:
    """A number in a test's name, or 0."""
    match = re.search(pattern, test)
    return int(match[1]) if match else 0


MEASURED = "NoC transfer latency"
STATEFUL = "stateful API"
CONFIGURATION = (
    *("arch", "mechanism", "pattern", "subordinates", "num_transactions", "transaction_bytes"),
    *("same_axis", "linked", "loopback"),
)


def predict_transfers(row: Row) -> Prediction:
    """Predicts one row of transfers of one core; a bandwidth or a bound is a NotPredictedError."""
    if not row["op"].startswith(MEASURED) or row["unit"] != "cycles":
        raise NotPredictedError("the row does not say how long one core waits for transfers of one size")
    spec = load_spec(CARDS[row["arch"]])
    mechanism = f"{row['mechanism']}{', stateful' if STATEFUL in row['op'] else ''}"
    read_transfers(row, spec)  # which refuses what is no transfer
    return Prediction(
        row=row,
        spec=spec,
        program=mechanism,
        measured_ns=float(row["value"]) * 1000 / float(row["clock_mhz"]),
        cycles_on=lambda spec: (read_transfers(row, spec)(),),
        group=(spec.name, mechanism, f"{row['pattern']}{', linked' if _is_linked(row) else ''}"),
        architecture=row["arch"],
        configuration=(row["op"], *(row[name] for name in CONFIGURATION)),
    )


def read_transfers(row: Row, spec: DeviceSpec) -> Callable[[], float]:
    """The cycles from the first issue of a row's transfers until the last is answered."""
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

    A sender that multicasts to others only (no loopback) lies off their row or column.
    """
    around = row["loopback"] == "true"
    if row["same_axis"] == "true" or (around and row["pattern"] == "L1 one-to-column"):
        return torus.rows
    return torus.cols if around and row["pattern"] == "L1 one-to-row" else torus.cols + torus.rows
