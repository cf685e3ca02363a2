"""Axes with as much padding at one end as at the other."""

from ops.window import PaddedAxis, convolution_axis, transposed_axis


def transposed(length: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> PaddedAxis:
    return transposed_axis(
        input_length=length, kernel=kernel, stride=stride, padding=(padding, padding), output_padding=0,
        dilation=dilation,
    )  # fmt: skip


def strided(length: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> PaddedAxis:
    return convolution_axis(
        input_length=length, kernel=kernel, stride=stride, padding=(padding, padding), dilation=dilation
    )
