"""Values of fields as text."""

import pytest

from device.errors import SpecError
from ops.op_models import load_spec
from ops.sensitivity.changes import read_value, spelled
from ops.sensitivity.fields import fields_of

FIELDS = {one.name: one for one in fields_of(load_spec("wormhole_n150"))}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("l1.bytes", "2MiB", 2_097_152),
        ("l1.bytes", "1.5 MiB", 1_572_864),
        ("l1.bytes", "2MB", 2_000_000),
        ("l1.bytes", "1_048_576", 1_048_576),
        ("clock_hz", "1.2GHz", 1_200_000_000),
        ("clock_hz", "1e9", 1_000_000_000),
        ("clock_hz", "900kHz", 900_000),
        ("reader.clock_ghz", "1350MHz", 1.35),
        ("dram.bank_bytes_per_second", "24GB/s", 24e9),
        ("reader.local.peak_bytes_per_ns", "30GB/s", 30.0),
        ("dram.access_ns", "0.1us", 100.0),
        ("dram.achieved_share", "92.2%", 0.922),
        ("dispatch_costs.dispatcher_factor", "150percent", 1.5),
        ("noc.flit_bytes", "64B/cycle", 64),
        ("dram.banks", "16banks", 16),
        ("compute.phase_cycles", "8 cycles", 8.0),
        ("noc.worker_cols", "[1, 2,4]", [1, 2, 4]),
        ("noc.worker_cols", "[]", []),
        ("compute.reciprocal_table", "true", True),
        ("arch", "mine", "mine"),
    ],
)
def test_a_text_is_a_value(name, text, value):
    found = read_value(FIELDS[name], text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "l1.bytes",
            "2GHz",
            r"^l1\.bytes is in bytes, not a frequency as '2GHz' is; give a plain .*, or .*MiB",
        ),
        ("clock_hz", "2MiB", r"^clock_hz is in Hz, not a size as '2MiB' is; .* kHz, MHz, GHz, THz$"),
        ("dram.bank_bytes_per_second", "24GB", r"is in bytes/s, not a size as '24GB' is; .*GB/s"),
        ("compute.phase_cycles", "3ns", r"is in cycles, not a time as '3ns' is; give a plain number of cycles$"),
        ("dram.banks", "1 KiB", r"^dram\.banks is in banks, not a size .*; give a plain number of banks$"),
        ("l1.circular_buffers", "50%", r"is a plain number, not a part of a whole as '50%' is; give a plain number$"),
        ("l1.bytes", "2Mib", r"^l1\.bytes: unknown unit 'Mib', did you mean 'MiB'\?"),
        ("dram.banks", "3.5", r"^dram\.banks must be a whole number, not '3\.5'; 4 would do"),
        ("l1.bytes", "two", r"^l1\.bytes must be a number, not 'two'"),
        ("l1.bytes", "nan", r"^l1\.bytes must be a number, not 'nan'"),
        ("l1.bytes", "1e9999", r"exponent of at most three digits"),
        ("dram.access_ns", "1e999", r"^dram\.access_ns must be at most 1\.79769e\+308"),
        ("noc.worker_cols", "1;2", r"whole numbers with commas between, not '1;2'"),
        ("compute.reciprocal_table", "1", r"^compute\.reciprocal_table must be true or false, not '1'"),
    ],
)
def test_what_is_no_value_is_refused(name, text, message):
    with pytest.raises(SpecError, match=message):
        read_value(FIELDS[name], text)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("l1.bytes", 2_097_152, "2MiB"),
        ("l1.bytes", 1_499_136, "1464KiB"),
        ("clock_hz", 800_000_000, "800MHz"),
        ("dram.bank_bytes_per_second", 32e9, "32GB/s"),
        ("dram.achieved_share", 0.9, "90%"),
        ("dram.banks", 16, "16"),
        ("clock_hz", 7 * 10**300, "7e+300Hz"),
        ("noc.worker_cols", [1, 2], "1,2"),
        ("compute.reciprocal_table", True, "true"),
    ],
)
def test_the_shortest_text_of_a_value(name, value, text):
    assert spelled(FIELDS[name], value) == text


@pytest.mark.parametrize("device", ["wormhole_n150", "blackhole_p100"])
def test_every_field_survives_the_trip_through_a_text(device):
    for field in fields_of(load_spec(device)):
        found = read_value(field, spelled(field, field.value))
        assert (found, type(found)) == (field.value, type(field.value)), field.name
