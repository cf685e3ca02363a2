"""Where long sums are split, rows cut into parts, and what several pieces share made once."""

from threading import Barrier, Thread
from weakref import ref

import numpy as np
import pytest

from device.host.products import multiplies_in_place
from device.host.threads import PART_ELEMENTS, Shared, depth_of_part, parts_of
from device.matrix_unit.exact import MatrixUnitMode
from device.matrix_unit.fast import product


def parts(depth):
    """All of them, in order."""
    result = []
    while depth:
        result.append(depth_of_part(depth))
        depth -= result[-1]
    return result


@pytest.mark.parametrize(
    ("depth", "wanted"),
    [
        (16, [16]),
        (448, [448]),
        (449, [224, 225]),
        (768, [384, 384]),
        (1536, [448, 448, 320, 320]),
        (2300, [448] * 4 + [256, 252]),
    ],
)
def test_parts_are_full_until_the_rest_is_two_halves(depth, wanted):
    assert parts(depth) == wanted


@pytest.mark.skipif(
    not multiplies_in_place() or np.lib.NumpyVersion(np.__version__) < "2.1.0",
    reason="OpenBLAS's kernels for this processor sum by the place, or numpy comes with older ones",
)
def test_a_sum_depends_on_its_own_products_alone():
    """The same bits in a matrix of two rows and sixteen columns, which BLAS does not copy, as in a larger one."""
    rng = np.random.default_rng(5)
    left, right = (rng.standard_normal(shape, dtype=np.float32) for shape in [(300, 1000), (1000, 80)])
    mode = MatrixUnitMode(fidelity_phases=1, fp32_dest=True, minus_one_quirk=False)
    whole, few = product(left, right, mode=mode), product(left[5:7], right[:, 16:32], mode=mode)
    assert np.array_equal(whole[5:7, 16:32], few)


@pytest.mark.parametrize(
    ("rows", "columns", "lengths"),
    [(5, PART_ELEMENTS // 2, [2, 2, 1]), (3, PART_ELEMENTS + 1, [1, 1, 1]), (7, 1, [7]), (4, 0, [4]), (0, 3, [])],
)
def test_parts_hold_every_row_once(rows, columns, lengths):
    parts = [range(rows)[part] for part in parts_of(rows, columns)]
    assert [len(part) for part in parts] == lengths
    assert [row for part in parts for row in part] == list(range(rows))
    assert list(parts_of(5, 10, 20)) == [slice(0, 2), slice(2, 4), slice(4, 5)]


def test_it_is_made_when_it_is_taken_first_and_gone_with_the_last():
    result = []

    def make():
        result.append(1)
        return np.zeros(3)

    shared = Shared(make, uses=2)
    assert result == []
    first = shared.taken()
    there = ref(first)
    del first
    assert there() is not None
    assert shared.taken() is not None
    assert result == [1]
    assert there() is None


def test_more_uses_than_said_are_refused():
    with pytest.raises(ValueError, match="more often than its uses say"):
        Shared(list, uses=0).taken()


def test_threads_that_come_at_once_share_it():
    begin, taken = Barrier(8), []
    shared = Shared(object, uses=8)

    def take():
        begin.wait()
        taken.append(shared.taken())

    threads = [Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 8
    assert len(set(map(id, taken))) == 1
