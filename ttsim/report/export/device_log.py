"""profile_log_device.csv: when each core works on each device operation, in cycles.

A core's BRISC launches the other processors and waits for them, so that its firmware zone is all that the core does;
when each of them begins and ends within it is not simulated. Cores are counted from 0, by columns and rows of the grid.
"""

from collections.abc import Iterator
from typing import Final

from ttsim.report.record.figures import CoreSpan, Record, RecordedOperation

COLUMNS: Final = (
    "PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID, trace id, "
    "trace id counter, zone name, type, source line, source file, meta data"
)
TIMER: Final = 1


def device_log(record: Record) -> str:
    """The file's text."""
    cores = record.device.num_compute_cores
    head = f"ARCH: {record.arch or 'unknown'}, CHIP_FREQ[MHz]: {record.clock_mhz}, Max Compute Cores: {cores}"
    lines = (line for one in record.operations for span in one.spans for line in _zone(one, span))
    return "".join(f"{line}\n" for line in (head, COLUMNS, *lines))


def _zone(one: RecordedOperation, span: CoreSpan) -> Iterator[str]:
    for kind, cycle in (("ZONE_START", one.start_cycle), ("ZONE_END", one.end_of(span))):
        yield f"0,{span.column},{span.row},BRISC,{TIMER},{cycle},0,{one.call_count},,,BRISC-FW,{kind},0,,"
