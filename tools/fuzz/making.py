"""Making a random call: as objects of ttsim, and as Python that can be pasted."""

from typing import Any

import ml_dtypes
import numpy as np

import ttsim
from device.numbers.formats import Array
from tools.fuzz.calls import Call

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
    return f"tools.fuzz.making.run({call!r}, ttsim.open_device(l1_small_size=32768, spec={call.device!r}))"


def _field(name: str, value: Any) -> Any:
    """A field of a config, of the name of an enum's member or of a constant."""
    if name in ENUMS:
        return getattr(getattr(ttsim, ENUMS[name]), value)
    if name == "math_fidelity":
        return ttsim.MathFidelity[value]
    return getattr(ttsim, value) if isinstance(value, str) else value
