"""Devices for a terminal of 80 columns."""

import json
from io import StringIO

import pytest
from rich.console import Console

from device.spec.device_spec import catalog_names
from ops.sensitivity.changes import load_spec
from ops.sensitivity.fields import fields_of
from ttsim.__main__ import main
from ttsim.report.formatting import cells_of
from ttsim.report.writers.device_table import print_devices
from ttsim.report.writers.json import devices_as_json


def drawn(*names: str) -> list[str]:
    """What devices look like."""
    console = Console(width=80, file=StringIO())
    print_devices(console, [load_spec(name) for name in names])
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("name", catalog_names())
def test_all_figures_of_one_device(name):
    spec, lines = load_spec(name), drawn(name)
    assert max(map(len, lines)) <= 80
    assert f"l1.bytes = {spec.l1.bytes} bytes" in lines
    assert [line.split(" = ")[0] for line in lines[2:]] == [field.name for field in fields_of(spec)]
    assert json.loads(devices_as_json([spec]))["devices"] == [spec.to_dict()]


def test_several_devices_are_a_line_each():
    lines = drawn(*catalog_names())
    assert lines[-1] == "wormhole_n300  wormhole_b0    8x8    1 GHz 1,360.7 KiB         12 288 GB/s"
    assert [line.split()[0] for line in lines] == ["device", *catalog_names()]


def test_hostile_names_cut_no_figure():
    """Markup, quotes, and a hundred wide characters; a name may take several lines, and its figures stay on one."""
    console = Console(width=80, file=StringIO())
    names = ("[red]x", "<b>'\"", "層" * 100)
    print_devices(console, [load_spec("wormhole_n150").replace(name=name) for name in names])
    lines = console.file.getvalue().splitlines()
    assert sum(line.split()[-8:] == ["8x8", "1", "GHz", "1,360.7", "KiB", "12", "288", "GB/s"] for line in lines) == 3
    assert sum(line.count("層") for line in lines) == 100
    assert max(map(cells_of, lines)) <= 80
    assert all(any(line.startswith(name) for line in lines) for name in names[:2])


def test_two_devices_and_what_differs():
    lines = drawn("wormhole_n150", "wormhole_n150, grid=9x7, dram.bank_bytes_per_second=32GB/s")
    assert lines[-6:] == [
        "field                 unit                 A              B   B/A",
        "[grid]",
        "cols                  cores                8              9  1.12",
        "rows                  cores                8              7 0.875",
        "[dram]",
        "bank_bytes_per_second bytes/s 24,000,000,000 32,000,000,000  1.33",
    ]
    assert "3 fields differ" in lines
    assert drawn("wormhole_n150", "wormhole_n150")[-4:-1] == [
        "no fields differ",
        "A: wormhole_n150",
        "B: wormhole_n150",
    ]
    assert max(map(len, drawn("wormhole_n150", "blackhole_p150"))) <= 80


def test_what_differs_as_json(capsys):
    assert main(["devices", "wormhole_n150", "wormhole_n150, dram.banks=6", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["differences"]
    assert one == {"name": "dram.banks", "unit": "banks", "before": 12, "after": 6, "ratio": 0.5}
