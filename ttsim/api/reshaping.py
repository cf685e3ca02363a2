"""ttnn.reshape and what gives a tensor sides of 1, or takes them away."""

from collections.abc import Sequence

from device.cores import CoreRangeSet
from device.errors import ArgumentError, DeviceError
from device.memory.memory_config import MemoryConfig
from ops.planners.shape.reshape import plan_reshape, plan_squeeze, plan_unsqueeze_to_4d
from ttsim.api.device_calls import carried_out, require_left_out
from ttsim.runtime.execution import on_device, require_allocated
from ttsim.runtime.tensor import Tensor
from ttsim.types.shapes import resolved_shape
from ttsim.types.signature import checked, require_type, required_integer


@on_device
@checked
def reshape(
    input_tensor: Tensor,
    shape: object,
    *,
    memory_config: MemoryConfig | None = None,
    pad_value: float | None = None,
    reshape_tile_mode: object = None,
    sub_core_grids: CoreRangeSet | None = None,
    skip_padding_fill: bool = False,
) -> Tensor:
    """The same elements in another shape; one side may be -1.

    A device tensor whose pages stay shares its buffer with the result; rows that end elsewhere, and tiles whose rows
    do, are moved by a program, and sharded tensors are dealt to their cores anew.

    Args:
        input_tensor: The tensor.
        shape: The other shape.
        memory_config: Where the result goes; None for where the tensor is.
        pad_value: What the padding of tiles is filled with where a program moved them, behind it.
        reshape_tile_mode: Whether the map of tiles is made anew; it is, whatever is asked for, where a program is.
        sub_core_grids: Not simulated.
        skip_padding_fill: The padding is not filled, whatever ``pad_value`` says.

    Raises:
        ArgumentError: What is not simulated is asked for.
        DeviceError: The volumes differ, or shards do not hold the result.
        OutOfMemoryError: No room.
    """
    require_left_out("reshape", sub_core_grids=sub_core_grids)
    wanted = resolved_shape((shape,), input_tensor.spec.volume)  # type: ignore[arg-type]
    return _reshaped("reshape", input_tensor, wanted, memory_config, None if skip_padding_fill else pad_value)


def _reshaped(
    owner: str,
    tensor: Tensor,
    shape: Sequence[int],
    memory_config: MemoryConfig | None = None,
    pad_value: float | None = None,
) -> Tensor:
    """The tensor in a shape of its volume; on the host, and of what was prepared, by the tensor's own method."""
    device = tensor.device()
    if device is None or tensor.made_by is not None:
        return tensor.reshape(shape)
    require_allocated(tensor)
    plan = plan_reshape(tensor.spec, tuple(shape), device.spec, place=memory_config, filler=pad_value)
    return carried_out(owner, plan, tensor, device)


@on_device
def squeeze(input_tensor: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The same elements without sides of 1.

    Args:
        input_tensor: The tensor.
        dim: Which sides, if they are 1; None for all.

    Raises:
        ArgumentTypeError: ``dim`` is neither an integer nor a sequence of them.
        DeviceError: There is no such side.
    """
    require_type("squeeze", Tensor, input_tensor=input_tensor)
    shape = input_tensor.shape
    asked = range(len(shape)) if dim is None else dim if isinstance(dim, Sequence) else (dim,)
    gone = {axis for one in asked if shape[axis := _axis("squeeze", one, len(shape))] == 1}
    device = input_tensor.device()
    if not gone:
        return input_tensor
    if device is None or input_tensor.made_by is not None:
        return input_tensor.reshape([side for axis, side in enumerate(shape) if axis not in gone])
    require_allocated(input_tensor)
    return carried_out("squeeze", plan_squeeze(input_tensor.spec, gone, device.spec), input_tensor, device)


@on_device
def unsqueeze(input_tensor: Tensor, dim: int) -> Tensor:
    """The same elements with a side of 1 before the side ``dim``; raises DeviceError if there is no such place."""
    require_type("unsqueeze", Tensor, input_tensor=input_tensor)
    sides = list(input_tensor.shape)
    sides.insert(_axis("unsqueeze", dim, len(sides) + 1), 1)
    return _reshaped("unsqueeze", input_tensor, sides)


@on_device
def unsqueeze_to_4D(tensor: Tensor) -> Tensor:  # noqa: N802 - ttnn's name
    """The same elements with sides of 1 put first until there are four; raises ArgumentError if there are more."""
    require_type("unsqueeze_to_4D", Tensor, tensor=tensor)
    if len(tensor.shape) > 4:
        raise ArgumentError("Tensor rank is greater than 4\nunsqueeze_to_4D: reshape it")
    device = tensor.device()
    if device is None or tensor.made_by is not None:
        return tensor.reshape(tensor.shape.to_rank(4))
    require_allocated(tensor)
    return carried_out("unsqueeze_to_4D", plan_unsqueeze_to_4d(tensor.spec, device.spec), tensor, device)


def _axis(function: str, dim: object, rank: int) -> int:
    """An axis counted from the front."""
    number = required_integer(function, "dim", dim)
    if not -rank <= number < rank:
        raise DeviceError(
            f"Dimension out of range (expected to be in range of [{-rank},{rank - 1}], but got {number})\n"
            f"{function}: dim must lie between {-rank} and {rank - 1}"
        )
    return number % rank
