"""The error of an output against float64."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

CHUNK = 1 << 20  # elements per step, so that no whole output is copied to float64


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """The error of an output against the exact output."""

    pcc: float  # Pearson correlation of all elements; 1 for equal constants
    max_abs_error: float  # Largest absolute difference
    rms_error: float  # Root of the mean squared difference
    exact_std: float  # Standard deviation of the exact output, to measure the errors by


def measure(output: npt.NDArray[Any], exact: npt.NDArray[Any]) -> Accuracy:
    """Compares an output with the exact output by element; raises ValueError if the sizes differ or are 0."""
    if output.size != exact.size or not output.size:
        raise ValueError(f"accuracy compares arrays of equal, positive size, not {output.shape} and {exact.shape}")
    both = [values.reshape(-1) for values in (output, exact)]
    means, largest, sums = [np.mean(values, dtype=np.float64) for values in both], 0.0, np.zeros(4)
    for start in range(0, output.size, CHUNK):
        a, b = (values[start : start + CHUNK].astype(np.float64) for values in both)
        error = a - b
        largest = float(np.maximum(largest, np.max(np.abs(error))))  # a NaN stays a NaN
        a, b = a - means[0], b - means[1]
        sums += (error @ error, a @ a, b @ b, a @ b)
    squared_error, squares_have, squares_want, products = sums.tolist()
    norm = float(np.sqrt(squares_have * squares_want))
    return Accuracy(
        pcc=products / norm if norm else float(squared_error == 0.0),
        max_abs_error=largest,
        rms_error=float(np.sqrt(squared_error / output.size)),
        exact_std=float(np.sqrt(squares_want / output.size)),
    )
