"""The models of normalizing operations."""

from typing import Any, Final

from ops.op_model import OpModel, model_of
from ops.programs.normalization.layer_norm import LayerNorm

OP_MODELS: Final[list[OpModel[Any]]] = [model_of(LayerNorm)]
