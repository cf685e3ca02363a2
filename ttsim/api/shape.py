"""ttnn's functions that change the shape of a tensor or the order of its elements."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from numbers import Real

from device.cores import CoreRangeSet
from device.errors import ArgumentError, ArgumentTypeError, DeviceError, shown
from device.memory.memory_config import Layout, MemoryConfig
from device.plan import Plan
from ops.planners.concat import plan_concat
from ops.planners.shape.fold import plan_fold
from ops.planners.shape.pad import plan_pad, require_right_padding
from ops.planners.shape.permute import plan_permute, plan_transpose, require_known_numbers
from ops.planners.shape.plan import axes_of, axis_of, plan_convert_to_chw, plan_convert_to_hwc, require_written_channels
from ops.planners.shape.reshape import plan_reshape, plan_squeeze, plan_unsqueeze_to_4d
from ops.planners.shape.slice import plan_slice
from ttsim.api.device_calls import (
    LOST,
    cached_plan,
    carried_out,
    converted,
    format_of,
    integers_of,
    operation,
    operation_as,
    require_left_out,
    required_device,
)
from ttsim.runtime.execution import locked_on, on_device, require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import require_type, require_type_or_none, required_integer
from ttsim.runtime.types.tensors import DataType, resolved_shape


def concat(
    tensors: Sequence[Tensor],
    dim: int = 0,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    groups: int = 1,
    sub_core_grids: object = None,
) -> Tensor:
    """Tensors one behind the other.

    Args:
        tensors: On one device, of one layout: all interleaved, or all sharded over the same cores.
        dim: Along which axis; negative ones count from the last.
        memory_config: Where the result goes; None for DRAM.
        output_tensor: Not simulated; None makes a new tensor.
        groups: Parts that each of two tensors of HEIGHT shards is cut into: the result has the first parts of both,
            then the second, and so on. Others are not cut, as in ttnn.
        sub_core_grids: Not simulated.

    Raises:
        ArgumentError: What is not simulated is asked for.
        DeviceError: The tensors do not go together, or one is on the host.
    """
    require_type_or_none("concat", MemoryConfig, memory_config=memory_config)
    index, group_count = required_integer("concat", "dim", dim), required_integer("concat", "groups", groups)
    if not tensors or not _are_tensors(tensors):
        raise ArgumentTypeError(f"concat: tensors must be a sequence of tensors, not {shown(tensors)}")
    require_left_out("concat", output_tensor=output_tensor, sub_core_grids=sub_core_grids)
    axis = axis_of(index, len(tensors[0].shape), "dim")
    device, *_ = [required_device("concat", tensor, lost=LOST) for tensor in tensors]

    def call() -> Tensor:
        specs = tuple(tensor.spec for tensor in tensors)
        plan = cached_plan(plan_concat, device, specs, axis, place=memory_config, groups=group_count)
        with device.function("ttnn.concat"):
            return run(plan, {f"input_{number}": tensor for number, tensor in enumerate(tensors)}, device)["output"]

    return locked_on(device, call)


def _are_tensors(values: object) -> bool:
    return isinstance(values, Sequence) and all(isinstance(value, Tensor) for value in values)


@operation
def fold(
    input: Tensor,
    stride_h: int,
    stride_w: int,
    use_transpose_as_fold: bool = False,
    output_shape: object = None,
    padding: object = (0, 0),
    grid_size: CoreRangeSet | None = None,
    override_memory_config: MemoryConfig | None = None,
    collapse_output: bool = False,
) -> Tensor:
    """Windows of images [N, H, W, C] as channels [N, H / stride_h, W / stride_w, stride_h * stride_w * C].

    Args:
        input: Images on the device, which windows must fill; block floats become bfloat16.
        stride_h: Rows of a window.
        stride_w: Columns of a window.
        use_transpose_as_fold: Not simulated: the library's older way, by transpositions.
        output_shape: Of that way alone, as ``grid_size``.
        padding: Zeros around the images: (rows, columns), (top, bottom, left, right), or these and channels before and
            behind.
        override_memory_config: Where the result goes; None for where the images are.
        collapse_output: The result is [1, 1, windows, channels].
    """
    if use_transpose_as_fold or output_shape is not None or grid_size is not None:
        raise ArgumentError(
            "fold: use_transpose_as_fold, and output_shape and grid_size, which belong to it, are not simulated; "
            "leave them out"
        )
    if not isinstance(padding, Sequence) or len(padding) not in (2, 4, 6):
        raise ArgumentTypeError(f"fold: padding must be 2, 4 or 6 numbers, not {shown(padding)}")
    sides = [required_integer("fold", "padding", side) for side in padding]
    if len(sides) == 2:
        sides = [sides[0], sides[0], sides[1], sides[1]]
    sides += [0] * (6 - len(sides))
    if min(sides) < 0:
        raise ArgumentTypeError(f"fold: padding must be numbers of at least 0, not {shown(padding)}")
    around = tuple(zip(sides[::2], sides[1::2], strict=True))
    window, place = (stride_h, stride_w), override_memory_config
    return converted("fold", plan_fold, input, window, around, place=place, collapsed=collapse_output)


@operation
def permute(
    input_tensor: Tensor, dims: object, *, memory_config: MemoryConfig | None = None, pad_value: object = None
) -> Tensor:
    """The axes in another order.

    Args:
        dims: The axis of the tensor that each axis of the result is.
        pad_value: Accepted as in ttnn; padding is no part of the values here.

    Raises:
        ArgumentError: On a strict device, the library would give wrong numbers.
    """
    if not isinstance(dims, Sequence):
        raise ArgumentTypeError(f"permute: dims must be a sequence of integers, not {shown(dims)}")
    required_device("permute", input_tensor)
    order = axes_of([required_integer("permute", "dims", dim) for dim in dims], len(input_tensor.shape))
    return converted("permute", plan_permute, input_tensor, order, strict=require_known_numbers, place=memory_config)


@on_device
def transpose(
    input_tensor: Tensor, dim1: int, dim2: int, *, memory_config: MemoryConfig | None = None, pad_value: object = None
) -> Tensor:
    """Two axes swapped; arguments and errors as of `permute`."""
    require_type("transpose", Tensor, input_tensor=input_tensor)
    require_type_or_none("transpose", MemoryConfig, memory_config=memory_config)
    rank = len(input_tensor.shape)
    first, second = (required_integer("transpose", name, axis) for name, axis in (("dim1", dim1), ("dim2", dim2)))
    required_device("transpose", input_tensor)
    axes = axis_of(first, rank, "dim1"), axis_of(second, rank, "dim2")
    strict = require_known_numbers
    return converted("transpose", plan_transpose, input_tensor, *axes, strict=strict, place=memory_config)


@operation
def pad(
    input_tensor: Tensor,
    padding: object,
    value: object = 0.0,
    *,
    use_multicore: bool = True,
    memory_config: MemoryConfig | None = None,
    sub_core_grids: object = None,
) -> Tensor:
    """A number around a tensor.

    Args:
        input_tensor: On the device; rows, or tiles that are padded behind alone.
        padding: (before, behind) for each of the last axes.
        use_multicore: False, which has one core pad, changes nothing for shards, and is not simulated of others.

    Raises:
        ArgumentError: The library takes programs that are not simulated, or (on a strict device) would write another
            number, or lose numbers of the tensor.
        DeviceError: Tiles are padded in front, or the tensor is on the host.
    """
    require_left_out("pad", sub_core_grids=sub_core_grids)
    spec, rank = input_tensor.spec, len(input_tensor.shape)
    if not use_multicore and not (spec.memory_config.is_sharded() and spec.layout is Layout.ROW_MAJOR):
        raise ArgumentError("pad: use_multicore=False is simulated of rows in shards alone; leave it out")
    are_pairs = isinstance(padding, Sequence) and all(isinstance(pair, Iterable) for pair in padding)
    if not isinstance(padding, Sequence) or not are_pairs or len(padding) > rank or not isinstance(value, Real):
        raise ArgumentTypeError(f"pad: padding must be pairs for at most {rank} axes, not {shown(padding)}")
    pairs = [tuple(required_integer("pad", "padding", side) for side in pair) for pair in padding]
    if any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise ArgumentTypeError(f"pad: padding must be pairs of numbers of at least 0, not {shown(padding)}")
    around = tuple([(0, 0)] * (rank - len(pairs)) + [(pair[0], pair[1]) for pair in pairs])

    def strict(plan: Plan) -> None:
        require_right_padding(plan, spec, around, float(value))

    return converted("pad", plan_pad, input_tensor, around, float(value), strict=strict, place=memory_config)


@operation_as("ttnn.experimental.")
def convert_to_hwc(
    input: Tensor, *, memory_config: MemoryConfig | None = None, dtype: DataType | None = None
) -> Tensor:
    """[1, B, C, H*W] as [1, 1, B*H*W, C], with channels up to a multiple of 16 bytes.

    The channels behind those of the tensor are what lay in memory before: a strict device refuses them with an
    ArgumentError, and else they are zeros here.

    Args:
        input: Rows in WIDTH shards, in L1 or DRAM.
        memory_config: HEIGHT shards of the result; None for the cores of the tensor.
    """

    def strict(plan: Plan) -> None:
        require_written_channels(input.spec, plan.tensors["output"])

    owner, data_format = "experimental.convert_to_hwc", format_of(dtype)
    return converted(owner, plan_convert_to_hwc, input, strict=strict, place=memory_config, data_format=data_format)


@operation_as("ttnn.experimental.")
def convert_to_chw(input: Tensor, *, dtype: DataType | None = None) -> Tensor:
    """[1, 1, H*W, C] as [1, 1, C, H*W].

    Args:
        input: Tiles in HEIGHT shards, in L1; block floats need a dtype.
    """
    return converted("experimental.convert_to_chw", plan_convert_to_chw, input, data_format=format_of(dtype))


@operation
def reshape(
    input_tensor: Tensor,
    shape: object,
    *,
    memory_config: MemoryConfig | None = None,
    pad_value: float | None = None,
    reshape_tile_mode: object = None,
    sub_core_grids: CoreRangeSet | None = None,
    skip_padding_fill: bool = False,
) -> Tensor:
    """The same elements in another shape of the same volume; one side may be -1.

    A device tensor whose pages stay shares its buffer with the result; rows that end elsewhere, and tiles whose rows
    do, are moved by a program, and sharded tensors are dealt to their cores anew.

    Args:
        input_tensor: On the host or the device.
        pad_value: What the padding of tiles is filled with where a program moved them, behind it.
        reshape_tile_mode: Whether the map of tiles is built again; where a program runs, it always is.
        skip_padding_fill: The padding is not filled, whatever ``pad_value`` says.
    """
    require_left_out("reshape", sub_core_grids=sub_core_grids)
    wanted = resolved_shape((shape,), input_tensor.spec.volume)  # type: ignore[arg-type]
    filler = None if skip_padding_fill else pad_value
    return _reshaped("reshape", input_tensor, wanted, plan_reshape, wanted, place=memory_config, filler=filler)


def _reshaped(
    owner: str,
    tensor: Tensor,
    shape: Sequence[int],
    planner: Callable[..., Plan],
    *arguments: Hashable,
    **options: Hashable,
) -> Tensor:
    """The tensor in a shape of its volume, by a plan; by its own method on the host, and for prepared weights."""
    device = tensor.device()
    if device is None or tensor.created_by is not None:
        return tensor.reshape(shape)
    require_allocated(tensor)
    return carried_out(owner, cached_plan(planner, device, tensor.spec, *arguments, **options), tensor, device)


@on_device
def squeeze(input_tensor: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The same elements without sides of 1: all of them, or those in ``dim``; raises DeviceError for a missing axis."""
    require_type("squeeze", Tensor, input_tensor=input_tensor)
    shape = input_tensor.shape
    axes = range(len(shape)) if dim is None else dim if isinstance(dim, Sequence) else (dim,)
    gone = frozenset(axis for index in axes if shape[axis := _axis("squeeze", index, len(shape))] == 1)
    sides = [side for axis, side in enumerate(shape) if axis not in gone]
    return _reshaped("squeeze", input_tensor, sides, plan_squeeze, gone) if gone else input_tensor


@on_device
def unsqueeze(input_tensor: Tensor, dim: int) -> Tensor:
    """The same elements with a side of 1 before the side ``dim``; raises DeviceError if there is no such place."""
    require_type("unsqueeze", Tensor, input_tensor=input_tensor)
    sides = list(input_tensor.shape)
    sides.insert(_axis("unsqueeze", dim, len(sides) + 1), 1)
    return _reshaped("unsqueeze", input_tensor, sides, plan_reshape, tuple(sides))


def stack(input_tensors: Sequence[Tensor], dim: int) -> Tensor:
    """Tensors of one shape one behind the other along a new axis: each unsqueezed, then all concatenated, as in ttnn.

    Args:
        input_tensors: On one device, of one layout; the result goes where `concat` puts it: to DRAM, interleaved.
        dim: Where the new axis is in the result; negative ones count from the last.

    Raises:
        DeviceError: There is no tensor or no such axis, the tensors do not go together, or one is on the host.
    """
    if not _are_tensors(input_tensors):
        raise ArgumentTypeError(f"stack: input_tensors must be a sequence of tensors, not {shown(input_tensors)}")
    if not input_tensors:
        raise DeviceError("Stack expects at least one tensor\nstack: input_tensors is empty")
    device, *_ = [required_device("stack", tensor, lost=LOST) for tensor in input_tensors]

    def call() -> Tensor:
        tensors = [unsqueeze(tensor, dim) for tensor in input_tensors]
        result = concat(tensors, dim)
        while tensors:  # the library releases them in their order
            del tensors[0]
        return result

    return locked_on(device, call)


@on_device
def unsqueeze_to_4D(tensor: Tensor) -> Tensor:  # noqa: N802 - ttnn's name
    """The same elements with sides of 1 put first until there are four; raises ArgumentError if there are more."""
    require_type("unsqueeze_to_4D", Tensor, tensor=tensor)
    if len(tensor.shape) > 4:
        raise ArgumentError("Tensor rank is greater than 4\nunsqueeze_to_4D: reshape it")
    return _reshaped("unsqueeze_to_4D", tensor, tensor.shape.to_rank(4), plan_unsqueeze_to_4d)


def _axis(function: str, dim: object, rank: int) -> int:
    """An axis counted from the front."""
    number = required_integer(function, "dim", dim)
    if not -rank <= number < rank:
        raise DeviceError(
            f"Dimension out of range (expected to be in range of [{-rank},{rank - 1}], but got {number})\n"
            f"{function}: dim must lie between {-rank} and {rank - 1}"
        )
    return number % rank


@operation
def slice(
    input_tensor: Tensor,
    slice_start: object = None,
    slice_end: object = None,
    slice_step: object = None,
    *,
    starts: object = None,
    ends: object = None,
    steps: object = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    pad_value: float | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """A box of a tensor, in its layout; block floats that begin within tiles become bfloat16.

    Args:
        slice_start: First index on each axis; ``starts`` is its name beside ``ends``.
        slice_end: One past the last index on each axis; ``ends`` is its other name.
        slice_step: From index to index; None for every index; ``steps`` is its other name.
        memory_config: Where the box goes; None for where the tensor is, in smaller shards.
        pad_value: Not simulated: padding is no part of the values here.
    """
    require_left_out("slice", output_tensor=output_tensor, pad_value=pad_value, sub_core_grids=sub_core_grids)
    begins = integers_of("slice: slice_start", slice_start if starts is None else starts)
    behind = integers_of("slice: slice_end", slice_end if ends is None else ends)
    step = slice_step if steps is None else steps
    taken = None if step is None else integers_of("slice: slice_step", step)
    return converted("slice", plan_slice, input_tensor, begins, behind, taken, place=memory_config)
