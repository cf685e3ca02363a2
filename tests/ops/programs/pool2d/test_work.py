"""The largest number of each window, and what finding it takes."""

from dataclasses import replace

import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT, FAST
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from ops.op_model import ValuesContext
from ops.op_models import load_spec as load_spec_with_costs
from ops.programs.pool2d import MaxPool, largest, window_cycles
from ops.window import PaddedAxis, PaddedInput


def axis(length, taps, step, before=0, spacing=1):
    return PaddedAxis(input_length=length, before=before, after=before, kernel=taps, dilation=spacing, stride=step)


def work(rows, columns, channels=1, spacing=1):
    frame = PaddedInput(batch=1, rows=rows, columns=columns)
    return MaxPool(
        frame=frame, channels=channels, channel_cores=1, core_outputs=1, in_format=BFLOAT16, data_format=BFLOAT16,
        tiled=False,
    )  # fmt: skip


def pooled(one, image):
    reading = ValuesContext(spec=load_spec("wormhole_n150"), arithmetic=EXACT)
    return largest(one, [image], reading).reshape(one.frame.rows.outputs, one.frame.columns.outputs).tolist()


IMAGE = np.float32([[1, -2, 3], [-4, -5, -6], [7, 8, -9]]).reshape(1, 1, 9, 1)


def test_windows_move_by_their_stride():
    assert pooled(work(axis(3, 2, 1), axis(3, 2, 1)), IMAGE) == [[1, 3], [8, 8]]
    assert pooled(work(axis(3, 2, 1), axis(3, 1, 2)), IMAGE) == [[1, 3], [7, -6]]


def test_what_lies_around_is_less_than_every_number():
    below = -np.abs(IMAGE)
    assert pooled(work(axis(3, 2, 2, before=1), axis(3, 2, 2, before=1)), below) == [[-1, -2], [-4, -5]]


def test_taps_lie_apart():
    assert pooled(work(axis(3, 2, 1, spacing=2), axis(3, 2, 1, spacing=2)), IMAGE) == [[7]]


@pytest.mark.parametrize("device", ["wormhole_n150", "blackhole_p150"])
def test_neighbors_are_read_in_one_burst(device):
    """Three taps beside each other are one burst; three taps apart are three."""
    spec = load_spec_with_costs(device)
    together, _, _ = window_cycles(work(axis(8, 1, 1), axis(8, 3, 1), 2048), spec)
    apart, _, _ = window_cycles(work(axis(8, 1, 1), axis(8, 3, 1, spacing=2), 2048), spec)
    assert together == apart == 3 * 4096 / spec.noc.link_bytes_per_cycle  # long ones take what the wire takes
    together, _, _ = window_cycles(work(axis(8, 1, 1), axis(8, 3, 1), 8), spec)
    apart, _, _ = window_cycles(work(axis(8, 1, 1), axis(8, 3, 1, spacing=2), 8), spec)
    assert apart == 3 * together


def test_rows_and_columns_that_fill_shards_are_no_pixels():
    """Two images of 2 x 1 pixels of one channel, in sticks of three numbers, and a stick that fills a shard."""
    one = work(axis(2, 2, 1), axis(1, 1, 1))
    one = replace(one, frame=replace(one.frame, batch=2))
    sticks = np.float32([[1, 9, 9], [2, 9, 9], [4, 9, 9], [3, 9, 9], [8, 8, 8]]).reshape(1, 1, 5, 3)
    reading = ValuesContext(spec=load_spec("wormhole_n150"), arithmetic=EXACT)
    assert largest(one, [sticks], reading).tolist() == [[[[2], [4]]]]


def test_channels_of_a_block_float_share_an_exponent():
    """Beside 64, seven bits leave 1 of 1.25; of 17 channels the last has neighbors of its own."""
    one = replace(work(axis(1, 1, 1), axis(1, 1, 1), channels=17), data_format=BFLOAT8_B, tiled=True)
    sticks = np.float32([64, *[1.25] * 16]).reshape(1, 1, 1, 17)
    reading = ValuesContext(spec=load_spec("wormhole_n150"), arithmetic=EXACT)
    assert largest(one, [sticks], reading).ravel().tolist() == [64, *[1] * 15, 1.25]


@pytest.mark.parametrize("data_format", [BFLOAT16, BFLOAT8_B])
@pytest.mark.parametrize("arithmetic", [EXACT, FAST], ids=["exact", "fast"])
def test_bands_change_nothing(monkeypatch, data_format, arithmetic):
    """Two images of 13 x 6 pixels with rows of windows that overlap, begin in the padding, and leave a row over."""
    one = work(axis(13, 3, 2, before=1), axis(6, 2, 2, before=1, spacing=2), channels=3)
    one = replace(one, frame=replace(one.frame, batch=2), data_format=data_format)
    sticks = np.random.default_rng(1).standard_normal((1, 1, 2 * 13 * 6, 3), dtype=np.float32).astype(BFLOAT16.storage)
    reading = ValuesContext(spec=load_spec("wormhole_n150"), arithmetic=arithmetic)
    whole = largest(one, [sticks], reading)
    assert whole.shape == (1, 1, 2 * one.frame.rows.outputs * one.frame.columns.outputs, 3)
    for numbers in (1, 100):
        monkeypatch.setattr("device.host.parts.PART_ELEMENTS", numbers)
        assert largest(one, [sticks], reading).tobytes() == whole.tobytes()
