"""What the works of the element-wise operations mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType
from device.numbers.block_floats import div_up
from device.numbers.formats import FLOAT32, Array
from device.numbers.vector_unit import uncompared
from device.spec.device_spec import DeviceSpec
from device.time.network import hands, shared_cycles
from device.time.stages import OperationCycles, Stage
from ops.op_model import CyclesContext, Description, Detail, Ends, OpModel, ValuesContext, given, row, uncompared_fact
from ops.programs.buffer_shapes import alike_cycles, pipelined_cycles
from ops.programs.eltwise.op import Activate, AddRow, Binary, activated, added_row, combined
from ops.programs.kernel_costs import (
    ComputeCosts,
    pack_tile_cycles,
    read_page_cycles,
    unpack_tile_cycles,
    waited_read_cycles,
    write_page_cycles,
)

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


def describe_eltwise(work: AddRow | Activate | Binary, ends: Ends, spec: DeviceSpec) -> Description:
    """An element-wise program."""
    return Description(
        facts=partial(_facts, work),
        stages=STAGES,
        composed_of="reading, unpacking, packing and writing of tiles as in other programs",
    )


def _facts(work: AddRow | Activate | Binary) -> tuple[Detail, ...]:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What each tile takes on one core, in cycles; 0 for a part that has nothing to do, since shards lie in place."""

    read: float  # Until all operands of a tile are there
    unpack: float  # They go into the matrix unit's registers
    math: float  # They become one tile
    pack: float  # It goes back to L1
    write: float  # It goes to its bank

    def parts(self, spec: DeviceSpec) -> tuple[float, ...]:
        """What works side by side: packing is one tile behind; one data movement processor reads and writes in turn."""
        moved = (self.read, self.write) if hands(spec, 2) > 1 else (self.read + self.write,)
        return *moved, self.unpack + self.math, self.pack


def add_row_cycles(
    work: AddRow, read: TensorSpec, written: TensorSpec, spec: DeviceSpec, *, contention: bool = True
) -> OperationCycles:
    """Cycles of a program that adds a row to every row of a matrix.

    Args:
        contention: Whether the cores share the bandwidth of DRAM.
    """
    row, matrix = work.row_format.tile_bytes, work.data_format.tile_bytes
    spread = unpack_tile_cycles(spec, row) + pack_tile_cycles(spec, row)  # the row is put into every row of a tile
    steps = Steps(
        read=_wait_cycles(read, spec, matrix, row),
        unpack=unpack_tile_cycles(spec, matrix) + unpack_tile_cycles(spec, row) + spread,
        math=spec.costs_of(ComputeCosts).add_tile_cycles,
        pack=pack_tile_cycles(spec, matrix),
        write=_write_cycles(written, spec),
    )
    return _operation_cycles(steps, read, written, matrix + row, spec, contention=contention)


def activation_cycles(
    work: Activate, read: TensorSpec, written: TensorSpec, spec: DeviceSpec, *, contention: bool = True
) -> OperationCycles:
    """Cycles of a program of a function of every element; arguments as of `add_row_cycles`."""
    tile_bytes = work.data_format.tile_bytes
    steps = Steps(
        read=_wait_cycles(read, spec, tile_bytes),
        unpack=unpack_tile_cycles(spec, tile_bytes),
        math=spec.costs_of(ComputeCosts).vector_tile_cycles,
        pack=pack_tile_cycles(spec, work.made_format.tile_bytes),
        write=_write_cycles(written, spec),
    )
    return _operation_cycles(steps, read, written, tile_bytes, spec, contention=contention)


def binary_cycles(
    work: Binary, read: TensorSpec, written: TensorSpec, spec: DeviceSpec, *, contention: bool = True
) -> OperationCycles:
    """Cycles of a program that combines two tensors, or a tensor and a number; arguments as of `add_row_cycles`."""
    left = work.left_format.tile_bytes
    right = 0 if work.right_format is None else work.right_format.tile_bytes
    costs = spec.costs_of(ComputeCosts)
    functions = len(work.activations) + work.by_vector_unit
    steps = Steps(
        read=_wait_cycles(read, spec, left, right),
        unpack=unpack_tile_cycles(spec, left) + (unpack_tile_cycles(spec, right) if right else 0.0),
        math=functions * costs.vector_tile_cycles + (0.0 if work.by_vector_unit else costs.add_tile_cycles),
        pack=pack_tile_cycles(spec, work.data_format.tile_bytes),
        write=_write_cycles(written, spec),
    )
    return _operation_cycles(steps, read, written, left + right, spec, contention=contention)


def _wait_cycles(tensor: TensorSpec, spec: DeviceSpec, tile_bytes: int, second_bytes: int = 0) -> float:
    """Until a tile is there, and one of a second tensor asked for behind it: nothing if they lie in the core's shards.

    Args:
        second_bytes: Of the second tensor's tiles; 0 if there is none.
    """
    if tensor.memory_config.is_sharded():
        return 0.0
    waited = waited_read_cycles(spec, tile_bytes, in_dram=tensor.memory_config.buffer_type is BufferType.DRAM)
    return waited + (read_page_cycles(spec, second_bytes) if second_bytes else 0.0)


def _write_cycles(tensor: TensorSpec, spec: DeviceSpec) -> float:
    """Between two tiles that are written."""
    if tensor.memory_config.is_sharded():
        return 0.0
    return write_page_cycles(spec, tensor.data_format.tile_bytes)


def _operation_cycles(
    steps: Steps, read: TensorSpec, written: TensorSpec, tile_bytes: int, spec: DeviceSpec, *, contention: bool
) -> OperationCycles:
    """All tiles of the core that has most of them, and of all cores together.

    Args:
        steps: Of each tile.
        read: The first tensor that is read.
        contention: Whether the cores share the bandwidth of DRAM.
    """
    step_bytes = tile_bytes if steps.read else 0
    rows, columns = written.matrix
    tiles = div_up(rows, TILE) * div_up(columns, TILE)
    shards = read.memory_config.shard_spec
    cores = first_cores(min(tiles, spec.grid.cores), spec.grid.cols, spec.grid.rows) if shards is None else shards.grid
    share = div_up(tiles, cores.num_cores())
    if shards is not None:
        share = div_up(shards.shape[0], TILE) * div_up(shards.shape[1], TILE)
    alone = pipelined_cycles(steps.parts(spec), share)
    in_dram = [tensor.memory_config.buffer_type is BufferType.DRAM for tensor in (read, written)]
    read_bytes = tiles * step_bytes if in_dram[0] else 0
    written_bytes = tiles * written.data_format.tile_bytes if in_dram[1] else 0
    shared = shared_cycles(spec, read_bytes + written_bytes) if contention else 0.0
    body = max(alone, shared)
    busy = {
        Stage.READER: share * steps.read,
        Stage.UNPACK: share * steps.unpack,
        Stage.MATH: share * steps.math,
        Stage.PACK: share * steps.pack,
        Stage.WRITER: share * steps.write,
        Stage.DRAM: shared,
    }
    return alike_cycles(
        cores,
        body,
        busy,
        spec,
        dram_read_bytes=read_bytes,
        dram_written_bytes=written_bytes,
        network_bytes=tiles * (step_bytes + (written.data_format.tile_bytes if steps.write else 0)),
        contention_cycles=body - alone,
    )


def _sum(work: AddRow, inputs: Sequence[Array | None], reading: ValuesContext) -> Array:
    matrix, bias = map(given, inputs)
    return added_row(work, matrix, row(bias), reading.arithmetic)


def _activated(work: Activate, inputs: Sequence[Array | None], reading: ValuesContext) -> Array:
    return activated(work, given(inputs[0]), reading.arithmetic, reciprocal_table=reading.spec.compute.reciprocal_table)


def _sum_cycles(work: AddRow, ends: Ends, reading: CyclesContext) -> OperationCycles:
    return add_row_cycles(work, ends.read, ends.written, reading.spec, contention=reading.contention)


def _activation_cycles(work: Activate, ends: Ends, reading: CyclesContext) -> OperationCycles:
    return activation_cycles(work, ends.read, ends.written, reading.spec, contention=reading.contention)


def _combined(work: Binary, inputs: Sequence[Array | None], reading: ValuesContext) -> Array:
    right = given(inputs[1]) if work.right_format is not None else None
    return combined(work, given(inputs[0]), right, reading.arithmetic, reading.spec.compute)


def _combined_cycles(work: Binary, ends: Ends, reading: CyclesContext) -> OperationCycles:
    return binary_cycles(work, ends.read, ends.written, reading.spec, contention=reading.contention)


OP_MODELS: Final = (
    OpModel(work=AddRow, values=_sum, cycles=_sum_cycles, account=describe_eltwise),
    OpModel(work=Activate, values=_activated, cycles=_activation_cycles, account=describe_eltwise),
    OpModel(work=Binary, values=_combined, cycles=_combined_cycles, account=describe_eltwise),
)
