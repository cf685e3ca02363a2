import numpy as np
import pytest

import ttsim as ttnn
from device.errors import ArgumentError


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


@pytest.mark.parametrize("geometry", GEOMETRIES.values(), ids=GEOMETRIES)
@pytest.mark.parametrize("biased", [False, True], ids=["plain", "biased"])
def test_both_lowerings_agree_on_integers(geometry, biased):
    call = arguments(**geometry, compute_config=EXACT_SUMS)
    if biased:
        call["bias_tensor"] = bias(call["out_channels"])
    with opened() as device:
        frame, phase = both(device, **call)
    assert phase.shape == frame.shape
    assert np.array_equal(phase, frame)


@pytest.mark.parametrize("spec", ["wormhole_n150", "blackhole_p150"])
@pytest.mark.parametrize("dtype", [ttnn.bfloat16, ttnn.float32])
def test_exact_values_are_those_of_the_fast_ones(spec, dtype):
    call = arguments((3, 3), batch=1, dtype=dtype, compute_config=EXACT_SUMS, bias_tensor=bias(dtype=dtype))
    results = []
    for values in ("exact", "fast"):
        with opened(values=values, spec=spec) as device:
            results += both(device, **call)
    assert all(np.array_equal(one, results[0]) for one in results)


@pytest.mark.parametrize("fidelity", ["LoFi", "HiFi2", "HiFi3", "HiFi4"])
@pytest.mark.parametrize("dtype", [ttnn.bfloat16, ttnn.float32])
def test_the_fidelity_is_that_of_the_call(fidelity, dtype):
    config = ttnn.WormholeComputeKernelConfig(
        math_fidelity=getattr(ttnn.MathFidelity, fidelity), fp32_dest_acc_en=True, packer_l1_acc=True
    )
    call = arguments((3, 3), batch=1, dtype=dtype, compute_config=config)
    for name in ("input_tensor", "weight_tensor"):
        call[name] = ttnn.Tensor(np.random.default_rng(4).normal(size=call[name].shape).astype(np.float32), dtype)
    results = []
    for values in ("exact", "fast"):
        with opened(values=values) as device:
            results += both(device, **call)
    for one in results[1:]:
        np.testing.assert_allclose(one, results[0], rtol=0, atol=0.04)


PLACES = {
    "rows in DRAM": (ttnn.ROW_MAJOR_LAYOUT, ttnn.DRAM_MEMORY_CONFIG),
    "tiles in DRAM": (ttnn.TILE_LAYOUT, ttnn.DRAM_MEMORY_CONFIG),
    "rows in L1": (ttnn.ROW_MAJOR_LAYOUT, ttnn.L1_MEMORY_CONFIG),
    "tiles in L1": (ttnn.TILE_LAYOUT, ttnn.L1_MEMORY_CONFIG),
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("image", [False, True], ids=["flat", "image"])
def test_inputs_on_the_device(place, image):
    layout, memory = place
    call = arguments(compute_config=EXACT_SUMS)
    source = call["input_tensor"].reshape(2, 5, 6, 32) if image else call["input_tensor"]
    with opened() as device:
        host = ttnn.conv_transpose2d(device=device, lowering="phase", **call).to_numpy()
        call["input_tensor"] = source.to(layout).to(device, memory)
        made = ttnn.conv_transpose2d(device=device, lowering="phase", **call)
        assert np.array_equal(made.to_numpy(), host)
        assert call["input_tensor"].is_allocated()


def test_a_sharded_input_comes_from_an_earlier_call():
    with opened() as device:
        first = arguments((8, 8), kernel=(2, 2), batch=1) | {"dtype": ttnn.bfloat16}
        first["input_tensor"] = first["input_tensor"].to(device, ttnn.L1_MEMORY_CONFIG)
        made = ttnn.conv_transpose2d(device=device, **first)
        assert made.is_sharded()
        call = arguments((16, 16), kernel=(2, 2), batch=1, compute_config=EXACT_SUMS, input_tensor=made)
        frame, phase = both(device, **call)
    assert np.array_equal(frame, phase)


def test_only_what_is_asked_for_stays():
    call = arguments(bias_tensor=bias())
    with opened() as device:
        source = call["input_tensor"].to(ttnn.TILE_LAYOUT).to(device, ttnn.L1_MEMORY_CONFIG)
        call["input_tensor"] = source
        config = ttnn.Conv2dConfig(deallocate_activation=True)
        made = ttnn.conv_transpose2d(device=device, lowering="phase", conv_config=config, **call)
        assert not source.is_allocated()
        assert [one.address for one in device.machine.memory.live()] == [made.buffer_address()]


@pytest.mark.parametrize("layout", [ttnn.TILE_LAYOUT, ttnn.ROW_MAJOR_LAYOUT])
@pytest.mark.parametrize("memory", [None, ttnn.DRAM_MEMORY_CONFIG, ttnn.L1_MEMORY_CONFIG])
@pytest.mark.parametrize("dtype", [None, ttnn.bfloat16, ttnn.float32])
def test_the_output_is_as_asked_for(layout, memory, dtype):
    call = arguments(memory_config=memory, conv_config=ttnn.Conv2dConfig(output_layout=layout))
    call["dtype"] = dtype
    with opened() as device:
        made, size = ttnn.conv_transpose2d(device=device, lowering="phase", return_output_dim=True, **call)
        assert size == (11, 13)
        assert made.shape == [1, 1, 2 * 11 * 13, 32]
        assert made.layout is layout
        assert made.dtype is (dtype or ttnn.bfloat16)
        assert made.memory_config() == (memory or ttnn.DRAM_MEMORY_CONFIG)


def test_a_kernel_that_was_flipped_already():
    call = arguments(mirror_kernel=False, compute_config=EXACT_SUMS)
    with opened() as device:
        frame, phase = both(device, **call)
    assert np.array_equal(frame, phase)


def test_weights_are_converted():
    call = arguments(compute_config=EXACT_SUMS, conv_config=ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat16))
    call["weight_tensor"] = numbers(32, 32, 3, 3, dtype=ttnn.float32)
    with opened() as device:
        frame, phase = both(device, **call)
    assert np.array_equal(frame, phase)


def sharded():
    cores = ttnn.CoreRangeSet({ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 0))})
    shards = ttnn.ShardSpec(cores, (128, 32), ttnn.ShardOrientation.ROW_MAJOR)
    return ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, shards)


REFUSED = {
    "shard_layout": lambda _: {"conv_config": ttnn.Conv2dConfig(shard_layout=ttnn.TensorMemoryLayout.HEIGHT_SHARDED)},
    "act_block_h_override": lambda _: {"conv_config": ttnn.Conv2dConfig(act_block_h_override=32)},
    "activation": lambda _: {"conv_config": ttnn.Conv2dConfig(activation=ttnn.UnaryOpType.RELU)},
    "padding_mode": lambda _: {"conv_config": ttnn.Conv2dConfig(padding_mode="Replicate")},
    "weights_dtype": lambda _: {"conv_config": ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat8_b)},
    "dtype": lambda _: {"dtype": ttnn.bfloat8_b},
    "input_tensor": lambda _: {"input_tensor": numbers(1, 1, 60, 32, dtype=ttnn.bfloat8_b)},
    "dram_slice_config": lambda _: {
        "dram_slice_config": ttnn.Conv2dSliceConfig(slice_type=ttnn.Conv2dDRAMSliceHeight, num_slices=2)
    },
    "memory_config": lambda _: {"memory_config": sharded()},
    "return_weights_and_bias": lambda _: {"return_weights_and_bias": True},
    "weight_tensor": lambda device: {
        "weight_tensor": ttnn.conv_transpose2d(device=device, return_weights_and_bias=True, **arguments())[1][0]
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named(name):
    with opened() as device:
        call = arguments() | REFUSED[name](device)
        with pytest.raises(ArgumentError, match=rf'lowering="phase".*\b{name}\b'):
            ttnn.conv_transpose2d(device=device, lowering="phase", **call)


def test_an_unknown_lowering():
    with opened() as device, pytest.raises(ArgumentError, match="frame, phase, not 'phases'"):
        ttnn.conv_transpose2d(device=device, lowering="phases", **arguments())


def test_the_checks_of_the_frame_lowering_hold():
    with opened(strict=False) as device:
        with pytest.raises(ArgumentError, match="weight_tensor must have the shape"):
            ttnn.conv_transpose2d(
                device=device, lowering="phase", **arguments() | {"weight_tensor": numbers(32, 32, 2, 3)}
            )
        with pytest.raises(ArgumentError, match="stride must be greater than 0"):
            ttnn.conv_transpose2d(device=device, lowering="phase", **arguments(stride=(0, 1)))


def test_a_profile_shows_what_zeros_cost():
    call = arguments((16, 16), kernel=(4, 4), padding=(1, 1), batch=1, channels=(64, 64))
    with opened(values="off") as device, ttnn.profile(device) as profiled:
        frame = ttnn.conv_transpose2d(device=device, **call)
        phase = ttnn.conv_transpose2d(device=device, lowering="phase", **call)
        assert phase.shape == frame.shape
        estimate = ttnn.estimate_cycles(ttnn.conv_transpose2d, device=device, lowering="phase", **call)
    first, second = profiled.report().calls
    assert second.name == "ttsim.conv_transpose2d"
    assert second.total.math.useful_flops == first.total.math.useful_flops
    assert second.total.math.issued_flops < first.total.math.issued_flops / 2
    assert not second.untimed
    assert estimate.cycles == pytest.approx(second.total.cycles)


@pytest.mark.parametrize("mode", [ttnn.graph.RunMode.NORMAL, ttnn.graph.RunMode.NO_DISPATCH])
def test_a_capture_sees_every_phase(mode):
    with opened() as device:
        ttnn.graph.begin_graph_capture(mode)
        ttnn.conv_transpose2d(device=device, lowering="phase", **arguments())
        nodes = ttnn.graph.end_graph_capture()
    names = [node["params"].get("name") for node in nodes if node["node_type"] == "function_start"]
    assert names[0] == "ttsim.conv_transpose2d"
    assert names.count("PatchMatmulDeviceOperation") == 4
