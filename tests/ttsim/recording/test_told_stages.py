"""What reports say of every stage of every device operation that calls lead to is said by its program, and is true."""

import numpy as np
import pytest

import ttsim
from device.time.stages import Stage
from ops.passes.cycles import run_cycles
from tests.sizes import conv_sizes
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import Settings, call, make_inputs, place

DEVICES = ("wormhole_n150", "blackhole_p150")
ALIKE = {Stage.START, Stage.MATH}  # kernels start and the matrix unit multiplies, whatever the program
CONV = {**conv_sizes(32, 32, 64, 32, 3, 3), "stride": (2, 2), "padding": (1, 1)}
SLICED = ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceWidth, num_slices=2)
SCHEMES = ttsim.TensorMemoryLayout


def tensor(shape, dtype=ttsim.bfloat16, layout=ttsim.ROW_MAJOR_LAYOUT):
    return ttsim.Tensor(np.broadcast_to(np.float32(0), shape), dtype, layout=layout)


def convolutions(device):
    """Transposed convolutions from everywhere, by every scheme, whole and in slices."""
    weights = tensor((64, 32, 3, 3))
    for layout in (ttsim.ROW_MAJOR_LAYOUT, ttsim.TILE_LAYOUT):
        for memory in (ttsim.DRAM_MEMORY_CONFIG, ttsim.L1_MEMORY_CONFIG, None):
            given = tensor((1, 1, 1024, 64), layout=layout)
            x = given if memory is None else given.to(device, memory)
            for scheme in (SCHEMES.HEIGHT_SHARDED, SCHEMES.BLOCK_SHARDED, SCHEMES.WIDTH_SHARDED):
                config = ttsim.Conv2dConfig(shard_layout=scheme, output_layout=layout, act_block_h_override=32)
                sliced = SLICED if memory is not ttsim.L1_MEMORY_CONFIG else None
                for slices in [None, sliced] if sliced else [None]:
                    ttsim.conv_transpose2d(
                        input_tensor=x, weight_tensor=weights, device=device, conv_config=config,
                        dram_slice_config=slices, **CONV,
                    )  # fmt: skip
            x.deallocate()
    x = tensor((1, 1, 1024, 64)).to(device)
    ttsim.conv_transpose2d(input_tensor=x, weight_tensor=weights, device=device, lowering="phase", **CONV)
    ttsim.conv_transpose2d(
        input_tensor=x, weight_tensor=tensor((64, 32, 1, 1)), device=device,
        **CONV | {"kernel_size": (1, 1), "stride": (1, 1), "padding": (0, 0)},
    )  # fmt: skip


def others(device):
    """Conversions, products, oneDNN's directions."""
    x = tensor((1, 1, 1024, 60)).to(device)
    tiles = ttsim.to_layout(x, ttsim.TILE_LAYOUT)
    ttsim.to_layout(tiles, ttsim.ROW_MAJOR_LAYOUT)
    ttsim.typecast(tiles, ttsim.bfloat8_b)
    ttsim.reshape(x, (1, 1, 60, 1024))
    near = ttsim.to_memory_config(tiles, ttsim.L1_MEMORY_CONFIG)
    ttsim.reshape(near, (1, 1, 2048, 30))
    shards = ttsim.ShardSpec(ttsim.CoreGrid(x=8, y=4).core_range_set(), (32, 64), ttsim.ShardOrientation.ROW_MAJOR)
    sharded = ttsim.MemoryConfig(SCHEMES.HEIGHT_SHARDED, ttsim.BufferType.L1, shards)
    ttsim.to_memory_config(ttsim.to_memory_config(near, sharded), ttsim.DRAM_MEMORY_CONFIG)
    ttsim.matmul(tiles, tensor((60, 512), layout=ttsim.TILE_LAYOUT).to(device))
    ttsim.matmul(near, tensor((60, 512), layout=ttsim.TILE_LAYOUT).to(device))
    image, kernel = np.broadcast_to(np.float32(0), (1, 16, 16, 32)), np.broadcast_to(np.float32(0), (3, 3, 32, 32))
    axes = {"strides": (2, 2), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1), "device": device}
    for lowering in ("zero_insertion", "phase"):
        ttsim.onednn.conv_transpose(image, kernel, lowering=lowering, **axes)
    gradient = np.broadcast_to(np.float32(0), (1, 33, 33, 32))
    ttsim.onednn.conv_transpose_backward_data(gradient, kernel, **axes)
    ttsim.onednn.conv_transpose_backward_weights(image, gradient, weights_shape=(3, 3, 32, 32), **axes)


@pytest.fixture(scope="module", params=DEVICES)
def timed(request):
    name = request.param
    with ttsim.open_device(spec=name, l1_small_size=131072, values="off") as device, ttsim.profile(device) as profile:
        convolutions(device)
        others(device)
        calls = profile.calls
    for layer in read_layers(DEFAULT_LAYERS):
        placed = place(layer, make_inputs(layer, values=False), Settings(spec=device.spec, values="off"))
        calls += call(placed).profile.calls
    return [op for ran in calls for op in run_cycles(ran.plan, device.spec).operations]


def test_every_stage_is_told_by_its_program_and_takes_a_part_of_its_time(timed):
    """A movement's reader and writer name DRAM where they move its bytes: ReshapeView once gathered from L1 unnamed."""
    assert len({op.name for op in timed}) >= 14
    for op in timed:
        words, cycles = op.description.stages, op.cycles
        if cycles is None:
            continue
        for group in cycles.groups:
            assert group.cycles <= cycles.cycles + 0.5
            for stage in group.stages:
                assert stage.stage in ALIKE | set(words), (op.name, stage.stage)
                assert 0 <= stage.critical_cycles <= cycles.cycles * (1 + 1e-9)
                assert 0 <= stage.busy_cycles <= cycles.cycles * (1 + 1e-9), (op.name, stage)
        if not cycles.issued_flops and op.name != "HaloDeviceOperation":
            assert ("from DRAM" in words.get(Stage.READER, "")) == bool(cycles.dram_read_bytes), op
            assert ("to DRAM" in words.get(Stage.WRITER, "")) == bool(cycles.dram_written_bytes), op
