"""A run looks at everything after each call; a sequence with a fault is made shorter."""

import numpy as np
import pytest

import ttsim
from tools.fuzz import sequences
from tools.fuzz.sequences import LENGTHS, Fault, Outcome, Run, run
from tools.random_calls.drafts import Expected, Step

pytestmark = pytest.mark.usefixtures("quick_collections")
STRICT, LAX = "l1_small_size=32768", "l1_small_size=32768, strict=False"
MADE = "t0 = ttsim.from_numpy(numbers(1, (32, 64)), ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device)"
NEG = "t1 = ttsim.neg(t0)"


def begun(opening):
    """A run with a tensor `t0`, and its values."""
    going = Run(opening)
    wanted = np.asarray(going.state.names["numbers"](1, (32, 64)), np.float64)
    going.carry_out("from_numpy", Step(text=MADE, results={"t0": lambda: Expected(values=wanted, bound=0.02)}))
    return going, going.state.shadows["t0"].values


@pytest.fixture
def going():
    return begun(STRICT)[0]


def fault_of(text, *, opening=STRICT, frees=(), facts=None, factor=-1.0, **more):
    """The fault of a call whose result has to be the tensor times a factor."""
    going, values = begun(opening)
    expected = Expected(**{"values": factor * values, **more})
    results = {"t1": lambda: expected} if "t1 =" in text else {}
    with pytest.raises(Fault) as caught:
        going.carry_out("a call", Step(text=text, results=results, frees=frees, facts=facts or {}))
    return caught.value


@pytest.mark.parametrize(
    ("text", "more", "kind", "part"),
    [
        (NEG, {"factor": 1.0, "bound": 0.5}, "wrong values", " elements, first at (0, 0): "),
        (NEG, {"factor": -0.9, "bound": 9.0, "norm": 0.1}, "wrong values", "relative L2 0.111 is above 0.1"),
        (NEG, {"values": np.zeros((64, 32))}, "a wrong shape", "[32, 64] instead of [64, 32]"),
        (NEG, {"dtypes": ("float32",)}, "a wrong shape", "bfloat16 instead of float32"),
        (NEG, {"layout": "ROW_MAJOR"}, "a wrong shape", "TILE instead of ROW_MAJOR"),
        (NEG, {"place": ttsim.L1_MEMORY_CONFIG}, "a wrong shape", "BufferType::DRAM"),
        (f"{NEG}\nttsim.deallocate(t0)", {}, "an input freed", "t0 is gone"),
        ("ttsim.add_(t0, 1.0)", {}, "a tensor changed", "t0, which the call does not write"),
        ("leaked = ttsim.neg(t0)", {}, "wrong blocks", "belongs to no tensor and no program"),
        ("[][0]", {}, "undocumented IndexError", "list index out of range"),
        ("raise ttsim.ArgumentError('')", {}, "an unreadable error", "without a first line"),
        ("t1n = 3", {"facts": {"t1n": 4}}, "a wrong answer", "3 instead of 4"),
        ("t1 = 3", {}, "a wrong type", "t1 is int"),
        (NEG, {"factor": 1.0, "opening": LAX}, "wrong values", "2048 of 2048"),
    ],
)
def test_a_fault_is_found(text, more, kind, part):
    fault = fault_of(text, **more)
    assert fault.kind == kind
    assert part in str(fault)


def test_a_right_call_is_right(going):
    values = going.state.shadows["t0"].values
    expected = Expected(values=-values, dtypes=("bfloat16",), layout="TILE")
    going.carry_out("neg", Step(text=NEG, results={"t1": lambda: expected}))
    freeing = Step(text="ttsim.deallocate(t0)", frees=("t0",))
    going.carry_out("deallocate", freeing)
    going.carry_out("a call", Step(text="ttsim.permute(t1, (0, 0))"))
    assert going.counts == {"right": 3, "refused": 1}
    assert list(going.state.shadows) == ["t1"]
    assert going.script.endswith(f"{NEG}\nttsim.deallocate(t0)\n# refused: ttsim.permute(t1, (0, 0))\n")
    going.close()


def test_tensors_that_share_a_buffer_change_together(going):
    values = going.state.shadows["t0"].values
    text = "t1 = ttsim.reshape(t0, [1, 32, 64])"
    going.carry_out("reshape", Step(text=text, results={"t1": lambda: Expected(values=values[None])}))
    doubled = Expected(values=2 * values)
    going.carry_out("mul_", Step(text="ttsim.mul_(t0, 2.0)", results={"t0": lambda: doubled}))
    assert np.array_equal(going.state.shadows["t1"].values[0], doubled.values)
    assert set(going.state.sharing(going.state.shadows["t0"])) == {"t0", "t1"}


def test_a_strict_device_must_refuse_what_has_no_right_result():
    for opening in (STRICT, LAX):
        going, values = begun(opening)
        result = {"t1": lambda values=values: Expected(values=-values)}
        impossible = Step(text=NEG, contradictory="weights of another shape", results=result)
        if opening is LAX:
            going.carry_out("a call", impossible)
        else:
            with pytest.raises(Fault, match="accepted: weights of another shape on a strict device"):
                going.carry_out("a call", impossible)


def test_a_device_that_is_not_strict_may_be_as_wrong_as_the_library(monkeypatch):
    going, values = begun(LAX)
    plain = ttsim.neg

    def strictly(tensor):
        if tensor.device().strict:
            raise ttsim.ArgumentError("gives wrong numbers")
        return plain(tensor)

    monkeypatch.setattr(ttsim, "neg", strictly)
    going.carry_out("neg", Step(text=NEG, results={"t1": lambda: Expected(values=values)}))
    assert not going.state.device.strict


@pytest.mark.parametrize("kind", ["sequences", "calls"])
def test_a_sequence_can_be_run_again(kind):
    first = run(5, 1, kind, range(LENGTHS[kind]))
    assert (first.fault, run(5, 1, kind, range(LENGTHS[kind])).script) == (None, first.script)
    exec(first.script, {})


def test_steps_are_left_out_of_a_sequence_with_a_fault(monkeypatch):
    """Of steps that fail where step 2 was carried out before step 9."""

    def outcome(seed, index, kind, steps):
        steps = [step for step in steps if step < 10]
        fault = Fault("call", "wrong", "") if {2, 9} <= set(steps) else None
        return Outcome(f"{steps}", fault=fault, steps=steps)

    monkeypatch.setattr(sequences, "run", outcome)
    assert sequences.shortened(0, 0, "sequences", outcome(0, 0, "", range(10))).steps == [2, 9]
    found = sequences.check(0, 0)
    assert (found.outcome, found.text, found.again) == ("fault", "call: wrong: ", "[2, 9]")
