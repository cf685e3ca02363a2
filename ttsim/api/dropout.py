"""ttnn.experimental.dropout."""

from device.memory.memory_config import MemoryConfig
from ops.planners.dropout import DropoutArguments, plan_dropout
from ttsim.api.device_calls import converted, operation_as
from ttsim.runtime.tensor import Tensor


@operation_as("ttnn.experimental.")
def dropout(
    input_tensor: Tensor,
    probability: float,
    scale: float,
    seed: int,
    *,
    use_per_device_seed: bool = True,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """Every element times ``scale``, or 0 at random.

    Which elements vanish depends on a device's generator, whose numbers are not simulated: only ``probability=0`` has
    values.

    Args:
        input_tensor: A tensor of bfloat16 on the device, in TILE layout.
        probability: How many of the elements vanish, on average.
        scale: The factor of the others.
        seed: The seed of the generator.
        use_per_device_seed: Whether devices of a mesh have seeds of their own.
        memory_config: Memory of the result, of the tensor's memory layout; None for that of the tensor.
        output_tensor: A tensor of the same shape that receives the result; None creates a new tensor.

    Returns:
        A tensor of the same shape.

    Examples:
        >>> tensor = ttnn.ones((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.experimental.dropout(tensor, 0.0, 2.0, seed=1).to_numpy()[0, 0].item()
        2.0
    """
    call = DropoutArguments(probability=float(probability), scale=float(scale), seed=seed, place=memory_config)
    return converted("experimental.dropout", plan_dropout, input_tensor, call, target=output_tensor)
