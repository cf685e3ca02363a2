"""docs/study.md and its charts say what the tool finds: of one layer here, of all of them in a step of CI's own."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tools.study.__main__ import BEGIN, DOCUMENT
from tools.study.measure import CARDS, LAYERS, SPACE, Study, best_of, invented_of, report_on, studied, study
from tools.study.written import CONTENDED, INVENTED, charts, named, row, sums, tables
from tools.zeros import updated
from ttsim.errors import ArgumentError
from ttsim.runtime.types.layer import Layer
from ttsim.study.design import design
from ttsim.study.space import read_design
from ttsim.study.tune.tune import differences

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
    (one,) = (layer for layer in part.layers if named(layer.device) == device)
    assert f"\n{row(one)}\n" in table_of(device, TEXT)


def test_tables_of_a_part(part):
    result = tables(part)
    for layer in part.layers:
        lines = table_of(named(layer.device), result).splitlines()
        assert lines[1:5] == [*table_of(named(layer.device), TEXT).splitlines()[1:3], row(layer), sums([layer])]
        assert [line for line in lines if line.startswith("* ")] == [f"* {reason}" for reason in layer.reasons[:3]]
    assert f"{len(part.machines.points)} machines; {INVENTED} is `{part.invented.device}`.\n" in result


def test_charts_of_a_part(part):
    contended = replace(part, layers=tuple(replace(layer, layer=CONTENDED) for layer in part.layers))
    result = charts(contended)
    assert {f"]({name})" in TEXT for name in result} == {True}
    for device in (*CARDS, INVENTED):
        assert f"{device}: cycles that are left" in result["study-layers.svg"]
        assert device in result["study-front.svg"]


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


def test_the_space_has_the_layers_of_the_main_job_with_other_configs():
    plain = [replace(layer, config={}, source="") for layer in LAYERS]
    assert [replace(layer, config={}) for layer in read_design(SPACE).layers] == plain


def test_the_invented_device_is_the_fastest_of_no_more_area_than_the_card(part):
    small = part.machines
    found = invented_of(small)
    base = next(point for point in small.points if point.device == "wormhole_n150")
    assert base.costs["area"] == 64
    assert found.costs["area"] <= 64
    least = min(point.nanoseconds for point in small.points if point.nanoseconds and point.costs["area"] <= 64)
    assert found.nanoseconds == least


def test_a_space_without_the_card_is_refused(part):
    small = part.machines
    others = tuple(point for point in small.points if point.device != "wormhole_n150")
    with pytest.raises(ArgumentError, match="has to hold wormhole_n150 itself"):
        invented_of(replace(small, points=others))


def test_a_layer_in_both_lowerings():
    layer = Layer(
        in_channels=32, out_channels=32, input_height=8, input_width=8, stride=(2, 2), input_memory="l1",
        input_layout="TILE", config={"shard_layout": "HEIGHT_SHARDED"},
    )  # fmt: skip
    found = studied(layer, "wormhole_n150")
    assert found.frame.best.cycles <= found.frame.given.cycles
    assert found.phase.best.cycles <= found.phase.given.cycles
    assert (found.frame.best.lowering, found.phase.best.lowering) == ("zero_insertion", "phase")
    assert best_of(found) == min(found.frame.best, found.phase.best, key=lambda made: made.cycles)
    assert {one.hands_on.split(",")[0] for one in (*found.frame.front, *found.phase.front)} == {"TILE"}
    report = report_on(layer, "wormhole_n150", found.frame.best)
    assert (report.total.cycles, report.total.error.share) == (found.frame.best.cycles, found.error_share)
    before = report_on(layer, "wormhole_n150", found.frame.given)
    assert found.reasons == differences(report, before)


@pytest.mark.slow
@pytest.mark.long
def test_the_document_and_its_charts_are_what_the_tool_writes():
    found = study(processes=None)
    assert updated(TEXT, f"\n{tables(found)}\n", BEGIN) == TEXT, "python -m tools.study --write"
    for name, picture in charts(found).items():
        assert Path(DOCUMENT.parent, name).read_text(encoding="utf-8") == picture, "python -m tools.study --write"
    _holds_what_is_said_in_words({(named(layer.device), layer.layer): layer for layer in found.layers})


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
