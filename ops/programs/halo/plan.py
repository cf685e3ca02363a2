"""Plan of the halo operation: its output, the lists of its processors, and its circular buffers.

Input shards hold the image, output shards the part of the zero-filled frame that a core's windows read
(`transfers`), always row-major. Source of the sizes: tt-metal's halo program, compared with every recorded halo.

Lists are uint16 words in config tensors. A *padding list* is pairs (stick, length), ended by (0, 0): the first
processor gets the first half of a core's runs, the second the rest. A *gather list* is the number of routes, then for
every route the receiving core's x and y, the number of transfers, and (source stick, destination stick, length) for
each. A route ends where the receiver changes. The *reader indices* of the program that reads the halo are, for every
block of its outputs, the number of segments as uint32, then (first stick, last stick) for each: the windows of a
segment lie one stride apart. All cores' lists are as long as the longest, gather lists even.

Row-major input: transfers to the core itself come first, then those to others in core order; they alternate between the
processors. Tiled input: transfers are cut at blocks of 32 sticks, the unit of untilizing, and follow the source; blocks
alternate.
"""

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

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
from device.spec.device_spec import DeviceSpec
from ops.programs.buffer_shapes import buffer, paged_buffer, shard_counts, tile_buffer
from ops.programs.halo.transfers import (
    EvenPaddingRuns,
    StickRanges,
    Transfers,
    changes,
    count_padding,
    count_transfers,
    list_transfers,
    padding_runs,
    ranges_between,
    stick_ranges,
    upsampled_bounds,
)
from ops.window import PaddedInput, count_breaks, dense_bounds

HEIGHT = TensorMemoryLayout.HEIGHT_SHARDED
BLOCK = TensorMemoryLayout.BLOCK_SHARDED
WIDTH = TensorMemoryLayout.WIDTH_SHARDED

WORD_BYTES: Final = 2
UNTILIZE_BLOCK_STICKS: Final = TILE
UNTILIZE_BUFFER_BLOCKS: Final = 2  # double buffering
PROCESSORS: Final = 2
TRANSFER_WORDS: Final = 3  # source stick, destination stick, length
ROUTE_WORDS: Final = 3  # x, y, number of transfers
SEGMENT_WORDS: Final = 2  # first and last stick; also the number of segments of a block, as uint32
CONFIG_NAMES: Final = ("padding_0", "padding_1", "gather_0", "gather_1")  # in order of allocation


class CoreOrder(NamedTuple):
    """The grid coordinates of the cores that split the rows, ``core -> (x, y)``, as the halo addresses them."""

    x: Integers  # [cores] columns
    y: Integers

    @property
    def rank(self) -> Integers:
        """The rank of each core in the order by x, then y, [cores]."""
        rank = np.empty_like(self.x)
        rank[np.lexsort((self.y, self.x))] = np.arange(len(self.x))
        return rank


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloArguments:
    """The parameters of a halo."""

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
    stick_alignment_bytes: int  # The distance of sticks is a multiple of this: the alignment of pages in L1
    tiled: bool  # The input is in tiles
    config_tensors_in_dram: bool = False  # The config tensors live in DRAM, and are read into local circular buffers
    # Padded rows and columns of the whole input; None: whole shards on all cores
    input_matrix: tuple[int, int] | None = None
    # A frame with inserted zeros whose outputs the cores compute phase by phase, while ``frame`` is its
    # `ops.window.dense_frame`; None if the windows of ``frame`` are what they compute
    outputs_of: PaddedInput | None = None
    # Factors, down and across, by which bilinear upsampling makes more outputs of the windows; None without it
    upsampled: tuple[int, int] | None = None

    @classmethod
    def of(cls, frame: PaddedInput, place: MemoryConfig, spec: DeviceSpec, **others: Any) -> Self:
        """The halo of an input with the shards of a memory config; ``others`` are the remaining or changed fields."""
        shards = place.shard_spec
        assert shards is not None
        (down, across), (rows, width) = shard_counts(place.memory_layout, shards), shards.shape
        fields: dict[str, Any] = {
            "frame": frame,
            "stick_alignment_bytes": spec.l1.alignment_bytes,
            "cores": shards.grid,
        }
        fields |= {"scheme": place.memory_layout, "orientation": shards.orientation, "nhw_cores": down}
        return cls(**fields | {"channel_cores": across, "input_rows": rows, "shard_width": width} | others)

    @property
    def matrix(self) -> tuple[int, int]:
        """Padded rows and columns of the whole input."""
        return self.input_matrix or (self.nhw_cores * self.input_rows, self.channel_cores * self.shard_width)

    @property
    def row_bytes(self) -> int:
        """Bytes of a stick of the output."""
        return self.shard_width * (halo_format(self.data_format).element_bytes or 0)

    @property
    def block_rows(self) -> int:
        """Sticks of a source shard that transfers do not cross multiples of; 0 for a row-major input."""
        return UNTILIZE_BLOCK_STICKS if self.tiled else 0

    @property
    def order(self) -> CoreOrder:
        """The order of the cores that split the rows.

        HEIGHT numbers them along the rows of the grid. BLOCK numbers the first column (or row): all columns of cores
        repeat the same transfers. WIDTH has one core.
        """
        cores = np.arange(self.nhw_cores, dtype=np.int64)
        if self.scheme is BLOCK:
            still = np.zeros_like(cores)
            return CoreOrder(*((still, cores) if self.orientation is ShardOrientation.ROW_MAJOR else (cores, still)))
        row, column = np.divmod(cores, self.cores.bounding_box().cols)
        return CoreOrder(column, row)


class CorePairs(NamedTuple):
    """The transfers between every two cores, counted, and how the processors share them."""

    transfers: Transfers
    first: Integers  # [pairs] as of `first_turns`
    shares: Integers  # [processors, pairs] as of `shares_of_turns`


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloPlan:
    """A planned halo. Halos of equal arguments are equal, regardless of the names of tensors."""

    arguments: HaloArguments  # What decided it
    ranges: StickRanges = field(compare=False)  # The frame sticks of each core that splits the rows
    pairs: CorePairs | None = field(compare=False)  # Its transfers; None if they are listed, or cut at blocks of tiles
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
    if halo.upsampled is not None:
        ranges = upsampled_ranges(halo, halo.upsampled)
    elif halo.outputs_of is None:
        ranges = stick_ranges(halo.frame, output_rows=halo.output_rows, cores=halo.nhw_cores)
    else:
        bounds = dense_bounds(halo.outputs_of, output_rows=halo.output_rows, cores=halo.nhw_cores)
        ranges = ranges_between(halo.frame, *bounds)
    pairs = None if halo.tiled or halo.frame.replicate else core_pairs(halo, ranges)
    sticks = ranges.max_sticks
    output, counts = halo_output(halo, sticks), config_words(halo, ranges, pairs)
    specs = {words: config_tensor_spec(halo, words) for words in set(counts)}  # both processors' are mostly equal
    names = [f"{output_tensor}.{name}" for name in CONFIG_NAMES]
    resident = tuple(zip(names, map(specs.__getitem__, counts), strict=True))
    return HaloPlan(
        arguments=halo,
        ranges=ranges,
        pairs=pairs,
        output=output,
        resident=resident,
        circular_buffers=_circular_buffers(halo, sticks, resident, input_tensor, output_tensor),
    )


def upsampled_ranges(halo: HaloArguments, scale: tuple[int, int]) -> StickRanges:
    """The sticks that bilinear upsampling reads on every core."""
    bounds = upsampled_bounds(halo.frame, scale, output_rows=halo.output_rows, cores=halo.nhw_cores)
    return ranges_between(halo.frame, *bounds)


def walk_refusal(cores: CoreRangeSet, *, row_major: bool = True) -> str | None:
    """Why a sliding window can not address the cores of shards, with the library's text; None if it can.

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
    shard = ShardSpec(halo.cores, (max_sticks, halo.shard_width), halo.orientation).sealed()
    return TensorSpec(
        (1, 1, halo.nhw_cores * max_sticks, round_up(halo.matrix[1], halo.shard_width)),
        halo_format(halo.data_format),
        Layout.ROW_MAJOR,
        MemoryConfig(halo.scheme, BufferType.L1, shard),
    )


def config_tensor_spec(halo: HaloArguments, words: int) -> TensorSpec:
    """A config tensor with a list of ``words`` for every core that splits the rows.

    In L1_SMALL every core has its own list, so cores that share rows have copies: lists are distributed against the
    orientation of a BLOCK tensor. In DRAM there is one copy.
    """
    if halo.config_tensors_in_dram:
        return TensorSpec((halo.nhw_cores, words), UINT16, Layout.ROW_MAJOR)
    rows = halo.nhw_cores * (1 if halo.scheme is HEIGHT else halo.channel_cores)
    against = halo.scheme is BLOCK and halo.orientation is ShardOrientation.ROW_MAJOR
    orientation = ShardOrientation.COL_MAJOR if against else ShardOrientation.ROW_MAJOR
    config = MemoryConfig(HEIGHT, BufferType.L1_SMALL, ShardSpec(halo.cores, (1, words), orientation).sealed())
    return TensorSpec((rows, words), UINT16, Layout.ROW_MAJOR, config)


def _circular_buffers(
    halo: HaloArguments,
    max_sticks: int,
    resident: tuple[tuple[str, TensorSpec], ...],
    input_tensor: str,
    output_tensor: str,
) -> tuple[CircularBuffer, ...]:
    """Input, output, a padding stick for each processor, untilized blocks for each, and the config tensors."""
    cores, out_format = halo.cores, halo_format(halo.data_format)
    stick_bytes = round_up(halo.row_bytes, halo.stick_alignment_bytes)
    width_tiles = div_up(halo.shard_width, TILE)
    buffers = [
        paged_buffer("input", halo.input_rows, stick_bytes, halo.data_format, cores, input_tensor),
        paged_buffer("output", max_sticks, stick_bytes, out_format, cores, output_tensor),
        *(buffer(f"padding_stick_{processor}", stick_bytes, out_format, cores) for processor in range(PROCESSORS)),
    ]
    if halo.tiled:
        even_rows = div_up(halo.matrix[0], halo.nhw_cores)  # idle cores count, so that it may be less than a shard
        tiles, pages = width_tiles * div_up(even_rows, TILE), UNTILIZE_BUFFER_BLOCKS * width_tiles
        buffers[0] = tile_buffer("input", tiles, halo.data_format, cores, input_tensor)
        buffers += [tile_buffer(f"untilized_{processor}", pages, out_format, cores) for processor in range(PROCESSORS)]
    for name, (tensor, spec) in zip(CONFIG_NAMES, resident, strict=True):
        view_of = None if halo.config_tensors_in_dram else tensor
        buffers.append(buffer(name, spec.shape[-1] * WORD_BYTES, UINT16, cores, view_of))
    return tuple(buffers)


def config_words(halo: HaloArguments, ranges: StickRanges, pairs: CorePairs | None) -> tuple[int, int, int, int]:
    """Words of the lists for a core, padding before gather: counted without listing a transfer of a usual frame.

    ``pairs`` is as of `HaloPlan`.
    """
    frame, input_rows = halo.frame, halo.input_rows
    if frame.replicate:
        low, high = padding_runs(frame).within(ranges)
        most = int((high - low).max())
    else:
        most = int(count_padding(frame, ranges).max())
    if pairs is not None:
        gather = _gather_words_row_major(halo, pairs)
    elif frame.replicate or halo.upsampled is not None:  # ranges of the latter may begin earlier again
        gather = _listed_gather_words(
            halo, list_transfers(frame, ranges, input_rows=input_rows, block_rows=halo.block_rows)
        )
    else:
        gather = _gather_words_tiled(halo, ranges)
    return 2 * (most // 2) + 2, 2 * (most - most // 2) + 2, *gather


def turns(transfers: Transfers, *, tiled: bool) -> Integers:
    """[transfers] the processor that does each."""
    if tiled:
        return transfers.stick // UNTILIZE_BLOCK_STICKS % PROCESSORS
    # Transfers between the same cores follow each other, so that few are sorted
    begins = changes(transfers.source * (transfers.destination.max(initial=0) + 1) + transfers.destination).nonzero()[0]
    counts = np.diff(begins, append=len(transfers.source))
    first = first_turns(transfers.source[begins], transfers.destination[begins], counts)
    turn: Integers = ((first - begins).repeat(counts) + np.arange(len(transfers.source))) % PROCESSORS
    return turn


def first_turns(source: Integers, destination: Integers, counts: Integers) -> Integers:
    """[pairs of cores] number of transfers of a row-major source before the transfers of a pair, given ``counts``.

    Transfers to the source itself come first, then transfers to other cores in core order.
    """
    places = (2 * source + (source != destination)) * (destination.max(initial=0) + 1) + destination
    order = places.argsort(kind="stable")
    before = counts[order].cumsum() - counts[order]
    first: Integers = np.empty_like(before)
    first[order] = before - before[source[order].searchsorted(source[order])]
    return first


def shares_of_turns(first: Integers, counts: Integers) -> Integers:
    """[processors, pairs of cores] transfers of each processor, of ``counts`` transfers from `first_turns` on."""
    ahead = np.array([[1], [0]])  # the first processor begins
    shares: Integers = (first + counts + ahead) // PROCESSORS - (first + ahead) // PROCESSORS
    return shares


def core_pairs(halo: HaloArguments, ranges: StickRanges) -> CorePairs:
    """The transfers of a row-major input, in a frame that does not replicate."""
    counted = count_transfers(halo.frame, ranges, input_rows=halo.input_rows)
    first = first_turns(counted.source, counted.destination, counted.counts)
    return CorePairs(counted, first, shares_of_turns(first, counted.counts))


def transfers_in_turns(halo: HaloArguments, ranges: StickRanges, pairs: CorePairs | None) -> tuple[Transfers, Integers]:
    """The transfers of a row-major input, and the processor of each; ``pairs`` as in `HaloPlan`.

    Transfers between two cores by one processor are counted, not listed, if the runs of data between padding are even.
    """
    runs = padding_runs(halo.frame)
    if pairs is None or not isinstance(runs, EvenPaddingRuns):
        listed = list_transfers(halo.frame, ranges, input_rows=halo.input_rows)
        return listed, turns(listed, tiled=False)
    (source, stick, destination, sent, every), first, counts = pairs
    numbers, begin = np.arange(len(source)), source * halo.input_rows + stick
    sticks = runs.span * counts  # of whole runs; the first and the last may be cut
    sticks[first % PROCESSORS, numbers] -= begin % runs.span
    sticks[(first + every - 1) % PROCESSORS, numbers] -= -(begin + sent) % runs.span
    turn, pair = counts.nonzero()
    return Transfers(source[pair], stick[pair], destination[pair], sticks[turn, pair], counts[turn, pair]), turn


def _listed_gather_words(halo: HaloArguments, transfers: Transfers) -> tuple[int, int]:
    """Words of both gather lists."""
    source, destination, cores = transfers.source, transfers.destination, halo.order
    turn = turns(transfers, tiled=halo.tiled)
    if halo.tiled:
        order = np.lexsort((cores.y[destination], cores.x[destination], transfers.stick, source, turn))
    else:
        order = np.lexsort((destination, source != destination, source, turn))
    queue = (PROCESSORS * source + turn)[order]
    used = TRANSFER_WORDS + ROUTE_WORDS * changes(queue * len(cores.x) + destination[order])
    return _list_words(queue, used, len(cores.x))


def _list_words(queue: Integers, used: Integers, cores: int) -> tuple[int, int]:
    """Words of both gather lists: the number of routes, the words of the core with most, rounded up to an even number.

    `used` are the words of each queue; queue index = core number * processors + processor number.
    """
    words = np.bincount(queue, weights=used, minlength=PROCESSORS * cores).reshape(cores, PROCESSORS).max(axis=0)
    return round_up(1 + int(words[0]), 2), round_up(1 + int(words[1]), 2)


def _gather_words_row_major(halo: HaloArguments, pairs: CorePairs) -> tuple[int, int]:
    """Words of both gather lists of a row-major input.

    The transfers between two cores are consecutive, so each processor has one route for every pair of cores with
    transfers of that processor.
    """
    share, queue = pairs.shares, PROCESSORS * pairs.transfers.source + np.array([[0], [1]])
    words = TRANSFER_WORDS * share + ROUTE_WORDS * (share > 0)
    return _list_words(queue.ravel(), words.ravel(), halo.nhw_cores)


def _gather_words_tiled(halo: HaloArguments, ranges: StickRanges) -> tuple[int, int]:
    """Words of both gather lists of a tiled input.

    A stick is sent to several cores in the order `CoreOrder.rank`. A route continues if the last receiver of a group of
    transfers is the first receiver of the next group.
    """
    at, low, high, rounds = _served(halo, ranges)
    rank, receivers = halo.order.rank, high - low + 1
    ranks = rank[np.minimum(low[:, None] + np.arange(receivers.max(initial=1)), high[:, None])]
    source, stick = np.divmod(at, halo.input_rows)
    queue = source * PROCESSORS + stick // UNTILIZE_BLOCK_STICKS % PROCESSORS
    order = queue.argsort(kind="stable")
    queue, first, last = queue[order], ranks.min(axis=1)[order], ranks.max(axis=1)[order]
    transfers = (receivers * rounds)[order]
    routes = np.where(receivers[order] > 1, transfers, 1)
    routes[1:] -= (queue[1:] == queue[:-1]) & (first[1:] == last[:-1])
    return _list_words(queue, TRANSFER_WORDS * transfers + ROUTE_WORDS * routes, len(ranges.starts))


def _served(halo: HaloArguments, ranges: StickRanges) -> tuple[Integers, Integers, Integers, Integers]:
    """Groups of consecutive transfers to the same receivers, in the order of the source.

    The result is, for each group, the data number of the first transfer, the first and the last receiving core, and the
    number of rounds over all receivers. Data are split where the receivers change and at every block of the source. At
    a split, a receiver whose range begins there starts a new transfer; other receivers do so only at a break of the
    data.
    """
    frame, input_rows = halo.frame, halo.input_rows
    shards, blocks = -(-frame.data // input_rows), np.arange(0, input_rows, UNTILIZE_BLOCK_STICKS)
    block_begins = np.add.outer(np.arange(shards) * input_rows, blocks).ravel()
    block_begins = np.append(block_begins[block_begins < frame.data], frame.data)
    edges = np.sort(np.concatenate([block_begins, ranges.first_data, ranges.stop_data]))
    between = (edges[1:] != edges[:-1]).nonzero()[0]
    begin, end = edges[between], edges[between + 1]
    low = ranges.stop_data.searchsorted(begin, side="right")
    high = ranges.first_data.searchsorted(begin, side="right") - 1
    begin, end, low, high = np.array([begin, end, low, high])[:, high >= low]
    before, at, inside = count_breaks(frame, np.array([np.maximum(begin - 1, 0), begin, end - 1]))
    whole = (begin % input_rows % UNTILIZE_BLOCK_STICKS == 0) | (at > before)
    new = ranges.first_data.searchsorted(begin, side="left")
    rounds = inside - at + whole
    own, then = (~whole & (new <= high)).nonzero()[0], rounds.nonzero()[0]
    first = np.concatenate([begin[own], begin[then]])
    order = first.argsort(kind="stable")
    served = (
        first,
        np.concatenate([new[own], low[then]]),
        np.concatenate([high[own], high[then]]),
        np.concatenate([np.ones_like(own), rounds[then]]),
    )
    first, low, high, rounds = (column[order] for column in served)
    return first, low, high, rounds


def reader_index_words(frame: PaddedInput, *, output_rows: int, cores: int, block_rows: tuple[int, ...]) -> int:
    """Words of the reader indices of one core, counted without writing a list.

    Each core has `output_rows`; the last cores may have fewer, or none. A reader reads `block_rows` at a time: one
    number, or two numbers that alternate between two readers.
    """
    ends = [0]
    while ends[-1] < output_rows:
        ends.append(ends[-1] + block_rows[(len(ends) - 1) % len(block_rows)])
    ends[-1] = output_rows
    bounds = np.arange(0, cores * output_rows, output_rows)[:, None] + np.array(ends)  # [cores, blocks + 1]
    begin, end = bounds[:, :-1], np.minimum(bounds[:, 1:], frame.outputs)
    first, last = _window_breaks(frame, np.array([begin, end - 1]))
    words = SEGMENT_WORDS * (last - first + 2) * (begin < end)
    return int(words.sum(axis=1).max())


def _window_breaks(frame: PaddedInput, outputs: Integers) -> Integers:
    """The number of outputs, up to each of ``outputs``, that are not one step after the previous output."""
    rows, columns = frame.rows, frame.columns
    row, image = columns.outputs, columns.outputs * rows.outputs
    to_row = rows.stride * columns.length - (columns.outputs - 1) * columns.stride
    to_image = to_row + (rows.length - rows.outputs * rows.stride) * columns.length
    # A row that begins an image is one of the latter
    images: Integers = outputs // image
    breaks: Integers = (outputs // row - images) * (to_row != columns.stride) + images * (to_image != columns.stride)
    return breaks


def reader_indices_refusal(page_bytes: int, *, output_rows: int) -> str | None:
    """Why the real library has no room for reader indices, in its words and ours: an index per output row, in tiles."""
    room = round_up(output_rows, TILE) * WORD_BYTES
    if page_bytes <= room:
        return None
    return (
        f"Reader indices buffer page size {page_bytes} exceeds worst-case CB size {room} "
        "(config tensor layout changed?)\n"
        "shard_layout: every row of the image that a core computes takes 4 bytes, and the real library reserves 2 "
        f"for each of its {output_rows} outputs; use wider images or another shard_layout"
    )
