"""ttnn's preparations of weights and biases ahead of a convolution: tables of their parameters, and the uploads."""

from dataclasses import replace
from typing import Any, ClassVar, Final

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, Layout, MemoryConfig
from device.numbers.formats import BFLOAT16, FLOAT32, round_up
from device.plan import Allocate, Plan
from ops.planners.conv.arguments import CONV2D, CONV_TRANSPOSE2D, ConvRules, Operand
from ops.planners.conv.preparation import checked_preparation, plan_preparation, plan_rows
from ops.programs.data_movement.placement import whole_shards
from ttsim.api.conv import Windows2d, of_one_row, operand
from ttsim.runtime.calls import on_device
from ttsim.runtime.execution import free_l1_bytes, require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import Padding, Pair, function_of, param, two
from ttsim.runtime.types.configs import Conv2dConfig, Conv2dSliceConfig
from ttsim.runtime.types.tensors import DataType

SLICES: Final = "Slices for inputs in DRAM; None lets the call choose."


class Preparation(Windows2d):
    """Parameters of all preparations: the later call and a description of its input."""

    input_memory_config: MemoryConfig = param("Memory of the input of the later call.")
    input_layout: Layout = param("Layout of the input of the later call.")
    input_dtype: DataType = param("Data type of the input of the later call.")
    output_dtype: DataType | None = param(
        "Data type of the output of the later call; None for that of the input.", default=None
    )
    stride: Pair = param("Stride down and across.")
    padding: Padding = param("(height, width), or (top, bottom, left, right).")
    dilation: Pair = param("Distance between taps of the kernel, down and across.")
    groups: int = param("Groups of channels.")

    _rules: ClassVar[ConvRules]

    def own_arguments(self) -> dict[str, Any]:
        """Further arguments of `ConvCall` that only some preparations have."""
        return {}

    def prepared(self, role: str, tensor: Tensor, *, weight: Operand, bias: Operand | None) -> Tensor:
        """The host tensor "weight" or "bias" as the later call prepares it; runs only the upload of its plan."""
        device, own = self.device, self.own_arguments()
        image = (self.batch_size, self.input_height, self.input_width, self.in_channels)
        place = _future_input(image, self.input_dtype, self.input_layout, self.input_memory_config)
        own["slices"] = getattr(self, "dram_slice_config" if self._rules.transposed else "slice_config")
        out = self.output_dtype or self.input_dtype
        call = self.arguments(self._rules, out=out, input=place, weight=weight, bias=bias, **own)
        bare = self.input_memory_config if self.input_memory_config.shard_spec is None else DRAM_MEMORY_CONFIG
        scheme = bare.memory_layout if bare.is_sharded() else None
        call = checked_preparation(call, role, device.spec, function=self._name, strict=device.strict, scheme=scheme)
        before = plan_rows(call, device.spec)
        plan = plan_preparation(call, role, device.spec, free_l1_bytes=free_l1_bytes(device), scheme=scheme)
        with device.function(f"ttnn.{self._name}"):
            if plan.refused:  # raised once what the preparation does before has run
                run(Plan(steps=(*before.steps, plan.steps[-1]), tensors=before.tensors), {}, device)
            name = plan.results[role]
            upload = tuple(step for step in plan.steps if isinstance(step, Allocate) and step.tensor == name)
            tensors = {**before.tensors, name: plan.tensors[name]}
            part = Plan(steps=(*before.steps, *upload), tensors=tensors, results={role: name})
            return run(part, {role: tensor}, device)[role]


class OfWeights(
    Preparation,
    parameters="weight_tensor input_memory_config input_layout weights_format in_channels out_channels batch_size "
    "input_height input_width kernel_size stride padding output_padding dilation has_bias groups device input_dtype "
    "output_dtype conv_config compute_config dram_slice_config slice_config mirror_kernel",
):
    """A preparation of weights."""

    weight_tensor: Tensor = param("[O, C / groups, kernel height, kernel width]; or [O, C / groups, kernel] of conv1d.")
    weights_format: str = param('"OIHW".')
    has_bias: bool = param("Whether the later call has a bias.")

    def run(self) -> Tensor:
        """Prepares the weights."""
        require_allocated(self.weight_tensor)
        tensor, on_host = self.weight_tensor.cpu(), self._rules.transposed or self.weight_tensor.device() is None
        if not self._rules.transposed and self.input_height == 1:
            tensor = of_one_row(tensor)
        bias = _placeholder((1, 1, 1, self.out_channels)) if self.has_bias else None
        return self.prepared("weight", tensor, weight=Operand(spec=tensor.spec, on_host=on_host), bias=bias)


class OfBias(
    Preparation,
    parameters="bias_tensor input_memory_config input_layout in_channels out_channels batch_size input_height "
    "input_width kernel_size stride padding dilation device groups input_dtype output_dtype conv_config "
    "compute_config dram_slice_config slice_config",
):
    """A preparation of a bias."""

    bias_tensor: Tensor = param("[1, 1, 1, O], on the host.")
    conv_config: Conv2dConfig | None = param(
        "Needed, with ``weights_dtype``, in which the bias is prepared.", default=None
    )

    def run(self) -> Tensor:
        """Prepares the bias."""
        require_allocated(self.bias_tensor)
        channels = (self.in_channels, self.out_channels)
        first, second = channels if self._rules.transposed else channels[::-1]
        weight = _placeholder((first, second // max(self.groups, 1), *two(self.kernel_size)))
        return self.prepared("bias", self.bias_tensor, weight=weight, bias=operand(self.bias_tensor))


class PrepareConvTranspose2dWeights(OfWeights, name="prepare_conv_transpose2d_weights", prefix=""):
    """The weights as conv_transpose2d with the same arguments prepares them, on the device.

    Returns:
        [1, 1, rows, columns] in TILE layout, which `conv_transpose2d` accepts as ``weight_tensor``.

    Examples:
        >>> weights = ttnn.prepare_conv_transpose2d_weights(
        ...     weight_tensor=ttnn.ones((32, 16, 2, 2)), weights_format="IOHW", has_bias=False, device=device,
        ...     in_channels=32, out_channels=16, batch_size=1, input_height=4, input_width=4, kernel_size=(2, 2),
        ...     stride=(2, 2), padding=(0, 0), dilation=(1, 1), groups=1, input_dtype=ttnn.bfloat16,
        ...     input_layout=ttnn.ROW_MAJOR_LAYOUT, input_memory_config=ttnn.DRAM_MEMORY_CONFIG,
        ...     conv_config=ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat16))
        >>> weights.shape, weights.layout
        (Shape([1, 1, 128, 16]), Layout.TILE)
    """

    _rules = CONV_TRANSPOSE2D
    weight_tensor: Tensor = param("[C, O / groups, kernel height, kernel width].")
    weights_format: str = param('"IOHW"; accepted as in ttnn, which does not read it.')
    dram_slice_config: Conv2dSliceConfig | None = param(SLICES, default=None)
    output_padding: Pair = param("Rows and columns added at the bottom and on the right.", default=(0, 0))
    mirror_kernel: bool = param("False if the kernel is flipped already.", default=True)

    def own_arguments(self) -> dict[str, Any]:
        """Output padding, and whether the preparation flips the kernel."""
        return {"output_padding": two(self.output_padding), "mirror_kernel": self.mirror_kernel}


class PrepareConvTranspose2dBias(OfBias, name="prepare_conv_transpose2d_bias", prefix=""):
    """The bias as conv_transpose2d with the same arguments prepares it, on the device.

    Returns:
        [1, 1, 1, O] in TILE layout, which `conv_transpose2d` accepts as ``bias_tensor``.

    Examples:
        >>> bias = ttnn.prepare_conv_transpose2d_bias(
        ...     bias_tensor=ttnn.ones((1, 1, 1, 16)), conv_config=ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat16),
        ...     device=device, in_channels=32, out_channels=16, batch_size=1, input_height=4, input_width=4,
        ...     kernel_size=(2, 2), stride=(2, 2), padding=(0, 0), dilation=(1, 1), groups=1, input_dtype=ttnn.bfloat16,
        ...     input_layout=ttnn.ROW_MAJOR_LAYOUT, input_memory_config=ttnn.DRAM_MEMORY_CONFIG)
        >>> bias.shape, bias.layout
        (Shape([1, 1, 1, 16]), Layout.TILE)
    """

    _rules = CONV_TRANSPOSE2D
    dram_slice_config: Conv2dSliceConfig | None = param(SLICES, default=None)


class PrepareConvWeights(OfWeights, name="prepare_conv_weights", prefix=""):
    """The weights as conv2d with the same arguments prepares them, on the device.

    Returns:
        [1, 1, rows, columns] in TILE layout, which `conv2d` accepts as ``weight_tensor``.

    Examples:
        >>> weights = ttnn.prepare_conv_weights(
        ...     weight_tensor=ttnn.ones((16, 32, 3, 3)), weights_format="OIHW", has_bias=False, device=device,
        ...     in_channels=32, out_channels=16, batch_size=1, input_height=8, input_width=8, kernel_size=(3, 3),
        ...     stride=(1, 1), padding=(1, 1), dilation=(1, 1), groups=1, input_dtype=ttnn.bfloat16,
        ...     input_layout=ttnn.ROW_MAJOR_LAYOUT, input_memory_config=ttnn.DRAM_MEMORY_CONFIG)
        >>> weights.shape
        Shape([1, 1, 288, 16])
    """

    _rules = CONV2D
    slice_config: Conv2dSliceConfig | None = param(SLICES, default=None)


class PrepareConvBias(OfBias, name="prepare_conv_bias", prefix=""):
    """The bias as conv2d with the same arguments prepares it, on the device.

    Returns:
        [1, 1, 1, O] in TILE layout, which `conv2d` accepts as ``bias_tensor``.

    Examples:
        >>> bias = ttnn.prepare_conv_bias(
        ...     bias_tensor=ttnn.ones((1, 1, 1, 16)), conv_config=ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat16),
        ...     device=device, in_channels=32, out_channels=16, batch_size=1, input_height=8, input_width=8,
        ...     kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), dilation=(1, 1), groups=1, input_dtype=ttnn.bfloat16,
        ...     input_layout=ttnn.ROW_MAJOR_LAYOUT, input_memory_config=ttnn.DRAM_MEMORY_CONFIG)
        >>> bias.shape
        Shape([1, 1, 1, 16])
    """

    _rules = CONV2D
    slice_config: Conv2dSliceConfig | None = param(SLICES, default=None)


def _future_input(
    image_shape: tuple[int, int, int, int], dtype: DataType, layout: Layout, place: MemoryConfig
) -> Operand:
    """The input of the later call, interleaved where shards are not given.

    ROW_MAJOR block floats, which no tensor can have, mean ROW_MAJOR bfloat16. Shards may be too small for the image, or
    no whole tiles: of tiles only their cores are used, and of rows the width as well.
    """
    batch, height, width, channels = image_shape
    shards, config = place.shard_spec, place
    if shards is None:
        config = MemoryConfig(buffer_type=place.buffer_type)
    elif layout is Layout.TILE:
        rows, columns = (round_up(side, TILE) for side in shards.shape)
        config = replace(place, shard_spec=shards.changed(shape=(rows, columns)))
    data_format = BFLOAT16 if dtype.format.is_block and layout is Layout.ROW_MAJOR else dtype.format
    shape = (1, 1, batch * height * width, channels)
    try:
        spec = TensorSpec(shape, data_format, layout, config)
    except DeviceError:
        if config.shard_spec is None:
            raise
        spec = TensorSpec(shape, data_format, layout, config, (1, 1, *whole_shards(config)))
    return Operand(spec=spec, on_host=False)


def _placeholder(shape: tuple[int, ...]) -> Operand:
    """A host tensor of which only the shape is used."""
    return Operand(spec=TensorSpec(shape, FLOAT32, Layout.ROW_MAJOR), on_host=True)


prepare_conv_transpose2d_weights = on_device(function_of(PrepareConvTranspose2dWeights))
prepare_conv_transpose2d_bias = on_device(function_of(PrepareConvTranspose2dBias))
prepare_conv_weights = on_device(function_of(PrepareConvWeights))
prepare_conv_bias = on_device(function_of(PrepareConvBias))
