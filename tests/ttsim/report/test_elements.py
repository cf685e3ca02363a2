"""Elements of a page, by hand."""

from ttsim.report.formatting import TableColumn
from ttsim.report.writers.html.elements import hint, label, more, section, table, tag, text


def test_names_are_one_line_and_texts_have_theirs() -> None:
    assert label("a\n<b>") == "a\\n&lt;b&gt;"
    assert text("a\n<b>") == "a\n&lt;b&gt;"
    assert tag("p", class_="a", aria_label='"x"') == '<p class="a" aria-label="&quot;x&quot;"></p>'
    assert label("n" * 121) == "n" * 120 + "... (121 characters)"
    assert hint("n" * 401) == f"<title>{'n' * 400}... (401 characters)</title>"  # a hint is cut later


def test_nothing_has_no_heading_and_empty_columns_go() -> None:
    assert section("Heading") == section("Heading", text("")) == more("Heading", text("")) == ""
    shown = {"#": "0", "name": "Halo", "nothing": ""}
    columns = [TableColumn(heading, lambda row, name=heading: row[name], heading == "name") for heading in shown]
    assert "nothing" not in table("Caption", columns, [shown])
    assert table("Caption", columns, []) == ""
