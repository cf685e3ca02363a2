import numpy as np
import pytest

import ttsim as ttnn
from device.errors import ArgumentError
from device.memory.memory_config import BufferType


def opened(**options):
    return ttnn.open_device(l1_small_size=32768, **{"values": "fast", **options})


def numbers(*shape, dtype=ttnn.bfloat16, seed=0, layout=None):
    values = np.random.default_rng((seed, *shape)).integers(-3, 4, shape).astype(np.float32)
    return ttnn.Tensor(values, dtype, None, layout)


def arguments(
    size=(5, 6), kernel=(3, 3), stride=(2, 2), *, batch=2, channels=(32, 32), groups=1, dtype=ttnn.bfloat16, **more
):
    return {
        "input_tensor": numbers(1, 1, batch * size[0] * size[1], channels[0], dtype=dtype),
        "weight_tensor": numbers(channels[0], channels[1] // groups, *kernel, dtype=dtype, seed=1),
        "in_channels": channels[0], "out_channels": channels[1], "batch_size": batch, "groups": groups,
        "input_height": size[0], "input_width": size[1], "kernel_size": kernel, "stride": stride,
        "dtype": ttnn.float32,
    } | more  # fmt: skip


def bias(channels=32, dtype=ttnn.bfloat16):
    return numbers(1, 1, 1, channels, dtype=dtype, seed=2)


def both(device, **call):
    frame = ttnn.conv_transpose2d(device=device, **call)
    phase = ttnn.conv_transpose2d(device=device, lowering="phase", **call)
    return frame.to_numpy(), phase.to_numpy()


EXACT_SUMS = ttnn.WormholeComputeKernelConfig(
    math_fidelity=ttnn.MathFidelity.HiFi4, fp32_dest_acc_en=True, packer_l1_acc=True
)

GEOMETRIES = {
    "stride 1": {"stride": (1, 1), "padding": (1, 1)},
    "stride 2": {"padding": (1, 1), "output_padding": (1, 1)},
    "stride 3": {"stride": (3, 3), "kernel": (3, 3)},
    "strides differ": {"stride": (2, 3), "kernel": (4, 3), "padding": (1, 0)},
    "kernel smaller than stride": {"stride": (3, 2), "kernel": (2, 1)},
    "dilation": {"dilation": (2, 1), "padding": (2, 1)},
    "dilation of the stride": {"dilation": (2, 2), "kernel": (2, 3)},
    "four paddings": {"kernel": (4, 4), "padding": (0, 1, 2, 1)},
    "groups": {"groups": 2, "channels": (64, 64)},
    "channels that fill no tile": {"channels": (16, 40)},
    "one by one": {"kernel": (1, 1), "stride": (1, 1)},
}


def agree(call, place=None, strict=True):
    """Whether both lowerings give the same numbers."""
    with opened(strict=strict) as device:
        if place is not None:
            call["input_tensor"] = call["input_tensor"].to(ttnn.TILE_LAYOUT).to(device, place)
        frame, phase = both(device, **call)
    assert np.array_equal(phase, frame)
    assert phase.shape == frame.shape


OTHERS = {
    "with a bias": {"bias_tensor": bias()},
    "a kernel that was flipped already": {"mirror_kernel": False},
    "weights that are converted": {
        "weight_tensor": numbers(32, 32, 3, 3, dtype=ttnn.float32),
        "conv_config": ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat16),
    },
}


@pytest.mark.parametrize("changes", [*GEOMETRIES.values(), *OTHERS.values()], ids=[*GEOMETRIES, *OTHERS])
def test_both_lowerings_agree_on_integers(changes):
    given = {name: changes[name] for name in ("size", "kernel", "stride", "channels", "groups") if name in changes}
    rest = {name: value for name, value in changes.items() if name not in given}
    agree(arguments(**given, compute_config=EXACT_SUMS) | rest)


def test_only_what_is_asked_for_stays():
    call = arguments(bias_tensor=bias())
    with opened() as device:
        source = call["input_tensor"].to(ttnn.TILE_LAYOUT).to(device, ttnn.L1_MEMORY_CONFIG)
        call["input_tensor"] = source
        config = ttnn.Conv2dConfig(deallocate_activation=True)
        output = ttnn.conv_transpose2d(device=device, lowering="phase", conv_config=config, **call)
        assert not source.is_allocated()
        left = [buffer for buffer in device.machine.memory.live() if buffer.spec.buffer_type is not BufferType.L1_SMALL]
        assert [buffer.address for buffer in left] == [output.buffer_address()]


@pytest.mark.parametrize(
    ("name", "changes", "text"),
    [
        ("phase", {"conv_config": {"padding_mode": ttnn.PaddingMode.Replicate}}, r'lowering="phase".*\bpadding_mode\b'),
        ("phase", {"conv_config": {"enable_activation_reuse": True}}, r'lowering="phase".*\benable_activation_reuse\b'),
        ("phase", {"conv_config": {"force_split_reader": True}}, r'lowering="phase".*\bforce_split_reader\b'),
        ("phase", {"weight_tensor": numbers(32, 32, 2, 3)}, "weight_tensor must have the shape"),
        ("phase", {"stride": (0, 1)}, "stride must be greater than 0"),
        ("phase", {"padding": (3, 3)}, "padding must not exceed"),
        ("phases", {}, "zero_insertion, phase, grouped, samples, not 'phases'"),
    ],
)
def test_what_is_refused_on_any_device(name, changes, text):
    if "conv_config" in changes:
        changes = {"conv_config": ttnn.Conv2dConfig(**changes["conv_config"])}
    with opened(strict=False) as device, pytest.raises(ArgumentError, match=text):
        ttnn.conv_transpose2d(device=device, lowering=name, **arguments() | changes)


def test_the_former_name_of_zero_insertion_is_accepted_with_a_warning():
    with opened() as device:
        expected = ttnn.conv_transpose2d(device=device, **arguments())
        with pytest.warns(FutureWarning, match='conv_transpose2d: lowering="frame" is now called "zero_insertion"'):
            result = ttnn.conv_transpose2d(device=device, lowering="frame", **arguments())
        assert np.array_equal(result.to_numpy(), expected.to_numpy())


def prepared(device, lowering="phase", **call):
    given = {"device": device, "lowering": lowering, "return_weights_and_bias": True}
    return ttnn.conv_transpose2d(**given, **call)[1][0]


def test_weights_that_were_prepared_for_another_program_are_refused():
    schemes = (ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.TensorMemoryLayout.BLOCK_SHARDED)
    first, second = ({"conv_config": ttnn.Conv2dConfig(shard_layout=scheme)} for scheme in schemes)
    call, ours = arguments((16, 16), channels=(128, 128)), 'lowering="phase": weight_tensor is on the device'
    with opened(strict=False) as device:
        for result, used in (
            (prepared(device, **call, **first), second),
            (prepared(device, "zero_insertion", **call), {}),
        ):
            with pytest.raises(ArgumentError, match=ours):
                prepared(device, **call | {"weight_tensor": result} | used)
    with opened() as device:
        by_phase = prepared(device, **arguments())
        with pytest.raises(ArgumentError, match="weight_tensor: prepared for another program"):
            prepared(device, "zero_insertion", **arguments() | {"weight_tensor": by_phase})


SCHEMES = ("HEIGHT_SHARDED", "BLOCK_SHARDED", "WIDTH_SHARDED")


@pytest.mark.parametrize(
    ("scheme", "geometry"),
    [
        *zip(SCHEMES * 4, GEOMETRIES, strict=False),
        *((scheme, "strides differ") for scheme in SCHEMES[:2]),
        ("WIDTH_SHARDED", "groups"),
    ],
)
def test_every_scheme_agrees_with_the_frame_on_integers(scheme, geometry):
    config = ttnn.Conv2dConfig(shard_layout=getattr(ttnn.TensorMemoryLayout, scheme), act_block_h_override=32)
    call = arguments((7, 9), **GEOMETRIES[geometry], compute_config=EXACT_SUMS, conv_config=config)
    agree(call | {"bias_tensor": bias(call["out_channels"])}, place=ttnn.L1_MEMORY_CONFIG)


@pytest.mark.parametrize(
    ("cut", "geometry"),
    [
        ("Height", "stride 2"),
        ("Width", "strides differ"),
        ("Height", "kernel smaller than stride"),
        ("Width", "stride 2"),
    ],
)
def test_slices_agree_with_the_frame_on_integers(cut, geometry):
    slices = ttnn.Conv2dSliceConfig(slice_type=getattr(ttnn, f"Conv2dDRAMSlice{cut}"), num_slices=3)
    more = {"compute_config": EXACT_SUMS, "batch": 1, "dram_slice_config": slices}
    agree(arguments((12, 64), **GEOMETRIES[geometry], **more), strict=False)


def test_weights_that_were_prepared_once_serve_again():
    call = arguments((8, 8), bias_tensor=bias(), return_weights_and_bias=True)
    with opened() as device:
        first, (weight, row) = ttnn.conv_transpose2d(device=device, lowering="phase", **call)
        again = call | {"weight_tensor": weight, "bias_tensor": row}
        second, _ = ttnn.conv_transpose2d(device=device, lowering="phase", **again)
        assert np.array_equal(first.to_numpy(), second.to_numpy())
