"""Recorded calls in the planner's words, and runs against records."""

from device.memory.memory_config import BufferType, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from ops.planners.conv.arguments import ComputeConfig, SliceConfig, SliceType
from tools.recorded import (
    DATA,
    PEAK_FIELDS,
    Outcome,
    Outputs,
    buffer_difference,
    compare,
    difference,
    planner_arguments,
    read_records,
    reason,
)

RECORDS = [record for record in read_records(DATA) if "error" not in record and "cbs" in record]
OUTPUTS = Outputs(DATA)


def perfect(record):
    """What a simulator without a fault would answer."""
    keys = ("output", "weight_prepared", "bias_prepared", "output_hw", "ops", "cbs", "buffers")
    peaks = record.get("resource_per_core") or {}
    fields = {key: record.get(key) for key in keys} | {
        "resource_per_core": {key: peaks[key] for key in PEAK_FIELDS if peaks}
    }
    return Outcome(fields=fields, values=OUTPUTS.of(record))


def test_records_agree_with_themselves():
    for record in RECORDS:
        found = compare(record, perfect(record), OUTPUTS.of(record))
        assert set(found.values()) == {None}, record["name"]


def test_every_aspect_can_disagree():
    record = next(record for record in RECORDS if "output_array" in record and record["cbs"])
    want = OUTPUTS.of(record)
    outcome = perfect(record)
    outcome.values = -want
    for key in ("ops", "cbs", "buffers"):
        outcome.fields[key] = outcome.fields[key][1:]
    outcome.fields["output_hw"] = [1, 1]
    outcome.fields["resource_per_core"] = {"peak_cb": 1, "peak_l1": 2, "peak_total": 3}
    found = compare(record, outcome, want)
    assert all(found[aspect] for aspect in ("values", "specs", "ops", "cbs", "buffers", "peaks"))


def test_an_error_agrees_by_its_first_line():
    record = {"error": "Out of Memory: Not enough space", "case": {}}
    assert compare(record, Outcome(error="TT_FATAL\nOut of Memory: Not enough space\nmore"), None) == {"error": None}
    assert compare(record, Outcome(), None)["error"]
    assert compare({"case": {}}, Outcome(error="no"), None) == {"error": "no"}
    assert compare({"case": {}, "defect": True}, Outcome(error="no"), None) == {}


def test_reason_skips_the_position():
    assert reason("TT_FATAL @ a.cpp:1: x\ninfo:\nStride of program 12 is 0\nbacktrace") == "Stride of program N is 0"


def test_differences_name_the_place():
    assert difference([1, 2], [1, 2]) is None
    assert difference([1, 2], [1]) == "2 wanted, 1 got; at 1 want [2], got []"
    assert buffer_difference([{"size": 8}], [{"size": "8", "address": 0}]) is None
    assert "at 0" in buffer_difference([{"size": 8}], [{"size": 9}])


CASE = {"name": "one", "H": 4, "W": 6, "in_channels": 16, "out_channels": 8, "kernel": [3, 2]}


def test_defaults_are_those_of_the_records():
    call = planner_arguments(CASE)
    assert call.input.spec.shape == (1, 1, 24, 16)
    assert (call.kernel_size, call.stride, call.padding, call.output_padding) == ((3, 2), (1, 1), (0,) * 4, (0, 0))
    assert (call.input.spec.data_format, call.bias, call.compute_config, call.slice_config) == (BFLOAT16,) + (None,) * 3
    assert planner_arguments(CASE | {"padding": [1, 0]}).padding == (1, 1, 0, 0)
    assert planner_arguments(CASE | {"padding": [1, 0, 2, 3]}).padding == (1, 0, 2, 3)


def test_fields():
    call = planner_arguments(
        CASE
        | {"batch": 2, "input_4d": True, "has_bias": True, "weights_in_dtype": "float32", "weights_dtype": "bfloat8_b"}
        | {"math_fidelity": "HiFi2", "packer_l1_acc": True, "slice": ["W", None], "activation": "RELU", "prep": True}
        | {"input_spec": ["HEIGHT", [24, 16], [1, 0]], "conv_config": {"padding_mode": "Replicate"}}
    )
    memory = call.input.spec.memory_config
    assert call.input.spec.shape == (2, 4, 6, 16)
    assert (memory.memory_layout, memory.buffer_type) == (TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1)
    assert (call.weight.spec.data_format, call.conv_config.weights_format) == (FLOAT32, BFLOAT8_B)
    assert (call.conv_config.replicate_padding, call.conv_config.activation) == (True, ("relu", ()))
    assert call.compute_config == ComputeConfig(fidelity_phases=2, packer_l1_acc=True)
    assert call.slice_config == SliceConfig(slice_type=SliceType.DRAM_WIDTH)
