import argparse
import shlex

import pytest

from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.flags import add_layer_flags, flag, layer_from_flags

EVERY_FLAG = """
--name a --batch-size 1 --input-height 4 --input-width 5 --in-channels 16 --out-channels 8 --groups 2 --seed 5
--no-bias --no-mirror-kernel --input-dtype float32 --input-layout TILE --input-memory l1 --input-4d
--weights-dtype float32 --dtype bfloat8_b --slice H:2 --output-padding 1 --dilation 2
--config shard_layout=HEIGHT_SHARDED --config act_block_h_override=64
--compute math_fidelity=LoFi --compute packer_l1_acc=true
"""


def parse(*words):
    parser = argparse.ArgumentParser()
    add_layer_flags(parser)
    return layer_from_flags(parser.parse_args(words), where="run")


def test_no_flag_is_no_layer():
    assert parse() is None
    assert parse("--seed", "3") is None


def test_shape_and_short_forms():
    layer = parse("--shape", "2,8,9,32", "--kernel-size", "3", "--stride", "2,1", "--padding", "1,0,1,0")
    sizes = {"batch_size": 2, "input_height": 8, "input_width": 9, "in_channels": 32, "out_channels": 32}
    assert layer == Layer(**sizes, kernel_size=(3, 3), stride=(2, 1), padding=(1, 0, 1, 0))


def test_every_field():
    layer = parse(*shlex.split(EVERY_FLAG))
    assert {name: getattr(layer, name) for name in Layer.__dataclass_fields__} == {
        "name": "a", "source": "", "batch_size": 1, "input_height": 4, "input_width": 5, "in_channels": 16,
        "out_channels": 8, "kernel_size": (2, 2), "stride": (1, 1), "padding": (0, 0), "groups": 2, "bias": False,
        "mirror_kernel": False, "input_dtype": "float32", "input_layout": "TILE", "input_memory": "l1",
        "input_4d": True, "weights_dtype": "float32", "dtype": "bfloat8_b", "slice": "H:2", "seed": 5,
        "output_padding": (1, 1), "dilation": (2, 2),
        "config": {"shard_layout": "HEIGHT_SHARDED", "act_block_h_override": 64},
        "compute": {"math_fidelity": "LoFi", "packer_l1_acc": True},
    }  # fmt: skip


def test_every_field_but_the_source_has_a_flag():
    parser = argparse.ArgumentParser()
    add_layer_flags(parser)
    flags = set(parser._option_string_actions)
    assert {flag(name) for name in Layer.__dataclass_fields__} - flags == {"--source"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shape", "1,2,3"], r"^run: --shape must be N,H,W,C, not 1,2,3$"),
        (["--in-channels", "3"], r"^run: a layer needs .*; input_height, input_width is missing$"),
        (["--shape", "1,2,3,0"], r"^run: in_channels must be an integer of at least 1, not 0$"),
        (
            ["--shape", "1,2,3,4", "--stride", "1,2,3"],
            r"^run: stride must be 2 integers of at least 0, not \(1, 2, 3\)$",
        ),
    ],
)
def test_flags_that_are_no_layer(words, message):
    with pytest.raises(ValueError, match=message):
        parse(*words)


@pytest.mark.parametrize("words", [["--config", "a"], ["--config", "=3"], ["--config", "a="], ["--stride", "x"]])
def test_flags_that_can_not_be_read(words, capsys):
    with pytest.raises(SystemExit):
        parse(*words)
    assert words[0] in capsys.readouterr().err
