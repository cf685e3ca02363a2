"""docs/study.md and its charts say what the tool finds."""

from pathlib import Path

import pytest

from tools.study.__main__ import BEGIN, DOCUMENT
from tools.study.measure import CARDS, LAYERS, studied, study
from tools.study.written import charts, named, row, sums, tables
from tools.zeros import updated
from ttsim.types.layer import Layer

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


def test_what_does_not_fit_is_no_figure():
    layer = Layer(
        name="large", in_channels=1024, out_channels=4096, input_height=128, input_width=128, stride=(2, 2),
        input_memory="l1", config={"shard_layout": "WIDTH_SHARDED"},
    )  # fmt: skip
    found = studied(layer, "wormhole_n150")
    assert found.frame.given is None
    assert row(found).startswith("| large | does not fit | does not fit | ")
    assert sums([found]).startswith("| all | not all fit | not all fit | ")
    assert found.reasons == ()


def test_cards_have_their_names():
    assert [named(card) for card in CARDS] == list(CARDS)
    assert named("wormhole_n150, l1.bytes=1MiB") == "the invented device"


@pytest.mark.slow
def test_the_document_and_its_charts_are_what_the_tool_writes():
    found = study(processes=None)
    assert updated(TEXT, f"\n{tables(found)}\n", BEGIN) == TEXT, "python -m tools.study --write"
    for name, picture in charts(found).items():
        assert Path(DOCUMENT.parent, name).read_text(encoding="utf-8") == picture, "python -m tools.study --write"
