"""Calls on tensors without elements: shapes, data types, layouts and constraints are those of ttnn 0.81.1's planner."""

from functools import partial

import numpy as np
import pytest

import ttsim

TILE, ROWS, L1 = ttsim.TILE_LAYOUT, ttsim.ROW_MAJOR_LAYOUT, ttsim.L1_MEMORY_CONFIG


def nothing(device, shape, layout=TILE, dtype=ttsim.bfloat16):
    """A tensor without elements."""
    return ttsim.from_numpy(np.zeros(shape, np.float32), dtype, layout=layout, device=device)


@pytest.mark.parametrize(
    ("shape", "layout", "call", "wanted", "padded"),
    [
        ((1, 1, 0, 32), TILE, lambda x: ttsim.sum(x), [], [32, 32]),
        ((1, 1, 0, 32), ROWS, lambda x: ttsim.sum(x), [], [1]),
        ((1, 1, 0, 32), TILE, lambda x: ttsim.sum(x, dim=-1, keepdim=True), [1, 1, 0, 1], [1, 1, 0, 32]),
        ((1, 1, 32, 0), TILE, lambda x: ttsim.mean(x, dim=-1, memory_config=L1), [1, 1, 32], [1, 32, 32]),
        ((1, 1, 0, 32), TILE, lambda x: ttsim.max(x, dim=-1), [1, 1, 0], [1, 32, 0]),
        ((1, 1, 32, 0), TILE, lambda x: ttsim.std(x, dim=-1), [1, 1, 32], [1, 32, 32]),
        ((1, 1, 0, 32), ROWS, lambda x: ttsim.prod(x, dim=-1), [1, 1, 0], [1, 1, 0]),
        ((1, 1, 0, 32), ROWS, lambda x: ttsim.topk(x, 1)[0], [1, 1, 0, 1], [1, 1, 0, 1]),
        ((0,), ROWS, lambda x: ttsim.tilize(x), [0], [32, 0]),
        ((5, 0), ROWS, lambda x: ttsim.tilize(x), [5, 0], [32, 0]),
        ((5, 0), ROWS, lambda x: ttsim.to_layout(x, TILE), [32, 0], [32, 0]),
        ((0,), ROWS, lambda x: ttsim.to_layout(x, TILE), [0], [32, 0]),
        ((1, 1, 0, 32), TILE, lambda x: ttsim.untilize(x), [1, 1, 0, 32], [1, 1, 0, 32]),
        ((2, 0, 0, 32), TILE, lambda x: ttsim.global_avg_pool2d(x), [2, 1, 1, 32], [2, 1, 32, 32]),
    ],
)
def test_results_are_made_without_a_program(device, shape, layout, call, wanted, padded):
    x = nothing(device, shape, layout)
    with ttsim.profile(device) as profile:
        result = call(x)
    assert (result.shape, result.padded_shape) == (wanted, padded)
    assert not profile.runs()


@pytest.mark.parametrize(
    ("call", "number"),
    [
        (lambda x: ttsim.sum(x, dim=2), 0.0),
        (lambda x: ttsim.mean(x, dim=2), np.nan),
        (lambda x: ttsim.var(x, dim=2), np.nan),
        (lambda x: ttsim.prod(x, dim=2), 1.0),
    ],
)
def test_reductions_of_no_elements_have_the_value_of_none(device, call, number):
    np.testing.assert_array_equal(call(nothing(device, (1, 1, 0, 3))).to_numpy(), np.full((1, 1, 3), number))


@pytest.mark.parametrize("call", [ttsim.max, ttsim.min, ttsim.argmax])
def test_no_elements_have_no_extreme(device, call):
    with pytest.raises(ttsim.DeviceError, match=r"^Expected reduction dim 2 to have non-zero size"):
        call(nothing(device, (1, 1, 0, 32)))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ttsim.cumsum(x, 9),  # whatever the axis
        lambda x: ttsim.cumprod(x, 0, dtype=ttsim.float32),
        lambda x: ttsim.layer_norm(x),
        lambda x: ttsim.rms_norm(x),
        lambda x: ttsim.sort(x)[0],
        lambda x: ttsim.clone(x),
    ],
)
def test_other_results_are_copies_by_no_core(device, call):
    """A buffer of two tiles is planned for no core: it counts in all of the call's bytes, not in those of a core."""
    query = ttsim.graph.query_op_constraints(call, device, nothing(device, (1, 1, 0, 32)))
    assert query.error_message is None
    assert list(query.resource_usage) == [0, 0, 4096, 0]
    assert [(spec.shape, spec.dtype) for spec in query.output_tensor_specs] == [((1, 1, 0, 32), ttsim.bfloat16)]


def test_nothing_is_added_up_in_the_caller_s_tensor(device):
    x = nothing(device, (1, 0, 32))
    out = ttsim.to_memory_config(x, L1)
    with ttsim.profile(device) as profile:
        assert ttsim.cumsum(x, 1, out=out) is out
    assert not profile.runs()


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda x: ttsim.clone(x, dtype=ttsim.float32), "DFB 'dst' has no producer"),
        (
            lambda x: ttsim.untilize_with_unpadding(x, (0, 0, 0, 0)),
            r"untilize_with_unpadding: a zero-volume input requires a zero-volume output, got Shape\(\[1, 1, 1, 1\]\)",
        ),
        (lambda x: ttsim.topk(x, 40), "K cannot be larger than the dimension size! K=40, dimension size=32"),
    ],
)
def test_refusals_have_the_library_s_words(device, call, line):
    with pytest.raises(ttsim.DeviceError, match=f"^{line}"):
        call(nothing(device, (1, 1, 0, 32)))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ttsim.permute(x, (0, 2, 1)),
        lambda x: ttsim.permute(x, (1, 0, 2)),
        lambda x: ttsim.repeat(x, (2, 1, 1)),
    ],
)
def test_divisions_by_a_side_of_0_are_refused_by_name(device, call):
    """The process of the real library ends there, by a floating-point exception, at permute."""
    with pytest.raises(ttsim.NotSimulatedError, match="a side of 0 by which the real library divides"):
        call(nothing(device, (1, 2, 0), ROWS))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, d: ttsim.grid_sample(x((1, 1, 0, 32), ROWS), ttsim.zeros((1, 3, 3, 2), device=d)),
        lambda x, d: ttsim.gather(x((32, 0)), 1, ttsim.zeros((32, 32), ttsim.uint16, layout=TILE, device=d)),
        lambda x, d: ttsim.transformer.scaled_dot_product_attention(
            ttsim.zeros((1, 1, 32, 32), layout=TILE, device=d), *[x((1, 1, 0, 32))] * 2, is_causal=False
        ),
    ],
)
def test_numbers_that_a_kernel_reads_from_nothing_are_refused_by_name(device, call):
    with pytest.raises(ttsim.NotSimulatedError, match="the kernel reads from a tensor without elements"):
        call(partial(nothing, device), device)


def test_what_is_joined_to_nothing_or_padded_has_all_its_numbers(device):
    """A tensor without elements adds none to a concatenation; one of 0 rows, padded, is all padding."""
    ones = ttsim.ones((1, 1, 32, 32), layout=TILE, device=device)
    assert (ttsim.concat([nothing(device, (1, 1, 0, 32)), ones], 2).to_numpy() == 1).all()
    padded = ttsim.pad(nothing(device, (1, 1, 0, 32), ROWS), [(0, 0), (0, 0), (0, 2), (0, 0)], 3.0)
    np.testing.assert_array_equal(padded.to_numpy(), np.full((1, 1, 2, 32), 3.0))


def test_operations_of_nothing_write_nothing(device):
    """Rows of nothing become tiles by no program, and what is combined from them has no elements."""
    x = nothing(device, (1, 1, 0, 32), ROWS)
    y = ttsim.from_numpy(np.ones((1, 1), np.float32), ttsim.bfloat16, layout=TILE, device=device)
    assert ttsim.hypot(x, y).to_numpy().shape == (1, 1, 0, 32)


@pytest.mark.parametrize(
    ("shape", "layout", "place", "shard"),
    [
        ((2, 0, 50), TILE, ttsim.L1_HEIGHT_SHARDED_MEMORY_CONFIG, [32, 64]),
        ((0, 50), ROWS, ttsim.L1_HEIGHT_SHARDED_MEMORY_CONFIG, [1, 50]),
        ((5, 0), TILE, ttsim.L1_WIDTH_SHARDED_MEMORY_CONFIG, [32, 32]),
        ((5, 0), ROWS, ttsim.L1_WIDTH_SHARDED_MEMORY_CONFIG, [5, 1]),
    ],
)
def test_nothing_lies_in_one_shard_of_a_unit(device, shape, layout, place, shard):
    x = nothing(device, shape, layout)
    for call in (lambda: ttsim.relu(x, memory_config=place), lambda: ttsim.add(x, 1.0, memory_config=place)):
        shards = call().memory_config().shard_spec
        assert (list(shards.shape), shards.num_cores()) == (shard, 1)


def test_operands_that_a_program_does_not_take_without_elements(device):
    tiles, rows = nothing(device, (5, 0)), nothing(device, (5, 0), ROWS)
    with pytest.raises(ttsim.DeviceError, match=r"^Broadcasting rule violation at dimension index -1 .* dim c: 0"):
        ttsim.mac(tiles, tiles, tiles)
    with pytest.raises(ttsim.NotSimulatedError, match="divides by the length of rows, which is 0"):
        ttsim.add(rows, rows)


@pytest.mark.parametrize(("shape", "bytes_"), [((5, 0), 5 * 2048), ((32, 0), 0)])
def test_sums_of_nothing_fill_the_padding_of_tiles_first(device, shape, bytes_):
    """Two tiles that are read, two that are written and a mask of the lowest rows: as the planner of 0.81.1 says."""
    x = nothing(device, shape)
    for call in (ttsim.sum, ttsim.mean, ttsim.prod):
        usage = ttsim.graph.query_op_constraints(call, device, x).resource_usage
        assert usage.peak_memory_usage_per_core == bytes_
    assert not ttsim.graph.query_op_constraints(ttsim.var, device, x).resource_usage.peak_memory_usage_per_core


@pytest.mark.parametrize("dtype", [ttsim.bfloat16, ttsim.bfloat8_b])
def test_a_number_is_its_own_sum_whatever_the_scalar(device, dtype):
    number = ttsim.full((), 3.0, dtype, TILE, device)
    for call in (ttsim.sum, ttsim.mean, ttsim.max, ttsim.min):
        for dim in (None, 0, -1):
            result = call(number, dim=dim, scalar=2.0)
            assert (result.shape, result.dtype, result.to_list()) == ([], dtype, 3.0)
    assert ttsim.prod(number, dim=-1).to_list() == 3.0
    if dtype is ttsim.bfloat16:
        assert ttsim.sum(number, output_layout=ROWS).layout is ROWS
    assert (np.isnan(ttsim.var(number).to_numpy()), ttsim.std(number, correction=False).to_list()) == (True, 0.0)


def test_a_number_has_no_second_axis(device):
    number = ttsim.full((), 3.0, layout=TILE, device=device)
    with pytest.raises(ttsim.DeviceError, match=r"^Unsupported dim -2 at index 0\. After possible adjustment"):
        ttsim.sum(number, dim=-2)
    with pytest.raises(ttsim.DeviceError, match=r"^Dimension for prod is out of range .* in range of \[-1, 0\]"):
        ttsim.prod(number, dim=1)
