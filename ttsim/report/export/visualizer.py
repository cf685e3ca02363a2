"""db.sqlite and config.json: the memory report that ttnn-visualizer opens."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from typing import Any, Final

from ttsim.report.export.spelling import dtype_text, memory_config_text, operation_name, shape_text, viewer_ranges
from ttsim.report.formatting import printable, text
from ttsim.report.record import Record, chunks_of

SCHEMA_VERSION: Final = "2.1"
INCOMPLETE: Final = "incomplete_operation"  # the real library's name for a function that did not end
COMPARED: Final = "tensor_id int, golden_tensor_id int, matches int, desired_pcc float, actual_pcc float"
Rows = Iterable[tuple[Any, ...]]
Table = tuple[str, Callable[[Record], Rows]]  # columns, and the rows of a record


def _tensors(record: Record) -> Rows:
    for tensor, number in record.tensors.items():
        spec, config = tensor.spec, tensor.spec.memory_config
        described = (shape_text(spec), f"DataType.{dtype_text(spec)}", f"Layout.{spec.layout.name}")
        place = (record.device_id, tensor.address, config.buffer_type.value)
        yield (number, *described, memory_config_text(config), *place)


def _buffers(record: Record) -> Rows:
    for call in record.calls:
        for event in call.living:
            kind = (event.buffer.buffer_type.value, event.buffer.memory_layout.value)
            yield (call.number, record.device_id, event.address, event.buffer.bank_bytes, *kind)


def _source(at: tuple[str, int]) -> tuple[str | None, int | None]:
    file, line = at
    return (printable(file), line) if file else (None, None)


def _errors(record: Record) -> Rows:
    for call in record.calls:
        if call.error:
            name = printable(call.function)
            yield (call.number, name, INCOMPLETE, printable(call.error), printable(call.where), "")


def _node(node: Mapping[str, Any], device_id: int) -> dict[str, Any]:
    """A node with text parameters, whose cores and device are those of the other tables."""
    params = {key: printable(str(value)) for key, value in (node["params"] or {}).items()}
    if "device_id" in params:
        params["device_id"] = str(device_id)
    if "name" in params:
        params["name"] = operation_name(params["name"])
    if "core_range_set" in params:
        params["core_range_set"] = viewer_ranges(params["core_range_set"])
    return {**node, "id": node["counter"], "params": params}


# The visualizer expands buffer_chunks into buffer_pages, which would be many times as large.
TABLES: Final[Mapping[str, Table]] = {
    "operations": (
        "operation_id int UNIQUE, name text, duration float",
        lambda record: ((call.number, printable(call.function), call.nanoseconds / 1e9) for call in record.calls),
    ),
    "operation_arguments": (
        "operation_id int, name text, value text",
        lambda record: (
            (call.number, printable(name), printable(value)) for call in record.calls for name, value in call.arguments
        ),
    ),
    "tensors": (
        "tensor_id int UNIQUE, shape text, dtype text, layout text, memory_config text, device_id int, address int, "
        "buffer_type int",
        _tensors,
    ),
    "device_tensors": (
        "tensor_id int, device_id int, address int",
        lambda record: ((number, record.device_id, tensor.address) for tensor, number in record.tensors.items()),
    ),
    "input_tensors": (
        "operation_id int, input_index int, tensor_id int",
        lambda record: ((call.number, *read) for call in record.calls for read in enumerate(call.inputs)),
    ),
    "output_tensors": (
        "operation_id int, output_index int, tensor_id int",
        lambda record: ((call.number, *output) for call in record.calls for output in enumerate(call.outputs)),
    ),
    "buffers": (
        "operation_id int, device_id int, address int, max_size_per_bank int, buffer_type int, buffer_layout int",
        _buffers,
    ),
    "buffer_pages": (
        "operation_id int, device_id int, address int, core_y int, core_x int, bank_id int, page_index int, "
        "page_address int, page_size int, buffer_type int",
        lambda record: (),
    ),
    "buffer_chunks": (
        "operation_id int, device_id int, address int, bank_id int, core_x int, core_y int, chunk_address int, "
        "chunk_size int, page_size int, num_pages int, buffer_type int",
        lambda record: (
            (call.number, record.device_id, *chunk)
            for call in record.calls
            for chunk in chunks_of(call.living, record.buffers, record.spec)
        ),
    ),
    "tensor_lifetime": (
        "tensor_id int UNIQUE, producer_operation_id int, last_use_operation_id int, deallocate_operation_id int, "
        "producer_source_file text, producer_source_line int, last_use_source_file text, last_use_source_line int",
        lambda record: (
            (life.tensor, life.made, life.last_read, life.freed, *_source(life.made_at), *_source(life.last_read_at))
            for life in record.lifetimes
        ),
    ),
    "captured_graph": (
        "operation_id int, captured_graph text",
        lambda record: (
            (call.number, json.dumps([_node(node, record.device_id) for node in call.nodes])) for call in record.calls
        ),
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
        _errors,
    ),
    "source_files": ("id INTEGER PRIMARY KEY, path text UNIQUE NOT NULL, contents text", lambda record: ()),
    "stack_traces": (
        "operation_id int, stack_trace text, source_file_id int",
        lambda record: ((call.number, printable(call.where), None) for call in record.calls if call.where),
    ),
    "local_tensor_comparison_records": (COMPARED, lambda record: ()),
    "global_tensor_comparison_records": (COMPARED, lambda record: ()),
}


def database(record: Record) -> bytes:
    """The bytes of db.sqlite; equal for equal records and versions of SQLite."""
    devices = ", ".join(f"{name} int" for name in record.device)
    tables: dict[str, Table] = {"devices": (devices, lambda record: [tuple(record.device.values())]), **TABLES}
    with closing(sqlite3.connect(":memory:")) as connection:
        for name, (columns, _) in tables.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
        for name, (_, rows_of) in tables.items():
            rows = list(rows_of(record))
            if rows:
                connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        connection.commit()
        return connection.serialize()


def config(record: Record) -> str:
    """The text of config.json."""
    switches = {"enable_logging": True, "enable_graph_report": False, "enable_detailed_buffer_report": True}
    return text({"report_name": record.name, **switches})
