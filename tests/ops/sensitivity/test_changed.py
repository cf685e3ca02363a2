"""Devices with changes that text gives."""

from pathlib import Path

import pytest

from device.errors import ArgumentTypeError, SpecError
from device.time.network import torus_of
from ops import op_models as meanings
from ops.sensitivity.changes import changed, load_spec, split_changes

SPEC = meanings.load_spec("wormhole_n150")


def test_fields_become_what_the_text_says_and_the_name_tells():
    other = changed(SPEC, ["dram.banks=16", "l1.bytes=2MiB"])
    assert other == SPEC.replace(
        name="wormhole_n150, l1.bytes=2MiB, dram.banks=16", dram_banks=16, l1_bytes=2 * 1024 * 1024
    )


def test_devices_are_equal_whichever_way_they_were_changed():
    step = changed(changed(SPEC, ["dram.banks=6"]), ["clock_hz=0.8GHz", "dram.banks = 16"])
    assert step == changed(SPEC, ["dram.banks=16", "clock_hz=800_000_000"])
    assert changed(SPEC, ["dram.banks=12", "clock_hz=1e9"]) == SPEC  # what they were
    assert changed(SPEC, []) is SPEC


def test_a_grid_needs_no_more_than_its_size():
    other = changed(SPEC, ["grid=9x7"])
    assert (other.grid.cols, other.grid.rows, other.name) == (9, 7, "wormhole_n150, grid=9x7")
    assert torus_of(other).cols == 11  # two columns of others, as on the card
    assert changed(SPEC, ["grid.rows=7", "grid.cols=9"]) == other


def test_a_name_tells_changes_in_the_order_of_a_file():
    told = "clock_hz=1.2GHz, grid=9x7, l1.bytes=2MiB, dram.banks=16, dram.achieved_share=90%"
    changes = ["dram.achieved_share=0.9", "l1.bytes=2048KiB", "grid=9x7", "clock_hz=1.2e9", "dram.banks=16"]
    assert changed(changed(SPEC, changes[:2]), changes[2:]).name == f"wormhole_n150, {told}"


def test_contradictions_are_those_of_all_changes_together():
    with pytest.raises(SpecError, match="bytes must be above base_bytes"):
        changed(SPEC, ["l1.bytes=64KiB"])
    assert changed(SPEC, ["l1.bytes=64KiB", "l1.base_bytes=32KiB"]).l1.usable_bytes == 32768


def test_a_name_can_be_given():
    assert changed(SPEC, ["dram.banks=16", "name=lab card"]).name == "lab card"


def test_a_long_name_is_cut_and_still_the_device_s_own():
    changes = [f"{name}_cycles={number}" for number, name in enumerate(
        ("compute.phase", "noc.hop", "noc.interface", "compute.unpack_tile", "conv_costs.start", "halo_costs.start"), 40
    )]  # fmt: skip
    first, second = changed(SPEC, changes), changed(SPEC, [*changes[:-1], "halo_costs.start_cycles=1"])
    assert first.name.startswith("wormhole_n150 with 6 changes (")
    assert first.name != second.name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("dram.bank=16", r"^unknown field 'dram\.bank', did you mean 'dram\.banks'\?; `ttsim devices NAME` prints"),
        ("dram_banks=16", r"^unknown field 'dram_banks', did you mean 'dram\.banks'\?"),
        ("dram=16", r"^dram is no field but has some; give one of dram\.banks, dram\.bank_bytes"),
        ("dram.banks", r"^a change is FIELD=VALUE, not 'dram\.banks'; such as dram\.banks=16"),
        ("dram.banks=", r"^a change is FIELD=VALUE"),
        ("grid=9", r"^grid must be COLUMNSxROWS, not '9'; such as grid=9x7"),
        ("grid=0x7", r"^grid: cols must be a number above zero, not 0"),
    ],
)
def test_what_is_no_change_is_refused(change, message):
    with pytest.raises(SpecError, match=message):
        changed(SPEC, [change])


def test_a_field_is_changed_once():
    with pytest.raises(SpecError, match=r"^grid\.cols is changed twice, the second time by 'grid\.cols=3'; keep one"):
        changed(SPEC, ["grid=9x7", "grid.cols=3"])
    with pytest.raises(ArgumentTypeError, match=r"must be a list of texts, not one text; give \['dram\.banks=16'\]"):
        changed(SPEC, "dram.banks=16")


def test_a_device_is_loaded_with_changes_behind_its_name(tmp_path):
    expected = changed(SPEC, ["dram.banks=16", "noc.worker_cols=1,2,3"])
    assert load_spec("wormhole_n150, dram.banks=16,noc.worker_cols=1,2,3") == expected
    assert load_spec(expected.name) == load_spec(expected) == expected
    path = tmp_path / "mine.toml"
    path.write_text('extends = "wormhole_n150"\nclock_hz = 8e8\n', encoding="utf-8")
    assert load_spec(f"{path}, dram.banks=16").clock_hz == 800_000_000
    assert load_spec(path) == load_spec(str(path))
    with pytest.raises(SpecError, match="unknown device 'wormhole_n1'"):
        load_spec("wormhole_n1, dram.banks=16")
    with pytest.raises(SpecError, match="cannot be read"):
        load_spec(Path("nowhere.toml, dram.banks=16"))


def test_where_changes_begin():
    assert split_changes("a.toml, reader.tilize[0].dst_16bit_cycles=4, grid=9x7") == (
        "a.toml", ("reader.tilize[0].dst_16bit_cycles=4", "grid=9x7"))  # fmt: skip
    assert split_changes("a, b.toml") == ("a, b.toml", ())
