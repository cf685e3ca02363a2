"""ttnn.conv_transpose2d: what calls return and leave behind, weights that serve again, and calls that ttnn gets wrong.

A strict device refuses calls that the real library computes wrongly; another computes what a device would.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import ttsim
from device.errors import ArgumentError, DeviceError
from device.memory.memory_config import BufferType
from tests.shards import HEIGHT, WIDTH, box
from tests.sizes import conv_sizes
from tests.ttsim.api.calls import conv, conv_arguments, put, refusal
from ttsim.runtime.device import Device

L1_FULL = ttsim.Conv2dL1FullSliceConfig


TILES: Any = {"dtype": ttsim.bfloat16, "layout": ttsim.TILE_LAYOUT}


def opened(*, strict: bool = True, values: Any = "fast", **options: Any) -> Device:
    return ttsim.open_device(l1_small_size=32768, values=values, strict=strict, **options)


@pytest.fixture
def lenient() -> Iterator[Device]:
    with opened(strict=False) as device:
        yield device


def rows(count: int) -> ttsim.Conv2dSliceConfig:
    return ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceHeight, num_slices=count)


def numbers(device: Device, *shape: Any, **how: Any) -> np.ndarray:
    """Values [outputs, out channels] of a call on random numbers, the same for the same sizes."""
    values: np.ndarray = conv(device, *shape, seed=0, **how).to_numpy()
    return values.reshape(-1, values.shape[-1])


def correlation(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.corrcoef(first.ravel(), second.ravel())[0, 1])


def test_what_is_returned_serves_again(device: Device) -> None:
    assert conv(device).to_numpy().tolist() == np.full((1, 1, 64, 32), 32).tolist()
    _, size = conv(device, return_output_dim=True)
    assert size == (8, 8)
    _, (weights, nothing) = conv(device, return_weights_and_bias=True)
    assert (weights.shape, nothing) == ([1, 1, 128, 32], None)
    first, _, (weights, prepared) = conv(device, bias=8, return_output_dim=True, return_weights_and_bias=True)
    assert first.to_numpy().max() == 40
    assert prepared.shape == [1, 1, 1, 32]
    ready = {"weight_tensor": weights, "bias_tensor": prepared, "return_weights_and_bias": True}
    again, (same, too) = conv(device, **ready)
    assert (same, too) == (weights, prepared)
    assert again.to_list() == first.to_list()


def test_preparing_ahead_gives_what_the_call_prepares(device: Device) -> None:
    config = ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat16)
    _, result = conv(device, bias=8, return_weights_and_bias=True, conv_config=config)
    shared = {
        "device": device,
        **conv_sizes(4, 4, 32, 32, 2, 2),
        **{"stride": (2, 2), "padding": (0, 0), "dilation": (1, 1), "groups": 1},
        "input_memory_config": ttsim.DRAM_MEMORY_CONFIG,
        "input_layout": ttsim.ROW_MAJOR_LAYOUT,
        "input_dtype": ttsim.bfloat16,
    }
    weight = ttsim.Tensor(np.ones((32, 32, 2, 2)), ttsim.bfloat16)
    bias = ttsim.Tensor(np.full((1, 1, 1, 32), 8.0), ttsim.bfloat16)
    raw = {"weight_tensor": weight, "weights_format": "IOHW", "has_bias": True}
    ahead = ttsim.prepare_conv_transpose2d_weights(**raw, **shared, conv_config=config)
    ahead_bias = ttsim.prepare_conv_transpose2d_bias(bias_tensor=bias, **shared, conv_config=config)
    for got, wanted in zip((ahead, ahead_bias), result, strict=True):
        assert got.spec == wanted.spec
        np.testing.assert_array_equal(got.buffer.pages(), wanted.buffer.pages())
    with pytest.raises(ArgumentError, match=r"^bad optional access"):
        ttsim.prepare_conv_transpose2d_bias(bias_tensor=bias, **shared)


def test_nothing_is_left_behind(device: Device) -> None:
    x, taken = put(device, "1x1x16x32"), []
    for _ in range(2):
        conv(device, bias=8, input_tensor=x).deallocate()
        views = (ttsim.get_memory_view(device, kind) for kind in (BufferType.DRAM, BufferType.L1))
        taken.append([view.total_bytes_allocated_per_bank for view in views])
    assert taken[0] == taken[1] == [taken[0][0], 0]


def test_an_input_in_l1_is_consumed_when_asked(device: Device) -> None:
    config = {"deallocate_activation": True}
    x, there = put(device, "1x1x16x32 l1"), put(device, "1x1x16x32")
    conv(device, input_tensor=x, config=config)
    conv(device, input_tensor=there, config=config)
    assert (x.is_allocated(), there.is_allocated()) == (False, True)
    assert refusal(lambda: conv(device, input_tensor=x)).startswith("Device: Tensor is not allocated")


def test_a_lenient_device_takes_what_the_real_library_gets_wrong(device: Device, lenient: Device) -> None:
    narrow = "1x1x32x16"
    text = refusal(lambda: conv(device, input_tensor=put(device, narrow)))
    assert "input_tensor must be channels-last" in text
    assert conv(lenient, input_tensor=put(lenient, narrow)).shape == [1, 1, 64, 32]
    assert conv(lenient, groups=0).to_numpy().max() == 32
    assert "stride must be greater than 0, got (0, 1)" in refusal(lambda: conv(device, stride=(0, 1)))
    number = ttsim.Tensor(np.float32(8), ttsim.bfloat16, lenient)
    text = refusal(lambda: conv(lenient, bias_tensor=number))
    assert text.startswith("Device: Bias tiles (0) must equal weight matrix width in tiles (1)")


@pytest.mark.parametrize(("height", "rows"), [(5, [32] * 64 + [0] * 16), (3, [32] * 48)])
def test_a_lenient_device_reads_zeros_beyond_a_tensor_in_l1(height: int, rows: list[int], lenient: Device) -> None:
    result = conv(lenient, words="l1", input_height=height)
    assert result.to_numpy()[0, 0, :, 0].tolist() == rows


def test_a_capture_without_dispatch_places_nothing(device: Device) -> None:
    x = put(device, "1x1x16x32")
    ttsim.graph.begin_graph_capture(ttsim.graph.RunMode.NO_DISPATCH)
    conv(device, input_tensor=x)
    trace = ttsim.graph.end_graph_capture()
    assert {node["params"]["address"] for node in trace if node["node_type"] == "buffer_allocate"} == {0}
    assert "ttnn.conv_transpose2d" in ttsim.graph.extract_calltrace(trace)
    assert device.num_program_cache_entries() == 0


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_channels_that_fill_a_shard_are_not_read(strict: bool) -> None:
    """Section A17 of the review: real models pad three channels to eight before the call."""
    values = (np.arange(96).reshape(1, 1, 32, 3) % 7).astype(np.float32)
    with opened(strict=strict) as device:

        def made(channels: int, words: str = "l1") -> Any:
            filled = np.pad(values, [(0, 0)] * 3 + [(0, channels - 3)])
            return conv(device, (4, 8), (3, 32), input_tensor=put(device, f"0 {words}", filled)).to_numpy().tolist()

        plain = made(3, "dram")
        assert plain == made(8) == made(8, "height/32x8/1") == made(16) == made(32) == made(32, "l1 tile")
        for channels in (24, 64) if strict else ():
            with pytest.raises(ArgumentError, match="in_channels=3 are 96 elements"):
                made(channels)


@pytest.mark.parametrize(
    "words", ["height/32x32/8", "width/160x32/4", "bfloat8_b width/160x32/4", "float32 block/160x32/1x1"]
)
def test_numbers_do_not_depend_on_the_shards_of_images(words: str) -> None:
    """Inputs [N, H, W, C] in tiles, whose rows a reshape deals anew."""
    whole, scheme = f"1x5x15x32 tile {words.split()[0] if ' ' in words else ''} l1", {"shard_layout": HEIGHT}
    with opened(values="exact") as device:
        wanted, got = (
            conv(device, (5, 15), seed=1, input_tensor=put(device, text), config=config).to_numpy()
            for text, config in ((whole, scheme), (f"1x5x15x32 tile {words}", {}))
        )
    np.testing.assert_array_equal(got, wanted)


WIDE = ((3, 8), (33, 20), (2, 5), (2, 3))


def test_what_others_planned_is_refused_every_time() -> None:
    """Plans are kept for all devices of a spec: here of the arguments something is wrong, then of the plan."""
    how: dict[str, Any] = {"dram_slice_config": L1_FULL}
    for wrong, config, text in (
        ({"padding": (2, 2)}, {}, "padding must not exceed"),
        ({}, {"act_block_w_div": 2}, "act_block_w_div cuts"),
    ):
        config |= {"shard_layout": WIDTH}
        numbers(opened(strict=False), *WIDE, **how, **wrong, config=config)
        for _ in range(2):
            with pytest.raises(ArgumentError, match=text):
                numbers(opened(), *WIDE, **how, **wrong, config=config)


ODD = ((8, 8), (64, 32), (3, 3))


@pytest.mark.parametrize("scheme", [HEIGHT, WIDTH])
def test_kernel_rows_in_one_block_are_right_but_for_block_shards(scheme: Any) -> None:
    """Sections G6 and S1 of the review: refused by the argument alone."""
    how: dict[str, Any] = {"padding": (1, 1), "dram_slice_config": L1_FULL}
    plain = numbers(opened(), *ODD, padding=(1, 1))
    config = {"full_inner_dim": True, "shard_layout": scheme}
    assert correlation(numbers(opened(), *ODD, **how, config=config), plain) > 0.9999
    with pytest.raises(ArgumentError, match="set shard_layout to HEIGHT_SHARDED or WIDTH_SHARDED"):
        numbers(opened(), *ODD, **how, config=config | {"shard_layout": ttsim.TensorMemoryLayout.BLOCK_SHARDED})


def used(device: Device, scheme: str, weights: Any = None, cores: Any = None, **how: Any) -> tuple[np.ndarray, Any]:
    """Output and prepared weights of a call in a scheme, with weights that another call prepared."""
    config = {"shard_layout": getattr(ttsim.TensorMemoryLayout, f"{scheme}_SHARDED")}
    config |= {} if cores is None else {"override_sharding_config": True, "core_grid": box(*cores)}
    ready = {} if weights is None else {"weight_tensor": weights}
    call = {"kernel": (3, 3), "padding": (1, 1), "channels": (64, 32), **how, **ready}
    output, (prepared, _) = conv(
        device, (8, 8), seed=0, config=config, dram_slice_config=L1_FULL, return_weights_and_bias=True, **call
    )
    return output.to_numpy(), prepared


@pytest.mark.parametrize(("first", "second"), [("HEIGHT", "WIDTH"), ("WIDTH", "HEIGHT"), ("BLOCK", "BLOCK")])
def test_pairs_of_one_matrix_compute_the_same(first: str, second: str) -> None:
    """Section A4 of the review: weights prepared for one call and used in another."""
    with opened() as device:
        _, prepared = used(device, first)
        wanted, _ = used(device, second)
        moved = prepared.cpu().to(device)
        for weights in (prepared, moved, ttsim.to_memory_config(moved, ttsim.L1_MEMORY_CONFIG)):
            assert np.array_equal(used(device, second, weights)[0], wanted)


COLUMN, FLAT = {"cores": (1, 2)}, {"padding": (0, 0)}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"scheme": "BLOCK"}, {"scheme": "HEIGHT"}),
        ({"scheme": "HEIGHT"}, {"scheme": "BLOCK"}),
        ({"scheme": "BLOCK"}, {"scheme": "BLOCK", **COLUMN}),
        ({"scheme": "BLOCK", **COLUMN}, {"scheme": "BLOCK"}),
        ({"scheme": "HEIGHT"}, {"scheme": "HEIGHT", "channels": (32, 32)}),
        ({"scheme": "HEIGHT", "channels": (32, 32)}, {"scheme": "HEIGHT"}),
        ({"scheme": "HEIGHT", "kernel": (2, 2), **FLAT}, {"scheme": "HEIGHT", "kernel": (3, 1), **FLAT}),
    ],
)
def test_strict_refuses_other_weights_and_lenient_reads_what_lies_there(
    first: dict[str, Any], second: dict[str, Any], lenient: Device
) -> None:
    _, prepared = used(lenient, **first)
    assert not np.allclose(used(lenient, weights=prepared, **second)[0], used(lenient, **second)[0], atol=0.1)
    with opened() as device:
        _, prepared = used(device, **first)
        with pytest.raises(ArgumentError, match=r"weight_tensor: prepared for .* used for .*pass it raw on the host"):
            used(device, weights=prepared, **second)


def test_width_and_channels_end_with_the_words_of_the_real_library(device: Device) -> None:
    """Also where a cached program would read weights of another size."""
    _, prepared = used(device, "BLOCK")
    for _ in range(2):
        text = refusal(lambda: used(device, "WIDTH", prepared))
        assert text.startswith("Device: The width of tensor a needs to match the height of tensor b")
        used(device, "WIDTH")


@pytest.mark.parametrize("strict", [True, False])
def test_an_output_padding_may_change_the_scheme_that_weights_were_prepared_for(strict: bool) -> None:
    """prepare_conv_transpose2d_weights plans without the output padding; here that makes WIDTH of BLOCK."""
    shape = ((4, 8), (2048, 32), (2, 2))
    geometry: dict[str, Any] = {
        **{"padding": (0, 0), "dilation": (1, 1), "groups": 1},
        "conv_config": ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat16),
        "dram_slice_config": L1_FULL,
    }
    kernel = np.random.default_rng(2).standard_normal((2048, 32, 2, 2), dtype=np.float32)
    raw = ttsim.Tensor(kernel, ttsim.bfloat16)
    with opened(strict=strict) as device:
        prepared = ttsim.prepare_conv_transpose2d_weights(
            weight_tensor=raw, weights_format="IOHW", has_bias=False, input_dtype=ttsim.bfloat16,
            input_memory_config=ttsim.DRAM_MEMORY_CONFIG, input_layout=ttsim.ROW_MAJOR_LAYOUT, device=device,
            **conv_sizes(4, 8, 2048, 32, 2, 2), stride=(2, 2), **geometry,
        )  # fmt: skip

        def result(weights: Any, padding: tuple[int, int]) -> np.ndarray:
            return numbers(device, *shape, weight_tensor=weights, output_padding=padding, **geometry)

        assert np.array_equal(result(prepared, (0, 0)), result(raw, (0, 0)))
        if strict:
            wanted = r"prepared for .* WIDTH_SHARDED .* used for .* BLOCK_SHARDED"
            with pytest.raises(ArgumentError, match=wanted):
                result(prepared, (1, 1))
        else:
            assert correlation(result(prepared, (1, 1)), result(raw, (1, 1))) < 0.5


def test_groups_need_not_divide_the_output_channels(lenient):
    """As many as the weights have are computed, those beyond are zeros."""
    weight = ttsim.Tensor(np.ones((64, 16, 3, 3), np.float32), ttsim.bfloat16)
    fewer, more = (
        conv(lenient, (4, 4), (64, outputs), (3, 3), groups=4, weight_tensor=weight).to_numpy() for outputs in (63, 65)
    )
    assert np.array_equal(fewer, more[..., :63])
    assert more[..., 63].any()
    assert not more[..., 64].any()


@pytest.mark.parametrize(
    ("axes", "layout", "options", "error"),
    [
        # A 1x1 kernel multiplies the last two axes of weights that are not prepared, whose output comes first.
        ((64, 32, 1, 1), ttsim.TILE_LAYOUT, {}, "The width of the first tensor must be equal to the height"),
        ((64, 32, 1, 1), ttsim.ROW_MAJOR_LAYOUT, {}, "per_core_N must be greater than 0!"),
        ((64, 64, 1, 1), ttsim.TILE_LAYOUT, {"config": {"shard_layout": ttsim.TensorMemoryLayout.BLOCK_SHARDED}},
         "Number of shards along height 8192 must not exceed number of rows 2"),
        # Other kernels look at the matrix before they cut it, and ask for the kernel where they choose cores.
        ((64, 32, 3, 3), ttsim.ROW_MAJOR_LAYOUT, {}, "Weights should be in TILE layout."),
        ((64, 32, 3, 3), ttsim.TILE_LAYOUT, {"config": {"shard_layout": ttsim.TensorMemoryLayout.WIDTH_SHARDED}},
         "Conv weight matrix shape is invalid"),
        ((32, 3, 3), ttsim.ROW_MAJOR_LAYOUT, {}, "ShapeBase[] index out of range. 3 not in [-4, 3)"),
        ((32, 3, 3), ttsim.TILE_LAYOUT, {"config": {"shard_layout": ttsim.TensorMemoryLayout.WIDTH_SHARDED}},
         "ShapeBase[] index out of range. 3 not in [-4, 3)"),
    ],
)  # fmt: skip
def test_weights_on_the_device_that_are_not_prepared(lenient, axes, layout, options, error):
    raw = ttsim.zeros(axes, ttsim.bfloat16, layout=layout, device=lenient)
    kernel = axes[-2:]
    outputs = 64 if axes[1] == 64 else 32
    with pytest.raises((ArgumentError, DeviceError)) as raised:
        conv(lenient, (8, 8), (64, outputs), kernel, (1, 1), words="l1 tile", weight_tensor=raw, **options)
    assert str(raised.value).startswith(error)


@pytest.mark.parametrize(
    ("axes", "first", "way_out"),
    [
        ((64, 64, 1, 1), "The width of the first tensor must be equal to the height", "on the device must be prepared"),
        ((1, 64, 64), "ShapeBase[] index out of range. 3 not in [-4, 3)", "it must have the four axes"),
        ((64, 64), "ShapeBase[] index out of range. 3 not in [-4, 2)", "it must have the four axes"),
    ],
)  # fmt: skip
def test_raw_weights_on_the_device_of_a_1x1_kernel(lenient, axes, first, way_out):
    raw = ttsim.zeros(axes, **TILES, device=lenient)
    text = refusal(lambda: conv(lenient, (8, 8), (64, 64), (1, 1), (1, 1), words="dram tile", weight_tensor=raw))
    assert text.startswith(first, text.index(": ") + 2)
    assert way_out in text


def test_rows_are_refused_where_tiles_of_the_same_shape_were_taken_before(lenient):
    weights = [ttsim.zeros((1, 1, 64, 64), **(TILES | {"layout": layout}), device=lenient) for layout in ttsim.Layout]
    by_layout = {weight.layout: partial(conv, lenient, (8, 8), (64, 64), (1, 1), (1, 1), words="dram tile",
                                        weight_tensor=weight) for weight in weights}  # fmt: skip
    by_layout[ttsim.TILE_LAYOUT]()
    assert refusal(by_layout[ttsim.ROW_MAJOR_LAYOUT]).startswith("Device: Inputs to matmul must be tilized")


@pytest.mark.parametrize("config", [{}, {"weights_dtype": ttsim.bfloat8_b}], ids=["as the weights", "another"])
def test_a_1x1_kernel_reads_prepared_weights_in_their_own_format(lenient, config):
    """Two tiles of the input, two of the weights and one of the output, all bfloat16; as recorded from ttnn."""
    prepared = ttsim.zeros((1, 1, 64, 64), **TILES, device=lenient)
    options = {"words": "dram tile", "weight_tensor": prepared, "config": config}
    arguments = conv_arguments(lenient, (16, 16), (64, 64), (1, 1), (1, 1), **options)
    answer = ttsim.graph.query_op_constraints(ttsim.conv_transpose2d, lenient, **arguments)
    assert answer.resource_usage.peak_memory_usage_per_core == 5 * 2048


@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize(
    ("place", "axes", "error"),
    [
        ("dram", (1, 1, 1, 64), "Unsupported bias shape: padded last dimension of bias, 64, not"),
        ("dram", (1, 1, 32, 32), "Broadcast error: Invalid dimension"),
        ("l1", (1, 1, 1, 64), "Broadcasting rule violation at dimension index -1 (output rank 4), dim a: 32"),
        ("l1", (1, 1, 32, 32), "Invalid subtile broadcast type"),
    ],
)  # fmt: skip
def test_a_bias_on_the_device_that_is_no_row_of_the_outputs_of_a_1x1_kernel(lenient, transposed, place, axes, error):
    bias = ttsim.zeros(axes, ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=lenient)
    words = f"{place} tile"
    with pytest.raises((ArgumentError, DeviceError)) as raised:
        conv(lenient, (8, 8), (64, 32), (1, 1), (1, 1), words=words, bias_tensor=bias, transposed=transposed)
    assert str(raised.value).startswith(error)


def test_the_bias_of_a_frame_of_one_row_is_prepared_without_a_search_for_slices() -> None:
    """Of the weights of the same call no number of slices fits an L1."""
    shared = {
        **conv_sizes(1, 19, 442, 1056, 1, 5), "batch_size": 7, "stride": (4, 4), "padding": (0, 0), "dilation": (1, 1),
        "groups": 1, "input_memory_config": ttsim.DRAM_MEMORY_CONFIG, "input_layout": ttsim.TILE_LAYOUT,
        "input_dtype": ttsim.bfloat16, "output_dtype": ttsim.float32,
        "conv_config": ttsim.Conv2dConfig(
            weights_dtype=ttsim.bfloat16, shard_layout=HEIGHT, output_layout=ttsim.TILE_LAYOUT,
            enable_act_double_buffer=True, transpose_shards=True),
        "compute_config": ttsim.WormholeComputeKernelConfig(fp32_dest_acc_en=True),
    }  # fmt: skip
    with ttsim.open_device(spec="blackhole_p150", l1_small_size=32768, values="off") as device:
        bias = ttsim.Tensor(np.zeros((1, 1, 1, 1056), np.float32), ttsim.bfloat16)
        prepared = ttsim.prepare_conv_transpose2d_bias(bias_tensor=bias, device=device, **shared)
        assert prepared.shape == (1, 1, 1, 1056)
        weights = ttsim.Tensor(np.zeros((442, 1056, 1, 5), np.float32), ttsim.bfloat16)
        with pytest.raises(ttsim.OutOfMemoryError, match=r"^DRAM Auto slice could not find valid slice configuration"):
            ttsim.prepare_conv_transpose2d_weights(
                weight_tensor=weights, weights_format="IOHW", has_bias=True, device=device, **shared)  # fmt: skip


def test_a_halo_without_room_is_out_of_memory_before_its_cores_are_looked_at() -> None:
    """Two cores off (0, 0), which a halo can not address either, have 1 MiB of the input each."""
    cores = ttsim.CoreRangeSet([ttsim.CoreRange(ttsim.CoreCoord(1, 2), ttsim.CoreCoord(2, 2))])
    config = ttsim.Conv2dConfig(
        weights_dtype=ttsim.float32, reshard_if_not_optimal=True, config_tensors_in_dram=True,
        act_block_h_override=320, override_sharding_config=True, core_grid=cores)  # fmt: skip
    with ttsim.open_device(spec="blackhole_p150", l1_small_size=32768, values="off") as device:
        image = ttsim.zeros((1, 1, 128 * 128, 32), ttsim.float32, ttsim.ROW_MAJOR_LAYOUT, device)
        weights = ttsim.Tensor(np.zeros((32, 653, 3, 7), np.float32), ttsim.bfloat16)
        with pytest.raises(ttsim.OutOfMemoryError, match=r"^Out of Memory: Not enough space to allocate 2163200 B L1"):
            ttsim.conv_transpose2d(
                input_tensor=image, weight_tensor=weights, device=device, **conv_sizes(128, 128, 32, 653, 3, 7),
                stride=(1, 1), padding=(5, 5), dilation=(3, 1), conv_config=config)  # fmt: skip
