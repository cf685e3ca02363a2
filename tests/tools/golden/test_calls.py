"""The calls of a record: random ones are drawn again, and recorded ones give what the real library gave."""

from dataclasses import replace

import pytest

from tools.golden.__main__ import main
from tools.golden.answers import answers, execute, namespace, opened
from tools.golden.calls import DEVICE_OF, recorded_call, recorded_calls
from tools.golden.drawn import ALL, GROUPS, drawn_call, drawn_calls
from tools.recorded import DATA, Outputs, read_records

RECORDS = read_records()


def test_random_calls_are_always_the_same_and_python():
    calls = drawn_calls(1)
    assert {call.group for call in calls} == {group.replace(" ", "_") for group in GROUPS}
    assert len({call.name for call in calls}) == len(calls)
    assert ALL > 5000
    for call in calls:
        compile(call.given, call.name, "exec")
        compile(call.text, call.name, "exec")
        assert call.text.rpartition("\n")[2].startswith("y = ")
    assert drawn_call("conv2d", 3, 1) == drawn_call("conv2d", 3, 1) != drawn_call("conv2d", 3, 2)
    assert [bool(drawn_call("neg", number, 1).values) for number in (0, 1, 33)] == [True, False, True]


def first(kind):
    """The number and the record of the first recorded call of a kind."""
    return next(
        (number, record)
        for number, record in enumerate(RECORDS)
        if ("error" in record if kind == "error" else "output_array" in record)
        and (kind == "error" or bool(record["case"].get("prep")) == (kind == "prepared"))
    )


def test_every_recorded_call_is_python():
    calls = recorded_calls(DATA)
    assert len(calls) == len(RECORDS)
    for call in calls:
        compile(f"{call.given}\n{call.text}", call.name, "exec")


@pytest.mark.parametrize("kind", ["values", "prepared"])
def test_a_recorded_call_gives_the_recorded_values(kind):
    number, record = first(kind)
    call = recorded_call(record, number)
    with opened(call, DEVICE_OF[record["arch"]], strict=False, values="exact") as device:
        names = namespace(device, random=True)
        execute(call.given, names)
        output, size, _ = execute(call.text, names)
        assert list(size) == record["output_hw"]
        assert (output.cpu().to_numpy() == Outputs().of(record)).all()
    assert call.values == (DEVICE_OF[record["arch"]],)


def test_a_recorded_refusal_is_refused():
    number, record = first("error")
    call = recorded_call(record, number)
    found = answers(call, DEVICE_OF[record["arch"]], strict=False)
    assert any(aspect.startswith("error of ") for aspect in found)
    assert call.values == ()
    case = record["case"] | {"l1_small_size": 16384}
    assert recorded_call(record | {"case": case}, number) == replace(call, l1_small_size=16384)


def test_a_record_is_written_compared_and_written_again_from_its_calls(tmp_path, capsys):
    first, second = tmp_path / "first", tmp_path / "second"
    how = ["--part", "commands", "--only", "version", "--processes", "1"]
    assert main(["write", str(first), "--count", "1", *how]) == 0
    assert capsys.readouterr().out.endswith(" s\n")
    assert main(["write", str(second), "--calls-of", str(first), *how]) == 0
    assert (second / "calls.jsonl").read_bytes() == (first / "calls.jsonl").read_bytes()
    capsys.readouterr()
    assert main(["compare", str(first), str(second), "--processes", "1"]) == 0
    assert capsys.readouterr().out.startswith("0 differences: plans 0, values 0")
    assert main(["show", "relu/0000", "--calls-of", str(first)]) == 0
    assert "== without dispatch: result" in capsys.readouterr().out


def test_what_is_unknown_is_said(capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["write", str(tmp_path), "--part", "plan"])
    assert "no part is called 'plan'; there are plans, values," in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"holds no calls\.jsonl"):
        main(["write", str(tmp_path / "a"), "--calls-of", str(tmp_path)])
    with pytest.raises(ValueError, match="name a folder of recorded calls"):
        recorded_calls(tmp_path)
    (tmp_path / "calls.jsonl").touch()
    with pytest.raises(ValueError, match="no call is named 'relu/9999'"):
        main(["show", "relu/9999", "--calls-of", str(tmp_path)])
