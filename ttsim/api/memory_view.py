"""ttnn.experimental.view: a tensor that shares a buffer under another shape."""

from functools import partial
from typing import Any, get_overloads, overload

from ops.planners.shape.reshape import plan_memory_view
from ttsim.api.device_calls import cached_plan, carried_out, required_device, sides_of
from ttsim.runtime.calls import on_device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import Integer, signature_of
from ttsim.runtime.types.tensors import resolved_shape


@overload
def view(input_tensor: Tensor, shape: object) -> Tensor: ...


@overload
def view(input_tensor: Tensor, N: Integer, C: Integer, H: Integer, W: Integer) -> Tensor: ...  # noqa: N803 - ttnn's names


@on_device
def view(*arguments: Any, **named: Any) -> Tensor:
    """A tensor of another shape that shares the buffer of a tensor.

    Args:
        input_tensor: A tensor on the device; shards that split rows must not contain padding.
        shape: The new sides, of the same volume; one side may be -1. Rows keep their length.
        N: The first of four sides, instead of ``shape``; one side may be -1.
        C: The second side.
        H: The third side.
        W: The last side.

    Returns:
        The view.

    Raises:
        ArgumentTypeError: An argument is unknown, missing or of the wrong type.
        DeviceError: The tensor is on the host, or the shape has another volume or other rows.
        NotSimulatedError: In the real library, the elements would appear in another order.

    Examples:
        >>> tensor = ttnn.zeros((2, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.experimental.view(tensor, (1, 1, 64, -1)).shape
        Shape([1, 1, 64, 64])
    """
    by_sides = len(arguments) > 2 or "N" in named
    given = (BY_SIDES if by_sides else BY_SHAPE).bind(arguments, named)
    tensor = given.pop("input_tensor")
    device = required_device("experimental.view", tensor)
    sides = sides_of("experimental.view", tuple(given.values()) if by_sides else given["shape"])
    plan = cached_plan(plan_memory_view, device, tensor.spec, resolved_shape((sides,), tensor.spec.volume))
    return carried_out("experimental.view", plan, tensor, device)


BY_SHAPE, BY_SIDES = map(partial(signature_of, prefix="ttnn.experimental."), get_overloads(view))
