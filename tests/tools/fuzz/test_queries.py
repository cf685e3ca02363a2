"""Answers of two libraries to the same query: what counts as a difference, and which calls are asked about."""

import pytest

import ttsim
from device.memory.memory_config import BufferType
from device.numbers.formats import round_up
from tools.fuzz.__main__ import main
from tools.fuzz.queries import (
    Call,
    Scene,
    answers_so_too,
    chain,
    constraints,
    difference,
    first_line,
    question,
    untimely,
)
from tools.fuzz.real_library import RealLibrary

SPEC = {"shape": [1, 32], "dtype": "DataType.BFLOAT16"}
ACCEPTED = {"specs": [SPEC], "usage": [0, 2048, 6144, 2048], "places": [["L1", 0, 2048]]}
REASON = "TT_FATAL @ /project/some.cpp:12: valid\ninfo:\nShards of program 7 do not fit\nbacktrace"
REFUSED = {"error": REASON, "kind": "RuntimeError"}


@pytest.mark.parametrize(
    ("ours", "text"),
    [
        (ACCEPTED, ""),
        (ACCEPTED | {"usage": [0, 2048, 6144, 0]}, "usage: real [0, 2048, 6144, 2048], ours [0, 2048, 6144, 0]"),
        (ACCEPTED | {"specs": []}, f"specs: real [{SPEC}], ours []"),
        ({"specs": [SPEC], "usage": [0, 2048, 6144, 2048]}, ""),  # without dispatch nothing has a place
        (ACCEPTED | {"places": [["L1", 64, 2048]]}, "places: real ['L1', 0, 2048], ours ['L1', 64, 2048]"),
        ({"error": "no\nmore", "kind": "legality"}, "real 'accepts', ours 'no'"),
    ],
)
def test_every_part_of_an_accepted_call_counts(ours, text):
    assert difference(ACCEPTED, ours) == text


class Answering:
    """A real library that gives one list of answers after the other."""

    def __init__(self, *answers):
        self.given = iter(answers)

    def answers(self, _steps):
        return next(self.given, None)


def test_a_library_that_wavers_is_asked_again():
    other = {"error": "something else", "kind": "RuntimeError"}
    wavering = Answering([other], None, [], [REFUSED])  # it may end, and stop before the step
    assert answers_so_too(wavering, {}, 0, {"error": "Shards of program 9 do not fit", "kind": "legality"})
    assert not answers_so_too(Answering([other], [other]), {}, 0, REFUSED)


def test_peaks_that_wrap_around_are_not_compared():
    assert difference(ACCEPTED | {"usage": [0, 2**64 - 4096, 0, 0]}, ACCEPTED) == ""


@pytest.mark.parametrize(
    ("real", "ours", "text"),
    [
        (REFUSED, {"error": "Shards of program 9 do not fit\nours", "kind": "legality"}, ""),
        (REFUSED, {"error": "Shards fit\nours", "kind": "legality"}, "real 'Shards of program N do not fit', ours 'Sh"),
        (REFUSED, ACCEPTED, "real 'Shards of program N do not fit', ours 'accepts'"),
        ({"error": "no tensor", "kind": "TypeError"}, {"error": "other words", "kind": "TypeError"}, ""),
        ({"error": "no tensor", "kind": "TypeError"}, {"error": "x", "kind": "legality"}, "real 'no tensor', ours 'x'"),
    ],
)
def test_refusals_have_the_same_first_line(real, ours, text):
    assert difference(real, ours).startswith(text)
    assert bool(difference(real, ours)) == bool(text)


def test_the_first_line_of_the_library_is_its_reason():
    assert first_line(REASON) == "Shards of program N do not fit"
    assert first_line(" two   words ") == "two words"
    assert first_line("") == ""


def test_a_call_is_asked_with_its_arguments_lying_there():
    """Tiles of 32x64 bfloat16 in L1: 4 KiB lie in two banks, and so does the result."""
    scene = Scene.of("wormhole_n150", 32768)
    line = "t0 = ttsim.from_numpy(numbers(1, (32, 64)), ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device, "
    assert scene.make("t0", f"{line}memory_config=ttsim.L1_MEMORY_CONFIG)\n")
    call = Call("t1 = ttsim.relu(t0)", ("t1",), scene.used("t1 = ttsim.relu(t0)"))
    with scene.device:
        assert call.arguments == ("t0",)
        assert constraints(scene, call)["usage"] == [0, 4096, 12288, 2048]
        assert untimely(scene, call) == ""
        assert ttsim.graph.extract_mock_allocator_state(scene.device).is_empty(BufferType.L1)


def test_a_seed_and_an_index_are_a_question():
    (name, scene, call), (same_name, other, same_call) = question(3, 200), question(3, 200)
    scene.device.close()
    other.device.close()
    assert call is not None
    assert (name, call) == (same_name, same_call)


def test_a_chain_keeps_what_it_does_not_free():
    scene, _, calls, answers = chain(3, 6)
    scene.device.close()
    assert len(calls) == len(answers) > 2
    kept = {name for call in calls for name in call.results} - {name for call in calls for name in call.dropped}
    sizes = sum(end - start for kind in ("L1", "DRAM") for start, end in answers[-1]["state"].get(kind, ()))
    places = {
        name: place
        for call, answer in zip(calls, answers, strict=True)
        for name, place in zip(call.results, answer.get("places", ()), strict=False)
        if place[1] and name not in call.arguments
    }
    spec = scene.device.spec
    units = {"DRAM": spec.dram.alignment_bytes, "L1": spec.l1.allocation_alignment_bytes}
    assert sizes == sum(round_up(places[name][2], units[places[name][0]]) for name in kept & places.keys())


def test_a_process_that_ends_is_no_answer(tmp_path):
    for folder in ("venv/bin", "work"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "venv/bin/python").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "venv/bin/python").chmod(0o755)
    assert RealLibrary(str(tmp_path), "wormhole_n150").answers({"steps": []}) is None


def test_without_the_real_library_its_kinds_are_skipped(capsys, tmp_path):
    assert main(["--kind", "constraints", "chains", "--real", str(tmp_path)]) == 0
    assert main(["--kind", "chains"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[1] == f"chains: skipped, {tmp_path} holds no real library"
    assert out[2] == "chains: skipped, give its folder by --real"
