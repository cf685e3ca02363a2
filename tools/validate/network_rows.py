"""The files of a network: its layers, what stands between them, and what was measured of the whole."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import ttsim
from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16, Array, div_up, quantize
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH
from tools.validate.prediction import NotPredictedError, Row
from ttsim.runtime.device import Device
from ttsim.runtime.tensor import Tensor

NS_PER_MS = 1e6
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class NetworkStep:
    """A convolution of a network and what happens to its input before it."""

    row: Row | None  # The layer's row; None for the operations at the end of the network, after all convolutions
    flow: Row  # Its row in the flow: what comes before, and settings that the layer's row does not have

    @property
    def before(self) -> tuple[str, ...]:
        """What happens to the output of the layer before: a word and its arguments; empty for nothing."""
        return tuple(self.flow["before"].split(":")) if self.flow["before"] else ()


@dataclass(frozen=True, slots=True)
class WholeFigure:
    """A figure of the whole network on one device."""

    row: Row  # As it stands in its file
    time_ns: float  # Time of one run of the network
    measured: bool  # It was measured; otherwise it is a target that somebody set
    operations: int  # Device operations it counts; 0 if the row does not say


def steps_of(model: str, layers: Sequence[Row], flow: Sequence[Row]) -> tuple[list[NetworkStep], list[tuple[Row, str]]]:
    """The convolutions of a network in order, and the rows that are left out, each with the reason."""
    rows = {row["layer"]: row for row in layers if row["model"] == model}
    order = [row for row in flow if row["model"] == model]
    known = {row["layer"] for row in order}
    left = [(row, "nothing says what its input is: it is not in the flow") for row in rows.values()]
    left = [(row, reason) for row, reason in left if row["layer"] not in known]
    left += [(row, "the layers' file has no such layer") for row in order if row["layer"] and row["layer"] not in rows]
    steps = [NetworkStep(rows.get(row["layer"]), row) for row in order if not row["layer"] or row["layer"] in rows]
    return steps, left


def figures_of(model: str, operations: Sequence[Row]) -> tuple[list[WholeFigure], list[tuple[Row, str]]]:
    """What is known of the time of a whole network, measurements first, and rows that give no time."""
    figures, left = [], []
    for row in operations:
        if row["model"].partition(" ")[0] != model:
            continue
        try:
            figures.append(_figure(row))
        except NotPredictedError as error:
            left.append((row, str(error)))
    return sorted(figures, key=lambda figure: not figure.measured), left


def _figure(row: Row) -> WholeFigure:
    """Raises NotPredictedError for a row in another unit."""
    value = float(row["value"])
    match row["unit"]:
        case "ms":
            time_ns = value * NS_PER_MS
        case "samples/s":
            time_ns = NS_PER_S / value * int(row["batch"] or 1)
        case unit:
            raise NotPredictedError(f"a figure in {unit} gives no time")
    return WholeFigure(row, time_ns, measured="measured" in row["kind"], operations=int(row["n_ops"] or 0))


POOL = 2  # size and stride of the pools
INPUT_CHANNELS = 16  # what the first convolution's channels are padded to


@dataclass(frozen=True, slots=True)
class TimedKind:
    """A device operation and its time."""

    name: str  # Which, without the ending that all share
    time_ns: float


@dataclass(slots=True)
class Walk:
    """A network on its way through a device."""

    device: Device
    needed: frozenset[str]  # Names of layers whose outputs a later step takes up again
    outputs: dict[str, Tensor] = field(default_factory=dict)  # The live outputs of layers
    # Layers whose outputs a step took up: the script releases these outputs at the end of its block
    taken: list[str] = field(default_factory=list)
    x: Tensor | None = None  # What the last step left; None if it left nothing
    left_out: list[str] = field(default_factory=list)  # The library's operations in the step that are not simulated
    image: Array | None = None  # Numbers of the network's input, [N, C, H, W]; None where there are no values

    def current(self) -> Tensor:
        """What the last step left; raises DeviceError if it left nothing."""
        if self.x is None:
            raise DeviceError("the layer before has no output")
        return self.x

    def output_of(self, layer: str) -> Tensor:
        """The output of an earlier layer; raises DeviceError if there is none."""
        if layer not in self.outputs:
            raise DeviceError(f"the output of {layer} is not there")
        self.taken.append(layer)
        return self.outputs[layer]

    def begin(self, step: NetworkStep) -> None:
        """Releases the outputs that were taken up, where a step begins another block."""
        if step.row is not None and step.row["op"] != "conv_transpose2d":
            return
        for layer in self.taken:
            self.outputs.pop(layer).deallocate()
        self.taken.clear()

    def becomes(self, tensor: Tensor, layer: str = "") -> None:
        """The next tensor takes the place of the last one, which is released unless it is needed later."""
        last, self.x = self.x, tensor
        if last is not None and last is not tensor and all(last is not output for output in self.outputs.values()):
            last.deallocate()
        if layer in self.needed:
            self.outputs[layer] = tensor


def _start(walk: Walk, step: NetworkStep) -> None:
    """The network's input [N, C, H, W], height sharded over the named grid; channels are padded, and put last."""
    grid, row = _grid(step.before[1]), _layer(step)
    batch, channels, height, width = (int(row[name]) for name in ("batch", "in_c", "in_h", "in_w"))
    rows, pixels = batch * INPUT_CHANNELS * height, batch * height * width
    image = _empty_tensor(
        walk, (batch, channels, height, width), _sharded(HEIGHT, grid, (div_up(rows, grid.num_cores()), width))
    )
    walk.becomes(image)
    try:
        walk.becomes(ttsim.pad(image, [(0, 0), (0, INPUT_CHANNELS - channels), (0, 0), (0, 0)], 0.0))
        turned = ttsim.permute(walk.current(), (0, 2, 3, 1))
        walk.outputs["padded input"] = walk.current()  # a variable of the script holds it to the end
        walk.becomes(turned)
        walk.becomes(ttsim.reshape(walk.current(), (1, 1, pixels, INPUT_CHANNELS)))
    except ArgumentError:  # shards that these are not simulated for
        memory = _sharded(HEIGHT, grid, (div_up(pixels, grid.num_cores()), INPUT_CHANNELS))
        walk.becomes(_empty_tensor(walk, (1, 1, pixels, INPUT_CHANNELS), memory))
        walk.left_out += ("Pad", "Transpose", "Transpose")


def _start_flat(walk: Walk, step: NetworkStep) -> None:
    """The network's input [N, 1, C, H * W], width sharded over the named grid; channels are put last."""
    grid, row = _grid(step.before[1]), _layer(step)
    batch, channels, pixels = int(row["batch"]), int(row["in_c"]), int(row["in_h"]) * int(row["in_w"])
    memory = _sharded(WIDTH, grid, (channels, div_up(pixels, grid.num_cores())))
    walk.becomes(_empty_tensor(walk, (batch, 1, channels, pixels), memory))
    walk.becomes(ttsim.experimental.convert_to_hwc(walk.current()))


def _pool(walk: Walk, step: NetworkStep) -> None:
    """A maximum pool whose output a layer reads."""
    row = _layer(step)
    pooled = ttsim.max_pool2d(
        input_tensor=walk.current(),
        batch_size=int(row["batch"]),
        input_h=POOL * int(row["in_h"]),
        input_w=POOL * int(row["in_w"]),
        channels=int(row["in_c"]),
        kernel_size=[POOL, POOL],
        stride=[POOL, POOL],
        padding=[0, 0],
        dilation=[1, 1],
    )
    walk.becomes(pooled)


def _saved_and_pooled(walk: Walk, step: NetworkStep) -> None:
    """Keeps the output of the named layer in DRAM, and pools it."""
    walk.outputs[step.before[1]] = ttsim.to_memory_config(walk.current(), DRAM_MEMORY_CONFIG)
    _pool(walk, step)


def _block(walk: Walk, step: NetworkStep) -> None:
    """Moves the tensor to block shards on the named grid, the same part for each core."""
    x, grid = walk.current(), _grid(step.before[1])
    corner = grid.bounding_box().end
    shards = (div_up(x.shape[-2], corner.y + 1), div_up(x.shape[-1], corner.x + 1))
    walk.becomes(ttsim.to_memory_config(x, _sharded(BLOCK, grid, shards)))


def _concat(walk: Walk, step: NetworkStep) -> None:
    """Concatenates the tensor with the named output along the channels; both are height sharded over the named grid."""
    name, grid = step.before[1], _grid(step.before[2])
    tensors = [walk.current(), walk.output_of(name)]
    height = div_up(tensors[0].shape[-2], grid.num_cores())
    ready = [ttsim.to_memory_config(source, _sharded(HEIGHT, grid, (height, source.shape[-1]))) for source in tensors]
    channels = sum(source.shape[-1] for source in tensors)
    output = ttsim.concat(ready, dim=3, memory_config=_sharded(HEIGHT, grid, (height, channels)))
    for copy, source in zip(ready, tensors, strict=True):
        if copy is not source:
            copy.deallocate()
    walk.becomes(output)


def _concat_saved(walk: Walk, step: NetworkStep) -> None:
    """Concatenates with the output saved in DRAM, on the shards of the last one; through rows if "rows" is named."""
    x, saved = walk.current(), walk.output_of(step.before[1])
    place = x.memory_config()
    if place.shard_spec is None:
        raise DeviceError("the layer before left no shards")
    height, width = place.shard_spec.shape
    side_by_side = _sharded(HEIGHT, place.shard_spec.grid, (height, 2 * width))
    skip = ttsim.to_memory_config(saved, place)
    if "rows" not in step.before:
        walk.becomes(ttsim.concat([x, skip], dim=3, memory_config=side_by_side))
        skip.deallocate()
        return
    rows = [ttsim.to_layout(tensor, Layout.ROW_MAJOR) for tensor in (x, skip)]
    skip.deallocate()
    walk.becomes(ttsim.concat(rows, dim=3, memory_config=side_by_side))
    for row in rows:
        row.deallocate()
    walk.becomes(ttsim.to_layout(walk.current(), Layout.TILE, ttsim.bfloat8_b))


Does = Callable[[Walk, NetworkStep], None]
BETWEEN: Mapping[str, Does] = {
    "": lambda walk, step: None,  # the convolution takes what the last one left
    "start": _start,
    "start_flat": _start_flat,
    "pool": _pool,
    "save_pool": _saved_and_pooled,
    "interleaved": lambda walk, step: walk.becomes(ttsim.sharded_to_interleaved(walk.current(), L1_MEMORY_CONFIG)),
    "block": _block,
    "concat": _concat,
    "concat_saved": _concat_saved,
    # on the shards that the last convolution left
    "sigmoid": lambda walk, step: walk.becomes(
        ttsim.sigmoid(walk.current(), memory_config=walk.current().memory_config())
    ),
    "channels_first": lambda walk, step: walk.becomes(
        ttsim.experimental.convert_to_chw(walk.current(), dtype=ttsim.bfloat16)
    ),
}  # what each word of the flow does


def _layer(step: NetworkStep) -> Row:
    """The row of the layer that follows."""
    if step.row is None:
        raise DeviceError("no layer follows")
    return step.row


def _empty_tensor(walk: Walk, shape: tuple[int, ...], memory: MemoryConfig) -> Tensor:
    """A row-major tensor on the device, with the numbers of the image in their order if there are any."""
    spec = TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR, memory)
    buffer = walk.device.machine.allocate(spec.buffer(walk.device.spec), "tensor")
    if walk.image is not None:
        buffer.store(quantize(walk.image.reshape(shape), spec.data_format), spec)
    return Tensor.of_buffer(walk.device, buffer, spec)


def _grid(text: str) -> CoreRangeSet:
    columns, rows = (int(side) for side in text.split("x"))
    return CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(columns - 1, rows - 1))])


def _sharded(scheme: TensorMemoryLayout, grid: CoreRangeSet, shape: tuple[int, int]) -> MemoryConfig:
    return MemoryConfig(scheme, BufferType.L1, ShardSpec(grid, shape))
