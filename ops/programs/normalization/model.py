"""The models of normalizing operations."""

from typing import Any, Final

from ops.op_model import OpModel, model_of
from ops.programs.normalization.batch_norm import BatchNorm, RunningStatistics
from ops.programs.normalization.group_norm import GroupNorm
from ops.programs.normalization.layer_norm import LayerNorm

OP_MODELS: Final[list[OpModel[Any]]] = [
    model_of(BatchNorm), model_of(GroupNorm), model_of(LayerNorm), model_of(RunningStatistics)
]  # fmt: skip
