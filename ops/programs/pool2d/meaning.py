"""What the work of a pool program means."""

from types import MappingProxyType
from typing import Final

from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ops.meaning import Account, Ends, Meaning
from ops.programs.pool2d.cycles import pool_cycles
from ops.programs.pool2d.work import MaxPool, largest

STAGES: Final = MappingProxyType(
    {
        Stage.READER: "one reader gathers every other window",
        Stage.SECOND_READER: "the other reader gathers the others",
        Stage.MATH: "windows are tilized and reduced",
        Stage.PACK: "results are packed into L1",
    }
)


def _account(work: MaxPool, ends: Ends, spec: DeviceSpec) -> Account:
    return Account(
        stages=STAGES, composed_of="gathering, tilizing, reducing and packing of windows as in other programs"
    )


MEANINGS: Final = (Meaning(work=MaxPool, values=largest, cycles=pool_cycles, account=_account),)
