"""Spaces of sweeps and designs: axes by name, products, and their files."""

from dataclasses import replace

import pytest

from device.errors import ArgumentError, ArgumentTypeError, SpecError
from ops.sensitivity.changes import changed, load_spec
from ttsim.runtime.types.layer import Layer
from ttsim.study.space import Space, Variant, axis, read_design, read_sweep, setting_of

N150, P150 = load_spec("wormhole_n150"), load_spec("blackhole_p150")
LAYER = Layer(name="a", in_channels=32, out_channels=16, input_height=6, input_width=5)
GIVEN = Variant(replace(LAYER, config={"a": 1}))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("shard_layout", ("config", "shard_layout")),
        ("config.weights_dtype", ("config", "weights_dtype")),
        ("layer.weights_dtype", ("layer", "weights_dtype")),
        ("math_fidelity", ("compute", "math_fidelity")),
        ("dram.banks", ("device", "dram.banks")),
        ("device.clock_hz", ("device", "clock_hz")),
        ("grid", ("device", "grid")),
        ("lowering", ("lowering", "lowering")),
        ("slice", ("layer", "slice")),
    ],
)
def test_settings_by_their_names(name, found):
    assert setting_of(name, N150) == found


@pytest.mark.parametrize(
    ("name", "values", "error", "words"),
    [
        ("shard_layuot", ["x"], ArgumentError, "did you mean 'shard_layout'"),
        ("config.banks", ["x"], ArgumentError, "config has no field"),
        ("weights_dtype", ["x"], ArgumentError, "write layer.weights_dtype or config.weights_dtype"),
        ("shard_layout", [], ArgumentError, "needs a list of values"),
        ("shard_layout", "abc", ArgumentError, "needs a list of values"),
        ("act_block_h_override", [32, 32], ArgumentError, "a value twice"),
        ("force_split_reader", [1, True, True], ArgumentError, "a value twice"),
        ("shard_layout", ["DIAGONAL"], ArgumentError, "shard_layout must be one of"),
        ("enable_act_double_buffer", ["maybe"], ArgumentTypeError, "enable_act_double_buffer"),
        ("math_fidelity", [[1]], ArgumentError, "must be a plain value"),
        ("lowering", ["rows"], ArgumentError, "lowering must be one of zero_insertion, phase"),
        ("config.core_grid", ["8x0"], ArgumentError, "core_grid must be COLUMNSxROWS"),
        ("slice", ["D:2"], ArgumentError, "slice must be"),
        ("in_channels", [None], ArgumentError, "in_channels must be an integer"),
        ("dram.banks", ["2MiB"], SpecError, "dram.banks"),
    ],
)
def test_axes_that_are_refused(name, values, error, words):
    with pytest.raises(error, match=words):
        axis(name, values, N150)


def test_values_on_a_layer():
    result = axis("act_block_h_override", [None, 32], N150)
    assert result.name == "config.act_block_h_override"
    assert result.on(GIVEN, 32).labels == {"config.act_block_h_override": 32}
    assert result.on(GIVEN, 32).layer.config == {"a": 1, "act_block_h_override": 32}
    assert result.on(result.on(GIVEN, 32), None).layer.config == {"a": 1}
    assert axis("config.core_grid", ["8x4"], N150).on(GIVEN, "8x4").layer.config == {"a": 1, "core_grid": "8x4"}
    sizes = axis("kernel_size", [3, [2, 4]], N150)
    assert sizes.values == ((3, 3), (2, 4))
    assert sizes.on(GIVEN, (2, 4)).layer.kernel_size == (2, 4)
    assert axis("lowering", ["phase"], N150).on(GIVEN, "phase").lowering == "phase"
    assert axis("noc.worker_cols", [[1, 2, 3, 4, 6, 7, 8, 9]], N150).values == ("1,2,3,4,6,7,8,9",)


def test_a_space_is_a_product():
    axes = (axis("act_block_h_override", [32, None], N150), axis("dram.banks", [6, 8], N150))
    space = Space(layers=(LAYER, replace(LAYER, name="b")), devices=(N150, P150), axes=axes)
    samples = list(space.samples())
    assert len(samples) == len({sample.point.key for sample in samples}) == 16
    point, labels, given, added = samples[1]
    assert labels == {"device.dram.banks": "6", "config.act_block_h_override": None}
    assert (given, added, samples[0].given) == (True, False, False)
    assert (point.layer.config, point.spec.dram.banks, point.spec.name) == ({}, 6, "wormhole_n150, dram.banks=6")
    assert [sample.point.spec.dram.banks for sample in samples[:8]] == [6, 6, 8, 8, 6, 6, 8, 8]
    assert {sample.point.layer.name for sample in samples[:8]} == {"a"}


def test_the_own_config_of_a_layer_is_a_point():
    """Once for each value of what is no config."""
    own = replace(LAYER, config={"act_block_h_override": 64}, slice="H:2")
    assert axis("act_block_h_override", [0, 32], N150).as_given(LAYER) == (0,)  # the default of the config
    assert axis("act_block_h_override", [32, None], N150).as_given(LAYER) == (None,)
    vary = {"act_block_h_override": [0, 32], "slice": ["H:4"], "lowering": ["phase"], "batch_size": [1, 2]}
    axes = tuple(axis(name, values, N150) for name, values in vary.items())
    samples = list(Space(layers=(own,), devices=(N150, P150), axes=axes).samples())
    added = [sample for sample in samples if sample.added]
    assert (len(samples), len(added), samples[:2]) == (2 * (2 * 1 * 1 * 2 + 2), 4, added[:2])
    assert [sample.given for sample in samples] == [sample.added for sample in samples]
    for sample, batch in zip(added, (1, 2, 1, 2), strict=True):
        assert (sample.point.layer, sample.point.lowering) == (replace(own, batch_size=batch), "zero_insertion")
        settings = {"config.act_block_h_override": 64, "slice": "H:2", "lowering": "zero_insertion"}
        assert sample.labels == {**settings, "batch_size": batch}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"layers": ()}, "there are no layers"),
        ({"devices": ()}, "there are no devices"),
        ({"layers": (LAYER, LAYER)}, "two of the layers are called 'a'"),
        ({"devices": (N150, N150.replace(dram_banks=6))}, "two of the devices are called 'wormhole_n150'"),
        ({"axes": (axis("lowering", ["zero_insertion"], N150),) * 2}, "two of the axes are called 'lowering'"),
    ],
)
def test_points_that_could_not_be_told_apart(changes, words):
    with pytest.raises(ArgumentError, match=words):
        Space(**{"layers": (LAYER,), "devices": (N150,), **changes})


SIZES = "in_channels = 32\nout_channels = 16\ninput_height = 6\ninput_width = 5\n"
SMALL = f'[[layer]]\nname = "small"\n{SIZES}'


@pytest.fixture
def read(tmp_path):
    """Reads a sweep or a design from a text, in a folder with `layers.toml`."""
    (tmp_path / "layers.toml").write_text(SMALL, encoding="utf-8")

    def reading(reader, text):
        (tmp_path / "study.toml").write_text(text, encoding="utf-8")
        return reader(tmp_path / "study.toml")

    return reading


def test_a_sweep_of_a_file(read, tmp_path):
    text = f"""
        devices = ["wormhole_n150", "card.toml, dram.banks=6"]
        values = "fast"
        strict = false
        [common]
        stride = 2
        {SMALL}
        [vary]
        shard_layout = ["none", "HEIGHT_SHARDED"]
        "dram.banks" = [6, 12]
        [vary.config]
        weights_dtype = ["bfloat8_b"]
        """
    said = read(read_sweep, text)
    (layer,) = said.pop("layers")
    assert (layer.name, layer.stride) == ("small", (2, 2))
    vary = {"shard_layout": [None, "HEIGHT_SHARDED"], "dram.banks": [6, 12], "config.weights_dtype": ["bfloat8_b"]}
    devices = ["wormhole_n150", f"{tmp_path / 'card.toml'}, dram.banks=6"]
    assert said == {"devices": devices, "values": "fast", "strict": False, "vary": vary}
    assert [layer.name for layer in read(read_sweep, 'layers = "layers.toml"')["layers"]] == ["small"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("devices", "a sweep is TOML"),
        ("device = 1", "did you mean 'devices'"),
        ('devices = "x"', "devices must be a list"),
        ("devices = [1]", "devices must be names or files"),
        ("l1_small_size = true", "l1_small_size must be an integer, not True"),
        ("l1_small_size = false", "l1_small_size must be an integer, not False"),
        ("strict = 1", "strict must be true or false, not 1"),
        ("vary = 1", "vary must be a table"),
        ('values = "some"', "values must be one of exact, fast, off"),
        ("layer = 3", "a file of layers has at least one"),
        ("[common]\nstride = 2", "a file of layers has at least one"),
        ("layers = 3", "layers must be a file of layers, not 3"),
        ('layers = "a"\n[common]\nstride = 2', "not both"),
        ("[[layer]]\nname = 'a'", "layer 1 'a': a layer needs"),
    ],
)
def test_sweeps_that_are_refused(read, text, words):
    with pytest.raises(ArgumentError, match=words):
        read(read_sweep, text)


DESIGN = """
only = "vgg"
[device]
base = "blackhole_p150"
dram.achieved_share = "80%"
grid = "12x10"
noc.worker_rows = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
compute.reciprocal_table = false
[space]
grid = ["9x7", "8x8"]
clock_hz = {from = "1GHz", to = 1.5e9, step = "250MHz"}
l1.bytes = {from = "512KiB", to = "2MiB", factor = 2}
dram = {banks = [4, 8], access_ns = {from = 0.1, to = 0.3, step = 0.1}}
noc.worker_cols = [[1, 2, 3], "1,2,3,4"]
compute.minus_one_quirk = [true, false]
[costs]
area = "grid.cols * grid.rows"
power = 3
"""
BASE = (
    "dram.achieved_share=0.8",
    "grid=12x10",
    "noc.worker_rows=1,2,3,4,5,6,7,8,9,10",
    "compute.reciprocal_table=false",
)


def test_a_design_of_a_file(read):
    found = read(read_design, DESIGN)
    assert found.base == changed(P150, BASE)
    assert {axis.name: axis.values for axis in found.axes} == {
        "grid": ("9x7", "8x8"),
        "clock_hz": ("1GHz", "1.25GHz", "1.5GHz"),
        "l1.bytes": ("512KiB", "1MiB", "2MiB"),
        "dram.banks": ("4", "8"),
        "dram.access_ns": ("0.1", "0.2", "0.3"),
        "noc.worker_cols": ("1,2,3", "1,2,3,4"),
        "compute.minus_one_quirk": ("true", "false"),
    }
    assert found.tune
    assert found.devices == 2 * 3 * 3 * 2 * 3 * 2 * 2
    assert {name: cost.text for name, cost in found.costs.items()} == {"area": "grid.cols * grid.rows", "power": "3"}
    assert len(found.layers) == 4


SPACE = "[space]\ndram.banks = [6, 12]\n"


@pytest.mark.parametrize(
    ("text", "layers", "counts"),
    [
        (SPACE + SMALL, 1, {}),
        (f'layers = "layers.toml"\n{SPACE}', 1, {}),
        (SPACE, 8, {}),
        (f"{SPACE}[counts]\nsmall = 3\n{SMALL}", 1, {"small": 3}),
        (f"{SPACE}[counts]\nvgg_unet.d4.up = 2\n'vgg_unet.d3.up' = 3\n", 8, {"vgg_unet.d4.up": 2, "vgg_unet.d3.up": 3}),
    ],
)
def test_layers_of_a_design(read, text, layers, counts):
    found = read(read_design, text)
    assert (len(found.layers), dict(found.counts)) == (layers, counts)
    assert not read(read_design, f"tune = false\n{text}").tune
    assert (found.count("other"), *map(found.count, counts)) == (1, *counts.values())


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("[space", ArgumentError, "a design is TOML"),
        ("[spaces]\n", ArgumentError, r"unknown key 'spaces'; did you mean 'space'\?"),
        ("space = 3\n", ArgumentError, r"space must be a table, not 3; write it as \[space\]"),
        ("tune = 1\n[space]\ngrid = ['8x8']\n", ArgumentError, "tune must be true or false, not 1"),
        ("[costs]\ntune = true\n", ArgumentError, r"tune is a key of the file, not of \[costs\]; move it in front"),
        ("[costs]\na = 1\n", ArgumentError, "there is nothing to vary or nothing to run"),
        ("[device]\nbase = 3\n", ArgumentError, r"device\.base must be the name of a device or a file, not 3"),
        ("[device]\ndram.bank = 3\n", SpecError, r"unknown field 'dram\.bank', did you mean 'dram\.banks'"),
        ("[space]\ndram.bank = [3]\n", ArgumentError, r"unknown field 'dram\.bank', did you mean 'dram\.banks'"),
        ("[space]\ndram.banks = 3\n", ArgumentError, r"space\.dram\.banks must be a list of values, or \{from"),
        ("[space]\ndram.banks = []\n", ArgumentError, r"space\.dram\.banks must be a list of values"),
        ('[space]\nl1.bytes = ["2GHz"]\n', SpecError, r"l1\.bytes is in bytes, not a frequency as '2GHz' is"),
        ('[space]\nl1.bytes = ["1MiB", 1048576]\n', ArgumentError, r"space\.l1\.bytes has 1MiB twice"),
        ("[space]\ndram.banks = {from = 8, to = 4, step = 1}\n", ArgumentError, "a range goes upward"),
        ("[space]\ndram.banks = {from = 8, to = 16, step = 0}\n", ArgumentError, "a range goes upward"),
        ("[space]\ndram.banks = {from = 8, to = 16, factor = 1}\n", ArgumentError, "factor must be a number above 1"),
        ("[space]\ndram.banks = {from = 8, to = 16}\n", ArgumentError, r"a range is \{from, to, step\} or"),
        ("[space]\ngrid = {from = 8, to = 16, step = 1}\n", ArgumentError, r"a range is \{from, to, step\} or"),
        ("[space]\ndram.banks = {from = 1, to = 9999, step = 1}\n", ArgumentError, "at most 1000 values"),
        (
            "[space]\ndram.banks = {from = 1, to = 900, step = 1}\nnoc.cols = {from = 10, to = 30, step = 1}\n",
            ArgumentError,
            "a space has at most 10,000 devices, not 18,900",
        ),
        (f"{SPACE}[costs]\na = 'dram.bank'\n", ArgumentError, r"costs\.a: unknown field 'dram\.bank'"),
        (f"{SPACE}[counts]\nbig = 2\n{SMALL}", ArgumentError, "counts: unknown key 'big'"),
        (f"{SPACE}[counts]\nsmall = 0\n{SMALL}", ArgumentError, "integer of at least 1, not 0"),
        (f"only = 'x y'\n{SPACE}", ArgumentError, "no layer has 'x y' in its name"),
        (f"layers = 'a.toml'\n{SPACE}{SMALL}", ArgumentError, r'give layers = "FILE" or \[\[layer\]\]'),
        (f"[common]\nstride = 2\n{SPACE}", ArgumentError, r"at least one \[\[layer\]\] table"),
        (f"only = 1\n{SPACE}", ArgumentError, "only must be a part of the names of layers, not 1"),
        (f"{SPACE}{SMALL}{SMALL}", ArgumentError, "two layers are called 'small'"),
    ],
)
def test_designs_that_are_refused(read, text, error, message):
    with pytest.raises(error, match=message):
        read(read_design, text)
