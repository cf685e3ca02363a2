"""What the work of an upsample means.

Cycles are composed: sticks are gathered, or pages waited for and written, as in measured movements.
"""

from dataclasses import replace
from functools import partial
from typing import Final

from device.memory.layouts import TensorSpec
from device.numbers.integers import div_up
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.meaning import Account, CyclesReading, Ends, Meaning, values_of_first
from ops.programs.actions.work_cores import page_cores
from ops.programs.movement.account import movement_account
from ops.programs.movement.cycles import movement_cycles
from ops.programs.movement.ends import got_at, pages_of
from ops.programs.movement.movement import Access, Movement
from ops.programs.movement.movements import copy_movement, relayout_movement
from ops.programs.movement.work import Conversion
from ops.programs.upsample.gathering import PROCESSORS
from ops.programs.upsample.work import Upsample, UpsampleProgram, upsampled


def upsample_movement(work: Upsample, source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> Movement:
    """The pages that one program reads and writes.

    Args:
        source: What is read.
        made: What is written.
    """
    match work.program:
        case UpsampleProgram.STICKS:
            return copy_movement(source, made, spec)
        case UpsampleProgram.TILES:
            return relayout_movement(Conversion.UNTILIZE, source, made, spec)
        case UpsampleProgram.SHARDS:
            shards = made.shards
            gathered = pages_of(made, shards.num_cores())
            gathered = replace(gathered, core_pages=div_up(gathered.core_pages, PROCESSORS))
            return Movement(cores=shards.grid, reads=got_at(gathered, Access.STICKS))
        case UpsampleProgram.PAGES:
            pages = pages_of(made, 1)
            cores = page_cores(pages.all_pages, spec.grid)
            pages = replace(pages, core_pages=div_up(pages.all_pages, cores.num_cores()), access=Access.WAIT)
            reads = replace(pages, in_dram=pages_of(source, 1).in_dram)
            return Movement(cores=cores, reads=reads, writes=pages, blocks=pages.core_pages)


def _cycles(work: Upsample, ends: Ends, reading: CyclesReading) -> OperationCycles:
    movement = upsample_movement(work, ends.read, ends.written, reading.spec)
    return movement_cycles(movement, reading.spec, contention=reading.contention)


def _account(work: Upsample, ends: Ends, spec: DeviceSpec) -> Account:
    return movement_account(partial(upsample_movement, work, ends.read, ends.written, spec))


MEANINGS: Final = (Meaning(work=Upsample, values=values_of_first(upsampled), cycles=_cycles, account=_account),)
