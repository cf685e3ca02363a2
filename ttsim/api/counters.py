"""ttnn's function that counts integers up, such as the positions of a decoder's users."""

from device.cores import CoreRangeSet
from ops.planners.plus_one import plan_plus_one
from ttsim.api.device_calls import cached_plan, operation, required_device
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor


@operation
def plus_one(
    input_tensor: Tensor, sub_core_grids: CoreRangeSet | None = None, skip_negative_entries: bool = False
) -> Tensor:
    """Counts every integer of a tensor up by one, in place.

    Args:
        input_tensor: int32 or uint32 in ROW_MAJOR layout, interleaved, with up to four axes.
        sub_core_grids: The one core that counts; None for the first.
        skip_negative_entries: Leaves numbers alone that are not in 0 to 2**31 - 2.

    Returns:
        ``input_tensor``.

    Examples:
        >>> positions = ttnn.from_numpy(np.array([3, -1]), ttnn.int32, device=device)
        >>> ttnn.plus_one(positions, skip_negative_entries=True).to_list()
        [4, -1]
    """
    device = required_device("plus_one", input_tensor)
    plan = cached_plan(
        plan_plus_one, device, input_tensor.spec, cores=sub_core_grids, keeps_negative=skip_negative_entries
    )
    with device.function("ttnn.plus_one"):
        return run(plan, {"input": input_tensor}, device)["output"]
