"""ttnn.transformer: the names that ttsim has."""

from ttsim.api.attention import scaled_dot_product_attention
from ttsim.api.attention_decode import (
    paged_scaled_dot_product_attention_decode,
    scaled_dot_product_attention_decode,
)
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
    "paged_scaled_dot_product_attention_decode",
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_decode",
    "split_query_key_value_and_split_heads",
]


__dir__ = public(globals())
