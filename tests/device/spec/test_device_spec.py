"""Tables of programs in a device file: carried by the spec, read by the costs of a program that this test makes up."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, strategies as st

import ttsim
from device.errors import SpecError
from device.spec.device_spec import Costs, DeviceSpec, catalog_names, load_spec, short_names

NAMES = catalog_names()


def test_the_four_boards_their_grids_and_banks():
    sizes = {name: (load_spec(name).grid.cols, load_spec(name).grid.rows, load_spec(name).dram.banks) for name in NAMES}
    assert sizes == {
        "blackhole_p100": (11, 10, 7),
        "blackhole_p150": (13, 10, 8),
        "wormhole_n150": (8, 8, 12),
        "wormhole_n300": (8, 8, 12),
    }


def test_the_last_word_of_a_name_is_a_name_everywhere(tmp_path):
    assert tuple(short_names().values()) == NAMES  # each word ends one name
    assert load_spec("n150") == load_spec("wormhole_n150")
    path = tmp_path / "mine.toml"
    path.write_text('extends = "p150"\nname = "mine"\n')
    assert load_spec(path) == load_spec("blackhole_p150").replace(name="mine")
    with ttsim.open_device(spec="n300, dram.banks=6") as device:
        assert device.spec.name == "wormhole_n300, dram.banks=6"


@pytest.mark.parametrize("name", NAMES)
def test_a_spec_survives_the_trip_through_a_dict(name):
    spec = load_spec(name)
    assert DeviceSpec.from_dict(spec.to_dict()) == spec
    assert hash(spec) == hash(load_spec(name))
    assert spec.name == name


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_of_the_catalog_names_its_source(name):
    folder = Path(__file__).resolve().parents[3] / "device" / "spec" / "catalog"
    figures = [
        line
        for line in (folder / f"{name}.toml").read_text().splitlines()
        if "=" in line and line[:1].isalpha() and not line.startswith(("name", "arch", "family", "cluster", "extends"))
    ]
    assert [line for line in figures if "#" not in line] == []


def test_usable_memory_is_what_the_real_library_reports_and_dst_has_its_tiles():
    wormhole, blackhole = load_spec("wormhole_n150"), load_spec("blackhole_p150")
    assert (wormhole.l1.usable_bytes, wormhole.dram.usable_bytes) == (1393312, 1072693184)
    assert (blackhole.l1.usable_bytes, blackhole.dram.usable_bytes) == (1461120, 4277141376)
    assert [wormhole.compute.dst_half_tiles(fp32_dest=wide) for wide in (False, True)] == [8, 4]


def test_tilize_cycles_by_formats():
    reader = load_spec("blackhole_p150").reader
    assert reader.tilize_cycles("float32", "bfloat16", fp32_dest=True) == 80
    with pytest.raises(SpecError, match=r"no tilize cycles for uint8 to bfloat16 \(there are float32 to float32"):
        reader.tilize_cycles("uint8", "bfloat16", fp32_dest=False)


def test_replace_changes_fields_parts_and_fields_of_parts():
    spec = load_spec("wormhole_n150").replace(dram_banks=6, grid_rows=7, clock_hz=800_000_000, name="slow")
    assert (spec.dram.banks, spec.grid.cores, spec.clock_hz, spec.name) == (6, 56, 800_000_000, "slow")
    assert load_spec("wormhole_n150").dram.banks == 12
    assert spec.replace(reader_clock_ghz=2).reader.clock_ghz == 2.0
    assert type(spec.replace(clock_hz=1e9).clock_hz) is int  # a whole number, however it is written
    small = load_spec("blackhole_p150")
    assert spec.replace(dram=small.dram, dram_banks=5).dram == small.replace(dram_banks=5).dram


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grid_row": 7}, r"unknown field 'grid_row', did you mean 'grid_rows'\?"),
        ({"clok_hz": 7}, r"unknown field 'clok_hz', did you mean 'clock_hz'\?"),
        ({"clock_hz": "fast"}, r"^clock_hz must be a number, not 'fast'; give a plain number of Hz, or one with kHz, "),
        ({"clock_hz": "2MiB"}, r"^clock_hz is in Hz, not a size as '2MiB' is; give a plain number of Hz, or one with"),
        ({"noc_flit_bytes": "32B"}, r"^noc\.flit_bytes is in bytes/cycle, not a size as '32B' is; give .* B/cycle"),
        ({"noc_worker_cols": ["1"]}, r"^noc\.worker_cols\[0\] must be a whole number, not '1'"),
        ({"clock_hz": True}, r"^clock_hz must be a whole number, not True"),
        ({"dram_banks": 1.5}, r"^dram\.banks must be a whole number, not 1\.5"),
        ({"clock_hz": 0}, r"clock_hz must be a number above zero, not 0"),
        ({"l1_bytes": 3}, r"^l1: bytes must be above base_bytes \(105824\), not 3"),
        ({"l1_alignment_bytes": 24}, r"^l1: alignment_bytes must be a power of two, not 24; the nearest below is 16"),
        ({"dram_banks": 4097}, r"^dram: banks must be at most 4096, not 4097; give a smaller number"),
        (
            {"dram_access_ns": 1e300},
            r"^dram: access_ns must be at most 1,152,921,504,606,846,976; give a smaller number",
        ),
        (
            {"compute_dst_tiles": 2},
            r"^compute: dst_tiles must be at least 4, not 2; a half of them holds one tile of 32",
        ),
        ({"l1_allocation_alignment_bytes": 8}, r"^l1: allocation_alignment_bytes must be a multiple"),
        ({"l1_base_bytes": 1000}, r"^l1: base_bytes must be a multiple of .* \(32\), not 1000; 1024 would do"),
        ({"noc_link_share": 1.5}, r"^noc: link_share must be a part of 1, not 1\.5; give a number above 0 and up to 1"),
        ({"noc_worker_cols": [2, 1]}, r"^noc: worker_cols must be rising numbers from 0 below 10"),
        ({"noc_worker_cols": 3}, r"^noc\.worker_cols must be a list, not 3"),
        ({"noc": {"cols": 10}}, r"^missing keys noc\.rows, noc\.flit_bytes"),
        ({"grid_cols": 65}, r"grid: cols must be at most 64, not 65"),
        ({"noc_rows": 10**9}, r"noc: rows must be at most 64, not 1000000000"),
        ({"reader_dram": {"peak_at_byte": 1}}, r"unknown key 'reader\.dram\.peak_at_byte', did you mean 'peak_at"),
        ({"dram_achieved_share": float("nan")}, r"achieved_share must be a number above zero"),
    ],
)
def test_contradictions_and_misspellings_are_refused(changes, message):
    with pytest.raises(SpecError, match=message):
        load_spec("wormhole_n150").replace(**changes)


@given(st.integers(1, 8), st.integers(1, 10), st.integers(1, 64), st.integers(1, 10**10))
def test_any_smaller_device_is_a_device(cols, rows, banks, clock_hz):
    spec = load_spec("wormhole_n150").replace(grid_cols=cols, grid_rows=rows, dram_banks=banks, clock_hz=clock_hz)
    assert DeviceSpec.from_dict(spec.to_dict()) == spec
    assert spec.grid.cores == cols * rows


def test_a_users_file_gives_only_what_differs(tmp_path):
    (tmp_path / "base.toml").write_text('extends = "blackhole_p100"\nname = "base"\n[dram]\nbanks = 4\n')
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "base.toml"\nname = "mine"\nclock_hz = 1_000_000_000\n')
    expected = load_spec("blackhole_p100").replace(name="mine", clock_hz=1_000_000_000, dram_banks=4)
    assert load_spec(mine) == load_spec(str(mine)) == expected
    assert load_spec(expected) is expected


def test_the_catalog_is_read_once_and_a_users_file_each_time(tmp_path):
    assert load_spec("wormhole_n150") is load_spec("wormhole_n150")
    mine = tmp_path / "mine.toml"
    for banks in (6, 4):
        mine.write_text(f'extends = "wormhole_n150"\n[dram]\nbanks = {banks}\n')
        assert load_spec(mine).dram.banks == banks
    assert load_spec("wormhole_n150").dram.banks == 12


def test_figures_of_a_file_may_have_units(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text(
        'extends = "wormhole_n150"\nclock_hz = "1.2GHz"\nl1.bytes = "2MiB"\nnoc.flit_bytes = "64B/cycle"\n'
        'dram = {access_ns = "0.1us", achieved_share = "90%", bank_bytes_per_second = "32GB/s"}\n'
    )
    plain = {"clock_hz": 1_200_000_000, "l1_bytes": 2 * 1024**2, "noc_flit_bytes": 64, "dram_access_ns": 100.0}
    expected = load_spec("wormhole_n150").replace(**plain, dram_achieved_share=0.9, dram_bank_bytes_per_second=32e9)
    assert load_spec(mine) == expected
    assert load_spec(mine).to_dict() == expected.to_dict()  # whole numbers stay whole


CARD = 'extends = "wormhole_n150"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CARD + "[l1]\nbyte = 3\n", r"unknown key 'l1\.byte', did you mean 'bytes'\?"),
        (CARD + "l1 = 3\n", r"l1 must be a table of L1Spec, not 3"),
        ('extends = "wormhole_n15"\n', r"unknown device 'wormhole_n15', did you mean 'wormhole_n150'\?"),
        ('extends = "mine.toml"\n', r"extends itself"),
        (CARD + '[l1]\nbytes = "2GHz"\n', r"^l1\.bytes is in bytes, not a frequency .* GiB, TiB$"),
        (CARD + '[l1]\nbytes = "2Mib"\n', r"^l1\.bytes: unknown unit 'Mib', did you mean 'MiB'\?"),
        (CARD + '[l1]\nbytes = "1.5B"\n', r"^l1\.bytes must be a whole number, not '1\.5B'; 2 w"),
        (CARD + '[l1]\nbytes = "-1MiB"\n', r"^l1: bytes must be a number above zero, not -1048576"),
        (CARD + '[grid]\nrows = "4KiB"\n', r"^grid\.rows is in cores, not a size .* of cores$"),
        (CARD + '[dram]\naccess_ns = "1e999"\n', r"^dram\.access_ns must be at most 1,152,921,504,606,846,976;"),
        (CARD + 'clock_hz = "1e15"\n', r"clock_hz must be from 1 to 1,000,000,000,000 \(1 THz\), not 1e\+15; "),
        ("extends = 3\n", r"a device is named by text, path or DeviceSpec, not by 3"),
        ("name = ", r"is no TOML"),
        ('name = "bare"\n', r"missing keys arch, family, cluster, clock_hz, grid"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, text, message):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(SpecError, match=message):
        load_spec(tmp_path / "mine.toml")


def test_a_missing_file_is_named_and_a_file_may_begin_with_a_byte_order_mark(tmp_path):
    with pytest.raises(SpecError, match=r"device file 'nowhere\.toml' cannot be read .* or one of blackhole_p100"):
        load_spec("nowhere.toml")
    (tmp_path / "mine.toml").write_text(f'{CARD}name = "mine"\n', encoding="utf-8-sig")
    assert load_spec(tmp_path / "mine.toml").name == "mine"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCosts(Costs):
    TABLE: ClassVar[str] = "pool_costs"

    start_cycles: int
    stick_cycles: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StickCosts(Costs):
    TABLE: ClassVar[str] = "pool_costs"

    stick_cycles: float


FIGURES = {"start_cycles": 500, "stick_cycles": 3}
MACHINE = {key: value for key, value in load_spec("wormhole_n150").to_dict().items() if not key.endswith("_costs")}


def device(figures=FIGURES, costs=(PoolCosts,)):
    return DeviceSpec.from_dict(MACHINE | {"pool_costs": figures}, costs)


@pytest.mark.parametrize("costs", [(), (PoolCosts,)], ids=["unread", "checked"])
def test_a_program_reads_its_table_once_and_others_read_parts_of_it(costs):
    spec = device(costs=costs)
    assert spec.costs_of(PoolCosts) == PoolCosts(start_cycles=500, stick_cycles=3.0)
    assert spec.costs_of(StickCosts) == StickCosts(stick_cycles=3.0)
    assert spec.costs_of(PoolCosts) is spec.costs_of(PoolCosts)


def test_specs_are_equal_by_their_figures_whoever_has_read_them():
    read, unread = device(), device(costs=())
    read.costs_of(StickCosts)
    assert (read, hash(read)) == (unread, hash(unread))
    assert device(FIGURES | {"stick_cycles": 4}) != read
    assert DeviceSpec.from_dict(read.to_dict(), (PoolCosts,)) == read
    checked = device({"stick_cycles": 3, "start_cycles": 500}).to_dict()["pool_costs"]
    assert str(checked) == "{'start_cycles': 500, 'stick_cycles': 3.0}"  # types and order of the costs


def test_constants_are_replaced_by_name_or_as_a_whole():
    spec = device()
    changed = spec.with_costs(replace(spec.costs_of(PoolCosts), stick_cycles=4.5))
    assert changed.costs_of(PoolCosts) == PoolCosts(start_cycles=500, stick_cycles=4.5)
    assert changed == spec.replace(pool_costs_stick_cycles=4.5)
    assert changed == spec.replace(pool_costs={"start_cycles": 500, "stick_cycles": 4.5})
    assert changed == spec.replace(pool_costs=changed.costs_of(PoolCosts))
    assert changed == device(costs=()).replace(pool_costs_stick_cycles=4.5)
    assert spec.costs_of(PoolCosts).stick_cycles == 3


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        (FIGURES | {"stick_cycle": 1}, r"unknown key 'pool_costs\.stick_cycle', did you mean 'stick_cycles'\?"),
        ({"start_cycles": 500}, r"missing key pool_costs\.stick_cycles; give every figure"),
        (FIGURES | {"start_cycles": 1.5}, r"pool_costs\.start_cycles must be a whole number, not 1\.5"),
        (FIGURES | {"stick_cycles": 0}, r"pool_costs: stick_cycles must be a number above zero, not 0"),
        (FIGURES | {"stick_cycles": 10**400}, r"pool_costs\.stick_cycles must be at most 1,152,921,504,606,846,976;"),
        (3, r"pool_costs must be a table of PoolCosts, not 3; write it as \[pool_costs\]"),
    ],
)
def test_a_table_that_its_program_does_not_understand_is_refused(figures, message):
    with pytest.raises(SpecError, match=message):
        device(figures)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: DeviceSpec.from_dict(MACHINE, (PoolCosts,)), "missing key pool_costs; give every figure"),
        (
            lambda: DeviceSpec.from_dict(MACHINE | {"pool_cost": FIGURES}, (PoolCosts,)),
            r"unknown key 'pool_cost', did you mean 'pool_costs'\?; keys here are name, ",
        ),
        (
            lambda: DeviceSpec.from_dict(MACHINE).costs_of(PoolCosts),
            "wormhole_n150: there is no table pool_costs; extend a device that has it",
        ),
        (  # a spec that nobody checked is checked when it is opened
            lambda: load_spec(device(FIGURES | {"stick_cycles": -1}, costs=()), (PoolCosts,)),
            "pool_costs: stick_cycles must be a number above zero",
        ),
    ],
)
def test_tables_are_those_that_the_costs_name(read, message):
    with pytest.raises(SpecError, match=message):
        read()
    assert load_spec(device(), (PoolCosts,)) == device()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pool_costs_stick_cycle": 1}, r"unknown field .*, did you mean 'pool_costs_stick_cycles'\?"),
        (
            {"pool_costs_start_cycles": "few"},
            r"^pool_costs\.start_cycles must be a number, not 'few'; give .* of cycles$",
        ),
        ({"pool_costs_stick_cycles": -1}, r"^pool_costs: stick_cycles must be a number above zero, not -1\.0"),
        ({"pool_costs": 3}, "^pool_costs must be a table of PoolCosts, not 3"),
    ],
)
def test_a_change_that_a_checked_table_can_not_take_is_refused_at_once(changes, message):
    with pytest.raises(SpecError, match=message):
        device().replace(**changes)


def test_a_share_is_no_more_than_the_whole():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Shares(Costs):
        TABLE: ClassVar[str] = "shares"
        stick_share: float

    assert Shares(stick_share=1.0).stick_share == 1.0
    with pytest.raises(SpecError, match=r"^shares: stick_share must be a part of 1, not 1\.5"):
        Shares(stick_share=1.5)


def test_a_value_is_derived_once_for_each_spec():
    derived = []

    def cores(spec):
        derived.append(spec.name)
        return spec.grid.cores

    spec = load_spec("n150").replace(name="mine")
    small = replace(spec, grid=replace(spec.grid, rows=4))
    assert [each.derived(cores) for each in (spec, small, spec)] == [64, 32, 64]
    assert derived == ["mine", "mine"]
