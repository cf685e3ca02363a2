import numpy as np
import pytest

import ttsim
from tools.fuzz.sequences.running import Fault, Record, Run, needed, run
from tools.fuzz.sequences.state import Choices, Expected, Step

STRICT, LAX = [0, 0, 0, 0], [0, 0, 99, 0]
MADE = "t0 = ttsim.from_numpy(numbers(1, (32, 64)), ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device)"


@pytest.fixture
def going():
    return begun(STRICT)


def begun(opening):
    """A run with a tensor `t0`."""
    made = Run(Choices(opening))
    wanted = np.asarray(made.state.names["numbers"](1, (32, 64)), np.float64)
    made.carry_out("from_numpy", Step(text=MADE, results={"t0": lambda: Expected(values=wanted, bound=0.02)}), 0)
    return made


def held(going, name="t0"):
    return going.state.shadows[name].values


def fault_of(going, text, **more):
    with pytest.raises(Fault) as found:
        going.carry_out("a call", Step(text=text, **more), 1)
    return found.value


def expecting(values, **more):
    return {"results": {"t1": lambda: Expected(values=values, **more)}}


def test_a_right_call_is_right(going):
    step = Step(text="t1 = ttsim.neg(t0)", **expecting(-held(going), dtypes=("bfloat16",), layout="TILE"))
    going.carry_out("neg", step, 1)
    assert going.counts == {"right": 2}
    assert list(going.state.shadows) == ["t0", "t1"]
    assert going.script.endswith("t1 = ttsim.neg(t0)\n")
    going.close()


def test_a_wrong_element_is_found(going):
    wrong = -held(going)
    wrong[3, 5] += 1
    fault = fault_of(going, "t1 = ttsim.neg(t0)", **expecting(wrong, bound=0.5))
    assert fault.kind == "wrong values"
    assert "1 of 2048 elements, first at (3, 5)" in str(fault)


def test_a_wrong_norm_is_found(going):
    fault = fault_of(going, "t1 = ttsim.neg(t0)", **expecting(-0.9 * held(going), bound=9.0, norm=0.1))
    assert "relative L2 0.111 is above 0.1" in str(fault)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({"values": np.zeros((64, 32))}, "[32, 64] instead of [64, 32]"),
        ({"dtypes": ("float32",)}, "bfloat16 instead of float32"),
        ({"layout": "ROW_MAJOR"}, "TILE instead of ROW_MAJOR"),
        ({"place": ttsim.L1_MEMORY_CONFIG}, "BufferType::DRAM"),
    ],
)
def test_a_wrong_shape_or_kind_is_found(going, wanted, text):
    fault = fault_of(going, "t1 = ttsim.neg(t0)", **expecting(**{"values": -held(going), **wanted}))
    assert fault.kind == "a wrong shape"
    assert text in str(fault)


def test_an_input_that_is_freed_is_found(going):
    text = "t1 = ttsim.neg(t0)\nttsim.deallocate(t0)"
    assert fault_of(going, text, **expecting(-held(going))).kind == "an input freed"
    other = begun(STRICT)
    other.carry_out("a call", Step(text=text, frees=("t0",), **expecting(-held(other))), 1)
    assert list(other.state.shadows) == ["t1"]


def test_a_tensor_that_changes_is_found(going):
    assert fault_of(going, "ttsim.add_(t0, 1.0)").kind == "a tensor changed"


def test_tensors_that_share_a_buffer_change_together(going):
    text = "t1 = ttsim.reshape(t0, [1, 32, 64])"
    going.carry_out("reshape", Step(text=text, results={"t1": lambda: Expected(values=held(going)[None])}), 1)
    doubled = 2 * held(going)
    going.carry_out("mul_", Step(text="ttsim.mul_(t0, 2.0)", results={"t0": lambda: Expected(values=doubled)}), 2)
    assert np.array_equal(held(going, "t1")[0], doubled)
    assert {shadow.name for shadow in going.state.sharing("t0")} == {"t0", "t1"}


def test_a_leak_is_found_at_once_and_at_the_end(going):
    fault = fault_of(going, "leaked = ttsim.neg(t0)")
    assert fault.kind == "wrong blocks"
    assert "belongs to no tensor and no program" in str(fault)
    other = begun(STRICT)
    kept = ttsim.neg(other.state.names["t0"])
    with pytest.raises(Fault, match="the end: a leak"):
        other.close()
    assert kept.is_allocated()


def test_errors_are_documented_and_readable(going, monkeypatch):
    fault = fault_of(going, "[][0]")
    assert fault.kind == "undocumented IndexError"
    assert "list index out of range" in str(fault)
    going.carry_out("a call", Step(text="ttsim.permute(t0, (0, 0))"), 1)
    assert going.counts["refused"] == 1
    assert going.lines[-1] == "# refused: ttsim.permute(t0, (0, 0))"

    def speechless(*_):
        raise ttsim.ArgumentError("")

    monkeypatch.setattr(ttsim, "neg", speechless)
    assert fault_of(going, "ttsim.neg(t0)").kind == "an unreadable error"


def test_a_wrong_answer_is_found(going):
    assert fault_of(going, "t1n = 3", facts={"t1n": 4}).kind == "a wrong answer"
    assert fault_of(going, "t1 = 3", **expecting(np.zeros(1))).kind == "a wrong type"


def test_a_strict_device_must_refuse_what_has_no_right_result(going):
    impossible = Step(text="t1 = ttsim.neg(t0)", contradictory="weights of another shape", **expecting(-held(going)))
    with pytest.raises(Fault, match="accepted: weights of another shape on a strict device"):
        going.carry_out("a call", impossible, 1)
    begun(LAX).carry_out("a call", impossible, 1)


def test_a_device_that_is_not_strict_may_be_as_wrong_as_the_library(monkeypatch):
    lax = begun(LAX)
    plain = ttsim.neg

    def strictly(tensor):
        if tensor.device().strict:
            raise ttsim.ArgumentError("gives wrong numbers")
        return plain(tensor)

    fault_of(begun(LAX), "t1 = ttsim.neg(t0)", **expecting(held(lax)))
    monkeypatch.setattr(ttsim, "neg", strictly)
    lax.carry_out("neg", Step(text="t1 = ttsim.neg(t0)", **expecting(held(lax))), 1)
    assert not lax.state.device.strict


def test_a_sequence_can_be_run_again(tmp_path, monkeypatch):
    first = run(Record((5, 0)), 6)
    again = run(first.record, 6)
    assert again.script == first.script
    assert again.record == first.record
    monkeypatch.chdir(tmp_path)  # where its files go
    exec(first.script, {})


def test_the_steps_that_the_last_one_needs():
    texts = {0: "t0 = a()", 1: "t1 = a()", 2: "ttsim.add_(t0, 1.0)", 3: "t3 = b(t1)", 7: "t7 = c(t0)"}
    assert needed(texts) == {0, 2, 7}
    assert needed({}) == set()
