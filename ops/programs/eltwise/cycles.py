"""The cycles of element-wise programs: tile by tile through buffers of two tiles, or in place on shards.

The reader requests a tile of every operand, waits, and passes them on; the compute threads unpack them to Dst, combine
and pack; the writer waits for each tile, or only for the last tile. Cores start together, so the first tile waits for
the tiles of all other cores; later tiles wait less (`wait_share`). A page that every tile of the result needs is in one
bank, which all cores read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from device.cores import CoreRangeSet, cores_from, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout
from device.numbers.formats import div_up
from device.spec.device_spec import DeviceSpec
from device.time.links import crossing_cycles, spread_link_bytes, spread_transfer
from device.time.network import hands, page_cycles, shared_cycles, shared_read_cycles
from device.time.stages import OperationCycles, Stage, TileWork, Transfer, work_together
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import BUFFERING, in_dram, row_bytes, uniform_cycles
from ops.programs.data_movement.movement import MovementCosts

TILE_ELEMENTS: Final = TILE**2
WORD_BYTES: Final = 4  # that a data movement processor stores at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """The cycles of the compute threads for a tile of the result."""

    unpack_cycles: float
    math_cycles: float
    pack_cycles: float

    @property
    def cycles(self) -> float:
        """Cycles from a tile in its buffer to the result in Dst, while the packer works on the previous tile."""
        return self.unpack_cycles + self.math_cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class EltwiseProgram:
    """An element-wise program."""

    operands: tuple[TensorSpec, ...]  # The tensors that it reads
    result: TensorSpec
    in_place: bool  # Whether it works on the shards of sharded tensors
    compute: Compute
    number_bytes: int = 0  # Of a tile of one number, which a processor fills before the first tile of the result
    # Whether it combines operands: cores work out where their first tiles lie among axes that may be repeated, and wait
    # for every tile that they write; otherwise for the last alone
    combines: bool = True
    allowed: CoreRangeSet | None = None  # Cores that may be used, if not all

    @property
    def read(self) -> tuple[TensorSpec, ...]:
        """The operands that cross the network."""
        return tuple(operand for operand in self.operands if not self.lies(operand))

    def lies(self, tensor: TensorSpec) -> bool:
        """Whether a tensor is accessed in place."""
        return self.in_place and tensor.memory_config.is_sharded()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reads:
    """The mean reads of a core for a tile of the result, for one operand."""

    tensor: TensorSpec
    share: float  # Tiles of the operand for a tile of the result; less than 1 where one is kept for several
    pages: int  # Pages of such a tile: several rows of a row-major tensor
    page_bytes: int
    distinct: int  # Pages of the operand

    @property
    def bytes(self) -> float:
        """Bytes for a tile of the result."""
        return self.share * self.pages * self.page_bytes

    def all_bytes(self, result: TensorSpec, tiles: int) -> int:
        """Bytes for all tiles of the result."""
        if self.tensor.shape == result.shape:  # which may have rows where the operand has tiles
            return _tiles_bytes(self.tensor, tile_shape(self.tensor)[0])
        if self.share == 1 or self.tensor.layout is Layout.TILE:
            return _tiles_bytes(self.tensor, tiles, self.bytes)
        *images, rows, _ = (1, 1, *result.shape)  # a number of each row, or one of each image
        return prod(images) * (rows if (1, *self.tensor.shape)[-2] > 1 else 1) * self.page_bytes


def tile_shape(tensor: TensorSpec) -> tuple[int, int, int]:
    """(tiles, pages of a tile, bytes of a page) of an interleaved tensor; rows count in units of a tile's size."""
    rows, columns = tensor.matrix
    if tensor.layout is Layout.TILE:
        return div_up(rows, TILE) * div_up(columns, TILE), 1, tensor.data_format.tile_bytes
    blocks, row_tiles = div_up(rows, max(1, TILE_ELEMENTS // columns)), div_up(columns, TILE_ELEMENTS)
    return blocks * row_tiles, div_up(rows, blocks), row_bytes(tensor, min(columns, TILE_ELEMENTS))


def _tiles_bytes(tensor: TensorSpec, tiles: int, tile_bytes: float | None = None) -> int:
    """Bytes of ``tiles`` tiles of a tensor; the last unit of a row-major tensor may have fewer rows."""
    own, pages, page_bytes = tile_shape(tensor)
    size = round(tiles * (pages * page_bytes if tile_bytes is None else tile_bytes))
    rows, columns = tensor.matrix
    return size if tensor.layout is Layout.TILE or tiles != own else min(size, rows * row_bytes(tensor, columns))


def result_tiles(program: EltwiseProgram, spec: DeviceSpec) -> tuple[CoreRangeSet, int, int]:
    """(working cores, tiles of the result on the core with most, tiles on all cores)."""
    result, shards = program.result, program.result.memory_config.shard_spec
    tiles = tile_shape(result)[0]
    if program.in_place and shards is not None:
        whole = prod(div_up(side, TILE) for side in shards.shape)
        share = whole if result.layout is Layout.TILE else div_up(prod(shards.shape), TILE_ELEMENTS)
        return shards.grid, share, tiles
    if program.allowed is not None:
        used = min(tiles, program.allowed.num_cores())
        return cores_from(program.allowed.cores()[0], used, program.allowed), div_up(tiles, used), tiles
    used = min(tiles, spec.grid.cores)
    return first_cores(used, spec.grid.cols, spec.grid.rows), div_up(tiles, used), tiles


def eltwise_cycles(program: EltwiseProgram, spec: DeviceSpec) -> OperationCycles:
    """Cycles of the core with the most tiles, and the bytes of all cores together."""
    cores, share, tiles = result_tiles(program, spec)
    reads = [_reads(operand, program.result) for operand in program.read]
    written = 0 if program.lies(program.result) else _tiles_bytes(program.result, tiles)
    read_bytes = [read.all_bytes(program.result, tiles) for read in reads]
    dram_read = sum(size for size, read in zip(read_bytes, reads, strict=True) if in_dram(read.tensor))
    dram_written = written if in_dram(program.result) else 0
    core = _steps(program, reads, spec, cores)
    alone = core.alone
    banks, links = (
        _banks_cycles(reads, tiles, dram_written, cores, spec),
        _links_cycles(program, reads, tiles, cores, spec),
    )
    body = max(core.cycles(share), banks + alone.ends, links)
    compute = program.compute
    busy = {
        Stage.READER: core.located + core.first_read + (share - 1) * core.read if reads else 0.0,
        Stage.UNPACK: share * compute.unpack_cycles,
        Stage.MATH: share * compute.math_cycles,
        Stage.PACK: share * compute.pack_cycles,
        Stage.WRITER: core.fill + share * core.write,
        Stage.NETWORK: links,
        Stage.DRAM: banks,
    }
    return uniform_cycles(
        cores,
        body,
        busy,
        spec,
        dram_read_bytes=dram_read,
        dram_written_bytes=dram_written,
        contention_cycles=body - alone.cycles(share),
        transfers=lambda: _transfers(program, reads, tiles, cores, spec),
        tile_work=lambda: _tile_work(program, tiles),
    )


def _transfers(
    program: EltwiseProgram, reads: Sequence[_Reads], tiles: int, cores: CoreRangeSet, spec: DeviceSpec
) -> tuple[Transfer, ...]:
    """Operands that are read, and a result that is written."""
    sides = [(read.tensor, read.all_bytes(program.result, tiles), False) for read in reads]
    if not program.lies(program.result):
        sides.append((program.result, _tiles_bytes(program.result, tiles), True))
    return tuple(
        spread_transfer(spec, cores, size, in_dram=in_dram(tensor), writes=writes) for tensor, size, writes in sides
    )


def _tile_work(program: EltwiseProgram, tiles: int) -> TileWork:
    """A tile of every operand is unpacked for a tile of the result; broadcast parts pass both once more before."""
    work = [TileWork(packed_tiles=tiles, packed_bytes=tiles * program.result.data_format.tile_bytes)]
    for operand in program.operands:
        data_format = operand.data_format
        work.append(TileWork(tiles, tiles * data_format.tile_bytes))
        if is_repeated(operand, program.result):
            spread = round(tiles * tiles_for(operand, program.result))
            work.append(kernel_costs.converted_work(spread, data_format, data_format))
    return work_together(work)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """The steps of one core."""

    fill: float  # A number in all places of a tile
    located: float
    waited: float  # A read without other cores
    written: float  # A write without other cores
    first_read: float  # The first tile of the result
    read: float  # Each of the others
    compute: Compute
    first_write: float
    write: float
    last_write: float  # Waiting for the last tile where only that one is waited for
    one_processor: bool  # One data movement processor reads and writes in turn

    @property
    def alone(self) -> "_Steps":
        """The same steps without other cores."""
        read, write = self.waited, self.written
        return replace(self, first_read=read, read=read, first_write=write, write=write)

    @property
    def ends(self) -> float:
        """Cycles before and after the time in which the banks can work continuously."""
        return max(self.fill, self.located + self.read) + self.write + self.last_write

    def cycles(self, tiles: int) -> float:
        """Cycles until the last tile is written, limited by the reader or by the later stages.

        While a number is filled into tiles, the reader works ahead until its buffer is full.
        """
        compute, others, reading = self.compute, tiles - 1, self.located + self.first_read
        read, following = self.read, max(self.compute.cycles, self.compute.pack_cycles)
        if self.one_processor:
            read += self.write
        else:
            following = max(following, self.write)
        begun = max(self.fill, reading)
        behind = max(0, tiles - BUFFERING) * read if self.fill > reading else 0.0
        last = max(begun + max(others * following, behind), reading + others * read)
        return last + compute.cycles + compute.pack_cycles + self.first_write + self.last_write


def _steps(program: EltwiseProgram, reads: Sequence[_Reads], spec: DeviceSpec, cores: CoreRangeSet) -> _Steps:
    """The steps of a core while all other cores do the same.

    Tiles in the L1 of all cores are requested in step: the busiest link carries one for every core after the first.
    """
    others = cores.num_cores() - 1
    costs, transfers = spec.costs_of(MovementCosts), spec.costs_of(kernel_costs.TransferCosts)
    fill = program.number_bytes / WORD_BYTES * costs.store_cycles
    located = transfers.locate_cycles if reads and program.combines else 0.0
    asked = sum(read.bytes for read in reads if in_dram(read.tensor))
    waited, queued = _waited_cycles(reads, spec), shared_cycles(spec, others * asked)
    first_read = waited + queued
    met = sum(_met_cycles(read.tensor, read.share * read.pages, spec, cores, writes=False) for read in reads)
    write = last_write = queued_write = met_write = 0.0
    if not program.lies(program.result):
        to_dram, (_, pages, page_bytes) = in_dram(program.result), tile_shape(program.result)
        latency = kernel_costs.write_latency_cycles(spec, in_dram=to_dram)
        found = transfers.shard_page_cycles * program.result.memory_config.is_sharded()
        write = pages * (found + kernel_costs.write_page_cycles(spec, page_bytes)) + latency * program.combines
        last_write = latency * (not program.combines)
        met_write = _met_cycles(program.result, pages, spec, cores, writes=True) * program.combines
        if to_dram:
            asked += pages * page_bytes
            if fill > located + first_read:  # all cores write their number, and then their first tile
                queued_write = shared_cycles(spec, others * pages * page_bytes, costs.dram_write_share)
    return _Steps(
        fill=fill,
        located=located,
        waited=waited,
        written=write,
        first_read=first_read,
        read=waited + costs.wait_share * shared_cycles(spec, others * asked) + met if reads else 0.0,
        compute=program.compute,
        first_write=write + queued_write,
        write=write + met_write,
        last_write=last_write,
        one_processor=hands(spec, 2) == 1,
    )


def _met_cycles(tensor: TensorSpec, pages: float, spec: DeviceSpec, cores: CoreRangeSet, *, writes: bool) -> float:
    """Cycles that pages in the L1 of all cores wait on the busiest link for pages of other cores."""
    if in_dram(tensor) or tensor.memory_config.is_sharded() or cores.num_cores() == 1:
        return 0.0
    page_bytes = tile_shape(tensor)[2]
    passed = crossing_cycles(spec, cores, pages * cores.num_cores(), page_bytes, in_dram=False, writes=writes)
    return max(0.0, passed - pages * page_bytes / spec.noc.link_bytes_per_cycle)


def _reads(operand: TensorSpec, result: TensorSpec) -> _Reads:
    """The reads of an operand for a tile of the result: a tile, or a share of a tile kept for a row or a matrix."""
    distinct, pages, page_bytes = tile_shape(operand)
    return _Reads(
        tensor=operand, share=tiles_for(operand, result), pages=pages, page_bytes=page_bytes, distinct=distinct * pages
    )


def is_repeated(operand: TensorSpec, result: TensorSpec) -> bool:
    """Whether rows, columns or scalars of an operand are expanded to separate tiles."""
    return (1, 1, *operand.shape)[-2:] != (1, 1, *result.shape)[-2:]


def tiles_for(operand: TensorSpec, result: TensorSpec) -> float:
    """Tiles of an operand for a tile of the result: a column is kept for a row of tiles, a number for a matrix."""
    (rows, columns), (high, wide) = ((1, 1, *tensor.shape)[-2:] for tensor in (operand, result))
    if columns > 1 or wide == 1:
        return 1.0
    return 1 / div_up(wide, TILE) / (div_up(high, TILE) if rows == 1 else 1)


def _waited_cycles(reads: Sequence[_Reads], spec: DeviceSpec) -> float:
    """Cycles for the operands of a tile of the result that are requested together, and for kept operands."""

    def waited(read: _Reads) -> float:
        return kernel_costs.waited_read_cycles(spec, read.page_bytes, in_dram=in_dram(read.tensor))

    together, kept = ([read for read in reads if (read.share < 1) is seldom] for seldom in (False, True))
    issued = sum(read.pages * _issue_cycles(read, spec) for read in together)
    seldom = sum(read.share * (waited(read) + _issue_cycles(read, spec)) for read in kept)
    return max(map(waited, together), default=0.0) + issued + seldom


def _issue_cycles(read: _Reads, spec: DeviceSpec) -> float:
    """Cycles until a page of an operand is requested."""
    found = spec.costs_of(kernel_costs.TransferCosts).shard_page_cycles * read.tensor.memory_config.is_sharded()
    return found + kernel_costs.read_page_cycles(spec, read.page_bytes)


def _links_cycles(
    program: EltwiseProgram, reads: Sequence[_Reads], tiles: int, cores: CoreRangeSet, spec: DeviceSpec
) -> float:
    """Cycles of the busiest link of either network."""

    def link_bytes(tensor: TensorSpec, moved: float, *, writes: bool) -> float:
        return spread_link_bytes(spec, cores, moved, in_dram=in_dram(tensor), writes=writes)

    passed = sum(link_bytes(read.tensor, tiles * read.bytes, writes=False) for read in reads)
    if not program.lies(program.result):
        written = tiles * prod(tile_shape(program.result)[1:])
        passed = max(passed, link_bytes(program.result, written, writes=True))
    return passed / spec.noc.link_bytes_per_cycle


def _banks_cycles(reads: Sequence[_Reads], tiles: int, written: float, cores: CoreRangeSet, spec: DeviceSpec) -> float:
    """Cycles in which the banks deliver and take all bytes, or the busiest bank a page that several cores ask for."""
    total, share = shared_cycles(spec, written), spec.costs_of(kernel_costs.StickCosts).page_rate_share
    for read in reads:
        if in_dram(read.tensor):
            delivered = shared_read_cycles(spec, tiles * read.bytes, read.page_bytes)
            if read.distinct < cores.num_cores():
                asked = tiles * read.bytes * div_up(read.distinct, spec.dram.banks) / read.distinct
                delivered = max(delivered, page_cycles(spec, asked, share))
            total += delivered
    return total
