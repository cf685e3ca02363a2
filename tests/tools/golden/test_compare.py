"""Two records are compared after a rename map, which hides no figure."""

import json

import pytest

from tools.golden.store import differences, read_renames, renamer, summary, title

NAME = title("conv2d/0001 wormhole_n150 strict", "explanation")
LINES = "conv2d takes 95,776 cycles in 5 device operations.\n- HaloDeviceOperation: bound by second reader, 12.5 %."
TABLE = "stage   cycles\nreader      95 and what\n  follows"
MOVED = "stage         cycles\nfirst reader      95 and\n  what follows"
TWIN = {"second reader": "twin"}


def found(old, new, renames=None):
    return list(differences("plans", {NAME: old}, {NAME: new}, renamer(renames or {})))


@pytest.mark.parametrize(
    ("old", "new", "renames", "kinds"),
    [
        (LINES, LINES, {}, []),
        ("on 8x8 cores", "on 8x9 cores", {}, ["figure"]),
        ("on float32 cores", "on float16 cores", {}, ["text"]),
        ("on -1.5e-07 cores", "on 2 cores", {}, ["figure"]),
        ("on 1,000 cores", "on 999 cores", {}, ["figure"]),
        (LINES, LINES.replace("second reader", "twin"), TWIN, []),
        (LINES, LINES.replace("second reader", "twin").replace("12.5", "12.6"), TWIN, ["figure"]),
        # a longer word may move columns and line breaks; layout counts where nothing was renamed
        (TABLE, MOVED, {"reader": "first reader"}, []),
        (TABLE, MOVED.replace("95", "96"), {"reader": "first reader"}, ["text"]),
        ("a  b", "a b", {"c": "d"}, ["text"]),
    ],
)
def test_what_differs(old, new, renames, kinds):
    assert [difference.kind for difference in found(old, new, renames)] == kinds


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
    assert [(difference.kind, difference.name) for difference in differences("plans", old, new, renamer({}))] == [
        ("only after", "add/0001 | result"),
        ("only before", other),
    ]


def test_words_and_names_of_sections_are_renamed_whole():
    rename = renamer({"reader": "unit", "second reader": "twin"})
    assert rename("reader, second reader, readers, reader_1, .reader.") == "unit, twin, readers, reader_1, .unit."
    old, new = {"add/0001 | told": "a"}, {"add/0001 | text": "a"}
    assert list(differences("plans", old, new, renamer({"told": "text"}))) == []


def test_maps_are_read_from_files_and_those_of_figures_are_refused(tmp_path):
    for number, entry in enumerate([{"95": "96"}, {"block 3": "block 4"}, {"3": "three"}, {"-": "+"}]):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(entry))
        with pytest.raises(ValueError, match="rename words only"):
            read_renames(path)
    path = tmp_path / "map.toml"
    path.write_text('told = "text"\n[names]\n"second reader" = "twin"\n')
    assert read_renames(path) == {"told": "text", "second reader": "twin"}
    for text, message in (("told = 3\n", "a table of old words and new ones, not int"), ("told =", r"map\.toml: ")):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_renames(path)


def test_the_summary_shows_each_class_once_by_its_smallest_example():
    old = {title(f"conv2d/{number:04}", "table"): f"cycles {number}\n{'x' * number}" for number in range(1, 4)}
    new = {name: text.replace("cycles ", "cycles 7") for name, text in old.items()}
    lines = list(summary(differences("plans", old, new, renamer({}))))
    assert lines == [
        "plans, 3 x figure: table: cycles N",
        "    conv2d/0001 | table",
        "    - cycles 1",
        "    + cycles 71",
    ]
    words = {name: text.replace("cycles", "words") for name, text in old.items()}
    both = [*differences("plans", old, new, renamer({})), *differences("plans", old, words, renamer({}))]
    assert list(summary(both, most=1))[-1] == "plans: 1 more classes"


def test_what_follows_from_a_refusal_is_counted():
    call = "conv2d/0001 wormhole_n150 strict"
    old = {title(call, "result"): "tensor", title(call, "report"): "3 cycles", title(call, "memory"): "1"}
    new = {title(call, "error of result"): "ArgumentError\nno 3", title(call, "memory"): "0"}
    assert list(summary(differences("plans", old, new, renamer({})))) == [
        "plans, 1 x only after: error of result: ArgumentError no N",
        f"    {call} | error of result",
        "    + ArgumentError no 3",
        "plans, 1 x only before: result: tensor",
        f"    {call} | result",
        "    - tensor",
        "2 more sections of calls that run in one record and are refused in the other",
    ]
