"""Devices as reports show them: fields, what differs between two, and tables for 80 columns."""

import json
from io import StringIO

import pytest
from rich.console import Console

from device.errors import SpecError
from device.spec.device_spec import catalog_names
from ops.sensitivity.changes import load_spec
from ops.sensitivity.fields import fields_of
from ops.sensitivity.samples import samples
from ttsim.__main__ import main
from ttsim.report.devices import FieldDifference, differences, explained, moved
from ttsim.report.formatting import cells_of
from ttsim.report.writers.json import devices_as_json, fields_as_json
from ttsim.report.writers.table import print_devices

SPEC = load_spec("wormhole_n150")


def drawn(*names: str) -> list[str]:
    """What devices look like."""
    console = Console(width=80, file=StringIO())
    print_devices(console, [load_spec(name) for name in names])
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_field_is_shown_with_all_that_is_known_of_it(monkeypatch):
    """Here on slices of DRAM, matmuls, a copy and a typecast; slow tests of ops/sensitivity try all."""
    monkeypatch.setattr("ttsim.report.devices.samples", lambda: (*samples()[8:16], *samples()[39:49:9]))
    device = explained("wormhole_n150", "dram.bank_bytes")
    fields = {field.name: field for field in device.fields}
    assert (device.name, list(fields)) == ("wormhole_n150", ["dram.bank_bytes", "dram.bank_bytes_per_second"])
    rate = fields["dram.bank_bytes_per_second"]
    assert (rate.value, rate.unit, rate.better) == (24e9, "bytes/s", "larger")
    assert rate.meaning == "One bank, by the data sheet."
    assert rate.source == "[isa] DRAMTile: 24 GB/s"
    assert rate.moves == ("cycles",)
    assert -1 <= rate.elasticity["copy"] < 0
    assert list(moved(fields["dram.bank_bytes"])) == ["memory"]
    (words,) = moved(rate)
    assert words.startswith("cycles of ")
    assert "typecast -0." in words
    (entry,) = json.loads(fields_as_json([device]))["devices"]
    assert entry["fields"][0]["elasticity"] == dict(device.fields[0].elasticity)
    with pytest.raises(SpecError, match="unknown device"):
        explained("n15")


def test_every_field_that_differs_in_the_order_of_a_file():
    other = load_spec("wormhole_n150, dram.banks=16, clock_hz=0.5GHz, noc.worker_cols=1,2, arch=mine")
    assert differences(SPEC, other) == (
        FieldDifference(name="arch", unit="", before="wormhole_b0", after="mine", ratio=None),
        FieldDifference(name="clock_hz", unit="Hz", before=10**9, after=5 * 10**8, ratio=0.5),
        FieldDifference(name="dram.banks", unit="banks", before=12, after=16, ratio=16 / 12),
        FieldDifference(name="noc.worker_cols", unit="", before=[1, 2, 3, 4, 6, 7, 8, 9], after=[1, 2], ratio=None),
    )
    assert differences(SPEC, SPEC.replace(name="another")) == ()
    *of_one, last = differences(SPEC, SPEC.replace(reader_tilize=SPEC.reader.tilize[:-1]))
    names = ["input_format", "output_format", "dst_16bit_cycles"]
    assert [field.name for field in of_one] == [f"reader.tilize[5].{name}" for name in names]
    assert last == FieldDifference("reader.tilize[5].dst_32bit_cycles", "cycles", before=43, after=None, ratio=None)


def test_all_figures_of_one_device():
    lines, spec = drawn("blackhole_p150"), load_spec("blackhole_p150")
    assert f"l1.bytes = {spec.l1.bytes} bytes" in lines
    assert [line.split(" = ")[0] for line in lines[2:]] == [field.name for field in fields_of(spec)]
    assert json.loads(devices_as_json([spec]))["devices"] == [spec.to_dict()]


def test_several_devices_are_a_line_each_and_hostile_names_cut_no_figure():
    """Markup, quotes, and a hundred wide characters; a name may take several lines, and its figures stay on one."""
    lines = drawn(*catalog_names())
    assert lines[-1] == "wormhole_n300  wormhole_b0    8x8    1 GHz 1,360.7 KiB         12 288 GB/s"
    assert [line.split()[0] for line in lines] == ["device", *catalog_names()]
    console = Console(width=80, file=StringIO())
    names = ("[red]x", "<b>'\"", "層" * 100)
    print_devices(console, [SPEC.replace(name=name) for name in names])
    lines = console.file.getvalue().splitlines()
    assert sum(line.split()[-8:] == ["8x8", "1", "GHz", "1,360.7", "KiB", "12", "288", "GB/s"] for line in lines) == 3
    assert sum(line.count("層") for line in lines) == 100
    assert max(map(cells_of, lines)) <= 80
    assert all(any(line.startswith(name) for line in lines) for name in names[:2])


def test_two_devices_and_what_differs(capsys):
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
    same = drawn("wormhole_n150", "wormhole_n150")
    assert same[-4:-1] == ["no fields differ", "A: wormhole_n150", "B: wormhole_n150"]
    assert main(["devices", "wormhole_n150", "wormhole_n150, dram.banks=6", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["differences"]
    assert one == {"name": "dram.banks", "unit": "banks", "before": 12, "after": 6, "ratio": 0.5}
