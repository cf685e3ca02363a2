"""A call of max_pool2d, and its checks."""

from dataclasses import dataclass
from typing import NoReturn

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import MemoryConfig, ShardOrientation, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, INT32, UINT32, DataFormat
from device.numbers.integers import div_up
from ops.frame.axis import FrameAxis, NoWindowError
from ops.frame.frame import Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolArguments:
    """A call."""

    source: TensorSpec  # The images, [1, 1, N*H*W, C] or [N, H, W, C]
    batch: int
    image: tuple[int, int]  # H and W
    channels: int
    kernel: tuple[int, int]  # Rows and columns of a window
    stride: tuple[int, int]  # From one window to the next, down and across
    padding: tuple[int, int, int, int]  # Above, below, at the left and at the right
    dilation: tuple[int, int]  # From one tap to the next, down and across
    ceil_mode: bool = False  # Windows may end behind the padding
    scheme: TensorMemoryLayout | None = None  # How an interleaved tensor is sharded; None lets the call choose
    place: MemoryConfig | None = None  # Where the result goes; None for where the program leaves it
    deallocate_input: bool = False  # The sharded input is released once it is read
    reallocate_halo: bool = True  # The sticks are moved up into the room that it leaves
    data_format: DataFormat = BFLOAT16
    tiled: bool = False  # The result is in tiles
    # What tells the programs where windows lie is kept in DRAM, and read from there
    config_tensor_in_dram: bool = False
    return_indices: bool = False  # The place of each maximum in its image is wanted as well, which is not simulated

    @property
    def frame(self) -> Frame:
        """The images with what lies around them."""
        top, bottom, left, right = self.padding
        rows, columns = (
            self._axis(axis, before, after) for axis, (before, after) in enumerate(((top, bottom), (left, right)))
        )
        return Frame(batch=self.batch, rows=rows, columns=columns)

    def _axis(self, axis: int, before: int, after: int) -> FrameAxis:
        length, taps, step, spacing = (one[axis] for one in (self.image, self.kernel, self.stride, self.dilation))
        if self.ceil_mode:
            room = length + before + after - spacing * (taps - 1) - 1
            outputs = div_up(room, step) + 1
            if (outputs - 1) * step >= length + before:  # the last window would begin behind the image
                outputs -= 1
            after += max(0, (outputs - 1) * step - room)
        return FrameAxis(input_length=length, before=before, after=after, taps=taps, spacing=spacing, step=step)


def validate(call: PoolArguments) -> None:
    """Refuses what the real library refuses; the first line of the error is its own.

    Raises:
        DeviceError: A size is zero, the windows do not fit, or the formats do not go together.
    """
    if call.data_format != BFLOAT16 and not call.data_format.is_block:
        _refuse(
            "Currently only BFLOAT16, BFLOAT8_B, and BFLOAT4_B output data formats are supported",
            f"dtype: a pool gives no {call.data_format}; leave it out, and typecast the result",
        )
    if not call.tiled and call.data_format.is_block:
        _refuse(
            "BFLOAT8_B/BFLOAT4_B output data format is not supported with ROW_MAJOR layout",
            "output_layout: block floats need ttsim.TILE_LAYOUT",
        )
    sizes = {
        "Batch size": call.batch,
        "Input height": call.image[0],
        "Input width": call.image[1],
        "Channels": call.channels,
    }
    for name, value in sizes.items():
        if value < 1:
            _refuse(f"Pool2D: {name} must be greater than 0, got {value}", "give the sizes of the images")
    for name, pair in (("Kernel size", call.kernel), ("Stride", call.stride), ("Dilation", call.dilation)):
        if min(pair) < 1:
            _refuse(
                f"Pool2D: {name} must be greater than 0 in both dimensions, got ({pair[0]}, {pair[1]})",
                "give two positive numbers",
            )
    top, bottom, left, right = call.padding
    if max(top, bottom) > call.kernel[0] // 2 or left > call.kernel[1] // 2:
        _refuse(
            f"Pool2D: Padding ({top}, {bottom}, {left}) should not exceed half of kernel size "
            f"({call.kernel[0]}, {call.kernel[1]})",
            "padding: use less, or a larger kernel",
        )
    reach = tuple(spacing * (taps - 1) + 1 for spacing, taps in zip(call.dilation, call.kernel, strict=True))
    room = (call.image[0] + top + bottom, call.image[1] + left + right)
    if reach[0] > room[0] or reach[1] > room[1]:
        _refuse(
            f"Pool2D: Effective kernel size ({reach[0]}, {reach[1]}) cannot exceed padded input size "
            f"({room[0]}, {room[1]})",
            "kernel_size, dilation: give windows that fit the padded images",
        )
    try:
        outputs = call.frame.outputs
    except NoWindowError:
        outputs = 0
    if outputs < 1:
        _refuse("Pool2D: Computed output dimensions must be positive", "the windows are larger than the padded images")
    if call.source.volume != call.batch * call.image[0] * call.image[1] * call.channels:
        _refuse(
            f"Input tensor shape {list(call.source.shape)} does not match expected shape "
            f"(1, 1, {call.batch * call.image[0] * call.image[1]}, {call.channels})",
            "batch_size, input_h, input_w and channels must be those of the tensor",
        )
    shards = call.source.memory_config.shard_spec
    if shards is not None and call.scheme is not None:
        _refuse(
            "A sharding scheme should not be specified for a sharded input tensor.",
            "applied_shard_scheme: leave it out",
        )
    if shards is not None and shards.orientation is not ShardOrientation.ROW_MAJOR:
        _refuse("Only row major orientation is supported.", "input_tensor: reshard it")


def require_numbers(call: PoolArguments) -> None:
    """Refuses what the real library accepts and gets wrong: integers of 32 bits, which it takes for bfloat16.

    Raises:
        DeviceError: The images hold such integers.
    """
    if call.source.data_format in (INT32, UINT32):
        raise DeviceError(
            f"max_pool2d: input_tensor holds {call.source.data_format}, whose bytes the real library takes for "
            "bfloat16; typecast it to bfloat16 first"
        )


def _refuse(first: str, way_out: str) -> NoReturn:
    raise DeviceError(f"{first}\n{way_out}")
