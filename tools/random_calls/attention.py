"""Steps of attention: softmax, heads, embeddings."""

import numpy as np

from tools.random_calls.drafts import Draft, Shadow, Step, is_float, of_tensor
from tools.random_calls.references import rounding


@of_tensor("softmax", accept=lambda x: is_float(x) and bool((np.abs(x.values) < 1e30).all()))
def softmax(draft: Draft, x: Shadow) -> Step:
    """Exponentials divided by their sums."""
    axis = draft.between(-len(x.shape), len(x.shape) - 1)
    draft.call(x, axis).placed(x.shape, tiled=True, probability=0.15)
    shifted = x.values - x.values.max(axis, keepdims=True)
    powers = np.exp(shifted)
    values = powers / powers.sum(axis, keepdims=True)
    # the difference, the exponential, the sum and the quotient are each rounded to 8 bits or more
    bound = values * (0.05 + np.abs(shifted) * 2.0**-7) + 4 * rounding(values, x.dtype) + 1e-6
    return draft.gives(values, bound, dtypes=(x.dtype,), layout="TILE")
