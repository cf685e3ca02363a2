"""Tables of notebooks."""

from ttsim.runtime.shown import html_table


def test_a_table_escapes_texts_and_puts_words_to_the_left():
    left, right = (f' style="text-align: {side}"' for side in ("left", "right"))
    assert html_table([("layer", "n"), ("<b>", "1")], words=("layer",)) == (
        f"<table><thead><tr><th{left}>layer</th><th{right}>n</th></tr></thead>"
        f"<tbody><tr><td{left}>&lt;b&gt;</td><td{right}>1</td></tr></tbody></table>"
    )
    assert html_table([("a",)], caption="x & y").startswith(f"<table><caption{left}>x &amp; y</caption><thead>")
