"""Names of tt_lib.utils, a module beside ttnn that models of older releases use: torch's tensors on the host."""

import sys
from typing import Any

from device.memory.memory_config import TILE
from device.numbers.formats import div_up, round_up
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.torch_functions import TorchTensor


def pad_activation(x: TorchTensor) -> TorchTensor:
    """A float32 tensor with zeros behind its last two sides, up to whole tiles.

    Of one to three axes, [features], [batch, features] and [batch, rows, features], an axis of 1 is added before the
    rows, and rows that are missing are one. Raises AssertionError for more than four axes.
    """
    _check_rank(x)
    rank = x.dim()
    shapes = {1: (1, 1, 1, *x.shape), 2: (*x.shape[:1], 1, 1, *x.shape[1:]), 3: (*x.shape[:1], 1, *x.shape[1:])}
    return _padded(x.reshape(shapes.get(rank, tuple(x.shape))))


def pad_weight(x: TorchTensor) -> TorchTensor:
    """A float32 tensor with zeros behind its last two sides, up to whole tiles; one or two axes become four.

    Raises AssertionError for more than four axes.
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
    """The tensor as it is: from_torch makes tiles."""
    return x


def untilize(x: TorchTensor) -> TorchTensor:
    """The tensor as it is: to_torch takes tiles apart."""
    return x


def tilize_to_list(x: TorchTensor) -> list[Any]:
    """The numbers of a tensor in rows."""
    numbers: list[Any] = x.reshape(-1).tolist()
    return numbers


def tt2torch(ttx: Tensor) -> Any:
    """The numbers of a device tensor."""
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
    """Whether each number of a differs from its neighbor in b by less than atol, max_mag x max_mag_fraction, or rtol.

    rtol holds for |a| / |b| and for (|a| + 1) / (|b| + 1). The answer is a torch tensor of one truth value.
    """
    apart = (a - b).abs()
    ratios = [(a.abs() + offset) / (b.abs() + offset) for offset in (0, 1)]
    close = (apart < atol) | (apart < max_mag * max_mag_fraction)
    for ratio in ratios:
        close = close | ((ratio - 1).abs() < rtol)
    return close.all()


def print_diff_argmax(a: TorchTensor, b: TorchTensor, annotation: str = "") -> float:
    """Prints where two tensors differ most, counted through all numbers, and returns this difference."""
    apart = (a - b).abs().reshape(-1)
    place = int(apart.argmax())
    first, second = (float(tensor.reshape(-1)[place]) for tensor in (a, b))
    line = f"Abs diff= {float(apart[place])} at {place}: a = {first}, b = {second} {annotation}".rstrip()
    sys.stdout.write(f"{line}\n")
    return float(apart[place])
