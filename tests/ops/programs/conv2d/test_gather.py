"""Runs of rows: together they are a phase, and each knows its place."""

import numpy as np
import pytest

from device.host.threads import parts_of
from device.matrix_unit.arithmetic import EXACT, FAST
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, quantize
from ops.programs.conv2d import gather
from ops.programs.conv2d.gather import GatheredInput, prepare_image, runs, seen, strips
from tests.ops.programs.conv2d.value_cases import SPEC, Case, normal, work_of


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
