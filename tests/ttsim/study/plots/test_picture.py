from xml.etree import ElementTree

from ttsim.study.plots import COLORS, WIDTH, Drawn, color, cut, html_document, key, svg_document, written


def test_names_are_cut_in_their_middle():
    assert cut("short", 100) == "short"
    assert cut("a_long_name_of_a_layer", 70) == "a_lo…layer"
    assert len(cut("x" * 40, 1)) == 4


def test_keys_wrap():
    assert key(["one"], 10) == ("", 0)
    markup, height = key([f"series number {at}" for at in range(12)], 10)
    assert height == 18 * 2 + 6
    assert markup.count("<rect") == 12


def test_colors_come_again():
    assert color(COLORS) == color(0) == "color0"


def test_documents_stack_charts_and_escape_texts():
    charts = [Drawn(written("<b>", 1, 2, "end"), 100, "a & b"), Drawn(written("c", 1, 2), 50, "c")]
    tree = ElementTree.fromstring(svg_document(charts))
    assert (tree.get("width"), tree.get("height")) == (str(WIDTH), "150")
    groups = [one for one in tree if one.tag.endswith("}g")]
    assert [one.get("transform") for one in groups] == ["translate(0 0)", "translate(0 100)"]
    assert groups[0][0].text == "<b>"
    page = html_document("<i>", charts)
    assert page.startswith("<!DOCTYPE html>")
    assert "<title>&lt;i&gt;</title>" in page
    assert page.count("<svg") == 2
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
