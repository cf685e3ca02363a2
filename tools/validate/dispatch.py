"""Rows of dispatch.csv: programs launched one after the other, as tt-metal's benchmark of program dispatch does it.

All its tests replay a trace, whatever their names say, and take the time from one program to the next. Its kernels do
nothing, or wait for a number of cycles; they are as large as the row says. What the name of a test leaves open stands
in the benchmark's source: the cores that no harvesting takes away, eight groups, and the groups and the slow kernel of
those tests that hide fast programs behind a slow one.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from device.spec.device_spec import DeviceSpec, load_spec
from device.time.stages import nanoseconds
from ops.launch import Launch, LaunchedProgram, Replay, kernel_end_nanoseconds
from tools.validate.devices import CARDS
from tools.validate.prediction import NotPredictedError, Prediction, Row

GOLDEN: Final = "CI golden"
GRIDS: Final = {"wormhole_b0": (8, 7), "blackhole": (12, 9)}  # columns and rows that every card has
ETHERNET_BOARD: Final = "wormhole_n300"  # whose Ethernet cores dispatch
PROCESSORS: Final = {"brisc_only": 1, "ncrisc_only": 1, "trisc_only": 3, "brisc_trisc_only": 4, "one_processor": 1}
ONE_PROCESSOR: Final = ("sems_", "eth_dispatch", "256_bytes_brisc_only")
ALL_CORES: Final = ("all_cores", "kernel_groups", "maxed_config", "only_all_processors")
GROUPS: Final = 8
SLOW_KERNEL_CYCLES: Final = 40_000  # of the tests that hide fast programs behind a slow one
CACHE_KERNEL_CYCLES: Final = 2_000  # of the test that overflows the prefetcher's cache
FASTEST_BYTES: Final = 256
MOST_ARGUMENTS, MOST_BUFFERS, MOST_SEMAPHORES = 128, 32, 4
ROUNDS: Final = 6  # until a queue runs evenly; the second half counts


@dataclass(frozen=True, slots=True)
class DispatchRow:
    """A row, understood."""

    spec: DeviceSpec  # The device it was measured on
    programs: tuple[Launch, ...]  # What one iteration of the benchmark launches


def predict_dispatch(row: Row) -> Prediction:
    """Predict the time of one iteration of the benchmark.

    Raises:
        NotPredictedError: The row is of another measurement.
    """
    found = read_dispatch_row(row)
    return Prediction(
        row=row,
        measured_ns=float(row["value"]) * 1000,
        predict_ns=lambda: nanoseconds(dispatch_cycles_of(found, found.spec), found.spec.clock_hz),
        group=(row["device"], dispatch_kind(row)),
        architecture=row["arch"],
        configuration=dispatch_configuration(row),
    )


def dispatch_cycles_of(found: DispatchRow, spec: DeviceSpec) -> float:
    """Cycles from one iteration to the next, once the queue runs evenly."""
    ends = kernel_end_nanoseconds(found.programs * ROUNDS, spec, Replay.TRACE)
    counted = ROUNDS // 2
    taken = ends[-1] - ends[len(ends) - 1 - counted * len(found.programs)]
    return taken / counted * spec.clock_hz / 1e9


def dispatch_configuration(row: Row) -> tuple[str, ...]:
    """What tells configurations apart, in short; all but the last place is the test."""
    return (row["arch"], row["test"], row["size_bytes"])


def dispatch_measured_cycles(row: Row) -> float:
    """What was measured, in cycles of the device's clock."""
    return float(row["value"]) * float(row["clock_mhz"])


def dispatch_kind(row: Row) -> str:
    """What a test is about, for tables."""
    for kind, words in (
        ("slow kernels", ("_kernel_all", "256_bytes", "shadow", "prefetcher")),
        ("groups", ("kernel_groups", "8g")),
        ("arguments", ("rta", "maxed")),
    ):
        if any(word in row["test"] for word in words):
            return kind
    return "Ethernet" if row["test"] == "eth_dispatch" else "kernels and buffers"


def read_dispatch_row(row: Row) -> DispatchRow:
    """The device and the programs of a row.

    Raises:
        NotPredictedError: As of `predict_dispatch`.
    """
    if row["kind"] != GOLDEN or row["arch"] not in CARDS:
        raise NotPredictedError(f"no time from program to program of a known run ({row['quantity']})")
    test, size = row["test"].removesuffix("_trace"), int(row["size_bytes"])
    columns, rows = GRIDS[row["arch"]]
    spec = load_spec(ETHERNET_BOARD if test == "eth_dispatch" else CARDS[row["arch"]])
    by_cycles = test.startswith("256_bytes")
    shadow = re.search(r"kernel_groups_(\d+)_shadow", test)
    kernel_groups = 1
    if "kernel_groups" in test:
        kernel_groups = columns - 1 if shadow else GROUPS
    buffer_groups = GROUPS if test.endswith("_8g") else 1
    processors = _processors(test)
    cores = 1
    if any(word in test for word in ALL_CORES):
        cores = columns * rows
    elif "left_processors" in test:
        cores = rows
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
    if shadow:
        kernel_cycles = SLOW_KERNEL_CYCLES
    elif test == "load_prefetcher_test":
        kernel_cycles = CACHE_KERNEL_CYCLES
    fast = int(shadow[1]) if shadow else 0
    return DispatchRow(spec, (Launch(program, kernel_cycles), *[Launch(program, 0)] * fast))


def _processors(test: str) -> int:
    """Processors of a core that have a kernel."""
    if test.startswith(ONE_PROCESSOR):
        return 1
    return next((count for words, count in PROCESSORS.items() if test.startswith(words)), 5)


def _number(pattern: str, test: str) -> int:
    """What a test's name says, or 0."""
    found = re.search(pattern, test)
    return int(found[1]) if found else 0
