"""The answers of a record: every view of a call, as text that depends on neither machine nor moment."""

import shutil
import sys
import tempfile
from dataclasses import replace

import pytest

from tools.golden.answers import MANY, ROOT, SAME, lines_of, plain
from tools.golden.calls import Call, read_calls
from tools.golden.commands import COMMANDS, command_sections, surface_sections
from tools.golden.record import write_record
from tools.golden.store import clear, compare_records, read_sections, record_files, title, write_sections
from ttsim.__main__ import build_parser

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
    assert len(names) == 4  # calls and a file of each part
    assert all((tmp_path / name).read_bytes() == (record / name).read_bytes() for name in names)
    assert compare_records(record, tmp_path, processes=1) == []


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
    exports = read_sections(record / "exports" / "binary.txt.xz")
    ends = {name.rsplit(".", 1)[-1] for name in exports if " | file " in name}
    assert ends == {"sqlite", "json", "csv", "html", "gz", "yaml"}
    assert "CREATE TABLE" in next(text for name, text in exports.items() if name.endswith("db.sqlite"))


def test_changed_values_and_figures_and_a_missing_call_are_found(record, tmp_path):
    other = replace(ADD, text="y = ttnn.add(x, x * 2, memory_config=ttnn.L1_MEMORY_CONFIG)")
    write_record(tmp_path, [other], ["values", "plans"], processes=1)
    found = compare_records(record, tmp_path, parts=["values"], processes=1)
    assert [(difference.name, difference.kind) for difference in found] == [
        ("binary/0040 wormhole_n150 | exact", "figure"),
        ("binary/0040 wormhole_n150 | fast", "figure"),
    ]
    found = compare_records(record, tmp_path, parts=["plans"], processes=1)
    assert {difference.kind for difference in found if difference.name.startswith("binary/0041")} == {"only before"}
    assert any(difference.name == "binary/0040 wormhole_n150 strict | capture" for difference in found)


def test_a_part_that_is_written_alone_leaves_the_others(record, tmp_path):
    shutil.copytree(record, tmp_path, dirs_exist_ok=True)
    files = record_files(tmp_path)
    with pytest.raises(ValueError, match="no file of plans has 'unary' in its path"):
        write_record(tmp_path, CALLS, ["plans"], only="unary", processes=1)
    clear(tmp_path, ["plans"], "s/unary")
    assert record_files(tmp_path) == files
    clear(tmp_path, ["plans"])
    assert record_files(tmp_path) == [file for file in files if not file.startswith("plans/")]


def test_sections_come_back_as_they_were_in_any_order(tmp_path):
    sections = {title("conv2d/0001", "result"): "tensor [1]\n\n at address 3\r", title("add/0002", "error"): ""}
    write_sections(tmp_path / "a.txt.xz", sections)
    write_sections(tmp_path / "b.txt.xz", dict(reversed(sections.items())))
    assert read_sections(tmp_path / "a.txt.xz") == sections
    assert (tmp_path / "a.txt.xz").read_bytes() == (tmp_path / "b.txt.xz").read_bytes()
    (tmp_path / "a.txt.xz").write_bytes(b"abc")
    with pytest.raises(ValueError, match="is no file of a record"):
        read_sections(tmp_path / "a.txt.xz")
    with pytest.raises(ValueError, match="holds no record"):
        record_files(tmp_path / "empty")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"{ROOT}/ttsim/graph.py:3", "<project>/ttsim/graph.py:3"),
        (f"{tempfile.gettempdir()}/golden-ab12_x/out", "<temporary>/out"),
        (f"{sys.base_prefix}/lib/python", "<python>/lib/python"),
        ("<object at 0x7f3bd6c477e0>", "<object at <address>>"),
        ("1 passed in 0.31s", "1 passed in <time> s"),
        ('"model":"042b12678d595051"', '"model":"<hash>"'),
        (f"key {'0a' * 32}", "key <hash>"),
        ("a\nttsim compiles its loops for this machine: x.\nb", "a\nb"),
        *((text, text) for text in ("0.6228491480120281", "1234567890123456", "0x1f at address 1462272", "in 31 s")),
    ],
)
def test_what_depends_on_machine_or_moment_is_cut(text, wanted):
    assert plain(text) == wanted


def test_json_is_a_line_for_each_object():
    data = {"cycles": 3, "calls": [{"name": "a", "parts": [1, 2]}, {"name": "b", "more": {"x": None}}], "none": {}}
    assert lines_of(data).split("\n") == [
        "all cycles: 3",
        "calls[0] name: 'a', parts: [1, 2]",
        "calls[1] name: 'b'",
        "calls[1].more x: None",
        "none ",
    ]


def test_a_column_shows_a_changed_figure_and_exchanged_words_but_not_renamed_ones():
    cores = [{"row": row, "cycles": 10 * row, "bound_by": ("math", "reader")[row % 2]} for row in range(MANY)]
    before = lines_of({"cores": cores}).split("\n")
    assert before[0] == f"cores {MANY} rows"
    cores[3]["cycles"] += 1
    after = lines_of({"cores": cores}).split("\n")
    assert [line for line, other in zip(after, before, strict=True) if line != other] == [after[2]]
    assert after[2].startswith("cores.cycles sum 1361 hash ")
    words = [core["bound_by"] for core in cores]

    def line(some):
        return lines_of({"cores": [{"bound_by": word} for word in some]})

    assert line(words) != line(words[::-1][1:] + words[:1])
    assert line([word.replace("reader", "unit") for word in words]) == line(words).replace("'reader'", "'unit'")


def test_public_names_have_signatures_and_docstrings():
    surface = surface_sections()
    assert "conv_transpose2d" in surface["ttsim | names"].split("\n")
    assert "conv_transpose2d" in surface["ttsim | stub"].split("\n")
    assert surface["relu | signature"].startswith("(input_tensor, ")
    assert "input_tensor: Tensor" in surface["relu | annotations"].split("\n")
    assert surface["Tensor.shape | kind"] == "property"
    assert surface["relu | docstring"]
    assert "onednn.conv_transpose | signature" in surface
    assert surface["MathFidelity.LoFi | value"]
    text = "\n".join(text for name, text in surface.items() if not name.endswith("docstring"))
    assert not any(home in text for home in ("0x7", "ttsim.runtime.tensor.Tensor", "device.memory."))


def test_every_command_runs_and_has_its_help():
    (commands,) = (action.choices for action in build_parser()._actions if action.dest == "command")
    texts = [arguments.split() for _, arguments in COMMANDS.values()]
    for name in [*commands, "pytest"]:
        assert [name, "--help"] in texts
        assert sum(text[:1] == [name] for text in texts) >= 2  # and one that runs


@pytest.mark.slow
def test_an_error_of_the_command_line_is_recorded():
    sections = command_sections("run on a broken device")
    assert sections["run on a broken device | exit status"] == "2"
    assert sections["run on a broken device | output"] == ""
    error = sections["run on a broken device | error output"]
    assert error.startswith("ttsim: ")
    assert "rowz" in error
