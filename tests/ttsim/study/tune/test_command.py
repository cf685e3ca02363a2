"""`ttsim tune` on the command line, and the last line of `ttsim run`."""

import json
from dataclasses import replace

import pytest

from ops.op_models import load_spec
from ttsim.__main__ import main
from ttsim.study.command import faster_line
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import Settings

LAYER = ["--shape", "1,8,8,64", "--out-channels", "32", "--stride", "2", "--input-memory", "l1"]
QUICK = ["--keep", "core_grid,transpose_shards", "--effort", "20"]


def test_one_layer_in_words_and_as_json(capsys):
    assert main(["tune", *LAYER, *QUICK, "--name", "mine", "--set", "l1.bytes=1MiB"]) == 0
    words = capsys.readouterr().out
    assert words.startswith("mine on wormhole_n150, l1.bytes=1MiB\n")
    assert "conv_config=ttnn.Conv2dConfig(" in words
    assert main(["tune", *LAYER, *QUICK, "--name", "mine", "--set", "l1.bytes=1MiB", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["layers"]
    assert f"{told['front'][0]['cycles']:,} cycles" in words
    assert told["gain"] >= 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "nothing"], "no layer has"),
        ([*LAYER, "--only", "x"], "not both"),
        ([*LAYER, "--allow", "all"], "allow takes"),
        ([*LAYER, "--effort", "1"], "at least 2 calls"),
    ],
)
def test_mistakes_are_told_in_one_line(capsys, arguments, words):
    assert main(["tune", *arguments]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_run_tells_of_a_much_faster_config():
    layers = {one.name: one for one in read_layers(DEFAULT_LAYERS)}
    settings = Settings(spec=load_spec("wormhole_n150"), values="off", suggestions=False)
    slow, good = layers["vgg_unet.d4.up"], layers["vgg_unet.d3.up"]
    assert faster_line([good], settings) == ""
    steering = replace(slow, name="d4\x1b[31m")
    assert "(`ttsim tune` prints it): d4\\x1b[31m 9.8 times" in faster_line([steering, good], settings)
