"""Designs out of files."""

import pytest

from device.errors import ArgumentError, SpecError
from ops.sensitivity.changes import changed, load_spec
from ttsim.study.space import Design, read_design

SMALL = """[[layer]]
name = "small"
in_channels = 32
out_channels = 32
input_height = 4
input_width = 4
"""


def read(folder, text: str) -> Design:
    path = folder / "design.toml"
    path.write_text(text, encoding="utf-8")
    return read_design(path)


def test_a_whole_file(tmp_path):
    found = read(
        tmp_path,
        """
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
        """,
    )
    assert found.base == changed(
        load_spec("blackhole_p150"),
        [
            "dram.achieved_share=0.8",
            "grid=12x10",
            "noc.worker_rows=1,2,3,4,5,6,7,8,9,10",
            "compute.reciprocal_table=false",
        ],
    )
    assert {axis.name: axis.values for axis in found.axes} == {
        "grid": ("9x7", "8x8"),
        "clock_hz": ("1GHz", "1.25GHz", "1.5GHz"),
        "l1.bytes": ("512KiB", "1MiB", "2MiB"),
        "dram.banks": ("4", "8"),
        "dram.access_ns": ("0.1", "0.2", "0.3"),
        "noc.worker_cols": ("1,2,3", "1,2,3,4"),
        "compute.minus_one_quirk": ("true", "false"),
    }
    assert found.devices == 2 * 3 * 3 * 2 * 3 * 2 * 2
    assert {name: one.text for name, one in found.costs.items()} == {"area": "grid.cols * grid.rows", "power": "3"}
    assert len(found.layers) == 4


def test_layers_of_the_file_or_of_another_beside_it(tmp_path):
    space = "[space]\ndram.banks = [6, 12]\n"
    assert [layer.name for layer in read(tmp_path, space + SMALL).layers] == ["small"]
    (tmp_path / "layers.toml").write_text(SMALL, encoding="utf-8")
    assert [layer.name for layer in read(tmp_path, f'layers = "layers.toml"\n{space}').layers] == ["small"]
    assert len(read(tmp_path, space).layers) == 8
    counted = read(tmp_path, f"{space}[counts]\nsmall = 3\n{SMALL}")
    assert (counted.count("small"), counted.count("other")) == (3, 1)
    dotted = read(tmp_path, f"{space}[counts]\nvgg_unet.d4.up = 2\n'vgg_unet.d3.up' = 3\n")
    assert dict(dotted.counts) == {"vgg_unet.d4.up": 2, "vgg_unet.d3.up": 3}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("[space", ArgumentError, "a design is TOML"),
        ("[spaces]\n", ArgumentError, r"unknown key 'spaces'; did you mean 'space'\?"),
        ("space = 3\n", ArgumentError, r"space must be a table, not 3; write it as \[space\]"),
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
        (
            "[space]\ndram.banks = [4]\n[costs]\na = 'dram.bank'\n",
            ArgumentError,
            r"costs\.a: unknown field 'dram\.bank'",
        ),
        (f"[space]\ndram.banks = [4]\n[counts]\nbig = 2\n{SMALL}", ArgumentError, "counts: unknown key 'big'"),
        (f"[space]\ndram.banks = [4]\n[counts]\nsmall = 0\n{SMALL}", ArgumentError, "integer of at least 1, not 0"),
        ("only = 'x y'\n[space]\ndram.banks = [4]\n", ArgumentError, "no layer has 'x y' in its name"),
        (
            f"layers = 'a.toml'\n[space]\ndram.banks = [4]\n{SMALL}",
            ArgumentError,
            r'give layers = "FILE" or \[\[layer\]\]',
        ),
        ("[common]\nstride = 2\n[space]\ndram.banks = [4]\n", ArgumentError, r"at least one \[\[layer\]\] table"),
        ("only = 1\n[space]\ndram.banks = [4]\n", ArgumentError, "only must be a part of the names of layers, not 1"),
        (f"[space]\ndram.banks = [4]\n{SMALL}{SMALL}", ArgumentError, "two layers are called 'small'"),
    ],
)
def test_what_is_no_design_is_refused(tmp_path, text, error, message):
    with pytest.raises(error, match=message):
        read(tmp_path, text)
