"""A layer as Python that can be pasted: a script that makes the same call."""

from collections.abc import Mapping
from typing import Any, Final

from ttsim.recording.changes import arguments_source
from ttsim.types.layer import Layer

TENSORS: Final = ("input_tensor", "weight_tensor", "bias_tensor")
MEMORY: Final = {"dram": "ttnn.DRAM_MEMORY_CONFIG", "l1": "ttnn.L1_MEMORY_CONFIG"}


def layer_source(layer: Layer, arguments: Mapping[str, Any]) -> str:
    """The script; its tensors are zeros, and ``device`` is a device that it finds open.

    Args:
        arguments: Of its call, by name.
    """
    tensors = {name: arguments[name] for name in TENSORS if arguments[name] is not None}
    lines = ["import numpy as np", "import ttsim as ttnn", ""]
    for name, tensor in tensors.items():
        kind = tensor.dtype.name.lower()
        layout = f", layout=ttnn.{tensor.layout.name}_LAYOUT" if name == "input_tensor" else ""
        lines.append(f"{name} = ttnn.from_torch(np.zeros({tuple(tensor.shape)}, np.float32), ttnn.{kind}{layout})")
    if layer.input_memory != "host":
        lines.append(f"input_tensor = ttnn.to_device(input_tensor, device, memory_config={MEMORY[layer.input_memory]})")
    lines.append("output = ttnn.conv_transpose2d(")
    lines += [f"    {name}={name}," for name in (*tensors, "device")]
    for name, value in arguments.items():
        if name not in tensors and name != "device" and value is not None:
            told = f"dtype=ttnn.{value.name.lower()}" if name == "dtype" else arguments_source({name: value})
            lines.append(f"    {told},")
    return "\n".join([*lines, ")"])
