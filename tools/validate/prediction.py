"""Predictions of measured rows, or why there is none; the devices and the software that rows were measured on."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, TypeAlias

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32, UINT32
from device.spec.device_spec import DeviceSpec, load_spec
from device.time.stages import nanoseconds

Row: TypeAlias = Mapping[str, str]


class NotPredictedError(ValueError):
    """A row that the simulator can not or should not predict; the message says why."""


@dataclass(frozen=True, kw_only=True)
class LaterKernels:
    """What the kernels of the default release do for a row of older kernels."""

    evidence: tuple[str, str]  # Class and place of their program
    cycles: Callable[[], float]  # Its cycles on the row's device
    measured_release: str  # Of the kernels that the row measured


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A row with its prediction, which is computed at the first access."""

    row: Row  # The row as it stands in its file
    spec: DeviceSpec  # The device that it was measured on
    program: Any  # What ran: an operation, a plan, a movement, launches
    measured_ns: float  # What was measured
    # Cycles of the kernel on a device; then the end cycles of processors that the columns `ends` give
    cycles_on: Callable[[DeviceSpec], tuple[float, ...]]
    ends: tuple[str, ...] = ()
    group: tuple[str, ...]  # Where it is counted: (device, kind, ...), printed side by side
    architecture: str  # Groups of one architecture are summed up together
    configuration: tuple[str, ...]  # Equal for rows that measure the same thing; they count as one
    evidence: tuple[str, str] = ("", "")  # Class and place of its program, for error bars; empty if it has none
    later: LaterKernels | None = None  # What runs instead today, where the row is of older kernels
    counted: bool = True  # False for rows that are targets, not measurements: they are printed, not summed up
    remark: str = ""  # What had to be assumed, for a reader
    fitted: bool = True  # Whether constants are fitted to it
    fold: object = None  # Rows that agree in it are predicted by one fit that saw none of them; None: configurations

    @cached_property
    def predicted_ns(self) -> float:
        """What the simulator says; raises what it raises."""
        return nanoseconds(self.cycles_on(self.spec)[0], self.spec.clock_hz)

    @property
    def measured_cycles(self) -> float:
        """What was measured, in cycles of the clock that the row names."""
        return self.measured_ns * float(self.row["clock_mhz"]) / 1000

    @property
    def error(self) -> float:
        """Relative error: above zero if the prediction is too long."""
        return self.predicted_ns / self.measured_ns - 1.0


DEVICES: Final = {
    "N150": "wormhole_n150",
    "N300": "wormhole_n300",
    "Wormhole": "wormhole_n150",
    "P150": "blackhole_p150",
    "Blackhole P150": "blackhole_p150",
    "P100": "blackhole_p100",
    "Blackhole P100": "blackhole_p100",
    "Blackhole (110 cores)": "blackhole_p150",  # its reports divide by the DRAM peak of eight channels
    "Blackhole (": "blackhole_p100",
}  # by what the device column begins with
CARDS: Final = {"wormhole_b0": "wormhole_n150", "blackhole": "blackhole_p150"}  # by architecture: full grids
FORMATS: Final = {"bf16": BFLOAT16, "bfp8_b": BFLOAT8_B, "bfp4_b": BFLOAT4_B, "fp32": FLOAT32, "u32": UINT32}
PHASES: Final = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}
NANOSECONDS: Final = {"ns": 1.0, "us": 1000.0}
GRIDS: Final = {"20-core": (5, 4), "(110 cores)": (11, 10)}  # columns and rows that are used, by what the device says
THREAD: Final = "PR #"  # begins a path that names a thread: all of those with a P150 are of summer 2026
P150_OF_2026: Final = (11, 10)  # firmware 19.5.0 (January 2026) shows 120 of its cores, of which a column dispatches


def numbers(row: Row, names: str) -> tuple[int, ...]:
    """The whole numbers in some columns, whose names are given in one text."""
    return tuple(int(row[name]) for name in names.split())


def measured_ns(row: Row) -> float:
    """The measured duration."""
    return float(row["value"]) * NANOSECONDS[row["unit"]]


def run_of(row: Row) -> str:
    """The run that a row is from, by the name of its profile."""
    return row["source_path"].rpartition("/")[2].removesuffix(".csv")


def device_spec(row: Row) -> DeviceSpec:
    """The device of a row; raises NotPredictedError if the row does not say which, or names an unknown one."""
    name = next((ours for theirs, ours in DEVICES.items() if row["device"].startswith(theirs)), None)
    if name is None:
        raise NotPredictedError(f"the row does not say which device ({row['device'] or 'empty'})")
    spec = load_spec(name)
    whole = (spec.grid.cols, spec.grid.rows)
    own = P150_OF_2026 if row["device"] == "P150" and row["source_path"].startswith(THREAD) else whole
    return _with_grid(name, *next((grid for mark, grid in GRIDS.items() if mark in row["device"]), own))


@cache
def _with_grid(name: str, cols: int, rows: int) -> DeviceSpec:
    """A device with a grid: one object for all of its rows, whose figures a fit then changes together."""
    return load_spec(name).replace(grid_cols=cols, grid_rows=rows)


def core_ranges(text: str) -> CoreRangeSet:
    """The cores of ``{[(x=0;y=0) - (x=4;y=3)]; ...}``; none if there is no range in the text."""
    corners = re.findall(r"\(x=(\d+);y=(\d+)\) - \(x=(\d+);y=(\d+)\)", text)
    boxes = (map(int, box) for box in corners)
    return CoreRangeSet(CoreRange(CoreCoord(left, top), CoreCoord(right, low)) for left, top, right, low in boxes)


OF_2025: Final = "2025"  # the release of rows that were measured in that year
OF_2025_12: Final = "2025-12"  # the release of rows of the end of that year
EARLY_2025: Final = "2025-02"  # the release of rows from before readers of halos and convolutions were rewritten
RUN_OF_EARLY_2025: Final = "2025_02"  # in the name of a run of that release
