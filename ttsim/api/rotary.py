"""ttnn.experimental.rotary_embedding."""

from collections.abc import Mapping

from device.errors import DeviceError
from device.memory.memory_config import MemoryConfig
from ops.planners.attention.rotary import RotaryArguments, check_tables, plan_rotary_embedding
from ttsim.api.device_calls import cached_plan, operation_as
from ttsim.api.to_config import in_tiles
from ttsim.runtime.execution import require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.attention import Integer
from ttsim.runtime.types.configs import WormholeComputeKernelConfig


@operation_as("ttnn.experimental.")
def rotary_embedding(
    input_tensor: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    token_index: Integer | None = None,
    *,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
) -> Tensor:
    """Rows times cosines, plus their exchanged halves, of which the first is negative, times sines.

    Args:
        input_tensor: [batch, heads, rows, columns] on the device, 32 columns or a multiple of 64; sharded by HEIGHT at
            most. Tensors in ROW_MAJOR layout are tilized first.
        cos_cache: Cosines [1, 1, rows or more, columns], in any layout.
        sin_cache: Sines, of the same shape and data type.
        token_index: The row of both tables that all rows take; None gives each row its own.
        memory_config: Memory of the result; None for that of the tensor. Shards follow from the tensor.
        compute_kernel_config: Fidelity and width of Dst; None for HiFi4 and 16 bits.

    Returns:
        A tensor of the input's data type in TILE layout, with the rows of whole tiles.

    Examples:
        >>> x = ttnn.ones((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> cosines, sines = (ttnn.full((1, 1, 32, 64), number, layout=ttnn.TILE_LAYOUT, device=device)
        ...     for number in (3.0, 2.0))
        >>> ttnn.experimental.rotary_embedding(x, cosines, sines).to_numpy()[0, 0, 0, [0, 63]].tolist()
        [1.0, 5.0]
    """
    tensors = {"input": input_tensor, "cosines": cos_cache, "sines": sin_cache}
    for tensor in tensors.values():
        require_allocated(tensor, first_line="Tensor is not allocated")
        if tensor.device() is None:
            raise DeviceError("Input tensor must be on device\ngive every tensor to the device with .to(device)")
    device = input_tensor.device()
    assert device is not None
    config = None if compute_kernel_config is None else compute_kernel_config.argument()
    named = {
        "token": token_index,
        "place": memory_config,
        "fidelity_phases": 4 if config is None else config.fidelity_phases,
        "fp32_dest": config is not None and config.fp32_dest,
    }
    check_tables(_arguments(tensors, named))
    tiled = {name: in_tiles(tensor) for name, tensor in tensors.items()}
    plan = cached_plan(plan_rotary_embedding, device, _arguments(tiled, named))
    with device.function("ttnn.experimental.rotary_embedding"):
        result = run(plan, tiled, device)["output"]
    for name in reversed(tuple(tiled)):
        del tiled[name]
    return result


def _arguments(tensors: Mapping[str, Tensor], named: Mapping[str, object]) -> RotaryArguments:
    source, cosines, sines = (tensor.spec for tensor in tensors.values())
    return RotaryArguments(source=source, cosines=cosines, sines=sines, **named)  # type: ignore[arg-type]
