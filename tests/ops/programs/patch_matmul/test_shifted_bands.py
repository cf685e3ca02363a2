"""How the work on shifted images is cut."""

import pytest

from device.host.products import UNPACKED
from ops.programs.patch_matmul.shifted_layer import (
    MOST_NUMBERS,
    PIECES,
    bands_of,
    bundled,
    numbers_of,
    runs_of_products,
)
from tests.ops.programs.patch_matmul.padded_axes import transposed

UP = (transposed(64, 4, 2, 1), transposed(64, 4, 2, 1))


@pytest.mark.parametrize(("batch", "groups", "channels"), [(1, 32, (8, 8)), (8, 1, (64, 3)), (1, 1, (64, 3))])
def test_bands_hold_every_row_once_and_pieces_stay_in_the_cache(batch, groups, channels):
    one = bundled(UP, groups, channels, summed=False)
    widths, parts = one.widths(*channels), groups // one.size
    bands, together = bands_of(one, widths, parts, batch)
    assert [row for first, rows in bands for row in range(first, first + rows)] == list(range(65))
    assert max(rows for _, rows in bands) - min(rows for _, rows in bands) <= 1
    assert min(rows for _, rows in bands) >= 4 * one.layer.axes[0].reach
    assert parts % together == 0
    assert together * sum(numbers_of(one, widths, bands[0][1])) <= MOST_NUMBERS
    assert batch * parts // together * len(bands) >= PIECES


def test_runs_of_products_are_what_blas_does_not_copy():
    assert runs_of_products(1000, (10, 10)) == [(0, 1000)]
    assert runs_of_products(1000, (64, 64)) == [(0, 200), (200, 400), (400, 600), (600, 800), (800, 1000)]
    assert UNPACKED == 1_000_000
