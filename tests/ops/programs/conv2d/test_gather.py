"""Runs of rows: together they are a phase, and each knows its place."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.host.threads import parts_of
from device.matrix_unit.arithmetic import EXACT, FAST
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, quantize
from ops.programs.conv2d import gather
from ops.programs.conv2d.gather import (
    GatheredInput,
    Strip,
    prepare_image,
    runs,
    seen,
    strips,
)
from ops.programs.conv2d.op import KBlock
from ops.window import PaddedAxis, output_phases, transposed_axis
from tests.ops.programs.conv2d.value_cases import SPEC, Case, normal, work_of


def axis(length, insertion, kernel):
    return PaddedAxis(input_length=length, before=kernel - 1, after=kernel - 1, input_dilation=insertion, kernel=kernel)


axes = st.builds(axis, st.integers(1, 9), st.integers(1, 3), st.integers(1, 4))


def strip(down, *across):
    return Strip(down, across, (), ())


@given(st.integers(1, 3), axes, axes, st.integers(1, 200))
def test_runs_of_all_phases_hold_every_output_once(batch, rows, columns, outputs):
    visits = np.zeros((batch, rows.outputs, columns.outputs, 1), int)
    for down in output_phases(rows):
        for across in output_phases(columns):
            for run in runs(batch, strip(down, across), outputs):
                place = run.place(visits)
                assert place.shape == (run.count, across.axis.outputs, 1, 1)
                assert run.outputs == run.count * across.axis.outputs
                assert run.outputs <= outputs or run.count == 1
                place += 1
    assert (visits == 1).all()


def test_runs_are_as_few_as_they_may_be_and_even():
    (down,), (across,) = output_phases(axis(10, 1, 1)), output_phases(axis(4, 1, 1))
    one = strip(down, across)
    assert [(run.first, run.count) for run in runs(1, one, 13)] == [(0, 3), (3, 3), (6, 3), (9, 1)]
    assert [(run.first, run.count) for run in runs(1, one, 31)] == [(0, 5), (5, 5)]
    assert [run.count for run in runs(1, one, 1)] == [1] * 10


def test_phases_side_by_side_have_a_view_in_common():
    down, columns = output_phases(axis(3, 1, 1))[0], axis(4, 2, 2)
    across = [phase for phase in output_phases(columns) if phase.axis.outputs == 4]
    result = np.zeros((1, 3, columns.outputs, 2), int)
    (run,) = runs(1, strip(down, *across), 100)
    run.place(result)[...] = np.array([1, 2])[:, None]
    assert result[0, 1, :, 0].tolist() == [1, 2] * 4 + [0] * (columns.outputs - 8)


@pytest.mark.parametrize(
    ("kernel", "stride", "together"),
    [(2, 2, [2]), (3, 3, [3]), (2, 3, [1, 1, 1]), (3, 2, [1, 1]), (4, 2, [2]), (3, 1, [1])],
    ids=str,
)
def test_phases_that_meet_the_same_inputs_are_taken_together(kernel, stride, together):
    """Where they fill the row between them, so that the outputs of one input lie side by side."""
    columns = transposed_axis(
        input_length=5, kernel=kernel, stride=stride, padding=(0, 0), output_padding=0, dilation=1
    )
    block = KBlock(
        kernel_rows=range(1), first_channel=0, channels=32, weight_row=0, weight_stride=32, weight_channels=32
    )
    found = strips((block,), axis(4, 1, 1), columns, (0, 2))
    places = [place for one in found for across in one.across for place in range(columns.outputs)[across.axis.places]]
    assert sorted(places) == list(range(columns.outputs))
    assert [len(one.across) for one in found] == together
    for one in found:  # 32 weight rows for each tap
        assert [rows[:1].tolist() for rows in one.rows] == [
            [32 * tap for tap in across.taps[:1]] for across in one.across
        ]
    assert strips((block,), axis(4, 1, 1), columns, (0, 2)) is found


@pytest.mark.parametrize("arithmetic", [FAST, EXACT], ids=["fast", "exact"])
@pytest.mark.parametrize("out_format", [BFLOAT16, BFLOAT8_B, FLOAT32], ids=str)
def test_an_image_is_converted_in_parts_and_held_as_narrow_as_it_is(monkeypatch, out_format, arithmetic):
    """Two images of 40 rows, of which 34 are converted at a time, inside a margin of a row and two columns."""
    case = Case(
        batch=2, size=(40, 40), channels=48, kernel=(2, 3), stride=(1, 1), in_format=FLOAT32, out_format=out_format
    )
    monkeypatch.setattr(gather, "CONVERTED_TOGETHER", 1 << 16)
    assert [len(range(40)[part]) for part in parts_of(40, 40 * 48, 1 << 16)] == [34, 6]
    context = GatheredInput(work_of(case), arithmetic, SPEC)
    sticks = np.asfortranarray(quantize(normal(1)((2 * 40 * 40, 48)), FLOAT32))
    image = prepare_image(context, sticks)
    assert (image.pixels.dtype, image.top, image.left) == (out_format.storage, 1, 2)
    inside = image.pixels[:, 1:-1, 2:-2, :48].astype(np.float32)
    assert np.array_equal(inside, seen(context, np.array(sticks, order="C")).reshape(inside.shape))
    assert np.count_nonzero(image.pixels) == np.count_nonzero(inside)


@pytest.mark.parametrize("in_format", [BFLOAT16, FLOAT32], ids=str)
def test_an_image_that_is_converted_block_by_block_is_held_as_it_came(in_format):
    case = Case(size=(3, 4), channels=8, in_format=in_format, out_format=BFLOAT8_B)
    sticks = quantize(normal(2)((12, 8)), in_format)
    image = prepare_image(GatheredInput(work_of(case), FAST, SPEC), sticks)
    assert image.pixels.dtype == in_format.storage
    assert np.array_equal(image.pixels[0, image.top :, image.left :][:3, :4, :8].reshape(12, 8), sticks)


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        ({}, True),
        ({"kernel": (2, 3), "stride": (2, 3)}, True),
        ({"kernel": (3, 3)}, False),  # outputs meet several taps, with zeros around the image
        ({"channels": 40}, True),
        ({"channels": 20}, False),  # shards have 24 channels
        ({"in_format": FLOAT32}, False),
        ({"in_format": BFLOAT8_B, "out_format": BFLOAT8_B}, True),
        ({"out_format": BFLOAT8_B}, False),  # neighbors share an exponent from here on
    ],
    ids=str,
)
@pytest.mark.parametrize("cut_later", [False, True])
def test_an_image_is_the_input_where_it_would_only_be_cut(change, stays, cut_later):
    """LoFi multiplies six of eight bits of an activation; what is gathered is the same either way."""
    case = Case(**{"size": (3, 4), "channels": 48, "kernel": (2, 2), "fidelity_phases": 1, **change})
    context = GatheredInput(work_of(case), FAST, SPEC)
    sticks = quantize(normal(2)((12, case.channels)), case.in_format)
    image = prepare_image(context, sticks, cut_later=cut_later)
    assert np.shares_memory(image.pixels, sticks) == (stays and cut_later)
    assert image.is_cut != (stays and cut_later)
    frame = context.op.problem.frame
    met = [
        (block, run)
        for one in strips(context.op.k_blocks, frame.rows, frame.columns, (image.top, image.left))
        for run in runs(1, one, 100)
        for block in one.blocks
        if block.taps
    ]
    bits = [gather.gather(context, image, block, run).view(np.uint32) for block, run in met]
    whole = prepare_image(context, sticks)
    expected = [gather.gather(context, whole, block, run).view(np.uint32) for block, run in met]
    assert all(map(np.array_equal, bits, expected))
    assert not any((some & 0x1FFFF).any() for some in bits)
