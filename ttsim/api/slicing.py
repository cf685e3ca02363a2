"""ttnn.slice, and what it makes of an index of a tensor."""

from collections.abc import Sequence

from device.cores import CoreRangeSet
from device.errors import ArgumentTypeError, shown
from device.memory.memory_config import MemoryConfig
from ops.planners.shape.slice import plan_slice
from ttsim.api.device_calls import carried_out, require_left_out, required_device
from ttsim.runtime.execution import on_device
from ttsim.runtime.tensor import Tensor
from ttsim.types.signature import checked


@on_device
@checked
def slice(
    input_tensor: Tensor,
    slice_start: object = None,
    slice_end: object = None,
    slice_step: object = None,
    *,
    starts: object = None,
    ends: object = None,
    steps: object = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    pad_value: float | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """A box of a tensor, in its layout; block floats that begin within tiles become bfloat16.

    Args:
        input_tensor: On the device.
        slice_start: First index on each axis.
        slice_end: One past the last index on each axis.
        slice_step: From index to index; None for every index.
        starts: `slice_start` by the name that ttnn gives it beside `ends`.
        ends: `slice_end`.
        steps: `slice_step`.
        memory_config: Where the box goes; None for where the tensor is, in smaller shards.
        output_tensor: Not simulated; None makes a new tensor.
        pad_value: Not simulated: padding is no part of the values here.
        sub_core_grids: Not simulated.

    Raises:
        ArgumentTypeError: An index is no sequence of integers.
        ArgumentError: What is not simulated is asked for.
        DeviceError: The box does not lie within the tensor, or the tensor is on the host.
        OutOfMemoryError: No room.
    """
    require_left_out("slice", output_tensor=output_tensor, pad_value=pad_value, sub_core_grids=sub_core_grids)
    begins = _indices("slice_start", slice_start if starts is None else starts)
    behind = _indices("slice_end", slice_end if ends is None else ends)
    step = slice_step if steps is None else steps
    taken = None if step is None else _indices("slice_step", step)
    device = required_device("slice", input_tensor)
    plan = plan_slice(input_tensor.spec, begins, behind, taken, device.spec, place=memory_config)
    return carried_out("slice", plan, input_tensor, device)


def _indices(name: str, given: object) -> tuple[int, ...]:
    if not isinstance(given, Sequence) or not all(isinstance(one, int) for one in given):
        raise ArgumentTypeError(f"slice: {name} must be a sequence of integers, not {shown(given)}")
    return tuple(given)
