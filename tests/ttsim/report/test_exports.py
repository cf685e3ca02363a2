"""Files for other tools: the viewers' database, the profiler's tables, routes on the networks, both reports in JSON.

The record is one of a convolution, a sum, and a call that does not fit; another has names that mean harm.
"""

import csv
import io
import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import ttsim as ttnn
from device.cores import first_cores
from device.memory.memory_config import DRAM_MEMORY_CONFIG, BufferType, MemoryConfig, ShardSpec, TensorMemoryLayout
from ops.op_model import Description
from tests.ttsim.recording import calls
from tests.ttsim.recording.calls import opened, recorded
from tests.ttsim.report.test_approved import approve
from ttsim.recording.saving import record_of
from ttsim.report.exports import (
    HEAD,
    cluster_descriptor,
    config,
    database,
    device_log,
    memory_config_text,
    npe_files,
    ops_perf_results,
    place_text,
    viewer_ranges,
)
from ttsim.report.writers.json import report_json
from ttsim.runtime.traces import CallSite

HOSTILE = "a,b;c'd\"e\nf\r\tg\x00\x1b[31mh\ud800<i>&\u202e=1+1" + "x" * 10_000


@pytest.fixture(scope="module")
def record():
    with opened() as device, ttnn.profile(device) as profile:
        recorded(profile)
        result = record_of(profile, "net")
    assert result.sources == {"calls.py": Path(calls.__file__).read_text()}
    line = next(call.at.line for call in result.calls if call.error)
    return replace(result, sources={"calls.py": "\n" * (line - 1) + "    ttnn.to_memory_config(...)\n"})


@pytest.fixture(scope="module")
def hostile(record):
    def harmed(node):
        params = node["params"]
        return {**node, "params": {**params, "name": HOSTILE}} if params and "name" in params else node

    harm = {"function": HOSTILE, "where": HOSTILE, "stack": (CallSite(HOSTILE, 1, HOSTILE),), "error": HOSTILE}
    harm |= {"arguments": ((HOSTILE, HOSTILE),)}
    calls = tuple(replace(call, nodes=tuple(map(harmed, call.nodes)), **harm) for call in record.calls)
    about = Description(attributes=((HOSTILE, HOSTILE),))
    ran = tuple(replace(op, name=HOSTILE, timed=replace(op.timed, description=about)) for op in record.operations)
    whole = {"calls": calls, "operations": ran, "sources": {HOSTILE: HOSTILE.replace("\ud800", "")}}
    return replace(record, **whole, cycles=replace(record.cycles, device=HOSTILE))


def read_back(record):
    result = sqlite3.connect(":memory:")
    result.deserialize(database(record))
    return closing(result)


def test_every_file(record):
    files = {
        "config.json": f"{config(record)}\n",
        "cluster_descriptor.yaml": cluster_descriptor(record),
        "ops_perf_results.csv": ops_perf_results(record),
        "profile_log_device.csv": device_log(record),
        **npe_files(record),
    }
    with read_back(record) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            rows = db.execute(f"SELECT * FROM {name}")
            head = [name for name, *_ in rows.description]
            files[name] = "".join(f"{json.dumps(row)}\n" for row in (head, *rows))
    assert database(record) == database(record)
    approve("exports.txt", "".join(f"--- {name}\n{text}" for name, text in files.items()))
    assert npe_files(replace(record, timelines=())) == {}
    both = {"cycles": json.loads(record.cycles.to_json()), "network": json.loads(record.network.to_json())}
    assert json.loads(report_json(record)) == {"format": 1, "name": "net", **both}


def test_hostile_names_are_written_out(record, hostile):
    with read_back(hostile) as database:
        (name, *_), *_ = database.execute("SELECT name FROM operations").fetchall()
        tables = ("operation_arguments", "errors", "stack_traces", "tensor_lifetime")
        rows = [row for table in tables for row in database.execute(f"SELECT * FROM {table}")]
        texts = [str(cell).replace("\n  ", " ") for row in rows for cell in row]  # a traceback has two lines
        (graph,), *_ = database.execute("SELECT captured_graph FROM captured_graph").fetchall()
    assert name.startswith("a,b;c'd\"e\\nf\\r\\tg\\x00\\x1b[31mh\\ud800<i>&\\u202e=1+1xxx")
    assert not re.search("[\x00-\x1f\u202e\ud800]", name + "".join(texts))
    assert {node["params"].get("name", name) for node in json.loads(graph)} == {name}
    text = ops_perf_results(hostile)
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e\ud800]", text)
    found = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert {len(row) for row in found} == {len(HEAD)}
    assert len(found) == len(text.splitlines()) == len(hostile.operations) + 1
    assert device_log(hostile) == device_log(record)
    assert all(re.fullmatch("[A-Za-z0-9_.-]{,100}", file) for file in npe_files(hostile))
    assert all(text.isascii() for text in npe_files(hostile).values())
    assert report_json(hostile).isascii()
    assert json.loads(report_json(hostile))["cycles"]["device"] == HOSTILE


def test_how_viewers_spell():
    config = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(first_cores(16, 8, 8), (32, 64)))
    assert memory_config_text(config) == (
        "MemoryConfig(memory_layout=TensorMemoryLayout::HEIGHT_SHARDED,buffer_type=BufferType::L1,shard_spec=ShardSpec("
        "grid={[(x=0,y=0) - (x=7,y=1)]},shape={32, 64},orientation=ShardOrientation::ROW_MAJOR,halo=0),"
        "nd_shard_spec=std::nullopt,created_with_nd_shard_spec=0)"
    )
    assert "shard_spec=std::nullopt" in memory_config_text(DRAM_MEMORY_CONFIG)
    assert (place_text(config), place_text(DRAM_MEMORY_CONFIG)) == ("L1_HEIGHT_SHARDED", "DRAM_INTERLEAVED")
    ranges = viewer_ranges("{[0-0 - 7-7], [0-8 - 3-8]}")
    assert ranges == "{[(x=0,y=0) - (x=7,y=7)], [(x=0,y=8) - (x=3,y=8)]}"
