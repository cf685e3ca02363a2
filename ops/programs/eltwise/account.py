"""What the element-wise programs tell of themselves."""

from types import MappingProxyType
from typing import Final

from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ops.meaning import Account, Ends
from ops.programs.eltwise.binary import Binary
from ops.programs.eltwise.operations import Activate, AddRow

STAGES: Final = MappingProxyType(
    {
        Stage.READER: "tiles of the operands are read",
        Stage.UNPACK: "tiles are brought to the registers",
        Stage.MATH: "elements are computed",
        Stage.PACK: "results are packed into L1",
        Stage.WRITER: "tiles of the result are written",
        Stage.DRAM: "DRAM delivers or takes the pages of all cores",
    }
)


def eltwise_account(work: AddRow | Activate | Binary, ends: Ends, spec: DeviceSpec) -> Account:
    """An element-wise program."""
    return Account(stages=STAGES, composed_of="reading, unpacking, packing and writing of tiles as in other programs")
