"""ttnn.experimental: the names that ttsim has."""

from ttsim.api.accumulation import fast_reduce_nc, intimg
from ttsim.api.conv3d import Conv3dConfig, conv3d, prepare_conv3d_weights
from ttsim.api.copies import typecast
from ttsim.api.dropout import dropout
from ttsim.api.fused_heads import split_query_key_value_and_split_heads
from ttsim.api.heads import (
    create_qkv_heads,
    create_qkv_heads_from_separate_tensors,
    nlp_concat_heads,
    nlp_create_qkv_heads,
    nlp_create_qkv_heads_segformer,
    nlp_create_qkv_heads_vit,
)
from ttsim.api.heads_decode import nlp_concat_heads_decode, nlp_create_qkv_heads_decode
from ttsim.api.memory_view import view
from ttsim.api.paged_cache import paged_fill_cache, paged_update_cache
from ttsim.api.repeat import broadcast_to
from ttsim.api.rotary import rotary_embedding, rotary_embedding_llama, rotate_half
from ttsim.api.shape import convert_to_chw, convert_to_hwc
from ttsim.runtime.types.signatures import public

__all__ = [
    "Conv3dConfig",
    "broadcast_to",
    "conv3d",
    "convert_to_chw",
    "convert_to_hwc",
    "create_qkv_heads",
    "create_qkv_heads_from_separate_tensors",
    "dropout",
    "fast_reduce_nc",
    "intimg",
    "nlp_concat_heads",
    "nlp_concat_heads_decode",
    "nlp_create_qkv_heads",
    "nlp_create_qkv_heads_decode",
    "nlp_create_qkv_heads_segformer",
    "nlp_create_qkv_heads_vit",
    "paged_fill_cache",
    "paged_update_cache",
    "prepare_conv3d_weights",
    "rotary_embedding",
    "rotary_embedding_llama",
    "rotate_half",
    "split_query_key_value_and_split_heads",
    "typecast",
    "view",
]

__dir__ = public(globals())
