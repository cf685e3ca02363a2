"""Convolutions that tests share, laid out as the library lays them out."""

from typing import Any

from device.memory.memory_config import TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from device.spec.device_spec import DeviceSpec, load_spec
from ops.programs.conv2d.partition import (
    ConvOptions,
    ConvPartition,
    ConvProblem,
    choose_cores,
    partition_conv,
    scheme_alignment,
)
from ops.window import PaddedInput, convolution_axis, transposed_axis

SPEC = load_spec("wormhole_n150")


def conv_problem(frame: PaddedInput, channels: tuple[int, int] = (64, 64), **fields: Any) -> ConvProblem:
    """A convolution of bfloat16 rows."""
    formats = dict.fromkeys(("in_format", "weight_format", "out_format"), BFLOAT16)
    return ConvProblem(
        frame=frame, in_channels=channels[0], out_channels=channels[1], **{**formats, "row_major": True, **fields}
    )


def doubled(height: int = 8, width: int = 8, batch: int = 1, kernel: int = 3) -> PaddedInput:
    """The frame of images that a transposed convolution makes twice as large."""
    rows, columns = (
        transposed_axis(input_length=length, kernel=kernel, stride=2, padding=(1, 1), output_padding=1, dilation=1)
        for length in (height, width)
    )
    return PaddedInput(batch=batch, rows=rows, columns=columns)


def column(outputs: int, kernel: tuple[int, int] = (1, 1), dilation: int = 1) -> PaddedInput:
    """A frame of so many outputs below each other."""
    reach = (kernel[1] - 1) * dilation
    rows = convolution_axis(
        input_length=outputs + kernel[0] - 1, kernel=kernel[0], stride=1, padding=(0, 0), dilation=1
    )
    columns = convolution_axis(input_length=reach + 1, kernel=kernel[1], stride=1, padding=(0, 0), dilation=dilation)
    return PaddedInput(batch=1, rows=rows, columns=columns)


def partitioned(
    problem: ConvProblem,
    scheme: TensorMemoryLayout,
    spec: DeviceSpec = SPEC,
    *,
    alignment: int | None = None,
    matmul: bool = False,
    choices: ConvOptions | None = None,
    **options: Any,
) -> ConvPartition:
    """A convolution with the library's cores and blocks; choices are given together or one by one."""
    alignment, choices = (
        alignment or scheme_alignment(problem, scheme, matmul=matmul),
        choices or ConvOptions(**options),
    )
    config = choose_cores(problem, choices, spec, scheme, alignment=alignment, matmul=matmul)
    return partition_conv(problem, choices, spec, config, alignment=alignment, matmul=matmul)
