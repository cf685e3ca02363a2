"""An optimizer over a space finds most of its front, the same for the same seed."""

import sys
from itertools import product

import pytest

from device.errors import ArgumentError
from ttsim.study.explore import Explorer, hypervolume

SIZES = {"cores": 8, "clock": 8, "links": 4}
PLACES = list(product(*map(range, SIZES.values())))


def aims(place):
    cores, clock, links = (1 + value for value in place)
    return None if place == (7, 7, 3) else (100 / (cores * clock) + 8 / links, float(cores * clock**2 + links))


def looked(seed, most=26):
    """The machines that an optimizer looks at."""
    explorer, numbers = Explorer(PLACES, SIZES, aims=2, seed=seed), []
    while len(numbers) < most:
        asked = explorer.ask(most - len(numbers))
        explorer.tell({number: aims(PLACES[number]) for number in asked})
        numbers += asked
    return numbers


def test_a_tenth_of_the_machines_has_most_of_the_front():
    pytest.importorskip("optuna")
    numbers = looked(0)
    assert looked(0) == numbers
    assert len(set(numbers)) == 26
    found, every = ([own for own in map(aims, places) if own] for places in ([PLACES[at] for at in numbers], PLACES))
    worst = tuple(map(max, zip(*every, strict=True)))
    assert hypervolume(found, worst) > 0.95 * hypervolume(every, worst)


def test_without_optuna_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ArgumentError, match=r"pip install 'ttsim\[optuna\]'"):
        Explorer(PLACES, SIZES, aims=2, seed=0)


@pytest.mark.parametrize(
    ("points", "reference", "volume"),
    [
        ([], (1.0, 1.0), 0.0),
        ([(0.5,), (0.25,)], (1.0,), 0.75),
        ([(0.0, 0.5), (0.5, 0.0), (0.5, 0.5), (2.0, 0.0)], (1.0, 1.0), 0.75),
        ([(0.0, 0.0, 0.5), (0.5, 0.5, 0.0)], (1.0, 1.0, 1.0), 0.5 + 0.25 - 0.125),
    ],
)
def test_hypervolumes(points, reference, volume):
    assert hypervolume(points, reference) == volume
