"""What a capture says of device operations beyond their names: tensors, arguments, how long they take."""

import json

import numpy as np
import pytest

import ttsim as ttnn
from tests.ttsim.recording.calls import opened, options, tensor
from ttsim.recording.record import record_of

PLACE = (
    "MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::DRAM,shard_spec=std::nullopt,"
    "nd_shard_spec=std::nullopt,created_with_nd_shard_spec=0,per_core_allocation=0,range_lockstep_allocation=0)"
)
TENSOR = (
    "Tensor(storage={}(),tensor_spec=TensorSpec(logical_shape=Shape([1, 1, 64, 64]),tensor_layout=TensorLayout("
    "dtype=DataType::BFLOAT16,page_config=PageConfig(config=TilePageConfig(tile=Tile(tile_shape={{32, 32}},"
    "face_shape={{16, 16}},num_faces=4))),memory_config=" + PLACE + ")))"
)


@pytest.fixture
def device():
    with opened() as opened_device:
        yield opened_device


def captured(run, mode=ttnn.graph.RunMode.NORMAL):
    ttnn.graph.begin_graph_capture(mode)
    kept = run()
    del kept
    return ttnn.graph.end_graph_capture()


def starts(trace):
    return {node["params"]["name"]: node for node in trace if node["node_type"] == "function_start"}


def taken(trace):
    ends = (node for node in trace if node["node_type"] == "function_end")
    return {node["params"]["name"]: node["duration_ns"] for node in ends if "duration_ns" in node}


def test_an_operation_reads_and_makes_tensors_as_the_real_library_says(device):
    x = tensor(device, 1, 1, 64, 64)
    trace = captured(lambda: ttnn.relu(x))
    start = starts(trace)["UnaryDeviceOperation"]
    (read,) = start["input_tensors"]
    assert trace[read]["connections"] == [start["counter"]]
    assert trace[read]["params"] == {
        "address": x.buffer_address(),
        "buffer_type": 0,
        "device_id": 1,
        "device_tensors": json.dumps(
            [{"address": x.buffer_address(), "device_id": 0, "mesh_device_id": 1}], separators=(",", ":")
        ),
        "dtype": "DataType::BFLOAT16",
        "layout": "Layout::TILE",
        "memory_config": PLACE,
        "shape": "Shape([1, 1, 64, 64])",
        "size": 64 * 64 * 2,
        "storage_type": "DEVICE",
        "tensor_id": 1,
    }
    assert trace[read]["stacking_level"] == start["stacking_level"] == 2
    assert start["params"] == {"inputs": "2", "name": "UnaryDeviceOperation", "program_cache_hit": False}
    assert start["arguments"][1] == "{" + TENSOR.format("DeviceStorage") + "}"
    result = starts(trace)["tt::tt_metal::create_device_tensor"]
    assert result["arguments"] == [
        "Shape([1, 1, 64, 64])", "DataType::BFLOAT16", "Layout::TILE", "<MeshDevice>", PLACE,
    ]  # fmt: skip
    assert ttnn.graph.extract_output_info(trace)[0].size == 8192


def test_a_view_tells_its_own_size_and_block_floats_count_a_byte(device):
    x = tensor(device, 1, 1, 64, 64, dtype=ttnn.bfloat8_b)
    read = next(node for node in captured(lambda: ttnn.relu(x)) if node["node_type"] == "tensor")
    assert (read["params"]["dtype"], read["params"]["size"]) == ("DataType::BFLOAT8_B", 64 * 64)


def test_what_an_operation_writes_into_is_what_it_makes(device):
    shards = ttnn.create_sharded_memory_config((64, 64), ttnn.CoreGrid(x=1, y=2), ttnn.ShardStrategy.HEIGHT)
    x = tensor(device, 1, 1, 64, 64)
    trace = captured(lambda: ttnn.to_memory_config(x, shards))
    start = starts(trace)["InterleavedToShardedDeviceOperation"]
    end = trace[start["connections"][-1]]
    result = [trace[one]["params"]["tensor_id"] for one in end["connections"] if trace[one]["node_type"] == "tensor"]
    assert result == [2]


def test_functions_of_the_host_are_told_with_their_tensors(device):
    host = ttnn.Tensor(np.zeros((1, 1, 64, 64), np.float32), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)

    def there_and_back():
        x = ttnn.to_device(host, device)
        x.buffer.store(np.zeros((1, 1, 64, 64)), x.spec)
        ttnn.from_device(x)
        ttnn.deallocate(x)

    trace = captured(there_and_back)
    assert ttnn.graph.extract_calltrace(trace) == [
        "ttnn.to_device", "Tensor::to_device", "ttnn.from_device", "Tensor::cpu", "ttnn.deallocate",
        "Tensor::deallocate",
    ]  # fmt: skip
    sent, fetched = starts(trace)["Tensor::to_device"], starts(trace)["Tensor::cpu"]
    assert sent["arguments"] == [TENSOR.format("HostStorage"), "<MeshDevice>", "<optional>"]
    assert fetched["arguments"] == [TENSOR.format("DeviceStorage"), "1"]
    tensors = [node["params"] for node in trace if node["node_type"] == "tensor"]
    assert [one["storage_type"] for one in tensors] == ["HOST", "DEVICE", "DEVICE", "HOST"]
    assert [one["tensor_id"] for one in tensors] == [2, 1, 1, 3]  # each on the host is one of its own


def test_durations_are_those_of_the_report(device):
    given = options(device, channels=(64, 32), memory=ttnn.DRAM_MEMORY_CONFIG)

    def run():
        return ttnn.conv_transpose2d(device=device, **given)

    with ttnn.profile(device) as profile:
        trace = captured(run)
    (call,) = record_of(profile, "x").calls
    reported = taken(call.nodes)
    assert reported["ttnn.conv_transpose2d"] == call.nanoseconds > 0
    assert taken(trace) == reported
    arguments = starts(trace)["Conv2dDeviceOperation"]["arguments"]
    assert arguments == starts(call.nodes)["Conv2dDeviceOperation"]["arguments"]
    assert "output_channels=32" in arguments[0]
    assert taken(captured(run, ttnn.graph.RunMode.NO_DISPATCH)) == {}  # nothing runs
