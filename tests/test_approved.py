"""What ttsim says to some 280 calls, word for word: results, errors, captures, addresses, cycles, reasons and values.

The calls were drawn from those of `tools.golden` so that together they run nearly every line of planners and cycles.
After a change that is meant to show, `python -m tests.test_approved` writes what ttsim says now; the calls in a file
(JSON lines of a call, as `tools.golden` writes them, a device, and whether it is strict) are added.
"""

import json
import re
import sys
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

import ttsim
from tools.golden.answers import captured, execute, lines_of, memory, namespace, opened, outcome, values_text
from tools.golden.calls import Call
from tools.golden.store import Sections, read_sections, title, write_sections

FILE = Path(__file__).resolve().parent / "data" / "approved.txt.xz"
LINES = 40  # of a difference that are shown
DIGITS = 9  # of a figure: the last places of sums may differ between versions of Python
SUM = re.compile(r"sum (\d+\.\d+)")


def approved_sections() -> dict[str, Sections]:
    """The call and the answers to it, by the name of the call."""
    calls: dict[str, Sections] = {}
    for heading, text in read_sections(FILE).items():
        name, _, aspect = heading.rpartition(" | ")
        calls.setdefault(name, {})[aspect] = text
    return calls


APPROVED = approved_sections()


def answer(asked: dict[str, Any]) -> Sections:
    """What ttsim says to a call on a device."""
    call = Call(**asked["call"])
    values = "exact" if call.values else "off"
    with (
        opened(call, asked["device"], strict=asked["strict"], values=values) as device,
        ttsim.profile(device) as profile,
    ):
        names = namespace(device, random=bool(call.values))
        answers = outcome(lambda: execute(call.given, names), named="given")
        if "error of given" not in answers:
            answers |= captured(call, names, ttsim.graph.RunMode.NORMAL)
            answers["memory"] = memory(device)
            if call.values:
                answers["values"] = values_text(names.get("y"))
    if profile.ran:
        report = profile.report()
        figures = json.loads(report.to_json(), parse_float=lambda text: float(f"{float(text):.{DIGITS}g}"))
        answers |= {"report": SUM.sub(_rounded_sum, lines_of(figures)), "explanation": report.explain()}
    return answers


def _rounded_sum(match: re.Match[str]) -> str:
    return f"sum {float(match[1]):.{DIGITS}g}"


@pytest.mark.parametrize("name", APPROVED)
def test_answers_are_the_approved_ones(name):
    sections = dict(APPROVED[name])
    answers = answer(json.loads(sections.pop("call")))
    for aspect in sorted({*sections, *answers}):
        before, now = sections.get(aspect, "").splitlines(), answers.get(aspect, "").splitlines()
        difference = list(unified_diff(before, now, "approved", "now", lineterm="", n=1))
        assert not difference, "\n".join([f"{name}, {aspect}", *difference[:LINES]])


def approve(added: list[dict[str, Any]]) -> None:
    """Writes what ttsim says now to the calls of the file and to some more."""
    calls = {name: json.loads(sections["call"]) for name, sections in APPROVED.items()}
    calls |= {asked["call"]["name"]: asked for asked in added}
    sections: Sections = {}
    for name, asked in calls.items():
        sections |= {title(name, aspect): text for aspect, text in {"call": json.dumps(asked), **answer(asked)}.items()}
    write_sections(FILE, sections, preset=9)


if __name__ == "__main__":
    approve([json.loads(line) for path in sys.argv[1:] for line in Path(path).read_text().splitlines()])
