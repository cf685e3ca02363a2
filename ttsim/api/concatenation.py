"""ttnn.concat."""

from collections.abc import Sequence

from device.errors import ArgumentTypeError, shown
from device.memory.memory_config import MemoryConfig
from ops.planners.concat import plan_concat
from ops.planners.shape.plan import axis_of
from ttsim.api.device_calls import kept_plan, require_left_out, required_device
from ttsim.runtime.execution import locked_on, run
from ttsim.runtime.tensor import Tensor
from ttsim.types.signature import require_type_or_none, required_integer


def concat(
    tensors: Sequence[Tensor],
    dim: int = 0,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    groups: int = 1,
    sub_core_grids: object = None,
) -> Tensor:
    """Tensors one behind the other.

    Args:
        tensors: On one device, of one layout: all interleaved, or all sharded over the same cores.
        dim: Along which axis; negative ones count from the last.
        memory_config: Where the result goes; None for DRAM.
        output_tensor: Not simulated; None makes a new tensor.
        groups: Parts that each of two tensors of HEIGHT shards is cut into: the result has the first parts of both,
            then the second, and so on. Others are not cut, as in ttnn.
        sub_core_grids: Not simulated.

    Returns:
        As long along ``dim`` as all together.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: What is not simulated is asked for.
        DeviceError: The tensors do not go together, or one is on the host.
        OutOfMemoryError: No room.
    """
    require_type_or_none("concat", MemoryConfig, memory_config=memory_config)
    index, parts = required_integer("concat", "dim", dim), required_integer("concat", "groups", groups)
    if not isinstance(tensors, Sequence) or not tensors or not all(isinstance(one, Tensor) for one in tensors):
        raise ArgumentTypeError(f"concat: tensors must be a sequence of tensors, not {shown(tensors)}")
    require_left_out("concat", output_tensor=output_tensor, sub_core_grids=sub_core_grids)
    axis = axis_of(index, len(tensors[0].shape), "dim")
    devices = [required_device("concat", one, lost="Tensor is not allocated") for one in tensors]
    specs = tuple(one.spec for one in tensors)
    device = devices[0]

    def call() -> Tensor:
        plan = kept_plan(plan_concat, device, specs, axis, place=memory_config, groups=parts)
        with device.function("ttnn.concat"):
            return run(plan, {f"input_{number}": one for number, one in enumerate(tensors)}, device)["output"]

    return locked_on(device, call)
