"""Answers: the same figures as queries and reports give, every question answered, and mistakes in words."""

import json
import time

import pytest

import ttsim
from ttsim.study.ask import answer
from ttsim.study.ask.answer import answer_of, answer_text, is_failure
from ttsim.study.ask.question import call_of, question_of
from ttsim.study.ask.values import value_of

SPEC = {"shape": [1, 1, 64, 128], "dtype": "ttnn.bfloat16", "layout": "ttnn.TILE_LAYOUT"}
IN_L1 = {"ttnn.TensorSpec": {**SPEC, "buffer_type": "ttnn.BufferType.L1"}}
IN_DRAM = {"ttnn.TensorSpec": SPEC}
LAYER = {"name": "up", "input_height": 16, "input_width": 16, "in_channels": 64, "out_channels": 32}
LAYER |= {"kernel_size": 2, "stride": 2, "input_memory": "dram"}


def asked(**fields):
    return json.loads(answer_text(json.dumps(fields), 60))


@pytest.fixture
def n150():
    device = ttsim.open_device(spec="n150", l1_small_size=32768, values="off")
    yield device
    ttsim.close_device(device)


def test_memory_and_time_are_those_of_the_queries(n150):
    spec = ttsim.TensorSpec((1, 1, 64, 128), ttsim.bfloat16, ttsim.TILE_LAYOUT, ttsim.BufferType.L1)
    response = ttsim.graph.query_op_constraints(ttsim.exp, n150, spec)
    runtime = ttsim.graph.query_op_runtime(ttsim.exp, n150, spec)
    both = asked(op="exp", args=[IN_L1], device="n150")
    assert both["constraints"]["resource_usage"] == response.resource_usage._asdict()
    assert both["constraints"]["status"] == "Success"
    assert value_of(both["constraints"]["output_tensor_specs"]) == list(response.output_tensor_specs)
    assert (
        both["runtime"]["runtime"]
        == runtime.runtime
        == round(ttsim.estimate_cycles(ttsim.exp, spec, device=n150).nanoseconds)
    )
    assert both["runtime"]["trace_replay"] == runtime.trace_replay


def test_memory_and_time_share_the_call_of_a_question(monkeypatch):
    read = []
    monkeypatch.setattr(answer, "call_of", lambda fields: read.append(fields) or call_of(fields))
    assert set(asked(op="exp", args=[IN_L1])) == {"constraints", "runtime"}
    assert len(read) == 1


def test_a_layer_is_the_call_of_the_same_layer(n150):
    arguments = {
        "input_tensor": {"ttnn.TensorDescription": {
            "shape": [1, 16, 16, 64], "memory_config": "ttnn.DRAM_MEMORY_CONFIG",
        }},
        "weight_tensor": {"ttnn.TensorDescription": {"shape": [64, 32, 2, 2]}},
        "bias_tensor": {"ttnn.TensorDescription": {"shape": [1, 1, 1, 32]}},
        "in_channels": 64, "out_channels": 32, "batch_size": 1, "input_height": 16, "input_width": 16,
        "kernel_size": [2, 2], "stride": [2, 2],
    }  # fmt: skip
    layer = asked(layer=LAYER, device="n150")
    assert layer == asked(op="conv_transpose2d", kwargs=arguments, device="n150")
    assert layer["runtime"]["status"] == "Success"


def test_a_state_goes_in_and_comes_out():
    lies = {"buffer_type": "ttnn.BufferType.L1", "address": 1_000_000, "size_per_bank": 2048}
    output = asked(ask="constraints", op="relu", args=[IN_L1], device="n150", state=[lies])["constraints"]
    (made,) = output["output_allocations"]
    assert output["new_state"] == [lies, made]
    assert made["size_per_bank"] == 2048  # one of the 8 tiles, in 8 banks
    placed = asked(ask="constraints", op="relu", args=[IN_DRAM], state=[])["constraints"]["new_state"]
    assert [record["buffer_type"] for record in placed] == ["ttnn.BufferType.DRAM"]


def test_times_are_those_on_top_of_the_state():
    """Blocks of a matmul are smaller where a buffer lies low in L1."""
    sides = {"ttnn.TensorSpec": {**SPEC, "shape": [1024, 1024]}}
    question = {"op": "matmul", "args": [sides, sides], "device": "n150"}
    low = [{"buffer_type": "ttnn.BufferType.L1", "address": 300_000, "size_per_bank": 2048}]
    alone = asked(ask="runtime", **question)["runtime"]["runtime"]
    crowded = asked(ask=["runtime", "model"], state=low, **question)
    assert asked(ask="runtime", state=[], **question)["runtime"]["runtime"] == alone < crowded["model"]
    assert crowded["runtime"]["runtime"] == crowded["model"]
    chosen = asked(state=low, choose=[{}, {"device": "p150"}], **question)["choice"]
    assert {row["candidate"]: row["runtime"] for row in chosen["ranked"]}[0] == crowded["model"]


def test_out_of_memory_keeps_the_marker_and_has_a_class():
    large = {"ttnn.TensorSpec": {**SPEC, "shape": [1, 1, 16384, 16384], "buffer_type": "ttnn.BufferType.L1"}}
    answered = asked(ask=["constraints", "runtime"], op="relu", args=[large], device="n150", state=[])
    for part in answered.values():
        assert (part["status"], part["refusal"]) == ("Error", "memory")
        assert part["error_message"].startswith("Out of Memory: Not enough space to allocate")


def test_the_plug_of_a_predictor_gets_nanoseconds_or_0():
    tensor = {"tensor_spec": {"logical_shape": [64, 128, 0, 0], "tensor_layout": {"dtype": 0}}}
    spec = {"ttnn.TensorSpec": {**SPEC, "shape": [64, 128]}}
    known = asked(op="exp", args=[spec])["runtime"]["runtime"]
    assert asked(ask="model", op="exp", kwargs={"tensor_json": tensor}) == {"model": known}
    assert asked(ask="model", op="ttnn::exp", args=[tensor, {}]) == {"model": known}
    in_l1 = {"tensor_json": tensor, "output_memory_config": {"buffer_type": 1}}
    assert 0 < asked(ask="model", op="exp", kwargs=in_l1)["model"] < known
    assert asked(ask="model", op="no_such", args=[tensor]) == {"model": 0}
    assert asked(ask="model", op="exp") == {"model": 0}
    layer = asked(ask=["model", "runtime"], layer=LAYER, device="n150")
    assert layer["model"] == layer["runtime"]["runtime"] > 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"device": "n15"}, "unknown device"),
        ({"release": "1"}, "release must be one of"),
        ({"state": [3]}, "a record of state"),
        ({"layer": {}}, "give layer or op, not both"),
    ],
)
def test_a_mistake_around_the_call_is_no_unknown_time(wrong, words):
    """A compiler that misspells its device would take every time for an unknown one."""
    assert words in asked(ask="model", op="exp", args=[IN_L1], **wrong)["error"]


def test_operations_of_ttnn_alone_are_not_simulated():
    """A compiler asks for another operation instead; a misspelt name is a mistake of its own."""
    names = ("scatter", "ttnn::scatter", "experimental.all_gather_async", "scater", "open_device", "Conv2d")
    kinds = [asked(op=name, args=[IN_L1])["refusal"] for name in names]
    assert kinds == ["not simulated"] * 3 + ["argument"] * 3
    refused = asked(op="exp", args=[IN_L1], choose=[{"op": "scatter"}, {"op": "scater"}])["choice"]["refused"]
    assert [row["refusal"] for row in refused] == ["not simulated", "argument"]


def test_candidates_are_ranked_as_their_own_questions():
    changes = [{"layer": {"config": {"shard_layout": name}}} for name in ("HEIGHT_SHARDED", "BLOCK_SHARDED")]
    ranked = asked(layer=LAYER, device="n150", choose=[*changes, {"op": "relu"}])["choice"]
    alone = {
        number: asked(ask="runtime", layer={**LAYER, **change["layer"]}, device="n150")["runtime"]["runtime"]
        for number, change in enumerate(changes)
    }
    assert {row["candidate"]: row["runtime"] for row in ranked["ranked"]} == alone
    assert ranked["best"] == min(alone, key=alone.get)
    assert [row["error_message"] for row in ranked["refused"]] == ["give layer or op, not both"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"ask": "tim", "op": "relu"},
            "ask must be constraints, runtime, model, version, or several of these, not 'tim'",
        ),
        ({"ask": [], "op": "relu"}, "ask is empty; it is constraints, runtime, model, version, or several of these"),
        ({"ask": ["model", {}], "op": "relu"}, "or several of these, not {}"),
        ({"op": "rel"}, "'rel' is no operation that ttsim plans, did you mean 'relu'?"),
        ({}, 'op or layer is missing; ask for the call of an operation, such as "op": "relu"'),
        ({"op": 3}, "op must be a text, not 3"),
        ({"op": "relu", "l1_small_size": True}, "l1_small_size must be an integer, not True"),
        ({"op": "relu", "argz": []}, "unknown field 'argz', did you mean 'args'?; known are protocol, id, ask, op"),
        ({"op": "relu", "device": "n15"}, "n150"),
        ({"op": "relu", "args": [IN_L1], "state": [[1, 2, 3]]}, "buffer_type of a record must be a memory such as"),
        ({"op": "relu", "state": ["x"]}, "a record of state has buffer_type, address, size_per_bank, not 'x'"),
        ({"layer": LAYER, "op": "relu"}, "give layer or op, not both"),
        ({"layer": {"in_channels": 3}}, "a layer needs"),
        ({"op": "relu", "choose": []}, "choose has no candidates"),
        ({"op": "relu", "choose": [3]}, "a candidate is an object of fields, not 3"),
    ],
)
def test_what_is_no_question_is_answered_in_words(fields, words):
    text = json.dumps(asked(**fields))
    assert json.dumps(words)[1:-1] in text
    assert '"argument"' in text


def test_a_deep_line_is_no_question():
    with pytest.raises(ttsim.ArgumentError, match="a question is a line of JSON"):
        question_of(b"[" * 100_000)


def test_missing_arguments_have_the_first_line_of_the_library():
    refused = asked(op="exp")["constraints"]
    assert refused["refusal"] == "argument"
    assert refused["error_message"].startswith("ttnn.exp(): incompatible function arguments.\nexp: missing a required")


def test_a_failure_of_ours_is_answered_and_marked(monkeypatch):
    def fails(read):
        raise ZeroDivisionError("by hand")

    monkeypatch.setattr(answer, "ASKED", {"runtime": fails})
    text = answer_text('{"ask":"runtime"}', 60)
    assert is_failure(text)
    assert json.loads(text)["error"] == "ttsim failed at this question: ZeroDivisionError: by hand"
    monkeypatch.setattr(answer, "ASKED", {"runtime": lambda read: time.sleep(10)})
    assert (
        json.loads(answer_text('{"ask":"runtime"}', 0.01))["error"] == "no answer within 0.01 s; --timeout allows more"
    )


def test_a_question_is_its_fields_without_id_and_protocol():
    first, second = (
        question_of(b'{"id": 7, "op": "relu", "args": []}'),
        question_of(b'{"args":[],"protocol":1,"op":"relu"}'),
    )
    assert first.text == second.text == '{"args":[],"op":"relu"}'
    assert (first.id, second.id) == (7, None)
    assert set(answer_of({"ask": "version"})["version"]) == {"protocol", "model"}
