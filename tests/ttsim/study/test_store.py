"""Rows of a study and their file, which goes on wherever a write was cut off."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from device.errors import ArgumentError
from ttsim.study import store
from ttsim.study.store import PackedRows, Row, Store, Verdict, front, model_version, version_of

ROW = Row(key="k", layer="l", device="d", verdict=Verdict.FITS, cycles=300, clock_hz=500_000_000, pcc=0.1)
ROWS = [replace(ROW, key=name, inputs={"x": "é"}) for name in "abc"]
HEAD = b'{"ttsim_rows":1,"model":"m"}\n'


def test_a_row_survives_json_and_its_time_is_by_the_clock_of_the_device():
    assert Row.from_dict(json.loads(json.dumps(ROW.to_dict()))) == ROW
    assert (ROW.to_dict()["verdict"], ROW.nanoseconds, "nanoseconds" in ROW.to_dict()) == ("fits", 600.0, False)
    assert replace(ROW, cycles=None).nanoseconds is None
    for values, error in (({"x": 1}, TypeError), ({"verdict": "maybe"}, ValueError)):
        with pytest.raises(error):
            Row.from_dict(ROW.to_dict() | values)


def test_contents_and_names_of_sources_count(tmp_path):
    def version():
        return version_of(iter([("a", tmp_path)]))

    (tmp_path / "x.py").write_text("1\n")
    first = version()
    assert (len(first), len(model_version())) == (16, 16)
    (tmp_path / "notes.md").write_text("no source")
    (tmp_path / "x.py").write_bytes(b"1\r\n")
    assert version() == first
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "d.toml").write_text("a = 1\n")
    second = version()
    (tmp_path / "x.py").rename(tmp_path / "y.py")
    assert len({first, second, version()}) == 3


@pytest.mark.parametrize(
    ("costs", "best"),
    [
        ([], ()),
        ([(3, 1), (1, 3), (2, 2), (2, 3), (3, 3)], (1, 2, 0)),
        ([(1, 1), (1, 1), (0, 2), (1, 2)], (2, 0)),
        ([(2,), (1,), (1,)], (1,)),
    ],
)
def test_a_pareto_front(costs, best):
    assert front(costs) == best


def test_packed_rows_are_the_rows_and_take_little_memory():
    inputs = {f"field {number}": number for number in range(40)}
    rows = [replace(ROW, key=f"{number}", inputs={**inputs, "own": number}, cycles=number) for number in range(200)]
    packed = PackedRows()
    packed.add(iter(rows))
    assert (list(packed), list(packed.values())) == ([row.key for row in rows], rows)
    assert [packed[f"{number}"] for number in range(199, -1, -7)] == rows[199::-7]
    packed.add([replace(ROW, key="3")])
    assert (len(packed), packed["3"], packed["4"], packed.get("x"), "x" in packed) == (
        *(200, replace(ROW, key="3"), rows[4], None, False),
    )
    assert sum(map(len, packed._blocks)) < 200 * 100  # 2.4 KB each in dicts


@pytest.fixture
def path(tmp_path):
    with Store(tmp_path / "rows.jsonl", "m") as store:
        store.append(ROWS[:2])
        store.append(ROWS[2:])
    return tmp_path / "rows.jsonl"


def held(path):
    with Store(path, "m") as opened:
        return opened.rows


def test_wherever_a_write_was_cut_off_the_file_goes_on(path):
    whole = path.read_bytes()
    assert (list(held(path).values()), whole[: len(HEAD)], whole.count(b"\n")) == (ROWS, HEAD, 4)
    for size in (*range(0, len(HEAD) + 3, 5), *range(len(HEAD), len(whole), 97), len(whole) - 1, len(whole)):
        path.write_bytes(whole[:size])
        rows = held(path)
        assert list(rows.values()) == ROWS[: max(0, whole[:size].count(b"\n") - 1)]
        with Store(path, "m") as opened:
            opened.append(row for row in ROWS if row.key not in opened.rows)
        assert path.read_bytes() == whole


def test_only_a_last_line_that_is_no_row_is_cut_off(path):
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0\0\0\n")
    assert list(held(path)) == ["a", "b", "c"]
    assert path.read_bytes() == whole
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b'{"key":"b"}\n', lines[3]]))
    with pytest.raises(ArgumentError, match="line 3 is no row"):
        held(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"notes", "no file of rows"),
        (b"notes\n", "no file of rows"),
        (b"1\n", "no file of rows"),
        (b'{"a": 1}\n', "no file of rows"),
        (HEAD.replace(b'"m"', b'"n"'), r"rows of another version of ttsim: .*model.*n.*this version writes.*m"),
    ],
)
def test_another_file_is_left_alone(tmp_path, text, words):
    path = tmp_path / "notes.txt"
    path.write_bytes(text)
    with pytest.raises(ArgumentError, match=words):
        held(path)
    assert path.read_bytes() == text


def test_two_processes_do_not_write_one_file(path):
    other = (
        "import sys; from pathlib import Path; from ttsim.study.store import Store\n"
        "try: Store(Path(sys.argv[1]), 'm')\n"
        "except ValueError as error: print(error)"
    )
    with Store(path, "m"):
        with pytest.raises(ArgumentError, match="is being written by another process"):
            Store(path, "m")  # a file opened twice is locked twice, in one process, too
        said = subprocess.run([sys.executable, "-c", other, path], capture_output=True, text=True, check=True).stdout
    assert "is being written by another process" in said
    assert list(held(path)) == ["a", "b", "c"]


def test_a_system_without_locks_has_a_note(path, monkeypatch):
    monkeypatch.setattr(store, "fcntl", None)
    with Store(path, "m") as opened:
        assert opened.note.startswith("this system has no file locks")
        opened.append([replace(ROWS[0], key="d")])
    assert list(held(path)) == ["a", "b", "c", "d"]
