"""ttnn.fold, which moves windows of images into channels, with one program or, as in older models, by transposing."""

from collections.abc import Sequence
from typing import Final

from device.cores import CoreRangeSet, first_cores
from device.errors import ArgumentError, ArgumentTypeError, DeviceError, NotSimulatedError, shown
from device.memory.layouts import no_such_axis
from device.memory.memory_config import (
    L1_MEMORY_CONFIG,
    TILE,
    BufferType,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import div_up, round_up
from ops.planners.shape.fold import RANK, plan_fold
from ops.programs.data_movement.placement import viewed
from ttsim.api.device_calls import converted, integers_of, operation, required_device
from ttsim.api.pad import pad
from ttsim.api.shape import permute, reshaped_on_device, slice, transpose
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import required_integer

FEW_CORES: Final = first_cores(4, 2, 2)  # of the older way, without a grid


@operation
def fold(
    input: Tensor,
    stride_h: int,
    stride_w: int,
    use_transpose_as_fold: bool = False,
    output_shape: Sequence[int] | None = None,
    padding: object = (0, 0),
    grid_size: CoreRangeSet | None = None,
    override_memory_config: MemoryConfig | None = None,
    collapse_output: bool = False,
) -> Tensor:
    """Moves windows into channels: [N, H, W, C] to [N, H / stride_h, W / stride_w, stride_h * stride_w * C].

    Args:
        input: Images on the device, whose sides are multiples of the strides; block floats become bfloat16.
        stride_h: Rows of a window.
        stride_w: Columns of a window.
        use_transpose_as_fold: Fold by transposing, the older method: the images are [N, C, H, W], and channels are
            padded with zeros at the end, rows and columns on both sides; HEIGHT shards only.
        output_shape: With the older method, [N, H, W, C] to which the result is cut; None for whole images.
        padding: Zeros around the images: (rows, columns), (top, bottom, left, right), or these four and the channels
            before and after.
        grid_size: With the older method, the cores of intermediate shards; None for four cores.
        override_memory_config: Memory of the result; None for that of the images.
        collapse_output: Return the shape [1, 1, windows, channels].

    Returns:
        The folded images; each pixel of the result is one window.

    Examples:
        >>> images = ttnn.zeros((1, 8, 8, 32), device=device)
        >>> ttnn.fold(images, 2, 2).shape
        Shape([1, 4, 4, 128])
    """
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
    if use_transpose_as_fold:
        if collapse_output:
            raise DeviceError(
                "Fold: collapse_output=True is not supported with use_transpose_as_fold=True (legacy path bypasses "
                "prim::fold). Drop use_transpose_as_fold to use collapse_output.\ncollapse_output: leave it out"
            )
        shape = None if output_shape is None else integers_of("output_shape", output_shape)
        return _by_transposing(input, window, (sides[0], sides[2], sides[5]), grid_size or FEW_CORES, place, shape)
    return converted("fold", plan_fold, input, window, around, place=place, collapsed=collapse_output)


def _by_transposing(
    images: Tensor,
    window: tuple[int, int],
    padding: tuple[int, int, int],
    cores: CoreRangeSet,
    place: MemoryConfig | None,
    output_shape: tuple[int, ...] | None,
) -> Tensor:
    """Folds images [N, C, H, W] in HEIGHT shards as older releases did: columns, then rows, by transposing."""
    required_device("fold", images)
    own, rank = images.memory_config().shard_spec, len(images.shape)
    if own is not None and images.memory_config().memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        raise DeviceError("fold op does not support non height-sharding!\ninput: give HEIGHT shards")
    if rank < RANK:
        raise DeviceError(f"{no_such_axis(rank)}\ninput: give images [N, C, H, W]")
    if rank > RANK:
        raise DeviceError("Permute dimensions must match input tensor rank\ninput: give images [N, C, H, W]")
    if min(window) < 1:
        raise NotSimulatedError(f"fold: the real library crashes on windows of {window}; give windows")
    if own is None:
        return _by_transposing_pages(images, window, padding, output_shape)
    (batch, channels, height, width), (rows, columns), (above, left, behind) = images.shape, window, padding
    channels += behind
    sides = [height + 2 * above, width + 2 * left]
    high, wide = (round_up(side, TILE) for side in sides)

    def shards(*shape: int) -> MemoryConfig:
        shard = (div_up(shape[0] * shape[1] * shape[2], cores.num_cores()), shape[3])
        return MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(cores, shard, own.orientation))

    def padded(tensor: Tensor, shape: tuple[int, ...], before: int) -> Tensor:
        return pad(tensor, shape, [0, 0, before, 0], 0.0, use_multicore=False, memory_config=shards(*shape))

    # Each result replaces the tensor before, which is released then. The library pads columns as far as it pads rows
    tensor = padded(images, (batch, channels, high, width), above)
    tensor = transpose(tensor, 2, 3)
    tensor = padded(tensor, (batch, channels, high, wide), left)
    tensor = transpose(tensor, 1, 2)
    tensor = _viewed(tensor, (batch, high // columns, channels * columns, wide))
    tensor = transpose(tensor, 2, 3)
    tensor = _viewed(tensor, (batch, high // columns, wide // rows, channels * columns * rows))
    tensor = transpose(tensor, 1, 2)
    end = output_shape or (batch, sides[0] // rows, sides[1] // columns, channels * rows * columns)
    return slice(tensor, [0] * len(end), end, [1] * len(end), memory_config=place or shards(*end))


def _by_transposing_pages(
    images: Tensor, window: tuple[int, int], padding: tuple[int, int, int], output_shape: tuple[int, ...] | None
) -> Tensor:
    """Pads interleaved images [N, C, H, W] with zeros and folds them to [N, H / rows, W / columns, channels].

    As in the library, all intermediate tensors live until the result exists.
    """
    (batch, channels, height, width), (rows, columns), (above, left, behind) = images.shape, window, padding
    channels += behind
    high, wide = (round_up(side, TILE) for side in (height + above, width + left))
    if high % rows and required_device("fold", images).strict:
        raise ArgumentError(
            f"fold: windows of {rows} rows do not fill the {high} rows that the library pads images to, so that it "
            "mixes pixels of different columns; leave use_transpose_as_fold out"
        )
    padded = pad(images, (batch, channels, high, wide), [0, 0, 0, 0], 0.0)
    turned = permute(padded, (0, 3, 1, 2), memory_config=L1_MEMORY_CONFIG)
    wider = reshaped_on_device(turned, (batch, wide // columns, channels * columns, high), L1_MEMORY_CONFIG)
    by_rows = transpose(wider, 2, 3, memory_config=L1_MEMORY_CONFIG)
    sides = (batch, wide // columns, high // rows, channels * columns * rows)
    folded = reshaped_on_device(by_rows, sides, L1_MEMORY_CONFIG)
    result = transpose(folded, 1, 2, memory_config=L1_MEMORY_CONFIG)
    if output_shape is None:
        return result
    ends = [1] * len(output_shape)
    return slice(result, [0] * len(output_shape), output_shape, ends, memory_config=L1_MEMORY_CONFIG)


def _viewed(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A view of a tensor in HEIGHT shards with another shape."""
    return tensor.seen_as(viewed(tensor.spec, shape, required_device("fold", tensor).spec))
