import inspect
import re

import pytest

import ttsim
from tools.golden.sequences import ALL, dealt, drawn_calls

# Exported functions that take a tensor or make one, and that no random call names.
OTHERWISE = {
    *("as_tensor", "from_numpy", "from_torch", "to_torch", "load_tensor", "dump_tensor"),  # of the host or of files
    *("allocate_tensor_on_device", "allocate_tensor_on_host", "copy_device_to_host_tensor", "get_device_tensors"),
    *("copy_host_to_device_tensor", "from_host_shards", "is_tensor_storage_on_device", "has_storage_type_of"),
    *("synchronize_device",),
}


@pytest.fixture(scope="module")
def calls():
    return drawn_calls()


def test_the_calls_of_a_seed_are_always_the_same(calls):
    assert calls[:40] == drawn_calls()[:40]
    assert calls[:5] != drawn_calls(seed=1)[:5]


def test_there_are_five_thousand_with_names_of_their_own(calls):
    assert len(calls) == ALL == 5000
    assert len({call.name for call in calls}) == 5000
    assert 150 <= sum(bool(call.values) for call in calls) <= 180


def test_fewer_calls_are_the_first_of_each_group(calls):
    few = drawn_calls(60)
    assert {call.name.split("/")[0] for call in few} == set(dealt(60))
    assert sum(dealt(60).values()) == len(few)
    texts = {call.name: (call.given, call.text) for call in calls}
    assert all(texts[call.name] == (call.given, call.text) for call in few)


def test_every_text_is_python(calls):
    for call in calls:
        compile(call.given, call.name, "exec")
        compile(call.text, call.name, "exec")


def test_every_exported_operation_is_drawn(calls):
    named = set(re.findall(r"ttnn\.(\w+)\(", "\n".join(f"{call.given}\n{call.text}" for call in calls)))
    operations = {
        name
        for name in dir(ttsim)
        if inspect.isfunction(value := getattr(ttsim, name)) and re.search(r"\bTensor\b", str(inspect.signature(value)))
    }
    assert operations - named - OTHERWISE == set()
