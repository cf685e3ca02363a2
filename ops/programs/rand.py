"""What a program computes that makes evenly distributed numbers, its buffer, and what it takes.

Cycles are composed: pages are written as in measured movements. The numbers are not those of a device, whose generators
start anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.numbers.formats import Array, DataFormat, quantize
from device.plan import CircularBuffer, DeviceOp
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.op_model import CyclesContext, Description, Ends, OpModel, ValuesContext
from ops.programs.buffer_shapes import BUFFERING, tile_buffer
from ops.programs.data_movement.movement import Access, Movement, got_at, pages_of
from ops.programs.data_movement.movement_cycles import describe_movement, movement_cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class EvenlyDistributed(DeviceOp):
    """Numbers from ``low`` up to ``high``, which is left out."""

    shape: tuple[int, ...]
    low: float
    high: float
    seed: int  # Equal seeds give equal numbers
    data_format: DataFormat


def rand_buffers(made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Two tiles on as many cores as there are, column by column; source: tt-metal 0.81.1 (rand)."""
    used = min(pages_of(made, 1).all_pages, spec.grid.cores)
    cores = first_cores(used, spec.grid.cols, spec.grid.rows, row_wise=False)
    return (tile_buffer("tiles", BUFFERING, made.data_format, cores),)


def evenly_distributed(work: EvenlyDistributed, inputs: Sequence[Array | None], reading: ValuesContext) -> Array:
    """The result in storage of its format."""
    return quantize(np.random.default_rng(work.seed).uniform(work.low, work.high, work.shape), work.data_format)


def _movement(made: TensorSpec, spec: DeviceSpec) -> Movement:
    (tiles,) = rand_buffers(made, spec)
    pages = pages_of(made, tiles.cores.num_cores())
    return Movement(cores=tiles.cores, writes=got_at(pages, Access.WAIT), blocks=pages.core_pages)


def _cycles(work: EvenlyDistributed, ends: Ends, reading: CyclesContext) -> OperationCycles:
    return movement_cycles(_movement(ends.written, reading.spec), reading.spec, contention=reading.contention)


def _describe(work: EvenlyDistributed, ends: Ends, spec: DeviceSpec) -> Description:
    told = describe_movement(partial(_movement, ends.written, spec))
    return replace(told, composed_of="pages that are written as in other movements; making the numbers is left out")


OP_MODELS: Final = (OpModel(work=EvenlyDistributed, values=evenly_distributed, cycles=_cycles, account=_describe),)
