import sys
import tempfile

import pytest

from tools.golden.answers import MANY, ROOT, lines_of, plain


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"{ROOT}/ttsim/graph.py:3", "<project>/ttsim/graph.py:3"),
        (f"{tempfile.gettempdir()}/golden-ab12_x/out", "<temporary>/out"),
        (f"{sys.base_prefix}/lib/python", "<python>/lib/python"),
        ("<object at 0x7f3bd6c477e0>", "<object at <address>>"),
        ("1 passed in 0.31s", "1 passed in <time> s"),
        ('"model":"042b12678d595051"', '"model":"<hash>"'),
        (f"key {'0a' * 32}", "key <hash>"),
        ("a\nttsim compiles its loops for this machine: x.\nb", "a\nb"),
    ],
)
def test_what_depends_on_machine_or_moment_is_cut(text, wanted):
    assert plain(text) == wanted


@pytest.mark.parametrize(
    "text", ["0.6228491480120281", "1234567890123456", "0x1f at address 1462272", "in 31 s", "8x8"]
)
def test_figures_stay(text):
    assert plain(text) == text


def test_json_is_a_line_for_each_object():
    data = {"cycles": 3, "calls": [{"name": "a", "parts": [1, 2]}, {"name": "b", "more": {"x": None}}], "none": {}}
    assert lines_of(data).split("\n") == [
        "all cycles: 3",
        "calls[0] name: 'a', parts: [1, 2]",
        "calls[1] name: 'b'",
        "calls[1].more x: None",
        "none ",
    ]


def test_a_changed_core_shows_in_the_column_of_its_figure():
    cores = [{"row": row, "cycles": 10 * row, "bound_by": "math"} for row in range(MANY)]
    before = lines_of({"cores": cores}).split("\n")
    assert before[0] == f"cores {MANY} rows"
    cores[3]["cycles"] += 1
    after = lines_of({"cores": cores}).split("\n")
    assert [line for line, other in zip(after, before, strict=True) if line != other] == [after[2]]
    assert after[2].startswith("cores.cycles sum 1361 hash ")


def test_exchanged_words_of_a_column_show_and_renamed_ones_do_not_move_its_hash():
    def lines(words):
        return lines_of({"cores": [{"bound_by": word} for word in words]})

    words = ["math", "reader"] * MANY
    assert lines(words) != lines(reversed(words))
    renamed = ["math" if word == "math" else "first reader" for word in words]
    assert lines(renamed) == lines(words).replace("'reader'", "'first reader'")
