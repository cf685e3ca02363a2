"""Weights and bias as the matrix unit reads them: a matrix of K rows and output-channel columns, prepared on the host.

A raw weight ([C, O / groups, kh, kw], of an ordinary convolution [O, C / groups, kh, kw]) becomes a dense matrix whose
columns are output channels. `row_places` says which row each kernel tap and input channel becomes: the order in which
the sharding scheme walks through K. Groups are spelled out with zeros, and the kernel of a transposed convolution is
mirrored, so that an ordinary convolution over its frame, at stride 1, computes it.
Source of the rules: uploads of ttnn 0.81.1, intercepted, on Wormhole and Blackhole.
"""

from dataclasses import dataclass
from math import gcd, prod
from typing import Final

import numpy as np

from device.errors import ArgumentError
from device.host.compiling import loops_of, worth_loading
from device.host.threads import on_all_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, TensorMemoryLayout
from device.numbers.formats import Array, DataFormat, Integers, bit_patterns, quantize, round_up, to_read
from device.plan import DeviceOp

NUMBER_SECONDS: Final = 3e-9  # what numpy takes for a number of a matrix
THREAD_NUMBERS: Final = 1 << 18  # numbers that one thread places at a time: for fewer, another thread comes too late
HEIGHT_OR_BLOCK: Final = (TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.BLOCK_SHARDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsLayout:
    """The layout of a prepared weight: all that the preparation needs to know of a plan."""

    in_channels: int
    out_channels: int
    kernel: tuple[int, int]  # (kh, kw)
    groups: int = 1  # Groups of the convolution; they divide C and O
    out_first: bool = False  # Whether the raw weight is that of an ordinary convolution, [O, C / groups, kh, kw]
    # Rows and columns of an ordinary convolution's windows that were folded into channels: ``in_channels`` are those of
    # all their positions, and ``kernel`` counts them
    folded: tuple[int, int] = (1, 1)
    raw_kernel: tuple[int, int] | None = None  # The kernel of the raw weight where some are folded; None for ``kernel``
    # Whether the kernel of an output channel, which meets one input channel, is repeated for all ``in_channels`` rows,
    # but for those that are more than ``padded_in_channels``
    repeated: bool = False
    mirror: bool = True  # Whether kh and kw are flipped here (False: the caller's kernel is flipped already)
    # Whether HEIGHT_SHARDED and BLOCK_SHARDED pad all kernel rows of a shard together, not each by itself
    full_inner_dim: bool = False
    # HEIGHT_SHARDED and BLOCK_SHARDED pad every kernel row to whole tiles, BLOCK_SHARDED for one shard of channels
    # after the other; WIDTH_SHARDED and INTERLEAVED (a plain matmul) run through the kernel unpadded
    scheme: TensorMemoryLayout
    padded_in_channels: int  # C rounded up as the activation shards have it; channel_shards divide it
    padded_out_channels: int  # O rounded up to what the output cores and sub-blocks take: the columns, whole tiles
    channel_shards: int = 1  # Cores that share the input channels; read for BLOCK_SHARDED only
    k_block_rows: int = TILE  # Rows of one K block; the matrix of a WIDTH_SHARDED layout has whole blocks
    whole_blocks: bool = False  # Whether also every kernel row of a HEIGHT_SHARDED layout is a whole K block
    data_format: DataFormat  # The weights dtype

    @property
    def raw_shape(self) -> tuple[int, int, int, int]:
        """Shape of the raw weight."""
        first, second = self.raw_channels, self.out_channels
        if self.out_first:
            first, second = second, first
        second = 1 if self.repeated else second
        return (first, second // self.groups, *(self.raw_kernel or self.kernel))

    @property
    def raw_channels(self) -> int:
        """Input channels of the raw weight, of all groups."""
        return min(self.in_channels // prod(self.folded), self.padded_in_channels)

    @property
    def shards(self) -> int:
        """Shards of input channels that the rows are ordered by."""
        return self.channel_shards if self.scheme is TensorMemoryLayout.BLOCK_SHARDED else 1

    @property
    def shard_channels(self) -> int:
        """Padded input channels of one shard."""
        return self.padded_in_channels // self.shards

    @property
    def kernel_row_rows(self) -> int:
        """Matrix rows from one kernel row of a shard to the next."""
        rows = self.kernel[1] * self.shard_channels
        if self.whole_blocks and self.scheme is TensorMemoryLayout.HEIGHT_SHARDED:
            return round_up(rows, self.k_block_rows)
        return round_up(rows, TILE) if self.scheme in HEIGHT_OR_BLOCK and not self._joins_rows else rows

    @property
    def shard_rows(self) -> int:
        """Matrix rows from one shard to the next."""
        rows = self.kernel_row_rows * self.kernel[0]
        return round_up(rows, TILE) if self._joins_rows else rows

    @property
    def _joins_rows(self) -> bool:
        return self.full_inner_dim and self.scheme is not TensorMemoryLayout.WIDTH_SHARDED

    @property
    def rows(self) -> int:
        """Rows of the matrix: whole tiles, and for WIDTH whole K blocks.

        HEIGHT and BLOCK weights are never filled to whole K blocks, not even where full_inner_dim makes blocks larger
        than the weights were prepared for.
        """
        rows = self.shard_rows * self.shards
        return round_up(rows, self.k_block_rows if self.scheme is TensorMemoryLayout.WIDTH_SHARDED else TILE)

    @property
    def logical_shape(self) -> tuple[int, int, int, int]:
        """Shape the prepared tensor shows to the user; the padding is not part of it."""
        return (1, 1, self.in_channels * prod(self.kernel), self.out_channels)

    @property
    def padded_shape(self) -> tuple[int, int, int, int]:
        """Shape of the prepared tensor in memory."""
        return (1, 1, self.rows, self.padded_out_channels)

    @property
    def bias_logical_shape(self) -> tuple[int, int, int, int]:
        """Shape the prepared bias shows to the user."""
        return (1, 1, 1, self.out_channels)

    @property
    def bias_padded_shape(self) -> tuple[int, int, int, int]:
        """Shape of the prepared bias in memory: one row of tiles."""
        return (1, 1, TILE, self.padded_out_channels)


@dataclass(frozen=True, slots=True)
class PrepareWeights(DeviceOp):
    """Raw weights become a matrix (`prepare_weights`)."""

    layout: WeightsLayout


@dataclass(frozen=True, slots=True)
class PrepareBias(DeviceOp):
    """A raw bias becomes a row of tiles (`prepare_bias`)."""

    layout: WeightsLayout


@dataclass(frozen=True, slots=True)
class PrepareBand(DeviceOp):
    """Some channels of a raw weight or bias are prepared as if there were no others."""

    prepare: PrepareWeights | PrepareBias
    axis: int  # Of the raw tensor's channels
    channels: range


def prepared(op: PrepareWeights | PrepareBias | PrepareBand, raw: Array) -> Array:
    """A raw weight or bias as a device holds it."""
    if isinstance(op, PrepareBand):
        return prepared(op.prepare, raw.take(op.channels, op.axis))
    if isinstance(op, PrepareBias):
        return prepare_bias(raw, op.layout).reshape(op.layout.bias_padded_shape)
    return prepare_weights(raw, op.layout).reshape(op.layout.padded_shape)


@dataclass(frozen=True, slots=True)
class AsWanted(DeviceOp):
    """The record of a tensor that was only described: prepared as its reader wants it."""


def row_places(layout: WeightsLayout) -> Integers:
    """[kh, kw, C] the row of the matrix for each tap and input channel of the raw kernel, before it is mirrored."""
    height, width = layout.raw_kernel or layout.kernel
    row, column, channel = np.ogrid[:height, :width, : layout.raw_channels]
    (row, down), (column, across) = np.divmod(row, layout.folded[0]), np.divmod(column, layout.folded[1])
    folded_channel = (down * layout.folded[1] + across) * layout.raw_channels + channel
    shard, channel = np.divmod(folded_channel, layout.shard_channels)
    places: Integers = (
        shard * layout.shard_rows + row * layout.kernel_row_rows + column * layout.shard_channels + channel
    )
    return places


def row_order(layout: WeightsLayout) -> Integers:
    """The raw kernel tap and input channel, tap * channels + channel, of each row of the matrix; -1 for zeros."""
    places, order = row_places(layout).ravel(), np.full(layout.rows, -1, np.int64)
    order[places] = np.arange(len(places))
    return order


def prepare_weights(weights: Array, layout: WeightsLayout) -> Array:
    """Lay out and convert a raw weight [C, O / groups, kh, kw] (or out channels first) of float32 or bfloat16.

    The result is [rows, padded_out_channels] in ``layout.data_format.storage``, padded with zeros. Block floats share
    exponents among 16 output channels of a row. An ArgumentError refuses a weight of another shape.
    """
    if weights.shape != layout.raw_shape:
        sides = "(out_channels, in_channels / groups" if layout.out_first else "(in_channels, out_channels / groups"
        raise ArgumentError(
            f"weight_tensor must have the shape {sides}, kernel height, kernel width) = "
            f"{layout.raw_shape}, not {weights.shape}"
        )
    if weights.shape[0] % layout.groups:
        raise ArgumentError(f"weight_tensor: {weights.shape[0]} channels are no {layout.groups} groups")
    if layout.repeated:
        weights = np.repeat(weights, layout.raw_channels, axis=1)
    places = row_places(layout)[:: -1 if layout.mirror else 1, :: -1 if layout.mirror else 1]
    compiled = _prepared_by_loops(weights, places, layout)
    if compiled is not None:
        return compiled
    fmt, groups = layout.data_format, layout.groups
    values = quantize(weights, fmt) if fmt.storage.itemsize < weights.itemsize and not fmt.is_block else weights
    ins, outs, kernel = layout.raw_channels // groups, layout.out_channels // groups, weights.shape[2:]
    values = values.reshape(groups, *((outs, ins) if layout.out_first else (ins, outs)), *kernel)
    raw = bit_patterns(values).transpose((3, 4, 0, 2, 1) if layout.out_first else (3, 4, 0, 1, 2))
    matrix = np.zeros((layout.rows, layout.padded_out_channels), values.dtype)
    filled = bit_patterns(matrix)[:, : layout.out_channels].reshape(-1, groups, outs)
    filled[places.reshape(*kernel, groups, ins), np.arange(groups)[:, None]] = raw
    return quantize(matrix, fmt)


def _prepared_by_loops(weights: Array, places: Integers, layout: WeightsLayout) -> Array | None:
    """A weight of block floats as `prepare_weights` lays it out, by compiled loops; None where loops do not pay."""
    fmt, shape = layout.data_format, (layout.rows, layout.padded_out_channels)
    fits = fmt.is_block and weights.dtype in (np.float32, fmt.storage)
    if not fits or not worth_loading("ops.programs.conv2d.weight_loops", NUMBER_SECONDS * prod(shape)):
        return None
    loops, in_group = loops_of("ops.programs.conv2d.weight_loops"), layout.raw_channels // layout.groups
    in_part = in_group if layout.out_first else 1
    taps = places.shape[0] * places.shape[1]
    words = _words(weights, layout.raw_channels // in_part, in_part * taps)
    result = (np.empty if shape == (places.size, layout.out_channels // layout.groups) else np.zeros)(
        shape, fmt.storage
    )
    rows, sizes = to_read(np.ascontiguousarray(places.reshape(taps, -1))), (8 * weights.itemsize, in_part, in_group)
    done = list[bool]()

    def place(first: int) -> None:
        last = min(first + step, several)
        done.append(loops.place_rows(words, first, last, sizes, rows, fmt.mantissa_bits, result.view(np.uint16)))

    several = len(words) * words.shape[2]
    step = max(1, THREAD_NUMBERS // (weights.size // several))
    on_all_cores(place, range(0, several, step))
    return result if all(done) else None


def _words(weights: Array, parts: int, numbers: int) -> Array:
    """The bit patterns of a weight as read-only unsigned [parts, output channels, words].

    A word has one, two or four values that are contiguous in each part's output channel.
    """
    size = gcd(numbers * weights.itemsize, 8)
    flat = np.ascontiguousarray(weights).reshape(-1).view(f"u{size}")
    words = flat.reshape(parts, -1, numbers * weights.itemsize // size)
    return to_read(words if words.flags.aligned else words.copy())


def prepare_bias(bias: Array, layout: WeightsLayout) -> Array:
    """Lay out a bias of O values as a row of tiles in the weights dtype, [32, padded_out_channels]; rows 1 to 31 are 0.

    The storage is that of ``layout.data_format``. Raises ArgumentError for another number of values.
    """
    if bias.size != layout.out_channels:
        raise ArgumentError(
            f"bias_tensor must have out_channels = {layout.out_channels} values, not shape {bias.shape}"
        )
    row = np.zeros(layout.padded_out_channels, np.float32 if layout.data_format.is_block else bias.dtype)
    row[: layout.out_channels] = bias.reshape(-1)
    out = np.zeros((TILE, layout.padded_out_channels), layout.data_format.storage)
    out[0] = quantize(row, layout.data_format)
    return out


def misfit(prepared: DeviceOp | None, spec: TensorSpec, wanted: PrepareWeights | PrepareBias) -> str | None:
    """Why a tensor on the device does not match its reader, with both sides; None if it matches.

    `prepared` is the operation that prepared the tensor, or None.
    """
    if isinstance(prepared, AsWanted):
        return None
    layout, shape = wanted.layout, f"its shape is {list(spec.shape)}"
    if isinstance(wanted, PrepareBias):
        if prepared is None:
            return None if spec.shape == layout.bias_logical_shape else f"it was not prepared, {shape}"
        if isinstance(prepared, PrepareBias) and prepared.layout.out_channels == layout.out_channels:
            return None  # no program reads the columns after the channels
        return f"prepared {_bias(prepared)}, used {_bias(wanted)}"
    order = row_order(layout)
    if prepared is None:
        # Taps and channels in order, followed only by zeros that fill the last tile
        count = int((order >= 0).sum())
        plain = len(order) - count < TILE and np.array_equal(order[:count], np.arange(count))
        fits = plain and spec.shape == layout.logical_shape
        return None if fits else f"it was not prepared, {shape}, used for {described(layout)}"
    if not isinstance(prepared, PrepareWeights):
        return f"prepared {_bias(prepared)}, used as weights for {described(layout)}"
    made = prepared.layout
    # The kernel is mirrored while the weights are prepared
    if (
        (_outside(made), made.padded_out_channels) == (_outside(layout), layout.padded_out_channels)
        and (made.raw_channels == layout.raw_channels or _fewer_channels(made, layout))
        and np.array_equal(row_order(made)[: len(order)], _first_channels(order, layout, made.raw_channels))
    ):
        return None
    return f"prepared for {described(made)}, used for {described(layout)}"


def _outside(layout: WeightsLayout) -> tuple[object, ...]:
    """The common part of two layouts that differ only in their input channels."""
    return layout.raw_kernel or layout.kernel, layout.out_channels, layout.groups, layout.out_first


def _fewer_channels(made: WeightsLayout, layout: WeightsLayout) -> bool:
    """Whether weights may have fewer input channels than the input; zeros then multiply the other channels."""
    plain = made.out_first and made.groups == 1 and made.folded == layout.folded == (1, 1)
    return plain and made.raw_channels < layout.raw_channels


def _first_channels(order: Integers, layout: WeightsLayout, channels: int) -> Integers:
    """The `row_order` of the first input channels of a layout, on the same rows."""
    tap, channel = np.divmod(order, layout.raw_channels)
    return np.where((order >= 0) & (channel < channels), tap * channels + channel, -1)


def described(layout: WeightsLayout) -> str:
    """The parts of a layout that decide whether weights fit, as text."""
    function = "conv2d" if layout.out_first else "conv_transpose2d"
    kernel = layout.raw_kernel or layout.kernel
    groups = "" if layout.groups == 1 else f" in {layout.groups} groups"
    scheme = "a plain matmul" if layout.scheme is TensorMemoryLayout.INTERLEAVED else layout.scheme.name
    parts = "" if layout.shards == 1 else f" on {layout.shards} cores of {layout.shard_channels} channels"
    order = " with full_inner_dim" if layout.full_inner_dim else ""
    return (
        f"{function} {layout.raw_channels} -> {layout.out_channels} channels{groups}, kernel {kernel}, {scheme}{parts}"
        f"{order} [{layout.rows} x {layout.padded_out_channels}]"
    )


def _bias(op: DeviceOp) -> str:
    if not isinstance(op, PrepareBias):
        return "as weights" if isinstance(op, PrepareWeights) else "for another program"
    return f"as a bias of {op.layout.out_channels} channels in {op.layout.padded_out_channels} columns"
