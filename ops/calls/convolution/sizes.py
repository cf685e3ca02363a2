"""Which convolutions no device can hold: found by arithmetic, before anything is planned."""

from math import prod
from typing import Final

from device.errors import ArgumentError, OutOfMemoryError
from device.numbers.formats import DataFormat
from device.numbers.integers import round_up
from device.spec.device_spec import DeviceSpec
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.problem import image_shape, output_format, weight_format
from ops.frame.axis import FrameAxis, NoWindowError

POSITIONS: Final = 1 << 32  # the kernels of the real library count positions in 32 bits


def require_addressable(call: ConvArguments, spec: DeviceSpec) -> None:
    """Refuses a call whose frame 32 bits cannot count, or whose tensors are larger than the DRAM of a device.

    Args:
        call: A call whose sizes were checked one by one.

    Raises:
        ArgumentError: Input, padding and inserted zeros together have 2^32 positions or more.
        OutOfMemoryError: Input, output or weights alone are larger than DRAM.
    """
    try:
        axes: tuple[FrameAxis, ...] = (call.rules.axis(call, 0), call.rules.axis(call, 1))
    except NoWindowError:
        return
    positions = call.batch_size * prod(max(axis.length, axis.outputs) for axis in axes)
    name = call.rules.function
    if positions >= POSITIONS:
        raise ArgumentError(
            f"{name}: the padded input has {positions} positions ({call.batch_size} x {axes[0].length} x "
            f"{axes[1].length}), more than the 32-bit addresses of the device; use a smaller batch, input, stride, "
            "padding, output_padding or dilation, or make several calls"
        )
    outputs = call.batch_size * prod(axis.outputs for axis in axes)
    taps = prod(call.kernel_size) * call.in_channels // max(call.groups, 1)
    inputs = prod(image_shape(call)[:3])
    capacity = spec.dram.banks * spec.dram.usable_bytes
    for what, rows, columns, data_format in (
        ("input", inputs, call.in_channels, call.input.spec.data_format),
        ("output", outputs, call.out_channels, output_format(call)),
        ("weight matrix", taps, call.out_channels, weight_format(call)),
    ):
        wanted = rows * _row_bytes(columns, data_format, spec)
        if wanted > capacity:
            raise OutOfMemoryError(
                f"{name}: the {what}, {rows} rows of {columns} channels, takes at least {wanted} B, more than the "
                f"{capacity} B of DRAM of {spec.name}; use smaller sizes or another format, or make several calls"
            )


def _row_bytes(columns: int, data_format: DataFormat, spec: DeviceSpec) -> int:
    """Bytes that a row takes at least, in tiles or not."""
    return round_up(columns * (data_format.element_bytes or 1), min(spec.dram.alignment_bytes, 32))
