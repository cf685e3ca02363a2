"""Files for other tools: the viewers' database, the profiler's tables, routes on the networks, both reports in JSON.

The record is one of two convolutions and a sum; another has names that mean harm, a third a call that does not fit.
"""

import csv
import io
import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

import ttsim as ttnn
from device.cores import first_cores
from device.memory.memory_config import DRAM_MEMORY_CONFIG, BufferType, MemoryConfig, ShardSpec, TensorMemoryLayout
from ops.op_model import Description
from tests.ttsim.recording.calls import opened as opened_device, options, tensor
from ttsim.recording.record import record_of
from ttsim.report.export.npe import npe_files
from ttsim.report.export.profiler import HEAD, LOG_COLUMNS, device_log, ops_perf_results
from ttsim.report.export.spelling import memory_config_text, operation_name, place_text, viewer_ranges
from ttsim.report.export.visualizer import TABLES, config, database
from ttsim.report.writers.json import report_json

HOSTILE = "a,b;c'd\"e\nf\r\tg\x00\x1b[31mh\ud800<i>&\u202e=1+1" + "x" * 10_000
LINKS = {"NOC0": {"NOC0_EAST", "NOC0_SOUTH"}, "NOC1": {"NOC1_NORTH", "NOC1_WEST"}}
SHARDS = re.compile(  # what the visualizer looks for
    r"shard_spec=ShardSpec\(grid=\{(\[.*?\])\},shape=\{(\d+),\s*(\d+)\},orientation=ShardOrientation::([A-Z_]+),halo=(\d+)\)"
)


@pytest.fixture(scope="module")
def record():
    with opened_device() as device, ttnn.profile(device) as profile:
        given = options(device, size=16, channels=(32, 32), memory=ttnn.DRAM_MEMORY_CONFIG)
        first, second = (ttnn.conv_transpose2d(device=device, **given) for _ in range(2))
        kept = ttnn.add(first, second)
        result = record_of(profile, "net")
    del kept
    return result


@pytest.fixture(scope="module")
def failed():
    with opened_device() as device, ttnn.profile(device) as profile:
        x = tensor(device, 1, 1, 8192, 8192)
        with pytest.raises(ttnn.OutOfMemoryError):
            ttnn.to_memory_config(x, ttnn.L1_MEMORY_CONFIG)
        return record_of(profile, "failed")


@pytest.fixture(scope="module")
def hostile(record):
    def harmed(node):
        params = node["params"]
        return {**node, "params": {**params, "name": HOSTILE}} if params and "name" in params else node

    harm = {"function": HOSTILE, "where": HOSTILE, "arguments": ((HOSTILE, HOSTILE),), "error": HOSTILE}
    calls = tuple(replace(call, nodes=tuple(map(harmed, call.nodes)), **harm) for call in record.calls)
    attributes = Description(attributes=((HOSTILE, HOSTILE),))
    operations = tuple(
        replace(op, name=HOSTILE, timed=replace(op.timed, description=attributes)) for op in record.operations
    )
    lifetimes = tuple(life._replace(made_at=(HOSTILE, 1), last_read_at=(HOSTILE, 2)) for life in record.lifetimes)
    cycles = replace(record.cycles, device=HOSTILE)
    return replace(record, calls=calls, operations=operations, lifetimes=lifetimes, cycles=cycles)


def read_back(record):
    result = sqlite3.connect(":memory:")
    result.deserialize(database(record))
    return closing(result)


@pytest.fixture(scope="module")
def db(record):
    with read_back(record) as database:
        yield database


def graphs(db):
    return [
        json.loads(text) for (text,) in db.execute("SELECT captured_graph FROM captured_graph ORDER BY operation_id")
    ]


def test_calls_are_operations(db, record):
    found = db.execute("SELECT operation_id, name, duration FROM operations").fetchall()
    assert found == [(call.number, call.function, call.nanoseconds / 1e9) for call in record.calls]
    assert sum(call.nanoseconds for call in record.calls) == round(record.cycles.nanoseconds)
    names = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    assert names == {"devices", *TABLES}
    assert database(record) == database(record)
    assert json.loads(config(record))["report_name"] == "net"


def test_graphs_have_the_device_operations_of_the_rows_and_texts_alone(db, record):
    names = [
        node["params"]["name"]
        for graph in graphs(db)
        for node in graph
        if node["node_type"] == "function_start" and not re.search(r"::|ttnn\.|\(torch\)", node["params"]["name"])
    ]
    assert names == [op.name for op in record.operations]
    assert all(isinstance(text, str) for graph in graphs(db) for node in graph for text in node["params"].values())


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


def test_a_call_leads_to_its_tensors_and_their_lifetimes(db, record):
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
    assert all(match.groups()[3:] == ("ROW_MAJOR", "0") for match in sharded)
    found = dict(db.execute("SELECT tensor_id, producer_operation_id FROM tensor_lifetime"))
    assert found.keys() == dict(record.tensors).keys()
    for call in record.calls:
        assert {found[number] for number in call.outputs} == {call.number}
    lines = db.execute(
        "SELECT DISTINCT producer_source_file, last_use_source_file FROM tensor_lifetime "
        "WHERE producer_operation_id AND last_use_operation_id"
    ).fetchall()
    assert lines == [("test_exports.py", "test_exports.py")]


def test_buffers_are_those_that_live_when_a_call_has_ended(db, record):
    """DRAM has the input and what calls returned, and no prepared weights: a call frees those."""
    columns = "operation_id, address, max_size_per_bank, buffer_type, buffer_layout"
    found = db.execute(f"SELECT {columns} FROM buffers").fetchall()
    assert {layout for *_, layout in found} <= {0, 2, 3, 4}
    for call in record.calls:
        own = [row[1:4] for row in found if row[0] == call.number]
        assert own == [(one.address, one.buffer.bank_bytes, one.buffer.buffer_type.value) for one in call.living]
        assert sum(kind == 0 for *_, kind in own) == 1 + call.number


def test_buffers_of_tensors_in_l1_are_told_core_by_core():
    """Four tiles on four cores, of the input and of the output."""
    with opened_device() as device, ttnn.profile(device) as profile:
        x = tensor(device, 1, 1, 64, 64, memory=ttnn.L1_MEMORY_CONFIG)
        y = ttnn.relu(x)
        record = record_of(profile, "l1")
        addresses = [one.buffer_address() for one in (x, y)]
    with read_back(record) as database:
        found = database.execute("SELECT * FROM buffer_chunks").fetchall()
    assert found == [
        (1, 0, address, core, core, 0, address, 2048, 2048, 1, 1) for address in addresses for core in range(4)
    ]


def test_a_call_that_does_not_fit_is_an_error(failed):
    with read_back(failed) as database:
        ((number, name, kind, message),) = database.execute(
            "SELECT operation_id, operation_name, error_type, error_message FROM errors"
        ).fetchall()
        assert (number, name, kind) == (1, "ttnn.to_memory_config", "incomplete_operation")
        assert message.startswith("Out of Memory: Not enough space to allocate")
        assert database.execute("SELECT operation_id, duration FROM operations").fetchall() == [(1, 0.0)]
        (graph,) = graphs(database)
    assert [node["params"].get("aborted") for node in graph if node["node_type"] == "function_end"] == ["true"] * 2


def test_hostile_names_are_written_out(record, hostile):
    with read_back(hostile) as database:
        (name, *_), *_ = database.execute("SELECT name FROM operations").fetchall()
        tables = ("operation_arguments", "errors", "stack_traces", "tensor_lifetime")
        told = "".join(
            text for table in tables for row in database.execute(f"SELECT * FROM {table}") for text in map(str, row)
        )
        kept = "".join(text for (text,) in database.execute("SELECT captured_graph FROM captured_graph"))
    assert name.startswith("a,b;c'd\"e\\nf\\r\\tg\\x00\\x1b[31mh\\ud800<i>&\\u202e=1+1xxx")
    assert not re.search("[\x00-\x1f\u202e\ud800]", name + told)
    first, _ = json.JSONDecoder().raw_decode(kept)
    assert {node["params"].get("name", name) for node in first} == {name}
    text = ops_perf_results(hostile)
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e\ud800]", text)
    found = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert {len(row) for row in found} == {len(HEAD)}
    assert len(found) == len(text.splitlines()) == len(hostile.operations) + 1
    assert device_log(hostile) == device_log(record)
    assert all(text.isascii() and "xxx" not in text for text in npe_files(hostile).values())
    assert report_json(hostile).isascii()
    assert json.loads(report_json(hostile))["cycles"]["device"] == HOSTILE


def test_both_reports_are_in_a_file(record):
    read = json.loads(report_json(record))
    assert read["name"] == "net"
    assert read["cycles"] == json.loads(record.cycles.to_json())
    assert read["network"] == json.loads(record.network.to_json())


def rows(record):
    return list(csv.DictReader(io.StringIO(ops_perf_results(record), newline=""), strict=True))


def test_rows_of_the_profiler_have_the_figures_of_the_report(record):
    found, times = rows(record), record.cycles.operations
    assert [row["OP CODE"] for row in found] == [op.name for op in record.network.operations]
    assert [int(row["DEVICE KERNEL DURATION [ns]"]) for row in found] == [round(op.nanoseconds) for op in times]
    assert [int(row["CORE COUNT"]) for row in found] == [op.core_count for op in times]
    assert [float(row["PM FPU UTIL (%)"]) for row in found] == [round(100 * op.math.utilization, 3) for op in times]
    assert [int(row["GLOBAL CALL COUNT"]) for row in found] == [1024 * (at + 1) for at in range(len(found))]
    assert [int(row["HOST START TS"]) for row in found] == list(range(1, len(found) + 1))
    assert {row["DEVICE ARCH"] for row in found} == {"wormhole_b0"}
    limits = (("IDEAL", "cycles"), ("COMPUTE", "math_cycles"), ("BANDWIDTH", "dram_cycles"))
    for name, figure in limits:  # none is 0: viewers take that for a failure
        assert [int(row[f"PM {name} [ns]"]) for row in found] == [max(getattr(op.roofline, figure), 1) for op in times]
    for name, figure in (("MIN", "first_end"), ("AVG", "mean_end"), ("MAX", "cycles")):
        shown = [int(row[f"DEVICE KERNEL DURATION PER CORE {name} [ns]"]) for row in found]
        assert shown == [round(getattr(op, figure)) for op in times]


def test_a_convolution_has_what_its_flops_follow_from(record):
    """1024 rows of output; 32 channels under a window of 2 x 2, a matrix of 128 x 32: as an issued product has it."""
    first, second = (row for row in rows(record) if row["OP CODE"] == "Conv2dDeviceOperation")
    assert first["OUTPUT_0_Y_PAD[LOGICAL]"] == "1024[1024]"
    assert first["INPUT_0_X_PAD[LOGICAL]"] == "32[32]"
    assert (first["INPUT_1_Y_PAD[LOGICAL]"], first["INPUT_1_X_PAD[LOGICAL]"]) == ("128[128]", "32[32]")
    assert "window_hw=(2;2); stride_hw=(2;2); " in first["ATTRIBUTES"]
    assert "," not in first["ATTRIBUTES"]
    assert (first["MATH FIDELITY"], first["OUTPUT_0_MEMORY"]) == ("HiFi4", "DEV_0_L1_HEIGHT_SHARDED")
    assert (first["PROGRAM CACHE HIT"], second["PROGRAM CACHE HIT"]) == ("False", "True")
    assert first["PROGRAM HASH"] == second["PROGRAM HASH"]


def test_every_core_has_a_zone_of_each_operation(record):
    head, columns, *lines = device_log(record).splitlines()
    assert head == "ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000, Max Compute Cores: 64"
    assert columns == LOG_COLUMNS
    assert len(lines) == 2 * sum(op.core_count for op in record.cycles.operations)
    assert {line.count(",") for line in (columns, *lines)} == {14}
    op = record.operations[0]
    assert lines[0] == f"0,0,0,BRISC,1,{op.start_cycle},0,1024,,,BRISC-FW,ZONE_START,0,,"
    assert lines[1] == f"0,0,0,BRISC,1,{op.core_ends[0, 0]},0,1024,,,BRISC-FW,ZONE_END,0,,"


def test_every_halo_leads_to_its_program_on_the_networks(record):
    files = {name: json.loads(text) for name, text in npe_files(record).items()}
    halos = [op for op in record.operations if op.name == "HaloDeviceOperation"]
    names = [f"program{op.program}.json" for op in halos]
    assert files["manifest.json"] == [
        {"global_call_count": op.call_count, "file": name} for op, name in zip(halos, names, strict=True)
    ]
    assert files.keys() == {"manifest.json", *names}
    for op, name in zip(halos, names, strict=True):
        transfers = files[name]["noc_transfers"]
        assert sum(transfer["total_bytes"] for transfer in transfers) == op.time.traffic.network_bytes
        assert max(transfer["end_cycle"] for transfer in transfers) <= op.time.cycles
    assert npe_files(replace(record, timelines=())) == {}


def test_routes_lead_from_node_to_node_and_steps_name_them(record):
    result = json.loads(npe_files(record)["program2.json"])
    rows, cols = (result["common_info"][name] for name in ("num_rows", "num_cols"))
    step = {"EAST": (0, 1), "SOUTH": (1, 0), "NORTH": (-1, 0), "WEST": (0, -1)}
    for transfer in result["noc_transfers"]:
        (segment,) = transfer["route"]
        (_, *first, way_in), *links, (_, *last, way_out) = segment["links"]
        network = segment["noc_type"]
        assert (way_in, way_out) == (f"{network}_IN", f"{network}_OUT")
        row, col = first
        for _, *node, name in links:
            assert node == [row, col]
            assert name in LINKS[network]
            down, right = step[name.removeprefix(f"{network}_")]
            row, col = (row + down) % rows, (col + right) % cols
        assert [row, col] == last == transfer["dst"][0][1:]
    assert 0 < len(result["timestep_data"]) <= 16
    numbers = {transfer["id"] for transfer in result["noc_transfers"]}
    for one in result["timestep_data"]:
        assert set(one["active_transfers"]) <= numbers
        most = max((figure for *_, figure in one["link_demand"]), default=0.0)
        assert most == max(each["max_link_demand"] for each in one["noc"].values())


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
    names = ("UntilizeCodegenDeviceOperation", "HaloDeviceOperation", "a\nb")
    assert list(map(operation_name, names)) == ["UntilizeDeviceOperation", "HaloDeviceOperation", "a\\nb"]
