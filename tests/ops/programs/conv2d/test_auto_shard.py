"""L1 estimates and the scheme that takes least."""

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.programs.conv2d.estimates import choose_scheme, estimate_l1, estimated_buffers, estimated_halo_bytes
from ops.programs.conv2d.parallel_config import BLOCK, HEIGHT, WIDTH, ConvOptions, ConvProblem
from ops.window import PaddedInput, transposed_axis

SPECS = [load_spec("wormhole_n150"), load_spec("blackhole_p150")]
SCHEMES = (HEIGHT, BLOCK, WIDTH)


def problem(height, width, in_channels, out_channels, *, kernel=3, stride=2, **changes):
    rows, columns = (
        transposed_axis(input_length=n, kernel=kernel, stride=stride, padding=(0, 0), output_padding=0, dilation=1)
        for n in (height, width)
    )
    facts = {
        "frame": PaddedInput(batch=1, rows=rows, columns=columns),
        "in_channels": in_channels,
        "out_channels": out_channels,
        "in_format": BFLOAT16,
        "weight_format": BFLOAT16,
        "out_format": BFLOAT16,
        "row_major": True,
    }
    return ConvProblem(**facts | changes)


problems = st.builds(
    problem,
    st.integers(1, 60),
    st.integers(1, 60),
    st.sampled_from([3, 16, 32, 100, 512]),
    st.sampled_from([1, 32, 64, 500]),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    bias=st.booleans(),
)


def of(facts, scheme, spec=SPECS[0], **choices):
    return estimate_l1(facts, ConvOptions(**choices), spec, scheme, matmul=False)


@settings(max_examples=40)
@given(problems, st.sampled_from(SCHEMES), st.sampled_from(SPECS))
def test_asking_for_more_never_takes_less(facts, scheme, spec):
    plain = of(facts, scheme, spec)
    assert of(facts, scheme, spec, act_double_buffer=True).buffers_bytes >= plain.buffers_bytes
    assert of(facts, scheme, spec, weights_double_buffer=True).buffers_bytes >= plain.buffers_bytes
    assert of(facts, scheme, spec, untilize_out=True).buffers_bytes >= plain.buffers_bytes
    assert of(replace(facts, bias=True), scheme, spec).buffers_bytes >= plain.buffers_bytes
    assert of(replace(facts, weight_format=BFLOAT8_B), scheme, spec).buffers_bytes <= plain.buffers_bytes
    wide = of(replace(facts, in_format=FLOAT32), scheme, spec, force_split_reader=False)
    narrow = of(facts, scheme, spec, force_split_reader=False)
    assert wide.buffers_bytes >= narrow.buffers_bytes
    assert wide.halo_bytes == 2 * narrow.halo_bytes


@settings(max_examples=40)
@given(problems, st.sampled_from(SCHEMES))
def test_an_estimate_holds_the_tensors(facts, scheme):
    estimate = of(facts, scheme)
    shards = estimate.layout.shards
    assert estimate.output_bytes >= shards.out_rows * shards.out_width * 2
    assert estimate.halo_bytes % (shards.in_width * 2) == 0
    assert estimate.total_bytes == estimate.buffers_bytes + estimate.output_bytes + estimate.halo_bytes


@settings(max_examples=40)
@given(problems, st.sampled_from(SPECS), st.booleans())
def test_the_scheme_that_takes_least_of_those_allowed(facts, spec, matmul):
    options = ConvOptions()
    height, block, width = (estimate_l1(facts, options, spec, scheme, matmul=matmul) for scheme in SCHEMES)
    allowed = [height]
    if max(block.layout.config.cores.num_cores(), block.layout.out_config.cores.num_cores()) >= spec.grid.cols:
        allowed.append(block)
    if not matmul:
        allowed.append(width)
    least = min(allowed, key=lambda estimate: estimate.total_bytes)
    assert choose_scheme(facts, options, spec, matmul=matmul).scheme is least.layout.scheme


@pytest.mark.parametrize(
    ("facts", "scheme"),
    [(problem(64, 64, 32, 32), HEIGHT), (problem(32, 32, 512, 512), BLOCK), (problem(4, 4, 2048, 512), WIDTH)],
)
def test_images_lie_by_height_and_channels_by_width(facts, scheme):
    assert choose_scheme(facts, ConvOptions(), SPECS[0], matmul=False).scheme is scheme


def test_halo_bytes_by_hand():
    """One core, 3x3 inputs, stride 1, kernel 3, no padding: a frame of 7x7 sticks of 8 channels."""
    facts = problem(3, 3, 8, 32, stride=1)
    assert estimated_halo_bytes(facts, 1, 8) == 49 * 8 * 2
    assert estimated_halo_bytes(replace(facts, in_format=FLOAT32), 1, 8) == 49 * 8 * 4


def test_the_callers_grid_does_not_enter_an_estimate():
    facts = problem(16, 16, 64, 64)
    grid = of(facts, HEIGHT).layout.config.cores
    for scheme in SCHEMES:
        free, given = of(facts, scheme), of(facts, scheme, core_grid=grid)
        assert replace(given, layout=replace(given.layout, options=free.layout.options)) == free


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_activations_travel_in_counts_even_on_one_core(scheme):
    """One tile of channels on either side, so that no scheme has a second core to send to."""
    facts = problem(8, 8, 32, 32)
    buffers = estimated_buffers(of(facts, scheme).layout, accumulation_blocks=9, tap_channels=32)
    assert next(b.size_bytes for b in buffers if b.name == "act") > 0
