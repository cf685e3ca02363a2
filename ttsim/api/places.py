"""ttnn's functions that find places of elements along an axis."""

from device.cores import CoreRangeSet
from device.memory.memory_config import MemoryConfig
from ops.planners.argmax import ArgMaxArguments, plan_argmax
from ttsim.api.device_calls import converted, operation, require_left_out
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import required_integer


@operation
def argmax(
    input_tensor: Tensor,
    dim: object = None,
    keepdim: bool = False,
    *,
    sub_core_grids: CoreRangeSet | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: object = None,
    enable_secondary_dm: object = None,
) -> Tensor:
    """The place of the largest element along an axis, the first of equal ones.

    Rows of ROW_MAJOR tensors are searched by several cores, rows and columns of tiles by one core; other axes are
    compared tile by tile. Numbers were never compared with recordings of the real kernels.

    Args:
        input_tensor: An interleaved tensor on the device.
        dim: The axis; negative numbers count from the last. None finds the place among all elements of rows.
        keepdim: Keep the axis, or all axes, with length 1.
        enable_secondary_dm: Not simulated; None lets the library choose.

    Returns:
        Places from 0 on, uint32 in ROW_MAJOR layout.

    Examples:
        >>> tensor = ttnn.Tensor(np.array([[1.0, 5.0, 2.0]]), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
        >>> ttnn.argmax(tensor, dim=-1).to_list()
        [1]
    """
    require_left_out(
        "argmax",
        sub_core_grids=sub_core_grids,
        output_tensor=output_tensor,
        enable_secondary_dm=enable_secondary_dm,
    )
    axis = None if dim is None else required_integer("argmax", "dim", dim)
    call = ArgMaxArguments(dim=axis, keeps=keepdim, place=memory_config)
    return converted("argmax", plan_argmax, input_tensor, call)
