"""softmax of tt_lib.fused_ops, which older models use, composed of operations of ttnn."""

import ttsim
from ttsim.runtime.tensor import Tensor


def softmax(x: Tensor, stable: bool = False) -> Tensor:
    """Softmax along the last of four axes; with `stable`, the maximum along the axis is subtracted first.

    Raises the errors of ttnn's max, subtract, exp, sum, reciprocal and multiply.
    """
    numerator = ttsim.exp(ttsim.subtract(x, ttsim.max(x, 3)) if stable else x)
    return ttsim.multiply(numerator, ttsim.reciprocal(ttsim.sum(numerator, 3)))
