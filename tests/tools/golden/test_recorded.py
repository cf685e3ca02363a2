from dataclasses import replace

import pytest

from tools.golden.answers import answers, execute, namespace, opened
from tools.golden.calls import DEVICE_OF, recorded_call, recorded_calls
from tools.recorded.records import DATA, Outputs, read_records

RECORDS = read_records()


def first(kind):
    chosen = {
        "values": lambda record: (
            record["mode"] == "sim" and "output_array" in record and not record["case"].get("prep")
        ),
        "prepared": lambda record: record["mode"] == "sim" and "output_array" in record and record["case"].get("prep"),
        "error": lambda record: "error" in record,
    }[kind]
    return next((number, record) for number, record in enumerate(RECORDS) if chosen(record))


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


def test_sizes_of_l1_small_are_kept():
    number, record = first("error")
    case = record["case"] | {"l1_small_size": 16384}
    assert recorded_call(record | {"case": case}, number) == replace(recorded_call(record, number), l1_small_size=16384)


def test_a_folder_without_recorded_calls_is_told(tmp_path):
    with pytest.raises(ValueError, match="name a folder of recorded calls"):
        recorded_calls(tmp_path)
