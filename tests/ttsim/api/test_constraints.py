from typing import Any

import numpy as np
import pytest

import ttsim
from device.errors import SpecError
from device.spec.device_spec import load_spec
from tests.sizes import conv_sizes
from ttsim import ExecutionStatus, TensorDescription, query_op_constraints

CALL: dict[str, Any] = {**conv_sizes(16, 16, 64, 32, 3, 3), "stride": (2, 2), "padding": (1, 1)}
IMAGE = TensorDescription((1, 1, 256, 64), memory_config=ttsim.DRAM_MEMORY_CONFIG)


@pytest.mark.parametrize("spec", ["wormhole_n150", "blackhole_p150"])
@pytest.mark.parametrize("place", [ttsim.DRAM_MEMORY_CONFIG, ttsim.L1_MEMORY_CONFIG])
def test_the_answer_is_what_a_capture_of_the_call_gives(spec: str, place: ttsim.MemoryConfig) -> None:
    device = ttsim.open_device(spec=spec, values="off", l1_small_size=32768)
    weights = ttsim.Tensor(np.zeros((64, 32, 3, 3), np.float32), ttsim.bfloat16)
    ttsim.graph.begin_graph_capture()
    image = ttsim.Tensor(np.zeros((1, 1, 256, 64), np.float32), ttsim.bfloat16).to(device, place)
    output = ttsim.conv_transpose2d(input_tensor=image, weight_tensor=weights, device=device, **CALL)
    usage = ttsim.graph.extract_resource_usage_per_core(ttsim.graph.end_graph_capture())
    described = TensorDescription((1, 1, 256, 64), memory_config=place)
    for given in ({"input_tensor": described}, {"input_tensor": image, "weight_tensor": weights}):
        answer = query_op_constraints(spec=spec, **given, **CALL)
        assert answer.status is ExecutionStatus.Success
        assert answer.error_message is None
        assert (
            answer.cb_peak_size_per_core,
            answer.l1_buffers_peak_per_core,
            answer.peak_memory_usage_per_core,
        ) == usage
        assert answer.output_tensor_specs == (output.spec,)
        in_l1 = place is ttsim.L1_MEMORY_CONFIG
        assert answer.l1_output_buffer_per_core == (output.buffer.spec.bank_bytes if in_l1 else 0)
        assert (answer.l1_output_buffer_per_core > 0) == in_l1


def test_prepared_weights_are_among_the_results_if_asked_for() -> None:
    answer = query_op_constraints(input_tensor=IMAGE, return_weights_and_bias=True, return_output_dim=True, **CALL)
    assert answer.output_tensor_specs is not None
    assert [spec.shape for spec in answer.output_tensor_specs] == [(1, 1, 31 * 31, 32), (1, 1, 576, 32)]


def test_what_does_not_fit_is_an_error_with_the_text_of_the_call() -> None:
    large = CALL | {"in_channels": 64, "input_height": 256, "input_width": 256}
    image = TensorDescription((1, 1, 256 * 256, 64), memory_config=ttsim.DRAM_MEMORY_CONFIG)
    answer = query_op_constraints(input_tensor=image, dram_slice_config=ttsim.Conv2dL1FullSliceConfig, **large)
    assert answer.status is ExecutionStatus.Error
    assert answer.output_tensor_specs is None
    assert answer.peak_memory_usage_per_core == 0
    assert answer.error_message is not None
    assert answer.error_message.startswith("Statically allocated circular buffers")
    assert query_op_constraints(input_tensor=image, **large).status is ExecutionStatus.Success
    small = query_op_constraints(input_tensor=IMAGE, l1_small_size=0, **CALL)
    assert "The L1_SMALL region is 0 B" in (small.error_message or "")


def test_contradictions_are_errors_and_wrong_calls_raise() -> None:
    wrong = query_op_constraints(input_tensor=IMAGE, **(CALL | {"stride": (0, 1)}))
    assert wrong.error_message is not None
    assert wrong.error_message.startswith("stride must be greater than 0")
    assert query_op_constraints(input_tensor=IMAGE, **(CALL | {"dilation": (0, 1)})).status is ExecutionStatus.Error
    with pytest.raises(TypeError, match="input_height"):
        query_op_constraints(
            input_tensor=IMAGE, **{name: value for name, value in CALL.items() if name != "input_height"}
        )
    with pytest.raises(TypeError, match=r"there is no 'inputs'"):
        query_op_constraints(input_tensor=IMAGE, inputs=3, **CALL)
    with pytest.raises(SpecError, match="wormhole"):
        query_op_constraints(input_tensor=IMAGE, spec="wormhole", **CALL)


def test_no_device_and_no_capture_is_touched() -> None:
    device = ttsim.open_device(l1_small_size=32768)
    image = ttsim.Tensor(np.zeros((1, 1, 256, 64), np.float32), ttsim.bfloat16).to(device)
    view = ttsim.get_memory_view(device, ttsim.BufferType.DRAM)
    ttsim.graph.begin_graph_capture(ttsim.graph.RunMode.NO_DISPATCH)
    answer = query_op_constraints(input_tensor=image, **CALL)
    assert len(ttsim.graph.end_graph_capture()) == 2
    assert answer == query_op_constraints(input_tensor=IMAGE, **CALL)
    assert ttsim.get_memory_view(device, ttsim.BufferType.DRAM) == view
    assert device.num_program_cache_entries() == 0


def test_a_mistake_of_ours_is_no_answer(monkeypatch):
    def broken(*_, **__):
        raise ValueError("a mistake")

    monkeypatch.setattr("ttsim.api.conv.plan_call", broken)
    unplanned = load_spec("wormhole_n150").replace(name="one that has not planned it yet")
    with pytest.raises(ValueError, match="a mistake"):
        query_op_constraints(input_tensor=IMAGE, spec=unplanned, **CALL)


def test_padding_before_windows_are_folded_takes_room_for_a_page_of_rows() -> None:
    device = ttsim.open_device(spec="wormhole_n150", values="off", l1_small_size=32768)
    weights = ttsim.Tensor(np.zeros((64, 32, 2), np.float32), ttsim.bfloat16)
    sizes = {"in_channels": 32, "out_channels": 64, "batch_size": 1, "input_length": 256, "kernel_size": 2, "stride": 2}
    image = ttsim.TensorSpec((1, 1, 256, 32), ttsim.bfloat16, ttsim.ROW_MAJOR_LAYOUT, ttsim.BufferType.DRAM)

    def call(on: ttsim.Device, image: ttsim.Tensor) -> Any:
        return ttsim.conv1d(input_tensor=image, weight_tensor=weights, device=on, padding=1, **sizes)

    usage = ttsim.graph.query_op_constraints(call, device, device, image).resource_usage
    assert usage.peak_memory_usage_per_core == 512 * 64 + 64  # groups of rows on their way, and a row of the number


def test_a_view_has_pages_of_its_own_rows() -> None:
    """64 rows of 64 B lie on 64 cores; seen as 4 rows of 1,024 B, a core has one of them."""
    with ttsim.open_device(spec="wormhole_n150", values="off") as device:
        rows = ttsim.TensorSpec((64, 32), ttsim.bfloat16, ttsim.ROW_MAJOR_LAYOUT, ttsim.BufferType.L1)
        usage = ttsim.graph.query_op_constraints(ttsim.experimental.view, device, rows, (4, 512)).resource_usage
    assert (usage.l1_buffers_peak_per_core, usage.l1_output_buffer_per_core) == (64, 1024)


@pytest.mark.parametrize("l1_small_size", [0, 65536])
def test_rows_to_gather_from_are_cut_for_an_empty_l1_with_its_l1_small(l1_small_size: int) -> None:
    """4,008 tiles in 6 parts of 668: five parts, of 802, would fill an L1 of 1.5 MiB."""
    device = ttsim.open_device(l1_small_size=l1_small_size, values="off")
    rows = ttsim.zeros((1, 128256), ttsim.bfloat16, ttsim.TILE_LAYOUT, device)
    places = ttsim.zeros((1, 64), ttsim.uint32, ttsim.TILE_LAYOUT, device)
    answer = ttsim.graph.query_op_constraints(ttsim.gather, device, rows, -1, places)
    assert answer.resource_usage is not None
    assert answer.resource_usage.cb_peak_size_per_core == 668 * 2048 + 4096 + 2048
