import sys
from dataclasses import replace

import pytest

from tools.golden.answers import SAME, outcome
from tools.golden.calls import Call, read_calls
from tools.golden.record import write_record
from tools.golden.store import compare_records, read_sections, record_files

ADD = Call(
    name="binary/0040",
    given="x = ttnn.Tensor(normal(3, (1, 1, 64, 32)), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT).to(device)",
    text="y = ttnn.add(x, x)",
    values=("wormhole_n150",),
)
REFUSED = replace(ADD, name="binary/0041", text="y = ttnn.add(x, 'x')", values=())
CALLS = [ADD, REFUSED]
PARTS = ("plans", "values", "exports")


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    folder = tmp_path_factory.mktemp("record")
    write_record(folder, CALLS, PARTS, processes=1)
    return folder


def test_the_same_calls_give_the_same_bytes(record, tmp_path):
    write_record(tmp_path, read_calls(record), PARTS, processes=1)
    names = [path.relative_to(record) for path in sorted(record.rglob("*")) if path.is_file()]
    assert len(names) == 5  # calls, about and a file of each part
    assert all((tmp_path / name).read_bytes() == (record / name).read_bytes() for name in names)
    assert compare_records(record, tmp_path, {}, processes=1) == []


def test_a_record_has_every_view_of_a_call(record):
    sections = read_sections(record / "plans" / "binary-000.txt.xz")
    aspects = [name.split(" | ")[1] for name in sections if name.startswith("binary/0040 wormhole_n150 strict |")]
    assert aspects == [
        *("capture", "explanation", "formatted capture", "levelized capture", "memory", "network", "network in JSON"),
        *("output info", "peaks", "report", "result", "table of 160 columns", "table of 80 columns"),
        *("without dispatch: capture", "without dispatch: peaks", "without dispatch: result"),
    ]
    assert sections["binary/0040 wormhole_n150 strict | result"].startswith("tensor [1, 1, 64, 32] padded")
    error = sections["binary/0041 blackhole_p150 strict | error of result"].split("\n")
    assert error[0].endswith("TTSimError, TypeError, Exception, BaseException")
    assert error[1].startswith("ttnn.add(): incompatible function arguments")
    assert sections[f"binary/0041 blackhole_p150 not strict | {SAME}"] == "yes"


def test_what_is_printed_is_recorded_but_for_sentences_about_the_machine():
    def run(text):
        print("a", text)
        sys.stderr.write("ttsim compiles its loops for this machine: x.\n")

    assert outcome(lambda: run("b"), named="result") == {"result": "None", "printed by result": "a b\n"}


def test_values_are_hashes_that_change_with_a_value(record, tmp_path):
    other = replace(ADD, text="y = ttnn.add(x, x * 2)")
    write_record(tmp_path, [other], ["values"], processes=1)
    found = compare_records(record, tmp_path, {}, parts=["values"], processes=1)
    assert [(one.name, one.kind) for one in found] == [
        ("binary/0040 wormhole_n150 | exact", "figure"),
        ("binary/0040 wormhole_n150 | fast", "figure"),
    ]


def test_a_changed_figure_and_a_missing_call_are_found(record, tmp_path):
    changed = replace(ADD, text="y = ttnn.add(x, x, memory_config=ttnn.L1_MEMORY_CONFIG)")
    write_record(tmp_path, [changed], ["plans"], processes=1)
    found = compare_records(record, tmp_path, {}, parts=["plans"], processes=1)
    assert {one.kind for one in found if one.name.startswith("binary/0041")} == {"only before"}
    capture = next(one for one in found if one.name == "binary/0040 wormhole_n150 strict | capture")
    assert "BufferType :: DRAM -> L1" in capture.of or "DRAM -> L1" in capture.of


def test_a_part_that_is_written_alone_leaves_the_others(record, tmp_path):
    write_record(tmp_path, CALLS, ["plans", "values"], processes=1)
    before = (tmp_path / "plans" / "binary-000.txt.xz").stat().st_mtime_ns
    write_record(tmp_path, CALLS, ["values"], processes=1)
    assert record_files(tmp_path) == ["plans/binary-000.txt.xz", "values/binary.txt.xz"]
    assert (tmp_path / "plans" / "binary-000.txt.xz").stat().st_mtime_ns == before
    with pytest.raises(ValueError, match="no file of plans has 'unary' in its path"):
        write_record(tmp_path, CALLS, ["plans"], only="unary", processes=1)
    assert len(record_files(tmp_path)) == 2


def test_exported_files_are_text(record):
    sections = read_sections(record / "exports" / "binary.txt.xz")
    ends = {name.rsplit(".", 1)[-1] for name in sections if " | file " in name}
    assert ends == {"sqlite", "json", "csv", "html", "gz"}
    database = next(text for name, text in sections.items() if name.endswith("db.sqlite"))
    assert "CREATE TABLE" in database
