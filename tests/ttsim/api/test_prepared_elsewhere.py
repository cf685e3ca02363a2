"""Section A4 of the review: weights prepared for one call and used in another."""

import numpy as np
import pytest

import ttsim
from tests.sizes import conv_sizes

IMAGE = np.random.default_rng(0).standard_normal((1, 1, 64, 64)).astype(np.float32)
KERNEL = np.random.default_rng(1).standard_normal((64, 32, 3, 3)).astype(np.float32)


@pytest.fixture(params=[True, False], ids=["strict", "lenient"])
def device(request):
    with ttsim.open_device(l1_small_size=32768, values="fast", strict=request.param) as opened:
        yield opened


def call(device, scheme, weights=None, *, cores=None, kernel=(3, 3), channels=64, **more):
    sharding = getattr(ttsim.TensorMemoryLayout, f"{scheme}_SHARDED")
    grid = {} if cores is None else {"override_sharding_config": True, "core_grid": ttsim.CoreRangeSet(cores)}
    output, (prepared, _) = ttsim.conv_transpose2d(
        input_tensor=ttsim.Tensor(IMAGE[..., :channels], ttsim.bfloat16).to(device),
        weight_tensor=ttsim.Tensor(KERNEL[:channels, :, : kernel[0], : kernel[1]], ttsim.bfloat16)
        if weights is None
        else weights,
        device=device,
        **conv_sizes(8, 8, channels, 32, *kernel),
        stride=(2, 2),
        padding=(1, 1) if kernel == (3, 3) else (0, 0),
        conv_config=ttsim.Conv2dConfig(shard_layout=sharding, **grid),
        dram_slice_config=ttsim.Conv2dL1FullSliceConfig,
        return_weights_and_bias=True,
        **more,
    )
    return output.to_numpy(), prepared


@pytest.mark.parametrize(("first", "second"), [("HEIGHT", "WIDTH"), ("WIDTH", "HEIGHT"), ("BLOCK", "BLOCK")])
def test_pairs_of_one_matrix_compute_the_same(device, first, second):
    _, prepared = call(device, first)
    wanted, _ = call(device, second)
    assert np.array_equal(call(device, second, prepared)[0], wanted)
    moved = prepared.cpu().to(device)
    assert np.array_equal(call(device, second, moved)[0], wanted)
    assert np.array_equal(call(device, second, ttsim.to_memory_config(moved, ttsim.L1_MEMORY_CONFIG))[0], wanted)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"scheme": "BLOCK"}, {"scheme": "HEIGHT"}),
        ({"scheme": "HEIGHT"}, {"scheme": "BLOCK"}),
        ({"scheme": "BLOCK"}, {"scheme": "BLOCK", "cores": [((0, 0), (0, 1))]}),
        ({"scheme": "BLOCK", "cores": [((0, 0), (0, 1))]}, {"scheme": "BLOCK"}),
        ({"scheme": "HEIGHT"}, {"scheme": "HEIGHT", "channels": 32}),
        ({"scheme": "HEIGHT", "channels": 32}, {"scheme": "HEIGHT"}),
        ({"scheme": "HEIGHT", "kernel": (2, 2)}, {"scheme": "HEIGHT", "kernel": (3, 1)}),
    ],
)
def test_strict_refuses_others_and_lenient_reads_what_lies_there(device, first, second):
    result, used = ({**one, "cores": cores(one)} for one in (first, second))
    _, prepared = call(device, **result)
    if not device.strict:
        output, _ = call(device, weights=prepared, **used)
        assert not np.allclose(output, call(device, **used)[0], atol=0.1)
        return
    with pytest.raises(ttsim.ArgumentError, match=r"weight_tensor: prepared for .* used for .*pass it raw on the host"):
        call(device, weights=prepared, **used)


def cores(made):
    return [ttsim.CoreRange(*(ttsim.CoreCoord(*end) for end in ends)) for ends in made.get("cores") or ()] or None


def test_width_and_channels_end_with_the_words_of_the_real_library(device):
    _, prepared = call(device, "BLOCK")
    with pytest.raises(ttsim.DeviceError, match=r"^The width of tensor a needs to match the height of tensor b"):
        call(device, "WIDTH", prepared)


def test_a_program_that_was_cached_reads_only_weights_of_its_size(device):
    _, prepared = call(device, "BLOCK")
    call(device, "WIDTH")
    with pytest.raises(ttsim.DeviceError, match=r"^The width of tensor a needs to match the height of tensor b"):
        call(device, "WIDTH", prepared)


def test_an_output_padding_may_change_the_scheme_that_weights_were_prepared_for(device):
    """prepare_conv_transpose2d_weights plans without the output padding; here that makes WIDTH of BLOCK."""
    rng = np.random.default_rng(2)
    image, kernel = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 1, 32, 2048), (2048, 32, 2, 2)))
    geometry = {
        "device": device,
        **conv_sizes(4, 8, 2048, 32, 2, 2),
        "stride": (2, 2),
        "padding": (0, 0),
        "dilation": (1, 1),
        "groups": 1,
        "conv_config": ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat16),
        "dram_slice_config": ttsim.Conv2dL1FullSliceConfig,
    }
    raw = ttsim.Tensor(kernel, ttsim.bfloat16)
    prepared = ttsim.prepare_conv_transpose2d_weights(
        weight_tensor=raw,
        weights_format="IOHW",
        has_bias=False,
        input_dtype=ttsim.bfloat16,
        input_memory_config=ttsim.DRAM_MEMORY_CONFIG,
        input_layout=ttsim.ROW_MAJOR_LAYOUT,
        **geometry,
    )

    def used(weights, output_padding):
        pixels = ttsim.Tensor(image, ttsim.bfloat16).to(device)
        return ttsim.conv_transpose2d(
            input_tensor=pixels, weight_tensor=weights, output_padding=output_padding, **geometry
        ).to_numpy()

    assert np.array_equal(used(prepared, (0, 0)), used(raw, (0, 0)))
    if device.strict:
        with pytest.raises(ttsim.ArgumentError, match=r"prepared for .* WIDTH_SHARDED .* used for .* BLOCK_SHARDED"):
            used(prepared, (1, 1))
    else:
        assert np.corrcoef(used(prepared, (1, 1)).ravel(), used(raw, (1, 1)).ravel())[0, 1] < 0.5
