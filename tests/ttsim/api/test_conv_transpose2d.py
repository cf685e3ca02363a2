import re
from typing import Any

import numpy as np
import pytest

import ttsim
from device.errors import ArgumentError, DeviceError
from device.memory.memory_config import BufferType
from tests.sizes import conv_sizes
from ttsim.runtime.device import Device


@pytest.fixture
def device() -> Device:
    return ttsim.open_device(l1_small_size=32768)


@pytest.fixture
def lenient() -> Device:
    return ttsim.open_device(l1_small_size=32768, strict=False)


def ones(*shape: int, of: Any = 1) -> ttsim.Tensor:
    return ttsim.Tensor(np.full(shape, of, np.float32), ttsim.bfloat16)


def arguments(place: Device, /, **changes: Any) -> dict[str, Any]:
    """A small call: 4x4 image of 32 channels, ones everywhere, kernel 2, stride 2."""
    tensors = {"input_tensor": ones(1, 1, 16, 32).to(place), "weight_tensor": ones(32, 32, 2, 2), "device": place}
    return {**tensors, **conv_sizes(4, 4, 32, 32, 2, 2), "stride": (2, 2), **changes}


def run(place: Device, /, **changes: Any) -> Any:
    return ttsim.conv_transpose2d(**arguments(place, **changes))


def in_l1(tensor: ttsim.Tensor) -> ttsim.Tensor:
    return ttsim.to_memory_config(tensor, ttsim.L1_MEMORY_CONFIG)


def grid(columns: int, rows: int) -> ttsim.CoreRangeSet:
    """Cores from (0, 0)."""
    last = ttsim.CoreCoord(columns - 1, rows - 1)
    return ttsim.CoreRangeSet([ttsim.CoreRange(ttsim.CoreCoord(0, 0), last)])


def bias() -> ttsim.Tensor:
    return ones(1, 1, 1, 32, of=8)


def test_what_is_returned(device: Device) -> None:
    output = run(device)
    assert output.to_numpy().tolist() == np.full((1, 1, 64, 32), 32).tolist()
    _, size = run(device, return_output_dim=True)
    assert size == (8, 8)
    _, (weights, nothing) = run(device, return_weights_and_bias=True)
    assert (weights.shape, nothing) == ([1, 1, 128, 32], None)
    first, _, (weights, prepared) = run(
        device, bias_tensor=bias(), return_output_dim=True, return_weights_and_bias=True
    )
    assert first.to_numpy().max() == 40
    assert prepared.shape == [1, 1, 1, 32]
    again, (same, too) = run(device, weight_tensor=weights, bias_tensor=prepared, return_weights_and_bias=True)
    assert same is weights
    assert too is prepared
    assert again.to_list() == first.to_list()


def test_preparing_ahead_gives_what_the_call_prepares(device: Device) -> None:
    config = ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat16)
    _, result = run(device, bias_tensor=bias(), return_weights_and_bias=True, conv_config=config)
    shared = {
        "device": device,
        **conv_sizes(4, 4, 32, 32, 2, 2),
        "stride": (2, 2),
        "padding": (0, 0),
        "dilation": (1, 1),
        "groups": 1,
        "input_memory_config": ttsim.DRAM_MEMORY_CONFIG,
        "input_layout": ttsim.ROW_MAJOR_LAYOUT,
        "input_dtype": ttsim.bfloat16,
    }
    prepare = ttsim.prepare_conv_transpose2d_weights
    raw = {"weight_tensor": ones(32, 32, 2, 2), "weights_format": "IOHW", "has_bias": True}
    ahead = prepare(**raw, **shared, conv_config=config)
    ahead_bias = ttsim.prepare_conv_transpose2d_bias(bias_tensor=bias(), **shared, conv_config=config)
    for got, wanted in zip((ahead, ahead_bias), result, strict=True):
        assert got.spec == wanted.spec
        np.testing.assert_array_equal(got.buffer.pages(), wanted.buffer.pages())
    with pytest.raises(ArgumentError, match=r"^bad optional access"):
        ttsim.prepare_conv_transpose2d_bias(bias_tensor=bias(), **shared)


def test_nothing_is_left_behind(device: Device) -> None:
    call = arguments(device, bias_tensor=bias())
    taken = []
    for _ in range(2):
        ttsim.conv_transpose2d(**call).deallocate()
        views = (ttsim.get_memory_view(device, kind) for kind in (BufferType.DRAM, BufferType.L1))
        taken.append([view.total_bytes_allocated_per_bank for view in views])
    assert taken[0] == taken[1] == [taken[0][0], 0]


def test_an_input_in_l1_is_consumed_when_asked(device: Device) -> None:
    call = arguments(device, conv_config=ttsim.Conv2dConfig(deallocate_activation=True))
    consumed = call | {"input_tensor": in_l1(call["input_tensor"])}
    assert ttsim.conv_transpose2d(**consumed).to_numpy().max() == 32
    assert not consumed["input_tensor"].is_allocated()
    ttsim.conv_transpose2d(**call)
    assert call["input_tensor"].is_allocated()
    with pytest.raises(DeviceError, match=r"^Tensor is not allocated"):
        ttsim.conv_transpose2d(**consumed)


def test_a_strict_device_refuses_what_the_real_library_gets_wrong(device: Device) -> None:
    with pytest.raises(ArgumentError, match="input_tensor must be channels-last"):
        run(device, input_tensor=ones(1, 1, 32, 16).to(device))
    with pytest.raises(ArgumentError, match=re.escape("stride must be greater than 0, got (0, 1)")):
        run(device, stride=(0, 1))


def test_a_lenient_device_takes_them(lenient: Device) -> None:
    assert run(lenient, input_tensor=ones(1, 1, 32, 16).to(lenient)).shape == [1, 1, 64, 32]
    assert run(lenient, groups=0).to_numpy().max() == 32


def test_a_bias_without_axes_has_no_tiles(lenient: Device) -> None:
    with pytest.raises(DeviceError, match=r"^Bias tiles \(0\) must equal weight matrix width in tiles \(1\)"):
        run(lenient, bias_tensor=ttsim.Tensor(np.float32(8), ttsim.bfloat16, lenient))


@pytest.mark.parametrize(("height", "rows"), [(5, [32] * 64 + [0] * 16), (3, [32] * 48)])
def test_a_lenient_device_reads_zeros_beyond_a_tensor_in_l1(height: int, rows: list[int], lenient: Device) -> None:
    result = run(lenient, input_tensor=in_l1(ones(1, 1, 16, 32).to(lenient)), input_height=height)
    assert result.to_numpy()[0, 0, :, 0].tolist() == rows


def test_without_values() -> None:
    device = ttsim.open_device(l1_small_size=32768, values="off")
    output, (weights, _) = run(device, return_weights_and_bias=True)
    assert output.shape == [1, 1, 64, 32]
    for tensor in (output, weights):
        with pytest.raises(DeviceError, match="opened with values='off'"):
            tensor.to_numpy()


def test_a_capture_without_dispatch_places_nothing(device: Device) -> None:
    call = arguments(device)
    ttsim.graph.begin_graph_capture(ttsim.graph.RunMode.NO_DISPATCH)
    ttsim.conv_transpose2d(**call)
    trace = ttsim.graph.end_graph_capture()
    addresses = {node["params"]["address"] for node in trace if node["node_type"] == "buffer_allocate"}
    assert addresses == {0}
    assert ttsim.graph.extract_calltrace(trace)[0] == "ttnn.conv_transpose2d"
    assert device.num_program_cache_entries() == 0


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_channels_that_fill_a_shard_are_not_read(strict: bool) -> None:
    """Section A17 of the review: real models pad three channels to eight before the call."""
    device = ttsim.open_device(l1_small_size=32768, strict=strict)
    numbers = (np.arange(96).reshape(1, 1, 32, 3) % 7).astype(np.float32)
    shards = ttsim.ShardSpec(grid(1, 1), (32, 8), ttsim.ShardOrientation.ROW_MAJOR)
    sharded = ttsim.MemoryConfig(ttsim.TensorMemoryLayout.HEIGHT_SHARDED, ttsim.BufferType.L1, shards)

    def made(channels: int, place: Any = ttsim.L1_MEMORY_CONFIG, layout: Any = ttsim.ROW_MAJOR_LAYOUT) -> Any:
        filled = np.pad(numbers, [(0, 0)] * 3 + [(0, channels - 3)])
        given = ttsim.Tensor(filled, ttsim.bfloat16, layout=layout).to(device, place)
        sizes = conv_sizes(4, 8, 3, 32, 2, 2)
        return run(device, input_tensor=given, weight_tensor=ones(3, 32, 2, 2), **sizes).to_numpy().tolist()

    plain = made(3, ttsim.DRAM_MEMORY_CONFIG)
    assert plain == made(8) == made(8, sharded) == made(16) == made(32) == made(32, layout=ttsim.TILE_LAYOUT)
    for channels in (24, 64) if strict else ():
        with pytest.raises(ArgumentError, match="in_channels=3 are 96 elements"):
            made(channels)
