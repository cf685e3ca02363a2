"""Every field of a device has a unit, and a name that tells it."""

from types import SimpleNamespace

import pytest

from device.errors import SpecError
from device.spec.device_spec import catalog_names
from ops.op_models import load_spec
from ops.sensitivity import fields
from ops.sensitivity.changes import read_value, spelled

SPEC = load_spec("wormhole_n150")


FIELDS = {field.name: field for field in fields.fields_of(SPEC)}
field = FIELDS.__getitem__


@pytest.mark.parametrize("name", catalog_names())
def test_every_field_has_a_unit_a_meaning_and_a_text(name):
    plain = {field.name for field in fields.numeric_fields(load_spec(name)) if not field.unit}
    assert all(name.endswith(("_share", "_factor")) or name == "l1.circular_buffers" for name in plain), plain
    for field in fields.fields_of(load_spec(name)):
        assert fields.words_of(field.path), field.name
        found = read_value(field, spelled(field, field.value))
        assert (found, type(found)) == (field.value, type(field.value)), field.name


@pytest.mark.parametrize(
    ("name", "unit", "dimension", "better"),
    [
        ("clock_hz", "Hz", fields.Dimension.CLOCK, fields.Better.LARGER),
        ("dram.bank_bytes_per_second", "bytes/s", fields.Dimension.RATE, fields.Better.LARGER),
        ("dram.access_ns", "ns", fields.Dimension.TIME, fields.Better.SMALLER),
        ("noc.flit_bytes", "bytes/cycle", fields.Dimension.CYCLE_RATE, fields.Better.LARGER),
        ("compute.phase_cycles", "cycles", fields.Dimension.CYCLES, fields.Better.SMALLER),
        ("l1.bytes", "bytes", fields.Dimension.NUMBER, fields.Better.NEITHER),
        ("reader.tilize[0].dst_16bit_cycles", "cycles", fields.Dimension.CYCLES, fields.Better.NEITHER),
    ],
)
def test_units(name, unit, dimension, better):
    one = field(name)
    assert (one.unit, one.dimension, one.better) == (unit, dimension, better)


def test_what_is_no_number_is_a_field_too():
    assert field("arch").value == "wormhole_b0"
    assert field("noc.worker_cols").value == [1, 2, 3, 4, 6, 7, 8, 9]
    assert not any(field(name).numeric for name in ("arch", "noc.worker_cols", "compute.minus_one_quirk"))


def test_a_field_is_changed_where_the_machine_allows_it():
    assert fields.scaled(SPEC, field("dram.banks"), 0.5).dram.banks == 6
    assert fields.scaled(SPEC, field("reader.tilize[1].dst_32bit_cycles"), 2).reader.tilize[1].dst_32bit_cycles == 148
    assert fields.scaled(SPEC, field("dram.achieved_share"), 2) is None  # no share is above 1
    assert fields.scaled(SPEC, field("compute.stationary_tiles"), 1.1) is None  # it rounds to what it was
    both = fields.with_values(SPEC, {("clock_hz",): 5e8, ("noc", "flit_bytes"): 16})
    assert (both.clock_hz, both.noc.flit_bytes) == (500_000_000, 16)


def test_a_number_whose_unit_nobody_knows_is_refused():
    with pytest.raises(SpecError, match=r"grid\.width: nobody knows the unit"):
        fields.fields_of(SimpleNamespace(to_dict=lambda: {"grid": {"width": 3}}))


def test_a_figure_has_the_comment_of_the_nearest_file(tmp_path):
    (tmp_path / "base.toml").write_text('extends = "blackhole_p100"\n[dram]\nbanks = 3  # counted\n', encoding="utf-8")
    path = tmp_path / "mine.toml"
    path.write_text('extends = "base.toml"\nname = "a # b"\n[noc]\nhop_cycles = 4\n', encoding="utf-8")
    found, card = fields.sources_of(path), fields.sources_of("wormhole_n150")
    assert fields.source_of("dram.banks", found) == "counted"
    assert fields.source_of("noc.hop_cycles", found) == fields.source_of("name", found) == ""  # without a comment
    assert fields.source_of("grid.cols", found).startswith("[gemm]: two columns harvested")
    assert fields.source_of("l1.bytes", found) == "[soc] worker_l1_size"
    assert (
        fields.source_of("reader.tilize[3].dst_16bit_cycles", card)
        == fields.source_of("reader.local.peak_at_bytes", card)
        == "[planner]"
    )
    assert fields.source_of("reader.nothing", card) == ""
    with pytest.raises(SpecError, match="unknown device 'wormhole_n15'"):
        fields.sources_of("wormhole_n15")


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
        ("l1.bytes", "2GHz", r"^l1\.bytes is in bytes, not a frequency as '2GHz' is; give a plain .*, or .*MiB"),
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
        ("dram.access_ns", "1e999", r"^dram\.access_ns must be at most 1,152,921,504,606,846,976;"),
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


def test_words():
    assert fields.words_of(("dram", "banks")) == "Independent banks, at most 4096; interleaved buffers spread over all."
    assert fields.words_of(("reader", "tilize", 2, "dst_16bit_cycles")) == "With 16-bit destination registers."
    assert fields.words_of(("conv_costs", "start_cycles")) == "Kernel start and skew between cores."
    assert "(there may be none) has a network" in fields.words_of(("noc", "worker_cols"))  # of two lines
    assert fields.table_words(("grid",)) == "The worker cores a program can use."
    assert fields.table_words(()) == "One kind of device: all figures that ttsim reads."
