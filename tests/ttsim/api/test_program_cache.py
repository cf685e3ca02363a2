"""Which calls find programs in the cache: numbers of cached programs after each call, as ttnn 0.81.1 counts them."""

from typing import Any

import numpy as np
import pytest

import ttsim
from tests.shards import BLOCK, HEIGHT, box, high
from tests.ttsim.api.calls import conv
from ttsim.runtime.device import Device


@pytest.fixture
def device() -> Any:
    with ttsim.open_device(l1_small_size=32768, spec="wormhole_n150", values="off") as opened:
        yield opened


def image(device: Device, layout: ttsim.Layout = ttsim.TILE_LAYOUT, *shape: int) -> ttsim.Tensor:
    host = ttsim.Tensor(np.zeros(shape or (1, 1, 128, 64), np.float32), ttsim.bfloat16, layout=layout)
    return host.to(device, ttsim.L1_MEMORY_CONFIG)


def convolved(device: Device, x: ttsim.Tensor, **changes: Any) -> Any:
    """Two images of 8x8 with 64 channels, through a kernel of 3x3; ``changes`` of a Conv2dConfig, or of the call."""
    fields = ttsim.Conv2dConfig.__annotations__
    config = {"shard_layout": HEIGHT} | {name: value for name, value in changes.items() if name in fields}
    others = {name: value for name, value in changes.items() if name not in fields}
    shape = (8, 8), (64, 64), (3, 3), (1, 1)
    return conv(device, *shape, input_tensor=x, batch_size=2, padding=(1, 1), config=config, **others)


def compute(**fields: Any) -> dict[str, Any]:
    return {"compute_config": ttsim.WormholeComputeKernelConfig(**fields)}


HIFI4 = ttsim.MathFidelity.HiFi4
ALL_ANEW = 2  # halo and micro-op; the program that shards the input is always found
CHANGES = {
    "nothing": ({}, 0),
    "activation": ({"activation": ttsim.UnaryWithParam(ttsim.UnaryOpType.RELU)}, 1),
    "weights": ({"weights_dtype": ttsim.bfloat8_b}, 1),
    "rows": ({"output_layout": ttsim.ROW_MAJOR_LAYOUT}, 1),
    "double activations": ({"enable_act_double_buffer": True}, 1),
    "double weights": ({"enable_weights_double_buffer": True}, 1),
    "a decided reader": ({"force_split_reader": False}, 1),
    "the block that is chosen": ({"act_block_h_override": 32}, 0),
    "the cores that are chosen": ({"override_sharding_config": True, "core_grid": box(4)}, 0),
    "kernel rows of BLOCK": ({"full_inner_dim": True}, 0),
    "where the halo goes": ({"reallocate_halo_output": False}, 0),
    "index tensors": ({"config_tensors_in_dram": True}, ALL_ANEW),
    "no fidelity": (compute(), ALL_ANEW),
    "low fidelity": (compute(math_fidelity=ttsim.MathFidelity.LoFi), ALL_ANEW),
    "the defaults": (compute(math_fidelity=HIFI4, math_approx_mode=True, packer_l1_acc=False), 0),
    "exact functions": (compute(math_fidelity=HIFI4, math_approx_mode=False), ALL_ANEW),
    "a wide Dst": (compute(math_fidelity=HIFI4, fp32_dest_acc_en=True), ALL_ANEW),
    "sums in L1": (compute(math_fidelity=HIFI4, packer_l1_acc=True), ALL_ANEW),
    "a whole Dst": (compute(math_fidelity=HIFI4, dst_full_sync_en=True), ALL_ANEW),
    "slowed down": (compute(math_fidelity=HIFI4, throttle_level=ttsim.ThrottleLevel.LEVEL_1), ALL_ANEW),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_the_programs_of_a_convolution_are_told_apart_by(device: Device, change: str) -> None:
    x = image(device)
    convolved(device, x)
    assert device.num_program_cache_entries() == 3
    changes, programs = CHANGES[change]
    convolved(device, x, **changes)
    assert device.num_program_cache_entries() == 3 + programs


RESULT = "the result before"
ROWS, TILES = ttsim.ROW_MAJOR_LAYOUT, ttsim.TILE_LAYOUT
# Inputs and changes of calls one after the other, and how many programs are cached after each
SEQUENCES = {
    "an invalid fidelity computes as a low one": [
        (TILES, compute(), 3), (TILES, compute(math_fidelity=ttsim.MathFidelity.LoFi), 5)],
    # An input is padded to whole shards on its way, a convolution's output to tiles
    "a convolution's tiles have a halo of their own": [(TILES, {}, 3), (RESULT, {}, 4), (RESULT, {}, 4)],
    "rows are the same to a halo whoever made them": [
        (TILES, {"output_layout": ROWS}, 3), (RESULT, {}, 5), (ROWS, {}, 6)],  # the last program shards rows
    "an input that was moved is the same to a halo": [(TILES, {"deallocate_activation": True}, 5), (TILES, {}, 5)],
    # Another shard layout than that of the input is asked for, and left out of account
    "shards stay as they are": [(TILES, {}, 3), (RESULT, {}, 4), (RESULT, {"shard_layout": BLOCK}, 4)],
}  # fmt: skip


@pytest.mark.parametrize("name", SEQUENCES)
def test_programs_that_calls_share(device: Device, name: str) -> None:
    result = None
    for source, changes, programs in SEQUENCES[name]:
        result = convolved(device, result if source is RESULT else image(device, source), **changes)
        assert device.num_program_cache_entries() == programs


def test_a_program_that_makes_its_output_is_another_than_one_that_fills_it(device: Device) -> None:
    x = image(device)
    convolved(device, convolved(device, x))
    own = ttsim.to_memory_config(x, high((32, 64), 4))
    assert device.num_program_cache_entries() == 5
    convolved(device, own)
    assert device.num_program_cache_entries() == 5


def test_slices_that_are_refused_leave_the_program_that_made_an_image(device: Device) -> None:
    """Rows of tiles that are no rows of the image move between tiles, by a program with a map in DRAM, before."""
    x = ttsim.Tensor(np.zeros((1, 1, 18, 32), np.float32), ttsim.bfloat16, layout=ttsim.TILE_LAYOUT).to(device)
    slices = ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceHeight, num_slices=4)
    options = {"dram_slice_config": slices, "config": {"shard_layout": HEIGHT}}
    before = ttsim.get_memory_view(device, ttsim.BufferType.DRAM).total_bytes_allocated_per_bank
    taken = []
    for _ in range(2):
        with pytest.raises(
            RuntimeError, match=r"^Number of slices \(4\) exceeds the maximum allowed \(3\) for the given"
        ):
            conv(device, (2, 9), (32, 32), (1, 1), (2, 2), input_tensor=x, **options)
        assert device.num_program_cache_entries() == 1
        taken.append(ttsim.get_memory_view(device, ttsim.BufferType.DRAM).total_bytes_allocated_per_bank - before)
    assert taken[0] == taken[1] > 0


def test_tiles_that_are_reshaped_are_seen_with_three_axes(device: Device) -> None:
    for shape in ((1, 1, 18, 32), (18, 32), (1, 18, 32)):
        ttsim.reshape(image(device, ttsim.TILE_LAYOUT, *shape), (1, 2, 9, 32))
        assert device.num_program_cache_entries() == 1
    ttsim.reshape(image(device, ttsim.TILE_LAYOUT, 1, 1, 18, 32), (1, 9, 2, 32))
    assert device.num_program_cache_entries() == 2
