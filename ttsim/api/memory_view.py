"""ttnn.experimental.view: a tensor that shares a buffer under another shape."""

from ops.planners.shape.reshape import plan_memory_view
from ttsim.api.device_calls import cached_plan, carried_out, required_device, sides_of
from ttsim.api.heads import experimental
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.tensors import resolved_shape


@experimental
def view(input_tensor: Tensor, shape: object) -> Tensor:
    """A tensor of another shape that shares the buffer of a tensor.

    Args:
        input_tensor: A tensor on the device; shards that split rows must not contain padding.
        shape: The new sides, of the same volume; one side may be -1. Rows keep their length.

    Returns:
        The view.

    Raises:
        NotSimulatedError: In the real library, the elements would appear in another order.

    Examples:
        >>> tensor = ttnn.zeros((2, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.experimental.view(tensor, (1, 1, 64, -1)).shape
        Shape([1, 1, 64, 64])
    """
    device = required_device("experimental.view", input_tensor)
    wanted = resolved_shape((sides_of("experimental.view", shape),), input_tensor.spec.volume)
    plan = cached_plan(plan_memory_view, device, input_tensor.spec, wanted)
    return carried_out("experimental.view", plan, input_tensor, device)
