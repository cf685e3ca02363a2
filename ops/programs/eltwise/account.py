"""What the element-wise programs tell of themselves."""

from functools import partial
from types import MappingProxyType
from typing import Final

from device.numbers.compared import uncompared
from device.numbers.formats import FLOAT32
from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ops.meaning import Account, Ends, Fact, uncompared_fact
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
    return Account(
        facts=partial(_facts, work),
        stages=STAGES,
        composed_of="reading, unpacking, packing and writing of tiles as in other programs",
    )


def _facts(work: AddRow | Activate | Binary) -> tuple[Fact, ...]:
    """What of its numbers was never compared."""
    if isinstance(work, Binary):
        functions = [name for name, _ in (*work.left_activations, *work.right_activations, *work.activations)]
        data_format, fused_into = work.left_format, work.operation.value
    elif isinstance(work, Activate):
        functions, data_format, fused_into = [work.name], work.data_format, ""
    else:
        return ()
    if not data_format.is_float:
        return (uncompared_fact("integers never compared with the real kernel's"),)
    text = uncompared(functions, fp32_dest=data_format == FLOAT32, fused_into=fused_into)
    return () if text is None else (uncompared_fact(text),)
