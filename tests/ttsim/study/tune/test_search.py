"""The search finds what trying everything finds, passes over most of it, and says when it stops early."""

from types import SimpleNamespace

import pytest

from device.errors import DeviceError
from tests.ttsim.study.tune.tuned_calls import question
from ttsim.study.tune.search import GRAIN, Search, evaluate, front
from ttsim.study.tune.space import Space

KEPT = frozenset({"core_grid", "output_layout", "transpose_shards"})


def space(kind):
    asked = question(kind)
    return Space(call=asked.call, spec=asked.ground.machine.spec, free_l1_bytes=1_300_000, kept=KEPT), asked.ground


def everything(searched, ground):
    for first in searched.families():
        for member in searched.members(first):
            try:
                yield evaluate(member, ground)
            except DeviceError:
                continue


@pytest.mark.parametrize("kind", ["l1", "conv2d"])
def test_the_front_is_that_of_everything_up_to_the_grain(kind):
    searched, ground = space(kind)
    search = Search(ground=ground, effort=10_000)
    search.run(searched, most_untimed=0)
    whole = front(list(everything(searched, ground)))
    grain = GRAIN * searched.spec.l1.usable_bytes
    for one in whole:
        assert any(
            (1 - GRAIN) * other.cycles <= one.cycles and other.l1_peak_bytes <= one.l1_peak_bytes + grain
            for other in search.front
        )
    assert search.front[0].cycles * (1 - GRAIN) <= whole[0].cycles
    assert search.count.untried == 0
    assert search.count.passed > search.count.tried


def test_a_search_that_ends_early_says_what_is_left():
    searched, ground = space("l1")
    search = Search(ground=ground, effort=3)
    search.run(searched, most_untimed=0)
    assert search.count.tried >= 3
    assert search.count.untried > 0
    assert 0 < search.count.least_untried_cycles <= search.front[0].cycles


def test_families_behind_the_first_ones_are_left_untried():
    searched, ground = space("l1")
    search = Search(ground=ground, effort=10, most_families=2)
    search.run(searched, most_untimed=0)
    assert (search.count.untried, search.count.least_untried_cycles) == (1, 0)
    assert search.front


def test_what_takes_more_than_is_of_use_is_left_out():
    searched, ground = space("l1")
    search = Search(ground=ground, effort=100, most_cycles=1.0)
    search.run(searched, most_untimed=0)
    assert (search.front, search.count.tried) == ((), 0)


def test_a_front_keeps_what_nothing_beats():
    def made(cycles, l1_bytes, error=0.0):
        return SimpleNamespace(cycles=cycles, l1_peak_bytes=l1_bytes, rms_error=error)

    slow, fast, beaten, exact = made(9, 1), made(5, 3, 0.1), made(9, 2, 0.1), made(6, 3)
    assert front([slow, fast, beaten, exact, made(5, 3, 0.1)]) == (fast, exact, slow)


def test_calls_to_begin_with_are_tried_before_all_families():
    searched, ground = space("l1")
    search = Search(ground=ground, effort=1)
    search.run(searched, most_untimed=0, begin=[searched.call])
    assert search.count.tried == 1
    assert [one.cycles for one in search.front] == [evaluate(searched.call, ground).cycles]
