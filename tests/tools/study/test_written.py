"""docs/study.md and its charts say what the tool finds: of one layer here, of all of them in a step of CI's own."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tools.study.__main__ import BEGIN, DOCUMENT
from tools.study.measure import CARDS, LAYERS, SPACE, Study, invented_of, studied, study
from tools.study.written import CONTENDED, INVENTED, charts, named, row, sums, tables
from tools.zeros import updated
from ttsim.study.design import design
from ttsim.study.space import read_design

TEXT = DOCUMENT.read_text(encoding="utf-8")
SHORT = "vgg_unet.d3.up"  # the layer whose searches are the shortest


@pytest.fixture(scope="module")
def part():
    """The study of one layer, on the devices of the document; of the machines, too, that layer alone is asked."""
    layer = next(layer for layer in LAYERS if layer.name == SHORT)
    space = read_design(SPACE)
    machines = design(replace(space, layers=tuple(one for one in space.layers if one.name == SHORT)), processes=1)
    invented = re.search(rf"{INVENTED} is `(.+?)`", TEXT)[1]
    found = tuple(studied(layer, device) for device in (*CARDS, invented))
    return Study(machines=machines, invented=invented_of(machines), layers=found)


def table_of(device, text):
    """What stands below a device's heading."""
    return text.partition(f"### {device}\n")[2].partition("###")[0]


@pytest.mark.parametrize("device", [*CARDS, INVENTED])
def test_a_layer_takes_what_the_document_says(part, device):
    (one,) = (one for one in part.layers if named(one.device) == device)
    assert f"\n{row(one)}\n" in table_of(device, TEXT)


def test_tables_of_a_part(part):
    made = tables(part)
    for one in part.layers:
        lines = table_of(named(one.device), made).splitlines()
        assert lines[1:5] == [*table_of(named(one.device), TEXT).splitlines()[1:3], row(one), sums([one])]
        assert [line for line in lines if line.startswith("* ")] == [f"* {reason}" for reason in one.reasons[:3]]
    assert f"{len(part.machines.points)} machines; {INVENTED} is `{part.invented.device}`.\n" in made


def test_charts_of_a_part(part):
    contended = replace(part, layers=tuple(replace(one, layer=CONTENDED) for one in part.layers))
    made = charts(contended)
    assert {f"]({name})" in TEXT for name in made} == {True}
    for device in (*CARDS, INVENTED):
        assert f"{device}: cycles that are left" in made["study-layers.svg"]
        assert device in made["study-front.svg"]


def test_what_does_not_fit_is_no_figure(part):
    one = part.layers[0]
    found = replace(one, frame=replace(one.frame, given=None, default=None), error_share=None)
    name, tuned, by_phases = one.layer, one.frame.best.cycles, one.phase.best.cycles
    assert row(found) == (
        f"| {name} | does not fit | does not fit | {tuned:,} |  | {one.phase.given.cycles:,} | {by_phases:,} |  "
        "| none, 971, 428 | unknown |"
    )
    assert sums([one]).startswith("| all | 371,842 | 70,516 | 69,604 | 1.01 | 31,086 |")
    assert sums([one, found]) == "| all | not all fit | not all fit | 139,208 |  | 62,172 | 62,172 |  |  |  |"


def test_cards_have_their_names():
    assert [named(card) for card in CARDS] == list(CARDS)
    assert named("wormhole_n150, l1.bytes=1MiB") == "the invented device"


@pytest.mark.slow
@pytest.mark.long
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
