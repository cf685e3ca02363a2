import csv
import shlex
from dataclasses import replace

import pytest

from device.errors import ArgumentError
from ttsim.__main__ import build_parser
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.read import DEFAULT_LAYERS, chosen_layers, layer_of, leaves, read_layers, read_toml

SMALL = {"in_channels": 32, "out_channels": 16, "input_height": 4, "input_width": 5}


def write(tmp_path, text):
    path = tmp_path / "layers.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_default_file_agrees_with_the_collected_rows(recordings):
    with recordings("measured/model_layers.csv").open(newline="") as lines:
        rows = {f"{r['model']}.{r['layer']}": r for r in csv.DictReader(lines) if r["op"] == "conv_transpose2d"}
    layers = {layer.name: layer for layer in read_layers(DEFAULT_LAYERS)}
    assert set(layers) == set(rows)
    assert len(layers) == 8
    for name, row in rows.items():
        layer = layers[name]
        sizes = (layer.batch_size, layer.in_channels, layer.out_channels, layer.input_height, layer.input_width)
        assert layer.source
        assert layer.kernel_size == layer.stride == (2, 2)
        assert layer.config["weights_dtype"] == "bfloat8_b"
        assert sizes == tuple(int(row[key]) for key in ("batch", "in_c", "out_c", "in_h", "in_w"))
        assert layer.config.get("shard_layout") == {"HS": "HEIGHT_SHARDED", "auto": None}[row["shard"]]
        assert layer.config.get("act_block_h_override", 0) == int(row["act_block_h"] or 0)
        assert layer.config.get("enable_act_double_buffer", False) == (row["act_dbuf"] == "1")
        assert layer.config.get("enable_weights_double_buffer", False) == (row["w_dbuf"] == "1")
        assert layer.config["output_layout"] == row["out_layout"]
        assert layer.compute["math_fidelity"] == row["fidelity"]
        assert layer.compute["fp32_dest_acc_en"] == (row["fp32_acc"] == "1")
        assert layer.compute["packer_l1_acc"] == (row["packer_l1_acc"] == "1")
        assert layer.dtype == {"bf16": "bfloat16", "(default)": None}[row["dtype_out"]]


def test_common_values_are_shared_and_overridden(tmp_path):
    path = write(
        tmp_path,
        """
        [common]
        in_channels = 32
        out_channels = 16
        input_height = 4
        input_width = 5
        config = { weights_dtype = "bfloat8_b", shard_layout = "HEIGHT_SHARDED" }
        [[layer]]
        name = "a"
        [[layer]]
        name = "b"
        stride = 2
        padding = [1, 0, 1, 0]
        config = { shard_layout = "BLOCK_SHARDED" }
        """,
    )
    first, second = read_layers(path)
    assert layer_of(SMALL) == Layer(**SMALL)
    assert first == Layer(name="a", **SMALL, config={"weights_dtype": "bfloat8_b", "shard_layout": "HEIGHT_SHARDED"})
    assert second.stride == (2, 2)
    assert second.padding == (1, 0, 1, 0)
    assert second.config == {"weights_dtype": "bfloat8_b", "shard_layout": "BLOCK_SHARDED"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layer = 3", r"layers\.toml: a file of layers has at least one \[\[layer\]\] table$"),
        ("[[layers]]", r"layers\.toml: unknown key 'layers'; did you mean 'layer'\?$"),
        ("x =", r"layers\.toml: a file of layers is TOML: "),
        ("common = 1\n[[layer]]", r"common must be a table, not 1$"),
        (
            "[[layer]]\nname='a'\nin_chanels = 3",
            r"layer 1 'a': unknown key 'in_chanels'; did you mean 'in_channels'\?$",
        ),
        ("[[layer]]\nzzz = 3", r"unknown key 'zzz'; known are name, source, .*seed$"),
        ("[[layer]]\nin_channels = 3", r"out_channels, input_height, input_width are missing$"),
    ],
)
def test_a_wrong_file_is_told_what_is_wrong(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_layers(write(tmp_path, text))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("in_channels", 0, "in_channels must be an integer of at least 1, not 0$"),
        ("in_channels", True, "in_channels must be an integer of at least 1, not True$"),
        ("in_channels", "3", "in_channels must be an integer of at least 1, not '3'$"),
        ("stride", [1], r"stride must be 2 integers of at least 0, not \[1\]$"),
        ("padding", [1, 2, 3], r"padding must be 2 or 4 integers of at least 0, not \[1, 2, 3\]$"),
        ("padding", [-1, 0], r"padding must be 2 or 4 integers of at least 0, not \[-1, 0\]$"),
        ("bias", 1, "bias must be a bool, not 1$"),
        ("name", 1, "name must be a str, not 1$"),
        ("dtype", "bf16", "dtype must be one of bfloat16, float32, bfloat8_b, not 'bf16'$"),
        ("config", {"a": [1]}, r"config must be a table of plain values, not \{'a': \[1\]\}$"),
        ("config", 3, "config must be a table of plain values, not 3$"),
    ],
)
def test_a_wrong_value_is_told_what_is_wrong(key, value, message):
    with pytest.raises(ValueError, match=f"^layer: {message}"):
        layer_of({**SMALL, key: value})


def test_files_that_are_no_toml(tmp_path):
    path = tmp_path / "a.toml"
    for content in (b"x =", b"x = \xff", b"x = " + b"[" * 5000):
        path.write_bytes(content)
        with pytest.raises(ArgumentError, match=r"a\.toml: a sweep is TOML: "):
            read_toml(path, "a sweep")
    path.write_text("x = 1\n", encoding="utf-8-sig")  # a byte order mark is no content
    assert read_toml(path, "a sweep") == {"x": 1}


def test_tables_within_tables_are_names_with_dots():
    table = {"a": 1, "b": {"c": [2], "d": {"e": 3}}, "b.f": 4, "g": {"from": 1, "to": 2}, "h": {}}
    assert list(leaves(table)) == [("a", 1), ("b.c", [2]), ("b.d.e", 3), ("b.f", 4), ("g.from", 1), ("g.to", 2)]
    assert ("g", {"from": 1, "to": 2}) in list(leaves(table, whole=("from",)))
    deep = {"x": 1}
    for _ in range(3000):
        deep = {"x": deep}
    assert list(leaves(deep)) == [(".".join("x" * 3001), 1)]


EVERY_FLAG = """
--name a --batch-size 1 --input-height 4 --input-width 5 --in-channels 16 --out-channels 8 --groups 2 --seed 5
--no-bias --no-mirror-kernel --input-dtype float32 --input-layout TILE --input-memory l1 --input-4d
--weights-dtype float32 --dtype bfloat8_b --slice H:2 --output-padding 1 --dilation 2
--config shard_layout=HEIGHT_SHARDED --config act_block_h_override=64
--compute math_fidelity=LoFi --compute packer_l1_acc=true
"""


def parse(*words):
    (layer,) = chosen_layers(build_parser().parse_args(["run", *words]), where="run")
    return layer


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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shape", "1,2,3"], r"^run: --shape must be N,H,W,C, not 1,2,3$"),
        (["--in-channels", "3"], r"^run: a layer needs .*; input_height, input_width are missing$"),
        (["--shape", "1,2,3,0"], r"^run: in_channels must be an integer of at least 1, not 0$"),
        (["--shape", "1,2,3,4", "--stride", "1,2,3"], r"^run: stride must be 2 integers .*, not \(1, 2, 3\)$"),
    ],
)
def test_flags_that_are_no_layer(words, message):
    with pytest.raises(ValueError, match=message):
        parse(*words)


def test_flags_change_layers_that_are_chosen_by_name():
    (given,) = (layer for layer in read_layers(DEFAULT_LAYERS) if layer.name == "vgg_unet.d4.up")
    layer = parse("--only", "d4.up", "--config", "act_block_h_override=64", "--dtype", "float32", "--seed", "3")
    config = {**given.config, "act_block_h_override": 64}
    assert layer == replace(given, config=config, dtype="float32", seed=3)


@pytest.mark.parametrize("words", [["--config", "a"], ["--config", "=3"], ["--config", "a="], ["--stride", "x"]])
def test_flags_that_can_not_be_read(words):
    with pytest.raises(ArgumentError, match=f"^run: argument {words[0]}: give "):
        parse(*words)
