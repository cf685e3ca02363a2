"""Slices: they cover the output, each computes its part of it, and the smallest number that fits is chosen."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from device.errors import DeviceError
from device.memory.memory_config import Layout, TensorMemoryLayout
from device.numbers.formats import FLOAT32
from device.spec.device_spec import load_spec
from ops.planners.conv import plan as conv_plan, slicing
from ops.planners.conv.arguments import CONV2D, CONV_TRANSPOSE2D, ConvConfig, SliceConfig, SliceType
from ops.planners.conv.plan import plan_convolution
from ops.planners.conv.slicing import OutputSlice
from ops.reference import conv_transpose_channels_last
from tests.build import changed, cut, geometry_of, sized_call
from tests.shards import BLOCK, WIDTH

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
    ("layout", "size", "kind"),
    [
        (Layout.TILE, (8, 199), DOWN), (Layout.TILE, (8, 200), ACROSS), (Layout.TILE, (201, 200), DOWN),
        (Layout.ROW_MAJOR, (24, 8), ACROSS), (Layout.ROW_MAJOR, (25, 8), DOWN),
    ],
)  # fmt: skip
def test_guessed_axis(layout, size, kind):
    assert slicing.guess_slice_type(call(size, layout=layout)) is kind


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


LARGE = call((8, 64), 128, 128, stride=(2, 2), padding=(1, 1, 1, 1), output_padding=(1, 1))


def largest(made, config):
    parts = slicing.output_slices(made, config)
    return max(slicing.slice_l1_bytes(made, part, SPEC, slices=config.num_slices) for part in parts)


@pytest.mark.parametrize("kind", KINDS)
def test_the_smallest_number_that_fits(kind):
    result = replace(LARGE, slice_config=cut(0, kind))
    needs = [largest(result, cut(count, kind)) for count in range(1, slicing.most_slices(result, kind) + 1)]
    assert len(set(needs)) > 1
    for free in needs:
        first = next(count for count, need in enumerate(needs, 1) if need <= free)
        assert slicing.choose_slices(result, SPEC, free_l1_bytes=free)[0] == cut(first, kind)


def test_blocks_of_the_last_slice_are_refused_though_the_first_does_not_fit():
    """Slices of 32, 24 and 24 outputs: the first is too large, and blocks of 64 rows are too high for the rest."""
    result = call((10, 8), 2048, 64, kernel=(1, 3), scheme=TensorMemoryLayout.WIDTH_SHARDED, padding=(0, 0, 1, 1))
    with pytest.raises(DeviceError, match=r"^Conv2d output block size"):
        slicing.choose_slices(
            changed(result, act_block_h_override=64, slice_config=cut(0, DOWN)), SPEC, free_l1_bytes=1
        )


def test_the_other_axis_is_tried_only_if_the_axis_was_guessed():
    """A wide image is guessed to be cut along its width; four slices of its height may take less."""
    result = call((2, 220), 512, 64, kernel=(2, 2), stride=(2, 2))
    assert slicing.guess_slice_type(result) is ACROSS
    least = {k: min(largest(result, cut(n, k)) for n in range(1, slicing.most_slices(result, k) + 1)) for k in KINDS}
    assert least[DOWN] != least[ACROSS]
    better = min(KINDS, key=lambda kind: least[kind])
    chosen = slicing.choose_slices(result, SPEC, free_l1_bytes=least[better])[0]
    assert chosen.slice_type is better
    other = ACROSS if better is DOWN else DOWN
    with pytest.raises(DeviceError, match="DRAM Auto slice could not find"):
        slicing.choose_slices(replace(result, slice_config=cut(0, other)), SPEC, free_l1_bytes=least[better])


def test_nothing_fits():
    message = (
        r"^DRAM Auto slice could not find valid slice configuration\. Tried up to 4 slices for width-slicing on output "
        r"dimension 128\. Available L1: 1000 bytes\. Operation requires more memory than available even with maximum "
        r"slicing\.\n"
    )
    with pytest.raises(DeviceError, match=message):
        slicing.choose_slices(LARGE, SPEC, free_l1_bytes=1000)


def test_a_slice_counts_the_rows_it_stands_for():
    """56x56, k5 s3, padding 4 and 2, one row of 162 to a slice: the fourth computes two, and needs no more for it.

    Double-buffered WIDTH activations for two rows would not fit L1; the real library runs these 162 slices.
    """
    window = {"stride": (3, 3), "padding": (4, 4, 2, 2), "enable_act_double_buffer": True}
    result = call((56, 56), 8, 3, (5, 5), scheme=TensorMemoryLayout.WIDTH_SHARDED, **window)
    parts = list(slicing.output_slices(result, cut(162)))
    assert {part.rows[1] - part.rows[0] for part in parts} == {1}
    assert {slicing.slice_call(result, part).frame().rows.outputs for part in parts} == {1, 2}
    assert max(slicing.slice_l1_bytes(result, part, SPEC, slices=162) for part in parts) < 1360544


@pytest.mark.parametrize(("padding", "slices"), [((4, 5, 6, 5), 29), ((4, 4, 5, 5), 30), ((5, 5, 5, 6), 29)])
def test_a_slice_counts_the_columns_it_stands_for(padding, slices):
    """60x60, eight images, k4x5 s2 d3x2, 200 float32 channels become 64 in rows: the real library's numbers."""
    sizes, scheme = {"stride": (2, 2), "dilation": (3, 2), "padding": padding}, TensorMemoryLayout.HEIGHT_SHARDED
    result = call((60, 60), 200, 64, (4, 5), layout=Layout.ROW_MAJOR, scheme=scheme, batch=8, **sizes)
    floats = {
        name: replace(one, spec=replace(one.spec, data_format=FLOAT32))
        for name, one in (("input", result.input), ("weight", result.weight))
    }
    result = replace(result, **floats, slice_config=cut(0, ACROSS))
    assert slicing.choose_slices(result, SPEC, free_l1_bytes=1360544)[0].num_slices == slices


ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE
CONFIGS = [
    *((CONV_TRANSPOSE2D, *how) for how in ((DOWN, TILES, None), (ACROSS, TILES, BLOCK), (ACROSS, ROWS, WIDTH))),
    *((CONV2D, *how) for how in ((DOWN, ROWS, None), (ACROSS, TILES, WIDTH))),
]


def six_slices(rules, kind, layout, scheme):
    """32 channels to 32, 40 x 192, in six slices."""
    return sized_call(
        (40, 192),
        (32, 32),
        rules=rules,
        padding=(1, 1, 1, 1),
        conv_config=ConvConfig(output_layout=layout, shard_layout=scheme),
        slice_config=SliceConfig(slice_type=kind, num_slices=6),
    )


@pytest.mark.parametrize("config", CONFIGS)
def test_a_slice_like_an_earlier_one_has_the_plan_it_would_have_had(config, monkeypatch):
    planned = []
    once = conv_plan.l1_path
    monkeypatch.setattr(conv_plan, "l1_path", lambda *a, **more: planned.append(a) or once(*a, **more))
    arguments = six_slices(*config)
    plan = plan_convolution(arguments, SPEC, free_l1_bytes=1_000_000)
    assert len(planned) < 6
    monkeypatch.setattr(OutputSlice, "at_origin", property(lambda part: part))  # now no slice is like another
    planned.clear()
    apart = plan_convolution(replace(arguments), SPEC, free_l1_bytes=1_000_000)
    assert len(planned) == 6
    assert plan.steps == apart.steps
    assert plan.tensors == apart.tensors
    assert plan.results == apart.results
