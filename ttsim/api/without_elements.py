"""Results of calls on tensors without elements, for which the real library does not run the operation's program.

Reductions, tilize, untilize, softmax and topk create the result on the host; norms, sort and cumulative sums copy the
tensor, as ttnn 0.81.1 does. Other operations plan their programs for no cores.
"""

from collections.abc import Sequence
from math import isnan

from device.errors import DeviceError
from device.memory.memory_config import Layout, MemoryConfig
from ttsim.api.creation import full
from ttsim.api.pad import fill_implicit_tile_padding
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.tensors import DataType


def is_empty(tensor: Tensor) -> bool:
    """Whether a tensor has no elements."""
    return not tensor.spec.volume


def made(
    tensor: Tensor,
    shape: Sequence[int],
    place: MemoryConfig | None,
    *,
    value: float = 0.0,
    dtype: DataType | None = None,
    layout: Layout | None = None,
) -> Tensor:
    """A tensor of one number, created on the host; memory, data type and layout default to those of ``tensor``."""
    place = tensor.spec.memory_config if place is None else place
    dtype = dtype or tensor.dtype
    number = value if dtype.format.is_float or not isnan(value) else 0.0  # integers have no NaN
    return full(shape, number, dtype, layout or tensor.layout, tensor.device(), place)


def reduced(
    tensor: Tensor,
    axes: Sequence[int],
    place: MemoryConfig | None,
    *,
    keeps: bool,
    value: float | None,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    fills: bool = False,
) -> Tensor:
    """The result of reducing a tensor without elements: every element is the value of an empty reduction.

    With ``fills``, a program fills the padding of tiles first.
    Raises DeviceError for an axis of length 0 if the empty reduction has no value (None).
    """
    sides = tuple(tensor.shape)
    if fills and tensor.layout is Layout.TILE:
        fill_implicit_tile_padding(tensor, 0.0)
    for axis in axes if value is None else ():
        if not sides[axis]:
            raise DeviceError(
                f"Expected reduction dim {axis} to have non-zero size\ninput_tensor: no elements have no extreme"
            )
    kept = [1 if axis in axes else side for axis, side in enumerate(sides)]
    shape = kept if keeps else [side for axis, side in enumerate(sides) if axis not in axes]
    return made(tensor, shape, place, value=value or 0.0, dtype=dtype, layout=layout)
