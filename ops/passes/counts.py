"""The count pass: the number of actions of each part of the machine in a device operation.

Counts come from figures of the cycle pass: the products of an operation, its transfers along links, the tiles that its
cores unpack and pack, and the cycles of its core groups. They are integers, so sums of operations are exact.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import reduce
from typing import Final

from device.cores import CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.spec.device_spec import DeviceSpec
from device.time.links import spread_transfer
from device.time.stages import OperationCycles, TileWork, Transfer, work_together
from ops.op_model import PRODUCT_FLOPS, Ends
from ops.passes.cycles import TimedOperation

TILE_NUMBERS: Final = TILE**2
# Numbers of an instruction of the matrix unit: 8x16 by 16x16, added to 8x16 of Dst. Source: tenstorrent's
# tt-isa-documentation, MVMUL
STREAMED, STATIONARY, SUMS = 8 * 16, 16 * 16, 8 * 16
INSTRUCTIONS: Final = TILE**3 // (8 * 16 * 16)  # of a tile product, for each fidelity phase


@dataclass(frozen=True, slots=True)
class MultiplyAdds:
    """Multiply-adds of the matrix units on operands of one pair of formats."""

    formats: str  # Of both operands: "bfloat16 x bfloat8_b"
    fidelity_phases: int  # 1 (LoFi) to 4 (HiFi4): passes of each issued multiply-add
    issued: int  # With padding and inserted zeros
    useful: int  # That the result needs


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionCounts:
    """The actions of a device operation, or of several in sequence, on all cores together."""

    multiply_adds: tuple[MultiplyAdds, ...] = ()  # By formats and fidelity phases
    unpacked_bytes: int = 0  # Tiles from L1 to the registers
    packed_bytes: int = 0  # Tiles from the registers to L1
    register_reads: int = 0  # Numbers that matrix units and packers read
    register_writes: int = 0  # Numbers that unpackers and matrix units write
    l1_read_bytes: int = 0  # By unpackers, data movement processors and the networks
    l1_written_bytes: int = 0  # By packers, data movement processors and the networks
    dram_read_bytes: int = 0
    dram_written_bytes: int = 0
    first_network_link_bytes: int = 0  # Bytes times links that they pass, on the network that runs right and down
    second_network_link_bytes: int = 0  # On the network that runs up and left
    busy_core_cycles: int = 0  # Cycles in which the busiest stage of a core works, over all cores
    waiting_core_cycles: int = 0  # The other cycles until a core's work ends
    idle_core_cycles: int = 0  # Cycles of worker cores after the end of their work, or without any
    # Counted as each number of the inputs and the result once, because the model has no tiles: unpacked and packed
    # bytes, registers, and what L1 and networks move besides DRAM are then at least these
    at_least: bool = False

    @property
    def passes(self) -> int:
        """Issued multiply-adds times their fidelity phases."""
        return sum(each.issued * each.fidelity_phases for each in self.multiply_adds)


def counts_of(operation: TimedOperation, taken: OperationCycles, spec: DeviceSpec) -> ActionCounts:
    """The actions of an operation that has a model; ``taken`` are its cycles, whole ones."""
    transfers, work, ends = transfers_of(taken, spec), taken.tile_work, operation.ends
    at_least = taken.transfers is None or work is None
    if work is None:
        work = TileWork() if ends is None else _each_once(ends)
    products, phases = taken.issued_flops // PRODUCT_FLOPS, max(operation.fidelity_phases, 1)
    instructions = products * phases * INSTRUCTIONS
    all_cycles = spec.grid.cores * round(taken.cycles)
    ended, busy = (min(cycles, all_cycles) for cycles in taken.core_cycles)
    links = [sum(each.link_bytes for each in transfers if each.network == number) for number in (0, 1)]
    return ActionCounts(
        multiply_adds=_multiply_adds(operation, taken) if products else (),
        unpacked_bytes=work.unpacked_bytes,
        packed_bytes=work.packed_bytes,
        register_reads=work.packed_tiles * TILE_NUMBERS + instructions * (STREAMED + STATIONARY + SUMS),
        register_writes=work.unpacked_tiles * TILE_NUMBERS + instructions * SUMS,
        l1_read_bytes=work.unpacked_bytes
        + work.copied_bytes
        + sum(each.sent_bytes for each in transfers if not each.from_dram),
        l1_written_bytes=work.packed_bytes
        + work.copied_bytes
        + sum(each.taken_bytes for each in transfers if not each.to_dram),
        dram_read_bytes=taken.dram_read_bytes,
        dram_written_bytes=taken.dram_written_bytes,
        first_network_link_bytes=links[0],
        second_network_link_bytes=links[1],
        busy_core_cycles=busy,
        waiting_core_cycles=ended - busy,
        idle_core_cycles=all_cycles - ended,
        at_least=at_least,
    )


def _multiply_adds(operation: TimedOperation, taken: OperationCycles) -> tuple[MultiplyAdds, ...]:
    ends = operation.ends
    operands = () if ends is None else (ends.read, *ends.others[:1])
    formats = " x ".join(tensor.data_format.name for tensor in operands)
    return (MultiplyAdds(formats, max(operation.fidelity_phases, 1), taken.issued_flops // 2, taken.useful_flops // 2),)


def transfers_of(taken: OperationCycles, spec: DeviceSpec) -> tuple[Transfer, ...]:
    """The transfers over the networks; if the model only knows DRAM bytes, these bytes, spread over all cores."""
    if taken.transfers is not None:
        return taken.transfers
    cores = reduce(CoreRangeSet.merge, (group.cores for group in taken.groups))
    sides = ((taken.dram_read_bytes, False), (taken.dram_written_bytes, True))
    return tuple(spread_transfer(spec, cores, size, in_dram=True, writes=writes) for size, writes in sides if size)


def _each_once(ends: Ends) -> TileWork:
    """Each tile of the inputs unpacked once, and each of the result packed once."""
    written = TileWork(0, 0, *_tiles(ends.written))
    return work_together((*(TileWork(*_tiles(tensor)) for tensor in (ends.read, *ends.others)), written))


def _tiles(tensor: TensorSpec) -> tuple[int, int]:
    """The number of tiles of a tensor, and their bytes."""
    rows, columns = tensor.matrix
    tiles = -(-rows * columns // TILE_NUMBERS)
    return tiles, tiles * tensor.data_format.tile_bytes


def counts_together(parts: Iterable[ActionCounts]) -> ActionCounts:
    """The sum of the actions of operations; multiply-adds of equal formats and fidelity phases are merged."""
    listed = list(parts)
    products: dict[tuple[str, int], tuple[int, int]] = {}
    for each in (product for part in listed for product in part.multiply_adds):
        kind = each.formats, each.fidelity_phases
        issued, useful = products.get(kind, (0, 0))
        products[kind] = issued + each.issued, useful + each.useful
    return ActionCounts(
        multiply_adds=tuple(MultiplyAdds(*kind, *counts) for kind, counts in products.items()),
        **{name: sum(getattr(part, name) for part in listed) for name in SUMMED},
        at_least=any(part.at_least for part in listed),
    )


SUMMED: Final = tuple(field.name for field in fields(ActionCounts) if field.type is int)
