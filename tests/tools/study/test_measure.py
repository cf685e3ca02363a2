"""What the study measures: its invented device is found by its rule, and runs the main job's layers."""

from dataclasses import replace

import pytest

from tools.study.measure import LAYERS, SPACE, best_of, invented_of, report_on, studied
from ttsim.errors import ArgumentError
from ttsim.runtime.types.layer import Layer
from ttsim.study.design import design
from ttsim.study.space import read_design
from ttsim.study.tune.tune import differences


@pytest.fixture(scope="module")
def small():
    """The space with one layer."""
    space = read_design(SPACE)
    return design(replace(space, layers=tuple(one for one in space.layers if one.name == "vgg_unet.d3.up")))


def test_the_space_has_the_layers_of_the_main_job_with_other_configs():
    plain = [replace(layer, config={}, source="") for layer in LAYERS]
    assert [replace(layer, config={}) for layer in read_design(SPACE).layers] == plain


def test_the_invented_device_is_the_fastest_of_no_more_area_than_the_card(small):
    found = invented_of(small)
    base = next(one for one in small.points if one.device == "wormhole_n150")
    assert base.costs["area"] == 64
    assert found.costs["area"] <= 64
    least = min(one.nanoseconds for one in small.points if one.nanoseconds and one.costs["area"] <= 64)
    assert found.nanoseconds == least


def test_a_space_without_the_card_is_refused(small):
    others = tuple(one for one in small.points if one.device != "wormhole_n150")
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
    assert (found.frame.best.lowering, found.phase.best.lowering) == ("frame", "phase")
    assert best_of(found) == min(found.frame.best, found.phase.best, key=lambda made: made.cycles)
    assert {one.hands_on.split(",")[0] for one in (*found.frame.front, *found.phase.front)} == {"TILE"}
    report = report_on(layer, "wormhole_n150", found.frame.best)
    assert (report.total.cycles, report.total.error.share) == (found.frame.best.cycles, found.error_share)
    before = report_on(layer, "wormhole_n150", found.frame.given)
    assert found.reasons == differences(report, before)
