"""The table of operations and their models, and the constants of programs and dispatch on a device.

To add an operation, add its class to `MODELED_OPS`, or for a folder of large programs a line to `OP_MODELS`. A model of
cycles with constants also needs a line in `COSTS`: a device file without its table, or with an unknown key, is then
refused.
"""

from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from device.spec import device_spec
from device.spec.device_spec import Costs, DeviceSpec
from device.time.dram import DramCosts
from device.time.energy import AreaCosts, EnergyCosts
from ops.launch import DispatchCosts
from ops.op_model import ModeledOp, OpModel, OpModels, model_of
from ops.programs.attention.model import OP_MODELS as ATTENTION
from ops.programs.bilinear import BilinearUpsample
from ops.programs.conv2d.block_costs import ConvCosts
from ops.programs.conv2d.model import OP_MODELS as CONV2D
from ops.programs.conv3d import Conv3d
from ops.programs.data_movement.broadcast import Broadcast
from ops.programs.data_movement.channels import ChannelsFirst, ChannelsLast
from ops.programs.data_movement.concat import Concatenate
from ops.programs.data_movement.copy import CopyTensor
from ops.programs.data_movement.fold import FoldWindows
from ops.programs.data_movement.gather import Gather
from ops.programs.data_movement.kv_cache import FillCache, UpdateCache
from ops.programs.data_movement.movement import MovementCosts
from ops.programs.data_movement.nonzero import NonZero
from ops.programs.data_movement.pad import FillPad, FillTiles, PadWith
from ops.programs.data_movement.paged_cache import PagedFillCache, PagedUpdateCache
from ops.programs.data_movement.partial import SliceFromShards, SliceToShards
from ops.programs.data_movement.permute import Permute
from ops.programs.data_movement.plus_one import PlusOne
from ops.programs.data_movement.repeat import RepeatTensor
from ops.programs.data_movement.reshape import Reshape, ReshapeOnDevice
from ops.programs.data_movement.roll import RollShards
from ops.programs.data_movement.slice import Cut, PaddedSlice, SliceWrite
from ops.programs.data_movement.split import SplitWidth
from ops.programs.data_movement.upsample import Upsample
from ops.programs.eltwise.bcast import Bcast
from ops.programs.eltwise.dropout import Dropout
from ops.programs.eltwise.op import Activate, AddRow, Binary
from ops.programs.eltwise.powers import IntegerPower
from ops.programs.eltwise.ternary import Ternary
from ops.programs.grid_sample import GridSample
from ops.programs.halo.cycles import HaloCosts
from ops.programs.halo.model import OP_MODELS as HALO
from ops.programs.host_fallback import OP_MODELS as HOST_FALLBACK
from ops.programs.kernel_costs import ComputeCosts, TransferCosts
from ops.programs.matmul.cycles import MatmulCosts
from ops.programs.matmul.model import OP_MODELS as MATMUL
from ops.programs.normalization.model import OP_MODELS as NORMALIZATION
from ops.programs.patch_matmul.model import OP_MODELS as PATCH_MATMUL
from ops.programs.phase_conv2d.model import OP_MODELS as PHASE_CONV2D
from ops.programs.pool import Pool
from ops.programs.rand import EvenlyDistributed
from ops.programs.reduction.models import OP_MODELS as REDUCTION
from ops.programs.rotate import Rotate

# Operations whose own methods are their models.
MODELED_OPS: Final[tuple[type[ModeledOp], ...]] = (
    Activate, AddRow, Bcast, BilinearUpsample, Binary, Broadcast, ChannelsFirst, ChannelsLast, Concatenate, Conv3d,
    CopyTensor, Cut, Dropout, EvenlyDistributed, FillCache, FillPad, FillTiles, FoldWindows, Gather, GridSample,
    IntegerPower, NonZero, PadWith, PaddedSlice, PagedFillCache, PagedUpdateCache, Permute, PlusOne, Pool, RepeatTensor,
    Reshape, ReshapeOnDevice, RollShards, Rotate, SliceFromShards, SliceToShards, SliceWrite, SplitWidth, Ternary,
    UpdateCache, Upsample,
)  # fmt: skip
_MODELS: list[OpModel[Any]] = [
    *map(model_of, MODELED_OPS),
    *ATTENTION,
    *CONV2D,
    *HALO,
    *HOST_FALLBACK,
    *MATMUL,
    *NORMALIZATION,
    *PATCH_MATMUL,
    *PHASE_CONV2D,
    *REDUCTION,
]
OP_MODELS: Final[OpModels] = MappingProxyType({model.op: model for model in _MODELS})


COSTS: tuple[type[Costs], ...] = (
    TransferCosts, ComputeCosts, ConvCosts, HaloCosts, MatmulCosts, MovementCosts, DispatchCosts, EnergyCosts,
    AreaCosts, DramCosts,
)  # fmt: skip


def load_spec(device: str | Path | DeviceSpec) -> DeviceSpec:
    """The spec of a device, with tables that every program's model understands.

    Raises SpecError, as `device.spec.device_spec.load_spec`, and if a spec lacks a table or a figure of a program.
    """
    return device_spec.load_spec(device, COSTS)
