from typing import Any

import numpy as np
import pytest

import ttsim
from device.errors import ArgumentError, DeviceError
from ops.planners.conv.arguments import CONV2D, ConvCall, Operand
from ttsim.api.conv import useful_flops

BASE = {"batch_size": 1, "in_channels": 32, "out_channels": 32, "input_height": 6, "input_width": 7}
SCHEMES = [None, *(getattr(ttsim.TensorMemoryLayout, f"{name}_SHARDED") for name in ("HEIGHT", "BLOCK", "WIDTH"))]


def definition(image: Any, weight: Any, *, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """float64 [N, OH, OW, O] of an image [N, H, W, C] and a weight [O, C / groups, kh, kw]."""
    (down, across), (top, bottom, left, right) = stride, padding
    full = np.pad(image.astype(float), ((0, 0), (top, bottom), (left, right), (0, 0)))
    kernel, reach = weight.shape[2:], [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    high, wide = (full.shape[1] - reach[0] - 1) // down + 1, (full.shape[2] - reach[1] - 1) // across + 1
    ins, outs = image.shape[3] // groups, weight.shape[0] // groups
    result = np.zeros((image.shape[0], high, wide, weight.shape[0]))
    for group in range(groups):
        to = slice(group * outs, (group + 1) * outs)
        for row, column in np.ndindex(*kernel):
            y, x = row * dilation[0], column * dilation[1]
            window = full[:, y : y + (high - 1) * down + 1 : down, x : x + (wide - 1) * across + 1 : across]
            seen = window[..., group * ins : (group + 1) * ins]
            result[..., to] += np.einsum("nhwc,oc->nhwo", seen, weight[to, :, row, column])
    return result


def run(device: ttsim.Device, image: Any, weight: Any, **call: Any) -> Any:
    rows = ttsim.Tensor(image.reshape(1, 1, -1, image.shape[3]), ttsim.bfloat16).to(device)
    sizes = {"batch_size": image.shape[0], "input_height": image.shape[1], "input_width": image.shape[2]}
    channels = {"in_channels": image.shape[3], "out_channels": weight.shape[0], "kernel_size": weight.shape[2:]}
    return ttsim.conv2d(
        input_tensor=rows,
        weight_tensor=ttsim.Tensor(weight, ttsim.bfloat16),
        device=device,
        **sizes,
        **channels,
        **call,
    )


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("values", ["exact", "fast"])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation", "groups"),
    [
        ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
        ((3, 2), (2, 3), (1, 0, 0, 1), (1, 1), 2),
        ((2, 3), (3, 2), (0, 0, 2, 1), (2, 1), 1),
        ((1, 1), (2, 2), (0, 0, 0, 0), (1, 1), 4),
        ((1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    ],
)
def test_small_integers_come_out_exactly(scheme, values, kernel, stride, padding, dilation, groups):
    """Sums of up to nine times eight numbers of a few bits are exact in every format on the way."""
    rng = np.random.default_rng(3)
    image = rng.integers(-2, 3, (2, 6, 7, 8 * groups)).astype(np.float32)
    weight = rng.integers(-1, 2, (4 * groups, 8, *kernel)).astype(np.float32)
    call = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    device = ttsim.open_device(l1_small_size=32768, values=values)
    config = ttsim.Conv2dConfig(shard_layout=scheme)
    output, size = run(device, image, weight, conv_config=config, return_output_dim=True, **call)
    expected = definition(image, weight, **call)
    assert size == expected.shape[1:3]
    assert output.to_numpy().astype(float).reshape(expected.shape).tolist() == expected.tolist()


@pytest.mark.parametrize("scheme", SCHEMES[1:])
def test_all_kernel_rows_in_one_block_give_the_same(scheme):
    """Unlike in a transposed convolution, weights are laid out for it; 24 channels do not fill tiles."""
    rng = np.random.default_rng(4)
    image = rng.integers(-2, 3, (1, 6, 7, 24)).astype(np.float32)
    weight = rng.integers(-1, 2, (40, 24, 3, 3)).astype(np.float32)
    device = ttsim.open_device(l1_small_size=32768)
    config = ttsim.Conv2dConfig(shard_layout=scheme, full_inner_dim=True)
    output = run(device, image, weight, conv_config=config)
    expected = definition(image, weight, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1)
    assert output.to_numpy().astype(float).ravel().tolist() == expected.ravel().tolist()


@pytest.mark.parametrize("values", ["exact", "fast"])
@pytest.mark.parametrize("place", [None, ttsim.DRAM_MEMORY_CONFIG])
@pytest.mark.parametrize(("padding", "groups"), [((0, 0, 0, 0), 1), ((1, 1, 2, 3), 2)])
def test_windows_side_by_side_are_folded(values, place, padding, groups):
    rng = np.random.default_rng(5)
    image = rng.integers(-2, 3, (2, 4, 7 if any(padding) else 6, 8)).astype(np.float32)
    weight = rng.integers(-1, 2, (6, 8 // groups, 2, 3)).astype(np.float32)
    device = ttsim.open_device(l1_small_size=32768, values=values)
    rows = ttsim.Tensor(image.reshape(1, 1, -1, 8), ttsim.bfloat16)
    call = {"stride": (2, 3), "padding": padding, "groups": groups}
    output = ttsim.conv2d(
        input_tensor=rows if place is None else rows.to(device, place),
        weight_tensor=ttsim.Tensor(weight, ttsim.bfloat16),
        device=device,
        batch_size=2,
        in_channels=8,
        out_channels=6,
        input_height=4,
        input_width=image.shape[2],
        kernel_size=(2, 3),
        **call,
    )
    expected = definition(image, weight, dilation=(1, 1), **call)
    assert output.to_numpy().astype(float).ravel().tolist() == expected.ravel().tolist()


@pytest.mark.parametrize("values", ["exact", "fast"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("kernel", "stride", "groups"), [((3, 3), (2, 2), 1), ((2, 4), (2, 3), 2), ((5, 1), (3, 1), 1)]
)
def test_windows_that_overlap_are_folded_with_their_weights_in_l1(values, scheme, kernel, stride, groups):
    """Positions of the kernel beyond it, which fill a multiple of the stride, meet zeros."""
    output, expected = folded_run(
        "l1", kernel, stride, groups, values=values, config={"shard_layout": scheme} if scheme else {}
    )
    assert output == expected


@pytest.mark.parametrize("scheme", SCHEMES[1:3])
def test_windows_side_by_side_are_folded_in_shards(scheme):
    output, expected = folded_run("l1", (2, 3), (2, 3), 2, config={"shard_layout": scheme})
    assert output == expected


def test_a_strict_device_refuses_images_in_dram_that_are_folded_without_their_weights():
    with pytest.raises(ttsim.ArgumentError, match=r"conv_config\.enable_kernel_stride_folding: of an input in DRAM"):
        folded_run("dram", (3, 3), (2, 2), 1, strict=True)
    output, expected = folded_run("dram", (3, 3), (2, 2), 1)
    assert output != expected
    with pytest.raises(ttsim.ArgumentError, match="conv2d: folding windows with dilation"):
        folded_run("l1", (3, 3), (2, 2), 1, strict=True, dilation=(2, 1))


def test_a_strict_device_refuses_borders_that_repeat_where_windows_are_folded():
    """The library pads with zeros before it folds, whatever padding_mode says: PadDeviceOperation, Fold, a matmul."""
    row, weight = (np.ones(shape, np.float32) for shape in ((1, 1, 48, 24), (32, 24, 1, 2)))
    sizes = {"in_channels": 24, "out_channels": 32, "batch_size": 1, "input_height": 1, "input_width": 48}
    config = ttsim.Conv2dConfig(padding_mode="Replicate")
    for strict in (True, False):
        with ttsim.open_device(l1_small_size=32768, strict=strict) as device:
            tensors = {"input_tensor": ttsim.Tensor(row, ttsim.bfloat16, device), "device": device}
            given = sizes | tensors | {"weight_tensor": ttsim.Tensor(weight, ttsim.bfloat16), "conv_config": config}
            geometry = {"kernel_size": (1, 2), "stride": (1, 2), "padding": (0, 1)}
            if strict:
                with pytest.raises(
                    ttsim.ArgumentError, match="Replicate is padded with zeros where windows are folded"
                ):
                    ttsim.conv2d(**given, **geometry)
            else:
                assert ttsim.conv2d(**given, **geometry).to_numpy()[0, 0, 0, 0] == 24


def folded_run(place, kernel, stride, groups, *, values="exact", config=None, strict=False, dilation=(1, 1)):
    """The output of a call that folds, and that of the definition."""
    rng = np.random.default_rng(6)
    image = rng.integers(-2, 3, (2, 6, 12, 16)).astype(np.float32)
    weight = rng.integers(-1, 2, (6, 16 // groups, *kernel)).astype(np.float32)
    device = ttsim.open_device(l1_small_size=32768, values=values, strict=strict)
    memory = {"l1": ttsim.L1_MEMORY_CONFIG, "dram": ttsim.DRAM_MEMORY_CONFIG}[place]
    call = {"stride": stride, "groups": groups, "dilation": dilation}
    output = ttsim.conv2d(
        input_tensor=ttsim.Tensor(image.reshape(1, 1, -1, 16), ttsim.bfloat16).to(device, memory),
        weight_tensor=ttsim.Tensor(weight, ttsim.bfloat16),
        device=device,
        batch_size=2,
        in_channels=16,
        out_channels=6,
        input_height=6,
        input_width=12,
        kernel_size=kernel,
        conv_config=ttsim.Conv2dConfig(enable_kernel_stride_folding=True, **(config or {})),
        **call,
    )
    expected = definition(image, weight, padding=(0, 0, 0, 0), **call)
    return output.to_numpy().astype(float).ravel().tolist(), expected.ravel().tolist()


def test_what_is_returned_serves_again():
    device = ttsim.open_device(l1_small_size=32768)
    image, weight = np.ones((1, 4, 4, 32), np.float32), np.ones((32, 32, 3, 3), np.float32)
    bias = ttsim.Tensor(np.full((1, 1, 1, 32), 8, np.float32), ttsim.bfloat16)
    first, size, (prepared, offsets) = run(
        device, image, weight, bias_tensor=bias, return_output_dim=True, return_weights_and_bias=True
    )
    assert size == (2, 2)
    assert first.to_numpy().tolist() == np.full((1, 1, 4, 32), 296).tolist()
    again, (same, too) = ttsim.conv2d(
        input_tensor=ttsim.Tensor(image.reshape(1, 1, 16, 32), ttsim.bfloat16).to(device),
        weight_tensor=prepared,
        bias_tensor=offsets,
        device=device,
        kernel_size=(3, 3),
        return_weights_and_bias=True,
        **(BASE | {"input_height": 4, "input_width": 4}),
    )
    assert (same, too) == (prepared, offsets)
    assert again.to_list() == first.to_list()


def test_flops_of_the_definition():
    """One image of 8x8, stride 2: 16 outputs of 6 channels, each of 4 channels and 9 positions."""
    spec = ttsim.Tensor(np.ones((1, 1, 64, 8)), ttsim.bfloat16).spec
    given = Operand(spec=spec, on_host=True)
    sizes = {"in_channels": 8, "out_channels": 6, "batch_size": 1, "input_height": 8, "input_width": 8, "groups": 2}
    window = {"kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 1, 1, 1)}
    assert useful_flops(ConvCall(rules=CONV2D, input=given, weight=given, **sizes, **window)) == 2 * 16 * 6 * 4 * 9


def test_wrong_calls_are_refused():
    device = ttsim.open_device(l1_small_size=32768)
    image, weight = np.ones((1, 8, 8, 32), np.float32), np.ones((32, 32, 2, 2), np.float32)
    with pytest.raises(DeviceError, match=r"K dimension in tiles must match between input A \(4\) and input B \(8\)"):
        run(device, image, weight, stride=(2, 2), conv_config=ttsim.Conv2dConfig(shard_layout=SCHEMES[1]))
    with pytest.raises(TypeError, match="did you mean 'slice_config'"):
        run(device, image, weight, dram_slice_config=None)
    with pytest.raises(ArgumentError, match="weight_tensor must have the shape"):
        run(device, image, np.ones((32, 16, 2, 2), np.float32))


def test_activation_reuse_gives_the_same_values():
    """One K block for all kernel rows, and integers are exact in any order."""
    rng = np.random.default_rng(5)
    image = rng.integers(-2, 3, (1, 200, 20, 8)).astype(np.float32)
    weight = rng.integers(-1, 2, (8, 8, 3, 3)).astype(np.float32)
    outputs = []
    for reuse in (True, False):
        device = ttsim.open_device(l1_small_size=32768)
        config = ttsim.Conv2dConfig(shard_layout=SCHEMES[1], enable_activation_reuse=reuse)
        output = run(device, image, weight, conv_config=config, padding=(1, 1), stride=(1, 1))
        outputs.append(output.to_numpy().astype(float))
    assert outputs[0].tolist() == outputs[1].tolist()


def test_tiles_and_rows_share_the_program_behind_their_halos():
    with ttsim.open_device(l1_small_size=32768, spec="wormhole_n150", values="off") as device:
        weights = ttsim.Tensor(np.zeros((64, 64, 3, 3), np.float32), ttsim.bfloat16)
        caches = []
        for layout in (ttsim.ROW_MAJOR_LAYOUT, ttsim.TILE_LAYOUT):
            x = ttsim.Tensor(np.zeros((1, 1, 4096, 64), np.float32), ttsim.bfloat16, layout=layout).to(device)
            config = ttsim.Conv2dConfig(shard_layout=ttsim.TensorMemoryLayout.HEIGHT_SHARDED)
            ttsim.conv2d(
                input_tensor=ttsim.to_memory_config(x, ttsim.L1_MEMORY_CONFIG), weight_tensor=weights, device=device,
                in_channels=64, out_channels=64, batch_size=1, input_height=64, input_width=64, kernel_size=(3, 3),
                stride=(1, 1), padding=(1, 1), conv_config=config,
            )  # fmt: skip
            caches.append({key for key in device.machine.program_cache if key[0] == "conv2d"})
    assert caches[0] == caches[1] != set()


def test_a_device_that_keeps_no_programs_frees_what_they_hold():
    with ttsim.open_device(l1_small_size=32768, spec="wormhole_n150", values="off") as device:
        weights = ttsim.Tensor(np.zeros((64, 64, 3, 3), np.float32), ttsim.bfloat16)
        x = ttsim.Tensor(np.zeros((1, 1, 256, 64), np.float32), ttsim.bfloat16).to(device)
        counts = []
        for switch in (device.disable_and_clear_program_cache, device.enable_program_cache):
            switch()
            result = ttsim.conv2d(
                input_tensor=x, weight_tensor=weights, device=device, in_channels=64, out_channels=64, batch_size=1,
                input_height=16, input_width=16, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1),
            )  # fmt: skip
            ttsim.deallocate(result)
            counts.append((device.num_program_cache_entries() > 0, len(list(device.machine.memory.live())) > 1))
    assert counts == [(False, False), (True, True)]


@pytest.mark.parametrize("values", ["exact", "off"])
def test_weights_in_rows_on_the_device_are_fetched_and_prepared(values):
    rng = np.random.default_rng(0)
    raw = rng.standard_normal((32, 32, 3, 3)).astype(np.float32), rng.standard_normal((1, 1, 1, 32)).astype(np.float32)
    with ttsim.open_device(l1_small_size=32768, values=values) as device:
        image = ttsim.Tensor(rng.standard_normal((1, 1, 42, 32)), ttsim.bfloat16).to(device)
        outputs = []
        for there in (False, True):
            weight, bias = (ttsim.Tensor(one, ttsim.bfloat16, device if there else None) for one in raw)
            made, (prepared, _) = ttsim.conv2d(
                **BASE, input_tensor=image, weight_tensor=weight, bias_tensor=bias, device=device, kernel_size=(3, 3),
                groups=0, return_weights_and_bias=True)  # fmt: skip
            assert prepared.shape == (1, 1, 288, 32)
            outputs.append(made)
        assert weight.is_allocated()
        if values == "exact":
            assert np.array_equal(outputs[0].to_numpy(), outputs[1].to_numpy())


def test_a_transposed_convolution_of_the_same_frame_is_another_program():
    with ttsim.open_device(l1_small_size=32768, values="off") as device:
        image = ttsim.Tensor(np.zeros((1, 1, 42, 32)), ttsim.bfloat16).to(device)
        weight = ttsim.Tensor(np.zeros((32, 32, 3, 3)), ttsim.bfloat16)

        def circular_buffers(function):
            ttsim.graph.begin_graph_capture()
            function(
                **BASE, input_tensor=image, weight_tensor=weight, device=device, kernel_size=(3, 3), padding=(1, 1)
            )
            nodes = ttsim.graph.end_graph_capture()
            return [one["params"]["size"] for one in nodes if one["node_type"] == "circular_buffer_allocate"]

        first, again, other = map(circular_buffers, (ttsim.conv2d, ttsim.conv2d, ttsim.conv_transpose2d))
        assert again == []
        assert len(other) == len(first) > 0


WIDTH = {"slice_type": ttsim.Conv2dDRAMSliceWidth}


@pytest.mark.parametrize(
    ("kernel", "place", "slices", "first"),
    [
        ((5, 5), ttsim.DRAM_MEMORY_CONFIG, None,
         "DRAM Auto slice could not find valid slice configuration. Tried up to 0 slices for width-slicing on "
         "output dimension 0. Available L1: 1360544 bytes. Operation requires more memory"),
        ((5, 5), ttsim.DRAM_MEMORY_CONFIG, {**WIDTH, "num_slices": 2},
         "Number of slices (2) exceeds the maximum allowed (0) for the given output dimension and alignment."),
        ((5, 1), ttsim.DRAM_MEMORY_CONFIG, {**WIDTH, "num_slices": 2},
         "Number of slices (2) exceeds the maximum allowed (1) for the given output dimension and alignment."),
        ((1, 5), ttsim.DRAM_MEMORY_CONFIG, {**WIDTH, "num_slices": 0}, "DRAM Auto slice could not find valid slice "),
        ((1, 5), ttsim.DRAM_MEMORY_CONFIG, None, ""),  # here and below the real library crashes
        ((5, 1), ttsim.DRAM_MEMORY_CONFIG, {**WIDTH, "num_slices": 0}, ""),
        ((5, 5), ttsim.L1_MEMORY_CONFIG, None, ""),
    ],
)  # fmt: skip
def test_windows_larger_than_the_image_find_no_slices(kernel, place, slices, first):
    cut = None if slices is None else ttsim.Conv2dSliceConfig(**slices)
    with ttsim.open_device(l1_small_size=32768, values="off") as device:
        image = ttsim.Tensor(np.zeros((1, 1, 16, 32)), ttsim.bfloat16, device, mem_config=place)
        with pytest.raises(ArgumentError) as refused:
            ttsim.conv2d(
                input_tensor=image, weight_tensor=ttsim.Tensor(np.zeros((32, 32, *kernel)), ttsim.bfloat16),
                device=device, in_channels=32, out_channels=32, batch_size=1, input_height=4, input_width=4,
                kernel_size=kernel, slice_config=cut)  # fmt: skip
        *before, ours = str(refused.value).splitlines()
        assert ours.startswith(f"conv2d: kernel_size {kernel} with dilation (1, 1) does not fit an image of 4 x 4 ")
        assert before[:1] == [] if not first else before[0].startswith(first)


def test_slices_are_not_cut_from_bfloat4_b():
    with ttsim.open_device(l1_small_size=32768, values="off") as device:
        image = ttsim.Tensor(np.zeros((1, 1, 64, 32)), ttsim.bfloat4_b, device)
        call = {
            "input_tensor": image, "weight_tensor": ttsim.Tensor(np.zeros((32, 32, 3, 3)), ttsim.bfloat16),
            "device": device, "in_channels": 32, "out_channels": 32, "batch_size": 1, "input_height": 8,
            "input_width": 8, "kernel_size": (3, 3), "padding": (1, 1),
        }  # fmt: skip
        assert ttsim.conv2d(**call).shape == [1, 1, 64, 32]  # in one piece
        rows = ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceHeight, num_slices=2)
        with pytest.raises(DeviceError, match=r"^Only TILE layout is supported for BFLOAT8_B dtype!"):
            ttsim.conv2d(**call, slice_config=rows)
