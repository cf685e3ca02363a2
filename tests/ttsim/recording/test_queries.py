"""Queries of memory and time: their answers are those of a capture, of a run and of a report of the same call."""

import gc
from weakref import ref

import numpy as np
import pytest

import ttsim
from tests.sizes import conv_sizes
from ttsim import graph
from ttsim.recording import queries

TILES = ttsim.TILE_LAYOUT
L1, DRAM = ttsim.BufferType.L1, ttsim.BufferType.DRAM
KIB = 1024


@pytest.fixture
def device():
    with ttsim.open_device(values="off", l1_small_size=32 * KIB) as opened:
        yield opened


def spec(*shape, memory=L1, dtype=ttsim.bfloat16):
    return ttsim.TensorSpec(shape, dtype, TILES, memory)


def test_a_described_argument_counts_and_a_tensor_lies_there_before(device):
    """Eight tiles lie on 64 cores, one on a core: 2 KiB of the argument and 2 of the result; two dataflow buffers of
    two tiles each come on top."""
    described = graph.query_op_constraints(ttsim.relu, device, spec(1, 1, 64, 128))
    assert described.resource_usage == (0, 4 * KIB, 12 * KIB, 2 * KIB)
    lying = graph.query_op_constraints(ttsim.relu, device, ttsim.allocate_tensor_on_device(spec(1, 1, 64, 128), device))
    assert lying.resource_usage == (0, 2 * KIB, 10 * KIB, 2 * KIB)
    assert described.output_tensor_specs == lying.output_tensor_specs == (spec(1, 1, 64, 128),)


def test_lists_and_results_of_several_tensors(device):
    parts = [spec(1, 1, 32, 64, memory=DRAM), spec(1, 1, 32, 32, memory=DRAM)]
    joined = graph.query_op_constraints(ttsim.concat, device, parts, dim=3)
    assert joined.output_tensor_specs == (spec(1, 1, 32, 96, memory=DRAM),)
    halves = graph.query_op_constraints(ttsim.split, device, spec(1, 1, 32, 128, memory=DRAM), 64, 3)
    assert halves.output_tensor_specs == (spec(1, 1, 32, 64, memory=DRAM),) * 2


def test_a_view_takes_no_more_than_its_shape_needs(device):
    """[2, 33, 32] is four tiles, and [66, 32] three of them."""
    x = ttsim.allocate_tensor_on_device(spec(2, 33, 32, memory=DRAM), device)
    ask = graph.query_op_constraints_with_initial_state
    output = ask(ttsim.experimental.view, device, graph.MockAllocatorState(), x, [66, 32])
    (record,) = output.output_allocations
    assert record.size_per_bank == 2 * KIB


def test_the_device_stays_as_it_is(device):
    held = ttsim.zeros((32, 32), layout=TILES, device=device, memory_config=ttsim.L1_MEMORY_CONFIG)
    before = graph.extract_mock_allocator_state(device)
    graph.begin_graph_capture()
    for ask in (graph.query_op_constraints, graph.query_op_runtime):
        ask(ttsim.relu, device, held)
    graph.query_op_constraints_with_initial_state(ttsim.relu, device, before, held)
    assert [node["node_type"] for node in graph.end_graph_capture()] == ["capture_start", "capture_end"]
    assert graph.extract_mock_allocator_state(device) == before
    assert device.num_program_cache_entries() == 0


def test_a_call_without_its_device_is_refused_alike_in_both_queries(device):
    """Convolutions in three dimensions prepare weights of five axes on a device that the call names."""
    image = ttsim.TensorSpec((1, 2, 8, 8, 32), ttsim.bfloat16, ttsim.ROW_MAJOR_LAYOUT)
    conv3d, weights = ttsim.experimental.conv3d, ttsim.zeros((32, 32, 1, 1, 1), ttsim.bfloat16)
    options = {"input_tensor": image, "weight_tensor": weights, "output_channels": 32, "kernel_size": (1, 1, 1)}
    options |= {"dtype": ttsim.bfloat16, "config": ttsim.Conv3dConfig(C_in_block=32)}
    refused = graph.query_op_constraints(conv3d, device, **options)
    assert refused.error_message.startswith("Device must be provided when weight tensor is unprepared (rank 5)")
    assert graph.query_op_runtime(conv3d, device, **options).error_message == refused.error_message
    assert graph.query_op_runtime(conv3d, device, **options, device=device).error_message is None


def test_a_call_that_lacks_an_argument_is_refused_alike_by_queries_and_estimates(device):
    refused = graph.query_op_constraints(ttsim.sin, device)
    assert refused.refusal == "argument"
    with pytest.raises(ttsim.ArgumentTypeError) as estimated:
        ttsim.estimate_cycles(ttsim.sin, device=device)
    assert str(estimated.value) == refused.error_message


def test_what_is_larger_than_l1_fits_a_plan_and_no_state(device):
    huge = spec(1, 1, 16384, 16384)
    assert graph.query_op_constraints(ttsim.relu, device, huge).status is graph.ExecutionStatus.Success
    empty = graph.extract_mock_allocator_state(device)
    placed = graph.query_op_constraints_with_initial_state(ttsim.relu, device, empty, huge)
    assert (placed.response.refusal, placed.new_state, placed.output_allocations) == ("memory", empty, ())
    assert placed.response.error_message.startswith("Out of Memory: Not enough space to allocate")


def test_a_chain_of_states_is_the_run_of_the_chain(device):
    """Each result lies where it lies when the calls run, while the one before is held or evicted."""
    image = ttsim.zeros((1, 1, 2048, 96), layout=TILES, device=device, memory_config=ttsim.L1_MEMORY_CONFIG)
    first = ttsim.relu(image)
    second = ttsim.add(image, first)
    image.deallocate()
    third = ttsim.transpose(second, 2, 3)
    ran = [tensor.buffer_address() for tensor in (first, second, third)]

    record = graph.AllocationRecord(L1, 0, 3 * 2 * KIB)  # 192 tiles on 64 cores
    top = device.spec.l1.bytes - device.machine.l1_small_bytes
    records = [record._replace(address=top - record.size_per_bank)]
    asked, described = [], spec(1, 1, 2048, 96)
    for evicted, op, arguments in (
        (0, ttsim.relu, [described]),
        (0, ttsim.add, [described, described]),
        (1, ttsim.transpose, [described, 2, 3]),
    ):
        state = graph.MockAllocatorState().with_allocations(records[evicted:])
        output = graph.query_op_constraints_with_initial_state(op, device, state, *arguments)
        records += output.output_allocations
        assert output.new_state == state.with_allocations(records[evicted:])
        asked += [allocation.address for allocation in output.output_allocations]
    assert asked == ran


def test_a_state_holds_whole_allocation_units(device):
    """Rows of 16 B on 64 cores take 16 B of each, whose block is 32 B long; so does the state from the record."""
    rows = ttsim.TensorSpec((1, 1, 64, 8), ttsim.bfloat16, ttsim.ROW_MAJOR_LAYOUT, L1)
    state, records = graph.extract_mock_allocator_state(device), ()
    for blocks in (1, 2, 3):
        output = graph.query_op_constraints_with_initial_state(ttsim.relu, device, state, rows)
        assert output.new_state.total_allocated_size(L1) == 32 * blocks
        records += output.output_allocations
        state = state.with_allocations(records)
    assert [record.size_per_bank for record in records] == [16, 16, 16]


def test_a_matmul_fits_into_what_is_below_the_lowest_tensor(device):
    """Free bytes above it do not count: the blocks of 16 x 32 tiles on 64 cores become a program of single tiles, whose
    output cannot be sharded. Lines are the real library's."""
    low = graph.MockAllocatorState().with_allocations([graph.AllocationRecord(L1, 139264, 16384)])
    arguments = spec(1, 1, 512, 512, memory=DRAM), spec(1, 1, 512, 1024, memory=DRAM)
    asked = [
        graph.query_op_constraints_with_initial_state(
            ttsim.matmul, device, state, *arguments, memory_config=ttsim.L1_WIDTH_SHARDED_MEMORY_CONFIG
        ).response.error_message
        for state in (graph.MockAllocatorState(), low)
    ]
    assert asked[0] is None
    assert asked[1].startswith("Unsupported op for output sharding\n")


def test_arguments_have_no_place_of_their_own(device):
    """As the real library's, which have address 0: one that is freed stays in the state, and so does a view's."""
    image = graph.AllocationRecord(L1, 1_000_000 // 32 * 32, 2 * KIB)
    state = graph.MockAllocatorState().with_allocations([image])
    freed = graph.query_op_constraints_with_initial_state(ttsim.deallocate, device, state, spec(1, 1, 64, 64))
    assert (freed.response.status, freed.new_state) == (graph.ExecutionStatus.Success, state)
    view = graph.query_op_constraints_with_initial_state(
        ttsim.reshape, device, state, spec(1, 1, 64, 64), (1, 2, 32, 64)
    )  # fmt: skip
    assert (view.output_allocations, view.new_state) == ((image._replace(address=0),), state)


def twice(tensor):
    return ttsim.relu(ttsim.relu(tensor))


def test_a_call_that_does_not_fit_leaves_nothing_behind(device):
    """The first result of 768 KiB a core fits, the second does not."""
    empty = graph.extract_mock_allocator_state(device)
    output = graph.query_op_constraints_with_initial_state(twice, device, empty, spec(1, 1, 24576, 1024))
    assert output.response.refusal == "memory"
    assert output.new_state == empty


def test_a_state_joins_regions_that_touch():
    state = graph.MockAllocatorState().with_allocations(
        [graph.AllocationRecord(L1, at, 64) for at in (2048, 1024, 1088)] + [graph.AllocationRecord(DRAM, 32, 32)]
    )
    assert state.regions == {L1: ((1024, 1152), (2048, 2112)), DRAM: ((32, 64),)}
    assert (state.total_allocated_size(L1), state.total_allocated_size()) == (192, 224)
    assert (state.lowest_occupied(L1), state.lowest_occupied(ttsim.BufferType.L1_SMALL)) == (1024, None)


def test_a_state_of_another_device_is_refused(device):
    beyond = graph.MockAllocatorState({L1: ((1024, 2048),)})  # below the first address that tensors may have
    with pytest.raises(ttsim.DeviceError, match="blocks in use must follow each other"):
        graph.query_op_constraints_with_initial_state(ttsim.relu, device, beyond, spec(32, 32))


@pytest.mark.parametrize("record", [(L1, 1024, 64), {"address": 1024}, graph.AllocationRecord("L1", 1024, 64)])
def test_what_is_no_record_is_refused(record):
    with pytest.raises(ttsim.ArgumentTypeError, match="record"):
        graph.MockAllocatorState().with_allocations([record])


@pytest.mark.parametrize("sizes", [(-1, 64), (1024, -64), (1024.5, 64), (1024, "64"), (True, 64)])
def test_a_record_has_whole_numbers_of_bytes(sizes):
    with pytest.raises(ttsim.ArgumentTypeError, match="of a record must be an integer from 0 on, in bytes"):
        graph.MockAllocatorState().with_allocations([graph.AllocationRecord(L1, *sizes)])


def test_a_tensor_without_elements_takes_no_memory_of_a_state(device):
    state = graph.MockAllocatorState().with_allocations([graph.AllocationRecord(L1, 1_000_000, 0)])
    output = graph.query_op_constraints_with_initial_state(ttsim.relu, device, state, spec(32, 32))
    assert output.response.status is graph.ExecutionStatus.Success


ASKS = [
    graph.query_op_constraints,
    graph.query_op_runtime,
    lambda op, device, *args: graph.query_op_runtime_with_initial_state(op, device, graph.MockAllocatorState(), *args),
    lambda op, device, *args: (
        graph.query_op_constraints_with_initial_state(op, device, graph.MockAllocatorState(), *args).response
    ),
]


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("op", [ttsim.relu, lambda tensor: ttsim.concat([tensor, tensor], dim=3)])
def test_a_tensor_of_another_device_is_no_argument(device, ask, op):
    """An answer for the device on which the tensor lies would be one to another question."""
    with ttsim.open_device(device_id=1, values="off", spec="blackhole_p150") as other:
        tensor = ttsim.zeros((1, 1, 32, 32), layout=TILES, device=other)
        response = ask(op, device, tensor)
        assert (response.refusal, ask(op, other, tensor).refusal) == ("legality", None)
        assert "lives on another device" in response.error_message


@pytest.mark.parametrize("ask", ASKS)
def test_a_closed_device_is_not_asked_about(device, ask):
    with ttsim.open_device(device_id=1, values="off") as closed:
        pass
    assert "was closed" in ask(ttsim.relu, closed, spec(32, 32)).error_message


def test_a_function_of_another_library_is_not_called_one_of_ttnn(device):
    response = graph.query_op_constraints(np.add, device, spec(32, 32))
    assert (response.refusal, response.error_message) == ("argument", "add: missing a required argument: 'x2'")


def not_simulated(tensor):
    raise ttsim.NotSimulatedError("relu: ttsim does not simulate this tensor; choose another")


@pytest.mark.parametrize(
    ("refusal", "op", "arguments"),
    [
        ("argument", ttsim.relu, ["text"]),
        ("legality", ttsim.matmul, [spec(32, 64), spec(32, 64)]),
        ("memory", ttsim.relu, [spec(16384, 16384)]),
        ("not simulated", not_simulated, [spec(32, 32)]),
    ],
)
def test_refusals_have_a_class(device, refusal, op, arguments):
    empty = graph.extract_mock_allocator_state(device)
    response = graph.query_op_constraints_with_initial_state(op, device, empty, *arguments).response
    assert (response.refusal, response.status) == (refusal, graph.ExecutionStatus.Error)
    assert response.resource_usage == (0, 0, 0, 0)
    assert response.output_tensor_specs is None


def test_runtime_is_that_of_a_report(device):
    arguments = {
        "input_tensor": ttsim.TensorSpec((1, 1, 256, 64), ttsim.bfloat16, ttsim.ROW_MAJOR_LAYOUT),
        "weight_tensor": ttsim.TensorDescription((64, 32, 2, 2)), "stride": (2, 2), **conv_sizes(16, 16, 64, 32, 2, 2),
    }  # fmt: skip
    report = ttsim.estimate_cycles(ttsim.conv_transpose2d, device=device, **arguments)
    response = graph.query_op_runtime(ttsim.conv_transpose2d, device, device=device, **arguments)
    assert response.runtime == round(report.nanoseconds) > 0
    assert response.trace_replay == report.launches.readings[0].total_nanoseconds
    assert (response.error_share, response.unmeasured_share) == (
        report.total.error.share,
        report.total.error.unmeasured_share,
    )
    refused = graph.query_op_runtime(ttsim.matmul, device, spec(32, 64), spec(32, 64))
    assert (refused.runtime, refused.refusal) == (0, "legality")


@pytest.mark.parametrize(
    ("runs", "memory", "side", "options"),
    [
        (1, DRAM, 16, {}),
        (1, DRAM, 256, {}),  # equal slices find their programs in the cache, where a query of memory makes each
        (1, DRAM, 16, {"conv_config": ttsim.Conv2dConfig(config_tensors_in_dram=True)}),
        (2, L1, 16, {}),  # a query of time places the image, which leaves less of L1 free
        (2, DRAM, 16, {"padding": (9, 9)}),  # refused
    ],
)
def test_both_answers_are_those_of_two_queries(device, runs, memory, side, options):
    ran = []

    def convolution(**arguments):
        ran.append(arguments)
        return ttsim.conv_transpose2d(**arguments)

    arguments = {
        "input_tensor": ttsim.TensorSpec((1, 1, side * side, 64), ttsim.bfloat16, ttsim.ROW_MAJOR_LAYOUT, memory),
        "weight_tensor": ttsim.TensorDescription((64, 32, 2, 2)), "stride": (2, 2), "device": device,
        **conv_sizes(side, side, 64, 32, 2, 2), **options,
    }  # fmt: skip
    both = queries.query_constraints_and_runtime(convolution, device, (), arguments)
    assert len(ran) == runs
    memory_and_time = graph.query_op_constraints, graph.query_op_runtime
    assert both == tuple(ask(convolution, device, **arguments) for ask in memory_and_time)


def test_a_call_of_several_operations_is_asked_for_twice(device):
    image = ttsim.TensorSpec((1, 1, 256, 64), ttsim.bfloat16, ttsim.ROW_MAJOR_LAYOUT)
    weights, sizes = ttsim.zeros((64, 64, 2, 2), ttsim.bfloat16), conv_sizes(16, 16, 64, 64, 2, 2)

    def layer(image):
        output = ttsim.conv_transpose2d(
            input_tensor=image, weight_tensor=weights, device=image.device(), stride=(2, 2), **sizes
        )
        return ttsim.relu(output)

    both = queries.query_constraints_and_runtime(layer, device, (image,), {})
    assert both == tuple(ask(layer, device, image) for ask in (graph.query_op_constraints, graph.query_op_runtime))
    assert both[0].resource_usage.cb_peak_size_per_core > 0


def test_runtime_on_top_of_a_state_is_that_on_a_device_in_this_state(device):
    """A matmul between tensors in DRAM has smaller blocks where little of L1 is free."""
    first, second = (ttsim.TensorSpec(sides, ttsim.bfloat16, TILES) for sides in ((1024, 2048), (2048, 2048)))
    empty = graph.extract_mock_allocator_state(device)
    alone = graph.query_op_runtime(ttsim.matmul, device, first, second)
    assert graph.query_op_runtime_with_initial_state(ttsim.matmul, device, empty, first, second) == alone
    lies = ttsim.zeros((1, 1, 8192, 4096), layout=TILES, device=device, memory_config=ttsim.L1_MEMORY_CONFIG)
    state = graph.extract_mock_allocator_state(device)
    crowded = graph.query_op_runtime(ttsim.matmul, device, first, second)
    ttsim.deallocate(lies)
    assert graph.query_op_runtime_with_initial_state(ttsim.matmul, device, state, first, second) == crowded
    assert crowded.runtime > alone.runtime > 0
    refused = graph.query_op_runtime_with_initial_state(ttsim.relu, device, state, spec(16384, 16384))
    assert refused.refusal == "memory"


@pytest.mark.parametrize("ask", [graph.query_op_constraints, graph.query_op_runtime])
def test_arguments_that_a_function_does_not_take_are_refused(device, ask):
    """An answer, as in the real library, whose binding refuses them; an error of the function itself is no answer."""
    response = ask(ttsim.relu, device)
    assert response.refusal == "argument"
    assert response.error_message.startswith("ttnn.relu(): incompatible function arguments.")
    with pytest.raises(TypeError, match="can only concatenate"):
        ask(lambda tensor: tensor.shape + 1.5, device, spec(32, 32))


def test_times_of_a_chain_add_up_to_those_of_its_run(device):
    """Each call is asked about on the device as the calls before left it; a time is rounded to nanoseconds."""
    tensor, asked = ttsim.zeros((1, 1, 2048, 96), layout=TILES, device=device), []
    place = {"memory_config": ttsim.L1_MEMORY_CONFIG}
    calls = [(ttsim.relu, []), (ttsim.transpose, [2, 3]), (ttsim.softmax, [])]
    with ttsim.profile(device) as profile:
        for op, arguments in calls:
            asked.append(graph.query_op_runtime(op, device, tensor, *arguments, **place).runtime)
            tensor = op(tensor, *arguments, **place)
    assert len(profile.report().calls) == len(calls)
    assert min(asked) > 0
    assert sum(asked) == pytest.approx(profile.report().nanoseconds, abs=len(calls) / 2)


def test_what_is_no_function_is_refused(device):
    with pytest.raises(ttsim.ArgumentTypeError, match="op must be a function of this library"):
        graph.query_op_constraints("relu", device, spec(32, 32))


def test_a_description_is_reshaped_like_a_tensor(device):
    """A description may stand for prepared weights, whose padding is kept; reshape takes it for a plain tensor."""
    lying = ttsim.zeros((1, 320, 79), device=device)
    described = ttsim.TensorDescription((1, 320, 79), memory_config=ttsim.DRAM_MEMORY_CONFIG)
    reports = [ttsim.estimate_cycles(ttsim.reshape, each, (1, 79, 320), device=device) for each in (lying, described)]
    assert [operation.name for operation in reports[0].operations] == ["ReshapeViewDeviceOperation"]
    assert reports[0] == reports[1]


@pytest.mark.parametrize(
    ("op", "layout", "others"),
    [
        (ttsim.untilize, TILES, []),
        (ttsim.tilize_with_zero_padding, ttsim.ROW_MAJOR_LAYOUT, []),
        (ttsim.view, TILES, [[1]]),
        (ttsim.mse_loss, ttsim.ROW_MAJOR_LAYOUT, [spec(128, memory=DRAM)]),
    ],
)
def test_a_tensor_without_axes_is_timed(device, op, layout, others):
    described = ttsim.TensorSpec((), ttsim.bfloat16, layout)
    assert graph.query_op_runtime(op, device, described, *others).status is graph.ExecutionStatus.Success


@pytest.mark.parametrize("op", [ttsim.rms_norm, ttsim.layer_norm])
def test_a_norm_of_no_elements_in_l1_is_timed(device, op):
    assert graph.query_op_runtime(op, device, spec(0, 32)).status is graph.ExecutionStatus.Success


def test_a_result_without_axes_is_timed(device):
    report = ttsim.estimate_cycles(
        ttsim.sum, spec(2, 64, 64, memory=DRAM), output_layout=ttsim.ROW_MAJOR_LAYOUT, device=device
    )
    assert report.operations[-1].name == "UntilizeWithUnpaddingDeviceOperation"


def test_a_query_leaves_nothing_to_the_garbage_collector(device, monkeypatch):
    """Whoever asks thousands of questions would wait for collections."""
    trials, like = [], queries._like

    def remembered(device):
        trial = like(device)
        trials.append(ref(trial))
        return trial

    monkeypatch.setattr(queries, "_like", remembered)
    gc.disable()
    try:
        graph.query_op_constraints(ttsim.relu, device, spec(1, 1, 64, 128))
        assert [trial() for trial in trials] == [None]
    finally:
        gc.enable()
