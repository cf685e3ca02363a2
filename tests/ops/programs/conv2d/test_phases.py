"""Phases of an axis: every output once, and under each tap exactly the inputs the frame holds there."""

from hypothesis import given
from hypothesis import strategies as st

from ops.programs.conv2d.phases import OutputPhase, PhaseTap, output_phases
from ops.programs.halo.frame import Frame, FrameAxis, frame_sources, transposed_axis

ALONE = FrameAxis(input_length=1, before=0, after=0, kernel=1)


@st.composite
def axes(draw):
    """Axes of all kinds; a negative `before` or `after` comes from padding by more than the window."""
    sizes = {name: draw(st.integers(1, 6)) for name in ("kernel", "dilation", "insertion", "step")}
    reach = sizes["dilation"] * (sizes["kernel"] - 1)
    before, after, trailing = draw(st.integers(-4, 8)), draw(st.integers(-4, 8)), draw(st.integers(0, 4))
    length = draw(st.integers(1, 12))
    lacking = reach + 1 - (before + (length - 1) * sizes["insertion"] + 1 + after + trailing)
    return FrameAxis(input_length=length, before=before, after=after + max(0, lacking), trailing=trailing, **sizes)


def met_by_definition(axis):
    """{(output, tap): input} from the list of what the frame holds."""
    sources = frame_sources(Frame(batch=1, rows=axis, columns=ALONE), 0, axis.length)
    return {
        (output, tap): int(source)
        for output in range(axis.outputs)
        for tap in range(axis.kernel)
        if (source := sources[output * axis.step + tap * axis.dilation]) >= 0
    }


def met_by_phases(axis):
    return {
        (phase.first + m * phase.distance, tap.tap): tap.start + m * phase.stride
        for phase in output_phases(axis)
        for tap in phase.taps
        for m in range(phase.count)
        if 0 <= tap.start + m * phase.stride < axis.input_length
    }


@given(axes())
def test_phases_hold_every_output_once(axis):
    outputs = [phase.first + m * phase.distance for phase in output_phases(axis) for m in range(phase.count)]
    assert sorted(outputs) == list(range(axis.outputs))


@given(axes())
def test_phases_meet_what_the_frame_holds(axis):
    assert met_by_phases(axis) == met_by_definition(axis)


@given(axes())
def test_a_tap_is_listed_only_if_it_meets_an_input(axis):
    met = met_by_phases(axis)
    for phase in output_phases(axis):
        outputs = range(phase.first, axis.outputs, phase.distance)
        assert [tap.tap for tap in phase.taps] == sorted({tap.tap for tap in phase.taps})
        for tap in phase.taps:
            inputs = [tap.start + m * phase.stride for m in range(phase.count)]
            assert max(inputs) >= 0
            assert min(inputs) < axis.input_length
            assert phase.stride > 1 or any((output, tap.tap) in met for output in outputs)


def test_stride_2_kernel_3():
    """Frame 0 x 0 x 0 x 0 0: even outputs meet an input under the middle tap, odd ones under the outer two."""
    axis = transposed_axis(input_length=3, kernel=3, stride=2, padding=(1, 1), output_padding=1, dilation=1)
    assert output_phases(axis) == (
        OutputPhase(first=0, distance=2, count=3, stride=1, taps=(PhaseTap(1, 0),)),
        OutputPhase(first=1, distance=2, count=3, stride=1, taps=(PhaseTap(0, 0), PhaseTap(2, 1))),
    )


def test_overpadded_axes_meet_nothing():
    axis = transposed_axis(input_length=6, kernel=2, stride=1, padding=(2, 0), output_padding=0, dilation=1)
    assert [phase.taps for phase in output_phases(axis)] == [()]
