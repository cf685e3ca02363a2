"""Random calls of the convolutions, as the arguments that a user would write down."""

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import ttsim
from device.numbers.formats import Array

DEVICES = ("wormhole_n150", "blackhole_p150")
DTYPES = ("bfloat16", "bfloat16", "float32", "bfloat8_b")
SCHEMES = (None, None, "HEIGHT_SHARDED", "BLOCK_SHARDED", "WIDTH_SHARDED")
PLACES = ("host", "DRAM_MEMORY_CONFIG", "L1_MEMORY_CONFIG")
CHANNELS = (1, 3, 16, 24, 32, 33, 64, 96, 128)
MOST_PRODUCTS = 40_000_000  # multiplications of a call, so that its definition takes well under a second


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One random call.

    Attributes:
        function: "conv_transpose2d" or "conv2d".
        device: Name of the device.
        sizes: The keyword arguments that are numbers, as the function takes them.
        input_dtype: Name of the data type of the input.
        weights_dtype: Of weights and bias on the host.
        place: "host", or the name of the memory config that the input lies in.
        tiles: The input is in tiles.
        flat: The input is [1, 1, N*H*W, C]; otherwise [N, H, W, C].
        bias: There is a bias.
        config: Fields of the Conv2dConfig that are not the default's, by name; enums by the names of their members.
        slices: (kind, number) of a Conv2dSliceConfig; None without.
        compute: Fields of the compute kernel config; empty for the library's default.
        seed: Of the numbers.
    """

    function: str
    device: str
    sizes: dict[str, Any]
    input_dtype: str
    weights_dtype: str
    place: str
    tiles: bool
    flat: bool
    bias: bool
    config: dict[str, Any] = field(default_factory=dict)
    slices: tuple[str, int] | None = None
    compute: dict[str, Any] = field(default_factory=dict)
    seed: int = 0


def draw(seed: int, index: int) -> Call:
    """The call of a seed and an index: always the same."""
    rng = np.random.default_rng([seed, index])
    while True:
        call = _drawn(rng)
        if _products(call) <= MOST_PRODUCTS:
            return call


def _drawn(rng: np.random.Generator) -> Call:
    transposed = rng.random() < 0.75
    kernel = _pair(rng, 1, 5)
    groups = int(rng.choice([1, 1, 1, 1, 2]))
    channels = [groups * int(rng.choice(CHANNELS)) for _ in range(2)]
    stride, dilation = _pair(rng, 1, 4), (1, 1) if rng.random() < 0.8 else _pair(rng, 1, 3)
    most = [step * (taps - 1) for step, taps in zip(dilation, kernel, strict=True)]
    sizes: dict[str, Any] = {
        "in_channels": channels[0],
        "out_channels": channels[1],
        "batch_size": int(rng.integers(1, 4)),
        "input_height": int(rng.integers(1, 33)),
        "input_width": int(rng.integers(1, 33)),
        "kernel_size": kernel,
        "stride": stride,
        "padding": tuple(int(rng.integers(0, limit + 1)) for limit in most),
        "dilation": dilation,
        "groups": groups,
    }
    if transposed and rng.random() < 0.2:
        sizes["output_padding"] = tuple(int(rng.integers(0, step)) for step in stride)
    place = str(rng.choice(PLACES))
    return Call(
        function="conv_transpose2d" if transposed else "conv2d",
        device=str(rng.choice(DEVICES)),
        sizes=sizes,
        input_dtype=str(rng.choice(DTYPES[:3])),
        weights_dtype=str(rng.choice(DTYPES[:3])),
        place=place,
        tiles=bool(rng.random() < 0.4),
        flat=bool(rng.random() < 0.8),
        bias=bool(rng.random() < 0.5),
        config=_config(rng),
        slices=_slices(rng) if place != "L1_MEMORY_CONFIG" else None,
        compute=_compute(rng),
        seed=int(rng.integers(1 << 31)),
    )


def _pair(rng: np.random.Generator, least: int, most: int) -> tuple[int, int]:
    """Two numbers, more often the same."""
    first = int(rng.integers(least, most))
    return (first, first) if rng.random() < 0.7 else (first, int(rng.integers(least, most)))


def _config(rng: np.random.Generator) -> dict[str, Any]:
    drawn: dict[str, Any] = {
        "weights_dtype": str(rng.choice(DTYPES)),
        "shard_layout": rng.choice(np.array(SCHEMES, object)),
        "output_layout": "ROW_MAJOR_LAYOUT",
        "act_block_h_override": 32 * int(rng.integers(1, 4)),
        "deallocate_activation": True,
        "reallocate_halo_output": False,
        "enable_act_double_buffer": True,
        "enable_weights_double_buffer": True,
        "config_tensors_in_dram": True,
        "transpose_shards": True,
        "act_block_w_div": 2,
        "full_inner_dim": True,
        "reshard_if_not_optimal": True,
        "padding_mode": "Replicate",
    }
    often = {"weights_dtype": 0.4, "shard_layout": 0.7, "output_layout": 0.3}
    kept = {name: value for name, value in drawn.items() if rng.random() < often.get(name, 0.06)}
    return {name: value for name, value in kept.items() if value is not None}


def _slices(rng: np.random.Generator) -> tuple[str, int] | None:
    if rng.random() < 0.6:
        return None
    return str(rng.choice(["Conv2dDRAMSliceHeight", "Conv2dDRAMSliceWidth"])), int(rng.integers(1, 6))


def _compute(rng: np.random.Generator) -> dict[str, Any]:
    if rng.random() < 0.4:
        return {}
    return {
        "math_fidelity": str(rng.choice(["LoFi", "HiFi2", "HiFi3", "HiFi4"])),
        "fp32_dest_acc_en": bool(rng.random() < 0.5),
        "packer_l1_acc": bool(rng.random() < 0.5),
    }


def _products(call: Call) -> int:
    """Multiplications of the definition."""
    sizes = call.sizes
    pixels = sizes["batch_size"] * sizes["input_height"] * sizes["input_width"]
    taps = sizes["kernel_size"][0] * sizes["kernel_size"][1]
    return int(pixels * sizes["in_channels"] * sizes["out_channels"] // sizes["groups"] * taps)


ENUMS = {"shard_layout": "TensorMemoryLayout", "padding_mode": "PaddingMode"}
NUMPY = {"bfloat16": ml_dtypes.bfloat16, "float32": np.float32}


def operands(call: Call) -> tuple[Array, Array, Array]:
    """Input [N, H, W, C], weights [C or O, O or C / groups, kh, kw] and bias [1, 1, 1, O], as their types hold them."""
    rng, sizes = np.random.default_rng(call.seed), call.sizes
    shape = (sizes["batch_size"], sizes["input_height"], sizes["input_width"], sizes["in_channels"])
    first, second = sizes["in_channels"], sizes["out_channels"]
    if call.function == "conv2d":
        first, second = second, first
    image, weights, bias = (
        rng.standard_normal(one).astype(np.float32)
        for one in (shape, (first, second // sizes["groups"], *sizes["kernel_size"]), (1, 1, 1, sizes["out_channels"]))
    )
    held = NUMPY[call.weights_dtype]
    return image.astype(NUMPY[call.input_dtype]), weights.astype(held), bias.astype(held)


def arguments(call: Call, device: ttsim.Device) -> dict[str, Any]:
    """Keyword arguments of the call on a device; an input that lies there is put there now."""
    image, weights, bias = operands(call)
    layout = ttsim.TILE_LAYOUT if call.tiles else ttsim.ROW_MAJOR_LAYOUT
    shape = (1, 1, -1, image.shape[-1]) if call.flat else image.shape
    source = ttsim.Tensor(image.astype(np.float32).reshape(shape), getattr(ttsim, call.input_dtype), layout=layout)
    if call.place != "host":
        source = source.to(device, getattr(ttsim, call.place))
    held = getattr(ttsim, call.weights_dtype)
    made: dict[str, Any] = {"input_tensor": source, "weight_tensor": ttsim.Tensor(weights.astype(np.float32), held)}
    if call.bias:
        made["bias_tensor"] = ttsim.Tensor(bias.astype(np.float32), held)
    if call.config:
        made["conv_config"] = ttsim.Conv2dConfig(**{name: _field(name, one) for name, one in call.config.items()})
    if call.slices is not None:
        kind, number = call.slices
        name = "dram_slice_config" if call.function == "conv_transpose2d" else "slice_config"
        made[name] = ttsim.Conv2dSliceConfig(slice_type=getattr(ttsim, kind), num_slices=number)
    if call.compute:
        chosen = {name: _field(name, one) for name, one in call.compute.items()}
        made["compute_config"] = ttsim.WormholeComputeKernelConfig(**chosen)
    return {**made, **call.sizes, "device": device}


def run(call: Call, device: ttsim.Device) -> ttsim.Tensor:
    """The output of the call."""
    function = ttsim.conv_transpose2d if call.function == "conv_transpose2d" else ttsim.conv2d
    output: ttsim.Tensor = function(**arguments(call, device))
    return output


def pasteable(call: Call) -> str:
    """Python that makes the call again."""
    return f"tools.fuzz.calls.run({call!r}, ttsim.open_device(l1_small_size=32768, spec={call.device!r}))"


def _field(name: str, value: Any) -> Any:
    """A field of a config, of the name of an enum's member or of a constant."""
    if name in ENUMS:
        return getattr(getattr(ttsim, ENUMS[name]), value)
    if name == "math_fidelity":
        return ttsim.MathFidelity[value]
    return getattr(ttsim, value) if isinstance(value, str) else value
