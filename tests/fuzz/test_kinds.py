"""Odd arguments, damaged files, interrupts and threads: nothing breaks; `python -m tools.fuzz --kind` makes more."""

import pytest

import ttsim
from tools.fuzz import arguments, finding, interrupts, kinds
from tools.fuzz.__main__ import main
from tools.fuzz.finding import tried, unreadable

FEW = {"arguments": 240, "specs": 80, "layers": 40, "rows": 25, "interrupts": 80, "threads": 8}
MANY = {"arguments": 700, "specs": 400, "layers": 250, "rows": 150, "interrupts": 400, "threads": 50}
PARTS = 4


def faults(kind, seed, first, count):
    """What does not hold, with what makes it happen again."""
    for index in range(first, first + count):
        found = kinds.KINDS[kind](seed, index)
        if found.outcome == "fault":
            yield f"{kind}, seed {seed}, index {index}: {found.text}\n{found.again}"


@pytest.mark.usefixtures("quick_collections")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", FEW)
def test_a_few_of_each_kind(kind, part):
    count = FEW[kind] // PARTS
    assert not list(faults(kind, 20271, part * count, count))


@pytest.mark.slow
@pytest.mark.usefixtures("quick_collections")
@pytest.mark.parametrize("kind", MANY)
def test_many_of_each_kind(kind):
    assert not list(faults(kind, 20272, 0, MANY[kind]))


def test_the_usual_calls_run():
    for name in arguments.CALLS:
        names = {}
        exec(arguments.PRELUDE, names)
        eval(arguments.written(name, {}), names)


def test_a_seed_and_an_index_are_a_call():
    assert arguments.drawn(3, 5) == arguments.drawn(3, 5)
    assert arguments.drawn(3, 5) != arguments.drawn(3, 6)


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

    def leaking(device):
        kept.append(interrupts.ttsim.Tensor([[1.0]], interrupts.ttsim.bfloat16, device))
        for _ in range(50):
            device.clear_program_cache()

    monkeypatch.setattr(interrupts, "SCENES", {"leaking": leaking})
    came, wrong = interrupts.found_after("leaking", interrupts.lines("leaking") - 40)
    assert came
    assert wrong.startswith("blocks are left")


def test_the_command_sums_up(capsys):
    assert main(["--kind", "specs", "arguments", "--count", "3", "--seed", "5"]) == 0
    specs, odd = capsys.readouterr().out.splitlines()
    assert specs.startswith("specs, seed 5: 3 trials: ")
    assert odd.startswith("arguments, seed 5: 3 trials: ")
