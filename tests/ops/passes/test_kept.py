"""Prepared weights are found again by their content, and only by that."""

from dataclasses import dataclass

import numpy as np

from device.plan import DeviceOp
from ops.passes.caches import WeightCache


@dataclass(frozen=True, slots=True)
class Doubled(DeviceOp):
    times: int = 2


class Maker:
    """Counts how often it makes something."""

    def __init__(self):
        self.calls = 0

    def made_of(self, kept, raw, work):
        def make():
            self.calls += 1
            return raw * work.times

        return kept.made_of(raw, work, make)


def frozen(values):
    array = np.array(values, np.float32)
    array.flags.writeable = False
    return array


def test_the_same_bits_are_made_once():
    kept, maker = WeightCache(), Maker()
    first = maker.made_of(kept, frozen([1, 2]), Doubled())
    assert maker.made_of(kept, frozen([1, 2]), Doubled()) is first
    assert maker.calls == 1
    assert not first.flags.writeable


def test_views_of_one_array_are_the_same():
    kept, maker, raw = WeightCache(), Maker(), frozen([1, 2, 3, 4])
    first = maker.made_of(kept, raw.reshape(2, 2), Doubled())
    assert maker.made_of(kept, raw.reshape(2, 2), Doubled()) is first
    assert maker.made_of(kept, raw.reshape(2, 2).T, Doubled()).tolist() == [[2, 6], [4, 8]]


def test_other_bits_works_shapes_and_types_are_made_anew():
    kept, maker = WeightCache(), Maker()
    zero = maker.made_of(kept, frozen([0.0]), Doubled())
    assert np.signbit(maker.made_of(kept, frozen([-0.0]), Doubled())) != np.signbit(zero)
    assert maker.made_of(kept, frozen([0.0]), Doubled(3)) is not zero
    assert maker.made_of(kept, frozen([[0.0]]), Doubled()).shape == (1, 1)
    raw = np.zeros(1, np.int32)
    raw.flags.writeable = False
    assert maker.made_of(kept, raw, Doubled()).dtype == np.int32
    assert maker.calls == 5


def test_arrays_that_differ_at_their_ends_are_told_apart():
    kept, maker, raw = WeightCache(), Maker(), np.arange(100, dtype=np.float32)
    first = maker.made_of(kept, frozen(raw), Doubled())
    raw[-1] = 5
    assert maker.made_of(kept, frozen(raw), Doubled())[-1] == 10
    assert maker.made_of(kept, frozen(np.arange(100)), Doubled()) is first


def test_nan_is_itself():
    kept, maker = WeightCache(), Maker()
    assert maker.made_of(kept, frozen([np.nan]), Doubled()) is maker.made_of(kept, frozen([np.nan]), Doubled())


def test_what_may_be_written_to_is_not_kept():
    kept, maker, raw = WeightCache(), Maker(), np.ones(2, np.float32)
    view = raw[:]
    view.flags.writeable = False
    for array in (raw, view, np.frombuffer(bytearray(8), np.float32)):
        maker.made_of(kept, array, Doubled())
    assert kept.bytes == 0
    raw[0] = 5
    assert maker.made_of(kept, view, Doubled()).tolist() == [10, 2]


def test_what_was_not_used_for_longest_goes_first():
    kept, maker = WeightCache(most_bytes=40), Maker()  # 16 bytes each, raw and made
    one, two = (maker.made_of(kept, frozen([n, n]), Doubled(n)) for n in (1, 2))
    assert maker.made_of(kept, frozen([1, 1]), Doubled(1)) is one
    maker.made_of(kept, frozen([3, 3]), Doubled(3))
    assert kept.bytes == 32
    assert maker.made_of(kept, frozen([1, 1]), Doubled(1)) is one
    assert maker.made_of(kept, frozen([2, 2]), Doubled(2)) is not two


def test_nothing_is_kept_of_what_is_too_large():
    kept, maker = WeightCache(most_bytes=0), Maker()
    assert maker.made_of(kept, frozen([1, 2]), Doubled()).tolist() == [2, 4]
    assert kept.bytes == 0


def test_cleared():
    kept, maker = WeightCache(), Maker()
    maker.made_of(kept, frozen([1]), Doubled())
    kept.clear()
    assert kept.bytes == 0
