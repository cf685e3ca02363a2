"""ttnn.pad in both of its forms, and ttnn.fill_implicit_tile_padding."""

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Annotated, Any, get_overloads, overload

from device.cores import CoreRangeSet
from device.errors import ArgumentTypeError, DeviceError, shown
from device.memory.layouts import no_such_axis
from device.memory.memory_config import Layout, MemoryConfig
from device.plan import Plan
from ops.planners.shape.pad import NO_FRONT, plan_fill_padding, plan_pad, require_right_padding
from ttsim.api.device_calls import converted, operation
from ttsim.runtime.calls import on_device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import integers, required_integer, signature_of

RANK = 4  # of the shapes that say what comes out
Around = tuple[tuple[int, int], ...]  # before and behind, for each axis


@overload
def pad(
    input_tensor: Tensor,
    padding: object,
    value: object,
    *,
    use_multicore: bool = True,
    memory_config: MemoryConfig | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor: ...


@overload
def pad(
    input_tensor: Tensor,
    output_padded_shape: Annotated[Sequence[int], integers(RANK)],
    input_tensor_start: Annotated[Sequence[int], integers(RANK)],
    value: object,
    *,
    use_multicore: bool = True,
    memory_config: MemoryConfig | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor: ...


@on_device
def pad(*arguments: Any, **named: Any) -> Tensor:
    """A tensor padded with a constant.

    Args:
        input_tensor: A tensor on the host or the device; in TILE layout on the device, it cannot be padded in front.
        padding: (before, after) for each of the last axes; or give ``output_padded_shape`` and ``input_tensor_start``.
        output_padded_shape: Four sides of the result.
        input_tensor_start: Position of the tensor's first element in the result.
        value: The constant.
        use_multicore: False uses one core; it has no effect on sharded rows. On one core, values are not simulated for
            rows that are padded in front, or with a number other than 0 and a data type other than bfloat16.
        memory_config: Memory of the result; None for that of the tensor.
        sub_core_grids: Cores that may be used; None for all.

    Returns:
        A tensor whose sides are longer by ``before + after``; for a host tensor, as in ttnn, only its padded shape.

    Raises:
        ArgumentTypeError: An argument is unknown, missing or of the wrong type.
        ArgumentError: The library runs a program that is not simulated, or (on a strict device) would write another
            constant or lose elements of the tensor.
        DeviceError: A tensor in TILE layout on the device is padded in front, or the result cannot hold the tensor.
        OutOfMemoryError: There is no room for the result.

    Examples:
        >>> tensor = ttnn.ones((1, 1, 2, 32), device=device)
        >>> ttnn.pad(tensor, [(0, 0), (0, 0), (1, 0), (0, 0)], 7.0).to_numpy()[0, 0, :, 0].tolist()
        [7.0, 1.0, 1.0]
        >>> ttnn.pad(tensor, [1, 1, 32, 32], [0, 0, 0, 0], 0.0).shape
        Shape([1, 1, 32, 32])
    """
    by_shape = "output_padded_shape" in named or "input_tensor_start" in named or _is_shape(arguments[1:2])
    given = (BY_SHAPE if by_shape else BY_PADDING).bind(arguments, named)
    tensor, value = given["input_tensor"], given["value"]
    if not isinstance(value, Real):
        raise ArgumentTypeError(f"pad: value must be a number, not {shown(value)}")
    if by_shape:
        around = _around_of_shape(tensor, given["output_padded_shape"], given["input_tensor_start"])
    else:
        around = _around_of_pairs(given["padding"], len(tensor.shape))
    options = {"place": given["memory_config"], "by_one_core": not given["use_multicore"]}
    return _padded(tensor, around, float(value), cores=given["sub_core_grids"], **options)


BY_PADDING, BY_SHAPE = map(signature_of, get_overloads(pad))


def _is_shape(values: Sequence[object]) -> bool:
    """Whether the first value is a sequence of integers."""
    return any(
        isinstance(value, Sequence) and len(value) > 0 and all(isinstance(side, int) for side in value)
        for value in values
    )


def _around_of_pairs(padding: object, rank: int) -> Around:
    are_pairs = isinstance(padding, Sequence) and all(isinstance(pair, Iterable) for pair in padding)
    if not isinstance(padding, Sequence) or not are_pairs:
        raise ArgumentTypeError(f"pad: padding must be pairs for at most {rank} axes, not {shown(padding)}")
    pairs = [tuple(required_integer("pad", "padding", side) for side in pair) for pair in padding]
    if any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise ArgumentTypeError(f"pad: padding must be pairs of numbers of at least 0, not {shown(padding)}")
    if len(pairs) > rank:
        raise DeviceError(
            f"ttnn.pad: padding len can't be larger than input tensor rank\npadding: give pairs for {rank} axes, not "
            f"{len(pairs)}"
        )
    return tuple([(0, 0)] * (rank - len(pairs)) + [(pair[0], pair[1]) for pair in pairs])


def _around_of_shape(tensor: Tensor, shape: Sequence[int], start: Sequence[int]) -> Around:
    sides = tuple(tensor.shape)
    if len(sides) < RANK:
        raise DeviceError(
            f"{no_such_axis(len(sides))}\n"
            f"output_padded_shape: the tensor has {len(sides)} axes; give pairs of padding instead"
        )
    if tensor.device() is not None and tensor.layout is Layout.TILE and any(start):
        raise DeviceError(f"{NO_FRONT}\ninput_tensor_start: give zeros, or a tensor in ROW_MAJOR layout")
    if len(sides) > RANK or any(begin + side > whole for begin, side, whole in zip(start, sides, shape, strict=True)):
        raise DeviceError(
            f"Output size cannot fit input with offset\noutput_padded_shape: {list(shape)} does not hold {list(sides)} "
            f"that begins at {list(start)}"
        )
    return tuple((begin, whole - side - begin) for begin, side, whole in zip(start, sides, shape, strict=True))


def _padded(tensor: Tensor, around: Around, value: float, **options: Any) -> Tensor:
    spec = tensor.spec
    if tensor.device() is None:
        shape = [before + side + behind for side, (before, behind) in zip(spec.shape, around, strict=True)]
        return tensor if shape == list(spec.shape) else tensor.pad(shape, [before for before, _ in around], value)

    def strict(plan: Plan) -> None:
        require_right_padding(plan, spec, around, value)

    return converted("pad", plan_pad, tensor, around, value, strict=strict, **options)


@operation
def fill_implicit_tile_padding(
    input_tensor: Tensor, fill_value: int | float, *, memory_config: MemoryConfig | None = None
) -> Tensor:
    """Fills the tile padding of a tensor with a number, in place; block floats are filled in a new tensor.

    ttsim does not keep values of padding: the device operations run, and no value changes.

    Args:
        input_tensor: A tensor on the device, in TILE layout.
        fill_value: The number.
        memory_config: Accepted as in ttnn; the tensor stays where it is.

    Returns:
        The tensor.

    Examples:
        >>> tensor = ttnn.ones((1, 1, 30, 30), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.fill_implicit_tile_padding(tensor, 0.0).shape
        Shape([1, 1, 30, 30])
    """
    return converted("fill_implicit_tile_padding", plan_fill_padding, input_tensor, float(fill_value))
