import pytest

from tools.golden.__main__ import main


def test_a_record_is_written_compared_and_written_again_from_its_calls(tmp_path, capsys):
    first, second = tmp_path / "first", tmp_path / "second"
    assert main(["write", str(first), "--part", "names", "--count", "40", "--processes", "1"]) == 0
    assert capsys.readouterr().out.startswith("119 calls, names: ")
    assert main(["write", str(second), "--part", "names", "--calls-of", str(first), "--processes", "1"]) == 0
    assert (second / "calls.jsonl").read_bytes() == (first / "calls.jsonl").read_bytes()
    capsys.readouterr()
    assert main(["compare", str(first), str(second), "--processes", "1"]) == 0
    assert capsys.readouterr().out.startswith("0 differences: plans 0, values 0")


def test_a_call_is_shown(capsys):
    assert main(["show", "unary/0000", "--count", "40"]) == 0
    told = capsys.readouterr().out
    assert "== without dispatch: result" in told or "== error of" in told
    with pytest.raises(ValueError, match="no call is named 'unary/9999'"):
        main(["show", "unary/9999", "--count", "40"])


def test_unknown_parts_are_told(capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["write", str(tmp_path), "--part", "plan"])
    assert "no part is called 'plan'; there are plans, values," in capsys.readouterr().err


def test_a_folder_that_is_no_record_is_told(tmp_path):
    with pytest.raises(ValueError, match=r"holds no calls\.jsonl"):
        main(["write", str(tmp_path / "a"), "--calls-of", str(tmp_path)])
