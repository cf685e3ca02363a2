"""The programs of group_norm (tt-metal 0.81.1): values, and circular buffers of the program on shards.

A core normalizes the channels of whole groups; the cores that share an image exchange their sums. Masks select the
columns of a group in the tiles that it shares with others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.cores import CoreRangeSet
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, FLOAT32, Array, DataFormat, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.op_model import Ends, ValuesContext, given
from ops.programs.buffer_shapes import BUFFERING, shard_view, tile_buffer
from ops.programs.normalization.tile_math import TileMath, logical
from ops.programs.normalization.work import CoreWork, Normalization

CENTERED = 2  # tiles of differences of the program of two passes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupNorm(Normalization):
    """Channels of a group less their mean, over the root of their variance and ``epsilon``, scaled and shifted."""

    shape: tuple[int, int, int, int]  # Of the images
    groups: int
    epsilon: float
    data_format: DataFormat
    weight_format: DataFormat | None
    bias_format: DataFormat | None
    mask_format: DataFormat | None
    negative_mask_format: DataFormat | None
    fidelity_phases: int
    fp32_dest: bool
    cores: CoreRangeSet
    core_tiles: tuple[int, int]  # Rows and columns of tiles of a shard
    block_tiles: tuple[int, int]  # Rows of tiles of an image, and columns of a group, in a shard
    parts: int  # Cores that share the channels; weights are padded for each
    partners: int  # Cores that share an image
    from_rows: bool  # The tensor is in ROW_MAJOR layout
    to_rows: bool  # The result is
    passes: int = 0  # How often each tile of an interleaved tensor is read
    padded: bool = False  # Images end within tiles
    welford: bool = False  # The program of two passes by the vector unit, which keeps the masks and sums of all groups

    @property
    def between(self) -> DataFormat:
        """Format of the buffers between steps."""
        return FLOAT32 if self.data_format == FLOAT32 else BFLOAT16

    @property
    def makes_rows(self) -> bool:
        """Whether rows become tiles and rows again, in two buffers."""
        return self.from_rows and self.to_rows and self.negative_mask_format is None and not self.welford

    @property
    def own_groups(self) -> int:
        """Groups of a core."""
        return max(1, self.groups // self.parts)

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The normalized images [N, 1, H*W, C]; sums of a group are exact before they are rounded."""
        math = TileMath.of(
            context, fidelity_phases=self.fidelity_phases, fp32_dest=self.fp32_dest, between=self.between
        )
        source, remaining = logical(given(inputs[0]), self.shape), iter(inputs[1:])
        batch, _, pixels, channels = self.shape
        weight, bias = (None if known is None else given(next(remaining)) for known in self._vectors)
        grouped = source.reshape(batch, pixels, self.groups, -1).transpose(0, 2, 1, 3)
        numbers = math.read(grouped.reshape(batch * self.groups, -1), self.data_format)
        numbers = math.stored(math.added(numbers, -self._means(numbers, math)))
        variances = self._means(math.stored(math.multiplied(numbers, numbers)), math)
        dst = math.multiplied(numbers, math.stored(math.inverse_roots(variances, self.epsilon)))
        dst = dst.reshape(batch, self.groups, pixels, -1).transpose(0, 2, 1, 3).reshape(-1, channels)
        if weight is not None and self.weight_format is not None:
            dst = math.multiplied(math.stored(dst), self._row(weight, self.weight_format, channels, math))
        if bias is not None and self.bias_format is not None:
            dst = math.added(math.stored(dst), self._row(bias, self.bias_format, channels, math))
        return math.packed(np.ascontiguousarray(dst), self.data_format).reshape(source.shape)

    @property
    def _vectors(self) -> tuple[DataFormat | None, DataFormat | None]:
        return self.weight_format, self.bias_format

    def _row(self, vector: Array, data_format: DataFormat, channels: int, math: TileMath) -> Array:
        """[1, channels] of a vector that is padded for each part."""
        parts = math.read(vector.reshape(self.parts, -1), data_format)
        return np.ascontiguousarray(parts[:, : channels // self.parts]).reshape(1, channels)

    @staticmethod
    def _means(numbers: Array, math: TileMath) -> Array:
        return math.stored(np.asarray(numbers.mean(axis=1, keepdims=True, dtype=np.float64), np.float32))

    def core_work(self, ends: Ends) -> CoreWork:
        """Masked sums, differences and squares of the tiles of each group, then a pass over them all."""
        (high, wide), (block_high, block_wide) = self.core_tiles, self.block_tiles
        groups = self.own_groups
        tiles = high * max(wide, groups * block_wide)
        return CoreWork(
            tiles=tiles,
            reads=float(self.passes * tiles),
            multiplies=3 + (self.weight_format is not None),
            sums=2 + (self.bias_format is not None),
            reductions=2,
            rows=groups * (high // block_high),
            partials=2 * groups * (high // block_high),
            partners=self.partners,
        )

    def placement(self) -> tuple[CoreRangeSet, int, DataFormat]:
        """The cores, the fidelity phases and the format between steps."""
        return self.cores, self.fidelity_phases, self.between


def group_buffers(
    op: GroupNorm, source: PlanTensor, output: PlanTensor, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """The buffers in order of allocation; ``output`` is the source where the result is written into it."""
    (high, wide), (block_high, block_wide) = op.core_tiles, op.block_tiles
    untilized = op.to_rows and op.negative_mask_format is None
    repacked = source.spec.shards.shape[1] % TILE != 0
    scalers = [] if op.welford else ["global_scaler"]
    held = op.own_groups if op.welford else BUFFERING  # masks
    rows: list[tuple[str, int, DataFormat | None]] = [
        ("tiles", high * wide, op.data_format),
        ("result_tiles", high * wide if untilized else 0, op.data_format),
        ("centered", CENTERED, op.between) if op.welford else ("scaler", 1, BFLOAT16),
        *[(name, 1, BFLOAT16) for name in ("epsilon", *scalers)],
        ("weight", wide, op.weight_format),
        ("bias", wide, op.bias_format),
        ("mask", held * block_wide, op.mask_format),
        ("negative_mask", BUFFERING * block_wide, op.negative_mask_format),
        ("repacked", BUFFERING * wide if repacked else 0, op.data_format),
        *(two_pass_rows(op) if op.welford else one_pass_rows(op, block_high * block_wide)),
        ("ones", 1, BFLOAT16),
    ]
    views = [source] if output.name == source.name else [source, output]
    return (
        *(shard_view(tensor.name, tensor, spec, op.cores) for tensor in views),
        *(tile_buffer(name, tiles, fmt, op.cores) for name, tiles, fmt in rows if tiles and fmt is not None),
    )


def one_pass_rows(op: GroupNorm, block_tiles: int) -> list[tuple[str, int, DataFormat | None]]:
    """A block of tiles, sums, and the masks of the last tiles of images that end within them."""
    names = ["partial", "gathered", "global", "inverse_roots", *(["last_mask", "last_sums"] if op.padded else [])]
    return [("centered", block_tiles, op.between), *[(name, 1, op.between) for name in names]]


def two_pass_rows(op: GroupNorm) -> list[tuple[str, int, DataFormat | None]]:
    """A tile, a core's means and variances, and the means, variances and inverse roots of each group."""
    counts = {"x": 1, "partial": BUFFERING, "gathered": BUFFERING * op.own_groups, "inverse_roots": op.own_groups}
    return [(name, tiles, op.between) for name, tiles in counts.items()]


def tiles_of_shard(shape: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of tiles of a shard."""
    return div_up(shape[0], TILE), div_up(shape[1], TILE)
