"""ttnn.plus_one, which increments integers such as the positions of a decoder's users."""

from device.cores import CoreRangeSet
from ops.planners.plus_one import counting_cores, plan_plus_one, require_counts
from ttsim.api.device_calls import cached_plan, operation, required_device
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor


@operation
def plus_one(
    input_tensor: Tensor, sub_core_grids: CoreRangeSet | None = None, skip_negative_entries: bool = False
) -> Tensor:
    """Increments every integer of a tensor, in place.

    Args:
        input_tensor: int32 or uint32 in ROW_MAJOR layout, with up to four axes; interleaved, or in shards of one row
            each.
        sub_core_grids: The one core that increments, or all cores of the shards; None for the first core.
        skip_negative_entries: Do not increment numbers outside 0 to 2**31 - 2.

    Returns:
        ``input_tensor``.

    Raises:
        ArgumentError: The device is strict, and the cores would increment some numbers twice or not at all.

    Examples:
        >>> positions = ttnn.from_numpy(np.array([3, -1]), ttnn.int32, device=device)
        >>> ttnn.plus_one(positions, skip_negative_entries=True).to_list()
        [4, -1]
    """
    device = required_device("plus_one", input_tensor)
    plan = cached_plan(
        plan_plus_one, device, input_tensor.spec, cores=sub_core_grids, keeps_negative=skip_negative_entries
    )
    if device.strict:
        require_counts(input_tensor.spec, counting_cores(sub_core_grids, device.spec))
    with device.function("ttnn.plus_one"):
        return run(plan, {"input": input_tensor}, device)["output"]
