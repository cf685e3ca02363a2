"""How the work on a layer whose images lie shifted is cut: rows of cells, bundles, and runs of positions."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Final

from device.host.products import CALL_SECONDS, UNPACKED, Products
from device.numbers.block_floats import div_up
from ops.programs.patch_matmul.shifted_layer import Bundled

MOST_NUMBERS: Final = 1 << 18  # of a piece: a MiB
PIECES: Final = 8  # that the work is cut into, at least, where there are as many rows and bundles
SHARE: Final = 4  # times as many rows are copied as are copied twice, at least
NUMPY_SECONDS: Final = 1e-9  # for a number that is copied


def numbers_of(one: Bundled, widths: tuple[int, int], rows: int) -> tuple[int, int]:
    """Numbers of a bundle's inputs and outputs, for some rows of cells and so many numbers of a cell of either."""
    cells, planes = one.layer.cells(rows), one.layer.planes
    return cells[0] * planes[0] * widths[0], cells[1] * planes[1] * widths[1]


def bands_of(one: Bundled, widths: tuple[int, int], parts: int, batch: int) -> tuple[list[tuple[int, int]], int]:
    """Bands of rows of cells, alike or nearly so, and the bundles of a piece.

    Many bundles are worked on together, since their channels lie side by side in images; as few rows as that takes.

    Args:
        widths: Numbers of a cell of a bundle of inputs and of outputs.
        parts: Bundles of an image.
    """
    axis = one.layer.axes[0]
    least = min(axis.cells, max(SHARE * axis.reach, 1))
    counts = [n for n in range(1, parts + 1) if parts % n == 0]
    together = max((n for n in counts if n * sum(numbers_of(one, widths, least)) <= MOST_NUMBERS), default=1)
    bands = div_up(together * sum(numbers_of(one, widths, axis.cells)), MOST_NUMBERS)
    bands = min(max(bands, div_up(PIECES, batch * parts // together)), div_up(axis.cells, least))
    begins = [axis.cells * band // bands for band in range(bands + 1)]
    return [(first, end - first) for first, end in pairwise(begins)], together


def runs_of_products(positions: int, widths: tuple[int, int]) -> Sequence[tuple[int, int]]:
    """First positions and those behind the last, of products that BLAS does not copy."""
    runs = div_up(positions * prod(widths), UNPACKED)
    return list(pairwise([*range(0, positions, div_up(positions, runs)), positions]))


def numpy_seconds(products: Products, numbers: tuple[int, int]) -> float:
    """What a bundle of a band takes without compiled loops."""
    return CALL_SECONDS * len(products.calls) + NUMPY_SECONDS * sum(numbers)
