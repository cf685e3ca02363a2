"""A network on its way through a simulated device: its layers, and what stands between them.

Every layer gets the tensor that the layer before left in L1, so that shards are inherited and a tensor moves where it
moves on the device.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import ttsim
from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError
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
from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH
from tools.validate.conv import SCHEMES
from tools.validate.prediction import Row, numbers
from ttsim.api.convolutions import conv2d, conv_transpose2d
from ttsim.runtime.device import Device
from ttsim.runtime.settings import Values
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.configs import (
    Conv2dConfig,
    MathFidelity,
    UnaryOpType,
    UnaryWithParam,
    WormholeComputeKernelConfig,
)
from ttsim.runtime.types.tensors import DataType, bfloat4_b, bfloat8_b, bfloat16, float32

L1_SMALL_BYTES: Final = {"vgg_unet": 32768, "vanilla_unet": 98304}  # what their tests open devices with
DTYPES: Final[Mapping[str, DataType]] = {"bf16": bfloat16, "bfp8_b": bfloat8_b, "bfp4_b": bfloat4_b, "fp32": float32}
POOL: Final = 2  # size and stride of the pools
INPUT_CHANNELS: Final = 16  # what the first convolution's channels are padded to


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
    def word(self) -> str:
        """The word alone."""
        return self.flow["before"].partition(":")[0]

    @property
    def layer(self) -> Row:
        """The row of the layer that follows; raises DeviceError if none does."""
        if self.row is None:
            raise DeviceError("no layer follows")
        return self.row


def steps_of(model: str, layers: Sequence[Row], flow: Sequence[Row]) -> tuple[list[NetworkStep], list[tuple[Row, str]]]:
    """The convolutions of a network in order, and the rows that are left out, each with the reason."""
    rows = {row["layer"]: row for row in layers if row["model"] == model}
    order = {row["layer"]: row for row in flow if row["model"] == model}
    unplaced = "nothing says what its input is: it is not in the flow"
    left = [(row, unplaced) for layer, row in rows.items() if layer not in order]
    left += [(row, "the layers' file has no such layer") for layer, row in order.items() if layer not in {"", *rows}]
    return [NetworkStep(rows.get(layer), row) for layer, row in order.items() if layer in {"", *rows}], left


@dataclass(slots=True)
class Walk:
    """A network on its way through a device."""

    device: Device
    needed: frozenset[str]  # Names of layers whose outputs a later step takes up again
    outputs: dict[str, Tensor] = field(default_factory=dict)  # The live outputs of layers
    # Layers whose outputs a step took up: the script releases these outputs at the end of its block
    taken: list[str] = field(default_factory=list)
    x: Tensor | None = None  # What the last step left; None if it left nothing
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
        rows = div_up(batch * INPUT_CHANNELS * height, grid.num_cores())
        self._take((batch, channels, height, width), _sharded(HEIGHT, grid, (rows, width)))
        self.becomes(ttsim.pad(self.current(), [(0, 0), (0, INPUT_CHANNELS - channels), (0, 0), (0, 0)], 0.0))
        turned = ttsim.permute(self.current(), (0, 2, 3, 1))
        self.outputs["padded input"] = self.current()  # a variable of the script holds it to the end
        self.becomes(turned)
        self.becomes(ttsim.reshape(self.current(), (1, 1, batch * height * width, INPUT_CHANNELS)))

    def start_flat(self, step: NetworkStep) -> None:
        """The network's input [N, 1, C, H * W], width sharded over the named grid; channels are put last."""
        grid, (batch, channels, height, width) = _grid(step.before[1]), numbers(step.layer, "batch in_c in_h in_w")
        memory = _sharded(WIDTH, grid, (channels, div_up(height * width, grid.num_cores())))
        self._take((batch, 1, channels, height * width), memory)
        self.becomes(ttsim.experimental.convert_to_hwc(self.current()))

    def pool(self, step: NetworkStep) -> None:
        """A maximum pool whose output a layer reads."""
        batch, height, width, channels = numbers(step.layer, "batch in_h in_w in_c")
        sizes, windows = (batch, POOL * height, POOL * width, channels), ([POOL] * 2, [POOL] * 2, [0, 0], [1, 1])
        pooled = ttsim.max_pool2d(self.current(), *sizes, *windows)
        assert isinstance(pooled, ttsim.Tensor)  # without indices
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

    def convolve(self, step: NetworkStep, weight: Tensor, bias: Tensor) -> Tensor:
        """The convolution of a layer, on the output of the last step, which it replaces."""
        row, flow = step.layer, step.flow
        batch, height, width, ins, outs = numbers(row, "batch in_h in_w in_c out_c")
        size, stride, padding = numbers(row, "k s pad")
        shard, name = row["shard"], row["activation"].upper()
        output = (conv_transpose2d if row["op"] == "conv_transpose2d" else conv2d)(
            input_tensor=self.current(),
            weight_tensor=weight,
            bias_tensor=bias,
            device=self.device,
            in_channels=ins,
            out_channels=outs,
            batch_size=batch,
            input_height=height,
            input_width=width,
            kernel_size=(size, size),
            stride=(stride, stride),
            padding=(padding, padding),
            dtype=DTYPES[flow["dtype_out"] if row["dtype_out"].startswith("(") else row["dtype_out"]],
            conv_config=Conv2dConfig(
                weights_dtype=DTYPES[row["dtype_in1"]],
                activation=None if name == "NONE" else UnaryWithParam(UnaryOpType[name]),
                shard_layout=None if shard == "auto" else SCHEMES[shard],
                act_block_h_override=int(row["act_block_h"] or 0),
                reshard_if_not_optimal=flow["reshard_if_not_optimal"] == "1",
                deallocate_activation=flow["deallocate_activation"] == "1",
                enable_act_double_buffer=row["act_dbuf"] == "1",
                enable_weights_double_buffer=row["w_dbuf"] == "1",
                output_layout=Layout[row["out_layout"]],
            ),
            compute_config=WormholeComputeKernelConfig(
                math_fidelity=MathFidelity[row["fidelity"]],
                fp32_dest_acc_en=row["fp32_acc"] == "1",
                packer_l1_acc=row["packer_l1_acc"] == "1",
            ),
        )
        assert isinstance(output, Tensor)  # a call that asks for nothing else returns its output
        self.becomes(output, row["layer"])
        return output

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


def device_of(steps: Sequence[NetworkStep], spec: DeviceSpec, values: Values) -> Device:
    """A device as the network's test opens it."""
    small = max((L1_SMALL_BYTES.get(step.flow["model"], 0) for step in steps), default=0)
    # Not strict: the first layer's input has more channels than the call says, which the real library allows.
    return Device(spec, l1_small_size=small, values=values, strict=False)


def needed_again(steps: Iterable[NetworkStep]) -> frozenset[str]:
    """Layers whose outputs stay in L1 until a later step takes them up."""
    return frozenset(step.before[1] for step in steps if step.before[:1] == ("concat",))


def network_passed(walk: Walk, steps: Iterable[NetworkStep], operands: Mapping[str, tuple[Tensor, Tensor]]) -> Tensor:
    """The output of a whole network, with the numbers of the walk's image."""
    for step in steps:
        walk.begin(step)
        BETWEEN[step.word](walk, step)
        if step.row is not None:
            walk.convolve(step, *operands[step.row["layer"]])
    return walk.current()


def operand_shapes(row: Row) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of a layer's weights and bias."""
    ins, outs, size = numbers(row, "in_c out_c k")
    channels = (ins, outs) if row["op"] == "conv_transpose2d" else (outs, ins)
    return (*channels, size, size), (1, 1, 1, outs)
