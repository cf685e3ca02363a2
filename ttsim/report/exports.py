"""Files for other tools from the record of a run; no figure is computed here.

db.sqlite, config.json and cluster_descriptor.yaml are the memory report that ttnn-visualizer opens. db.sqlite has the
source text of the script's files that made calls. The cluster is one chip; its harvested cores are unknown.

ops_perf_results.csv (a row per device operation) and profile_log_device.csv are those of tt-metal's profiler (v2.1).
tt-perf-report and ttnn-visualizer read the first file. Their FLOPs of a convolution are issued FLOPs, including
inserted zeros. Rows are sorted by HOST START TS, which is the row number, because the host's clock is not simulated.
The second file has the cycles in which each core works on each device operation. A core's BRISC launches the other
processors and waits for them, so its firmware zone covers all work of the core; zones of the other processors are not
simulated. Core coordinates are columns and rows of the grid, from 0.

npe_viz has a file of network transfers for each program, and a manifest that maps device operations to these files.
ttnn-visualizer opens each of these files from the row of its operation on the page Performance. Only programs whose
model has routes are written: halos. Programs without routes (multicasts of convolutions, DRAM traffic) are omitted.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from functools import partial
from typing import Any, Final

from device.memory.layouts import TensorSpec
from device.memory.memory_config import MemoryConfig
from device.plan import BufferAllocated
from ops.window import ranges_text
from ttsim.report.cycles import OperationTime, kernel_nanoseconds
from ttsim.report.explain import FIDELITIES
from ttsim.report.formatting import csv_text, file_name, printable, text
from ttsim.report.network import OpRun
from ttsim.report.record import DEVICE_FIGURES, Record, RecordedCall, chunks_of
from ttsim.runtime.traces import CallSite

CORE: Final = re.compile(r"(\d+)-(\d+)")


def dtype_text(spec: TensorSpec) -> str:
    """The data type: BFLOAT16, BFLOAT8_B ..."""
    return spec.data_format.name.upper()


def place_text(config: MemoryConfig) -> str:
    """A buffer type and its memory layout: L1_HEIGHT_SHARDED."""
    return f"{config.buffer_type.name}_{config.memory_layout.name}"


def memory_config_text(config: MemoryConfig) -> str:
    """A memory config; its shard spec has the field ``halo`` that viewers require."""
    shards, dealt = config.shard_spec, "std::nullopt"
    if shards is not None:
        sides = ", ".join(map(str, shards.shape))
        orientation = f"ShardOrientation::{shards.orientation.name}"
        dealt = f"ShardSpec(grid={ranges_text(shards.grid)},shape={{{sides}}},orientation={orientation},halo=0)"
    return (
        f"MemoryConfig(memory_layout=TensorMemoryLayout::{config.memory_layout.name},"
        f"buffer_type=BufferType::{config.buffer_type.name},shard_spec={dealt},nd_shard_spec=std::nullopt,"
        "created_with_nd_shard_spec=0)"
    )


def viewer_ranges(cores: str) -> str:
    """The cores {[0-0 - 7-7]} of a capture with named coordinates."""
    return CORE.sub(r"(x=\1,y=\2)", cores)


SCHEMA_VERSION: Final = "2.1"
INCOMPLETE: Final = "incomplete_operation"  # the real library's name for a function that did not end
COMPARED: Final = "tensor_id int, golden_tensor_id int, matches int, desired_pcc float, actual_pcc float"
Rows = Callable[[Record], Iterable[tuple[Any, ...]]]


def _nothing(record: Record) -> Iterable[tuple[Any, ...]]:
    return ()


def _of_calls(rows: Callable[[RecordedCall, Record], Iterable[Iterable[Any]]]) -> Rows:
    """The rows of all calls, each preceded by the number of its call."""
    return lambda record: ((call.number, *row) for call in record.calls for row in rows(call, record))


def source_path(file: str) -> str:
    """A path of a script file with at least one slash, which the visualizer needs to find the end of the name."""
    return printable(file if "/" in file else f"./{file}")


def _source(at: CallSite) -> tuple[str | None, int | None]:
    return (source_path(at.file), at.line) if at.file else (None, None)


def stack_trace(call: RecordedCall, record: Record) -> str:
    """The script lines of a call in the format of Python's tracebacks, innermost first, as in the real library."""
    lines = []
    for site in reversed(call.stack):
        lines.append(f'File "{source_path(site.file)}", line {site.line}, in {printable(site.function)}')
        text = record.sources.get(site.file, "").splitlines()[site.line - 1 : site.line]
        lines += [f"  {printable(line.strip())}" for line in text]
    return "\n".join(lines)


def _tensor(spec: TensorSpec) -> tuple[str, ...]:
    described = (f"Shape({list(spec.shape)})", f"DataType.{dtype_text(spec)}", f"Layout.{spec.layout.name}")
    return (*described, memory_config_text(spec.memory_config))


def _buffer(event: BufferAllocated) -> tuple[int, ...]:
    buffer = event.buffer
    return event.address, buffer.bank_bytes, buffer.buffer_type.value, buffer.memory_layout.value


def _node(node: Mapping[str, Any], device_id: int) -> dict[str, Any]:
    """A node with text parameters, with cores and device in the format of the other tables."""
    params = {key: printable(str(value)) for key, value in (node["params"] or {}).items()}
    changes = {"device_id": lambda _: str(device_id), "name": printable, "core_range_set": viewer_ranges}
    params |= {key: change(params[key]) for key, change in changes.items() if key in params}
    return {**node, "id": node["counter"], "params": params}


TABLES: Final[Mapping[str, tuple[str, Rows]]] = {  # columns and rows
    "devices": (", ".join(f"{name} int" for name in DEVICE_FIGURES), lambda record: [tuple(record.device.values())]),
    "operations": (
        "operation_id int UNIQUE, name text, duration float",
        _of_calls(lambda call, record: [(printable(call.function), call.nanoseconds / 1e9)]),
    ),
    "operation_arguments": (
        "operation_id int, name text, value text",
        _of_calls(lambda call, record: (map(printable, argument) for argument in call.arguments)),
    ),
    "tensors": (
        "tensor_id int UNIQUE, shape text, dtype text, layout text, memory_config text, device_id int, "
        "address int, buffer_type int",
        lambda record: (
            (number, *_tensor(spec), record.device_id, address, spec.memory_config.buffer_type.value)
            for (_, address, spec), number in record.tensors.items()
        ),
    ),
    "device_tensors": (
        "tensor_id int, device_id int, address int",
        lambda record: ((number, record.device_id, tensor.address) for tensor, number in record.tensors.items()),
    ),
    "input_tensors": (
        "operation_id int, input_index int, tensor_id int",
        _of_calls(lambda call, record: enumerate(call.inputs)),
    ),
    "output_tensors": (
        "operation_id int, output_index int, tensor_id int",
        _of_calls(lambda call, record: enumerate(call.outputs)),
    ),
    "buffers": (
        "operation_id int, device_id int, address int, max_size_per_bank int, buffer_type int, buffer_layout int",
        _of_calls(lambda call, record: ((record.device_id, *_buffer(event)) for event in call.living)),
    ),
    "buffer_pages": (
        "operation_id int, device_id int, address int, core_y int, core_x int, bank_id int, page_index int, "
        "page_address int, page_size int, buffer_type int",
        _nothing,
    ),
    "buffer_chunks": (  # the visualizer expands them into buffer_pages, which are many times as large
        "operation_id int, device_id int, address int, bank_id int, core_x int, core_y int, chunk_address int, "
        "chunk_size int, page_size int, num_pages int, buffer_type int",
        _of_calls(
            lambda call, record: (
                (record.device_id, *chunk) for chunk in chunks_of(call.living, record.buffers, record.spec)
            )
        ),
    ),
    "tensor_lifetime": (
        "tensor_id int UNIQUE, producer_operation_id int, last_use_operation_id int, deallocate_operation_id int, "
        "producer_source_file text, producer_source_line int, last_use_source_file text, last_use_source_line int",
        lambda record: (
            (tensor, producer, last_reader, freed, *_source(produced_at), *_source(last_read_at))
            for tensor, producer, produced_at, last_reader, last_read_at, freed in record.lifetimes
        ),
    ),
    "captured_graph": (
        "operation_id int, captured_graph text",
        _of_calls(lambda call, record: [(json.dumps([_node(node, record.device_id) for node in call.nodes]),)]),
    ),
    "report_metadata": (
        "key text UNIQUE, value text",
        lambda record: (
            ("schema_version", SCHEMA_VERSION),
            ("generator", "ttsim"),
            ("device", printable(record.cycles.device)),
        ),
    ),
    "errors": (
        "operation_id int, operation_name text, error_type text, error_message text, stack_trace text, timestamp text",
        _of_calls(
            lambda call, record: (
                (*map(printable, (call.function, INCOMPLETE, error)), stack_trace(call, record), "")
                for error in filter(None, [call.error])
            )
        ),
    ),
    "source_files": (
        "id INTEGER PRIMARY KEY, path text UNIQUE NOT NULL, contents text",
        lambda record: (
            (number, source_path(file), record.sources[file]) for file, number in record.source_numbers.items()
        ),
    ),
    "stack_traces": (
        "operation_id int, stack_trace text, source_file_id int",
        _of_calls(
            lambda call, record: (
                (stack_trace(call, record), record.source_numbers.get(at.file)) for at in call.stack[-1:]
            )
        ),
    ),
    "local_tensor_comparison_records": (COMPARED, _nothing),
    "global_tensor_comparison_records": (COMPARED, _nothing),
}


def database(record: Record) -> bytes:
    """The bytes of db.sqlite; equal for equal records and versions of SQLite."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for name, (columns, _) in TABLES.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
        for name, (columns, rows) in TABLES.items():
            values = ", ".join("?" * len(columns.split(", ")))
            connection.executemany(f"INSERT INTO {name} VALUES ({values})", rows(record))
        connection.commit()
        return connection.serialize()


def config(record: Record) -> str:
    """The text of config.json."""
    switches = {"enable_logging": True, "enable_graph_report": False, "enable_detailed_buffer_report": True}
    return text({"report_name": record.name, **switches})


def cluster_descriptor(record: Record) -> str:
    """The text of cluster_descriptor.yaml: one chip without Ethernet links, as the real driver describes a card."""
    board = json.dumps(printable(record.spec.cluster.lower()))
    return (
        f"arch:\n  0: {record.arch or 'unknown'}\nchips:\n  0: [0, 0, 0, 0]\nethernet_connections: []\n"
        f"chips_with_mmio:\n  - 0: 0\nboards:\n  -\n    - board_id: 0\n    - board_type: {board}\n    - chips: [0]\n"
    )


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
    "OP CODE": lambda op, record: printable(op.name),
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


def _side(spec: TensorSpec, axis: int) -> str:
    """One of the last four sides; missing sides are 1, earlier sides are omitted."""
    padded, logical = ((1, 1, 1, 1, *shape)[-len(AXES) :][axis] for shape in (spec.padded_shape, spec.shape))
    return f"{padded}[{logical}]"


TENSOR_COLUMNS: Final[Mapping[str, Callable[[TensorSpec], object]]] = {
    **{f"{axis}_PAD[LOGICAL]": partial(_side, axis=at) for at, axis in enumerate(AXES)},
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
    """The text of profile_log_device.csv."""
    cores, clock_mhz = record.device["num_compute_cores"], round(record.spec.clock_hz / 1e6)
    head = f"ARCH: {record.arch or 'unknown'}, CHIP_FREQ[MHz]: {clock_mhz}, Max Compute Cores: {cores}"
    zones = (
        f"0,{column},{row},BRISC,{TIMER},{cycle},0,{op.call_count},,,BRISC-FW,{kind},0,,"
        for op in record.operations
        for (column, row), end in op.core_ends.items()
        for kind, cycle in (("ZONE_START", op.start_cycle), ("ZONE_END", end))
    )
    return "".join(f"{line}\n" for line in (head, LOG_COLUMNS, *zones))


def npe_files(record: Record) -> dict[str, str]:
    """The files of npe_viz by name; empty if no transfer is known."""
    names = {op.program: f"{file_name(op.name)}-{op.program}.json" for op in record.operations}
    names = {program: names[program] for program, _ in record.timelines}
    known = [op for op in record.operations if op.program in names]
    manifest = [{"global_call_count": op.call_count, "file": names[op.program]} for op in known]
    files: dict[str, Any] = {"manifest.json": manifest} if names else {}
    files |= {names[program]: document for program, document in record.timelines}
    return {name: json.dumps(file, separators=(",", ":"), allow_nan=False) + "\n" for name, file in files.items()}
