"""softmax of tt_lib.fused_ops, which models of older releases use: five operations of ttnn on the device."""

import ttsim
from ttsim.runtime.tensor import Tensor


def softmax(x: Tensor, stable: bool = False) -> Tensor:
    """exp(x) over its sum along the last of four axes; of x less its greatest number there where `stable` is set.

    Raises the errors of ttnn's max, subtract, exp, sum, reciprocal and multiply.
    """
    numerator = ttsim.exp(ttsim.subtract(x, ttsim.max(x, 3)) if stable else x)
    return ttsim.multiply(numerator, ttsim.reciprocal(ttsim.sum(numerator, 3)))
