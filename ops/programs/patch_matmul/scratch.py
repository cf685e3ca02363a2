"""What runs of the fast arithmetic share: memory that is used again, and how long a run is."""

from math import prod

import numpy as np

from device.numbers.formats import Array

RUN_BYTES = 2 << 20  # of gathered patches, or of products that are yet to be added up
LEAST_ROWS = 256  # below that, BLAS is not worth its calls


class Scratch:
    """Memory that is used again from run to run: fresh pages cost more than what is done with them."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.float32)

    def array(self, shape: tuple[int, ...]) -> Array:
        """float32 of a shape, contents undefined."""
        size = prod(shape)
        if self._memory.size < size:
            self._memory = np.empty(size, np.float32)
        return self._memory[:size].reshape(shape)

    def matrix(self, view: Array, rows: int) -> Array:
        """A view as a matrix: itself if it lies in memory as one, else copied."""
        if view.flags.c_contiguous:
            return view.reshape(rows, -1)
        copied = self.array(view.shape)
        np.copyto(copied, view)
        return copied.reshape(rows, -1)


def run_rows(numbers: int) -> int:
    """Positions of a run that moves so many numbers for each."""
    return max(LEAST_ROWS, RUN_BYTES // (4 * numbers))
