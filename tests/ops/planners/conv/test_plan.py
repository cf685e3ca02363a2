"""Whole plans: what they leave behind, and what they compute."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from device.errors import DeviceError
from device.machine import Machine
from device.matrix_unit.arithmetic import EXACT, FAST
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, BufferType, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, quantize
from device.plan import Operation
from device.spec.device_spec import load_spec
from ops.op_model import ValuesContext
from ops.passes.memory import run_memory
from ops.passes.values import run_values
from ops.planners.conv.arguments import CONV2D, SliceType
from ops.planners.conv.plan import plan_convolution, wrapped_output
from ops.planners.conv.slicing import most_slices, output_slices, slice_call
from ops.programs.conv2d.op import Conv2dOp
from ops.reference import conv_transpose_channels_last
from tests.build import L1_FULL, changed, cut, geometry_of, sized_call
from tests.shards import BLOCK, HEIGHT, WIDTH

SPEC = load_spec("wormhole_n150")
SCHEMES = [HEIGHT, BLOCK, WIDTH]
PLACES = {"dram": DRAM_MEMORY_CONFIG, "l1": L1_MEMORY_CONFIG, "host": None}


def call(size=(4, 4), channels=8, out_channels=8, kernel=(3, 3), *, place="dram", bias=False, **changes):
    return sized_call(size, (channels, out_channels), kernel, place=PLACES[place], with_bias=bias, **changes)


def planned(made):
    """The plan of a call on a device that holds its input, and that device."""
    device = Machine(SPEC, l1_small_bytes=32768)
    inputs = {} if made.input.on_host else {"input": device.allocate(made.input.spec.buffer(SPEC), "input")}
    free = device.allocator.statistics(BufferType.L1).free_bytes_per_bank
    return plan_convolution(made, SPEC, free_l1_bytes=free), device, inputs


def is_sound(made, config):
    """Whether no slice falls to the real library's own defects."""
    parts = list(output_slices(made, config))
    if any(part.is_empty for part in parts):
        return False
    shapes = [geometry_of(slice_call(made, part)).output_shape for part in parts]
    return all(
        shape[0] == part.rows[1] - part.rows[0] and shape[1] >= part.columns[1] - part.columns[0]
        for shape, part in zip(shapes, parts, strict=True)
    )


@st.composite
def calls(draw):
    """Small calls on all paths."""
    pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
    kernel, stride, dilation, place = draw(pair), draw(pair), draw(pair), draw(st.sampled_from(list(PLACES)))
    reach, groups = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)], draw(st.sampled_from([1, 1, 2]))
    ins, outs = (groups * draw(st.integers(1, 40 // groups)) for _ in range(2))
    choices = {
        "layout": Layout, "bias": (False, True), "batch": (1, 2), "shard_layout": [None, *SCHEMES],
        "output_layout": Layout, "deallocate_activation": (False, True), "reallocate_halo_output": (False, True),
        "config_tensors_in_dram": (False, True), "activation": (None, ("relu", ())),
        "out_format": (None, BFLOAT16, FLOAT32),
    }  # fmt: skip
    result = call(
        draw(st.tuples(st.integers(1, 6), st.integers(1, 6))), ins, outs, kernel, place=place, groups=groups,
        stride=stride, padding=tuple(draw(st.integers(0, reach[n])) for n in (0, 0, 1, 1)), dilation=dilation,
        output_padding=tuple(draw(st.integers(0, s - 1)) for s in stride),
        **{name: draw(st.sampled_from(values)) for name, values in choices.items()},
    )  # fmt: skip
    assume(min(geometry_of(result).output_shape) > 0)
    kind = draw(st.sampled_from([None, *SliceType]))
    if kind is SliceType.L1_FULL:
        return replace(result, slice_config=L1_FULL)
    if kind is None or place == "l1":
        return result
    config = cut(draw(st.integers(1, min(3, most_slices(result, kind)))), kind)
    assume(is_sound(result, config))
    return changed(result, slice_config=config, shard_layout=result.conv_config.shard_layout or HEIGHT)


def numbers(made, seed):
    """What a plan makes of small integers, which come out exactly, and what the definition makes of them."""
    rng = np.random.default_rng(seed)
    x, w = (rng.integers(-1, 2, tensor.spec.shape) for tensor in (made.input, made.weight))
    b = rng.integers(-1, 2, (1, 1, 1, made.out_channels))
    image, bias = x.reshape(made.image_shape), None if made.bias is None else b.ravel()
    want = conv_transpose_channels_last(image, w, geometry_of(made), bias=bias, groups=made.groups)
    plan, _, _ = planned(made)
    arrays = {"input": x, "weight": w, "bias": b}
    stored = {name: quantize(array.astype(np.float32), BFLOAT16) for name, array in arrays.items()}
    got = run_values(plan, stored, ValuesContext(spec=SPEC, arithmetic=FAST))[plan.results["output"]]
    return got, np.maximum(want, 0) if made.conv_config.activation else want


@settings(max_examples=40, deadline=None)
@given(calls(), st.integers(0, 99))
def test_plans_compute_small_integers_exactly_and_leave_their_results_and_programs_only(made, seed):
    assume(not (made.is_matmul and any(made.output_padding)))
    try:
        plan, device, inputs = planned(made)
    except DeviceError:  # calls that the real library refuses are no examples
        assume(False)
    got, want = numbers(made, seed)
    assume(np.abs(want).max() <= 256)
    assert got.dtype == (made.out_format or BFLOAT16).storage
    assert np.array_equal(np.asarray(got, np.float32).reshape(want.shape), want)
    assume(not any(isinstance(step, Operation) and (step.refused or step.unfinished) for step in plan.steps))
    in_l1 = not made.input.on_host and made.input.spec.memory_config.buffer_type is BufferType.L1
    results = run_memory(plan, device, inputs)
    resident = {one.number for program in device.program_cache.values() for one in program.resident}
    left = {one.number for one in device.memory.live()} - resident
    source = set() if made.conv_config.deallocate_activation and in_l1 else {one.number for one in inputs.values()}
    assert left == source | {result.number for result in results.values() if result.placed}


ODD = {"stride": (2, 1), "padding": (1, 0, 0, 0), "output_padding": (1, 0), "dilation": (2, 1)}


@pytest.mark.parametrize(
    ("scheme", "made"),
    [
        (HEIGHT, call((3, 1), 17, 1, (2, 1), **ODD)),
        (BLOCK, call((3, 20), 17, 32, (2, 2), stride=(1, 2), padding=(0, 1, 0, 1))),
    ],
)
def test_the_first_slice_chooses_for_all(scheme, made):
    """The real library on a device without kernels: later slices alone would choose another scheme."""
    made = replace(made, slice_config=cut(2))
    ops = [step.op for step in planned(made)[0].steps if isinstance(getattr(step, "op", None), Conv2dOp)]
    assert {op.layout.scheme for op in ops} == {scheme}
    got, want = numbers(made, 0)
    assert np.array_equal(np.asarray(got, np.float32).reshape(want.shape), want)


PADDED = sized_call((33, 5), (16, 32), (4, 15), stride=(7, 3), padding=(0, 0, 14, 14))
IN_ROWS = {"output_layout": Layout.ROW_MAJOR}
TALL = {"batch": 32, "stride": (2, 1), "padding": (14, 14, 0, 0), "dilation": (3, 3)}


@pytest.mark.parametrize(
    ("call", "size_bytes"),
    [
        (PADDED, 1_099_511_627_776),
        (sized_call((2, 12), (128, 128), (6, 1), **TALL), 8_796_090_400_768),
        (sized_call((1, 8), (4096, 32), (3, 3), rules=CONV2D, stride=(1, 4), **IN_ROWS), 274_877_906_816),
        (sized_call((6, 4), (32, 144), (5, 5), rules=CONV2D, stride=(3, 4), out_format=BFLOAT8_B), 182_536_110_080),
    ],
)
def test_bytes_of_an_output_that_wraps(call, size_bytes):
    assert wrapped_output(call).buffer(SPEC).size_bytes == size_bytes


FREE = 1360544


def point(memory=DRAM_MEMORY_CONFIG, layout=Layout.ROW_MAJOR, *, host=False, bias=True, channels=64, out=32, **config):
    place = None if host else memory
    return sized_call((8, 8), (channels, out), (1, 1), place=place, layout=layout, with_bias=bias, **config)


def planned_matmul(a):
    return plan_convolution(a, SPEC, free_l1_bytes=FREE)


SCHEMES: list[TensorMemoryLayout | None] = [None, HEIGHT, BLOCK]


def computed(a, rows):
    """Numbers that a plan makes of so many random rows, and the products of these rows with the bias added."""
    rng = np.random.default_rng(1)
    x = rng.integers(-1, 2, (1, 1, rows, a.in_channels)).astype(np.float32)
    w = rng.integers(-1, 2, (a.in_channels, a.out_channels, 1, 1)).astype(np.float32)
    b = rng.integers(-9, 10, (1, 1, 1, a.out_channels)).astype(np.float32)
    arrays = {name: quantize(values, BFLOAT16) for name, values in {"input": x, "weight": w, "bias": b}.items()}
    result = planned_matmul(a)
    got = run_values(result, arrays, ValuesContext(spec=SPEC, arithmetic=EXACT))[result.results["output"]]
    return got.astype(np.float32).reshape(-1, a.out_channels), x[0, 0] @ w[:, :, 0, 0] + b[0, 0], b[0, 0]


@pytest.mark.parametrize("memory", [DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, None], ids=["dram", "l1", "host"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("layout", Layout)
def test_numbers_do_not_depend_on_the_way(memory, scheme, layout):
    a = point(memory or DRAM_MEMORY_CONFIG, layout, host=memory is None, shard_layout=scheme, activation=("relu", ()))
    got, want, _ = computed(replace(a, compute_config=None), 64)
    np.testing.assert_array_equal(got, np.maximum(want, 0))


@pytest.mark.parametrize(
    ("size", "channels", "scheme", "rows"), [((28, 22), (128, 128), None, 672), ((15, 20), (64, 96), BLOCK, 320)]
)
def test_rows_that_a_pad_adds_are_rows_of_the_output(size, channels, scheme, rows):
    """Rows of a host tensor get zeros, for whole shards on rows of cores; the bias is added to all."""
    a = sized_call(size, channels, (1, 1), place=None, with_bias=True, shard_layout=scheme)
    given = size[0] * size[1]
    got, want, bias = computed(a, given)
    assert planned_matmul(a).tensors["output"].shape == (1, 1, rows, channels[1])
    np.testing.assert_array_equal(got, np.concatenate([want, np.repeat(bias, rows - given, axis=0)]))
