import pytest

from device.errors import ArgumentError
from ttsim.study.space import read_sweep

LAYER = "in_channels = 32\nout_channels = 16\ninput_height = 6\ninput_width = 5\n"
TEXT = f"""
devices = ["wormhole_n150", "card.toml, dram.banks=6"]
values = "fast"
strict = false
[common]
stride = 2
[[layer]]
name = "a"
{LAYER}
[vary]
shard_layout = ["none", "HEIGHT_SHARDED"]
"dram.banks" = [6, 12]
[vary.config]
weights_dtype = ["bfloat8_b"]
"""


def test_a_file(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(TEXT)
    said = read_sweep(path)
    (layer,) = said.pop("layers")
    assert (layer.name, layer.stride) == ("a", (2, 2))
    assert said == {
        "devices": ["wormhole_n150", f"{tmp_path / 'card.toml'}, dram.banks=6"],
        "values": "fast",
        "strict": False,
        "vary": {
            "shard_layout": [None, "HEIGHT_SHARDED"],
            "dram.banks": [6, 12],
            "config.weights_dtype": ["bfloat8_b"],
        },
    }


def test_layers_of_another_file_lie_beside_it(tmp_path):
    (tmp_path / "layers.toml").write_text(f"[[layer]]\n{LAYER}")
    (tmp_path / "sweep.toml").write_text('layers = "layers.toml"')
    assert len(read_sweep(tmp_path / "sweep.toml")["layers"]) == 1


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
def test_what_is_no_sweep(tmp_path, text, words):
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=words):
        read_sweep(path)
