"""The programs of batch_norm (tt-metal 0.81.1): normalizing with given statistics, and averaging the running ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.cores import CoreRangeSet
from device.numbers.formats import BFLOAT16, FLOAT32, Array, DataFormat, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import Ends, ValuesContext, given
from ops.programs.buffer_shapes import BUFFERING, volume_tiles
from ops.programs.eltwise.shards import tiles_of
from ops.programs.normalization.tile_math import TileMath, logical
from ops.programs.normalization.work import CoreWork, Normalization


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchNorm(Normalization):
    """Images less a mean for each channel, over the root of a variance and ``epsilon``, scaled and shifted."""

    shape: tuple[int, ...]  # Of the images
    epsilon: float
    data_format: DataFormat  # Of the images and the result
    statistics_format: DataFormat
    weight_format: DataFormat | None
    bias_format: DataFormat | None
    fidelity_phases: int
    cores: CoreRangeSet

    @property
    def between(self) -> DataFormat:
        """Format of the buffers between steps: float32 if a tensor is."""
        parameters = self.statistics_format, self.weight_format, self.bias_format
        return FLOAT32 if FLOAT32 in (self.data_format, *parameters) else BFLOAT16

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The normalized images [N, C, H, W]."""
        wide = self.between == FLOAT32
        math = TileMath.of(context, fidelity_phases=self.fidelity_phases, fp32_dest=wide, between=self.between)
        source, remaining = logical(given(inputs[0]), self.shape), iter(inputs[3:])
        batch, channels = self.shape[:2]

        def column(values: Array, data_format: DataFormat) -> Array:
            return math.read(logical(values, (1, channels, 1, 1)).reshape(1, channels, 1), data_format)

        images = math.read(source.reshape(batch, channels, -1), self.data_format)
        mean, variance = (column(given(values), self.statistics_format) for values in inputs[1:3])
        dst = math.stored(math.added(images, -mean))
        dst = math.multiplied(dst, math.stored(math.inverse_roots(variance, self.epsilon)))
        if self.weight_format is not None:
            dst = math.multiplied(math.stored(dst), column(given(next(remaining)), self.weight_format))
        if self.bias_format is not None:
            dst = math.added(math.stored(dst), column(given(next(remaining)), self.bias_format))
        return math.packed(dst, self.data_format).reshape(source.shape)

    def core_work(self, ends: Ends) -> CoreWork:
        """A pass for each of the four tensors; the roots of a channel for each image."""
        tiles = div_up(volume_tiles(ends.read), self.cores.num_cores())
        known = (self.weight_format is not None) + (self.bias_format is not None)
        return CoreWork(
            tiles=tiles,
            reads=tiles * (3.0 + known),
            multiplies=1 + (self.weight_format is not None),
            sums=1 + (self.bias_format is not None),
            reductions=0,
            rows=1,
        )

    def placement(self) -> tuple[CoreRangeSet, int, DataFormat]:
        """The cores, the fidelity phases and the format between steps."""
        return self.cores, self.fidelity_phases, self.between


def batch_buffers(op: BatchNorm, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """The buffers on all cores in order of allocation: two tiles each, also for a weight and a bias that are not."""
    rows = [
        ("input", op.data_format),
        ("mean", op.statistics_format),
        ("output", op.between),
        ("variance", op.statistics_format),
        ("epsilon", op.between),
        ("weight", op.weight_format or BFLOAT16),
        ("bias", op.bias_format or BFLOAT16),
        ("inverse_roots", op.between),
        ("centered", op.between),
        *([("converted", op.data_format)] if op.data_format != op.between else []),
    ]
    return tuple(tiles_of(name, BUFFERING, data_format, spec) for name, data_format in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningStatistics(Normalization):
    """Updates running means and variances with the share ``momentum`` of a batch's statistics."""

    channels: int
    momentum: float
    data_format: DataFormat  # Of the batch's statistics and the result
    mean_format: DataFormat | None  # None where there is no running mean
    variance_format: DataFormat | None
    fidelity_phases: int
    cores: CoreRangeSet

    @property
    def known(self) -> tuple[DataFormat, ...]:
        """Formats of the running statistics that there are, the mean's first."""
        return tuple([kind for kind in (self.mean_format, self.variance_format) if kind is not None])

    @property
    def between(self) -> DataFormat:
        """Format of the buffers between steps: float32 if a tensor is."""
        return FLOAT32 if FLOAT32 in (self.data_format, *self.known) else BFLOAT16

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> tuple[Array, ...]:
        """A copy of the last running statistic, and then each of them [1, C, 1, 1]."""
        wide = self.between == FLOAT32
        math = TileMath.of(context, fidelity_phases=self.fidelity_phases, fp32_dest=wide, between=self.between)
        shape = (1, self.channels, 1, 1)
        momentum, one = (math.stored(np.full((1, 1), number, np.float32)) for number in (self.momentum, 1.0))
        kept = math.stored(math.added(one, -momentum))
        batch = inputs[:2] if len(self.known) > 1 else inputs[:1] if self.mean_format is not None else inputs[1:2]
        results: list[Array] = []
        for new, old, data_format in zip(batch, inputs[2:], self.known, strict=True):
            fresh = math.read(logical(given(new), shape).reshape(1, -1), self.data_format)
            running = math.read(logical(given(old), shape).reshape(1, -1), data_format)
            parts = [math.stored(math.multiplied(running, kept)), math.stored(math.multiplied(fresh, momentum))]
            dst = math.added(*parts)
            results.append(math.packed(dst, data_format).reshape(shape))
        return math.packed(dst, self.data_format).reshape(shape), *results

    def core_work(self, ends: Ends) -> CoreWork:
        """Two products and a sum for each running statistic."""
        tiles, count = div_up(volume_tiles(ends.read), self.cores.num_cores()), len(self.known)
        reads = tiles * (2.0 + count)
        return CoreWork(tiles=tiles, reads=reads, multiplies=2 * count, sums=count, reductions=0, rows=0)

    def placement(self) -> tuple[CoreRangeSet, int, DataFormat]:
        """The cores, the fidelity phases and the format between steps."""
        return self.cores, self.fidelity_phases, self.between


def running_buffers(op: RunningStatistics, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """The buffers on all cores in order of allocation: two tiles each, also for a statistic that is not."""
    running = {"running_mean": op.mean_format, "running_variance": op.variance_format}
    rows = [
        *[(name, op.data_format) for name in ("mean", "variance", "output")],
        *[(name, data_format or BFLOAT16) for name, data_format in running.items()],
        ("momentum", op.between),
        ("kept", op.between),
        *[(f"updated_{name}", op.between if kind else BFLOAT16) for name, kind in running.items()],
        *[(f"converted_{name}", kind) for name, kind in running.items() if kind not in (None, op.between)],
    ]
    return tuple(tiles_of(name, BUFFERING, data_format, spec) for name, data_format in rows if data_format is not None)
