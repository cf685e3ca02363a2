from math import inf, nan

from ttsim.report.plain import csv_text, text


def test_figures_that_json_has_not_are_null():
    assert text({"a": (1, nan), "b": {"c": -inf}}) == '{\n "a": [\n  1,\n  null\n ],\n "b": {\n  "c": null\n }\n}'


def test_a_table_has_a_line_for_each_record():
    records = [{"a": 1, "b": None}, {"b": 'x,"y"\n'}]
    assert csv_text(["b", "a"], records) == 'b,a\n,1\n"x,""y""\n",\n'
    assert csv_text([], []) == "\n"
