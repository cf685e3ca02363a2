"""Whole plans: what they leave behind, and what they compute."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from device.errors import ArgumentError, DeviceError
from device.machine import Machine
from device.matrix_unit.arithmetic import EXACT, FAST
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, BufferType, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, quantize
from device.plan import Allocate, Free, Operation, Refuse, Relocate
from device.spec.device_spec import load_spec
from ops.op_model import ValuesContext
from ops.passes.memory import run_memory
from ops.passes.values import run_values
from ops.planners.conv.arguments import CONV2D, SliceConfig, SliceType
from ops.planners.conv.plan import plan_convolution, wrapped_output
from ops.planners.conv.slicing import most_slices, output_slices, slice_call
from ops.programs.conv2d.op import Conv2dOp
from ops.reference import conv_transpose_channels_last
from tests.build import changed, cut, geometry_of, sized_call

SPEC = load_spec("wormhole_n150")
L1_SMALL_BYTES = 32768
SCHEMES = [None, *(TensorMemoryLayout[f"{name}_SHARDED"] for name in ("HEIGHT", "BLOCK", "WIDTH"))]
PLACES = {"dram": DRAM_MEMORY_CONFIG, "l1": L1_MEMORY_CONFIG, "host": None}
L1_FULL = SliceConfig(slice_type=SliceType.L1_FULL)
LARGEST_EXACT = 256


def call(size=(4, 4), channels=8, out_channels=8, kernel=(3, 3), *, place="dram", bias=False, **changes):
    return sized_call(size, (channels, out_channels), kernel, place=PLACES[place], with_bias=bias, **changes)


def planned(made, device=None, **changes):
    """The plan of a call on a device that holds its input, and that device."""
    device = device or Machine(SPEC, l1_small_bytes=L1_SMALL_BYTES)
    inputs = {}
    if not made.input.on_host:
        inputs["input"] = device.allocate(made.input.spec.buffer(SPEC), "input")
    free = device.allocator.statistics(BufferType.L1).free_bytes_per_bank
    return plan_convolution(made, SPEC, free_l1_bytes=free, **changes), device, inputs


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
    kernel, stride, dilation = draw(pair), draw(pair), draw(pair)
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    groups = draw(st.sampled_from([1, 1, 2]))
    result = call(
        draw(st.tuples(st.integers(1, 6), st.integers(1, 6))),
        groups * draw(st.integers(1, 40 // groups)),
        groups * draw(st.integers(1, 40 // groups)),
        kernel,
        place=draw(st.sampled_from(list(PLACES))),
        layout=draw(st.sampled_from(list(Layout))),
        bias=draw(st.booleans()),
        batch=draw(st.integers(1, 2)),
        groups=groups,
        shard_layout=draw(st.sampled_from(SCHEMES)),
        output_layout=draw(st.sampled_from(list(Layout))),
        deallocate_activation=draw(st.booleans()),
        reallocate_halo_output=draw(st.booleans()),
        config_tensors_in_dram=draw(st.booleans()),
        activation=draw(st.sampled_from([None, ("relu", ())])),
        stride=stride,
        padding=tuple(draw(st.integers(0, reach[n])) for n in (0, 0, 1, 1)),
        output_padding=tuple(draw(st.integers(0, s - 1)) for s in stride),
        dilation=dilation,
        out_format=draw(st.sampled_from([None, BFLOAT16, FLOAT32])),
    )
    assume(min(geometry_of(result).output_shape) > 0)
    kind = draw(st.sampled_from([None, SliceType.L1_FULL, SliceType.DRAM_HEIGHT, SliceType.DRAM_WIDTH]))
    if kind is SliceType.L1_FULL:
        return replace(result, slice_config=L1_FULL)
    if kind is None or place_of(result) == "l1":
        return result
    config = SliceConfig(slice_type=kind, num_slices=draw(st.integers(1, min(3, most_slices(result, kind)))))
    assume(is_sound(result, config))
    scheme = result.conv_config.shard_layout or draw(st.sampled_from(SCHEMES[1:]))
    return changed(result, slice_config=config, shard_layout=scheme)


def place_of(made):
    return "host" if made.input.on_host else made.input.spec.memory_config.buffer_type.name.lower()


def arrays(made, seed):
    """Small integers, which come out exactly."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-1, 2, made.input.spec.shape)
    w = rng.integers(-1, 2, made.weight.spec.shape)
    b = rng.integers(-1, 2, (1, 1, 1, made.out_channels))
    return {"input": x, "weight": w, "bias": b}


def expected(made, given):
    x = given["input"].reshape(made.batch_size, made.input_height, made.input_width, made.in_channels)
    bias = None if made.bias is None else given["bias"].ravel()
    result = conv_transpose_channels_last(x, given["weight"], geometry_of(made), bias=bias, groups=made.groups)
    return np.maximum(result, 0) if made.conv_config.activation else result


def computed(made, given, arithmetic):
    plan, _, _ = planned(made)
    stored = {name: quantize(values.astype(np.float32), BFLOAT16) for name, values in given.items()}
    context = ValuesContext(spec=SPEC, arithmetic=arithmetic)
    return run_values(plan, stored, context)[plan.results["output"]]


def plan_or_skip(made, **changes):
    """Calls that the real library refuses are no examples."""
    try:
        return planned(made, **changes)
    except DeviceError:
        assume(False)
        raise


@settings(max_examples=80, deadline=None)
@given(calls(), st.integers(0, 99))
def test_small_integers_come_out_exactly(made, seed):
    assume(not (made.is_matmul and any(made.output_padding)))
    given_arrays = arrays(made, seed)
    want = expected(made, given_arrays)
    assume(np.abs(want).max() <= LARGEST_EXACT)
    plan_or_skip(made)
    got = computed(made, given_arrays, FAST)
    assert got.dtype == (made.out_format or BFLOAT16).storage
    assert np.array_equal(np.asarray(got, np.float32).reshape(want.shape), want)


@settings(max_examples=80, deadline=None)
@given(calls(), st.booleans())
def test_a_plan_leaves_its_results_and_its_programs_only(made, dispatch):
    plan, device, inputs = plan_or_skip(made)
    assume(not any(isinstance(step, Operation) and (step.refused or step.unfinished) for step in plan.steps))
    released = made.conv_config.deallocate_activation and place_of(made) == "l1"
    results = run_memory(plan, device, inputs, dispatch=dispatch)
    resident = {one.number for program in device.program_cache.values() for one in program.resident}
    left = {one.number for one in device.memory.live()} - resident
    source = set() if released else {tensor.number for tensor in inputs.values()}
    assert left == source | {result.number for result in results.values() if result.placed}
    assert all(result.allocated for result in results.values())
    assert dispatch or not device.program_cache


@settings(max_examples=60, deadline=None)
@given(calls(), st.booleans())
def test_steps_use_tensors_that_are_there(made, returns_weights):
    """Nothing is read before it is made or after it is freed, and no name is given twice at a time."""
    plan, _, _ = plan_or_skip(made, returns_weights=returns_weights)
    host = {"weight", "bias"} | ({"input"} if made.input.on_host else set())
    there = {"weight", "bias", "input"} - host
    freed: set[str] = set()

    def make(step):
        assert step.tensor not in there
        assert step.source is None or step.source in host
        there.add(step.tensor)
        assert step.tensor in plan.tensors

    for step in plan.steps:
        match step:
            case Allocate():
                make(step)
            case Free(tensor=tensor):
                assert tensor in there | freed
                there.discard(tensor)
                freed.add(tensor)
            case Relocate(tensor=tensor):
                assert tensor in there
            case Operation():
                assert set(step.inputs) <= there
                for output in step.outputs:
                    make(output)
                resident = {one.tensor for one in step.resident}
                views = {buffer.view_of for buffer in step.circular_buffers} - {None}
                assert views <= there | resident
    assert set(plan.results.values()) <= there
    prepared = {"weight", "bias"} if made.bias is not None else {"weight"}
    assert set(plan.results) == {"output", *(prepared if returns_weights else ())}


def operation_names(made):
    plan, _, _ = planned(made)
    return [step.name for step in plan.steps if isinstance(step, Operation)]


CONVOLUTION = ["HaloDeviceOperation", "Conv2dDeviceOperation"]


def test_paths():
    """L1 inputs, L1_FULL and one slice take the L1 path; others are sliced, or run in one piece between two copies."""
    l1 = ["InterleavedToShardedDeviceOperation", *CONVOLUTION]
    assert operation_names(call(place="l1")) == l1
    assert operation_names(call(slice_config=L1_FULL)) == l1
    assert operation_names(call(slice_config=cut(1))) == l1
    assert operation_names(call(slice_config=cut(0))) == l1
    assert operation_names(call()) == [*l1, "ShardedToInterleavedDeviceOperation"]
    sliced = operation_names(call(slice_config=cut(2)))
    assert sliced.count("Conv2dDeviceOperation") == sliced.count("PaddedSliceDeviceOperation") == 2
    assert "MatmulDeviceOperation" in operation_names(call(kernel=(1, 1)))


def test_a_second_call_finds_its_programs():
    """Only the output and what leads to it is allocated again; config tensors are not."""
    result = call(place="l1", slice_config=L1_FULL)
    plan, device, inputs = planned(result)
    run_memory(plan, device, inputs)
    small = device.allocator.statistics(BufferType.L1_SMALL)
    programs = dict(device.program_cache)
    run_memory(plan, device, inputs)
    assert device.allocator.statistics(BufferType.L1_SMALL) == small
    assert device.program_cache == programs
    other = planned(call(place="l1", slice_config=L1_FULL, bias=True), device)
    run_memory(*other)
    assert len(device.program_cache) > len(programs)


def test_prepared_weights_are_used_as_they_are():
    result = call(bias=True, slice_config=L1_FULL)
    plan, _, _ = planned(result)
    weight, bias = (
        replace(result.weight, spec=plan.tensors[plan.results[name]], on_host=False) for name in ("weight", "bias")
    )
    again, _, _ = planned(replace(result, weight=weight, bias=bias))
    assert (again.results["weight"], again.results["bias"]) == ("weight", "bias")
    assert [step.source for step in again.steps if isinstance(step, Allocate)] == [None]


@pytest.mark.parametrize(
    ("scheme", "made"),
    [
        (
            "HEIGHT",
            call((3, 1), 17, 1, (2, 1), stride=(2, 1), padding=(1, 0, 0, 0), output_padding=(1, 0), dilation=(2, 1)),
        ),
        ("BLOCK", call((3, 20), 17, 32, (2, 2), stride=(1, 2), padding=(0, 1, 0, 1))),
    ],
)
def test_the_first_slice_chooses_for_all(scheme, made):
    """The real library on a device without kernels: later slices alone would choose another scheme."""
    made = replace(made, slice_config=cut(2))
    plan, _, _ = planned(made)
    ops = [step.op for step in plan.steps if isinstance(getattr(step, "op", None), Conv2dOp)]
    assert {op.layout.scheme.name for op in ops} == {f"{scheme}_SHARDED"}
    given_arrays = arrays(made, 0)
    want = expected(made, given_arrays)
    got = computed(made, given_arrays, FAST)
    assert np.array_equal(np.asarray(got, np.float32).reshape(want.shape), want)


@pytest.mark.parametrize("arithmetic", [FAST, EXACT], ids=lambda context: context.name)
@pytest.mark.parametrize("slices", [None, 2, 3])
def test_slices_and_readings_agree(arithmetic, slices):
    """The layer of a decoder, whole and in slices."""
    window = {"stride": (2, 2), "padding": (1, 1, 1, 1), "output_padding": (1, 1)}
    result = call((8, 8), 32, 16, bias=True, slice_config=slices and cut(slices), **window)
    given_arrays = arrays(result, 1)
    got = computed(result, given_arrays, arithmetic)
    want = expected(result, given_arrays)
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


def test_a_plan_without_outputs_ends_behind_their_buffer():
    plan = plan_convolution(PADDED, SPEC, free_l1_bytes=2**20)
    *_, result, refusal = plan.steps
    assert isinstance(result, Allocate)
    assert isinstance(refusal, Refuse)
    assert refusal.error is ArgumentError
    assert refusal.text == (
        "conv_transpose2d: there is no output of 228 x -1 pixels, which the real library takes for 228 x 4294967295; "
        "change padding or kernel_size"
    )


def test_rows_of_block_floats_are_refused_before_the_buffer():
    rows = changed(PADDED, **IN_ROWS, out_format=BFLOAT8_B)
    with pytest.raises(ArgumentError, match=r"^Conv output can't be in Row Major if output dtype is BFloat8_B\."):
        plan_convolution(rows, SPEC, free_l1_bytes=2**20)
