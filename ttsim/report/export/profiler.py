"""Files of tt-metal's profiler (v2.1): ops_perf_results.csv (a row per device operation), profile_log_device.csv.

tt-perf-report and ttnn-visualizer read the first file. The FLOPs that they show of a convolution are issued FLOPs,
inserted zeros included. Rows are sorted by HOST START TS; the host's clock is not simulated, so rows are counted.

The second file has the cycles in which each core works on each device operation. A core's BRISC launches the other
processors and waits for them, so its firmware zone covers all work of the core; the zones of the other processors
within it are not simulated. Cores are counted from 0, by columns and rows of the grid.
"""

from collections.abc import Callable, Mapping
from typing import Final

from device.memory.layouts import TensorSpec
from ttsim.report.cycles import OperationTime, kernel_nanoseconds
from ttsim.report.explain import FIDELITIES
from ttsim.report.export.spelling import dtype_text, operation_name, place_text
from ttsim.report.formatting import csv_text, printable
from ttsim.report.record import Record
from ttsim.report.runs import OpRun

Cell = Callable[[OpRun, Record], object]
AXES: Final = "WZYX"
TENSORS: Final = ("INPUT_0", "INPUT_1", "INPUT_2", "OUTPUT_0")


def _attributes(op: OpRun) -> str:
    """The attributes as the profiler prints them, with semicolons instead of commas."""
    return printable("{" + ", ".join(f"'{name}': '{value}'" for name, value in op.attributes) + "}").replace(",", ";")


def _timed(text: Callable[[OperationTime], object]) -> Cell:
    return lambda op, record: "" if op.time is None else text(op.time)


def _nanoseconds(cycles: Callable[[OperationTime], float]) -> Cell:
    return _timed(lambda time: kernel_nanoseconds(cycles(time), time.spec))


COLUMNS: Final[Mapping[str, Cell]] = {
    "OP CODE": lambda op, record: operation_name(op.name),
    "OP TYPE": lambda op, record: "tt_dnn_device",
    "GLOBAL CALL COUNT": lambda op, record: op.call_count,
    "DEVICE ID": lambda op, record: record.device["device_id"],
    "DEVICE ARCH": lambda op, record: record.arch,
    "ATTRIBUTES": lambda op, record: _attributes(op),
    "MATH FIDELITY": lambda op, record: FIDELITIES.get(op.timed.fidelity_phases, ""),
    "CORE COUNT": lambda op, record: op.core_count,
    "AVAILABLE WORKER CORE COUNT": lambda op, record: record.device["num_compute_cores"],
    "HOST START TS": lambda op, record: op.number + 1,
    "OP TO OP LATENCY [ns]": lambda op, record: op.gap_nanoseconds,
    "DEVICE FW START CYCLE": lambda op, record: op.start_cycle,
    "DEVICE FW END CYCLE": lambda op, record: op.end_cycle,
    "DEVICE FW DURATION [ns]": _nanoseconds(lambda time: time.cycles),
    "DEVICE KERNEL DURATION [ns]": _nanoseconds(lambda time: time.cycles),
    "DEVICE KERNEL DURATION PER CORE MIN [ns]": _nanoseconds(lambda time: time.first_end),
    "DEVICE KERNEL DURATION PER CORE MAX [ns]": _nanoseconds(lambda time: time.cycles),
    "DEVICE KERNEL DURATION PER CORE AVG [ns]": _nanoseconds(lambda time: time.mean_end),
    "PROGRAM HASH": lambda op, record: op.program,
    "PROGRAM CACHE HIT": lambda op, record: op.cached,
    "PM IDEAL [ns]": _nanoseconds(lambda time: time.roofline.cycles),
    "PM COMPUTE [ns]": _nanoseconds(lambda time: time.roofline.math_cycles),
    "PM BANDWIDTH [ns]": _nanoseconds(lambda time: time.roofline.dram_cycles),
    "PM FPU UTIL (%)": _timed(lambda time: f"{100 * time.math.utilization:.3f}"),
    "DRAM BW UTIL (%)": _timed(lambda time: f"{100 * time.traffic.dram_share:.3f}"),
}


def _shape_cell(axis: int) -> Callable[[TensorSpec], object]:
    """One of the last four axes; axes that a tensor lacks are 1, earlier axes are left out."""

    def text(spec: TensorSpec) -> str:
        padded, logical = ((1, 1, 1, 1, *shape)[-len(AXES) :][axis] for shape in (spec.padded_shape, spec.shape))
        return f"{padded}[{logical}]"

    return text


TENSOR_COLUMNS: Final[Mapping[str, Callable[[TensorSpec], object]]] = {
    **{f"{axis}_PAD[LOGICAL]": _shape_cell(at) for at, axis in enumerate(AXES)},
    "LAYOUT": lambda spec: spec.layout.name,
    "DATATYPE": dtype_text,
    "MEMORY": lambda spec: f"DEV_0_{place_text(spec.memory_config)}",
}
HEAD: Final = (*COLUMNS, *(f"{tensor}_{column}" for tensor in TENSORS for column in TENSOR_COLUMNS))


def ops_perf_results(record: Record) -> str:
    """The text of ops_perf_results.csv."""
    return csv_text(HEAD, (_row(op, record) for op in record.operations))


def _row(op: OpRun, record: Record) -> dict[str, object]:
    row = {name: cell(op, record) for name, cell in COLUMNS.items()}
    for tensor, spec in (*zip(TENSORS[:-1], op.inputs, strict=False), (TENSORS[-1], op.output)):
        row.update((f"{tensor}_{name}", cell(spec)) for name, cell in TENSOR_COLUMNS.items())
    return row


LOG_COLUMNS: Final = (
    "PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID, trace id, "
    "trace id counter, zone name, type, source line, source file, meta data"
)
TIMER: Final = 1


def device_log(record: Record) -> str:
    """The file's text."""
    cores, clock_mhz = record.device["num_compute_cores"], round(record.spec.clock_hz / 1e6)
    head = f"ARCH: {record.arch or 'unknown'}, CHIP_FREQ[MHz]: {clock_mhz}, Max Compute Cores: {cores}"
    zones = (
        f"0,{column},{row},BRISC,{TIMER},{cycle},0,{op.call_count},,,BRISC-FW,{kind},0,,"
        for op in record.operations
        for (column, row), end in op.core_ends.items()
        for kind, cycle in (("ZONE_START", op.start_cycle), ("ZONE_END", end))
    )
    return "".join(f"{line}\n" for line in (head, LOG_COLUMNS, *zones))
