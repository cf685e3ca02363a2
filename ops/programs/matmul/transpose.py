"""The program that swaps the last two axes of tiles, for operands that a matmul program does not turn itself."""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from device.matrix_unit.arithmetic import Arithmetic
from device.memory.layouts import TensorSpec
from device.memory.tiles import TILE
from device.numbers.block_floats import whole_groups
from device.numbers.formats import Array, DataFormat
from device.numbers.integers import div_up
from device.plan import CircularBuffer, Work
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.programs.actions.compute import turn_tile_cycles
from ops.programs.actions.pieces import tile_buffer
from ops.programs.actions.work_cores import page_cores
from ops.programs.matmul.circular_buffers import BUFFERING
from ops.programs.movement.cycles import movement_cycles
from ops.programs.movement.movements import copy_movement


@dataclass(frozen=True, slots=True, kw_only=True)
class Transpose(Work):
    """The last two axes change places."""

    data_format: DataFormat  # Of the tensor, before and after


def transposed(data_format: DataFormat, values: Array, arithmetic: Arithmetic) -> Array:
    """The last two axes swapped, on the way through Dst: block floats share other exponents then.

    Args:
        data_format: Of the tensor, before and after.
        values: [..., rows, columns] in its storage.
        arithmetic: What is rounded where.

    Returns:
        [..., columns, rows] in its storage.
    """
    turned = np.swapaxes(values, -1, -2)
    if not data_format.is_block:
        return turned
    columns = turned.shape[-1]
    packed = arithmetic.pack(whole_groups(turned), data_format, fp32_dest=False)
    return packed[..., :columns].astype(data_format.storage)


def transpose_cycles(read: TensorSpec, written: TensorSpec, spec: DeviceSpec, *, contention: bool) -> OperationCycles:
    """Cycles of a transpose; no measurement: composed of a copy tile by tile and of turning each tile meanwhile.

    Args:
        written: The turned one.
        contention: Whether cores share links and banks.
    """
    copied = movement_cycles(copy_movement(read, written, spec), spec, contention=contention)
    slowest = copied.slowest
    core_tiles = div_up(prod(read.padded_shape) // TILE**2, copied.cores)
    turning = core_tiles * turn_tile_cycles(spec, read.data_format)
    cycles = max(copied.cycles, turning)
    critical = cycles - copied.cycles
    turned = StageCycles(Stage.TILIZE, turning, critical_cycles=critical)
    group = CoreGroupCycles(cores=slowest.cores, cycles=cycles, stages=(*slowest.stages, turned))
    return replace(
        copied,
        cycles=cycles,
        groups=(group,),
        slowest=group,
        working=copied.working | {Stage.TILIZE},
        bound_by=Stage.TILIZE if critical else copied.bound_by,
    )


def transposed_spec(spec: TensorSpec) -> TensorSpec:
    """What a transpose makes of an interleaved tensor, in the same kind of memory."""
    *batches, rows, columns = spec.shape
    return TensorSpec((*batches, columns, rows), spec.data_format, spec.layout, spec.memory_config)


def transpose_buffers(spec: TensorSpec, grid: GridSpec) -> tuple[CircularBuffer, ...]:
    """Two tiles in and two tiles out, on as many cores as there are tiles, column by column."""
    cores = page_cores(prod(spec.padded_shape) // TILE**2, grid)
    return tuple(tile_buffer(name, BUFFERING, spec.data_format, cores) for name in ("in", "out"))
