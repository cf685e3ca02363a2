"""ttnn.conv2d and conv1d against their definition, what they return, and the programs and memory that calls share."""

from typing import Any

import numpy as np
import pytest

import ttsim
from tests.build import place
from tests.sizes import conv_sizes
from tests.ttsim.api.calls import conv, put

SCHEMES = [None, *(getattr(ttsim.TensorMemoryLayout, f"{name}_SHARDED") for name in ("HEIGHT", "BLOCK", "WIDTH"))]
DRAM, L1 = ttsim.DRAM_MEMORY_CONFIG, ttsim.L1_MEMORY_CONFIG
DOWN, ACROSS = ttsim.Conv2dDRAMSliceHeight, ttsim.Conv2dDRAMSliceWidth


@pytest.fixture
def off():
    with ttsim.open_device(l1_small_size=32768, spec="wormhole_n150", values="off") as device:
        yield device


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


def run(device: Any, image: Any, weight: Any, *, place: Any = DRAM, config: Any = None, **call: Any) -> Any:
    """conv2d of an image [N, H, W, C] and a raw weight, arrays of numpy; place None leaves the image on the host."""
    rows = ttsim.Tensor(image.reshape(1, 1, -1, image.shape[3]), ttsim.bfloat16)
    tensors = {"input_tensor": rows if place is None else rows.to(device, place), "batch_size": len(image)}
    tensors["weight_tensor"] = ttsim.Tensor(weight, ttsim.bfloat16)
    shape = image.shape[1:3], (image.shape[3], len(weight)), weight.shape[2:]
    return dense(device, *shape, **tensors, config=config, **call)


def dense(device: Any, *shape: Any, **call: Any) -> Any:
    """conv2d of stride 1, where nothing else is said."""
    return conv(device, *shape, **{"stride": (1, 1), "transposed": False} | call)


def both(image_shape, weight_shape, values="exact", strict=None, seed=3, **call):
    """The output of a call on small integers, and that of the definition, which is exact in every format on the way."""
    rng = np.random.default_rng(seed)
    image = rng.integers(-2, 3, image_shape).astype(np.float32)
    weight = rng.integers(-1, 2, weight_shape).astype(np.float32)
    window = {"stride": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1), "groups": 1}
    window |= {name: call[name] for name in window if name in call}
    with ttsim.open_device(l1_small_size=32768, values=values, strict=strict) as device:
        output, size = run(device, image, weight, return_output_dim=True, **call)
        expected = definition(image, weight, **window)
        return (
            size,
            output.to_numpy().astype(float).reshape(-1).tolist(),
            expected.shape[1:3],
            expected.ravel().tolist(),
        )


def same(*shapes, **call):
    size, output, wanted_size, wanted = both(*shapes, **call)
    assert size == wanted_size
    assert output == wanted


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("values", "kernel", "stride", "padding", "dilation", "groups"),
    [
        ("exact", (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
        ("fast", (3, 2), (2, 3), (1, 0, 0, 1), (1, 1), 2),
        ("exact", (2, 3), (3, 2), (0, 0, 2, 1), (2, 1), 1),
        ("fast", (1, 1), (2, 2), (0, 0, 0, 0), (1, 1), 4),
        ("exact", (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    ],
)
def test_small_integers_come_out_exactly(scheme, values, kernel, stride, padding, dilation, groups):
    window = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    same((2, 6, 7, 8 * groups), (4 * groups, 8, *kernel), values=values, config={"shard_layout": scheme}, **window)


@pytest.mark.parametrize("scheme", SCHEMES[1:])
def test_all_kernel_rows_in_one_block_give_the_same(scheme):
    """Unlike in a transposed convolution, weights are laid out for it; 24 channels do not fill tiles."""
    same((1, 6, 7, 24), (40, 24, 3, 3), config={"shard_layout": scheme, "full_inner_dim": True})


def test_activation_reuse_gives_the_same_values():
    """One K block for all kernel rows, and integers are exact in any order."""
    config = {"shard_layout": SCHEMES[1], "enable_activation_reuse": True}
    same((1, 200, 20, 8), (8, 8, 3, 3), config=config, padding=(1, 1, 1, 1))


@pytest.mark.parametrize(
    ("values", "place", "padding", "groups"),
    [("exact", None, (1, 1, 2, 3), 2), ("fast", DRAM, (0, 0, 0, 0), 1), ("exact", DRAM, (1, 1, 2, 3), 2)],
)
def test_windows_side_by_side_are_folded(values, place, padding, groups):
    window = {"stride": (2, 3), "padding": padding, "groups": groups}
    same((2, 4, 7 if any(padding) else 6, 8), (6, 8 // groups, 2, 3), values=values, place=place, **window)


def folded(device, image, shards, *, layout=ttsim.ROW_MAJOR_LAYOUT, **call):
    """2x2 windows side by side of an image of four axes in shards, with a weight of ones for four channels."""
    x = ttsim.from_numpy(image, ttsim.bfloat16, layout=layout, device=device, memory_config=place(shards))
    channels, sides = image.shape[-1], image.shape[1:3]
    call = {"input_tensor": x, "batch_size": len(image), "stride": (2, 2)} | call
    return dense(device, sides, (channels, 4), (2, 2), **call)


@pytest.mark.parametrize("padding", [(0, 0, 0, 0), (1, 1, 0, 0)])
def test_shards_in_dram_that_are_wider_than_the_channels_are_gathered_before_folding(device, padding):
    image = np.arange(2 * 4 * 8 * 40).reshape(2, 4, 8, 40) % 3
    expected = definition(image, np.ones((4, 40, 2, 2)), stride=(2, 2), padding=padding, dilation=(1, 1), groups=1)
    assert np.array_equal(
        folded(device, image, "width/64x16/3 dram", padding=padding).to_numpy().ravel(), expected.ravel()
    )


@pytest.mark.parametrize(
    ("shards", "options", "error"),
    [
        ("block/512x48/2x1 dram", {}, "We don't support DRAM block sharding"),
        ("block/512x32/2x1 dram", {"layout": ttsim.TILE_LAYOUT}, "We don't support DRAM block sharding"),
        ("height/128x80/4 dram", {}, "Shard width 320 must match physical width 256 for height sharded"),
        ("block/512x32/2x1 dram", {}, "MatmulMultiCoreReuseMultiCastProgramConfig: input A and output buffer types"),
    ],
)
def test_shards_in_dram_that_no_folding_takes(device, shards, options, error):
    with pytest.raises(ttsim.DeviceError, match=f"^{error}"):
        folded(device, np.zeros((2, 4, 64, 64)), shards, **options)


FOLDS = {"enable_kernel_stride_folding": True}


@pytest.mark.parametrize(
    ("values", "scheme", "kernel", "stride", "groups"),
    [
        *(("fast", scheme, (3, 3), (2, 2), 1) for scheme in SCHEMES),
        *(("exact", scheme, (2, 4), (2, 3), 2) for scheme in SCHEMES),
        ("exact", None, (5, 1), (3, 1), 1),
        *(("fast", scheme, (2, 3), (2, 3), 2) for scheme in SCHEMES[1:3]),
    ],
)
def test_windows_that_overlap_are_folded_with_their_weights_in_l1(values, scheme, kernel, stride, groups):
    """Positions of the kernel beyond it, which fill a multiple of the stride, meet zeros."""
    config = FOLDS | ({"shard_layout": scheme} if scheme else {})
    same((2, 6, 12, 16), (6, 16 // groups, *kernel), values=values, place=L1, config=config, stride=stride,
         groups=groups)  # fmt: skip


@pytest.mark.parametrize("padding", [(1, 1, 1, 1), (1, 1, 0, 2)])
@pytest.mark.parametrize("values", ["fast", "exact"])
def test_images_in_high_shards_are_folded_with_zeros_around_them(values, padding):
    config = FOLDS | {"shard_layout": SCHEMES[1]}
    same((2, 8, 16, 32), (6, 32, 2, 2), values=values, place=place("height/32x32/8x1"), config=config, stride=(2, 2),
         padding=padding)  # fmt: skip


def test_a_strict_device_refuses_what_folding_gets_wrong():
    shapes, call = ((2, 6, 12, 16), (6, 16, 3, 3)), {"stride": (2, 2), "config": FOLDS}
    with pytest.raises(ttsim.ArgumentError, match=r"conv_config\.enable_kernel_stride_folding: of an input in DRAM"):
        both(*shapes, strict=True, **call)
    _, output, _, wanted = both(*shapes, strict=False, **call)
    assert output != wanted
    with pytest.raises(ttsim.ArgumentError, match="conv2d: folding windows with dilation"):
        both(*shapes, strict=True, place=L1, dilation=(2, 1), **call)


def test_weights_are_prepared_for_folded_windows_of_shards(device):
    """Recorded from ttnn 0.81.1: HEIGHT shards of an image that is folded later do not matter to its weights.

    They stay where they are, whatever the config says.
    """
    height, width = SCHEMES[1], SCHEMES[3]
    call = {
        "weight_tensor": ttsim.Tensor(np.zeros((32, 32, 8, 8), np.float32), ttsim.bfloat16),
        "input_memory_config": place("height/256x32/8x8"),
        **{"input_layout": ttsim.ROW_MAJOR_LAYOUT, "weights_format": "OIHW", "has_bias": True},
        **{"input_dtype": ttsim.bfloat16, "device": device, "padding": (0, 0), "dilation": (1, 1), "groups": 1},
        **conv_sizes(128, 128, 32, 32, 8, 8),
        "stride": (8, 8),
    }
    for layout in (height, width):
        config = ttsim.Conv2dConfig(shard_layout=layout, enable_kernel_stride_folding=True)
        assert ttsim.prepare_conv_weights(**call, conv_config=config).padded_shape == [1, 1, 2048, 32]


@pytest.mark.parametrize("scheme", SCHEMES[1:3])
def test_weights_of_fewer_channels_meet_the_first_ones(scheme):
    """As in the real library; a strict device accepts them where their rows are those of all channels."""
    image = np.random.default_rng(0).integers(-3, 4, (1, 8, 8, 64)).astype(np.float32)
    weight = np.ones((32, 3, 3, 3), np.float32)
    config = {"shard_layout": scheme, "enable_kernel_stride_folding": False}
    with ttsim.open_device(l1_small_size=32768) as device:
        rows = run(device, image[..., :16], weight, config=config).to_numpy()
        if scheme is SCHEMES[1]:
            with pytest.raises(ttsim.ArgumentError, match="prepared for conv2d 3 -> 32 channels"):
                run(device, image, weight, config=config)
    wanted = definition(image[..., :3], weight, stride=(1, 1), padding=(0,) * 4, dilation=(1, 1), groups=1)
    assert np.array_equal(rows.reshape(wanted.shape), wanted)


def test_a_strict_device_refuses_borders_that_repeat_where_windows_are_folded():
    """The library pads with zeros before it folds, whatever padding_mode says: PadDeviceOperation, Fold, a matmul."""
    ones = np.ones((1, 1, 48, 24), np.float32), np.ones((32, 24, 1, 2), np.float32)
    call = {"stride": (1, 2), "padding": (0, 1), "config": {"padding_mode": ttsim.PaddingMode.Replicate}}
    with ttsim.open_device(l1_small_size=32768, strict=False) as device:
        assert run(device, *ones, **call).to_numpy()[0, 0, 0, 0] == 24
    refused = pytest.raises(ttsim.ArgumentError, match="Replicate is padded with zeros where windows are folded")
    with ttsim.open_device(l1_small_size=32768) as device, refused:
        run(device, *ones, **call)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def test_tiles_and_rows_share_the_program_behind_their_halos(off):
    caches = []
    for words in ("l1", "l1 tile"):
        shards = {"shard_layout": SCHEMES[1]}
        dense(off, (64, 64), (64, 64), (3, 3), words=words, padding=(1, 1), config=shards)
        caches.append({key for key in off.machine.program_cache if key[0] == "conv2d"})
    assert caches[0] == caches[1] != set()


def test_a_device_that_keeps_no_programs_frees_what_they_hold(off):
    counts = []
    x = put(off, "1x1x256x64")
    for switch in (off.disable_and_clear_program_cache, off.enable_program_cache):
        switch()
        ttsim.deallocate(dense(off, (16, 16), (64, 64), (3, 3), input_tensor=x, padding=(1, 1)))
        counts.append((off.num_program_cache_entries() > 0, len(list(off.machine.memory.live())) > 1))
    assert counts == [(False, False), (True, True)]


@pytest.mark.parametrize("values", ["exact", "off"])
def test_weights_in_rows_on_the_device_are_fetched_and_prepared(values):
    rng = np.random.default_rng(0)
    raw = rng.standard_normal((32, 32, 3, 3)).astype(np.float32), rng.standard_normal((1, 1, 1, 32)).astype(np.float32)
    with ttsim.open_device(l1_small_size=32768, values=values) as device:
        image = ttsim.Tensor(rng.standard_normal((1, 1, 42, 32)), ttsim.bfloat16).to(device)
        outputs = []
        for there in (False, True):
            weight, bias = (ttsim.Tensor(values, ttsim.bfloat16, device if there else None) for values in raw)
            tensors = {"input_tensor": image, "weight_tensor": weight, "bias_tensor": bias}
            options = {"groups": 0, "return_weights_and_bias": True}
            result, (prepared, _) = dense(device, (6, 7), (32, 32), (3, 3), **tensors, **options)
            assert prepared.shape == (1, 1, 288, 32)
            outputs.append(result)
        assert weight.is_allocated()
        if values == "exact":
            assert np.array_equal(outputs[0].to_numpy(), outputs[1].to_numpy())


@pytest.mark.parametrize(
    ("kernel", "place", "slices", "first"),
    [
        ((5, 5), DRAM, None,
         "DRAM Auto slice could not find valid slice configuration. Tried up to 0 slices for width-slicing on "
         "output dimension 0. Available L1: 1360544 bytes. Operation requires more memory"),
        ((5, 5), DRAM, (ACROSS, 2),
         "Number of slices (2) exceeds the maximum allowed (0) for the given output dimension and alignment."),
        ((5, 1), DRAM, (ACROSS, 2),
         "Number of slices (2) exceeds the maximum allowed (1) for the given output dimension and alignment."),
        ((1, 5), DRAM, (ACROSS, 0), "DRAM Auto slice could not find valid slice "),
        ((1, 5), DRAM, None, ""),  # here and below the real library crashes
        ((5, 1), DRAM, (ACROSS, 0), ""),
        ((5, 5), L1, None, ""),
    ],
)  # fmt: skip
def test_windows_larger_than_the_image_find_no_slices(kernel, place, slices, first, off):
    cut = slices and ttsim.Conv2dSliceConfig(slice_type=slices[0], num_slices=slices[1])
    with pytest.raises(ttsim.ArgumentError) as refused:
        run(off, zeros(1, 4, 4, 32), zeros(32, 32, *kernel), place=place, slice_config=cut)
    *before, ours = str(refused.value).splitlines()
    assert ours.startswith(f"conv2d: kernel_size {kernel} with dilation (1, 1) does not fit an image of 4 x 4 ")
    assert before[:1] == [] if not first else before[0].startswith(first)


def row_call(device, rows, weight, **changes):
    sizes = {"in_channels": 32, "out_channels": 32, "batch_size": 1, "input_length": 20, "kernel_size": 5}
    tensors = {"input_tensor": rows, "weight_tensor": weight, "device": device}
    return ttsim.conv1d(**{**tensors, **sizes, **changes})


def test_a_row_is_an_image_of_one_row(device):
    rng = np.random.default_rng(0)
    row, weight = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 20, 32), (32, 32, 5)))
    given = ttsim.Tensor(row, ttsim.bfloat16).to(device)
    result, length, (prepared, bias) = row_call(
        device, given, ttsim.Tensor(weight, ttsim.bfloat16), padding=(4, 0), stride=2, return_output_dim=True,
        return_weights_and_bias=True)  # fmt: skip
    assert (result.shape, length, prepared.shape, bias) == ((1, 1, 10, 32), 10, (1, 1, 160, 32), None)
    padded = np.pad(row[0], ((4, 0), (0, 0))).astype(float)
    wanted = np.stack([np.einsum("kc,ock->o", padded[2 * i : 2 * i + 5], weight) for i in range(10)])
    assert np.corrcoef(result.to_numpy().ravel(), wanted.ravel())[0, 1] > 0.9999
    image = given.reshape(1, 1, 20, 32)
    same = row_call(device, image, ttsim.Tensor(weight[:, :, None], ttsim.bfloat16, device), padding=(4, 0), stride=2)
    assert np.array_equal(same.to_numpy(), result.to_numpy())


def test_rows_in_shards_must_have_four_axes_at_most(device):
    """Tensors of more axes are not reshaped, so conv2d refuses them where the shards stay."""
    shards = ttsim.create_sharded_memory_config((1, 1, 32, 32), ttsim.CoreGrid(x=1, y=1), ttsim.ShardStrategy.HEIGHT)
    rows = ttsim.zeros((1, 1, 1, 20, 32), ttsim.bfloat16, ttsim.TILE_LAYOUT, device, shards)
    with pytest.raises(ttsim.ArgumentError, match=r"^Expected 4D shape"):
        row_call(device, rows, ttsim.zeros((32, 32, 5)))


def test_rows_must_be_as_many_as_the_arguments_say(device):
    row, weight = ttsim.Tensor(np.zeros((1, 21, 32)), ttsim.bfloat16), ttsim.Tensor(np.zeros((32, 32, 5)))
    with pytest.raises(ttsim.DeviceError, match=r"shape \[1, 21, 32\] has not batch_size x input_length x in_channels"):
        row_call(device, row.to(device), weight)


@pytest.mark.parametrize(
    ("shape", "layout", "line"),
    [
        ((1, 10, 32), ttsim.ROW_MAJOR_LAYOUT, "MeshBuffer must be large enough to hold the tensor."),
        ((1, 10, 32), ttsim.TILE_LAYOUT, "Attempting to reshape between two shapes with different volumes"),
        ((), ttsim.ROW_MAJOR_LAYOUT, "Attempting to reshape between two shapes with different volumes"),
        ((1, 20, 16), ttsim.ROW_MAJOR_LAYOUT, "Attempting to reshape between two shapes with different volumes"),
        ((1, 0, 32), ttsim.TILE_LAYOUT, "Tensor volume is 0, but shape's volume is not"),
    ],
)
def test_rows_of_another_volume_are_refused_as_reshape_refuses_them(device, shape, layout, line):
    """Rows of as many channels are seen as images without a program."""
    with pytest.raises(ttsim.DeviceError, match=f"^{line}"):
        row_call(device, ttsim.zeros(shape, ttsim.bfloat16, layout, device), ttsim.zeros((32, 32, 5)))


def test_shards_must_hold_the_images_that_a_call_claims():
    """Two shards of 32 sticks where 196 x 16 are claimed: the real library's process ends."""
    with ttsim.open_device(strict=False) as device:
        shards = ttsim.zeros((1, 1, 64, 64), ttsim.bfloat16, ttsim.ROW_MAJOR_LAYOUT, device, place("height/32x64/2"))
        with pytest.raises(ttsim.NotSimulatedError, match="hold 64 sticks of the 3136 that"):
            ttsim.conv_transpose2d(
                input_tensor=shards, weight_tensor=ttsim.zeros((8, 16, 1, 2)), device=device, in_channels=8,
                out_channels=16, batch_size=1, input_height=196, input_width=16, kernel_size=(1, 2), stride=(3, 2),
                dilation=(2, 2), padding=(0, 0), output_padding=(0, 0))  # fmt: skip


def test_a_row_that_memory_does_not_hold_is_refused_before_slices_along_the_height(device):
    weight = ttsim.Tensor(np.zeros((32, 32, 5)))
    cut = ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceHeight, num_slices=1)
    for length, text in ((19, "MeshBuffer must be large enough"), (20, "Conv1D does not support DRAM_HEIGHT slicing")):
        row = ttsim.Tensor(np.zeros((1, length, 32)), ttsim.bfloat16).to(device)
        with pytest.raises(ttsim.DeviceError, match=f"^{text}"):
            row_call(device, row, weight, slice_config=cut)


def test_slices_that_are_refused_behind_a_fold_are_told(device):
    row, weight = ttsim.Tensor(np.zeros((1, 64, 1)), ttsim.bfloat16), ttsim.Tensor(np.zeros((32, 1, 4)), ttsim.bfloat16)
    two = ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceWidth, num_slices=2)
    folds = ttsim.Conv2dConfig(enable_kernel_stride_folding=True)
    sizes = {"in_channels": 1, "input_length": 64, "kernel_size": 4, "stride": 2}
    with pytest.raises(ttsim.DeviceError, match=r"^Number of slices \(2\) exceeds the maximum allowed \(1\)"):
        row_call(device, row.to(device, ttsim.DRAM_MEMORY_CONFIG), weight, slice_config=two, conv_config=folds, **sizes)


def arguments(device: ttsim.Device, **changed: Any) -> dict[str, Any]:
    """Those of a preparation for 8 x 8 pixels of 32 channels."""
    image = {"input_memory_config": L1, "input_layout": ttsim.TILE_LAYOUT, "input_dtype": ttsim.bfloat16}
    window = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    config = ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat16)
    return {**image, **conv_sizes(8, 8, 32, 16, 3, 3), **window, "device": device, "conv_config": config, **changed}


def weights(channels: int, kernel: int) -> ttsim.Tensor:
    values = np.random.default_rng(0).standard_normal((16, channels, kernel, kernel), dtype=np.float32)
    return ttsim.Tensor(values, ttsim.bfloat16)


def prepared(device: ttsim.Device, raw: ttsim.Tensor, **changed: Any) -> ttsim.Tensor:
    given = arguments(device, **changed)
    return ttsim.prepare_conv_weights(weight_tensor=raw, weights_format="OIHW", has_bias=False, **given)


def test_prepared_weights_and_bias_are_those_of_the_call(device: ttsim.Device) -> None:
    raw = weights(32, 3)
    bias = ttsim.Tensor(np.ones((1, 1, 1, 16), np.float32), ttsim.bfloat16)
    config, prepares = {"weights_dtype": ttsim.bfloat16}, {"return_weights_and_bias": True, "padding": (1, 1)}
    call = {"weight_tensor": raw, "bias_tensor": bias, "words": "l1 tile", "config": config, **prepares}
    _, (result, made_bias) = dense(device, (8, 8), (32, 16), (3, 3), **call)
    ahead = prepared(device, raw)
    assert ahead.spec == result.spec
    assert (ahead.padded_values() == result.padded_values()).all()
    ahead = ttsim.prepare_conv_bias(bias_tensor=bias, **arguments(device))
    assert ahead.spec == made_bias.spec


def test_shards_that_the_image_does_not_fit_are_asked_for_their_cores_and_their_width(device: ttsim.Device) -> None:
    """WIDTH shards of 512 rows for an image of 64, and more rows of BLOCK shards than it has."""
    for text in ("width/512x32/2", "block/32x32/4x2"):
        result = prepared(device, weights(64, 3), in_channels=64, input_memory_config=place(text))
        assert result.shape == [1, 1, 576, 16]


def test_a_bias_of_a_call_that_no_slices_fit_is_refused_as_the_call_is(off: ttsim.Device) -> None:
    bias = ttsim.Tensor(np.zeros((1, 1, 1, 64), np.float32), ttsim.bfloat16)
    config = ttsim.Conv2dConfig(weights_dtype=ttsim.float32, shard_layout=ttsim.TensorMemoryLayout.HEIGHT_SHARDED)
    image = {"input_memory_config": ttsim.DRAM_MEMORY_CONFIG, "input_layout": ttsim.ROW_MAJOR_LAYOUT}
    image |= {"in_channels": 1033, "out_channels": 64, "batch_size": 5, "input_height": 35, "input_width": 3}
    with pytest.raises(ttsim.OutOfMemoryError, match=r"^DRAM Auto slice could not find valid slice configuration"):
        ttsim.prepare_conv_bias(bias_tensor=bias, **arguments(off, **image, padding=(0, 0), conv_config=config))


def test_rows_of_block_floats_can_be_described(device: ttsim.Device) -> None:
    """The real library lays 40 channels of HEIGHT shards in rows out for 12 x 32 rows, in whatever format."""
    raw = ttsim.Tensor(np.ones((40, 64, 3, 3), np.float32), ttsim.float32)
    config = ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat8_b, shard_layout=ttsim.TensorMemoryLayout.HEIGHT_SHARDED)
    rows = {"input_layout": ttsim.ROW_MAJOR_LAYOUT, "input_dtype": ttsim.bfloat8_b, "conv_config": config}
    sizes = {"in_channels": 40, "out_channels": 64, "input_height": 16, "input_width": 16, "stride": (2, 2)}
    given = arguments(device, **rows, **sizes)
    output = ttsim.prepare_conv_transpose2d_weights(weight_tensor=raw, weights_format="IOHW", has_bias=True, **given)
    assert output.padded_shape == [1, 1, 384, 64]


def test_weights_of_three_axes_are_prepared_as_those_of_one_row(device: ttsim.Device) -> None:
    raw = np.arange(32 * 32 * 3, dtype=np.float32).reshape(32, 32, 3)
    call = {
        "weights_format": "OIHW", "has_bias": False, "device": device, "in_channels": 32, "out_channels": 32,
        "batch_size": 1, "input_height": 1, "input_width": 16, "kernel_size": (1, 3), "stride": (1, 1),
        "padding": (0, 0), "dilation": (1, 1), "groups": 1, "input_dtype": ttsim.bfloat16,
        "input_layout": ttsim.ROW_MAJOR_LAYOUT, "input_memory_config": ttsim.DRAM_MEMORY_CONFIG,
    }  # fmt: skip
    rows, images = (
        ttsim.prepare_conv_weights(weight_tensor=ttsim.from_numpy(weights, ttsim.bfloat16), **call)
        for weights in (raw, raw[:, :, None])
    )
    assert rows.shape == [1, 1, 96, 32]
    assert np.array_equal(rows.to_numpy(), images.to_numpy())


def test_weights_on_the_device_are_not_prepared_for_conv2d(device: ttsim.Device) -> None:
    with pytest.raises(ttsim.DeviceError, match=r"^Host conv weights should be placed on host\nweight_tensor: "):
        prepared(device, weights(32, 3).to(device))


def test_a_bias_on_the_device_is_not_prepared_for_conv2d(device: ttsim.Device) -> None:
    row = ttsim.ones((1, 1, 1, 16)).to(device)
    given = {name: value for name, value in arguments(device, stride=(0, 1)).items() if name != "has_bias"}
    with pytest.raises(ttsim.TTSimError, match=r"^conv bias should be placed on host\nbias_tensor: "):
        ttsim.prepare_conv_bias(bias_tensor=row, **given)
    with pytest.raises(ttsim.TTSimError, match=r"^stride must be greater than 0, got \(0, 1\)\n"):
        ttsim.prepare_conv_bias(bias_tensor=ttsim.ones((1, 1, 1, 16)), **given)
