"""Tensors without values, like one that is given or described."""

import numpy as np

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG
from ops.programs.conv2d.weights import AsWanted
from ttsim.runtime.device import Device
from ttsim.runtime.tensor import Tensor
from ttsim.types.description import TensorDescription


def tensor_like(tensor: Tensor | TensorDescription, device: Device) -> Tensor:
    """A tensor without values like the one given or described, on the device or on the host.

    Raises:
        DeviceError: It does not fit.
    """
    if isinstance(tensor, Tensor):
        spec, on_host = tensor.spec, tensor.device() is None
    else:
        on_host = tensor.memory_config is None
        place = tensor.memory_config or DRAM_MEMORY_CONFIG
        spec = TensorSpec(tensor.shape, tensor.dtype.format, tensor.layout, place)
    if on_host:
        return Tensor.of_host(np.broadcast_to(np.zeros((), spec.data_format.storage), spec.shape), spec)
    made_by = tensor.made_by if isinstance(tensor, Tensor) else AsWanted()
    return Tensor.of_buffer(device, device.machine.allocate(spec.buffer(device.spec), "input"), spec, made_by=made_by)
