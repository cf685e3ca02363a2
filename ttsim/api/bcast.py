"""ttnn.bcast, an older form of add, subtract and multiply, and what its calls name."""

from device.cores import PlainEnum
from device.errors import DeviceError
from device.memory.memory_config import MemoryConfig
from ops.planners.bcast import HINT, BcastArguments, bcast_refusal, plan_bcast
from ttsim.api.device_calls import cached_plan, operation, required_device
from ttsim.api.to_config import in_tiles
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor


class BcastOpMath(PlainEnum):
    """What `bcast` does with two numbers; the numbers are ttnn's.

    Examples:
        >>> ttnn.BcastOpMath.MUL.value
        2
    """

    ADD, SUB, MUL = range(3)


class BcastOpDim(PlainEnum):
    """Along which sides `bcast` repeats the second tensor: rows, columns or both; the numbers are ttnn's.

    Examples:
        >>> ttnn.BcastOpDim.HW.value
        2
    """

    H, W, HW = range(3)


OPERATIONS = {BcastOpMath.ADD: "add", BcastOpMath.SUB: "subtract", BcastOpMath.MUL: "multiply"}


@operation
def bcast(
    input_a: Tensor,
    input_b: Tensor,
    math_op: BcastOpMath,
    dim: BcastOpDim,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """A tensor combined with a row, a column or a number that is repeated.

    Args:
        input_a: The tensor; rows are brought into TILE layout. Shards are simulated with a row in WIDTH or BLOCK, and
            with a number in HEIGHT shards.
        input_b: For H one row, for W one column, for HW one number, or one for each matrix of ``input_a``.
        math_op: Whether it is added, subtracted or multiplied with.
        dim: Along which sides ``input_b`` is repeated.
        memory_config: Memory of the result; None for that of ``input_a``.
        output_tensor: A tensor that receives the result and is returned, whatever ``memory_config`` says.

    Returns:
        A tensor of the shape and data type of ``input_a``, in TILE layout.

    Examples:
        >>> x = ttnn.ones((1, 2, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> row = ttnn.full((1, 1, 1, 64), 2.0, layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.bcast(x, row, ttnn.BcastOpMath.ADD, ttnn.BcastOpDim.H).to_numpy()[0, 1, 31, 63].item()
        3.0
    """
    device = required_device("bcast", input_a)
    required_device("bcast", input_b)
    if text := bcast_refusal(input_a.spec, input_b.spec, dim.name):
        raise DeviceError(f"{text}\n{HINT}")
    tiled = {"input": in_tiles(input_a), "input_b": in_tiles(input_b)}
    left, right = (tensor.spec for tensor in tiled.values())
    call = BcastArguments(
        operation=OPERATIONS[math_op],
        axes=dim.name,
        left=left,
        right=right,
        place=memory_config,
        target=None if output_tensor is None else output_tensor.spec,
    )
    plan = cached_plan(plan_bcast, device, call)
    with device.function("ttnn.bcast"):
        result = run(plan, tiled if output_tensor is None else {**tiled, "target": output_tensor}, device)["output"]
    for name in reversed(tuple(tiled)):  # in the order in which the library lets them go
        del tiled[name]
    return result
