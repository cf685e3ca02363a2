"""Random trials of all kinds: nothing breaks; `python -m tools.fuzz --kind` makes more."""

import pytest

import ttsim
from tools.fuzz import arguments, finding, interrupts, values
from tools.fuzz.__main__ import KINDS, main
from tools.fuzz.finding import tried, unreadable

FEW = {
    **{"calls": 24, "exact": 4, "sequences": 10, "arguments": 80, "specs": 30, "layers": 12},
    **{"rows": 10, "interrupts": 20, "threads": 3, "values": 12},
}
AGAIN = [kind for kind in FEW if kind not in ("interrupts", "threads")]  # tests/ttsim/runtime interrupts all lines


def faults(kind, seed, count):
    """What does not hold, with what makes it happen again."""
    for index in range(count):
        found = KINDS[kind](seed, index)
        if found.outcome == "fault":
            yield f"{kind}, seed {seed}, index {index}: {found.text}\n{found.again}"


@pytest.mark.usefixtures("quick_collections")
@pytest.mark.parametrize("kind", FEW)
def test_a_few_of_each_kind(kind):
    assert not list(faults(kind, 20271, FEW[kind]))


@pytest.mark.slow
@pytest.mark.usefixtures("quick_collections")
@pytest.mark.parametrize("kind", AGAIN)
def test_a_few_others_of_each_kind(kind):
    assert not list(faults(kind, 20272, FEW[kind]))


@pytest.mark.long
def test_a_call_of_every_operation_has_the_values_of_float64():
    assert not list(faults("values", 20273, len(values.NAMES)))


def test_the_calls_that_no_step_makes_run():
    for text in arguments.MORE:
        names = {}
        exec(arguments.PRELUDE + arguments.TENSORS, names)
        exec(text, names)


def test_a_seed_and_an_index_are_a_call():
    assert arguments.drawn(3, 5)[0] == arguments.drawn(3, 5)[0]
    assert arguments.drawn(3, 5)[0] != arguments.drawn(3, 6)[0]


def test_what_is_no_error_of_ours_is_a_fault():
    assert tried(lambda: [][0], again="").text == "undocumented IndexError: list index out of range"
    assert unreadable("\n") == "an error without a first line: '\\n'"
    assert unreadable("a\x1b[31m").startswith("control characters")
    assert unreadable("x" * 2000).startswith("a first line of 2000 characters")


def test_what_takes_too_many_calls_is_a_fault(monkeypatch):
    def again_and_again():
        for _ in range(20):
            unreadable("a")

    def refused():
        again_and_again()
        raise ttsim.ArgumentError("no")

    assert tried(again_and_again, again="").outcome == "runs"
    assert tried(refused, again="").outcome == "refused"
    monkeypatch.setattr(finding, "RUN_CALLS", 20)
    assert tried(again_and_again, again="").text == "runs after 21 calls of Python's functions"
    monkeypatch.setattr(finding, "REFUSAL_CALLS", 21)
    assert tried(refused, again="").text.startswith("refused after 2")


def test_a_block_that_is_left_is_a_fault(monkeypatch):
    kept = []
    monkeypatch.setattr(interrupts, "_NAMES", {"ttsim": ttsim, "kept": kept, "zeros": lambda *_: [[1.0]]})
    leaking = "kept.append(tiles())\nfor _ in range(50):\n    device.clear_program_cache()"
    monkeypatch.setattr(interrupts, "SCENES", {"leaking": leaking})
    came, wrong = interrupts.found_after("leaking", interrupts.lines("leaking") - 40)
    assert came
    assert wrong.startswith("blocks are left")


def test_the_command_sums_up(capsys):
    assert main(["--kind", "specs", "arguments", "--count", "2", "--seed", "5"]) == 0
    specs, odd = capsys.readouterr().out.splitlines()
    assert specs.startswith("specs, seed 5: 2 trials: ")
    assert odd.startswith("arguments, seed 5: 2 trials: ")
