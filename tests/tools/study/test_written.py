"""docs/study.md and its charts say what the tool finds."""

from dataclasses import replace
from pathlib import Path

import pytest

from tools.study.__main__ import BEGIN, DOCUMENT
from tools.study.measure import CARDS, LAYERS, studied, study
from tools.study.written import INVENTED, charts, named, row, sums, tables
from tools.zeros import updated

TEXT = DOCUMENT.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def one():
    """A layer whose search is short."""
    layer = next(layer for layer in LAYERS if layer.name == "vanilla_unet.upconv3")
    return studied(layer, "wormhole_n150")


def test_a_layer_takes_what_the_document_says(one):
    table = TEXT.partition("### wormhole_n150\n")[2].partition("###")[0]
    assert f"{row(one)}\n" in table
    assert sums([one]).startswith("| all | 79,627 | 80,163 | 79,013 | 1.01 | 49,067 |")


def test_what_does_not_fit_is_no_figure(one):
    found = replace(one, frame=replace(one.frame, given=None, default=None), error_share=None)
    name = one.layer
    assert row(found) == (
        f"| {name} | does not fit | does not fit | 79,013 |  | 49,067 | 49,067 |  | none, 796, 428 | unknown |"
    )
    assert sums([one, found]) == "| all | not all fit | not all fit | 158,026 |  | 98,134 | 98,134 |  |  |  |"


def test_cards_have_their_names():
    assert [named(card) for card in CARDS] == list(CARDS)
    assert named("wormhole_n150, l1.bytes=1MiB") == "the invented device"


@pytest.mark.slow
def test_the_document_and_its_charts_are_what_the_tool_writes():
    found = study(processes=None)
    assert updated(TEXT, f"\n{tables(found)}\n", BEGIN) == TEXT, "python -m tools.study --write"
    for name, picture in charts(found).items():
        assert Path(DOCUMENT.parent, name).read_text(encoding="utf-8") == picture, "python -m tools.study --write"
    _holds_what_is_said_in_words({(named(one.device), one.layer): one for one in found.layers})


def _holds_what_is_said_in_words(found):
    """The sentences of the document below its charts."""
    names = [layer.name for layer in LAYERS]
    n150, p150, invented = ({name: found[device, name] for name in names} for device in (*CARDS, INVENTED))
    for one in n150.values():
        assert one.phase.best.cycles < one.frame.best.cycles
        assert one.phase.best.l1_peak_bytes < one.frame.best.l1_peak_bytes
    configs = [name for name, one in p150.items() if one.frame.best.cycles < one.phase.best.cycles]
    assert configs == ["vanilla_unet.upconv3", "vgg_unet.d1.up"]
    for name in ("vanilla_unet.upconv3", "vgg_unet.d3.up"):
        assert n150[name].frame.gain_over_given - 1 < n150[name].error_share
    assert p150["vgg_unet.d4.up"].frame.best == p150["vgg_unet.d4.up"].frame.default
    assert n150["vanilla_unet.upconv4"].frame.best.conv_config.enable_weights_double_buffer
    assert not invented["vanilla_unet.upconv4"].frame.best.conv_config.enable_weights_double_buffer
