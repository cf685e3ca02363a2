"""Slices: they cover the output, each computes its part of it, and the smallest number that fits is chosen."""

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from device.errors import DeviceError
from device.memory.memory_config import Layout, TensorMemoryLayout
from device.spec.device_spec import load_spec
from ops.planners.conv import slicing
from ops.planners.conv.arguments import SliceType
from ops.reference import conv_transpose_channels_last
from tests.build import changed, cut, geometry_of, sized_call

SPEC = load_spec("wormhole_n150")
DOWN, ACROSS = SliceType.DRAM_HEIGHT, SliceType.DRAM_WIDTH
KINDS = (DOWN, ACROSS)
LAYOUTS = (Layout.ROW_MAJOR, Layout.TILE)


def call(size, channels=4, out_channels=4, kernel=(3, 3), *, layout=Layout.TILE, scheme=None, **changes):
    changes |= {"output_layout": layout, "shard_layout": scheme}
    return sized_call(size, (channels, out_channels), kernel, **changes)


@st.composite
def calls(draw):
    """Calls of every geometry, with the padding an output needs to exist."""
    kernel, dilation, stride = (draw(st.tuples(st.integers(1, 4), st.integers(1, 4))) for _ in range(3))
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    result = call(
        draw(st.tuples(st.integers(1, 40), st.integers(1, 60))),
        kernel=kernel,
        stride=stride,
        padding=tuple(draw(st.integers(0, reach[n])) for n in (0, 0, 1, 1)),
        output_padding=tuple(draw(st.integers(0, s - 1)) for s in stride),
        dilation=dilation,
        layout=draw(st.sampled_from(LAYOUTS)),
    )
    assume(min(geometry_of(result).output_shape) > 0)
    return result


def pixels(made, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, (made.batch_size, made.input_height, made.input_width, made.in_channels))
    return x, rng.integers(-3, 4, (made.in_channels, made.out_channels, *made.kernel_size))


def part_of(made, part, x, w):
    """What a slice's own call computes of its window of the input, without the columns that fill its last tile."""
    window = x[:, part.down.start : part.down.stop, part.across.start : part.across.stop]
    computed = conv_transpose_channels_last(window, w, geometry_of(slicing.slice_call(made, part)))
    return computed[:, :, : part.columns[1] - part.columns[0]]


@settings(max_examples=40)
@given(calls(), st.sampled_from(KINDS), st.integers(1, 4))
def test_slices_compute_their_parts(made, kind, count):
    """Unless the real library's own arithmetic gives a slice too few outputs, near the end of padded images."""
    assume(count <= slicing.most_slices(made, kind))
    parts = list(slicing.output_slices(made, cut(count, kind)))
    assume(not any(part.is_empty for part in parts))
    x, w = pixels(made)
    want = conv_transpose_channels_last(x, w, geometry_of(made))
    for part in parts:
        assume(min(geometry_of(slicing.slice_call(made, part)).output_shape) > 0)
        got = part_of(made, part, x, w)
        expected = want[:, slice(*part.rows), slice(*part.columns)]
        assume(got.shape[1:3] == expected.shape[1:3])
        assert np.array_equal(got, expected)


def test_a_window_by_hand():
    """16 outputs of 8 rows, kernel 3, stride 2, padding 1: outputs 8 to 16 meet inputs 4 to 8."""
    result = call((8, 8), stride=(2, 2), padding=(1, 1, 1, 1), output_padding=(1, 1), layout=Layout.ROW_MAJOR)
    first, second = (part.down for part in slicing.output_slices(result, cut(2, DOWN)))
    assert (first.start, first.stop, first.padding, first.output_padding) == (0, 5, (1, 2), 0)
    assert (second.start, second.stop, second.padding, second.output_padding) == (4, 8, (1, 1), 1)


def test_an_empty_slice_does_not_advance():
    """Rows of output that meet no input: the real library leaves them, and everything after them, unwritten."""
    result = call((2, 8), kernel=(1, 1), stride=(6, 1), output_padding=(5, 0), layout=Layout.ROW_MAJOR)
    parts = list(slicing.output_slices(result, cut(6, DOWN)))
    assert [part.rows for part in parts] == [(0, 2), (2, 4), (2, 4), (2, 4), (2, 4), (2, 4)]
    assert [part.is_empty for part in parts] == [False, True, True, True, True, True]


@pytest.mark.parametrize(
    ("layout", "kind", "most"), [(Layout.TILE, DOWN, 10), (Layout.TILE, ACROSS, 2), (Layout.ROW_MAJOR, ACROSS, 42)]
)
def test_too_many_slices_are_refused(layout, kind, most):
    result = call((8, 40), layout=layout)
    assert slicing.most_slices(result, kind) == most
    slicing.check_slice_count(result, cut(most, kind))
    message = (
        rf"^Number of slices \({most + 1}\) exceeds the maximum allowed \({most}\) for the given output dimension and "
        rf"alignment\.\ndram_slice_config: at most {most} slices of type {kind.name} fit"
    )
    with pytest.raises(DeviceError, match=message):
        slicing.check_slice_count(result, cut(most + 1, kind))


def test_blocks_of_the_last_slice_are_refused_though_the_first_does_not_fit():
    """Slices of 32, 24 and 24 outputs: the first is too large, and blocks of 64 rows are too high for the rest."""
    result = call((10, 8), 2048, 64, kernel=(1, 3), scheme=TensorMemoryLayout.WIDTH_SHARDED, padding=(0, 0, 1, 1))
    with pytest.raises(DeviceError, match=r"^Conv2d output block size"):
        slicing.choose_slices(
            changed(result, act_block_h_override=64, slice_config=cut(0, DOWN)), SPEC, free_l1_bytes=1
        )
