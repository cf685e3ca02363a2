import json

import pytest

from device.errors import ArgumentError
from ttsim.study import evaluate as point
from ttsim.study.sweep import sweep
from ttsim.types.layer import Layer

LAYER = Layer(name="up", in_channels=32, out_channels=16, input_height=16, input_width=16, stride=(2, 2))
VARY = {
    "shard_layout": [None, "HEIGHT_SHARDED", "WIDTH_SHARDED"],
    "act_block_h_override": [0, 32],
    "dram.banks": [6, 12],
}


def test_a_dozen_points():
    told = []
    result = sweep(LAYER, "wormhole_n150", vary=VARY, watch=told.append)
    assert [(one.done, one.total, one.found) for one in told] == [(done, 12, 0) for done in range(13)]
    assert result.axes == ("config.shard_layout", "config.act_block_h_override", "device.dram.banks")
    assert [labels["device.dram.banks"] for labels, _ in result.samples] == ["6"] * 6 + ["12"] * 6
    assert result.verdicts["fits"] == 12
    assert result.plans == 8  # on each machine four: three points share one
    assert result == sweep(LAYER, "wormhole_n150", vary=VARY)


def test_a_sweep_goes_on_where_its_file_ends(tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    whole = sweep(LAYER, vary=VARY, file=path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]) + lines[5][:40])
    looked = []
    monkeypatch.setattr(point.Evaluator, "row", _watched(point.Evaluator.row, looked))
    told = []
    assert sweep(LAYER, vary=VARY, file=path, watch=told.append) == whole
    assert (len(looked), told[0].done, told[0].found) == (8, 4, 4)
    assert sorted(path.read_bytes().splitlines()) == sorted(b"".join(lines).splitlines())
    sweep(LAYER, vary={"act_block_h_override": [0, 64]}, devices="blackhole_p150", file=path)
    assert path.read_bytes().count(b"\n") == 1 + 12 + 2


def _watched(function, looked):
    def row(self, point):
        looked.append(point)
        return function(self, point)

    return row


def test_a_bad_point_does_not_stop_the_others(tmp_path):
    result = sweep(LAYER, vary={"groups": [1, 5], "math_fidelity": ["LoFi", "HiFi4"]}, file=tmp_path / "rows")
    assert [row.verdict.value for row in result.rows] == ["fits", "fits", "refused", "refused"]
    assert [json.loads(line)["error"][:18] for line in (tmp_path / "rows").read_text().splitlines()[3:]] == [
        "groups must divide"
    ] * 2


def test_layers_and_devices_of_every_kind(tmp_path):
    device = tmp_path / "card.toml"
    device.write_text('extends = "wormhole_n150"\nname = "card"\n[dram]\nbanks = 6\n')
    layer = {"name": "b", "in_channels": 32, "out_channels": 16, "input_height": 6, "input_width": 5}
    result = sweep([LAYER, layer], ["wormhole_n150", str(device), "wormhole_n150, dram.banks=6"])
    assert [(row.layer, row.device) for row in result.rows] == [
        (name, card) for name in ("up", "b") for card in ("wormhole_n150", "card", "wormhole_n150, dram.banks=6")
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"vary": ["slice"]}, "vary must be a dict"),
        ({"devices": [], "vary": {"lowering": ["frame"]}}, "there are no devices"),
        ({"processes": 0}, "processes must be an integer of at least 1"),
        ({"processes": 2, "scheduler": "tcp://127.0.0.1:1"}, "not both"),
    ],
)
def test_what_is_no_sweep(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        sweep(LAYER, **arguments)
