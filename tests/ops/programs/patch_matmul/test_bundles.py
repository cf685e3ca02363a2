import numpy as np
import pytest

from ops.programs.patch_matmul.gather import bundle_count, bundle_size, dense_bundles


@pytest.mark.parametrize(
    ("groups", "channels", "bundles"),
    [(1, (64, 64), 1), (2, (64, 64), 2), (4, (64, 64), 2), (64, (64, 64), 2), (3, (9, 9), 1), (2, (64, 32), 1)],
)
def test_bundles_of_groups_are_a_tile_wide_where_they_can(groups, channels, bundles):
    assert bundle_count(groups, *channels) == bundles


@pytest.mark.parametrize(
    ("groups", "channels", "size"),
    [(1, (64, 64), 1), (4, (64, 32), 1), (64, (1, 1), 32), (6, (8, 9), 6), (3, (2, 2), 3)],
)
def test_blas_multiplies_as_many_groups_as_are_worth_it(groups, channels, size):
    assert bundle_size(groups, *channels) == size


def test_groups_of_a_bundle_meet_only_themselves():
    weights = np.arange(1, 9, dtype=np.float32).reshape(4, 1, 2, 1)  # four groups of two channels in, one out
    assert dense_bundles(weights, 1) is weights
    first, second = dense_bundles(weights, 2)
    assert first[0].tolist() == [[1, 0], [2, 0], [0, 3], [0, 4]]
    assert second[0].tolist() == [[5, 0], [6, 0], [0, 7], [0, 8]]
