"""Formulas over fields."""

import pytest

from device.errors import ArgumentError
from ops.sensitivity.changes import LONGEST, formula

FIELDS = {"grid.cols": 8.0, "grid.rows": 7.0, "l1.bytes": 2.0**21, "reader.tilize[0].dst_16bit_cycles": 107.0}


@pytest.mark.parametrize(
    ("text", "value", "names"),
    [
        ("grid.cols * grid.rows * (1 + l1.bytes / 2**20)", 168.0, ("grid.cols", "grid.rows", "l1.bytes")),
        ("-grid.cols ** 2 + +1", -63.0, ("grid.cols",)),
        ("2 ** 3 ** 2", 512.0, ()),
        ("min(grid.cols, grid.rows, 5.5) - max(1, 2)", 3.5, ("grid.cols", "grid.rows")),
        ("reader.tilize[0].dst_16bit_cycles / 2", 53.5, ("reader.tilize[0].dst_16bit_cycles",)),
        (" 1e-1 ", 0.1, ()),
        (7, 7.0, ()),
    ],
)
def test_what_a_formula_gives(text, value, names):
    found = formula(text, FIELDS)
    assert (found.value(FIELDS), found.names) == (value, names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__import__('os')", r"^a formula must not have \"__import__\('os'\)\"; use numbers, fields, \+ - \* /"),
        ("grid.cols.__class__", r"^unknown field 'grid\.cols\.__class__'"),
        ("grid.col", r"^unknown field 'grid\.col', did you mean 'grid\.cols'\?"),
        ("lambda: 1", "must not have 'lambda: 1'"),
        ("abs(1)", r"must not have 'abs\(1\)'"),
        ("min()", r"must not have 'min\(\)'"),
        ("min(*[1, 2])", r"must not have '\*\[1, 2\]'"),
        ("min(1, key=2)", r"must not have 'min\(1, key=2\)'"),
        ("1 if 2 else 3", "must not have '1 if 2 else 3'"),
        ("7 // 2", "must not have '7 // 2'"),
        ("True", "must not have 'True'"),
        ("'a'", "must not have"),
        ("1j", "must not have '1j'"),
        ("1 +", r"^'1 \+' is no formula \(SyntaxError\)"),
        ("", f"^a formula is a text of at most {LONGEST} characters, not ''"),
        ("1+" * LONGEST, f"^a formula is a text of at most {LONGEST} characters"),
        (True, "^a formula is a text"),
        (None, "^a formula is a text"),
    ],
)
def test_what_is_no_formula_is_refused(text, message):
    with pytest.raises(ArgumentError, match=message):
        formula(text, FIELDS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / (grid.cols - 8)", r"cannot be worked out: float division by zero; with grid\.cols = 8$"),
        ("10 ** 10 ** 10", "cannot be worked out: "),
        ("(0 - 8) ** 0.5", "must be a finite number, not "),
        ("min((0 - 8) ** 0.5, 1)", "cannot be worked out: '<' not supported"),
        ("1e999", "must be a finite number, not inf"),
        ("9" * 400, "must be a finite number, not inf"),
        ("1e308 * 10", "must be a finite number, not inf"),
    ],
)
def test_what_has_no_value_is_refused(text, message):
    with pytest.raises(ArgumentError, match=message):
        formula(text, FIELDS).value(FIELDS)


def test_a_deep_formula_is_worked_out_or_refused():
    assert formula("+".join(["1"] * 250), FIELDS).value({}) == 250.0
    assert formula("(" * 50 + "1" + ")" * 50, FIELDS).value({}) == 1.0
    with pytest.raises(ArgumentError, match="is no formula"):
        formula("(" * 240 + "1" + ")" * 240, FIELDS)
