"""ttnn's statistics of matrices and its losses, composed of other functions."""

from collections.abc import Callable

from device.cores import PlainEnum
from device.memory.memory_config import MemoryConfig
from ttsim.api.bcast import BcastOpDim, BcastOpMath, bcast
from ttsim.api.compositions import public
from ttsim.api.eltwise import combined
from ttsim.api.reduction import mean, sum as sum_of
from ttsim.api.unary import applied
from ttsim.runtime.tensor import Tensor

MATRIX = (2, 3)  # the axes of the matrices of a tensor of rank 4
IMAGE = "ttnn.triu(ttnn.full((1, 1, 32, 32), 2.0, layout=ttnn.TILE_LAYOUT, device=device))"


def _centered(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of every matrix, and the difference of the tensor and its means."""
    middle = mean(tensor, MATRIX, True)
    return middle, bcast(tensor, middle, BcastOpMath.SUB, BcastOpDim.HW)


def _variance(name: str, centered: Tensor, place: MemoryConfig | None) -> Tensor:
    """The mean of the squares of every matrix; padding counts as elements."""
    rows, columns = (centered.padded_shape[axis] for axis in MATRIX)
    squared = applied(name, ("square", ()), centered, place)
    return sum_of(squared, MATRIX, True, scalar=1 / (rows * columns))


@public("The variance of every matrix of a tensor [N, C, H, W].", f"var_hw({IMAGE})", "[[[[1.0]]]]")
def var_hw(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """Means, differences, squares and sums."""
    middle, centered = _centered(input_tensor)
    result = _variance("var_hw", centered, memory_config or input_tensor.memory_config())
    del centered, middle
    return result


@public("The standard deviation of every matrix of a tensor [N, C, H, W].", f"std_hw({IMAGE})", "[[[[1.0]]]]")
def std_hw(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """The root of the variance."""
    variance = var_hw(input_tensor, memory_config=memory_config)
    return applied("std_hw", ("sqrt", ()), variance)


@public(
    "Every matrix of a tensor [N, C, H, W] without its mean, divided by its standard deviation.",
    f"normalize_hw({IMAGE})[0, 0, 31, :1]",
    "[-1.03125]",
)
def normalize_hw(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """Differences from the mean times the inverse roots of variances."""
    middle, centered = _centered(input_tensor)
    variance = _variance("normalize_hw", centered, memory_config)
    operands, inverse = (centered, variance), ("rsqrt",)
    result = combined("normalize_hw", "multiply", operands, memory_config=memory_config, right_activations=inverse)
    del operands, variance, centered, middle
    return result


class LossReductionMode(PlainEnum):
    """The result of a loss: all losses, their mean or their sum.

    Examples:
        >>> ttnn.LossReductionMode.MEAN.value
        1
    """

    NONE, MEAN, SUM = range(3)


def _loss(
    name: str,
    function: str,
    tensors: tuple[Tensor, Tensor],
    reduction: LossReductionMode,
    memory_config: MemoryConfig | None,
    output_tensor: Tensor | None,
) -> Tensor:
    """A function of every difference, optionally reduced; without a reduction, it is written to the caller's tensor."""
    placed = {"memory_config": memory_config, "output_tensor": output_tensor}
    losses = combined(name, "subtract", tensors, activations=(function,), **placed)  # type: ignore[arg-type]
    place = memory_config or tensors[0].memory_config()
    match reduction:
        case LossReductionMode.NONE:
            return losses
        case LossReductionMode.MEAN:
            return mean(losses, memory_config=place)
    return sum_of(losses, memory_config=place)


def _loss_of(name: str, function: str, differences: str) -> Callable[..., Tensor]:
    """The loss function of this name: a function of every difference, optionally reduced."""

    def loss(
        input_reference: Tensor,
        input_prediction: Tensor,
        *,
        reduction: LossReductionMode = LossReductionMode.NONE,
        memory_config: MemoryConfig | None = None,
        output_tensor: Tensor | None = None,
    ) -> Tensor:
        tensors = (input_reference, input_prediction)
        return _loss(name, function, tensors, reduction, memory_config, output_tensor)

    loss.__name__ = loss.__qualname__ = name
    return public(f"{differences} of two tensors, perhaps reduced.", f"{name}(x, y)", "[[1.0, 0.0]]")(loss)


l1_loss = _loss_of("l1_loss", "abs", "The absolute differences")
mse_loss = _loss_of("mse_loss", "square", "The squares of the differences")
