"""What a pool program computes: the largest of the numbers under each window, channel by channel."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from device.cores import CoreRangeSet
from device.host.threads import parts_of
from device.matrix_unit.packer import without_nan
from device.memory.memory_config import FACE, TILE
from device.numbers.formats import BFLOAT16, UINT16, Array, DataFormat, div_up, round_up, whole_groups
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.time.network import hands
from device.time.stages import Stage
from ops.op_model import Ends, ValuesContext, given
from ops.programs.buffer_shapes import BUFFERING, buffer, sized_buffers
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.kernel_costs import ComputeCosts, TransferCosts, pack_tile_cycles, unpack_tile_cycles
from ops.window import PaddedInput


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxPool(DataMovement):
    """A max pool program."""

    frame: PaddedInput  # The images with what lies around them, which is less than every number, and their windows
    channels: int
    channel_cores: int  # Cores that split them
    core_outputs: int
    in_format: DataFormat  # Format of the sticks of the input
    data_format: DataFormat
    tiled: bool  # The result is in tiles

    @property
    def taps(self) -> int:
        """Numbers under a window."""
        return self.frame.rows.kernel * self.frame.columns.kernel

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """[1, 1, N*OH*OW, C] in storage of the result's format, of sticks [..., C].

        A NaN is larger than infinity, or less than its negative, and packed as that.
        """
        rows, columns, batch = self.frame.rows, self.frame.columns, self.frame.batch
        sticks = given(inputs[0]).reshape(-1, given(inputs[0]).shape[-1])[:, : self.channels]
        sticks = sticks[: batch * rows.input_length * columns.input_length]
        images = sticks.reshape(batch, rows.input_length, columns.input_length, self.channels)
        result = np.empty((batch, rows.outputs, columns.outputs, self.channels), self.data_format.storage)

        def pool(band: tuple[int, slice]) -> None:
            image, part = band
            outputs = result[image, part]
            dst = _largest(_framed(images[image], self.frame, part.start, len(outputs)), self.frame, len(outputs))
            if self.data_format.is_block:
                dst = whole_groups(dst)
            packed = context.arithmetic.pack(dst, self.data_format, fp32_dest=False)
            outputs[...] = packed[..., : self.channels]

        parts = list(parts_of(rows.outputs, rows.stride * columns.length * self.channels))
        context.arithmetic.each(pool, [(image, part) for image in range(batch) for part in parts])
        return result.reshape(1, 1, -1, self.channels)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """The steps of the core with the most outputs; all cores but the last have equally many."""
        channels = div_up(self.channels, self.channel_cores)
        tiles, columns, tile_bytes = div_up(channels, TILE), self.frame.columns, self.in_format.tile_bytes
        issue, costs = spec.costs_of(TransferCosts).stateful_issue_cycles, spec.costs_of(ComputeCosts)
        neighbors = columns.kernel if columns.dilation == 1 and tiles <= WIDEST else 1
        sticks_bytes = neighbors * channels * (self.in_format.element_bytes or 0)
        read = self.taps // neighbors * max(issue, sticks_bytes / spec.noc.link_bytes_per_cycle)
        reduced = tiles * (costs.tilize_tile_cycles + unpack_tile_cycles(spec, tile_bytes) + spec.compute.phase_cycles)
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


def _framed(image: Array, frame: PaddedInput, first: int, outputs: int) -> Array:
    """Frame rows [rows, columns, C] under a number of window rows, float32, surrounded by -infinity; without NaN."""
    rows, columns = frame.rows, frame.columns
    begin = first * rows.stride - rows.before  # in the image, where both may lie outside
    end = begin + (outputs - 1) * rows.stride + rows.reach + 1
    inside = slice(max(begin, 0), max(min(end, rows.input_length), 0))
    part = image[inside]
    if (inside.start, inside.stop) == (begin, end) and not columns.before and not columns.after:
        framed = part.astype(np.float32)
    else:
        framed = np.full((end - begin, columns.length, image.shape[-1]), -np.inf, np.float32)
        framed[inside.start - begin :, columns.before :][: len(part), : columns.input_length] = part
    return without_nan(framed.view(np.uint32)).view(np.float32)


def _largest(framed: Array, frame: PaddedInput, outputs: int) -> Array:
    """[outputs, columns, C] maxima of the windows over rows of a frame."""
    rows, columns = frame.rows, frame.columns
    result = np.full((outputs, columns.outputs, framed.shape[-1]), -np.inf, np.float32)
    for down, across in product(range(rows.kernel), range(columns.kernel)):
        below, behind = framed[down * rows.dilation :: rows.stride], across * columns.dilation
        np.maximum(result, below[:outputs, behind :: columns.stride][:, : columns.outputs], out=result)
    return result


WIDEST = 8  # tiles of channels that are reduced at once
ENTRY_BYTES = 6  # of a list in DRAM for each row of the result, by the library's estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSizes:
    """The sizes that decide the buffers."""

    taps: int  # Numbers under a window
    channels: int
    out_shard: tuple[int, int]  # Rows and columns of a shard of the result
    data_format: DataFormat
    tiled: bool  # The result is in tiles
    config_tensor_in_dram: bool = False  # The lists that say where windows begin are read from DRAM

    @property
    def channel_tiles(self) -> int:
        """Tiles of a core's channels."""
        return div_up(self.channels, TILE)

    @property
    def window_bytes(self) -> int:
        """Bytes of the sticks under a window, whole tiles."""
        rows = self.taps if self.taps <= FACE else TILE  # rows of one face are tilized without the rest of their tile
        elements = min(self.channel_tiles, WIDEST) * TILE * rows
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
        lists = ENTRY_BYTES * self.out_shard[0] + 2 if self.config_tensor_in_dram else 0
        windows = 2 * BUFFERING * self.window_bytes
        return 3 * BFLOAT16.tile_bytes + windows + pre_tilized + lists + round_up(self.out_bytes, TILE)


def pool_buffers(
    sizes: PoolSizes, *, halo: str, halo_bytes: int, indices: str, indices_bytes: int, output: str, cores: CoreRangeSet
) -> tuple[CircularBuffer, ...]:
    """The buffers of a pool; each of two readers takes half of `indices`, the lists that say where windows begin."""
    tile, windows = BFLOAT16.tile_bytes, BUFFERING * sizes.window_bytes
    in_dram = sizes.config_tensor_in_dram
    list_bytes = indices_bytes if in_dram else round_up(indices_bytes // 2, 4)
    untilized = {"untilized": tile * sizes.channel_tiles} if sizes.tiled else {}
    return (
        *sized_buffers({"scalar": BUFFERING * tile, "least": tile}, BFLOAT16, cores),
        buffer("sticks", halo_bytes, BFLOAT16, cores, halo),
        buffer("reader_indices", list_bytes, UINT16, cores, None if in_dram else indices),
        *sized_buffers({"windows_0": windows, "windows_1": windows, **untilized}, BFLOAT16, cores),
        buffer("output", sizes.out_bytes, sizes.data_format, cores, output),
    )
