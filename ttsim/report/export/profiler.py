"""Files of tt-metal's profiler (v2.1): ops_perf_results.csv (a row a device operation), profile_log_device.csv.

tt-perf-report and ttnn-visualizer read the first. FLOPs that they show of a convolution are issued ones: they know no
inserted zeros. Rows are sorted by HOST START TS; the host's clock is not simulated, so that it counts them.

The second tells when each core works on each device operation, in cycles. A core's BRISC launches the other processors
and waits for them, so that its firmware zone is all that the core does; when each of them begins and ends within it is
not simulated. Cores are counted from 0, by columns and rows of the grid.
"""

from collections.abc import Iterator
from typing import Final

from device.memory.layouts import TensorSpec
from ttsim.report.cycles import CoreSpan, OperationTime
from ttsim.report.explain import FIDELITIES
from ttsim.report.export.spelling import dtype_text, operation_name, place_text
from ttsim.report.formatting import csv_text, printable
from ttsim.report.record import Record
from ttsim.report.runs import OpRun

INPUTS: Final = 3
AXES: Final = "WZYX"
HEAD: Final = (
    "OP CODE", "OP TYPE", "GLOBAL CALL COUNT", "DEVICE ID", "DEVICE ARCH", "ATTRIBUTES", "MATH FIDELITY", "CORE COUNT",
    "AVAILABLE WORKER CORE COUNT", "HOST START TS", "OP TO OP LATENCY [ns]", "DEVICE FW START CYCLE",
    "DEVICE FW END CYCLE", "DEVICE FW DURATION [ns]", "DEVICE KERNEL DURATION [ns]",
    "DEVICE KERNEL DURATION PER CORE MIN [ns]", "DEVICE KERNEL DURATION PER CORE MAX [ns]",
    "DEVICE KERNEL DURATION PER CORE AVG [ns]", "PROGRAM HASH", "PROGRAM CACHE HIT", "PM IDEAL [ns]", "PM COMPUTE [ns]",
    "PM BANDWIDTH [ns]", "PM FPU UTIL (%)", "DRAM BW UTIL (%)",
)  # fmt: skip
TENSORS: Final = (*(f"INPUT_{number}" for number in range(INPUTS)), "OUTPUT_0")
COLUMNS: Final = (
    *HEAD,
    *(
        f"{tensor}_{column}"
        for tensor in TENSORS
        for column in (*(f"{axis}_PAD[LOGICAL]" for axis in AXES), "LAYOUT", "DATATYPE", "MEMORY")
    ),
)


def ops_perf_results(record: Record) -> str:
    """The file's text."""
    return csv_text(COLUMNS, (_row(one, record) for one in record.operations))


def _row(one: OpRun, record: Record) -> dict[str, object]:
    row: dict[str, object] = {
        "OP CODE": operation_name(one.name),
        "OP TYPE": "tt_dnn_device",
        "GLOBAL CALL COUNT": one.call_count,
        "DEVICE ID": record.device.device_id,
        "DEVICE ARCH": record.arch,
        "ATTRIBUTES": _attributes(one.attributes),
        "MATH FIDELITY": FIDELITIES.get(one.timed.fidelity_phases, ""),
        "CORE COUNT": one.core_count,
        "AVAILABLE WORKER CORE COUNT": record.device.num_compute_cores,
        "HOST START TS": one.number + 1,
        "OP TO OP LATENCY [ns]": one.gap_nanoseconds,
        "DEVICE FW START CYCLE": one.start_cycle,
        "DEVICE FW END CYCLE": one.end_cycle,
        "PROGRAM HASH": one.program,
        "PROGRAM CACHE HIT": one.cached,
    }
    if one.time is not None:
        row.update(_times(one.time))
    for tensor, spec in zip(TENSORS, one.inputs, strict=False):
        row.update(_tensor(tensor, spec))
    return {**row, **_tensor(TENSORS[-1], one.output)}


def _times(time: OperationTime) -> dict[str, object]:
    taken = time.kernel
    return {
        "DEVICE FW DURATION [ns]": taken.kernel,
        "DEVICE KERNEL DURATION [ns]": taken.kernel,
        "DEVICE KERNEL DURATION PER CORE MIN [ns]": taken.least,
        "DEVICE KERNEL DURATION PER CORE MAX [ns]": taken.kernel,
        "DEVICE KERNEL DURATION PER CORE AVG [ns]": taken.mean,
        "PM IDEAL [ns]": taken.ideal,
        "PM COMPUTE [ns]": taken.products,
        "PM BANDWIDTH [ns]": taken.dram,
        "PM FPU UTIL (%)": f"{100 * time.math.utilization:.3f}",
        "DRAM BW UTIL (%)": f"{100 * time.traffic.dram_share:.3f}",
    }


def _tensor(tensor: str, spec: TensorSpec) -> dict[str, object]:
    """A tensor's columns; axes before the last four are left out, those that it has not are 1."""
    padded, logical = ((1, 1, 1, 1, *shape)[-len(AXES) :] for shape in (spec.padded_shape, spec.shape))
    axes = zip(AXES, padded, logical, strict=True)
    return {
        **{f"{tensor}_{axis}_PAD[LOGICAL]": f"{high}[{low}]" for axis, high, low in axes},
        f"{tensor}_LAYOUT": spec.layout.name,
        f"{tensor}_DATATYPE": dtype_text(spec),
        f"{tensor}_MEMORY": f"DEV_0_{place_text(spec.memory_config)}",
    }


def _attributes(attributes: tuple[tuple[str, str], ...]) -> str:
    """As the profiler prints them: semicolons for commas."""
    return printable("{" + ", ".join(f"'{name}': '{value}'" for name, value in attributes) + "}").replace(",", ";")


LOG_COLUMNS: Final = (
    "PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID, trace id, "
    "trace id counter, zone name, type, source line, source file, meta data"
)
TIMER: Final = 1


def device_log(record: Record) -> str:
    """The file's text."""
    cores = record.device.num_compute_cores
    head = f"ARCH: {record.arch or 'unknown'}, CHIP_FREQ[MHz]: {record.clock_mhz}, Max Compute Cores: {cores}"
    lines = (
        line for one in record.operations for span in (one.time.spans if one.time else ()) for line in _zone(one, span)
    )
    return "".join(f"{line}\n" for line in (head, LOG_COLUMNS, *lines))


def _zone(one: OpRun, span: CoreSpan) -> Iterator[str]:
    for kind, cycle in (("ZONE_START", one.start_cycle), ("ZONE_END", one.end_of(span))):
        yield f"0,{span.column},{span.row},BRISC,{TIMER},{cycle},0,{one.call_count},,,BRISC-FW,{kind},0,,"
