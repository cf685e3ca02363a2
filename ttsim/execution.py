"""Carries out a plan on a device: allocate what it needs, compute what it returns."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from device.arithmetic import EXACT, FAST, Arithmetic
from device.formats import Array
from device.layouts import BufferType
from device.plan import Plan
from ops.run import run_memory, run_values
from ops.values import evaluator
from ttsim.device import Device
from ttsim.session import current
from ttsim.tensor import Tensor

ARITHMETIC: Mapping[str, Arithmetic] = MappingProxyType({"exact": EXACT, "fast": FAST})


def free_l1_bytes(device: Device) -> int:
    """Bytes of every L1 bank that no buffer has."""
    return device.machine.allocator.statistics(BufferType.L1).free_bytes_per_bank


def run(
    plan: Plan, tensors: Mapping[str, Tensor], device: Device, *, input_shape: tuple[int, int] | None = None
) -> dict[str, Tensor]:
    """Runs a plan.

    Args:
        plan: What to do.
        tensors: The caller's tensors by their names in the plan, on the host or on the device.
        device: Where.
        input_shape: Sticks and channels that the call says its input has, if the input has other ones: what it has too
            many is left out, what is missing reads as zero.

    Returns:
        Tensors by the role they have in ``plan.results``; one of the caller's own is given back as it is.

    Raises:
        DeviceError: A buffer or the circular buffers of a program do not fit.
    """
    dispatch = current().dispatch
    computes = dispatch and device.values != "off"
    arrays = {name: _array(name, tensor) for name, tensor in tensors.items()} if computes else {}
    if computes and input_shape is not None:
        arrays["input"] = _sticks(arrays["input"], *input_shape)
    held = {name: tensor.buffer for name, tensor in tensors.items() if tensor.device() is not None}
    buffers = run_memory(plan, device.listened(), held, dispatch=dispatch)
    results = {}
    for role, name in plan.results.items():
        own = tensors.get(name)
        results[role] = own if own is not None else Tensor.of_buffer(device, buffers[name], plan.tensors[name])
    if computes:
        made = run_values(plan, arrays, evaluator(device.spec, ARITHMETIC[device.values]))
        for name in set(plan.results.values()) - set(tensors):
            buffers[name].store(made[name], plan.tensors[name])
    return results


def _array(name: str, tensor: Tensor) -> Array:
    """A tensor's values as a plan reads them: what was prepared with its padding, all else without."""
    prepared = tensor.device() is not None and name != "input"
    return tensor.padded_values() if prepared else tensor.values()


def _sticks(values: Array, sticks: int, channels: int) -> Array:
    """The first ``sticks`` * ``channels`` elements as [1, 1, sticks, channels]; zeros where there are none."""
    result = np.zeros(sticks * channels, values.dtype)
    count = min(values.size, result.size)
    result[:count] = values.reshape(-1)[:count]
    return result.reshape(1, 1, sticks, channels)
