"""A K block is multiplied and packed: sub-block after sub-block, by unpackers, matrix unit and packer together."""

from dataclasses import dataclass

from device.numbers.formats import DataFormat
from device.numbers.integers import div_up
from device.spec.device_spec import DeviceSpec
from device.time.engine import Task, task_of
from device.time.stages import Stage
from ops.programs.actions.compute import pack_tile_cycles, unpack_tile_cycles
from ops.programs.actions.costs import ComputeCosts


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductBlock:
    """What a core multiplies in one K block, in tiles."""

    subblock_height: int  # Rows of a sub-block, what one half of the destination registers holds
    subblock_width: int
    subblocks: float  # Sub-blocks of the block; not whole where a core's last block is a part of one
    depth: float  # K tiles
    first_format: DataFormat
    second_format: DataFormat
    packed_format: DataFormat  # Of what the packer writes
    fidelity_phases: int


def multiply_task(spec: DeviceSpec, block: ProductBlock, *, reload: bool) -> Task:
    """One K block: unpackers and matrix unit together, the packer one sub-block behind.

    Args:
        reload: Partial sums are fetched back first.
    """
    costs, subblocks = spec.costs_of(ComputeCosts), block.subblocks
    tiles = block.subblock_height * block.subblock_width
    products = tiles * spec.compute.phase_cycles * block.fidelity_phases
    fed, waited = _unpack_cycles(spec, block)
    multiply = block.depth * products
    behind = block.depth * (max(waited, fed - products) + costs.matmul_call_cycles)
    fetched = costs.reload_cycles + tiles * costs.reload_tile_cycles if reload else 0.0
    pack, ahead = tiles * pack_tile_cycles(spec, block.packed_format.tile_bytes), multiply + behind
    waited_for = multiply if fed <= products else 0.0  # slower unpackers are what is waited for
    path = {
        Stage.MATH: subblocks * waited_for,
        Stage.UNPACK: costs.block_cycles + subblocks * (ahead - waited_for + fetched),
        Stage.PACK: subblocks * (costs.subblock_cycles + max(0.0, pack - ahead - fetched)) + min(pack, ahead),
    }
    busy = {
        Stage.MATH: subblocks * multiply,
        Stage.UNPACK: subblocks * (block.depth * (fed + costs.matmul_call_cycles) + fetched),
        Stage.PACK: subblocks * pack,
    }
    return task_of(path, busy)


def _unpack_cycles(spec: DeviceSpec, block: ProductBlock) -> tuple[float, float]:
    """Cycles in which the unpackers feed one K tile of a sub-block, and those for which the products wait in any case.

    The operand of the shorter side of the sub-block stays in the matrix unit, some tiles at a time
    (`ComputeSpec.stationary_tiles`), while all tiles of the other operand stream past. With several tiles at a time
    both register banks are taken, so that the next ones are fetched while nothing but the last product is at work; the
    other unpacker brings the first tile that streams past meanwhile.
    """
    together, height, width = spec.compute.stationary_tiles, block.subblock_height, block.subblock_width
    stays, streams = block.first_format, block.second_format
    if height > width:
        stays, streams = streams, stays
    staying = min(height, width)
    stream = unpack_tile_cycles(spec, streams.tile_bytes)
    streamed = div_up(staying, together) * max(height, width) * stream
    groups = staying // together if together > 1 else 0
    fetch = together * unpack_tile_cycles(spec, stays.tile_bytes)
    product = spec.compute.phase_cycles * block.fidelity_phases
    return streamed + groups * max(0.0, fetch - stream), groups * max(0.0, fetch - product)
