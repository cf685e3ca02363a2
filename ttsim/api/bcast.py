"""ttnn.bcast, an older form of add, subtract and multiply, and its enums."""

from device.cores import PlainEnum
from device.errors import DeviceError
from device.memory.memory_config import MemoryConfig
from ops.planners.bcast import HINT, BcastArguments, bcast_refusal, plan_bcast
from ttsim.api.device_calls import cached_plan, operation, required_device
from ttsim.api.to_config import in_tiles
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor


class BcastOpMath(PlainEnum):
    """The arithmetic operation of `bcast`; member values are ttnn's.

    Examples:
        >>> ttnn.BcastOpMath.MUL.value
        2
    """

    ADD, SUB, MUL = range(3)


class BcastOpDim(PlainEnum):
    """The axes along which `bcast` broadcasts the second tensor: H, W or both; member values are ttnn's.

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
    """A tensor combined with a broadcast row, column or number.

    Args:
        input_a: The tensor; a ROW_MAJOR tensor is tilized. Of sharded tensors, only WIDTH and BLOCK shards with a row,
            and HEIGHT shards with a number, are simulated.
        input_b: One row (H), one column (W) or one number (HW), for all matrices of ``input_a`` or for each of them.
        math_op: Addition, subtraction or multiplication.
        dim: The axes along which ``input_b`` is broadcast.
        memory_config: Memory of the result; None for that of ``input_a``.
        output_tensor: A tensor that receives the result and is returned; ``memory_config`` then has no effect.

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
