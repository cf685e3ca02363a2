"""Names of tt_lib.utils, a module that older models use: functions of torch tensors on the host."""

import sys
from typing import Any

from device.memory.memory_config import TILE
from device.numbers.formats import div_up, round_up
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.torch_functions import TorchTensor


def pad_activation(x: TorchTensor) -> TorchTensor:
    """A float32 tensor whose last two sides are padded with zeros to whole tiles, as rank 4.

    Shapes [features], [batch, features] and [batch, rows, features] are extended to [batch, 1, rows, features] with
    missing sides of 1. Raises AssertionError for a rank above 4.
    """
    _check_rank(x)
    rank = x.dim()
    shapes = {1: (1, 1, 1, *x.shape), 2: (*x.shape[:1], 1, 1, *x.shape[1:]), 3: (*x.shape[:1], 1, *x.shape[1:])}
    return _padded(x.reshape(shapes.get(rank, tuple(x.shape))))


def pad_weight(x: TorchTensor) -> TorchTensor:
    """A float32 tensor whose last two sides are padded with zeros to whole tiles; ranks 1 and 2 become rank 4.

    Raises AssertionError for a rank above 4.
    """
    _check_rank(x)
    rank = x.dim()
    return _padded(x.reshape((1,) * (4 - rank if rank < 3 else 0) + tuple(x.shape)))


def _check_rank(x: TorchTensor) -> None:
    if not 1 <= x.dim() <= 4:
        raise AssertionError("Only tensors with dimension 1-4 supported")


def _padded(x: TorchTensor) -> TorchTensor:
    *outer, rows, columns = x.shape
    result = x.float().new_zeros((*outer, round_up(rows, TILE), round_up(columns, TILE)))
    result[..., :rows, :columns] = x
    return result


def tilize(x: TorchTensor) -> TorchTensor:
    """The tensor unchanged: from_torch tilizes."""
    return x


def untilize(x: TorchTensor) -> TorchTensor:
    """The tensor unchanged: to_torch untilizes."""
    return x


def tilize_to_list(x: TorchTensor) -> list[Any]:
    """The elements of a tensor as a list, in row-major order."""
    numbers: list[Any] = x.reshape(-1).tolist()
    return numbers


def tt2torch(ttx: Tensor) -> Any:
    """The values of a device tensor."""
    return ttx.cpu().to_torch()


tt2torch_rm = tt2torch


def divup(a: int, b: int) -> int:
    """The quotient of a and b, rounded up."""
    return div_up(a, b)


def roundup(a: int, b: int) -> int:
    """The smallest multiple of b that is at least a."""
    return round_up(a, b)


def roundup32(a: int) -> int:
    """The smallest multiple of 32 that is at least a."""
    return round_up(a, TILE)


_nearest_32, _nearest_y = roundup32, roundup


def is_close(
    a: TorchTensor,
    b: TorchTensor,
    rtol: float = 8e-2,
    atol: float = 8e-2,
    max_mag: float = 4.0,
    max_mag_fraction: float = 0.02,
) -> Any:
    """Whether each element of a differs from that of b by less than atol, max_mag * max_mag_fraction, or rtol.

    rtol applies to |a| / |b| and to (|a| + 1) / (|b| + 1). The result is a torch tensor with one boolean.
    """
    apart = (a - b).abs()
    ratios = [(a.abs() + offset) / (b.abs() + offset) for offset in (0, 1)]
    close = (apart < atol) | (apart < max_mag * max_mag_fraction)
    for ratio in ratios:
        close = close | ((ratio - 1).abs() < rtol)
    return close.all()


def print_diff_argmax(a: TorchTensor, b: TorchTensor, annotation: str = "") -> float:
    """Prints the flat index where two tensors differ most, and returns this difference."""
    apart = (a - b).abs().reshape(-1)
    place = int(apart.argmax())
    first, second = (float(tensor.reshape(-1)[place]) for tensor in (a, b))
    line = f"Abs diff= {float(apart[place])} at {place}: a = {first}, b = {second} {annotation}".rstrip()
    sys.stdout.write(f"{line}\n")
    return float(apart[place])
