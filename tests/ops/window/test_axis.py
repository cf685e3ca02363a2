"""The closed forms of an axis against windows that are slid along it one by one."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ops.window import (
    PaddedAxis,
    PaddedInput,
    axis_of_windows,
    convolution_axis,
    count_met_taps,
    count_windows,
    frame_sources,
    index_of,
    margins,
    output_phases,
    phase_margins,
    transposed_axis,
)

SIZES = {
    "input_length": st.integers(1, 7),
    "outputs": st.integers(1, 12),
    "kernel": st.integers(1, 5),
    "start": st.integers(-9, 9),
    "dilation": st.integers(-4, 4),
    "stride": st.integers(1, 4),
    "input_dilation": st.integers(1, 4),
}
ATTRIBUTES = {
    "kernel": st.integers(1, 5),
    "stride": st.integers(1, 4),
    "padding": st.tuples(st.integers(0, 6), st.integers(0, 6)),
    "dilation": st.integers(0, 3),
}


def positions(axis):
    """[outputs][taps] where every tap of every window lies, counted from the first input."""
    return [
        [m * axis.stride + axis.start + tap * axis.dilation for tap in range(axis.kernel)] for m in range(axis.outputs)
    ]


def met(axis):
    """{(output, tap): input}, position by position."""
    inputs = {number * axis.input_dilation: number for number in range(axis.input_length)}
    return {
        (m, tap): inputs[place]
        for m, window in enumerate(positions(axis))
        for tap, place in enumerate(window)
        if place in inputs
    }


@given(st.fixed_dictionaries(SIZES))
def test_an_axis_of_windows_has_just_these_windows(sizes):
    axis = axis_of_windows(**sizes)
    assert {name: getattr(axis, name) for name in sizes} == sizes
    places = [place for window in positions(axis) for place in window]
    assert (-axis.before, axis.last) == (min(places), max(places))
    assert axis.length == max(places) - min(places) + 1


@given(st.lists(st.fixed_dictionaries({**SIZES, "input_dilation": st.just(1), "input_length": st.just(5)}), max_size=3))
def test_margins_are_what_windows_reach_around_the_inputs(several):
    axes = [axis_of_windows(**sizes) for sizes in several]
    places = [place for axis in axes for window in positions(axis) for place in window]
    assert margins(axes) == (max(0, -min(places, default=0)), max(0, max(places, default=0) - 4))


@given(st.integers(1, 7), st.fixed_dictionaries(ATTRIBUTES), st.integers(0, 3))
def test_a_transposed_axis_scatters_every_input(length, attributes, output_padding):
    """Input p and tap k, of the mirrored kernel, meet at output ``p * stride + k * dilation - padding``."""
    kernel, stride, (before, after), dilation = (attributes[name] for name in ATTRIBUTES)
    outputs = (length - 1) * stride + dilation * (kernel - 1) + 1 - before - after + output_padding
    if outputs < 1:
        with pytest.raises(ValueError, match="does not fit a frame"):
            transposed_axis(input_length=length, output_padding=output_padding, **attributes)
        return
    axis = transposed_axis(input_length=length, output_padding=output_padding, **attributes)
    assert axis.outputs == outputs
    assert met(axis) == {
        (output, kernel - 1 - k): p
        for p in range(length)
        for k in range(kernel)
        if 0 <= (output := p * stride + k * dilation - before) < outputs
    }


@given(st.integers(1, 12), st.fixed_dictionaries(ATTRIBUTES))
def test_a_convolution_axis_gathers_windows(length, attributes):
    kernel, stride, (before, after), dilation = (attributes[name] for name in ATTRIBUTES)
    outputs = count_windows(length + before + after, dilation * (kernel - 1), stride)
    if outputs < 1:
        with pytest.raises(ValueError, match="does not fit a frame"):
            convolution_axis(input_length=length, **attributes)
        return
    axis = convolution_axis(input_length=length, **attributes)
    assert axis.outputs == outputs
    assert met(axis) == {
        (output, k): place
        for output in range(outputs)
        for k in range(kernel)
        if 0 <= (place := output * stride + k * dilation - before) < length
    }


def test_data_before_counts_only_what_the_frame_holds():
    axis = PaddedAxis(input_length=4, before=1, after=-3, input_dilation=2, kernel=2)
    assert (axis.length, axis.data) == (5, 2)  # 0 x 0 x 0: the last two inputs are cut off
    assert [int(count) for count in axis.data_before(np.arange(6))] == [0, 0, 1, 1, 2, 2]


def test_padding_beyond_the_window_makes_everything_padding():
    """As the real library does: its unsigned padding wraps around."""
    axis = transposed_axis(input_length=4, kernel=2, stride=2, padding=(2, 0), output_padding=0, dilation=1)
    assert (axis.before, axis.data) == (-1, 0)


def test_what_has_no_window_is_refused():
    with pytest.raises(
        ValueError, match=r"^PaddedAxis: a window that spans 5 positions does not fit a frame of 3; use"
    ):
        convolution_axis(input_length=3, kernel=5, stride=1, padding=(0, 0), dilation=1)
    with pytest.raises(ValueError, match=r"must be at least 1, and .*not \(0, 1, 1, 1\) and 2$"):
        convolution_axis(input_length=0, kernel=2, stride=1, padding=(1, 1), dilation=1)
    with pytest.raises(ValueError, match=r"kernel at least 0, not \(3, 1, 1, 1\) and -1$"):
        convolution_axis(input_length=3, kernel=-1, stride=1, padding=(0, 0), dilation=1)


ALONE = PaddedAxis(input_length=1, before=0, after=0, kernel=1)
PLACES = {"output_offset": st.integers(0, 3), "output_stride": st.integers(1, 3)}
WINDOWS = st.builds(axis_of_windows, **SIZES, **PLACES)


@st.composite
def padded(draw):
    """Axes of all kinds of padding; a negative ``before`` or ``after`` comes from padding by more than the window."""
    sizes = {name: draw(st.integers(1, 6)) for name in ("kernel", "input_dilation", "stride")}
    spacing, length = draw(st.integers(0, 6)), draw(st.integers(1, 12))
    before, after, trailing = draw(st.integers(-4, 8)), draw(st.integers(-4, 8)), draw(st.integers(0, 4))
    reach = spacing * (sizes["kernel"] - 1)
    lacking = max(0, reach + 1 - (before + (length - 1) * sizes["input_dilation"] + 1 + after + trailing))
    return PaddedAxis(
        input_length=length, before=before, after=after + lacking, trailing=trailing, dilation=spacing, **sizes
    )


AXES = WINDOWS | padded()


def meetings(axis):
    """{(place in the result, tap): input} for every tap that meets an input."""
    return {(axis.output_offset + m * axis.output_stride, tap): number for (m, tap), number in met(axis).items()}


@given(AXES)
def test_phases_hold_every_output_once(axis):
    result = range(axis.output_offset + axis.outputs * axis.output_stride)
    places = [place for phase in output_phases(axis) for place in result[phase.axis.places]]
    assert sorted(places) == list(result[axis.places])


@given(AXES)
def test_phases_meet_every_input_that_the_axis_meets(axis):
    together, count = {}, 0
    for phase in output_phases(axis):
        assert phase.axis.input_dilation == 1
        assert len(phase.taps) == phase.axis.kernel
        own = {(place, phase.taps[tap]): number for (place, tap), number in meetings(phase.axis).items()}
        together |= own
        count += phase.axis.outputs * len({tap for _, tap in own})
    assert together == meetings(axis)
    assert count_met_taps(axis) == count


@given(AXES)
def test_a_tap_is_listed_only_if_it_reaches_the_inputs(axis):
    reached = {tap for _, tap in meetings(axis)}
    for phase in output_phases(axis):
        assert list(phase.taps) == sorted(set(phase.taps))
        for tap, start in zip(phase.taps, phase.starts, strict=True):
            assert start < axis.input_length
            assert start + (phase.axis.outputs - 1) * phase.axis.stride >= 0
            assert phase.axis.stride > 1 or tap in reached  # a longer step may leap over all inputs


@given(padded())
def test_phases_meet_what_the_frame_holds(axis):
    """As the halo fills it, unless windows begin behind the first input: then the real library leaves it empty."""
    sources = frame_sources(PaddedInput(batch=1, rows=axis, columns=ALONE), 0, axis.length)
    held = {
        (output, tap): int(source)
        for output in range(axis.outputs)
        for tap in range(axis.kernel)
        if (source := sources[output * axis.stride + tap * axis.dilation]) >= 0
    }
    assert held == (meetings(axis) if axis.before >= 0 else {})


def test_stride_2_kernel_3():
    """Frame 0 x 0 x 0 x 0 0: even outputs meet an input under the middle tap, odd ones under the outer two."""
    axis = transposed_axis(input_length=3, kernel=3, stride=2, padding=(1, 1), output_padding=1, dilation=1)
    even, odd = output_phases(axis)
    assert count_met_taps(axis) == 3 * 1 + 3 * 2
    assert (even.axis.places, even.taps, even.starts) == (slice(0, 5, 2), range(1, 2), (0,))
    assert (odd.axis.places, odd.taps, odd.starts) == (slice(1, 6, 2), range(0, 3, 2), (0, 1))


def test_taps_that_step_over_a_small_image_do_not_count():
    """1 input, 7 taps, 5 zeros around, stride 4: output 0 meets the input under tap 5 only, output 1 under tap 1."""
    axis = convolution_axis(input_length=1, kernel=7, stride=4, padding=(5, 5), dilation=1)
    (phase,) = output_phases(axis)
    assert (phase.taps, phase.starts) == (range(1, 6), (-4, -3, -2, -1, 0))
    assert count_met_taps(axis) == 2 * 2


def test_backward_taps_meet_the_same_inputs_in_the_other_order():
    """Kernel 4, stride 2: taps 3 to 0 of the mirrored kernel; the first output is two positions before the inputs."""
    axis = axis_of_windows(input_length=3, outputs=6, kernel=4, start=2, dilation=-1, input_dilation=2)
    even, odd = output_phases(axis)
    assert (even.taps, even.starts, even.axis.dilation) == (range(0, 3, 2), (1, 0), -1)
    assert (odd.taps, odd.starts, odd.axis.dilation) == (range(1, 4, 2), (1, 0), -1)


@pytest.mark.parametrize("taps", [range(0), range(3), range(1, 8, 2), range(4, -1, -1), range(5, -1, -3)])
def test_a_range_picks_its_own_indices(taps):
    assert list(range(10))[index_of(taps)] == list(taps)


def test_margins_of_all_phases():
    """A 3x3 window meets three inputs; of a 2x2 kernel with stride 2 each output meets one, and no zeros."""
    assert phase_margins(PaddedAxis(input_length=4, before=1, after=1, kernel=3)) == (1, 1, False)
    assert phase_margins(PaddedAxis(input_length=4, before=1, after=1, input_dilation=2, kernel=2)) == (0, 0, True)
    assert phase_margins(PaddedAxis(input_length=4, before=2, after=2, input_dilation=2, kernel=3)) == (1, 1, False)
