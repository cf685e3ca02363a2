"""Frames in the words of a SlidingWindowConfig, on arguments that are known."""

from device.cores import first_cores
from ops.window import PaddedAxis, PaddedInput, ranges_text, sliding_window_text

CORES = first_cores(10, 8, 8)


def told(axis: PaddedAxis) -> str:
    return sliding_window_text(PaddedInput(batch=2, rows=axis, columns=axis), CORES, nhw_cores=10, channel_cores=1)


def test_inserted_zeros_are_the_stride_of_a_transposed_convolution():
    """Kernel 3, stride 2, padding 1, output padding 1: 3 - 1 - 1 zeros ahead, and one more behind."""
    axis = PaddedAxis(input_length=16, before=1, after=1, input_dilation=2, trailing=1, kernel=3)
    assert told(axis) == (
        "SlidingWindowConfig(batch_size=2, input_hw=(16,16), window_hw=(3,3), stride_hw=(2,2), "
        "padding=((1, 1), (1, 1)), output_padding=(1, 1), dilation_hw=(1,1), num_cores_nhw=10, num_cores_c=1, "
        "core_range_set_={[(x=0,y=0) - (x=7,y=0)], [(x=0,y=1) - (x=1,y=1)]}, is_transpose=true)"
    )


def test_a_frame_without_them_is_that_of_a_convolution():
    text = told(PaddedAxis(input_length=16, before=1, after=0, kernel=3, stride=2, dilation=2))
    assert "stride_hw=(2,2), padding=((1, 0), (1, 0)), output_padding=(0, 0), dilation_hw=(2,2)" in text
    assert text.endswith("is_transpose=false)")


def test_cores_have_named_coordinates():
    assert ranges_text(first_cores(64, 8, 8)) == "{[(x=0,y=0) - (x=7,y=7)]}"
