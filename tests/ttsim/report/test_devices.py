"""Fields of a device as a report shows them."""

import json

import pytest
from rich.console import Console

from device.errors import SpecError
from ttsim.report.devices import explained, moved
from ttsim.report.writers.device_table import print_fields
from ttsim.report.writers.json import fields_as_json


@pytest.fixture(scope="module")
def device():
    return explained("wormhole_n150", "dram.b")


def test_a_field_is_shown_with_all_that_is_known_of_it(device):
    assert device.name == "wormhole_n150"
    fields = {field.name: field for field in device.fields}
    assert list(fields)[:3] == ["dram.banks", "dram.bank_bytes", "dram.base_bytes"]
    rate = fields["dram.bank_bytes_per_second"]
    assert (rate.value, rate.unit, rate.better) == (24e9, "bytes/s", "larger")
    assert rate.meaning == "One bank, by the data sheet."
    assert rate.source == "[isa] DRAMTile: 24 GB/s"
    assert rate.moves == ("cycles",)
    assert -1 <= rate.elasticity["matmul"] < 0
    assert list(moved(fields["dram.base_bytes"])) == ["memory"]
    (words,) = moved(rate)
    assert words.startswith("cycles of ")
    assert "matmul -0." in words


def test_writers_show_every_field(device):
    console = Console(width=160, record=True)
    print_fields(console, device)
    text = console.export_text()
    for shown in ("dram.banks", "24,000,000,000.0", "bytes/s", "larger", "memory", "[isa] DRAMTile", "elasticities"):
        assert shown in text
    (entry,) = json.loads(fields_as_json([device]))["devices"]
    assert [field["name"] for field in entry["fields"]] == [field.name for field in device.fields]
    assert entry["fields"][0]["elasticity"] == dict(device.fields[0].elasticity)


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(SpecError, match="unknown device"):
        explained("n150")
