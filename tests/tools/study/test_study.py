"""docs/explanation/study.md says what the tool finds: words follow from its tables; some rows are measured again."""

import random
import re
from dataclasses import replace
from itertools import product

import pytest

from tools import study
from ttsim.errors import ArgumentError
from ttsim.runtime.types.layer import Layer
from ttsim.study.design import design
from ttsim.study.space import read_design
from ttsim.study.tune.tune import differences

TEXT = study.DOCUMENT.read_text(encoding="utf-8")
SMALL = Layer(
    name="small", in_channels=32, out_channels=32, input_height=8, input_width=8, stride=(2, 2), input_memory="l1",
    input_layout="TILE", config={"shard_layout": "HEIGHT_SHARDED"},
)  # fmt: skip
MEASURED_AGAIN = 2  # rows of the document


@pytest.fixture(scope="module")
def part():
    """The study of a small layer on two devices, by short searches; of the machines that layer alone is asked."""
    machines = design(replace(read_design(study.SPACE), layers=(SMALL,), tune=False), processes=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "EFFORT", 4)
        patch.setattr(study, "PHASE_EFFORT", 2)
        layers = tuple(study.studied(SMALL, device) for device in ("wormhole_n150", "wormhole_n150, dram.banks=6"))
    return study.Study(machines=machines, invented=study.invented_of(machines), layers=layers)


def table_of(device, text=TEXT):
    """What stands below a device's heading."""
    return text.partition(f"### {device}\n")[2].partition("###")[0]


def documented(device):
    """The cycles of the model's config, tuned, and tuned by phases, the gain and the error, of each layer."""
    lines = [line.split(" | ") for line in table_of(device).splitlines() if re.match(r"\| v\w+\.", line)]
    figures = {cells[0].removeprefix("| "): [cells[at].strip("%| ") for at in (2, 3, 6, 4, 9)] for cells in lines}
    return {name: [float(text.replace(",", "")) for text in texts] for name, texts in figures.items()}


@pytest.mark.slow  # of a study in small
def test_tables_and_charts_of_a_part(part):
    contended = replace(part, layers=tuple(replace(layer, layer=study.CONTENDED) for layer in part.layers))
    result, pictures = study.tables(part), study.charts(contended)
    for layer in part.layers:
        lines = table_of(study.named(layer.device), result).splitlines()
        assert lines[1:5] == [
            *table_of(study.named(layer.device)).splitlines()[1:3],
            study.row(layer),
            study.sums([layer]),
        ]
        assert [line for line in lines if line.startswith("* ")] == [f"* {reason}" for reason in layer.reasons[:1]]
        assert f"{study.named(layer.device)}: cycles that are left" in pictures["study-layers.svg"]
        assert study.named(layer.device) in pictures["study-front.svg"]
    assert f"{len(part.machines.points)} machines; {study.INVENTED} is `{part.invented.device}`.\n" in result
    assert {f"]({name})" in TEXT for name in pictures} == {True}
    assert [study.named(card) for card in study.CARDS] == list(study.CARDS)


@pytest.mark.slow  # of a study in small
def test_what_does_not_fit_is_no_figure(part):
    layer = part.layers[0]
    found = replace(layer, frame=replace(layer.frame, given=None, default=None), error_share=None)
    tuned, phases = layer.frame.best, layer.phase.best
    cells = study.row(found).strip("| ").split(" | ")
    assert cells[:5] == ["small", "does not fit", "does not fit", f"{tuned.cycles:,}", ""]
    assert cells[5:7] == [f"{layer.phase.given.cycles:,}", f"{phases.cycles:,}"]
    assert cells[-2:] == [f"none, {tuned.l1_peak_bytes / 1024:,.0f}, {phases.l1_peak_bytes / 1024:,.0f}", "unknown"]
    assert study.sums([layer]).startswith(f"| all | {layer.frame.default.cycles:,} | {layer.frame.given.cycles:,} |")
    assert study.sums([layer, found]).startswith(f"| all | not all fit | not all fit | {2 * tuned.cycles:,} |  |")


@pytest.mark.slow  # of a study in small
def test_a_layer_in_both_lowerings(part):
    found = part.layers[0]
    assert found.frame.best.cycles <= found.frame.given.cycles
    assert found.phase.best.cycles <= found.phase.given.cycles
    assert (found.frame.best.lowering, found.phase.best.lowering) == ("zero_insertion", "phase")
    assert found.choices[-1] == min(found.frame.best, found.phase.best, key=lambda choice: choice.cycles)
    assert {choice.hands_on.split(",")[0] for choice in (*found.frame.front, *found.phase.front)} == {"TILE"}
    report, before = (
        study.report_on(SMALL, "wormhole_n150", choice) for choice in (found.frame.best, found.frame.given)
    )
    assert (report.total.cycles, report.total.error.share) == (found.frame.best.cycles, found.error_share)
    assert found.reasons == differences(report, before)


def test_the_space_has_the_layers_of_the_main_job_with_other_configs():
    plain = [replace(layer, config={}, source="") for layer in study.LAYERS]
    assert [replace(layer, config={}) for layer in read_design(study.SPACE).layers] == plain


@pytest.mark.slow  # of a study in small
def test_the_invented_device_is_the_fastest_of_no_more_area_than_the_card(part):
    points = part.machines.points
    most = study.base_of(part.machines).costs["area"]
    assert most == pytest.approx(580.3)  # 64 cores of 4.2 and 1.43 mm2, 12 banks, 120 routers, and the rest
    better = study.better_of(part.machines)
    assert len(better) == study.BETTER
    assert all(point.costs["area"] <= most for point in better)
    least = sorted(point.nanoseconds for point in points if point.nanoseconds and point.costs["area"] <= most)
    assert [point.nanoseconds for point in better] == least[: study.BETTER]
    assert part.invented == better[0]
    others = tuple(point for point in points if point.device != "wormhole_n150")
    with pytest.raises(ArgumentError, match="has to hold wormhole_n150 itself"):
        study.invented_of(replace(part.machines, points=others))


def test_the_words_of_the_document_follow_from_its_tables():
    names = {layer.name for layer in study.LAYERS}
    n150, p150, invented = (documented(device) for device in (*study.CARDS, study.INVENTED))
    assert names == set(n150) == set(p150) == set(invented)
    assert all(phases < tuned <= given for given, tuned, phases, *_ in n150.values())
    configs = {name for name, (_, tuned, phases, *_) in p150.items() if tuned < phases}
    assert configs == {"vanilla_unet.upconv3", "vgg_unet.d1.up"}
    slower = {name for name in names if invented[name][1] > n150[name][1]}
    assert slower == {"vgg_unet.d4.up"}
    for name in ("vanilla_unet.upconv3", "vgg_unet.d3.up"):
        assert 100 * (n150[name][3] - 1) < n150[name][4]  # the gain is smaller than the error


@pytest.mark.slow
@pytest.mark.long
def test_rows_of_the_document_are_what_the_tool_finds():
    """A few, drawn with a fixed seed: all of them take ten minutes; `python -m tools.study --write` makes them anew."""
    invented = re.search(rf"{study.INVENTED} is `(.+?)`", TEXT)[1]
    for device, layer in random.Random(4).sample(list(product((*study.CARDS, invented), study.LAYERS)), MEASURED_AGAIN):
        assert f"\n{study.row(study.studied(layer, device))}\n" in table_of(study.named(device)), (device, layer.name)
