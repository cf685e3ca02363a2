from math import inf, nan

from ttsim.report.formatting import csv_text, text


def test_figures_that_json_has_not_are_null():
    assert text({"a": (1, nan), "b": {"c": -inf}}) == '{\n "a": [\n  1,\n  null\n ],\n "b": {\n  "c": null\n }\n}'


def test_a_table_has_a_line_for_each_record():
    records = [{"a": 1, "b": None}, {"b": 'x,"y"\n'}]
    assert csv_text(["b", "a"], records) == 'b,a\n,1\n"x,""y""\n",\n'
    assert csv_text([], []) == "\n"


def test_no_cell_is_a_formula_and_numbers_stay_numbers():
    texts = ["=cmd|' /C calc'!A0", "+1", "-x", "@sum", "\tx", "a=b"]
    assert csv_text(["a"], [{"a": one} for one in texts]) == "a\n'=cmd|' /C calc'!A0\n'+1\n'-x\n'@sum\n'\tx\na=b\n"
    assert csv_text(["a", "b"], [{"a": -1, "b": -1.5}]) == "a,b\n-1,-1.5\n"
