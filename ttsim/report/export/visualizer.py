"""db.sqlite and config.json: the memory report that ttnn-visualizer opens."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from typing import Any, Final

from ttsim.report.export.spelling import dtype_text, memory_config_text, operation_name, shape_text, viewer_ranges
from ttsim.report.formatting import printable, text
from ttsim.report.record import Record

SCHEMA_VERSION: Final = "2.1"
INCOMPLETE: Final = "incomplete_operation"  # as the real library's importer calls a function that did not end
COMPARED: Final = "tensor_id int, golden_tensor_id int, matches int, desired_pcc float, actual_pcc float"
TABLES: Final = (
    ("operations", "operation_id int UNIQUE, name text, duration float"),
    ("operation_arguments", "operation_id int, name text, value text"),
    ("tensors", "tensor_id int UNIQUE, shape text, dtype text, layout text, memory_config text, device_id int, "
                "address int, buffer_type int"),
    ("device_tensors", "tensor_id int, device_id int, address int"),
    ("input_tensors", "operation_id int, input_index int, tensor_id int"),
    ("output_tensors", "operation_id int, output_index int, tensor_id int"),
    ("buffers", "operation_id int, device_id int, address int, max_size_per_bank int, buffer_type int, "
                "buffer_layout int"),
    ("buffer_pages", "operation_id int, device_id int, address int, core_y int, core_x int, bank_id int, "
                     "page_index int, page_address int, page_size int, buffer_type int"),
    ("buffer_chunks", "operation_id int, device_id int, address int, bank_id int, core_x int, core_y int, "
                      "chunk_address int, chunk_size int, page_size int, num_pages int, buffer_type int"),
    ("tensor_lifetime", "tensor_id int UNIQUE, producer_operation_id int, last_use_operation_id int, "
                        "deallocate_operation_id int, producer_source_file text, producer_source_line int, "
                        "last_use_source_file text, last_use_source_line int"),
    ("captured_graph", "operation_id int, captured_graph text"),
    ("report_metadata", "key text UNIQUE, value text"),
    ("errors", "operation_id int, operation_name text, error_type text, error_message text, stack_trace text, "
               "timestamp text"),
    ("source_files", "id INTEGER PRIMARY KEY, path text UNIQUE NOT NULL, contents text"),
    ("stack_traces", "operation_id int, stack_trace text, source_file_id int"),
    ("local_tensor_comparison_records", COMPARED),
    ("global_tensor_comparison_records", COMPARED),
)  # fmt: skip
Rows = Iterable[tuple[Any, ...]]


def rows_of(record: Record) -> dict[str, Rows]:
    """The rows of every table that has some, by its name."""
    return {name: made(record) for name, made in ROWS.items()}


def _operations(record: Record) -> Rows:
    return ((one.number, printable(one.function), one.nanoseconds / 1e9) for one in record.calls)


def _arguments(record: Record) -> Rows:
    return ((one.number, printable(name), printable(value)) for one in record.calls for name, value in one.arguments)


def _tensors(record: Record) -> Rows:
    for number, one in record.tensors:
        spec, config = one.spec, one.spec.memory_config
        described = (shape_text(spec), f"DataType.{dtype_text(spec)}", f"Layout.{spec.layout.name}")
        place = (record.device["device_id"], one.address, config.buffer_type.value)
        yield (number, *described, memory_config_text(config), *place)


def _device_tensors(record: Record) -> Rows:
    return ((number, record.device["device_id"], one.address) for number, one in record.tensors)


def _inputs(record: Record) -> Rows:
    return ((one.number, at, tensor) for one in record.calls for at, tensor in enumerate(one.inputs))


def _outputs(record: Record) -> Rows:
    return ((one.number, at, tensor) for one in record.calls for at, tensor in enumerate(one.outputs))


def _buffers(record: Record) -> Rows:
    for call in record.calls:
        for one in call.living:
            kind = (one.buffer.buffer_type.value, one.buffer.memory_layout.value)
            yield (call.number, record.device["device_id"], one.address, one.buffer.bank_bytes, *kind)


def _chunks(record: Record) -> Rows:
    """What the visualizer makes of buffer_pages itself, page by page, which would be many times as large."""
    for call in record.calls:
        for one in call.chunks:
            where = (record.device["device_id"], one.address, one.bank, one.column, one.row)
            yield (call.number, *where, one.start, one.size_bytes, one.page_bytes, one.pages, one.buffer_type)


def _lifetimes(record: Record) -> Rows:
    for one in record.lifetimes:
        yield (one.tensor, one.made, one.last_read, one.freed, *_source(one.made_at), *_source(one.last_read_at))


def _source(at: tuple[str, int]) -> tuple[str | None, int | None]:
    file, line = at
    return (printable(file), line) if file else (None, None)


def _errors(record: Record) -> Rows:
    for one in record.calls:
        if one.error:
            name = printable(one.function)
            yield (one.number, name, INCOMPLETE, printable(one.error), printable(one.where), "")


def _graphs(record: Record) -> Rows:
    for one in record.calls:
        nodes = [_node(node, record.device["device_id"]) for node in one.nodes]
        yield one.number, json.dumps(nodes)


def _node(node: Mapping[str, Any], device_id: int) -> dict[str, Any]:
    """A node whose parameters are texts, and whose cores and device are those of the other tables."""
    params = {key: printable(str(value)) for key, value in (node["params"] or {}).items()}
    if "device_id" in params:
        params["device_id"] = str(device_id)
    if "name" in params:
        params["name"] = operation_name(params["name"])
    if "core_range_set" in params:
        params["core_range_set"] = viewer_ranges(params["core_range_set"])
    return {**node, "id": node["counter"], "params": params}


def _metadata(record: Record) -> Rows:
    return (("schema_version", SCHEMA_VERSION), ("generator", "ttsim"), ("device", printable(record.cycles.device)))


def _stack_traces(record: Record) -> Rows:
    return ((one.number, printable(one.where), None) for one in record.calls if one.where)


ROWS: Final[Mapping[str, Callable[[Record], Rows]]] = {
    "devices": lambda record: (tuple(record.device.values()),),
    "operations": _operations,
    "operation_arguments": _arguments,
    "tensors": _tensors,
    "device_tensors": _device_tensors,
    "input_tensors": _inputs,
    "output_tensors": _outputs,
    "buffers": _buffers,
    "buffer_chunks": _chunks,
    "tensor_lifetime": _lifetimes,
    "captured_graph": _graphs,
    "errors": _errors,
    "report_metadata": _metadata,
    "stack_traces": _stack_traces,
}


def database(record: Record) -> bytes:
    """The bytes of db.sqlite; the same for the same record and version of SQLite."""
    with closing(sqlite3.connect(":memory:")) as made:
        devices = ", ".join(f"{name} int" for name in record.device)
        for name, columns in (("devices", devices), *TABLES):
            made.execute(f"CREATE TABLE {name} ({columns})")
        for name, rows in rows_of(record).items():
            each = list(rows)
            if each:
                made.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(each[0]))})", each)
        made.commit()
        return made.serialize()


def config(record: Record) -> str:
    """The text of config.json."""
    return text(
        {
            "report_name": record.name,
            "enable_logging": True,
            "enable_graph_report": False,
            "enable_detailed_buffer_report": True,
        }
    )
