"""Tools of agents: the answers of questions, reports as text, and schemas from the fields of questions."""

import pytest

import ttsim
from device.errors import ArgumentError
from ttsim.__main__ import main
from ttsim.study.ask.answer import answer_of
from ttsim.study.ask.question import FIELDS
from ttsim.study.ask.tools import CALL, TOOLS

LAYER = {"input_height": 16, "input_width": 16, "in_channels": 64, "out_channels": 32, "kernel_size": 2, "stride": 2}
CHOOSE = [{"layer": {"config": {"shard_layout": name}}} for name in ("HEIGHT_SHARDED", "BLOCK_SHARDED")]


@pytest.fixture
def n150():
    device = ttsim.open_device(spec="n150", l1_small_size=32768, values="off")
    yield device
    ttsim.close_device(device)


def arguments():
    """The call of the layer."""
    return {
        "input_tensor": ttsim.TensorDescription((1, 16, 16, 64)),
        "weight_tensor": ttsim.TensorDescription((64, 32, 2, 2)),
        "bias_tensor": ttsim.TensorDescription((1, 1, 1, 32)),
        "in_channels": 64, "out_channels": 32, "batch_size": 1, "input_height": 16, "input_width": 16,
        "kernel_size": (2, 2), "stride": (2, 2),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "own", "part"),
    [
        ("estimate", {}, "runtime"),
        ("constraints", {}, "constraints"),
        ("constraints", {"state": []}, "constraints"),
        ("choose", {"choose": CHOOSE}, "choice"),
    ],
)
def test_tools_answer_as_questions(name, own, part):
    asked = {"layer": LAYER, "device": "n150", **own}
    assert TOOLS[name].call(asked) == answer_of({**asked, "ask": part} if name != "choose" else asked)[part]


def test_an_explanation_is_the_report(n150):
    report = ttsim.estimate_cycles(ttsim.conv_transpose2d, device=n150, **arguments())
    explained = TOOLS["explain"].call({"layer": {**LAYER, "input_memory": "host"}, "device": "n150"})
    assert explained == {"cycles": report.cycles, "nanoseconds": round(report.nanoseconds), "text": report.explain()}


def test_advice_is_part_of_an_explanation():
    asked = {"layer": LAYER, "device": "n150"}
    texts = [TOOLS["explain"].call({**asked, **own})["text"] for own in ({}, {"advice": True})]
    assert ["What would help" in text for text in texts] == [False, True]


def test_an_estimate_lists_device_operations():
    asked = {"layer": LAYER, "device": "n150"}
    answer = TOOLS["estimate"].call({**asked, "operations": True})
    operations = answer.pop("operations")
    assert answer == TOOLS["estimate"].call(asked)
    assert round(sum(op["nanoseconds"] for op in operations)) == answer["runtime"]
    (conv,) = [op for op in operations if op["name"].startswith("Conv2d")]
    assert conv["critical_cycles"]["math"] > 0
    (move,) = [op for op in operations if op["name"].startswith("Move")]
    assert (move["critical_cycles"], move["busy_cycles"]["reader"] > 0) == (None, True)
    refused = {"op": "relu", "args": [3], "operations": True}
    assert TOOLS["estimate"].call(refused)["status"] == "Error"


def test_a_tuning_is_that_of_tune(n150):
    keep = ["core_grid", "slices", "transpose_shards"]
    asked = {"layer": {**LAYER, "input_memory": "host"}, "device": "n150", "effort": 2, "keep": keep}
    found = ttsim.tune(ttsim.conv_transpose2d, device=n150, effort=2, keep=keep, **arguments())
    assert TOOLS["tune"].call(asked) == found.to_dict()


def test_a_comparison_has_both_times():
    times = [TOOLS["estimate"].call({"layer": LAYER, "device": name})["runtime"] for name in ("n150", "p150")]
    compared = TOOLS["compare"].call({"layer": LAYER, "device": "n150", "after": {"device": "p150"}})
    assert [compared["before_ns"], compared["after_ns"]] == times
    assert "wormhole_n150 before, blackhole_p150 after" in compared["text"].splitlines()[0]


def test_files_of_reports_are_compared(tmp_path, n150):
    report = ttsim.estimate_cycles(ttsim.conv_transpose2d, device=n150, **arguments())
    paths = [tmp_path / "before.json", tmp_path / "after.json"]
    for path in paths:
        path.write_text(report.to_json(), encoding="utf-8")
    compared = TOOLS["compare"].call({"reports": list(map(str, paths))})
    assert compared["before_ns"] == compared["after_ns"] == report.nanoseconds
    with pytest.raises(ArgumentError, match=r"^compare: No such file or directory: '.*none.json'$"):
        TOOLS["compare"].call({"reports": [str(paths[0]), str(tmp_path / "none.json")]})


def test_devices_are_listed_and_shown():
    assert "wormhole_n150" in TOOLS["devices"].call({})["names"]
    (figures,) = TOOLS["devices"].call({"names": ["n150, dram.banks=6"]})["devices"]
    assert figures["dram"]["banks"] == 6


def test_schemas_come_from_the_fields_of_questions():
    for tool in TOOLS.values():
        assert set(tool.schema["properties"]) == {*tool.fields, *(tool.own or {})}
        assert set(tool.required) <= set(tool.schema["properties"])
        assert tool.schema["additionalProperties"] is False
    schema = TOOLS["choose"].schema
    assert schema["required"] == ["choose"]
    assert schema["properties"]["choose"] == {"type": "array", "description": FIELDS["choose"][1]}
    assert {schema["properties"][name]["type"] for name in CALL} == {"string", "array", "object", "integer", "boolean"}


@pytest.mark.parametrize(
    ("name", "asked", "words"),
    [
        ("estimate", {"layr": {}}, "unknown argument 'layr', did you mean 'layer'?"),
        ("estimate", {"choose": []}, "unknown argument 'choose'"),
        ("estimate", {"device": 3}, "device must be a text, not 3"),
        ("choose", {}, "argument choose is missing"),
        ("tune", {"effort": True}, "effort must be an integer, not True"),
        ("tune", {"op": "conv2d", "args": [3]}, "tune: give the arguments of a convolution by name, in kwargs"),
        ("compare", {"layer": LAYER, "after": {"ask": "runtime"}}, "a candidate has no field ask"),
        ("compare", {"layer": LAYER}, "compare: give a call and after, or reports alone"),
        ("compare", {"device": "n150", "reports": []}, "compare: give a call and after, or reports alone"),
        ("compare", {"reports": ["a.json"]}, "reports must be the paths of two files, not ['a.json']"),
        ("devices", {"names": [3]}, "names must be texts, not [3]"),
    ],
)
def test_mistakes_are_told_in_words(name, asked, words):
    with pytest.raises(ArgumentError) as refused:
        TOOLS[name].call(asked)
    assert words in str(refused.value)


def test_the_server_names_the_package_that_it_needs(monkeypatch, capsys):
    monkeypatch.setattr("ttsim.study.ask.agents.find_spec", lambda name: None)
    assert main(["mcp"]) == 2
    assert capsys.readouterr().err == "ttsim: mcp: this needs the package mcp; pip install 'ttsim[mcp]'\n"
