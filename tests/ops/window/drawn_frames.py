"""Frames that hypothesis draws: of either kind of convolution, with padding on both sides, always with outputs."""

from typing import Any

from hypothesis import strategies as st

from ops.window import PaddedAxis, PaddedInput, convolution_axis, transposed_axis

small = st.integers(0, 3)
positive = st.integers(1, 4)


@st.composite
def axes(draw: Any) -> PaddedAxis:
    """Up to twelve inputs; paddings that would leave no output are left out."""
    length, kernel, stride = draw(st.integers(1, 12)), draw(positive), draw(positive)
    dilation, padding = draw(st.integers(1, 2)), (draw(small), draw(small))
    reach = dilation * (kernel - 1)
    if draw(st.booleans()):
        output_padding = draw(small)
        outputs = (length - 1) * stride - sum(padding) + reach + output_padding + 1
        return transposed_axis(
            input_length=length,
            kernel=kernel,
            stride=stride,
            padding=padding if outputs > 0 else (0, 0),
            output_padding=output_padding,
            dilation=dilation,
        )
    padding = padding if length + sum(padding) > reach else (reach, reach)
    return convolution_axis(input_length=length, kernel=kernel, stride=stride, padding=padding, dilation=dilation)


@st.composite
def frames(draw: Any, *, replicates: bool = True) -> PaddedInput:
    """Of one to three images, padded by zeros or, where a test may meet that, by their borders."""
    rows, columns = draw(axes()), draw(axes())
    return PaddedInput(
        batch=draw(st.integers(1, 3)), rows=rows, columns=columns, replicate=replicates and draw(st.booleans())
    )
