"""The pool program: the maximum or the average of each window, for each channel."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from device.cores import CoreRangeSet
from device.host.threads import parts_of
from device.matrix_unit.packer import without_nan
from device.memory.memory_config import FACE, TILE
from device.numbers.formats import BFLOAT16, UINT16, UINT32, Array, DataFormat, div_up, round_up, whole_groups
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.time.network import hands
from device.time.stages import Stage
from ops.builder import PlanTensor
from ops.op_model import Ends, ValuesContext, given
from ops.programs.averages import Averaging, averages
from ops.programs.buffer_shapes import BUFFERING, buffer, row_bytes, sized_buffers
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.kernel_costs import local_sticks_cycles, pack_tile_cycles, reduce_window_cycles
from ops.window import PaddedInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool(DataMovement):
    """A pool program: maxima, optionally with their indices, or averages."""

    frame: PaddedInput  # The images, padding around them (less than every number, or 0), and their windows
    channels: int
    channel_cores: int  # Cores that split them
    core_outputs: int
    in_format: DataFormat  # Format of the sticks of the input
    data_format: DataFormat
    tiled: bool  # The result is in tiles
    averaging: Averaging | None = None  # How numbers are averaged; None for the largest
    index_format: DataFormat | None = None  # Format of the places of the maxima; None without them

    @property
    def taps(self) -> int:
        """Numbers under a window."""
        return self.frame.rows.kernel * self.frame.columns.kernel

    @property
    def chunk(self) -> int:
        """Numbers under a window that are reduced at a time."""
        return chunk_of(div_up(self.channels, self.channel_cores))

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array | tuple[Array, ...]:
        """[1, 1, N*OH*OW, C] in storage of the result's format, from sticks [..., C]; and the indices, if requested.

        A NaN compares above infinity (or below -infinity, by its sign), and is packed as that infinity.
        """
        rows, columns, batch = self.frame.rows, self.frame.columns, self.frame.batch
        sticks = given(inputs[0]).reshape(-1, given(inputs[0]).shape[-1])[:, : self.channels]
        sticks = sticks[: batch * rows.input_length * columns.input_length]
        images = sticks.reshape(batch, rows.input_length, columns.input_length, self.channels)
        shape = (batch, rows.outputs, columns.outputs, self.channels)
        result = np.empty(shape, self.data_format.storage)
        places = None if self.index_format is None else np.empty(shape, self.index_format.storage)

        def pool(band: tuple[int, slice]) -> None:
            image, part = band
            outputs = result[image, part]
            dst = self._reduced(images[image], part, context)
            if places is not None:
                places[image, part] = _places(_framed(images[image], self.frame, part, -np.inf), self.frame, part, dst)
            packed = context.arithmetic.pack(dst, BFLOAT16, fp32_dest=self._fp32_dest)
            if self.data_format.is_block:  # the rows in bfloat16 are tilized
                packed = context.arithmetic.pack(
                    whole_groups(packed.astype(np.float32)), self.data_format, fp32_dest=False
                )
            outputs[...] = packed[..., : self.channels]

        taps = 1 if self.averaging is None else self.taps
        parts = list(parts_of(rows.outputs, rows.stride * columns.length * self.channels * taps))
        context.arithmetic.each(pool, [(image, part) for image in range(batch) for part in parts])
        flat = result.reshape(1, 1, -1, self.channels)
        return flat if places is None else (flat, places.reshape(flat.shape))

    @property
    def _fp32_dest(self) -> bool:
        return self.averaging is not None and bool(self.averaging.fp32_dest)

    def _reduced(self, image: Array, part: slice, context: ValuesContext) -> Array:
        """Dst of a part of an image's rows of windows."""
        if self.averaging is None:
            return _largest(_framed(image, self.frame, part, -np.inf), self.frame, part.stop - part.start)
        return averages(
            _framed(image, self.frame, part, 0.0),
            self.frame,
            self.averaging.counts(self.frame)[part],
            self.averaging,
            context.arithmetic,
            chunk=self.chunk,
            minus_one_quirk=context.spec.compute.minus_one_quirk,
        )

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """The steps of the core with the most outputs; all cores but the last have equally many."""
        channels = div_up(self.channels, self.channel_cores)
        tiles, columns, tile_bytes = div_up(channels, TILE), self.frame.columns, self.in_format.tile_bytes
        neighbors = columns.kernel if columns.dilation == 1 and tiles <= WIDEST else 1
        sticks_bytes = neighbors * channels * (self.in_format.element_bytes or 0)
        read = local_sticks_cycles(spec, self.taps // neighbors, sticks_bytes)
        phases = 1 if self.averaging is None else self.averaging.fidelity_phases
        rows = self.taps if self.taps <= FACE else TILE  # rows of one face are tilized without the rest of their tile
        passes, products = div_up(self.taps, self.chunk), phases * spec.compute.phase_cycles
        reduced = passes * reduce_window_cycles(spec, tiles, rows, products)
        packed = tiles * pack_tile_cycles(spec, tile_bytes / TILE)  # one row
        if self.tiled:
            packed += tiles * pack_tile_cycles(spec, self.data_format.tile_bytes) / TILE
        outputs, readers = self.core_outputs, hands(spec, 2)
        first = div_up(outputs, readers)
        return Composed(
            cores=ends.written.shards.grid,
            body_cycles=read + reduced + packed + (outputs - 1) * max(read / readers, reduced, packed),
            stages={
                Stage.READER: (first * read, "one reader gathers every other window"),
                Stage.SECOND_READER: ((outputs - first) * read, "the other reader gathers the others"),
                Stage.MATH: (outputs * reduced, "windows are tilized and reduced"),
                Stage.PACK: (outputs * packed, "results are packed into L1"),
            },
            steps="gathering, tilizing, reducing and packing of windows",
        )


def _framed(image: Array, frame: PaddedInput, part: slice, around: float) -> Array:
    """Frame rows [rows, columns, C] under a part of the rows of windows, with a number around; float32 without NaN."""
    rows, columns = frame.rows, frame.columns
    begin = part.start * rows.stride - rows.before  # in the image; both may be outside of it
    end = begin + (part.stop - part.start - 1) * rows.stride + rows.reach + 1
    inside = slice(max(begin, 0), max(min(end, rows.input_length), 0))
    pixels = image[inside]
    if (inside.start, inside.stop) == (begin, end) and not columns.before and not columns.after:
        framed = pixels.astype(np.float32)
    else:
        framed = np.full((end - begin, columns.length, image.shape[-1]), around, np.float32)
        framed[inside.start - begin :, columns.before :][: len(pixels), : columns.input_length] = pixels
    return without_nan(framed.view(np.uint32)).view(np.float32)


def _largest(framed: Array, frame: PaddedInput, outputs: int) -> Array:
    """[outputs, columns, C] maxima of the windows over rows of a frame."""
    rows, columns = frame.rows, frame.columns
    result = np.full((outputs, columns.outputs, framed.shape[-1]), -np.inf, np.float32)
    for down, across in product(range(rows.kernel), range(columns.kernel)):
        below, behind = framed[down * rows.dilation :: rows.stride], across * columns.dilation
        np.maximum(result, below[:outputs, behind :: columns.stride][:, : columns.outputs], out=result)
    return result


def _places(framed: Array, frame: PaddedInput, part: slice, largest: Array) -> Array:
    """[outputs, columns, C] row-major index in the image of the first maximum of each window."""
    rows, columns = frame.rows, frame.columns
    top = np.arange(part.start, part.stop)[:, None, None] * rows.stride - rows.before
    left = np.arange(columns.outputs)[None, :, None] * columns.stride - columns.before
    result = np.zeros(largest.shape, np.int64)
    for down, across in reversed([*product(range(rows.kernel), range(columns.kernel))]):
        below, behind = framed[down * rows.dilation :: rows.stride], across * columns.dilation
        taps = below[: len(largest), behind :: columns.stride][:, : columns.outputs]
        row, column = top + down * rows.dilation, left + across * columns.dilation
        inside = (row >= 0) & (row < rows.input_length) & (column >= 0) & (column < columns.input_length)
        result = np.where((taps == largest) & inside, row * columns.input_length + column, result)
    return result


def chunk_of(channels: int) -> int:
    """Numbers under a window that a core with some channels reduces at a time: a face where the last tile is half."""
    return FACE if 0 < channels % TILE <= FACE else TILE


WIDEST = 8  # tiles of channels that are reduced at once
WIDEST_SUMS = 4  # the same, where sums of several parts of a window are kept in 32 bits
ENTRY_BYTES = 6  # of a list in DRAM for each row of the result, by the library's estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSizes:
    """The sizes that decide the buffers."""

    taps: int  # Numbers under a window
    channels: int
    out_shard: tuple[int, int]  # Rows and columns of a shard of the result
    data_format: DataFormat
    tiled: bool  # The result is in tiles
    averaged: bool = False  # Numbers are averaged
    scalars: bool = False  # by scalars that differ from window to window
    index_format: DataFormat | None = None  # Format of the places of maxima; None without them
    config_tensor_in_dram: bool = False  # The lists that say where windows begin are read from DRAM

    @property
    def channel_tiles(self) -> int:
        """Tiles of a core's channels."""
        return div_up(self.channels, TILE)

    @property
    def in_chunks(self) -> bool:
        """Whether a window is reduced in several parts."""
        return self.taps > chunk_of(self.channels)

    @property
    def window_bytes(self) -> int:
        """Bytes of the sticks under a window, whole tiles."""
        if self.index_format is not None:
            return BFLOAT16.tile_bytes
        rows = self.taps if self.taps <= FACE else TILE  # rows of one face are tilized without the rest of their tile
        elements = min(self.channel_tiles, WIDEST_SUMS if self.averaged and self.in_chunks else WIDEST) * TILE * rows
        return 2 * round_up(elements, TILE**2)

    @property
    def out_bytes(self) -> int:
        """Bytes of a shard of the result."""
        rows, columns = self.out_shard
        if self.tiled:
            return rows * columns // TILE**2 * self.data_format.tile_bytes
        return rows * columns * (BFLOAT16.element_bytes or 0)

    @property
    def l1_bytes(self) -> int:
        """Bytes of all buffers except views of inputs."""
        pre_tilized = BFLOAT16.tile_bytes * self.channel_tiles if self.tiled else 0
        lists = self.list_bytes + 2 if self.config_tensor_in_dram else 0
        windows, scalars = 2 * BUFFERING * self.window_bytes, BUFFERING * (1 + self.scalars) * BFLOAT16.tile_bytes
        if self.config_tensor_in_dram and self.scalars:
            lists += self.list_bytes
        places = sum(self.place_tiles.values()) + round_up(self.place_bytes, TILE)
        rest = scalars + BFLOAT16.tile_bytes + windows + pre_tilized + lists
        return rest + places + round_up(self.out_bytes, TILE)

    @property
    def list_bytes(self) -> int:
        """Bytes of a list with an entry for each row of the result."""
        return ENTRY_BYTES * self.out_shard[0]

    @property
    def place_tiles(self) -> dict[str, int]:
        """Bytes of the tiles in which indices are counted, by the name of their buffers."""
        if self.index_format is None:
            return {}
        one = self.index_format.tile_bytes
        steps = ("right", "down", "up", "working", *(("right_within", "down_within") if self.in_chunks else ()))
        tiles = {"places": one, "packed": BFLOAT16.tile_bytes, "packed_places": one}
        return tiles | {f"{step}_places": one for step in steps}

    @property
    def place_bytes(self) -> int:
        """Bytes of a shard of the indices."""
        rows, columns = self.out_shard
        return 0 if self.index_format is None else rows * columns * (self.index_format.element_bytes or 0)


def pool_buffers(
    sizes: PoolSizes,
    *,
    halo: str,
    halo_bytes: int,
    lists: Sequence[PlanTensor],
    outputs: Sequence[str],
    cores: CoreRangeSet,
) -> tuple[CircularBuffer, ...]:
    """The buffers of a pool; each of two readers has half of the first list, which has the first sticks of windows.

    ``lists`` may have a second list, of scalars; ``outputs`` are the results and, if requested, the indices.
    """
    tile, windows = BFLOAT16.tile_bytes, BUFFERING * sizes.window_bytes
    indices, *scalars = lists
    in_dram, list_bytes = sizes.config_tensor_in_dram, row_bytes(indices.spec)
    untilized = {"untilized": tile * sizes.channel_tiles} if sizes.tiled else {}
    several = {"second_scalar": BUFFERING * tile} if sizes.scalars else {}
    places = [
        buffer(name, size, BFLOAT16 if name == "packed" else sizes.index_format or UINT16, cores)
        for name, size in sizes.place_tiles.items()
    ]
    results = [buffer("output", sizes.out_bytes, sizes.data_format, cores, outputs[0])]
    if sizes.index_format is not None:
        results.append(buffer("output_places", sizes.place_bytes, sizes.index_format, cores, outputs[1]))
    for scalar in scalars:
        size = sizes.list_bytes if in_dram else row_bytes(scalar.spec)
        results.append(buffer("scalars", size, UINT32, cores, None if in_dram else scalar.name))
    return (
        *sized_buffers({"scalar": BUFFERING * tile, **several, "least": tile}, BFLOAT16, cores),
        buffer("sticks", halo_bytes, BFLOAT16, cores, halo),
        buffer(
            "reader_indices",
            list_bytes if in_dram else round_up(list_bytes // 2, 4),
            UINT16,
            cores,
            None if in_dram else indices.name,
        ),
        *sized_buffers({"windows_0": windows, "windows_1": windows}, BFLOAT16, cores),
        *places,
        *sized_buffers(untilized, BFLOAT16, cores),
        *results,
    )
