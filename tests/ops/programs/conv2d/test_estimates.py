"""L1 estimates and the scheme that takes least; what activation reuse asks of a program."""

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from device.cores import first_cores
from device.errors import DeviceError
from device.memory.memory_config import ShardOrientation
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.programs.conv2d.buffers import (
    ConvBuffers,
    buffer_requests,
    choose_scheme,
    estimate_l1,
    estimated_halo_bytes,
    reuse_refusal,
    reuse_tiles,
)
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH, ConvOptions, ParallelConfig
from ops.window import PaddedAxis, PaddedInput, transposed_axis
from tests.ops.programs.conv2d.convolutions import SPEC, conv_problem, doubled

SCHEMES = (HEIGHT, BLOCK, WIDTH)


def problem(height, width, ins, outs, *, kernel=3, stride=2, **changes):
    rows, columns = (
        transposed_axis(input_length=n, kernel=kernel, stride=stride, padding=(0, 0), output_padding=0, dilation=1)
        for n in (height, width)
    )
    return conv_problem(PaddedInput(batch=1, rows=rows, columns=columns), (ins, outs), **changes)


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


def estimate(sizes, scheme, **choices):
    return estimate_l1(sizes, ConvOptions(**choices), SPEC, scheme, matmul=False)


@settings(max_examples=40)
@given(problems, st.sampled_from(SCHEMES))
def test_an_estimate_holds_the_tensors_and_asking_for_more_never_takes_less(sizes, scheme):
    plain = estimate(sizes, scheme)
    shards, narrow = plain.layout.shards, estimate(sizes, scheme, force_split_reader=False)
    assert plain.output_bytes >= shards.out_rows * shards.out_width * 2
    assert plain.halo_bytes % (shards.in_width * 2) == 0
    assert plain.total_bytes == plain.buffers_bytes + plain.output_bytes + plain.halo_bytes
    for choice in ("act_double_buffer", "weights_double_buffer", "untilize_out"):
        assert estimate(sizes, scheme, **{choice: True}).buffers_bytes >= plain.buffers_bytes
    assert estimate(replace(sizes, bias=True), scheme).buffers_bytes >= plain.buffers_bytes
    assert estimate(replace(sizes, weight_format=BFLOAT8_B), scheme).buffers_bytes <= plain.buffers_bytes
    wide = estimate(replace(sizes, in_format=FLOAT32), scheme, force_split_reader=False)
    assert wide.buffers_bytes >= narrow.buffers_bytes
    assert wide.halo_bytes == 2 * narrow.halo_bytes


@settings(max_examples=40)
@given(problems, st.sampled_from([SPEC, load_spec("blackhole_p150")]), st.booleans())
def test_the_scheme_that_takes_least_of_those_allowed(sizes, spec, matmul):
    options = ConvOptions()
    height, block, width = (estimate_l1(sizes, options, spec, scheme, matmul=matmul) for scheme in SCHEMES)
    allowed = [height]
    if max(block.layout.config.cores.num_cores(), block.layout.out_config.cores.num_cores()) >= spec.grid.cols:
        allowed.append(block)
    if not matmul:
        allowed.append(width)
    least = min(allowed, key=lambda one: one.total_bytes)
    assert choose_scheme(sizes, options, spec, matmul=matmul).scheme is least.layout.scheme


@pytest.mark.parametrize(
    ("sizes", "scheme"), [((64, 64, 32, 32), HEIGHT), ((32, 32, 512, 512), BLOCK), ((4, 4, 2048, 512), WIDTH)]
)
def test_images_lie_by_height_and_channels_by_width(sizes, scheme):
    assert choose_scheme(problem(*sizes), ConvOptions(), SPEC, matmul=False).scheme is scheme


def test_halo_bytes_by_hand():
    """One core, 3x3 inputs, stride 1, kernel 3, no padding: a frame of 7x7 sticks of 8 channels."""
    sizes = problem(3, 3, 8, 32, stride=1)
    assert estimated_halo_bytes(sizes, 1, 8) == 49 * 8 * 2
    assert estimated_halo_bytes(replace(sizes, in_format=FLOAT32), 1, 8) == 49 * 8 * 4


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_an_estimate_does_not_ask(scheme):
    """The caller's grid does not enter, and activations count as sent even where no scheme has a second core."""
    sizes = problem(16, 16, 64, 64)
    free = estimate(sizes, scheme)
    given_grid = estimate(sizes, scheme, core_grid=estimate(sizes, HEIGHT).layout.config.cores)
    assert given_grid._replace(layout=replace(given_grid.layout, options=free.layout.options)) == free
    # One channel core on either side: the program sends nothing, and has no buffer for it
    alone = estimate(problem(8, 8, 32, 32), scheme).layout
    program, counted = (
        {buffer.name for buffer in buffer_requests(replace(ConvBuffers.of(alone), multicast=multicast))}
        for multicast in (alone.multicasts_activations, scheme is not HEIGHT)
    )
    assert counted - program == (set() if scheme is HEIGHT else {"act"}) or alone.config.channel_cores > 1


@pytest.mark.parametrize(
    ("sizes", "changes", "text"),
    [
        (
            (conv_problem(doubled(2, 2)), WIDTH),
            {"act_block_h_override": 128},
            r"^Conv2d output block size 4 exceeds the per-core output size 1\nact_block_h_override=128 is ",
        ),
        (
            (conv_problem(doubled(64, 8), in_format=BFLOAT8_B), HEIGHT),
            {"activation_reuse": True, "act_block_h_override": 64},
            r"^datum for bfp2, bfp4, bfp8 is invalid\nconv_config.enable_activation_reuse: .* in bfloat8_b can not be ",
        ),
    ],
)
def test_programs_that_can_not_be_estimated(sizes, changes, text):
    with pytest.raises(DeviceError, match=text):
        estimate(*sizes, **changes)


def test_a_reader_keeps_a_row_of_the_image_and_what_others_add():
    """5x5 over 11x9 outputs of 32 channels: 90112 B for each of two readers with a tile row each (a real call)."""
    tiles = reuse_tiles(BFLOAT16, act_h_tiles=1, act_w_tiles=25, columns=9, channels=32, kernel=(5, 5))
    assert tiles * BFLOAT16.tile_bytes == 90112


@pytest.mark.parametrize(
    ("scheme", "columns", "split", "text"),
    [
        (HEIGHT, {}, True, None),
        (HEIGHT, {}, False, "requires split reader to be on"),
        (HEIGHT, {"stride": 2}, False, "is not supported for stride > 1"),
        (HEIGHT, {"stride": 2, "dilation": 2}, True, "is not supported for dilation > 1"),
        (BLOCK, {"dilation": 2}, True, "is not supported for block sharded"),
        (WIDTH, {"dilation": 2}, False, None),
    ],
)
def test_programs_that_can_not_reuse_activations(scheme, columns, split, text):
    rows = PaddedAxis(input_length=11, before=2, after=2, kernel=5)
    across = PaddedAxis(input_length=11, before=1, after=1, kernel=5, **columns)
    config = ParallelConfig(scheme, 2, 1, first_cores(2, 8, 8), ShardOrientation.ROW_MAJOR)
    refused = reuse_refusal(config, PaddedInput(batch=1, rows=rows, columns=across), split_reader=split)
    assert refused is None if text is None else text in refused.splitlines()[0]
