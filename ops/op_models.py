"""The one table of programs: what every work means, and what programs and their dispatch cost on a device.

A new folder of programs adds its line to `OP_MODELS`; if its model of cycles has constants, also one to `COSTS`: then a
device file without their table, or with a key that they do not know, is refused when it is opened.
"""

from pathlib import Path
from types import MappingProxyType
from typing import Final

from device.spec import device_spec
from device.spec.device_spec import Costs, DeviceSpec
from ops.launch import DispatchCosts
from ops.op_model import Meanings
from ops.programs.conv2d.block_costs import ConvCosts
from ops.programs.conv2d.model import OP_MODELS as CONV2D
from ops.programs.data_movement.channels import OP_MODELS as CHANNELS
from ops.programs.data_movement.concat import OP_MODELS as CONCAT
from ops.programs.data_movement.models import OP_MODELS as MOVEMENT
from ops.programs.data_movement.movement_cycles import MovementCosts
from ops.programs.data_movement.pad import FILL_MODELS as FILLING, OP_MODELS as PADDING
from ops.programs.data_movement.permute import OP_MODELS as AXES
from ops.programs.data_movement.slice import OP_MODELS as SLICING
from ops.programs.data_movement.tilize import OP_MODELS as TILING
from ops.programs.data_movement.upsample import OP_MODELS as UPSAMPLE
from ops.programs.eltwise.model import OP_MODELS as ELTWISE
from ops.programs.halo.cycles import HaloCosts
from ops.programs.halo.model import OP_MODELS as HALO
from ops.programs.kernel_costs import ComputeCosts, TransferCosts
from ops.programs.matmul.cycles import MatmulCosts
from ops.programs.matmul.model import OP_MODELS as MATMUL
from ops.programs.patch_matmul.model import OP_MODELS as PATCH_MATMUL
from ops.programs.phase_conv2d.model import OP_MODELS as PHASE_CONV2D
from ops.programs.pool import OP_MODELS as POOL2D
from ops.programs.rand import OP_MODELS as RAND

OP_MODELS: Final[Meanings] = MappingProxyType(
    {
        meaning.work: meaning
        for meaning in (
            *AXES,
            *CHANNELS,
            *CONCAT,
            *CONV2D,
            *ELTWISE,
            *FILLING,
            *HALO,
            *MATMUL,
            *MOVEMENT,
            *PADDING,
            *PATCH_MATMUL,
            *PHASE_CONV2D,
            *POOL2D,
            *RAND,
            *SLICING,
            *TILING,
            *UPSAMPLE,
        )
    }
)


COSTS: tuple[type[Costs], ...] = (
    TransferCosts,
    ComputeCosts,
    ConvCosts,
    HaloCosts,
    MatmulCosts,
    MovementCosts,
    DispatchCosts,
)


def load_spec(device: str | Path | DeviceSpec) -> DeviceSpec:
    """The spec of a device, with tables that every program's model understands.

    Args:
        device: A name of the catalog, the path of a TOML file, or a spec, as `device.spec.device_spec.load_spec` says.

    Raises:
        SpecError: The name is unknown, the file cannot be read, or what it says is no spec; a spec lacks a table or a
            figure of a program.
    """
    return device_spec.load_spec(device, COSTS)
