"""Sizes of prepared weights and biases against recorded runs of the real library.

The partition (scheme, channel shards, padded channels) is read off the record's own halo buffer, so no planner is
needed: a row-major page of that buffer is one shard's channels of a pixel.
"""

import gzip
import json
import re

from device.memory.memory_config import TensorMemoryLayout
from device.numbers.formats import FORMATS, round_up
from ops.programs.conv2d.weights import WeightsLayout

RECORDS = "oracle/ttnn/cases.jsonl.gz"


def recorded_runs(path):
    with gzip.open(path, "rt") as lines:
        return [record for record in map(json.loads, lines) if record.get("weight_prepared")]


def partition(record):
    """Scheme, channel shards and padded input channels, as the first halo operation of the run shows them."""
    case = record["case"]
    views = [cb for cb in record["cbs"] if cb["op"] == "HaloDeviceOperation" and cb["globally_allocated"] == "1"]
    if not views:  # a kernel of one tap ran as a matmul
        return TensorMemoryLayout.INTERLEAVED, 1, round_up(case["in_channels"], 32)
    halo = views[1]
    sizes = (halo["size"], round_up(halo["size"], 32))
    buffers = [
        buffer
        for buffer in record["buffers"]
        if buffer["ev"] == "allocate"
        and str(buffer["layout"]).endswith("_SHARDED")
        and buffer["max_size_per_bank"] in sizes
    ]
    exact = [buffer for buffer in buffers if buffer["address"] == halo["address"] != 0]
    sticks = [buffer for buffer in buffers if buffer["page_size"] not in (1088, 2048, 4096)]  # not a tensor of tiles
    buffer = (exact or sticks or buffers)[0]
    scheme = TensorMemoryLayout[buffer["layout"]]
    corners = [tuple(map(int, corner)) for corner in re.findall(r"(\d+)-(\d+)\]", halo["cores"])]
    by_column = case.get("conv_config", {}).get("transpose_shards", False)
    shards = {
        TensorMemoryLayout.HEIGHT_SHARDED: 1,
        TensorMemoryLayout.BLOCK_SHARDED: max(corner[1 if by_column else 0] for corner in corners) + 1,
        TensorMemoryLayout.WIDTH_SHARDED: buffer["size"] // buffer["max_size_per_bank"],
    }[scheme]
    element_bytes = 4 if case.get("input_dtype") == "float32" else 2
    return scheme, shards, shards * buffer["page_size"] // element_bytes


def test_recorded_sizes(recordings):
    for record in recorded_runs(recordings(RECORDS)):
        case, weights = record["case"], record["weight_prepared"]
        scheme, shards, padded_in_channels = partition(record)
        kernel = case["kernel"] if isinstance(case["kernel"], list) else [case["kernel"]] * 2
        k_rows = (
            padded_in_channels
            * kernel[0]
            * kernel[1]
            // shards
            // case.get("conv_config", {}).get("act_block_w_div", 1)
        )
        layout = WeightsLayout(
            in_channels=case["in_channels"],
            out_channels=case["out_channels"],
            kernel=(kernel[0], kernel[1]),
            groups=case.get("groups", 1),
            scheme=scheme,
            padded_in_channels=padded_in_channels,
            padded_out_channels=weights["padded_shape"][3],
            channel_shards=shards,
            k_block_rows=k_rows if scheme is TensorMemoryLayout.WIDTH_SHARDED else 32,
            data_format=FORMATS[weights["dtype"].removeprefix("DataType.").lower()],
        )
        where = (record["set"], case["name"])
        assert (where, list(layout.padded_shape)) == (where, weights["padded_shape"])
        assert (where, list(layout.logical_shape)) == (where, weights["shape"])
        if bias := record.get("bias_prepared"):
            assert (where, list(layout.bias_padded_shape)) == (where, bias["padded_shape"])
            assert (where, list(layout.bias_logical_shape)) == (where, bias["shape"])
