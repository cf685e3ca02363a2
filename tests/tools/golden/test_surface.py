from tools.golden.answers import described
from tools.golden.commands import _aspects, surface_sections


def test_public_names_have_signatures_and_docstrings():
    sections = surface_sections()
    assert "conv_transpose2d" in sections["ttsim | names"].split("\n")
    assert "conv_transpose2d" in sections["ttsim | stub"].split("\n")
    assert sections["relu | signature"].startswith("(input_tensor, ")
    assert "input_tensor: Tensor" in sections["relu | annotations"].split("\n")
    assert sections["Tensor.shape | kind"] == "property"
    assert sections["relu | docstring"]
    assert "onednn.conv_transpose | signature" in sections
    assert sections["MathFidelity.LoFi | value"]


def test_no_address_and_no_home_of_a_class_is_left():
    text = "\n".join(text for name, text in surface_sections().items() if not name.endswith("docstring"))
    assert "0x7" not in text
    assert "ttsim.runtime.tensor.Tensor" not in text
    assert "device.memory." not in text


def test_sets_are_told_in_an_order_that_does_not_hang_on_the_process():
    assert _aspects(frozenset(map(str, range(30)))) == {
        "value": f"frozenset {sorted(map(repr, map(str, range(30))))!r}"
    }
    assert described({"b", "a"}) == "'a'\n'b'"
