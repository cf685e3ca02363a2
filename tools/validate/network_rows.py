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
from tools.validate.prediction import NotPredictedError, Row, numbers
from ttsim.runtime.device import Device
from ttsim.runtime.tensor import Tensor

NS_PER_MS = 1e6
NS_PER_S = 1e9
POOL = 2  # size and stride of the pools
INPUT_CHANNELS = 16  # what the first convolution's channels are padded to


@dataclass(frozen=True, slots=True)
class NetworkStep:
    """A convolution of a network and what happens to its input before it."""

    row: Row | None  # The layer's row; None for the operations at the end of the network, after all convolutions
    flow: Row  # Its row in the flow: what comes before, and settings that the layer's row does not have

    @property
    def before(self) -> tuple[str, ...]:
        """What happens to the output of the layer before: a word and its arguments; empty for nothing."""
        return tuple(self.flow["before"].split(":")) if self.flow["before"] else ()

    @property
    def layer(self) -> Row:
        """The row of the layer that follows; raises DeviceError if none does."""
        if self.row is None:
            raise DeviceError("no layer follows")
        return self.row


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
    order = {row["layer"]: row for row in flow if row["model"] == model}
    unplaced = "nothing says what its input is: it is not in the flow"
    left = [(row, unplaced) for layer, row in rows.items() if layer not in order]
    left += [(row, "the layers' file has no such layer") for layer, row in order.items() if layer not in {"", *rows}]
    return [NetworkStep(rows.get(layer), row) for layer, row in order.items() if layer in {"", *rows}], left


def figures_of(model: str, operations: Sequence[Row]) -> tuple[list[WholeFigure], list[tuple[Row, str]]]:
    """What is known of the time of a whole network, measurements first, and rows that give no time."""
    figures, left = list[WholeFigure](), list[tuple[Row, str]]()
    for row in operations:
        if row["model"].partition(" ")[0] == model:
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
        if step.row is None or step.row["op"] == "conv_transpose2d":
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

    def start(self, step: NetworkStep) -> None:
        """The network's input [N, C, H, W], height sharded over the named grid; channels are padded, and put last."""
        grid, (batch, channels, height, width) = _grid(step.before[1]), numbers(step.layer, "batch in_c in_h in_w")
        rows, pixels = batch * INPUT_CHANNELS * height, batch * height * width
        whole = (1, 1, pixels, INPUT_CHANNELS)
        self._take((batch, channels, height, width), _sharded(HEIGHT, grid, (div_up(rows, grid.num_cores()), width)))
        try:
            self.becomes(ttsim.pad(self.current(), [(0, 0), (0, INPUT_CHANNELS - channels), (0, 0), (0, 0)], 0.0))
            turned = ttsim.permute(self.current(), (0, 2, 3, 1))
            self.outputs["padded input"] = self.current()  # a variable of the script holds it to the end
            self.becomes(turned)
            self.becomes(ttsim.reshape(self.current(), whole))
        except ArgumentError:  # shards that these are not simulated for
            self._take(whole, _sharded(HEIGHT, grid, (div_up(pixels, grid.num_cores()), INPUT_CHANNELS)))
            self.left_out += ("Pad", "Transpose", "Transpose")

    def start_flat(self, step: NetworkStep) -> None:
        """The network's input [N, 1, C, H * W], width sharded over the named grid; channels are put last."""
        grid, (batch, channels, height, width) = _grid(step.before[1]), numbers(step.layer, "batch in_c in_h in_w")
        memory = _sharded(WIDTH, grid, (channels, div_up(height * width, grid.num_cores())))
        self._take((batch, 1, channels, height * width), memory)
        self.becomes(ttsim.experimental.convert_to_hwc(self.current()))

    def pool(self, step: NetworkStep) -> None:
        """A maximum pool whose output a layer reads."""
        batch, height, width, channels = numbers(step.layer, "batch in_h in_w in_c")
        pooled = ttsim.max_pool2d(
            input_tensor=self.current(),
            batch_size=batch,
            input_h=POOL * height,
            input_w=POOL * width,
            channels=channels,
            kernel_size=[POOL, POOL],
            stride=[POOL, POOL],
            padding=[0, 0],
            dilation=[1, 1],
        )
        self.becomes(pooled)

    def save_pool(self, step: NetworkStep) -> None:
        """Keeps the output of the named layer in DRAM, and pools it."""
        self.outputs[step.before[1]] = ttsim.to_memory_config(self.current(), DRAM_MEMORY_CONFIG)
        self.pool(step)

    def interleaved(self, step: NetworkStep) -> None:
        """Moves the shards to interleaved L1."""
        self.becomes(ttsim.sharded_to_interleaved(self.current(), L1_MEMORY_CONFIG))

    def block(self, step: NetworkStep) -> None:
        """Moves the tensor to block shards on the named grid, the same part for each core."""
        x, grid = self.current(), _grid(step.before[1])
        corner = grid.bounding_box().end
        shards = (div_up(x.shape[-2], corner.y + 1), div_up(x.shape[-1], corner.x + 1))
        self.becomes(ttsim.to_memory_config(x, _sharded(BLOCK, grid, shards)))

    def concat(self, step: NetworkStep) -> None:
        """Concatenates with the named output along the channels; both are height sharded over the named grid."""
        name, grid = step.before[1], _grid(step.before[2])
        tensors = [self.current(), self.output_of(name)]
        height = div_up(tensors[0].shape[-2], grid.num_cores())
        ready = [
            ttsim.to_memory_config(tensor, _sharded(HEIGHT, grid, (height, tensor.shape[-1]))) for tensor in tensors
        ]
        channels = sum(tensor.shape[-1] for tensor in tensors)
        output = ttsim.concat(ready, dim=3, memory_config=_sharded(HEIGHT, grid, (height, channels)))
        for copy, tensor in zip(ready, tensors, strict=True):
            if copy is not tensor:
                copy.deallocate()
        self.becomes(output)

    def concat_saved(self, step: NetworkStep) -> None:
        """Concatenates with an output saved in DRAM, on the shards of the last one; through rows if "rows" is named."""
        x, saved = self.current(), self.output_of(step.before[1])
        place, rows = x.memory_config(), "rows" in step.before
        if place.shard_spec is None:
            raise DeviceError("the layer before left no shards")
        height, width = place.shard_spec.shape
        parts = [x, ttsim.to_memory_config(saved, place)]
        if rows:
            tiles, parts = parts, [ttsim.to_layout(tensor, Layout.ROW_MAJOR) for tensor in parts]
            tiles[1].deallocate()
        side_by_side = _sharded(HEIGHT, place.shard_spec.grid, (height, 2 * width))
        self.becomes(ttsim.concat(parts, dim=3, memory_config=side_by_side))
        for part in parts if rows else parts[1:]:
            part.deallocate()
        if rows:
            self.becomes(ttsim.to_layout(self.current(), Layout.TILE, ttsim.bfloat8_b))

    def sigmoid(self, step: NetworkStep) -> None:
        """The network's last function, on the shards that the last convolution left."""
        self.becomes(ttsim.sigmoid(self.current(), memory_config=self.current().memory_config()))

    def channels_first(self, step: NetworkStep) -> None:
        """The network's output with its channels first."""
        self.becomes(ttsim.experimental.convert_to_chw(self.current(), dtype=ttsim.bfloat16))

    def _take(self, shape: tuple[int, ...], memory: MemoryConfig) -> None:
        """A row-major tensor on the device, with the numbers of the image in their order if there are any."""
        spec = TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR, memory)
        buffer = self.device.machine.allocate(spec.buffer(self.device.spec), "tensor")
        if self.image is not None:
            buffer.store(quantize(self.image.reshape(shape), spec.data_format), spec)
        self.becomes(Tensor.of_buffer(self.device, buffer, spec))


# What each word of the flow does; without a word the convolution takes what the last one left.
BETWEEN: Mapping[str, Callable[[Walk, NetworkStep], None]] = {"": lambda walk, step: None} | {
    method.__name__: method
    for method in (
        *(Walk.start, Walk.start_flat, Walk.pool, Walk.save_pool, Walk.interleaved, Walk.block, Walk.concat),
        *(Walk.concat_saved, Walk.sigmoid, Walk.channels_first),
    )
}


def _grid(text: str) -> CoreRangeSet:
    columns, rows = map(int, text.split("x"))
    return CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(columns - 1, rows - 1))])


def _sharded(scheme: TensorMemoryLayout, grid: CoreRangeSet, shape: tuple[int, int]) -> MemoryConfig:
    return MemoryConfig(scheme, BufferType.L1, ShardSpec(grid, shape))
