"""The visualizer's database, read back."""

import json
import re
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import ttsim as ttnn
from ttsim.recording.record import record_of
from ttsim.report.export.visualizer import TABLES, config, database

SHARDS = re.compile(  # what the visualizer looks for
    r"shard_spec=ShardSpec\(grid=\{(\[.*?\])\},shape=\{(\d+),\s*(\d+)\},orientation=ShardOrientation::([A-Z_]+),halo=(\d+)\)"
)


def opened(record):
    made = sqlite3.connect(":memory:")
    made.deserialize(database(record))
    return closing(made)


@pytest.fixture(scope="module")
def db(record):
    with opened(record) as made:
        yield made


def graphs(db):
    return [
        json.loads(text) for (text,) in db.execute("SELECT captured_graph FROM captured_graph ORDER BY operation_id")
    ]


def test_calls_are_operations(db, record):
    found = db.execute("SELECT operation_id, name, duration FROM operations").fetchall()
    assert found == [(one.number, one.function, one.nanoseconds / 1e9) for one in record.calls]
    assert sum(one.nanoseconds for one in record.calls) == round(record.cycles.nanoseconds)
    assert {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")} == {
        "devices",
        *dict(TABLES),
    }


def test_device_operations_of_the_graphs_are_those_of_the_rows(db, record):
    names = [
        node["params"]["name"]
        for graph in graphs(db)
        for node in graph
        if node["node_type"] == "function_start" and not re.search(r"::|ttnn\.|\(torch\)", node["params"]["name"])
    ]
    assert names == [one.name for one in record.operations]


def test_every_program_has_its_circular_buffers(db):
    """The second call finds its programs in the cache, whose circular buffers a capture leaves out."""
    first, second, _ = (
        [
            (node["params"]["address"], node["params"]["size"], node["params"]["core_range_set"])
            for node in graph
            if node["node_type"] == "circular_buffer_allocate" and node["params"]["globally_allocated"] == "0"
        ]
        for graph in graphs(db)
    )
    assert first == second != []
    assert all(re.fullmatch(r"\{\[\(x=0,y=0\) - \(x=7,y=\d\)\]\}", cores) for _, _, cores in first)


def test_graphs_hold_texts_alone(db):
    assert all(isinstance(text, str) for graph in graphs(db) for node in graph for text in node["params"].values())


def test_a_call_leads_to_its_tensors(db):
    """The third call adds what the first two made."""
    outputs, inputs = (
        [number for (number,) in db.execute(f"SELECT tensor_id FROM {table} WHERE operation_id {which}")]
        for table, which in (("output_tensors", "< 3"), ("input_tensors", "= 3"))
    )
    assert outputs == inputs
    tensors = {number: about for number, *about in db.execute("SELECT tensor_id, shape, memory_config FROM tensors")}
    assert {tensors[number][0] for number in inputs} == {"Shape([1, 1, 1024, 32])"}
    sharded = [SHARDS.search(text) for _, text in tensors.values() if "HEIGHT_SHARDED" in text]
    assert sharded
    assert all(one.groups()[3:] == ("ROW_MAJOR", "0") for one in sharded)


def test_buffers_are_those_that_live_when_a_call_has_ended(db, record):
    """DRAM has the input and what calls returned, and no prepared weights: a call frees those."""
    columns = "operation_id, address, max_size_per_bank, buffer_type, buffer_layout"
    found = db.execute(f"SELECT {columns} FROM buffers").fetchall()
    assert {layout for *_, layout in found} <= {0, 2, 3, 4}
    for call in record.calls:
        own = [one[1:4] for one in found if one[0] == call.number]
        assert own == [(one.address, one.buffer.bank_bytes, one.buffer.buffer_type.value) for one in call.living]
        assert sum(kind == 0 for *_, kind in own) == 1 + call.number


def test_equal_records_give_equal_bytes(record):
    assert database(record) == database(record)
    assert json.loads(config(record))["report_name"] == "net"


def test_hostile_names_are_written_out(hostile):
    with opened(hostile) as made:
        (name, *_), *_ = made.execute("SELECT name FROM operations").fetchall()
        tables = ("operation_arguments", "errors", "stack_traces", "tensor_lifetime")
        told = "".join(
            text for table in tables for row in made.execute(f"SELECT * FROM {table}") for text in map(str, row)
        )
        kept = "".join(text for (text,) in made.execute("SELECT captured_graph FROM captured_graph"))
    assert name.startswith("a,b;c'd\"e\\nf\\r\\tg\\x00\\x1b[31mh\\ud800<i>&\\u202e=1+1xxx")
    assert not re.search("[\x00-\x1f\u202e\ud800]", name + told)
    first, _ = json.JSONDecoder().raw_decode(kept)
    assert {node["params"].get("name", name) for node in first} == {name}


def test_buffers_of_tensors_in_l1_are_told_core_by_core():
    """Four tiles on four cores, of the input and of the output."""
    with ttnn.open_device(spec="wormhole_n150", values="off") as device, ttnn.profile(device) as profile:
        x = ttnn.Tensor(np.zeros((1, 1, 64, 64), np.float32), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)
        x = x.to(device, ttnn.L1_MEMORY_CONFIG)
        y = ttnn.relu(x)
        record = record_of(profile, "l1")
        addresses = [one.buffer_address() for one in (x, y)]
    with opened(record) as made:
        found = made.execute("SELECT * FROM buffer_chunks").fetchall()
    rows = [(1, 0, address, core, core, 0, address, 2048, 2048, 1, 1) for address in addresses for core in range(4)]
    assert found == rows


def test_tensors_have_lifetimes(db, record):
    found = dict(db.execute("SELECT tensor_id, producer_operation_id FROM tensor_lifetime"))
    assert found.keys() == dict(record.tensors).keys()
    for call in record.calls:
        assert {found[number] for number in call.outputs} == {call.number}
    lines = db.execute(
        "SELECT DISTINCT producer_source_file, last_use_source_file FROM tensor_lifetime "
        "WHERE producer_operation_id AND last_use_operation_id"
    ).fetchall()
    assert lines == [("conftest.py", "conftest.py")]


def test_a_call_that_does_not_fit_is_an_error(failed):
    with opened(failed) as made:
        ((number, name, kind, message),) = made.execute(
            "SELECT operation_id, operation_name, error_type, error_message FROM errors"
        ).fetchall()
        assert (number, name, kind) == (1, "ttnn.to_memory_config", "incomplete_operation")
        assert message.startswith("Out of Memory: Not enough space to allocate")
        assert made.execute("SELECT operation_id, duration FROM operations").fetchall() == [(1, 0.0)]
        (graph,) = graphs(made)
        assert [node["params"].get("aborted") for node in graph if node["node_type"] == "function_end"] == ["true"] * 2
