import json

import pytest

from tools.golden.store import compare_records, differences, read_renames, renamer, summary, title, write_sections

NAME = title("conv2d/0001 wormhole_n150 strict", "explanation")
LINES = "conv2d takes 95,776 cycles in 5 device operations.\n- HaloDeviceOperation: bound by second reader, 12.5 %."


def found(old, new, renames=None):
    return list(differences("plans", {NAME: old}, {NAME: new}, renamer(renames or {})))


def test_equal_texts_have_no_difference():
    assert found(LINES, LINES) == []


def test_a_changed_figure_is_found():
    (difference,) = found(LINES, LINES.replace("95,776", "95,777"))
    assert (difference.kind, difference.part, difference.name) == ("figure", "plans", NAME)
    assert difference.of == "explanation: conv2d ... conv2d takes"
    assert difference.lines[1].startswith("conv2d takes 95,777 cycles")


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [("8x8", "8x9", "figure"), ("float32", "float16", "text"), ("-1.5e-07", "2", "figure"), ("1,000", "999", "figure")],
)
def test_figures_are_told_from_words(old, new, kind):
    assert [one.kind for one in found(f"on {old} cores", f"on {new} cores")] == [kind]


def test_a_changed_word_is_found():
    (difference,) = found(LINES, LINES.replace("second reader", "first reader"))
    assert difference.kind == "text"
    assert difference.of == "explanation: - ... - HaloDeviceOperation : bound by second -> first"


def test_a_line_more_is_found():
    (difference,) = found(LINES, f"{LINES}\n- more")
    assert difference.lines == ("", "- more")


def test_a_missing_and_an_additional_section_are_found():
    other = title("conv2d/0002 wormhole_n150 strict", "explanation")
    old, new = {NAME: LINES, other: "a"}, {NAME: LINES, title("add/0001", "result"): "b"}
    assert [(one.kind, one.name) for one in differences("plans", old, new, renamer({}))] == [
        ("only after", "add/0001 | result"),
        ("only before", other),
    ]


def test_a_rename_map_makes_a_renamed_word_equal():
    new = LINES.replace("second reader", "writer of rows")
    assert found(LINES, new, {"second reader": "writer of rows"}) == []


def test_a_rename_map_does_not_hide_a_changed_figure():
    new = LINES.replace("second reader", "writer").replace("12.5", "12.6")
    (difference,) = found(LINES, new, {"second reader": "writer"})
    assert difference.kind == "figure"
    assert difference.lines == (
        "- HaloDeviceOperation: bound by writer, 12.5 %.",
        "- HaloDeviceOperation: bound by writer, 12.6 %.",
    )


def test_words_are_renamed_whole():
    rename = renamer({"reader": "unit", "second reader": "twin"})
    assert rename("reader, second reader, readers, reader_1, .reader.") == "unit, twin, readers, reader_1, .unit."


def test_names_of_sections_are_renamed():
    old, new = {"add/0001 | told": "a"}, {"add/0001 | text": "a"}
    assert list(differences("plans", old, new, renamer({"told": "text"}))) == []


def test_a_longer_word_may_move_columns_and_line_breaks():
    old = "stage   cycles\nreader      95 and what\n  follows"
    new = "stage         cycles\nfirst reader      95 and\n  what follows"
    assert found(old, new, {"reader": "first reader"}) == []
    assert len(found(old, new.replace("95", "96"), {"reader": "first reader"})) == 1


def test_layout_counts_where_nothing_was_renamed():
    assert len(found("a  b", "a b", {"c": "d"})) == 1


@pytest.mark.parametrize("entry", [{"95": "96"}, {"block 3": "block 4"}, {"3": "three"}, {"-": "+"}])
def test_a_map_of_figures_is_refused(entry, tmp_path):
    path = tmp_path / "map.json"
    path.write_text(json.dumps(entry))
    with pytest.raises(ValueError, match="rename words only"):
        read_renames(path)


def test_maps_are_read_from_toml_with_tables(tmp_path):
    path = tmp_path / "map.toml"
    path.write_text('told = "text"\n[names]\n"second reader" = "twin"\n')
    assert read_renames(path) == {"told": "text", "second reader": "twin"}
    path.write_text("told = 3\n")
    with pytest.raises(ValueError, match="a table of old words and new ones, not int"):
        read_renames(path)
    path.write_text("told =")
    with pytest.raises(ValueError, match=r"map\.toml: "):
        read_renames(path)


def test_records_are_compared_file_by_file(tmp_path):
    for folder, text in (("a", "1 cycle"), ("b", "2 cycles")):
        write_sections(tmp_path / folder / "plans" / "conv2d-000.txt.xz", {NAME: text})
        write_sections(tmp_path / folder / "names" / "ttsim.txt.xz", {NAME: "same"})
    write_sections(tmp_path / "a" / "plans" / "add-000.txt.xz", {"add/0001 | result": "a"})
    both = (tmp_path / "a", tmp_path / "b")
    assert [one.name for one in compare_records(*both, {}, processes=1)] == ["add/0001 | result", NAME]
    assert [one.name for one in compare_records(*both, {}, only="conv2d", processes=1)] == [NAME]
    assert compare_records(*both, {}, parts=["names"], processes=1) == []
    with pytest.raises(ValueError, match="no file of the chosen parts has 'sub' in its path"):
        compare_records(*both, {}, only="sub", processes=1)


def test_the_summary_shows_each_class_once_by_its_smallest_example():
    old = {title(f"conv2d/{number:04}", "table"): f"cycles {number} {'x' * number}" for number in range(1, 4)}
    new = {name: text.replace("cycles ", "cycles 7") for name, text in old.items()}
    lines = list(summary(differences("plans", old, new, renamer({}))))
    assert lines == [
        "plans, 3 x figure: table: cycles ... cycles",
        "    conv2d/0001 | table",
        "    - cycles 1 x",
        "    + cycles 71 x",
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
