"""ttnn.fold."""

from collections.abc import Sequence

from device.cores import CoreRangeSet
from device.errors import ArgumentError, ArgumentTypeError, shown
from device.memory.memory_config import MemoryConfig
from ops.planners.shape.fold import plan_fold
from ttsim.api.device_calls import carried_out, required_device
from ttsim.runtime.execution import on_device
from ttsim.runtime.tensor import Tensor
from ttsim.types.signature import checked, required_integer


@on_device
@checked
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
        input: Images on the device; block floats become bfloat16.
        stride_h: Rows of a window.
        stride_w: Columns of a window.
        use_transpose_as_fold: Not simulated: the library's older way, by transpositions.
        output_shape: Of that way alone.
        padding: Zeros around the images: (rows, columns), (top, bottom, left, right), or these and channels before and
            behind.
        grid_size: Of that way alone.
        override_memory_config: Where the result goes; None for where the images are.
        collapse_output: The result is [1, 1, windows, channels].

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: What is not simulated is asked for.
        DeviceError: Windows do not fill the images, or the tensor is on the host.
        OutOfMemoryError: No room.
    """
    if use_transpose_as_fold or output_shape is not None or grid_size is not None:
        raise ArgumentError(
            "fold: use_transpose_as_fold, and output_shape and grid_size, which belong to it, are not simulated; "
            "leave them out"
        )
    if not isinstance(padding, Sequence) or len(padding) not in (2, 4, 6):
        raise ArgumentTypeError(f"fold: padding must be 2, 4 or 6 numbers, not {shown(padding)}")
    sides = [required_integer("fold", "padding", one) for one in padding]
    if len(sides) == 2:
        sides = [sides[0], sides[0], sides[1], sides[1]]
    sides += [0] * (6 - len(sides))
    if min(sides) < 0:
        raise ArgumentTypeError(f"fold: padding must be numbers of at least 0, not {shown(padding)}")
    around = tuple(zip(sides[::2], sides[1::2], strict=True))
    device = required_device("fold", input)
    window = (stride_h, stride_w)
    plan = plan_fold(input.spec, window, around, device.spec, place=override_memory_config, collapsed=collapse_output)
    return carried_out("fold", plan, input, device)
