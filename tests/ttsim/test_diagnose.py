"""Trials: what refuses a call is its result, a mistake of ours is not."""

import gc
import re
from collections import deque
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import ttsim
from device.errors import ArgumentError, CircularBufferError, DeviceError, OutOfMemoryError
from device.machine import Machine
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, BufferType, Layout
from device.numbers.formats import BFLOAT16
from ops.planners.conv.arguments import CONV_TRANSPOSE2D, ConvCall, ConvConfig, Operand
from ops.window import NoWindowError
from tests.shards import HEIGHT, box, in_box
from tests.ttsim.api.calls import conv_arguments
from ttsim import diagnose
from ttsim.diagnose import MachineSnapshot, attempt
from ttsim.runtime.call_source import conv_config_source, estimate_source, memory_config_source, slice_config_source
from ttsim.runtime.device import Device

GRID = box(8, 3)
BLOCKS = in_box(HEIGHT, (64, 32), 8, 3, ttsim.ShardOrientation.COL_MAJOR)


@pytest.mark.parametrize(
    "config",
    [
        ttsim.Conv2dConfig(),
        ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat8_b, act_block_h_override=64, deallocate_activation=True),
        ttsim.Conv2dConfig(activation=ttsim.UnaryOpType.RELU, output_layout=ttsim.ROW_MAJOR_LAYOUT),
        ttsim.Conv2dConfig(activation=ttsim.UnaryWithParam(ttsim.UnaryOpType.LEAKY_RELU, 0.25)),
        ttsim.Conv2dConfig(
            shard_layout=ttsim.TensorMemoryLayout.WIDTH_SHARDED, padding_mode=ttsim.PaddingMode.Replicate
        ),
        ttsim.Conv2dConfig(override_sharding_config=True, core_grid=GRID, force_split_reader=False),
        ttsim.Conv2dL1FullSliceConfig,
        ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceHeight, num_slices=3),
        ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceWidth),
        ttsim.DRAM_MEMORY_CONFIG,
        ttsim.L1_MEMORY_CONFIG,
        BLOCKS,
    ],
)
def test_pasted_configs_are_the_same(config: Any) -> None:
    if isinstance(config, ttsim.MemoryConfig):
        assert eval(memory_config_source(config), {"ttnn": ttsim}) == config
        return
    source = conv_config_source if isinstance(config, ttsim.Conv2dConfig) else slice_config_source
    assert eval(source(config.argument()), {"ttnn": ttsim}).argument() == config.argument()


def test_every_field_can_be_pasted() -> None:
    flipped = {field.name: not field.default for field in fields(ConvConfig) if isinstance(field.default, bool)}
    config = ConvConfig(**flipped)  # type: ignore[arg-type]
    assert eval(conv_config_source(config), {"ttnn": ttsim}).argument() == config


CALL = {"in_channels": 32, "out_channels": 64, "batch_size": 1, "input_height": 16, "input_width": 16,
        "kernel_size": (2, 2), "stride": (2, 2)}  # fmt: skip


@pytest.mark.parametrize(
    ("function", "weight", "options"),
    [
        (ttsim.conv2d, (64, 32, 2, 2), {}),
        (ttsim.conv2d, (64, 16, 2, 2), {"groups": 2, "padding": (1, 0), "dtype": ttsim.bfloat8_b}),
        (ttsim.conv_transpose2d, (32, 64, 2, 2), {"output_padding": (1, 1), "mirror_kernel": False}),
        (ttsim.conv_transpose2d, (32, 64, 2, 2), {
            "lowering": "phase",
            "conv_config": ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat8_b, act_block_h_override=32),
            "compute_config": ttsim.WormholeComputeKernelConfig(math_fidelity=ttsim.MathFidelity.HiFi3),
            "memory_config": ttsim.L1_MEMORY_CONFIG}),
        (ttsim.conv_transpose2d, (32, 64, 2, 2), {
            "dram_slice_config": ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceHeight, num_slices=2)}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("prepared", [False, True])
def test_a_pasted_call_asks_for_the_same(function, weight, options, prepared) -> None:
    with ttsim.open_device(l1_small_size=32768, values="off") as device:
        place = ttsim.DRAM_MEMORY_CONFIG if "dram_slice_config" in options else ttsim.L1_MEMORY_CONFIG
        x = ttsim.Tensor(np.zeros((1, 1, 256, 32), np.float32), ttsim.bfloat16).to(device, place)
        tensors = {"input_tensor": x, "weight_tensor": ttsim.Tensor(np.zeros(weight, np.float32), ttsim.bfloat16)}
        tensors["bias_tensor"] = ttsim.Tensor(np.zeros((1, 1, 1, 64), np.float32), ttsim.bfloat16)
        if prepared:
            first, (tensors["weight_tensor"], tensors["bias_tensor"]) = function(
                **tensors, device=device, return_weights_and_bias=True, **CALL, **options
            )
            ttsim.deallocate(first)  # which would lie where a halo's output moves to
        with ttsim.profile(device) as profiled:
            function(**tensors, device=device, **CALL, **options)
        (call,) = profiled.calls
        assert call.asked is not None
        pasted = eval(estimate_source(call.asked), {"ttnn": ttsim, "device": device})
    assert [(operation.name, operation.cycles) for operation in pasted.operations] == [
        (operation.name, operation.cycles) for operation in profiled.report().operations
    ]


MACHINE = Machine("wormhole_n150", l1_small_bytes=32768)
SNAPSHOT = MachineSnapshot(MACHINE, {}, strict=True)
TRIED = ConvCall(
    rules=CONV_TRANSPOSE2D,
    input=Operand(spec=TensorSpec((1, 1, 64, 32), BFLOAT16, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG), on_host=True),
    weight=Operand(spec=TensorSpec((32, 32, 2, 2), BFLOAT16, Layout.ROW_MAJOR), on_host=True),
    in_channels=32,
    out_channels=32,
    batch_size=1,
    input_height=8,
    input_width=8,
    kernel_size=(2, 2),
)


@pytest.mark.parametrize("kind", [ArgumentError, DeviceError, NoWindowError, ValueError, KeyError, RuntimeError])
def test_what_refuses_a_call_is_the_result_and_a_mistake_of_ours_is_not(monkeypatch, kind):
    def broken(*_, **__):
        raise kind("no")

    monkeypatch.setattr("ttsim.diagnose.plan_call", broken)
    if kind in (ArgumentError, DeviceError, NoWindowError):
        assert attempt(TRIED, SNAPSHOT).error == "no"
        return
    with pytest.raises(kind):
        attempt(TRIED, SNAPSHOT)


L1_FULL = ttsim.Conv2dL1FullSliceConfig
FITTING = "What fits, each simulated on this device as it is now, the smallest change first:"
NOTHING = "No config that was tried makes it fit as the device is now."


def opened(l1_small_size: int = 32768, **changes: Any) -> Device:
    return ttsim.open_device(values="off", l1_small_size=l1_small_size, **changes)


def arguments(
    device: Device, side: int, channels: int, outputs: int, *, place: Any = ttsim.DRAM_MEMORY_CONFIG, **changes: Any
) -> dict[str, Any]:
    """A stride-2 call with a 3x3 kernel on a square image."""
    words = "l1" if place is ttsim.L1_MEMORY_CONFIG else ""
    changes = {"kernel": (3, 3), "padding": (1, 1)} | changes
    return conv_arguments(device, (side, side), (channels, outputs), words=words, **changes)


def refused(call: dict[str, Any]) -> list[str]:
    """Lines of the error of a call; calling again says the same."""
    texts = []
    for _ in range(2):
        with pytest.raises((OutOfMemoryError, CircularBufferError)) as error:
            ttsim.conv_transpose2d(**call)
        texts.append(re.sub(r"in program \d+", "in program N", str(error.value)))
    assert texts[0] == texts[1]
    return texts[0].splitlines()


def suggestions(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines[lines.index(FITTING) + 1 :]] if FITTING in lines else []


def pasted(suggestion: str, call: dict[str, Any]) -> dict[str, Any]:
    """The call with a suggestion pasted into it."""
    names = {"ttnn": ttsim, "input_tensor": call["input_tensor"]}
    changes: dict[str, Any] = eval(f"dict({suggestion.split('  #')[0]})", names)
    return call | changes


CALLS = {
    "circular buffers beyond L1": (256, 32, 32, {"dram_slice_config": L1_FULL}),
    "far beyond L1": (256, 64, 64, {"dram_slice_config": L1_FULL}),
    "double buffers": (
        64, 256, 256,
        {
            "place": ttsim.L1_MEMORY_CONFIG,
            "conv_config": ttsim.Conv2dConfig(
                enable_act_double_buffer=True,
                enable_weights_double_buffer=True,
                shard_layout=HEIGHT,
            ),
        },
    ),
    "too few slices": (
        512, 64, 64,
        {"dram_slice_config": ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceWidth, num_slices=3)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_what_is_suggested_fits(name: str) -> None:
    side, channels, outputs, changes = CALLS[name]
    call = arguments(opened(), side, channels, outputs, **changes)
    lines = refused(call)
    assert re.match(r"Statically allocated circular buffers|Out of Memory: Not enough space", lines[0])
    found = suggestions(lines)
    assert 1 <= len(found) <= 3
    for suggestion in found:
        ttsim.conv_transpose2d(**pasted(suggestion, call)).deallocate()
        call["device"].clear_program_cache()


def test_the_text_of_circular_buffers_beyond_l1() -> None:
    lines = refused(arguments(opened(), 256, 32, 32, dram_slice_config=L1_FULL))
    assert lines[0] == (
        "Statically allocated circular buffers on core range [0-0 - 7-7] grow to 1684896 B which is beyond max L1 size "
        "of 1499136 B"
    )
    assert lines[2:] == [
        "The largest parts of a core's L1 (1360544 B) at that moment:",
        "  786432 B (58 %): circular buffer 'act_tilized' of Conv2dDeviceOperation",
        "  393216 B (29 %): circular buffer 'act' of Conv2dDeviceOperation",
        "  393216 B (29 %): circular buffer 'act_second_reader' of Conv2dDeviceOperation",
        FITTING,
        "  conv_config=ttnn.Conv2dConfig(act_block_h_override=1024)",
        "  dram_slice_config=ttnn.Conv2dSliceConfig(slice_type=ttnn.Conv2dDRAMSliceWidth, num_slices=2)",
    ]


def test_nothing_is_suggested_when_nothing_fits() -> None:
    device = opened()
    one = ttsim.Tensor(np.zeros((1, 1, 2048, 32 * 6), np.float32), ttsim.bfloat16, layout=ttsim.TILE_LAYOUT)
    full = []
    while ttsim.get_memory_view(device, BufferType.L1).total_bytes_free_per_bank >= 6 * 2048:
        full.append(one.to(device, ttsim.L1_MEMORY_CONFIG))
    lines = refused(arguments(device, 64, 64, 64, dram_slice_config=L1_FULL))
    assert lines[-1] == NOTHING
    assert len(full) > 1


def used(device: Device) -> list[list[tuple[int, int]]]:
    """Blocks in use, by memory."""
    return [
        [(block.address, block.size_bytes) for block in device.machine.allocator.blocks(kind) if block.allocated]
        for kind in (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL)
    ]


def test_a_failed_call_and_its_verdict_leave_the_device_as_it_was() -> None:
    device = opened()
    call = arguments(device, 256, 32, 32, dram_slice_config=L1_FULL)
    refused(call)  # its halo program stays in the cache
    state = used(device)
    cached = dict(device.machine.program_cache)
    ttsim.graph.begin_graph_capture()
    refused(call)
    trace = ttsim.graph.end_graph_capture()
    assert state == used(device)
    assert cached == device.machine.program_cache
    names = ttsim.graph.extract_calltrace(trace)
    assert names.count("ttnn.conv_transpose2d") == names.count("Conv2dDeviceOperation") == 2  # no trial is captured


def test_a_cached_program_that_does_not_fit_any_more_is_told_as_a_new_one() -> None:
    """The second of two equal calls, with a tensor in L1 in between, fails as it does on a device without programs."""
    large = ttsim.Tensor(np.zeros((1, 1, 65536, 512), np.float32), ttsim.bfloat16, layout=ttsim.TILE_LAYOUT)
    scheme = ttsim.Conv2dConfig(shard_layout=HEIGHT)
    texts = []
    for warm in (False, True):
        device = opened()
        call = arguments(device, 32, 256, 256, dram_slice_config=L1_FULL, conv_config=scheme)
        if warm:
            ttsim.conv_transpose2d(**call).deallocate()
        kept, programs = large.to(device, ttsim.L1_MEMORY_CONFIG), dict(device.machine.program_cache)
        texts.append(refused(call))
        assert len(device.machine.program_cache) == (3 if warm else 2)
        assert not warm or programs == device.machine.program_cache
        assert kept.is_allocated()
    assert texts[0] == texts[1]
    assert "  1048576 B (77 %): buffer 'tensor' from before the call" in texts[0]
    assert any("circular buffer 'weights' of Conv2dDeviceOperation" in line for line in texts[0])


def test_index_tensors_without_a_region() -> None:
    device = opened(0)
    call = arguments(device, 32, 64, 64)
    lines = refused(call)
    assert lines[0].startswith("Out of Memory: Not enough space to allocate")
    assert "L1_SMALL region is 0 B" in lines[0]
    assert suggestions(lines) == [
        "conv_config=ttnn.Conv2dConfig(config_tensors_in_dram=True)",
        "ttnn.open_device(l1_small_size=1024)",
    ]
    ttsim.conv_transpose2d(**pasted(suggestions(lines)[0], call))
    ttsim.conv_transpose2d(**arguments(opened(1024), 32, 64, 64))


def test_index_tensors_grow_with_every_new_program_until_the_cache_is_cleared() -> None:
    device = opened(4096)
    used: list[int] = []

    def called(side: int) -> None:
        call = arguments(device, side, 32, 32)
        for _ in range(2):  # the second call finds its programs in the cache
            ttsim.conv_transpose2d(**call).deallocate()
            used.append(ttsim.get_memory_view(device, BufferType.L1_SMALL).total_bytes_allocated_per_bank)

    with pytest.raises(OutOfMemoryError) as error:
        deque(map(called, range(8, 200, 8)), maxlen=0)
    assert used[::2] == used[1::2]
    assert used[::2] == sorted(set(used))
    assert ttsim.get_memory_view(device, BufferType.L1).total_bytes_allocated_per_bank == 0
    lines = str(error.value).splitlines()
    assert "increase l1_small_size when opening the device." in lines[0]
    assert any("index tensors of programs cached before the call" in line for line in lines)
    assert suggestions(lines)[0] == "device.clear_program_cache()"
    device.clear_program_cache()
    assert ttsim.get_memory_view(device, BufferType.L1_SMALL).total_bytes_allocated_per_bank == 0
    called(64)


def test_a_consumed_input_counts_as_there() -> None:
    device = opened()
    config = ttsim.Conv2dConfig(deallocate_activation=True, shard_layout=HEIGHT)
    call = arguments(device, 64, 256, 256, place=ttsim.L1_MEMORY_CONFIG, conv_config=config)
    with pytest.raises(DeviceError) as error:
        ttsim.conv_transpose2d(**call)
    assert not call["input_tensor"].is_allocated()
    found = suggestions(str(error.value).splitlines())
    assert found
    again = arguments(device, 64, 256, 256, place=ttsim.L1_MEMORY_CONFIG, conv_config=config)
    ttsim.conv_transpose2d(**pasted(found[0], again)).deallocate()


def test_prepared_weights_are_named_as_a_cost() -> None:
    device = opened()
    call = arguments(device, 256, 64, 64)
    _, (weights, _) = ttsim.conv_transpose2d(**call, return_weights_and_bias=True)
    lines = refused(call | {"weight_tensor": weights, "dram_slice_config": L1_FULL})
    assert suggestions(lines)[0].endswith("  # weights and bias must be prepared with it")


def test_a_failed_call_keeps_no_tensor_alive() -> None:
    device = opened()
    config = ttsim.Conv2dConfig(shard_layout=HEIGHT)

    def failed() -> None:
        try:
            ttsim.conv_transpose2d(**arguments(device, 64, 256, 256, place=ttsim.L1_MEMORY_CONFIG, conv_config=config))
        except DeviceError:
            return
        raise AssertionError("the call should not fit")

    gc.disable()  # what a cycle holds would live on
    try:
        failed()
        assert ttsim.get_memory_view(device, BufferType.L1).total_bytes_allocated_per_bank == 0
    finally:
        gc.enable()


@pytest.mark.parametrize(("place", "side"), [(ttsim.DRAM_MEMORY_CONFIG, 128), (ttsim.L1_MEMORY_CONFIG, 64)])
def test_where_no_nearby_config_fits_the_library_is_left_to_choose(place, side, monkeypatch):
    monkeypatch.setattr(diagnose, "_configs", lambda call, snapshot: iter(()))
    with opened() as device:
        config = ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat16, shard_layout=HEIGHT)
        call = arguments(device, side, 256, 128, place=place, conv_config=config, dram_slice_config=L1_FULL)
        if place is ttsim.L1_MEMORY_CONFIG:
            del call["dram_slice_config"]
        (text,) = suggestions(refused(call))
        assert text.startswith(("input_tensor=ttnn.to_memory_config(input_tensor, ", "conv_config=ttnn.Conv2dConfig("))
        changed = eval(f"dict({text})", {"ttnn": ttsim, "input_tensor": call["input_tensor"]})
        assert changed["conv_config"].shard_layout is not HEIGHT
        ttsim.conv_transpose2d(**{**call, **changed})
