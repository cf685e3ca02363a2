"""Weights and bias as the matrix unit wants them: one matrix of K rows and output-channel columns, made on the host.

A raw weight ([C, O / groups, kh, kw], of an ordinary convolution [O, C / groups, kh, kw]) becomes a dense matrix whose
columns are output channels and whose rows are (kernel row, kernel column, input channel) in the order in which the
sharding scheme walks through K. Groups are spelled out with zeros and the kernel of a transposed convolution is
mirrored, so that a plain convolution over its frame, at stride 1, gives it.
Source of the rules: uploads of ttnn 0.81.1, intercepted, on Wormhole and Blackhole.
"""

from dataclasses import dataclass, replace
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

_LAY_OUT_SECONDS: Final = 3e-9  # what numpy takes for a number of a matrix
_LAID_OUT_TOGETHER: Final = 1 << 18  # numbers that one thread lays out at a time: for fewer another comes too late


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
    whole_blocks: bool = False  # Whether every kernel row of a HEIGHT_SHARDED layout is a whole K block, too
    data_format: DataFormat  # The weights dtype

    def __post_init__(self) -> None:
        """Refuses contradictions between the sizes."""
        for name, channels in (("in_channels", self.in_channels), ("out_channels", self.out_channels)):
            if self.groups < 1 or channels % self.groups:
                raise ValueError(f"groups must divide {name}, but {self.groups} does not divide {channels}")
        if self.padded_in_channels < self.in_channels or self.padded_in_channels % self.shards:
            raise ValueError(
                f"padded_in_channels must be a multiple of the {self.shards} channel shards and hold "
                f"{self.in_channels} channels, not {self.padded_in_channels}"
            )
        if self.padded_out_channels < self.out_channels or self.padded_out_channels % TILE:
            raise ValueError(
                f"padded_out_channels must be whole tiles of {TILE} and hold {self.out_channels} channels, "
                f"not {self.padded_out_channels}"
            )

    @property
    def raw_shape(self) -> tuple[int, int, int, int]:
        """Shape of the raw weight."""
        first, second = self.in_channels // prod(self.folded), self.out_channels
        if self.out_first:
            first, second = second, first
        return (first, second // self.groups, *(self.raw_kernel or self.kernel))

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
        padded = self.scheme in (TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.BLOCK_SHARDED)
        return round_up(rows, TILE) if padded and not self._joins_rows else rows

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


def prepared_weights(op: PrepareWeights, weights: Array) -> Array:
    """Raw weights as the matrix that a device holds."""
    return prepare_weights(weights, op.layout).reshape(op.layout.padded_shape)


def prepared_bias(op: PrepareBias, bias: Array) -> Array:
    """A raw bias as the row of tiles that a device holds."""
    return prepare_bias(bias, op.layout).reshape(op.layout.bias_padded_shape)


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
    if layout.folded != (1, 1):
        weights, layout = _folded(_in_first(weights, layout), layout)
    compiled = _laid_out_compiled(weights, layout)
    if compiled is not None:
        return compiled
    weights = _in_first(weights, layout)
    fmt = layout.data_format
    kernel_rows, kernel_cols = layout.kernel
    values = quantize(weights, fmt) if fmt.storage.itemsize < weights.itemsize and not fmt.is_block else weights
    kernels = values.transpose(2, 3, 0, 1)
    if layout.mirror:
        kernels = kernels[::-1, ::-1]
    matrix = np.zeros((layout.rows, layout.padded_out_channels), values.dtype)
    used_rows = kernel_cols * layout.shard_channels
    for shard in range(layout.shards):
        for kernel_row in range(kernel_rows):
            start = shard * layout.shard_rows + kernel_row * layout.kernel_row_rows
            target = matrix[start : start + used_rows].reshape(kernel_cols, layout.shard_channels, -1)
            _fill(bit_patterns(target), bit_patterns(kernels[kernel_row]), shard, layout)
    return quantize(matrix, fmt)


def _laid_out_compiled(weights: Array, layout: WeightsLayout) -> Array | None:
    """A weight of block floats as `prepare_weights` lays it out, by compiled loops; None where loops do not pay."""
    fmt, shape = layout.data_format, (layout.rows, layout.padded_out_channels)
    fits = fmt.is_block and weights.dtype in (np.float32, fmt.storage)
    if not fits or not worth_loading("ops.programs.conv2d.weight_loops", _LAY_OUT_SECONDS * prod(shape)):
        return None
    loops = loops_of("ops.programs.conv2d.weight_loops")
    taps, in_group = prod(layout.kernel), layout.in_channels // layout.groups
    in_part = in_group if layout.out_first else 1
    words = _words(weights, layout.in_channels // in_part, in_part * taps)
    filled = layout.groups == 1 and shape == (layout.in_channels * taps, layout.out_channels)
    result = (np.empty if filled else np.zeros)(shape, fmt.storage)
    sizes = (8 * weights.itemsize, layout.kernel[1], taps, in_part, in_group)
    strides = (layout.shard_channels, layout.shard_rows, layout.kernel_row_rows, layout.shard_channels)
    done = list[bool]()

    def partition_conv(first: int) -> None:
        last = min(first + step, several)
        args = (words, first, last, sizes, layout.mirror, strides, fmt.mantissa_bits, result.view(np.uint16))
        done.append(loops.partition_conv(*args))

    several = len(words) * words.shape[2]
    step = max(1, _LAID_OUT_TOGETHER // (weights.size // several))
    on_all_cores(partition_conv, range(0, several, step))
    return result if all(done) else None


def _words(weights: Array, parts: int, numbers: int) -> Array:
    """The bit patterns of a weight as read-only unsigned [parts, output channels, words].

    A word holds one, two or four of the numbers that are contiguous in each part's output channel.
    """
    size = gcd(numbers * weights.itemsize, 8)
    flat = np.ascontiguousarray(weights).reshape(-1).view(f"u{size}")
    words = flat.reshape(parts, -1, numbers * weights.itemsize // size)
    return to_read(words if words.flags.aligned else words.copy())


def _in_first(weights: Array, layout: WeightsLayout) -> Array:
    """[C, O / groups, kh, kw] of [O, C / groups, kh, kw], or as it is."""
    if not layout.out_first:
        return weights
    (_, ins, *kernel), outs = layout.raw_shape, layout.out_channels // layout.groups
    grouped = weights.reshape(layout.groups, outs, ins, *kernel).swapaxes(1, 2)
    return grouped.reshape(layout.groups * ins, outs, *kernel)


def _folded(weights: Array, layout: WeightsLayout) -> tuple[Array, WeightsLayout]:
    """[C, O / groups, kh, kw] as the weight [sh * sw * C, O, kh / sh, kw / sw] of a folded image, filled with zeros.

    Groups are spelled out.
    """
    channels, outs, *kernel = weights.shape
    (down, across), (rows, columns) = layout.folded, layout.kernel
    dense = np.zeros((channels, layout.out_channels, rows * down, columns * across), weights.dtype)
    ins = channels // layout.groups
    for group in range(layout.groups):
        rows_of, columns_of = slice(group * ins, (group + 1) * ins), slice(group * outs, (group + 1) * outs)
        dense[rows_of, columns_of, : kernel[0], : kernel[1]] = weights[rows_of]
    split = dense.reshape(channels, layout.out_channels, rows, down, columns, across)
    folded = split.transpose(3, 5, 0, 1, 2, 4).reshape(layout.in_channels, layout.out_channels, rows, columns)
    return folded, replace(layout, groups=1, out_first=False)


def prepare_bias(bias: Array, layout: WeightsLayout) -> Array:
    """Lay out a bias of O values as a row of tiles in the weights dtype, [32, padded_out_channels]; rows 1 to 31 are 0.

    The storage is that of ``layout.data_format``. An ArgumentError refuses another number of values.
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


def _fill(target: Array, kernel_row: Array, shard: int, layout: WeightsLayout) -> None:
    """Copy one kernel row's taps [kw, C, O / groups] into a shard's zeros [kw, shard_channels, columns]."""
    first = shard * layout.shard_channels
    last = min(first + layout.shard_channels, layout.in_channels)
    ins, outs = layout.in_channels // layout.groups, layout.out_channels // layout.groups
    for group in range(first // ins, -(-last // ins)):
        begin, end = max(first, group * ins), min(last, (group + 1) * ins)
        target[:, begin - first : end - first, group * outs : (group + 1) * outs] = kernel_row[:, begin:end]


@dataclass(frozen=True, slots=True)
class AsWanted(DeviceOp):
    """The record of a tensor that was only described: prepared as its reader wants it."""


def misfit(prepared: DeviceOp | None, spec: TensorSpec, wanted: PrepareWeights | PrepareBias) -> str | None:
    """Why a tensor on the device is not what its reader takes it for, with both sides; None if it is.

    `prepared` is the operation that prepared the tensor; None if none did.
    """
    if isinstance(prepared, AsWanted):
        return None
    layout = wanted.layout
    if isinstance(wanted, PrepareBias):
        if prepared is None:
            return None if spec.shape == layout.bias_logical_shape else f"it was not prepared, {_shape(spec)}"
        if isinstance(prepared, PrepareBias) and prepared.layout.out_channels == layout.out_channels:
            return None  # columns behind them are nobody's
        return f"prepared {_bias(prepared)}, used {_bias(wanted)}"
    if prepared is None:
        plain = spec.shape == layout.logical_shape and _is_plain(row_order(layout))
        return None if plain else f"it was not prepared, {_shape(spec)}, used for {described(layout)}"
    if not isinstance(prepared, PrepareWeights):
        return f"prepared {_bias(prepared)}, used as weights for {described(layout)}"
    # The kernel is mirrored while the weights are prepared
    kernels = [(each.raw_shape, each.groups, each.out_first) for each in (prepared.layout, layout)]
    if kernels[0] == kernels[1] and _same_rows(prepared.layout, layout):
        return None
    return f"prepared for {described(prepared.layout)}, used for {described(layout)}"


def described(layout: WeightsLayout) -> str:
    """The parts of a layout that decide whether weights fit, as text."""
    function = "conv2d" if layout.out_first else "conv_transpose2d"
    kernel = layout.raw_kernel or layout.kernel
    groups = "" if layout.groups == 1 else f" in {layout.groups} groups"
    scheme = "a plain matmul" if layout.scheme is TensorMemoryLayout.INTERLEAVED else layout.scheme.name
    parts = "" if layout.shards == 1 else f" on {layout.shards} cores of {layout.shard_channels} channels"
    channels = layout.raw_shape[1 if layout.out_first else 0] * (layout.groups if layout.out_first else 1)
    order = " with full_inner_dim" if layout.full_inner_dim else ""
    return (
        f"{function} {channels} -> {layout.out_channels} channels{groups}, kernel {kernel}, {scheme}{parts}{order} "
        f"[{layout.rows} x {layout.padded_out_channels}]"
    )


def row_order(layout: WeightsLayout) -> Integers:
    """The kernel tap and input channel, tap * channels + channel, of each row of the matrix; -1 for a row of zeros.

    Taps that were folded into channels count as taps of the raw kernel.
    """
    order = np.full(layout.rows, -1, np.int64)
    rows, columns = layout.kernel
    channels = np.arange(layout.shard_channels)
    for shard in range(layout.shards):
        real = shard * layout.shard_channels + channels
        for tap in range(rows * columns):
            start = shard * layout.shard_rows + tap // columns * layout.kernel_row_rows
            start += tap % columns * layout.shard_channels
            order[start : start + layout.shard_channels] = _raw_rows(layout, divmod(tap, columns), real)
    return order


def _raw_rows(layout: WeightsLayout, tap: tuple[int, int], rows: Integers) -> Integers:
    """The rows of the raw weight for some input channels of a tap; -1 for none."""
    channels = layout.in_channels // prod(layout.folded)
    position, channel = np.divmod(rows, channels)
    row = tap[0] * layout.folded[0] + position // layout.folded[1]
    column = tap[1] * layout.folded[1] + position % layout.folded[1]
    height, width = layout.raw_kernel or layout.kernel
    there = (rows < layout.in_channels) & (row < height) & (column < width)
    return np.where(there, (row * width + column) * channels + channel, -1)


def _same_rows(prepared: WeightsLayout, wanted: WeightsLayout) -> bool:
    prepared_rows, read = row_order(prepared), row_order(wanted)
    return (
        prepared.padded_out_channels == wanted.padded_out_channels
        and len(prepared_rows) >= len(read)
        and np.array_equal(prepared_rows[: len(read)], read)
    )


def _is_plain(order: Integers) -> bool:
    """Whether the rows are taps and channels in order, followed only by zeros that fill the last tile."""
    count = int((order >= 0).sum())
    return len(order) - count < TILE and np.array_equal(order[:count], np.arange(count))


def _bias(op: DeviceOp) -> str:
    if not isinstance(op, PrepareBias):
        return "as weights" if isinstance(op, PrepareWeights) else "for another program"
    return f"as a bias of {op.layout.out_channels} channels in {op.layout.padded_out_channels} columns"


def _shape(spec: TensorSpec) -> str:
    return f"its shape is {list(spec.shape)}"
