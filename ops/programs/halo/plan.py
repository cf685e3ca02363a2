"""The plan of a halo."""

from dataclasses import dataclass, field

import numpy as np

from device.cores import CoreCoord, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16, FLOAT32, UINT16, DataFormat, Integers, div_up, round_up
from device.plan import CircularBuffer, DeviceOp
from ops.programs.buffer_shapes import paged_buffer
from ops.programs.halo.transfers import (
    StickRanges,
    Transfers,
    changes,
    count_padding,
    count_transfers,
    list_transfers,
    ordinals,
    padding_runs,
    ranges_between,
    stick_ranges,
)
from ops.window import PaddedInput, count_breaks, dense_bounds

WORD_BYTES = 2
UNTILIZE_BLOCK_STICKS = TILE
PROCESSORS = 2
TRANSFER_WORDS = 3  # source stick, destination stick, length
ROUTE_WORDS = 3  # x, y, number of transfers


@dataclass(frozen=True, slots=True)
class CoreOrder:
    """How the cores that split the rows lie in the grid: ``core -> (x, y)``, as the halo addresses them."""

    x: Integers  # [cores] columns
    y: Integers

    @property
    def rank(self) -> Integers:
        """[cores] place of each core in the order by x, then y."""
        rank = np.empty_like(self.x)
        rank[np.lexsort((self.y, self.x))] = np.arange(len(self.x))
        return rank


def config_words(
    frame: PaddedInput, ranges: StickRanges, cores: CoreOrder, *, input_rows: int, tiled: bool
) -> tuple[int, int, int, int]:
    """Words of the lists for a core, padding before gather: counted without listing a transfer of a usual frame."""
    if frame.replicate:
        low, high = padding_runs(frame).within(ranges)
        block_rows = UNTILIZE_BLOCK_STICKS if tiled else 0
        transfers = list_transfers(frame, ranges, input_rows=input_rows, block_rows=block_rows)
        return *_padding_words(high - low), *listed_gather_words(transfers, cores, tiled=tiled)
    padding = _padding_words(count_padding(frame, ranges))
    if tiled:
        return *padding, *gather_words_tiled(frame, ranges, cores.rank, input_rows=input_rows)
    return *padding, *gather_words_row_major(frame, ranges, input_rows=input_rows)


def _padding_words(runs: Integers) -> tuple[int, int]:
    """Words of both padding lists; ``runs`` are the runs of padding of each core."""
    most = int(runs.max())
    return 2 * (most // 2) + 2, 2 * (most - most // 2) + 2


def turns(transfers: Transfers, *, tiled: bool) -> Integers:
    """[transfers] the processor that does each."""
    source, destination = transfers.source_core, transfers.destination_core
    if tiled:
        return transfers.source_stick // UNTILIZE_BLOCK_STICKS % PROCESSORS
    away = source != destination
    order = np.argsort((2 * source + away) * (destination.max(initial=0) + 1) + destination, kind="stable")
    turn = np.empty_like(order)
    turn[order] = ordinals(np.bincount(source)) % PROCESSORS
    return turn


def listed_gather_words(transfers: Transfers, cores: CoreOrder, *, tiled: bool) -> tuple[int, int]:
    """Words of both gather lists."""
    source, destination, turn = transfers.source_core, transfers.destination_core, turns(transfers, tiled=tiled)
    if tiled:
        order = np.lexsort((cores.y[destination], cores.x[destination], transfers.source_stick, source, turn))
    else:
        order = np.lexsort((destination, source != destination, source, turn))
    queue = (PROCESSORS * source + turn)[order]
    used = TRANSFER_WORDS + ROUTE_WORDS * changes(queue * len(cores.x) + destination[order])
    return _list_words(queue, used, len(cores.x))


def _list_words(queue: Integers, used: Integers, cores: int) -> tuple[int, int]:
    """Words of both gather lists: the number of routes, what the core with most words uses, and an even number of all.

    `used` are the words of each queue: a core's number times the processors, plus the number of the processor.
    """
    words = np.bincount(queue, weights=used, minlength=PROCESSORS * cores).reshape(cores, PROCESSORS).max(axis=0)
    return round_up(1 + int(words[0]), 2), round_up(1 + int(words[1]), 2)


def gather_words_row_major(frame: PaddedInput, ranges: StickRanges, *, input_rows: int) -> tuple[int, int]:
    """Words of both gather lists of a row-major input with shards of ``input_rows`` sticks.

    The transfers between two cores follow each other, so each processor has one route for every pair of cores of which
    it got any.
    """
    cores = len(ranges.starts)
    pairs = count_transfers(frame, ranges, input_rows=input_rows)
    away = pairs.source_core != pairs.destination_core
    order = ((pairs.source_core * 2 + away) * cores + pairs.destination_core).argsort()
    source, transfers = pairs.source_core[order], pairs.transfers[order]
    ends = transfers.cumsum()
    begins = ends - transfers
    core_begins = begins[source.searchsorted(source)]
    begins, ends = begins - core_begins, ends - core_begins
    ahead = np.array([[1], [0]])  # the first processor begins
    dealt = (ends + ahead) // PROCESSORS - (begins + ahead) // PROCESSORS
    per_pair = TRANSFER_WORDS * dealt + ROUTE_WORDS * (dealt > 0)
    queue = np.concatenate([PROCESSORS * source, PROCESSORS * source + 1])
    return _list_words(queue, per_pair.ravel(), cores)


@dataclass(frozen=True, slots=True)
class _Groups:
    """Transfers that follow each other and go round the same receivers, in the order of the source."""

    at: Integers  # [groups] data number of the first transfer
    low: Integers  # First receiving core
    high: Integers  # Last receiving core
    rounds: Integers  # How often all of them are served


def gather_words_tiled(frame: PaddedInput, ranges: StickRanges, rank: Integers, *, input_rows: int) -> tuple[int, int]:
    """Words of both gather lists of a tiled input with shards of ``input_rows`` sticks.

    `rank` is the [cores] place of each core ordered by x, then y: the order in which a stick is sent to several cores.
    """
    groups = _groups(frame, ranges, input_rows=input_rows)
    receivers = groups.high - groups.low + 1
    first, last = _extreme_ranks(rank, groups)
    source, stick = np.divmod(groups.at, input_rows)
    queue = source * PROCESSORS + stick // UNTILIZE_BLOCK_STICKS % PROCESSORS
    order = queue.argsort(kind="stable")
    queue, first, last = queue[order], first[order], last[order]
    transfers = (receivers * groups.rounds)[order]
    routes = np.where(receivers[order] > 1, transfers, 1)
    routes[1:] -= (queue[1:] == queue[:-1]) & (first[1:] == last[:-1])
    return _list_words(queue, TRANSFER_WORDS * transfers + ROUTE_WORDS * routes, len(ranges.starts))


def _groups(frame: PaddedInput, ranges: StickRanges, *, input_rows: int) -> _Groups:
    """The data, cut where the receivers change and at every block of the source, as groups in the order of the data.

    At a cut, a receiver whose range begins there starts a transfer of its own; the others do so only at a break of the
    data.
    """
    edges = np.sort(np.concatenate([_block_begins(frame, input_rows), ranges.first_data, ranges.stop_data]))
    between = (edges[1:] != edges[:-1]).nonzero()[0]
    begin, end = edges[between], edges[between + 1]
    low = ranges.stop_data.searchsorted(begin, side="right")
    high = ranges.first_data.searchsorted(begin, side="right") - 1
    used = high >= low
    begin, end, low, high = begin[used], end[used], low[used], high[used]
    stick = begin % input_rows
    ends = np.concatenate([np.maximum(begin - 1, 0), begin, end - 1])
    before, at, inside = count_breaks(frame, ends).reshape(3, len(begin))
    whole = (stick % UNTILIZE_BLOCK_STICKS == 0) | (at > before)
    new = ranges.first_data.searchsorted(begin, side="left")
    rounds = inside - at + whole
    at_cut = (~whole & (new <= high)).nonzero()[0]
    then = rounds.nonzero()[0]
    at = np.concatenate([begin[at_cut], begin[then]])
    order = at.argsort(kind="stable")
    return _Groups(
        at=at[order],
        low=np.concatenate([new[at_cut], low[then]])[order],
        high=np.concatenate([high[at_cut], high[then]])[order],
        rounds=np.concatenate([np.ones_like(at_cut), rounds[then]])[order],
    )


def _block_begins(frame: PaddedInput, input_rows: int) -> Integers:
    """Data numbers at which a block of a source shard begins, and the end of the data."""
    shards = -(-frame.data // input_rows)
    begins = np.add.outer(np.arange(shards) * input_rows, np.arange(0, input_rows, UNTILIZE_BLOCK_STICKS)).ravel()
    return np.append(begins[begins < frame.data], frame.data)


def _extreme_ranks(rank: Integers, groups: _Groups) -> tuple[Integers, Integers]:
    """Smallest and largest rank among the receivers of each group."""
    smallest, largest = rank[groups.low], rank[groups.low]
    for offset in range(1, int((groups.high - groups.low).max(initial=0)) + 1):
        other = rank[np.minimum(groups.low + offset, groups.high)]
        smallest, largest = np.minimum(smallest, other), np.maximum(largest, other)
    return smallest, largest


HEIGHT = TensorMemoryLayout.HEIGHT_SHARDED
BLOCK = TensorMemoryLayout.BLOCK_SHARDED
WIDTH = TensorMemoryLayout.WIDTH_SHARDED

CONFIG_NAMES = ("padding_0", "padding_1", "gather_0", "gather_1")  # in order of allocation
UNTILIZE_BUFFER_BLOCKS = 2  # double buffering


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloArguments:
    """What decides a halo."""

    frame: PaddedInput  # The full frame: image, zeros and windows
    scheme: TensorMemoryLayout  # HEIGHT_SHARDED, BLOCK_SHARDED or WIDTH_SHARDED
    orientation: ShardOrientation
    cores: CoreRangeSet  # Cores that run it and hold input, output and config tensors
    nhw_cores: int  # Cores that split the flattened rows; 1 for WIDTH
    channel_cores: int  # Cores that split the channels; 1 for HEIGHT
    input_rows: int  # Sticks of an input shard
    output_rows: int  # Rows of a shard of the *convolution's* output
    shard_width: int  # Channels of a shard, of input and output
    data_format: DataFormat
    stick_alignment_bytes: int  # Sticks lie this far apart, or a multiple: what the device pads pages in L1 to
    tiled: bool  # The input is in tiles
    config_tensors_in_dram: bool = False  # The config tensors live in DRAM, and are read into local circular buffers
    # Padded rows and columns of the whole input; None: whole shards on all cores
    input_matrix: tuple[int, int] | None = None
    # A frame with inserted zeros whose outputs the cores compute phase by phase, while ``frame`` is its
    # `ops.window.dense_frame`; None if the windows of ``frame`` are what they compute
    outputs_of: PaddedInput | None = None

    @property
    def matrix(self) -> tuple[int, int]:
        """Padded rows and columns of the whole input."""
        return self.input_matrix or (self.nhw_cores * self.input_rows, self.channel_cores * self.shard_width)


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloPlan:
    """A planned halo. Halos of equal arguments are equal, whatever their tensors are called."""

    arguments: HaloArguments  # What decided it
    ranges: StickRanges = field(compare=False)  # The frame sticks of each core that splits the rows
    order: CoreOrder = field(compare=False, repr=False)  # Where those cores lie
    max_sticks: int = field(compare=False)  # Height of an output shard
    output: TensorSpec = field(compare=False)
    # Name and spec of the config tensors, in order of allocation (after the output)
    resident: tuple[tuple[str, TensorSpec], ...] = field(compare=False)
    circular_buffers: tuple[CircularBuffer, ...] = field(compare=False)  # In order of allocation


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloOp(DeviceOp):
    """One halo program: sticks are copied into the frame, tiles are untilized on the way."""

    plan: HaloPlan  # The halo as it was planned; it is compared by its arguments, from which all else follows
    fp32_dest: bool  # Dst is 32 bits wide, which decides what untilizing leaves of a float32
    # Padding is not zero (a maximum pool's), so that every stick of it is copied by itself
    filled_by_stick: bool = False


def halo_format(data_format: DataFormat) -> DataFormat:
    """Format of the output of a halo: floats of other formats become bfloat16."""
    return data_format if data_format in (FLOAT32, UINT16) else BFLOAT16


def plan_halo(halo: HaloArguments, *, input_tensor: str, output_tensor: str) -> HaloPlan:
    """The plan of a halo; its config tensors are called ``<output>.padding_0`` and so on.

    Raises:
        DeviceError: The shards of the output do not fit the cores of the input.
    """
    ranges, order = _ranges(halo), core_order(halo)
    max_sticks = ranges.max_sticks
    output = halo_output(halo, max_sticks)
    counts = config_words(halo.frame, ranges, order, input_rows=halo.input_rows, tiled=halo.tiled)
    specs = {
        count: config_tensor_spec(halo, count) for count in set(counts)
    }  # both processors' counts are mostly equal
    resident = tuple(
        (f"{output_tensor}.{name}", specs[count]) for name, count in zip(CONFIG_NAMES, counts, strict=True)
    )
    return HaloPlan(
        arguments=halo,
        ranges=ranges,
        order=order,
        max_sticks=max_sticks,
        output=output,
        resident=resident,
        circular_buffers=_circular_buffers(halo, max_sticks, resident, input_tensor, output_tensor),
    )


def _ranges(halo: HaloArguments) -> StickRanges:
    """The sticks that every core needs."""
    if halo.outputs_of is None:
        return stick_ranges(halo.frame, output_rows=halo.output_rows, cores=halo.nhw_cores)
    bounds = dense_bounds(halo.outputs_of, output_rows=halo.output_rows, cores=halo.nhw_cores)
    return ranges_between(halo.frame, *bounds)


def core_order(halo: HaloArguments) -> CoreOrder:
    """Where the cores that split the rows lie.

    HEIGHT counts them along the rows of the grid. BLOCK addresses the first column (or row): every column of cores
    repeats the same transfers among themselves. WIDTH has one.
    """
    cores = np.arange(halo.nhw_cores, dtype=np.int64)
    if halo.scheme is BLOCK:
        still = np.zeros_like(cores)
        return CoreOrder(still, cores) if halo.orientation is ShardOrientation.ROW_MAJOR else CoreOrder(cores, still)
    row, column = np.divmod(cores, halo.cores.bounding_box().cols)
    return CoreOrder(column, row)


def walk_refusal(cores: CoreRangeSet, *, row_major: bool = True) -> str | None:
    """Why a sliding window can not address the cores of shards, in the library's words; None if it can.

    The library counts cores row by row from core (0, 0) on, as if they filled the rows of their bounding box.
    """
    columns = cores.bounding_box().end.x + 1
    for number, core in enumerate(cores.cores(row_major)):
        row, column = divmod(number, columns)
        if core != CoreCoord(column, row):
            return (
                f"Sliding-window shard grid core {number} is {core} but the origin-anchored row walk "
                f"addresses it as {column}-{row}. Only an origin-anchored, row-filled grid is supported; any other "
                "grid hangs max_pool2d/avg_pool2d or silently returns wrong conv2d results (#60513)."
            )
    return None


def halo_output(halo: HaloArguments, max_sticks: int) -> TensorSpec:
    """The output tensor: row-major, ``max_sticks`` sticks on every core; it is as wide as the input.

    So cores that hold no channels of the input hold none of it, but cores without rows have sticks.
    """
    shard = ShardSpec(halo.cores, (max_sticks, halo.shard_width), halo.orientation)
    return TensorSpec(
        (1, 1, halo.nhw_cores * max_sticks, round_up(halo.matrix[1], halo.shard_width)),
        halo_format(halo.data_format),
        Layout.ROW_MAJOR,
        MemoryConfig(halo.scheme, BufferType.L1, shard),
    )


def config_tensor_spec(halo: HaloArguments, words: int) -> TensorSpec:
    """A config tensor with a list of ``words`` for every core that splits the rows.

    In L1_SMALL every core holds its list, so that cores which share rows hold copies: the lists are dealt against the
    orientation of a BLOCK tensor. In DRAM there is one copy.
    """
    if halo.config_tensors_in_dram:
        return TensorSpec((halo.nhw_cores, words), UINT16, Layout.ROW_MAJOR)
    rows = halo.nhw_cores * (1 if halo.scheme is HEIGHT else halo.channel_cores)
    against = halo.scheme is BLOCK and halo.orientation is ShardOrientation.ROW_MAJOR
    orientation = ShardOrientation.COL_MAJOR if against else ShardOrientation.ROW_MAJOR
    config = MemoryConfig(HEIGHT, BufferType.L1_SMALL, ShardSpec(halo.cores, (1, words), orientation))
    return TensorSpec((rows, words), UINT16, Layout.ROW_MAJOR, config)


def _circular_buffers(
    halo: HaloArguments,
    max_sticks: int,
    resident: tuple[tuple[str, TensorSpec], ...],
    input_tensor: str,
    output_tensor: str,
) -> tuple[CircularBuffer, ...]:
    """Input, output, a padding stick for each processor, untilized blocks for each, and the config tensors."""
    out_format = halo_format(halo.data_format)
    stick_bytes = round_up(halo.shard_width * (out_format.element_bytes or 0), halo.stick_alignment_bytes)
    width_tiles = div_up(halo.shard_width, TILE)
    if halo.tiled:
        even_rows = div_up(halo.matrix[0], halo.nhw_cores)  # idle cores count, so that it may be less than a shard
        in_page, in_pages = halo.data_format.tile_bytes, width_tiles * div_up(even_rows, TILE)
    else:
        in_page, in_pages = stick_bytes, halo.input_rows

    def buffer(
        name: str, pages: int, page_bytes: int, data_format: DataFormat, view_of: str | None = None
    ) -> CircularBuffer:
        return paged_buffer(name, pages, page_bytes, data_format, halo.cores, view_of)

    buffers = [
        buffer("input", in_pages, in_page, halo.data_format, input_tensor),
        buffer("output", max_sticks, stick_bytes, out_format, output_tensor),
        buffer("padding_stick_0", 1, stick_bytes, out_format),
        buffer("padding_stick_1", 1, stick_bytes, out_format),
    ]
    if halo.tiled:
        pages = UNTILIZE_BUFFER_BLOCKS * width_tiles
        buffers += [buffer(f"untilized_{processor}", pages, out_format.tile_bytes, out_format) for processor in (0, 1)]
    for name, (tensor, spec) in zip(CONFIG_NAMES, resident, strict=True):
        buffers.append(
            buffer(name, 1, spec.shape[-1] * WORD_BYTES, UINT16, None if halo.config_tensors_in_dram else tensor)
        )
    return tuple(buffers)


HEADER_WORDS = 2
SEGMENT_WORDS = 2


def reader_index_words(frame: PaddedInput, *, output_rows: int, cores: int, block_rows: tuple[int, ...]) -> int:
    """Words of the list of one core, counted without writing a list.

    Each core has `output_rows`; the last cores may have fewer, or none. A reader takes `block_rows` at a time: one
    number, or two that alternate between two readers.
    """
    begin, end = _blocks(frame, output_rows=output_rows, cores=cores, block_rows=block_rows)
    breaks = _breaks_before(frame, np.array([begin, end - 1]))
    segments = breaks[1] - breaks[0] + 1
    words = (HEADER_WORDS + SEGMENT_WORDS * segments) * (begin < end)
    return int(words.sum(axis=1).max())


def reader_indices_refusal(page_bytes: int, *, output_rows: int) -> str | None:
    """Why the real library has no room for a list, in its words and ours: one index per output row, in whole tiles."""
    room = round_up(output_rows, TILE) * WORD_BYTES
    if page_bytes <= room:
        return None
    return (
        f"Reader indices buffer page size {page_bytes} exceeds worst-case CB size {room} "
        "(config tensor layout changed?)\n"
        "shard_layout: every row of the image that a core computes takes 4 bytes, and the real library reserves 2 "
        f"for each of its {output_rows} outputs; use wider images or another shard_layout"
    )


def _blocks(
    frame: PaddedInput, *, output_rows: int, cores: int, block_rows: tuple[int, ...]
) -> tuple[Integers, Integers]:
    """[cores, blocks] first output and last output + 1 of every block; the latter is no larger in an empty block."""
    ends = [0]
    while ends[-1] < output_rows:
        ends.append(ends[-1] + block_rows[(len(ends) - 1) % len(block_rows)])
    ends[-1] = output_rows
    bounds = np.arange(0, cores * output_rows, output_rows)[:, None] + np.array(ends)
    return bounds[:, :-1], np.minimum(bounds[:, 1:], frame.outputs)


def _breaks_before(frame: PaddedInput, outputs: Integers) -> Integers:
    """The number of outputs, up to each of ``outputs``, that do not lie one step behind the output before them."""
    rows, columns = frame.rows, frame.columns
    row, image = columns.outputs, columns.outputs * rows.outputs
    to_row = rows.stride * columns.length - (columns.outputs - 1) * columns.stride
    to_image = to_row + (rows.length - rows.outputs * rows.stride) * columns.length
    # A row that begins an image is one of the latter
    at_rows, at_images = to_row != columns.stride, to_image != columns.stride
    count = outputs // row if at_rows else np.zeros_like(outputs)
    if frame.batch > 1 and at_rows != at_images:
        count += outputs // image * (at_images - at_rows)
    return count
