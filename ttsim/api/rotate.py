"""ttnn.rotate."""

from typing import Annotated, Any

from device.memory.memory_config import MemoryConfig
from ops.planners.rotate import RotateArguments, plan_rotate, require_numbers
from ttsim.api.device_calls import cached_plan, carried_out, operation, required_device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import Kind


def _place(value: Any) -> tuple[float, float]:
    x, y = value
    return float(x), float(y)


Place = Annotated[tuple[float, float], Kind("two numbers", _place)]


@operation
def rotate(
    input_tensor: Tensor,
    angle: float,
    *,
    center: Place | None = None,
    fill: float = 0.0,
    expand: bool = False,
    interpolation_mode: str = "nearest",
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """Rotates images counterclockwise around a center; the size stays the same.

    Args:
        input_tensor: [N, H, W, C] on the device, bfloat16 or float32, in ROW_MAJOR layout, interleaved or in HEIGHT
            shards.
        angle: Degrees.
        center: Column and row; None for the middle of the image.
        fill: The number outside the image.
        expand: Must be False; the real library refuses larger images.
        interpolation_mode: "nearest", or "bilinear" for up to 256 channels, a multiple of 32.
        memory_config: Memory of the result; None for that of the images.

    Returns:
        [N, H, W, C].

    Raises:
        DeviceError: The real library refuses the call.
        ArgumentError: The device is strict, and the real library is wrong for "nearest" of float32 with ``fill``.

    Examples:
        >>> image = ttnn.from_numpy(np.array([[1, 2], [3, 4]]).reshape(1, 2, 2, 1), ttnn.bfloat16, device=device)
        >>> ttnn.rotate(image, 90.0).to_numpy()[0, :, :, 0].tolist()
        [[2.0, 4.0], [1.0, 3.0]]
    """
    device = required_device("rotate", input_tensor, lost="Input tensor must be allocated in buffers on device")
    call = RotateArguments(
        images=input_tensor.spec,
        angle=angle,
        center=center,
        fill=fill,
        expand=expand,
        mode=interpolation_mode,
        place=memory_config,
    )
    plan = cached_plan(plan_rotate, device, call)
    if device.strict:
        require_numbers(call)
    return carried_out("rotate", plan, input_tensor, device)
