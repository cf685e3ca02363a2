"""The models of attention's device operations."""

from typing import Any, Final

from ops.op_model import OpModel, model_of
from ops.programs.attention.embedding import Embed
from ops.programs.attention.heads import JoinHeads, SplitHeads
from ops.programs.attention.heads_decode import JoinDecodeHeads, SplitDecodeHeads
from ops.programs.attention.rotary import RotaryEmbedding
from ops.programs.attention.rotary_llama import RotaryLlama
from ops.programs.attention.rotate_half import RotateHalf
from ops.programs.attention.sdpa import ScaledDotProduct
from ops.programs.attention.sdpa_decode import DecodeAttention
from ops.programs.attention.separate_heads import SplitSeparateHeads
from ops.programs.attention.softmax import Softmax

MODELED_OPS: Final = (
    DecodeAttention, Embed, JoinDecodeHeads, JoinHeads, RotaryEmbedding, RotaryLlama, RotateHalf, ScaledDotProduct,
    Softmax, SplitDecodeHeads, SplitHeads, SplitSeparateHeads,
)  # fmt: skip
OP_MODELS: Final[tuple[OpModel[Any], ...]] = tuple(map(model_of, MODELED_OPS))
