"""Rules of the library that leave cores idle, or cut work too small, are named; grids that suit them are not."""

import numpy as np
import pytest

import ttsim
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG
from device.spec.device_spec import load_spec
from ops.planners.grid_rules import GRID_RULE
from ttsim.recording.profiling import planned


def rules_of(function, options, cols, rows):
    """What is said about a call on a grid."""
    spec = load_spec("blackhole_p150").replace(grid_cols=cols, grid_rows=rows)
    with ttsim.open_device(l1_small_size=16384, spec=spec, values="off") as device:
        arguments = {**options, "device": device} if "in_channels" in options else options
        if function is ttsim.max_pool2d:
            image = np.zeros(options["input_tensor"], np.float32)
            arguments = {**options, "input_tensor": ttsim.from_torch(image, ttsim.bfloat16, device=device)}
        (ran,) = planned(function, (), arguments, device).ran
    texts = [decision.text for decision in ran.plan.decisions if decision.name == GRID_RULE]
    assert all(text.startswith("the planner's rule ") for text in texts)
    return [text.removeprefix("the planner's rule ") for text in texts]


def conv(channels, side, kernel, scheme=None):
    config = ttsim.Conv2dConfig(shard_layout=scheme)
    return {
        "input_tensor": ttsim.TensorDescription((1, 1, side * side, channels[0])),
        "weight_tensor": ttsim.TensorDescription((channels[1], channels[0], kernel, kernel)),
        "in_channels": channels[0], "out_channels": channels[1], "batch_size": 1, "input_height": side,
        "input_width": side, "kernel_size": (kernel, kernel), "padding": (kernel // 2, kernel // 2),
        "conv_config": config,
    }  # fmt: skip


def matmul(rows, inner, columns, memory):
    first, second = (
        ttsim.TensorDescription(shape, layout=ttsim.TILE_LAYOUT, memory_config=memory)
        for shape in ((1, 1, rows, inner), (1, 1, inner, columns))
    )
    return {"input_tensor_a": first, "input_tensor_b": second, "memory_config": memory}


BLOCK, HEIGHT = ttsim.TensorMemoryLayout.BLOCK_SHARDED, ttsim.TensorMemoryLayout.HEIGHT_SHARDED
EVEN = "13 tiles of rows are dealt evenly, 2 to each"


@pytest.mark.parametrize(
    ("options", "grid", "rules"),
    [
        # 13 tiles of channels: only 1 divides them among the numbers up to 6; 400 rows are 13 tiles
        (conv((416, 416), 20, 1, BLOCK), (6, 10), [
            "leaves 5 of 6 columns idle: no larger number of them divides 13 tiles of channels",
            f"leaves 3 of 10 rows idle: {EVEN}",
        ]),
        (conv((416, 416), 20, 1, BLOCK), (13, 7), []),
        # 384 channels on 24 columns; 3 kernel rows for each
        (conv((384, 96), 32, 3, BLOCK), (26, 10), [
            "spreads 384 channels over 24 columns of cores, 16 on each: 72 K blocks are multicast, where shards of a "
            "whole tile would make 36"
        ]),
        (conv((384, 96), 32, 3, BLOCK), (13, 10), []),
        # 128 tiles of rows: 3 to a core are 43 cores
        (conv((128, 64), 64, 3, HEIGHT), (6, 10), [
            "leaves 17 of 60 cores idle: 128 tiles of rows are dealt evenly, 3 to each"
        ]),
        (conv((128, 64), 64, 3, HEIGHT), (8, 8), []),
    ],
)  # fmt: skip
def test_convolutions(options, grid, rules):
    assert rules_of(ttsim.conv2d, options, *grid) == rules


DEPTH = "cuts K into 24 blocks of one tile, each multicast: deeper blocks need a number of columns of cores that "


@pytest.mark.parametrize(
    ("options", "grid", "rules"),
    [
        # 128 by 16 tiles of output; blocks of 8 by 8 fit L1, blocks of 16 by 16 need 8 by 1 cores
        (matmul(4096, 1280, 512, L1_MEMORY_CONFIG), (6, 10), [
            "multiplies tile by tile, each core by itself: in L1 the 16x2 blocks of 8x8 tiles do not fit 10 rows and 6 "
            "columns of cores"
        ]),
        (matmul(4096, 1280, 512, L1_MEMORY_CONFIG), (13, 10), []),
        # 128 by 40 tiles in 8 by 3 blocks
        (matmul(4096, 768, 1280, L1_MEMORY_CONFIG), (13, 10), [
            "leaves 106 of 130 cores idle: it cuts the output into blocks of 16x16 tiles"
        ]),
        # 16 by 16 tiles: two rows to each of 8 rows of cores, two columns to each of 8 columns
        (matmul(512, 768, 512, DRAM_MEMORY_CONFIG), (13, 10), [
            "leaves 66 of 130 cores idle: it cuts the output into blocks of 2x2 tiles",
            f"{DEPTH}divides the 24 tiles of K, and the grid has 13",
        ]),
        (matmul(512, 768, 512, DRAM_MEMORY_CONFIG), (8, 8), []),
        (matmul(512, 768, 512, DRAM_MEMORY_CONFIG) | {"core_grid": ttsim.CoreGrid(y=4, x=5)}, (13, 10), []),
    ],
)  # fmt: skip
def test_matmuls(options, grid, rules):
    assert rules_of(ttsim.matmul, options, *grid) == rules


def test_pools():
    """416 channels are 26 halves of tiles, and 13 parts of 32: only 1 divides both up to 8."""
    options = {
        "batch_size": 1, "input_h": 20, "input_w": 20, "channels": 416, "kernel_size": [3, 3], "stride": [1, 1],
        "padding": [1, 1], "dilation": [1, 1], "applied_shard_scheme": BLOCK,
        "input_tensor": (1, 1, 400, 416),
    }  # fmt: skip
    found = rules_of(ttsim.max_pool2d, options, 8, 8)
    assert found == ["leaves 6 of 8 columns idle: no larger number of them divides the parts of channels, 26"]
