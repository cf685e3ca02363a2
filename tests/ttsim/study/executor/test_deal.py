from dataclasses import replace

import pytest

from ops.op_models import load_spec
from ttsim.study.evaluate import Point
from ttsim.study.executor import Scheduler
from ttsim.types.layer import Layer

SPEC = load_spec("wormhole_n150")
LAYER = Layer(name="a", in_channels=32, out_channels=16, input_height=6, input_width=5)


def points(**counts):
    return [
        Point(spec=SPEC, layer=replace(LAYER, name=name, input_width=5 + index))
        for name, count in counts.items()
        for index in range(count)
    ]


@pytest.mark.parametrize(
    ("count", "lanes", "sizes"), [(12, 1, [1] * 12), (96, 2, [6] * 16), (1200, 1, [16] * 75), (33, 2, [2] * 16 + [1])]
)
def test_chunks(count, lanes, sizes):
    deal = Scheduler(points(a=count), lanes)
    taken = [deal.take(0) for _ in sizes]
    assert [len(one) for one in taken] == sizes
    assert [one for chunk in taken for one in chunk] == points(a=count)
    assert deal.take(0) is None
    assert not deal


def test_where_numbers_are_computed_each_point_goes_by_itself():
    assert len(Scheduler([replace(one, values="fast") for one in points(a=96)], 1).take(0)) == 1


def test_a_lane_keeps_to_a_layer_and_then_helps_where_most_is_left():
    deal = Scheduler(points(a=2, b=4, c=9), 2)
    taken = [deal.take(lane)[0].layer.name for lane in (0, 1, 0, 1, 0, 1, 0, 1, 1)]
    assert taken == ["a", "b", "a", "b", "c", "b", "c", "b", "c"]


def test_what_is_given_back_is_next():
    deal = Scheduler(points(a=2), 1)
    first = deal.take(0)
    deal.give_back(0, first)
    assert deal
    assert deal.take(0) == first
