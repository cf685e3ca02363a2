"""Formats, activations, widths of Dst, fidelities, shards and biases in equal numbers, against the rules in float64.

The numbers have so few bits, and so few of them meet, that Dst holds every product exactly in any fidelity. What is
left is what happens on the way out, which `packed` writes down once more: an activation, and the packer.
"""

from itertools import product

import numpy as np
import pytest

import ttsim
from tests.sizes import conv_sizes

SPECS = ("wormhole_n150", "blackhole_p150")
OUTPUTS = ("bfloat16", "bfloat8_b", "bfloat4_b", "float32")
ACTIVATIONS = {
    "none": (None, lambda values: values),
    "relu": (ttsim.UnaryWithParam(ttsim.UnaryOpType.RELU), lambda values: np.maximum(values, 0)),
    "relu6": (ttsim.UnaryWithParam(ttsim.UnaryOpType.RELU6), lambda values: np.clip(values, 0, 6)),
    "leaky_relu": (
        ttsim.UnaryWithParam(ttsim.UnaryOpType.LEAKY_RELU, 0.5),
        lambda values: np.where(values > 0, values, values / 2),
    ),
}
FIDELITIES = ("LoFi", "HiFi2", "HiFi3", "HiFi4")
SHARDS = ("HEIGHT_SHARDED", "BLOCK_SHARDED", "WIDTH_SHARDED")
PIXELS, CHANNELS = 8, 32
MAGNITUDES = {"bfloat8_b": 7, "bfloat4_b": 3}  # bits


def half_up(values):
    return np.sign(values) * np.floor(np.abs(values) + 0.5)


def binades(values):
    """The powers of two that are not larger; of zero the smallest."""
    return 2.0 ** (np.frexp(np.where(values == 0, 2.0**-99, values))[1] - 1)


def packed(values, dtype):
    """Numbers, sixteen neighbors a group, as the packer writes them to a format."""
    if dtype not in MAGNITUDES:
        return values  # eight bits are enough
    sevens = half_up(values / binades(values) * 64) * binades(values) / 64
    units, dropped = binades(sevens).max(axis=-1, keepdims=True) / 64, 2 ** (7 - MAGNITUDES[dtype])
    magnitudes = np.minimum(np.abs(half_up(sevens / units)), 127) // dropped * dropped
    return np.sign(sevens) * magnitudes * units


def numbers(seed):
    """One channel of every pixel, of three bits, and weights of four bits and many binades."""
    rng = np.random.default_rng(seed)
    pixels = np.zeros((1, 1, PIXELS, CHANNELS), np.float32)
    signs = rng.choice([-1, 1], PIXELS)
    pixels[0, 0, :, 0] = signs * rng.integers(4, 8, PIXELS) * 2.0 ** rng.integers(-3, 4, PIXELS)
    weights = np.zeros((CHANNELS, CHANNELS, 1, 2), np.float32)
    shape = (CHANNELS, 2)
    weights[0, :, 0] = rng.choice([-1, 1], shape) * rng.integers(8, 16, shape) * 2.0 ** rng.integers(-8, 1, shape)
    return pixels, weights


def expected(pixels, weights, dtype, activation, *, trips):
    """Rows of outputs; with trips, what becomes of sums that were packed before, by way of other K blocks or a bias."""
    sums = pixels[0, 0, :, 0][:, None, None] * weights[0, :, 0].T.astype(np.float64)  # [pixels, taps, channels]
    groups = sums.reshape(-1, CHANNELS // 16, 16)
    groups = packed(groups, dtype) if trips else groups
    return packed(ACTIVATIONS[activation][1](groups), dtype).reshape(-1, CHANNELS).tolist()


# Shards, width of Dst, bias. Every format and activation takes a sixth of these on each device in each arithmetic, and
# begins at another one, so that each format and activation meets all.
WAYS = list(product(SHARDS, (False, True), (False, True)))
RUNS = [(spec, values) for spec in SPECS for values in ("exact", "fast")]


def compute(device, fidelity, wide):
    return ttsim.init_device_compute_kernel_config(
        device.arch(), math_fidelity=getattr(ttsim.MathFidelity, fidelity), fp32_dest_acc_en=wide
    )


def tensor(values, device=None, **options):
    return ttsim.Tensor(values, ttsim.bfloat16, device, **options)


@pytest.mark.parametrize(("spec", "values"), RUNS)
@pytest.mark.parametrize("dtype", OUTPUTS)
def test_a_convolution(dtype, spec, values):
    with ttsim.open_device(spec=spec, l1_small_size=32768, values=values) as device:
        for number, activation in enumerate(ACTIVATIONS):
            first = (number + OUTPUTS.index(dtype) + RUNS.index((spec, values))) % 6
            for seed in range(first, len(WAYS), 6):
                shards, wide, bias = WAYS[seed]
                pixels, weights = numbers(seed)
                fidelity = FIDELITIES[(OUTPUTS.index(dtype) + number + seed + seed // 4) % len(FIDELITIES)]
                output = ttsim.conv_transpose2d(
                    input_tensor=tensor(pixels, device, mem_config=ttsim.L1_MEMORY_CONFIG),
                    weight_tensor=tensor(weights),
                    bias_tensor=tensor(np.zeros((1, 1, 1, CHANNELS))) if bias else None,
                    device=device,
                    **conv_sizes(1, PIXELS, CHANNELS, CHANNELS, 1, 2),
                    stride=(1, 2),
                    dtype=getattr(ttsim, dtype),
                    conv_config=ttsim.Conv2dConfig(
                        shard_layout=getattr(ttsim.TensorMemoryLayout, shards), activation=ACTIVATIONS[activation][0]
                    ),
                    compute_config=compute(device, fidelity, wide),
                )
                got = output.cpu().to_numpy()[0, 0].astype(float).tolist()
                trips = bias or shards == "BLOCK_SHARDED"  # whose cores have eight channels each: four K blocks
                want = expected(pixels, weights, dtype, activation, trips=trips)
                assert got == want, (activation, shards, wide, bias, fidelity)


@pytest.mark.parametrize(("spec", "values"), RUNS)
@pytest.mark.parametrize("dtype", OUTPUTS)
def test_linear_and_addition(dtype, spec, values):
    """The same sums by a matmul, whose ReLU is an operation of its own, and with zeros added, where it is fused."""
    relus = [ttsim.UnaryWithParam(ttsim.UnaryOpType.RELU)]
    with ttsim.open_device(spec=spec, values=values) as device:
        for seed, (relu, wide) in enumerate(product((False, True), (False, True))):
            fidelity = FIDELITIES[(seed + OUTPUTS.index(dtype) + RUNS.index((spec, values))) % len(FIDELITIES)]
            pixels, weights = numbers(seed)
            rows, columns = np.repeat(pixels[0, 0], 2, axis=0), weights[:, :, 0, 0]
            taps, name = np.repeat(weights[..., :1], 2, axis=3), "relu" if relu else "none"
            arrays = (rows, columns, np.zeros((2 * PIXELS, CHANNELS)))
            left, right, zeros = (tensor(array, device, layout=ttsim.TILE_LAYOUT) for array in arrays)
            out, config = getattr(ttsim, dtype), compute(device, fidelity, wide)
            activated = ttsim.linear(
                left, right, dtype=out, activation="relu" if relu else None, compute_kernel_config=config
            )
            sums = ttsim.linear(left, right, compute_kernel_config=config)
            added = ttsim.add(sums, zeros, dtype=out, activations=relus if relu else None)
            for result, trips in ((activated, True), (added, False)):
                want = expected(pixels, taps, dtype, name, trips=trips)
                assert result.to_numpy().astype(float).tolist() == want, (relu, wide, fidelity, trips)
