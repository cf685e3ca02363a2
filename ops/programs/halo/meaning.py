"""What the work of a halo means."""

from typing import Final

import numpy as np

from device.matrix_unit.packer import unpack
from device.numbers.formats import FLOAT32, Array
from device.time.stages import OperationCycles
from ops.meaning import CyclesReading, Ends, Meaning, values_of_first
from ops.programs.halo.account import halo_account
from ops.programs.halo.cycles import halo_cycles
from ops.programs.halo.plan import HaloWork
from ops.programs.halo.sent import halo_sent


def halo_values(work: HaloWork, sticks: Array) -> Array:
    """The input as the convolution reads it; the frame around it is left to the convolution, which knows the zeros.

    Untilizing passes a float32 through the matrix unit's registers, which cuts it.
    """
    arguments = work.plan.arguments
    if arguments.tiled and arguments.data_format == FLOAT32:
        return unpack(np.ascontiguousarray(sticks), FLOAT32, fp32_dest=work.fp32_dest)
    return sticks


def _cycles(work: HaloWork, ends: Ends, reading: CyclesReading) -> OperationCycles:
    filled_by_stick = work.filled_by_stick
    return halo_cycles(work.plan, reading.spec, filled_by_stick=filled_by_stick, contention=reading.contention)


MEANINGS: Final = (
    Meaning(work=HaloWork, values=values_of_first(halo_values), cycles=_cycles, account=halo_account, sent=halo_sent),
)
