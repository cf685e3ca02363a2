import json
import subprocess
import sys
from dataclasses import replace

import pytest

from device.errors import ArgumentError
from ttsim.study import store
from ttsim.study.store import Row, Store, Verdict, front, model_version, version_of


def test_a_row_survives_json():
    row = Row(key="k", layer="l", device="d", verdict=Verdict.FITS, cycles=7, pcc=0.1)
    assert Row.from_dict(json.loads(json.dumps(row.to_dict()))) == row
    assert row.to_dict()["verdict"] == "fits"


@pytest.mark.parametrize(("changed", "error"), [({"x": 1}, TypeError), ({"verdict": "maybe"}, ValueError)])
def test_what_is_no_row(changed, error):
    values = Row(key="k", layer="l", device="d", verdict=Verdict.FITS).to_dict() | changed
    with pytest.raises(error):
        Row.from_dict(values)


def test_time_is_by_the_clock_of_the_device():
    row = Row(key="k", layer="l", device="d", verdict=Verdict.FITS, cycles=300, clock_hz=500_000_000)
    assert row.nanoseconds == 600.0
    assert "nanoseconds" not in row.to_dict()
    assert Row(key="k", layer="l", device="d", verdict=Verdict.REFUSED).nanoseconds is None


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
    assert second != first
    (tmp_path / "x.py").rename(tmp_path / "y.py")
    assert version() not in (first, second)


def test_what_nothing_beats():
    assert front([]) == ()
    assert front([(3, 1), (1, 3), (2, 2), (2, 3), (3, 3)]) == (1, 2, 0)
    assert front([(1, 1), (1, 1), (0, 2), (1, 2)]) == (2, 0)
    assert front([(2,), (1,), (1,)]) == (1,)


ROWS = [Row(key=name, layer="l", device="d", verdict=Verdict.FITS, cycles=7, inputs={"x": "é"}) for name in "abc"]
HEAD = b'{"ttsim_rows":1,"model":"m"}\n'


@pytest.fixture
def path(tmp_path):
    with Store(tmp_path / "rows.jsonl", "m") as store:
        store.append(ROWS[:2])
        store.append(ROWS[2:])
    return tmp_path / "rows.jsonl"


def held(path):
    with Store(path, "m") as opened:
        return opened.rows


def test_rows_are_there_again(path):
    assert list(held(path).values()) == ROWS
    assert path.read_bytes().startswith(HEAD)
    assert path.read_bytes().count(b"\n") == 4


def test_wherever_a_write_was_cut_off_the_file_goes_on(path):
    whole = path.read_bytes()
    for size in (*range(0, len(HEAD) + 3), *range(len(HEAD), len(whole), 29), len(whole) - 1, len(whole)):
        path.write_bytes(whole[:size])
        rows = held(path)
        assert list(rows.values()) == ROWS[: max(0, whole[:size].count(b"\n") - 1)]
        with Store(path, "m") as opened:
            opened.append(row for row in ROWS if row.key not in opened.rows)
        assert path.read_bytes() == whole


def test_a_last_line_that_is_no_row_is_cut_off(path):
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0\0\0\n")
    assert list(held(path)) == ["a", "b", "c"]
    assert path.read_bytes() == whole


def test_another_line_that_is_no_row_is_named(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b'{"key":"b"}\n', lines[3]]))
    with pytest.raises(ArgumentError, match="line 3 is no row"):
        held(path)


def test_rows_of_another_model_are_not_mixed(path):
    before = path.read_bytes()
    with pytest.raises(ArgumentError, match=r"rows of another version of ttsim: .*model.*m.*this version writes.*n"):
        Store(path, "n")
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", [b"notes", b"notes\n", b"1\n", b'{"ttsim_rows', b'{"a": 1}\n'])
def test_a_file_of_something_else_is_left_alone(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_bytes(text)
    if HEAD.startswith(text):
        assert held(path) == {}
        return
    with pytest.raises(ArgumentError, match="no file of rows"):
        held(path)
    assert path.read_bytes() == text


def test_two_processes_do_not_write_one_file(path):
    other = (
        "import sys; from pathlib import Path; from ttsim.study.store import Store\n"
        "try: Store(Path(sys.argv[1]), 'm')\n"
        "except ValueError as error: print(error)"
    )
    with Store(path, "m"), pytest.raises(ArgumentError, match="is being written by another process"):
        Store(path, "m")  # a file opened twice is locked twice, in one process, too
    with Store(path, "m"):
        said = subprocess.run([sys.executable, "-c", other, path], capture_output=True, text=True, check=True).stdout
    assert "is being written by another process" in said
    assert list(held(path)) == ["a", "b", "c"]


def test_a_system_without_locks_is_told(path, monkeypatch):
    monkeypatch.setattr(store, "fcntl", None)
    with Store(path, "m") as opened:
        assert opened.note.startswith("this system has no file locks")
        opened.append([replace(ROWS[0], key="d")])
    assert list(held(path)) == ["a", "b", "c", "d"]
