import numpy as np

from tools.fuzz.sequences.state import Choices


def test_a_replay_makes_the_recorded_choices():
    first = Choices(np.random.default_rng(3))
    drawn = [first.below(7), first.between(2, 5), first.pick("abc"), first.chance(0.5), first.member([8, 16, 24])]
    again = Choices(first.taken)
    replayed = [again.below(7), again.between(2, 5), again.pick("abc"), again.chance(0.5), again.member([8, 16, 24])]
    assert replayed == drawn
    assert again.taken == first.taken


def test_what_is_missing_or_impossible_is_the_simplest_or_the_nearest():
    choices = Choices([5, 9])
    assert choices.below(3) == 2
    assert choices.pick("abc") == "c"
    assert choices.pick("abc") == "a"
    assert choices.between(4, 6) == 4
    assert choices.taken == [2, 2, 0, 0]


def test_zero_is_the_unlikely_option_not_taken():
    assert not Choices([]).chance(0.99)
    assert Choices([99]).chance(0.01)
    assert not Choices([98]).chance(0.01)
    assert Choices([]).some("abc", 0.9) == []


def test_a_member_is_recorded_as_itself():
    assert Choices([16]).member([8, 16, 24]) == 16
    assert Choices([16]).member([16, 24]) == 16
    assert Choices([16]).member([8, 24]) == 24
