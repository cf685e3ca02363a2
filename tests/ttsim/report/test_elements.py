"""Elements of a page, by hand."""

from ttsim.report.formatting import TableColumn
from ttsim.report.writers.html.elements import hint, image, label, more, picture, section, table, tag, text


def test_names_are_one_line_and_texts_have_theirs() -> None:
    assert label("a\n<b>") == "a\\n&lt;b&gt;"
    assert text("a\n<b>") == "a\n&lt;b&gt;"


def test_a_long_name_is_cut_and_a_hint_later() -> None:
    assert label("n" * 121) == "n" * 120 + "... (121 characters)"
    assert hint("n" * 401) == f"<title>{'n' * 400}... (401 characters)</title>"


def test_attributes_are_quoted() -> None:
    assert tag("p", class_="a", aria_label='"x"') == '<p class="a" aria-label="&quot;x&quot;"></p>'


def test_every_row_has_a_header_and_empty_columns_go() -> None:
    shown = {"#": "0", "name": "Halo", "nothing": "", "cycles": "5"}
    columns = [TableColumn(heading, lambda row, name=heading: row[name], heading == "name") for heading in shown]
    result = table("Caption", columns, [shown])
    assert '<th scope="row" class="words">Halo</th>' in result
    assert '<th scope="col" class="figures">cycles</th>' in result
    assert '<td class="figures">5</td>' in result
    assert "nothing" not in result
    assert 'tabindex="0" role="region" aria-label="Caption"' in result
    assert table("Caption", columns, []) == ""


def test_a_picture_is_one_image_to_screen_readers() -> None:
    result = picture("Cores", image("Cores, told below", tag("rect", hint("core 0-0"))))
    assert result.startswith('<div class="picture" role="group" aria-label="Cores"><svg role="img" ')
    assert '<g aria-hidden="true"><rect><title>core 0-0</title></rect></g>' in result


def test_nothing_has_no_heading() -> None:
    assert section("Heading") == section("Heading", text("")) == more("Heading", text("")) == ""
