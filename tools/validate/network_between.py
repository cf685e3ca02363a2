"""What stands between the convolutions of a network: conversions and halos are timed, other operations only lay out.

Memory is taken and released as the network's own script does it, so that the next convolution finds the shards and the
free memory that it finds there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16
from device.numbers.integers import div_up
from device.plan import Free, Plan
from ops.programs.conv2d.partition import BLOCK, HEIGHT
from ops.programs.halo.cycles import halo_cycles
from ops.programs.halo.frame import Frame, convolution_axis
from ops.programs.halo.plan import HaloArguments, plan_halo
from ops.programs.movement.placement import to_config
from ops.programs.movement.staged import Staged
from tools.validate.network_rows import NetworkStep
from tools.validate.prediction import Row
from ttsim.runtime.device import Device
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor

POOL = 2  # size and stride of the pools
INPUT_CHANNELS = 16  # what the first convolution's channels are padded to
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class TimedKind:
    """A device operation and its time.

    Attributes:
        name: Which, without the ending that all share.
        time_ns: Predicted.
    """

    name: str
    time_ns: float


@dataclass(slots=True)
class Walk:
    """A network on its way through a device.

    Attributes:
        device: Where.
        needed: Names of layers whose outputs a later step takes up again.
        outputs: Those that are there.
        x: What the last step left; None if it left nothing.
    """

    device: Device
    needed: frozenset[str]
    outputs: dict[str, Tensor] = field(default_factory=dict)
    x: Tensor | None = None

    def current(self) -> Tensor:
        """What the last step left.

        Raises:
            DeviceError: It left nothing.
        """
        if self.x is None:
            raise DeviceError("the layer before has no output")
        return self.x

    def kept(self, layer: str) -> Tensor:
        """The output of an earlier layer.

        Raises:
            DeviceError: There is none.
        """
        if layer not in self.outputs:
            raise DeviceError(f"the output of {layer} is not there")
        return self.outputs[layer]

    def becomes(self, tensor: Tensor, layer: str = "") -> None:
        """The next tensor takes the place of the last one, which is released unless it is needed later.

        Args:
            tensor: The next one.
            layer: The layer whose output it is, if it is one.
        """
        last, self.x = self.x, tensor
        if last is not None and last is not tensor and all(last is not kept for kept in self.outputs.values()):
            last.deallocate()
        if layer in self.needed:
            self.outputs[layer] = tensor


@dataclass(frozen=True, slots=True)
class Between:
    """A kind of what stands before a convolution.

    Attributes:
        does: Does it, and gives the time of what no profile records.
        left_out: Names of the operations in it that are not timed.
    """

    does: Callable[[Walk, NetworkStep], tuple[TimedKind, ...]]
    left_out: tuple[str, ...] = ()


def _nothing(walk: Walk, step: NetworkStep) -> tuple[TimedKind, ...]:
    """The convolution takes what the last one left."""
    return ()


def _start(walk: Walk, step: NetworkStep) -> tuple[TimedKind, ...]:
    """The network's input, channels padded and last, height sharded over the grid that is named."""
    grid, row = _grid(step.before[1]), _layer(step)
    pixels, channels = int(row["batch"]) * int(row["in_h"]) * int(row["in_w"]), max(int(row["in_c"]), INPUT_CHANNELS)
    memory = _sharded(HEIGHT, grid, (div_up(pixels, grid.num_cores()), channels))
    walk.becomes(_made(walk, (1, 1, pixels, channels), memory))
    return ()


def _pool(walk: Walk, step: NetworkStep) -> tuple[TimedKind, ...]:
    """A maximum pool behind its halo; it keeps the cores and channels of its input's shards."""
    x, row, spec = walk.current(), _layer(step), walk.device.spec
    config = x.memory_config()
    shards = config.shard_spec
    if shards is None:
        raise DeviceError("a pool of an interleaved tensor chooses its own shards")
    parts, width = (div_up(side, part) for side, part in zip(x.padded_shape[-2:], shards.shape, strict=True))
    outputs = div_up(x.shape[-2] // (POOL * POOL), parts)
    halo = plan_halo(
        HaloArguments(
            frame=_pool_frame(row),
            scheme=config.memory_layout,
            orientation=ShardOrientation.ROW_MAJOR,
            cores=shards.grid,
            nhw_cores=parts,
            channel_cores=width,
            input_rows=shards.shape[0],
            output_rows=outputs,
            shard_width=shards.shape[1],
            data_format=BFLOAT16,
            tiled=x.layout is Layout.TILE,
        ),
        input_tensor="input",
        output_tensor="halo",
    )
    passing = walk.device.machine.allocate(halo.output.buffer(spec), "halo")
    pooled = (1, 1, x.shape[-2] // (POOL * POOL), x.shape[-1])
    walk.becomes(_made(walk, pooled, _sharded(config.memory_layout, shards.grid, (outputs, shards.shape[1]))))
    walk.device.machine.free(passing)
    return (TimedKind("Halo", halo_cycles(halo, spec).cycles / spec.clock_hz * NS_PER_S),)


def _pool_frame(row: Row) -> Frame:
    """The frame of the pool whose output a layer reads."""
    rows, columns = (
        convolution_axis(input_length=POOL * int(row[side]), kernel=POOL, stride=POOL, padding=(0, 0), dilation=1)
        for side in ("in_h", "in_w")
    )
    return Frame(batch=int(row["batch"]), rows=rows, columns=columns)


def _interleaved(walk: Walk, step: NetworkStep) -> tuple[TimedKind, ...]:
    """To L1, interleaved."""
    walk.becomes(_converted(walk, walk.current(), L1_MEMORY_CONFIG))
    return ()


def _block(walk: Walk, step: NetworkStep) -> tuple[TimedKind, ...]:
    """To block shards on the grid that is named, the same part for each core."""
    x, grid = walk.current(), _grid(step.before[1])
    corner = grid.bounding_box().end
    shards = (div_up(x.shape[-2], corner.y + 1), div_up(x.shape[-1], corner.x + 1))
    walk.becomes(_converted(walk, x, _sharded(BLOCK, grid, shards)))
    return ()


def _concat(walk: Walk, step: NetworkStep) -> tuple[TimedKind, ...]:
    """With the output that is named: both height sharded over the grid that is named, then side by side."""
    name, grid = step.before[1], _grid(step.before[2])
    parts = [walk.current(), walk.kept(name)]
    rows = parts[0].shape[-2]
    height = div_up(rows, grid.num_cores())
    ready = [_converted(walk, one, _sharded(HEIGHT, grid, (height, one.shape[-1]))) for one in parts]
    channels = sum(one.shape[-1] for one in parts)
    output = _made(walk, (1, 1, rows, channels), _sharded(HEIGHT, grid, (height, channels)))
    for copy, source in zip(ready, parts, strict=True):
        if copy is not source:
            copy.deallocate()
    walk.becomes(output)
    return ()


BETWEEN: Mapping[str, Between] = {
    "": Between(_nothing),
    "start": Between(_start, left_out=("Pad", "Transpose", "Transpose")),
    "pool": Between(_pool, left_out=("Pool2D",)),
    "interleaved": Between(_interleaved),
    "block": Between(_block),
    "concat": Between(_concat, left_out=("Concat",)),
    "sigmoid": Between(_nothing, left_out=("Unary",)),
}


def _layer(step: NetworkStep) -> Row:
    """The layer that follows."""
    if step.row is None:
        raise DeviceError("no layer follows")
    return step.row


def _made(walk: Walk, shape: tuple[int, ...], memory: MemoryConfig) -> Tensor:
    """A row-major tensor on the device, as an operation that is not timed leaves it."""
    spec = TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR, memory)
    return Tensor.of_buffer(walk.device, walk.device.machine.allocate(spec.buffer(walk.device.spec), "tensor"), spec)


def _converted(walk: Walk, x: Tensor, memory: MemoryConfig) -> Tensor:
    """The tensor in another place; itself if it is there."""
    staged = to_config(Staged(name="input", spec=x.spec), memory, walk.device.spec, "output")
    steps = tuple(one for one in staged.steps if one != Free("input"))
    if not steps:
        return x
    plan = Plan(
        steps=steps,
        tensors={"input": x.spec, **staged.tensors, staged.name: staged.spec},
        results={"output": staged.name},
    )
    with walk.device.function("ttnn.to_memory_config"):
        return run(plan, {"input": x}, walk.device)["output"]


def _grid(text: str) -> CoreRangeSet:
    columns, rows = (int(side) for side in text.split("x"))
    return CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(columns - 1, rows - 1))])


def _sharded(scheme: TensorMemoryLayout, grid: CoreRangeSet, shape: tuple[int, int]) -> MemoryConfig:
    return MemoryConfig(scheme, BufferType.L1, ShardSpec(grid, shape))
