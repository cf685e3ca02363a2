"""What functions of device tensors share: where they run, their plans, arguments that are not simulated."""

from collections.abc import Callable, Hashable
from typing import Final

from device.errors import ArgumentError, DeviceError
from device.plan import Plan, ProgramKey
from ttsim.runtime.device import Device
from ttsim.runtime.execution import require_allocated, run
from ttsim.runtime.tensor import Tensor

INPUT_LOST: Final = "Input Tensor is not allocated"  # said of the first tensor of most device operations


def required_device(owner: str, tensor: Tensor, *, lost: str = INPUT_LOST) -> Device:
    """The device on which a tensor is; raises DeviceError for one on the host, and ``lost`` for one deallocated."""
    require_allocated(tensor, first_line=lost)
    device = tensor.device()
    if device is None:
        raise DeviceError(
            f"{owner}: Operands need to be on device!\n"
            "the tensor is on the host; give it to the device with .to(device)"
        )
    return device


def kept_plan(planner: Callable[..., Plan], device: Device, *arguments: Hashable, **options: Hashable) -> Plan:
    """The plan of a call, from the cache if an equal call came before.

    ``planner`` plans by its arguments, the device's spec and its options. No argument is a fraction: 0.0 and -0.0 are
    equal, but not the same.
    """
    spec, key = device.spec, ProgramKey((planner, arguments, *options.items()))
    return device.plans.plan_of(key, spec, lambda: planner(*arguments, spec, **options))


def carried_out(owner: str, plan: Plan, tensor: Tensor, device: Device) -> Tensor:
    """The result of a plan of one tensor, "input"; raises DeviceError where it was deallocated or does not fit."""
    require_allocated(tensor, first_line=INPUT_LOST)
    with device.function(f"ttnn.{owner}"):
        return run(plan, {"input": tensor}, device)["output"]


def require_left_out(owner: str, **arguments: object) -> None:
    """Raises ArgumentError for an argument that asks for what is not simulated: one not None, False or empty."""
    for name, value in arguments.items():
        empty = isinstance(value, list | tuple) and not value
        if not (value is None or value is False or empty):
            raise ArgumentError(f"{owner}: {name} is not simulated; leave it out")
