"""The circular buffers of the softmax programs. Rules: ttnn 0.81.1 (normalization/softmax) and recorded plans."""

from dataclasses import dataclass

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.numbers.formats import BFLOAT16, FLOAT32, DataFormat, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import BUFFERING, tile_buffer

BLOCKS = (1, 2, 3, 4, 6, 8)  # tiles that are computed at a time
LARGE_TILES = 80  # of rows that do not fit L1
L1_SHARE = 0.9  # of L1 that the buffers of whole rows may take, by the library's estimate
SINGLE_TILES = 5  # by the same estimate
SMALL_BYTES = 512 * 1024  # of L1 that whole rows or columns of the general programs may take


@dataclass(frozen=True, slots=True)
class SoftmaxBlocks:
    """The program config of shards, in tiles."""

    grid: tuple[int, int]  # Columns and rows of cores
    subblock_width: int
    block_height: int
    block_width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxFormats:
    """Formats between the steps."""

    source: DataFormat
    exps: DataFormat
    fp32_dest: bool
    stable: bool

    @property
    def sums(self) -> DataFormat:
        """Of sums and their reciprocals."""
        return FLOAT32 if self.fp32_dest else BFLOAT16

    @property
    def scaler(self) -> DataFormat:
        """Of the tile of ones that maxima are reduced with."""
        return FLOAT32 if self.source == FLOAT32 else BFLOAT16


Tiles = tuple[tuple[str, int, DataFormat], ...]


def core_rectangle(grid: tuple[int, int]) -> CoreRangeSet:
    """The cores of a program config's grid, columns and rows."""
    return CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(grid[0] - 1, grid[1] - 1))])


def dst_tiles(*, fp32_dest: bool) -> int:
    """Number of tiles that kernels of attention have in Dst at a time."""
    return 4 if fp32_dest else 8


def along_a_row(
    formats: SoftmaxFormats,
    wide: int,
    cores: CoreRangeSet,
    spec: DeviceSpec,
    *,
    padded: bool,
    mask: TensorSpec | None,
) -> tuple[CircularBuffer, ...]:
    """Buffers of whole rows of tiles, or of a fixed part where a row does not fit L1."""
    block = _block(wide, dst_tiles(fp32_dest=formats.fp32_dest))
    row = round_up(wide, block)
    shifted = formats.stable and (padded or mask is not None)  # x is in a buffer before its maximum is known
    ahead = row if formats.stable and not shifted else BUFFERING * block
    source, exps, sums = formats.source, formats.exps, formats.sums
    mask_format = BFLOAT16 if mask is None else mask.data_format
    needed = ahead * source.tile_bytes + row * exps.tile_bytes + BUFFERING * block * source.tile_bytes
    needed += (SINGLE_TILES + row * shifted) * exps.tile_bytes
    if mask is not None:
        needed += (row + block) * exps.tile_bytes + BFLOAT16.tile_bytes + row * mask_format.tile_bytes
    large = needed > spec.l1.bytes * L1_SHARE
    scaled, masks = row + block, row
    if large:
        ahead = row = scaled = masks = LARGE_TILES // block * block
    tiles: list[tuple[str, int, DataFormat]] = [
        ("input", ahead, source), ("output", BUFFERING * block, source), ("inverse_sums", 1, sums),
        *([("sums", 1, sums), ("largest_so_far", 1, exps), ("inverses", 1, sums)] if large else []),
        ("scaler_of_maxima", 1, formats.scaler), ("scaler_of_sums", 1, sums), ("exponentials", row, exps),
        *([("scaled", scaled, exps), ("scale", 1, BFLOAT16), ("mask", masks, mask_format)] if mask is not None else []),
        ("padding", 1, BFLOAT16),
        *([("largest", 1, exps)] if formats.stable else []),
        *([("shifted", row, exps)] if shifted or large else []),
    ]  # fmt: skip
    return _buffers(tuple(tiles), cores)


def _block(wide: int, most: int) -> int:
    """Tiles of a row computed at a time: a divisor of the row if it needs no more blocks, else what fits Dst."""
    divisors = [block for block in BLOCKS if block <= most and wide % block == 0]
    return next((block for block in divisors if wide // block == div_up(wide, most)), most)


def along_an_axis(
    formats: SoftmaxFormats, length: int, axis: int, cores: CoreRangeSet, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Buffers of the general programs: along rows or columns of tiles, whole ones if they are short, or other axes."""
    source, between = formats.source, FLOAT32 if formats.fp32_dest else formats.source
    if axis < -2:
        outer: Tiles = (
            ("input", 2, source), ("output", 2, source), ("exponentials", 1, between), ("inverses", 1, between),
            ("sums", 2, between), ("largest", 1, source), ("step", 1, between),
        )  # fmt: skip
        return _buffers(outer, cores)
    ones = formats.scaler
    if between.is_block:
        between = BFLOAT16

    def line(tiles: int, *, whole: bool) -> Tiles:
        return (
            ("input", tiles, source), ("padding", 1, ones), ("scaler_of_maxima", 1, ones), ("scaler_of_sums", 1, ones),
            ("output", tiles, source), ("exponentials", tiles, between), ("sums", 1, between),
            ("largest", 1, between), ("shifted", tiles if whole else 1, between), ("step", 1, between),
        )  # fmt: skip

    # The library counts two tiles of padding and scalers, in the format of the source
    expected_bytes = (2 * length + 2) * source.tile_bytes + (2 * length + 3) * between.tile_bytes
    whole = spec.l1.base_bytes + expected_bytes <= SMALL_BYTES
    return _buffers(line(length if whole else BUFFERING, whole=whole), cores)


def in_shards(
    formats: SoftmaxFormats,
    blocks: SoftmaxBlocks,
    source: PlanTensor,
    result: PlanTensor,
    mask: PlanTensor | None,
    spec: DeviceSpec,
    *,
    causal: bool,
    by_heads: bool,
) -> tuple[CircularBuffer, ...]:
    """Buffers of a program that processes shards in place."""
    cores, wide, tiles = core_rectangle(blocks.grid), blocks.block_width, blocks.block_width * blocks.block_height
    between = formats.sums
    buffers = [
        tile_buffer("input", tiles, formats.source, cores, source.name),
        tile_buffer("scaler_of_maxima", 1, formats.scaler, cores),
        tile_buffer("scaler_of_sums", 1, between, cores),
    ]
    if mask is not None:
        data_format = mask.spec.data_format
        whole = causal and mask.spec.memory_config.is_sharded()
        in_place = whole and not by_heads
        held = tiles if whole else wide * (2 if causal and not by_heads else 1)
        buffers += [
            tile_buffer("scaled", wide, between, cores),
            tile_buffer("scale", 1, BFLOAT16, cores),
            tile_buffer("mask", held, data_format, cores, mask.name if in_place else None),
        ]
    buffers += [
        tile_buffer("output", tiles, formats.source, cores, result.name),
        tile_buffer("exponentials", wide, between, cores),
        tile_buffer("inverse_sums", 1, between, cores),
    ]
    if formats.stable:
        buffers += [tile_buffer("largest", 1, between, cores), tile_buffer("shifted", wide, between, cores)]
    return tuple(buffers)


def _buffers(tiles: Tiles, cores: CoreRangeSet) -> tuple[CircularBuffer, ...]:
    return tuple([tile_buffer(name, count, data_format, cores) for name, count, data_format in tiles])
