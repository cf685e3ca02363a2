"""ttnn.transformer: what of it a script may ask for."""

from ttsim.api.attention import scaled_dot_product_attention
from ttsim.api.heads import (
    attention_softmax,
    attention_softmax_,
    concatenate_heads,
    split_query_key_value_and_split_heads,
)
from ttsim.runtime.types.signatures import public

__all__ = [
    "attention_softmax",
    "attention_softmax_",
    "concatenate_heads",
    "scaled_dot_product_attention",
    "split_query_key_value_and_split_heads",
]


__dir__ = public(globals())
