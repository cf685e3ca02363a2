"""Two records are compared: differences have classes, and each class its smallest example."""

import pytest

from tools.golden.store import differences, summary, title

NAME = title("conv2d/0001 wormhole_n150 strict", "explanation")
LINES = "conv2d takes 95,776 cycles in 5 device operations.\n- HaloDeviceOperation: bound by second reader, 12.5 %."


def found(old, new):
    return list(differences("plans", {NAME: old}, {NAME: new}))


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        (LINES, LINES, []),
        ("on 8x8 cores", "on 8x9 cores", ["figure"]),
        ("on float32 cores", "on float16 cores", ["text"]),
        ("on -1.5e-07 cores", "on 2 cores", ["figure"]),
        ("on 1,000 cores", "on 999 cores", ["figure"]),
        ("a  b", "a b", ["text"]),
    ],
)
def test_what_differs(old, new, kinds):
    assert [difference.kind for difference in found(old, new)] == kinds


def test_a_difference_has_a_class_and_its_first_line():
    (figure,) = found(LINES, LINES.replace("95,776", "95,777"))
    assert (figure.part, figure.name, figure.of) == (
        *("plans", NAME),
        "explanation: conv2d takes N cycles in N device operations.",
    )
    assert figure.lines[1].startswith("conv2d takes 95,777 cycles")
    (word,) = found(LINES, LINES.replace("second", "first"))
    half = "- HaloDeviceOperation: bound by"
    assert word.of == f"explanation: {half} second reader, N %. -> {half} first reader, N %."
    (more,) = found(LINES, f"{LINES}\n- more")
    assert more.lines == ("", "- more")
    (far,) = found(f"{'a ' * 200}b", f"{'a ' * 200}c")
    assert far.lines == (f"{'a ' * 50}b", f"{'a ' * 50}c")


def test_a_missing_and_an_additional_section_are_found():
    other = title("conv2d/0002 wormhole_n150 strict", "explanation")
    old, new = {NAME: LINES, other: "a"}, {NAME: LINES, title("add/0001", "result"): "b"}
    assert [(difference.kind, difference.name) for difference in differences("plans", old, new)] == [
        ("only after", "add/0001 | result"),
        ("only before", other),
    ]


def test_the_summary_shows_each_class_once_by_its_smallest_example():
    old = {title(f"conv2d/{number:04}", "table"): f"cycles {number}\n{'x' * number}" for number in range(1, 4)}
    new = {name: text.replace("cycles ", "cycles 7") for name, text in old.items()}
    lines = list(summary(differences("plans", old, new)))
    assert lines == [
        "plans, 3 x figure: table: cycles N",
        "    conv2d/0001 | table",
        "    - cycles 1",
        "    + cycles 71",
    ]
    words = {name: text.replace("cycles", "words") for name, text in old.items()}
    both = [*differences("plans", old, new), *differences("plans", old, words)]
    assert list(summary(both, most=1))[-1] == "plans: 1 more classes"


def test_what_follows_from_a_refusal_is_counted():
    call = "conv2d/0001 wormhole_n150 strict"
    old = {title(call, "result"): "tensor", title(call, "report"): "3 cycles", title(call, "memory"): "1"}
    new = {title(call, "error of result"): "ArgumentError\nno 3", title(call, "memory"): "0"}
    assert list(summary(differences("plans", old, new))) == [
        "plans, 1 x only after: error of result: ArgumentError no N",
        f"    {call} | error of result",
        "    + ArgumentError no 3",
        "plans, 1 x only before: result: tensor",
        f"    {call} | result",
        "    - tensor",
        "2 more sections of calls that run in one record and are refused in the other",
    ]
