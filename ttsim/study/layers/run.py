"""Runs a layer: the arguments of its call, the call itself, and a comparison with exact arithmetic."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import ml_dtypes
import numpy as np
import numpy.typing as npt

from device.cores import CoreGrid, CoreRangeSet
from device.errors import (
    ArgumentError,
    ArgumentTypeError,
    CircularBufferError,
    OutOfMemoryError,
    TTSimError,
    nearest,
    shown,
)
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout, TensorMemoryLayout
from device.plan import Event, OperationBegin
from device.spec.device_spec import DeviceSpec
from ops.planners.conv.arguments import Lowering
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import ConvPartition
from ops.programs.phase_conv2d.plan import PhaseConv2dOp
from ops.reference import Geometry, conv_transpose_channels_last, plan_geometry
from ttsim.api.conv import ConvTranspose2d
from ttsim.api.convolutions import conv_transpose2d
from ttsim.recording.profiling import Profile, estimate_cycles, profile
from ttsim.recording.suggestions import arguments_source
from ttsim.report.accuracy import Accuracy, measure
from ttsim.report.memory import LayerResult, Summary, operation_uses, summarize
from ttsim.runtime.device import Device
from ttsim.runtime.settings import USUAL_L1_SMALL_SIZE, Values
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types import configs
from ttsim.runtime.types.call import required_sides
from ttsim.runtime.types.layer import FIELDS, Layer, Setting
from ttsim.runtime.types.tensors import DataType

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Member = TypeVar("Member", bound=Enum)
Config = TypeVar("Config", configs.Conv2dConfig, configs.WormholeComputeKernelConfig)


class Inputs(NamedTuple):
    """The tensors of a layer, float32 rounded to their data types (a block float counts as bfloat16)."""

    x: Floats  # [N, H, W, C]
    w: Floats  # [C, O / groups, KH, KW]
    b: Floats | None  # [1, 1, 1, O], None without bias


def make_inputs(layer: Layer, *, values: bool = True) -> Inputs:
    """Normal random numbers; the weights are scaled so that outputs are of the order of 1.

    `values=False` makes zeros that take no memory. Raises ArgumentError if the groups do not divide the channels
    or a tensor has more elements than any array.
    """
    if layer.in_channels % layer.groups or layer.out_channels % layer.groups:
        raise ArgumentError(
            f"groups must divide in_channels and out_channels, not {layer.groups} with {layer.in_channels} and "
            f"{layer.out_channels}; {math.gcd(layer.in_channels, layer.out_channels)} is the most"
        )
    image = (layer.batch_size, layer.input_height, layer.input_width, layer.in_channels)
    kernel = (layer.in_channels, layer.out_channels // layer.groups, *layer.kernel_size)
    shapes = tuple(required_sides("input", shape) for shape in (image, kernel, (1, 1, 1, layer.out_channels)))
    if values:
        rng = np.random.default_rng(layer.seed)
        x, w, b = (rng.standard_normal(shape, np.float32) for shape in shapes)
        w *= np.float32(1 / math.sqrt(max(1, layer.in_channels // layer.groups * math.prod(layer.kernel_size))))
        x, w, b = as_stored(x, layer.input_dtype), *(as_stored(array, layer.weights_dtype) for array in (w, b))
    else:
        x, w, b = (np.broadcast_to(np.zeros((), np.float32), shape) for shape in shapes)
    return Inputs(x, w, b if layer.bias else None)


def as_stored(values: Floats, dtype: str) -> Floats:
    """Values rounded to bfloat16, or to float32 if that is the data type."""
    return values if dtype == "float32" else values.astype(ml_dtypes.bfloat16).astype(np.float32)


def geometry_of(layer: Layer) -> Geometry:
    """The sizes of a layer; raises ArgumentError if a size is too small."""
    top, bottom, left, right = layer.padding if len(layer.padding) == 4 else np.repeat(layer.padding, 2).tolist()
    return plan_geometry(
        (layer.input_height, layer.input_width),
        layer.kernel_size,
        stride=layer.stride,
        pad_before=(top, left),
        pad_after=(bottom, right),
        output_padding=layer.output_padding,
        dilation=layer.dilation,
    )


def sigmoid(values: Doubles) -> Doubles:
    """1 / (1 + exp(-x)) without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * values)))


_erf: Final = np.vectorize(math.erf, otypes=[np.float64])
ACTIVATIONS: Mapping[str, Callable[[Doubles], Any]] = {
    "relu": lambda values: np.maximum(values, 0),
    "relu6": lambda values: np.clip(values, 0, 6),
    "sigmoid": sigmoid,
    "silu": lambda values: values * sigmoid(values),
    "gelu": lambda values: 0.5 * values * (1 + _erf(values / math.sqrt(2))),  # times the normal distribution
    "tanh": np.tanh,
    "identity": lambda values: values,
}


def exact_output(layer: Layer, inputs: Inputs) -> Doubles | None:
    """The layer in float64, [N, OH, OW, O]; None without a reference (an activation, replicated padding)."""
    activation = str(layer.config.get("activation", "identity")).lower()
    replicated = str(layer.config.get("padding_mode", "zeros")).lower() != "zeros"
    if activation not in ACTIVATIONS or replicated:
        return None
    w = inputs.w if layer.mirror_kernel else inputs.w[..., ::-1, ::-1]
    b = None if inputs.b is None else inputs.b.reshape(-1)
    output = conv_transpose_channels_last(inputs.x, w, geometry_of(layer), bias=b, groups=layer.groups)
    return np.asarray(ACTIVATIONS[activation](output), dtype=np.float64)


TENSORS: Final = ("input_tensor", "weight_tensor", "bias_tensor")
MEMORY: Final = {"dram": "ttnn.DRAM_MEMORY_CONFIG", "l1": "ttnn.L1_MEMORY_CONFIG"}


def layer_source(layer: Layer, arguments: Mapping[str, Any]) -> str:
    """A layer as a script with zero tensors and an open ``device``."""
    tensors = {name: arguments[name] for name in TENSORS if arguments[name] is not None}
    lines = ["import numpy as np", "import ttsim as ttnn", ""]
    for name, tensor in tensors.items():
        kind = tensor.dtype.name.lower()
        layout = f", layout=ttnn.{tensor.layout.name}_LAYOUT" if name == "input_tensor" else ""
        lines.append(f"{name} = ttnn.from_torch(np.zeros({tuple(tensor.shape)}, np.float32), ttnn.{kind}{layout})")
    if layer.input_memory != "host":
        lines.append(f"input_tensor = ttnn.to_device(input_tensor, device, memory_config={MEMORY[layer.input_memory]})")
    lines.append("output = ttnn.conv_transpose2d(")
    lines += [f"    {name}={name}," for name in (*tensors, "device")]
    for name, value in arguments.items():
        if name not in tensors and name != "device" and value is not None:
            argument = f"dtype=ttnn.{value.name.lower()}" if name == "dtype" else arguments_source({name: value})
            lines.append(f"    {argument},")
    return "\n".join([*lines, ")"])


_GRID_SIZE: Final = re.compile(r"([0-9]{1,3})x([0-9]{1,3})")
SLICE_AXES = {"H": configs.Conv2dDRAMSliceHeight, "W": configs.Conv2dDRAMSliceWidth}


def member(kind: type[Member], field: str, value: Setting) -> Member:
    """The member of an enumeration by name, in either case; raises ArgumentError if there is none."""
    names = {name.lower(): name for name in kind.__members__}
    name = names.get(str(value).lower())
    if name is None:
        known = f"one of {', '.join(names.values())}" if len(names) <= 16 else f"a name of {kind.__name__}"
        raise ArgumentError(f"{field} must be {known}, not {shown(value)}")
    return kind[name]


def core_grid(value: Setting) -> CoreRangeSet:
    """The cores of a grid "8x4", columns by rows, from (0, 0) on; raises ArgumentError for any other text."""
    size = _GRID_SIZE.fullmatch(str(value))
    if size is None or not (int(size[1]) and int(size[2])):
        raise ArgumentError(f"core_grid must be COLUMNSxROWS of at least 1x1, not {shown(value)}; such as '8x4'")
    return CoreGrid(x=int(size[1]), y=int(size[2])).core_range_set()


CONFIG_MEMBERS: Final[Mapping[str, type[Enum]]] = {  # fields of configs whose values are names of members
    "weights_dtype": DataType,
    "activation": configs.UnaryOpType,
    "shard_layout": TensorMemoryLayout,
    "output_layout": Layout,
    "padding_mode": configs.PaddingMode,
}
COMPUTE_MEMBERS: Final[Mapping[str, type[Enum]]] = {
    "math_fidelity": configs.MathFidelity,
    "throttle_level": configs.ThrottleLevel,
}


def _config(kind: type[Config], settings: Mapping[str, Any]) -> Config:
    """A config with these fields; raises ArgumentTypeError, in one line, for an unknown field or a wrong type."""
    try:
        return kind(**settings)
    except ArgumentTypeError as error:
        known = vars(kind())
        unknown = [name for name in settings if name not in known]
        _, wrong, *_ = str(error).splitlines()  # below the real library's line
        if unknown:
            near = nearest(unknown[0], known)
            wrong = f"{kind.__name__} has no field {shown(unknown[0])}{near}; its fields are {', '.join(known)}"
        raise ArgumentTypeError(wrong) from error


def _with_members(settings: Mapping[str, Setting], kinds: Mapping[str, type[Enum]]) -> dict[str, Any]:
    """The fields of a config, with enum members in place of their names."""
    return {name: member(kinds[name], name, value) if name in kinds else value for name, value in settings.items()}


def conv_config(layer: Layer) -> configs.Conv2dConfig | None:
    """The Conv2dConfig of a layer, None if the layer sets nothing.

    A core_grid also sets override_sharding_config, without which the real library ignores the grid, unless the layer
    sets it. Raises ArgumentError for a wrong member or core_grid; ArgumentTypeError for an unknown field or a wrong
    type.
    """
    settings = _with_members(layer.config, CONFIG_MEMBERS)
    if "activation" in settings:
        settings["activation"] = configs.UnaryWithParam(settings["activation"])
    if "core_grid" in settings:
        settings["core_grid"] = core_grid(settings["core_grid"])
        settings.setdefault("override_sharding_config", True)
    return _config(configs.Conv2dConfig, settings) if settings else None


def compute_config(layer: Layer, arch: object) -> configs.WormholeComputeKernelConfig | None:
    """The compute kernel config of a layer, None if the layer sets nothing; raises like `conv_config`."""
    settings = _with_members(layer.compute, COMPUTE_MEMBERS)
    if not settings:
        return None
    _config(configs.WormholeComputeKernelConfig, settings)  # refuses an unknown field by name
    return configs.init_device_compute_kernel_config(arch, **settings)


def slice_config(layer: Layer) -> configs.Conv2dSliceConfig | None:
    """The slice config of a layer: "l1_full", "H:n" or "W:n"; raises ArgumentError for other text."""
    if layer.slice is None:
        return None
    if layer.slice.lower() == "l1_full":
        return configs.Conv2dL1FullSliceConfig
    axis, _, count = layer.slice.partition(":")
    if axis.upper() not in SLICE_AXES or not count.isdecimal():
        raise ArgumentError(
            f"slice must be 'l1_full', 'H:n' or 'W:n' with n slices (0: as few as fit), not {shown(layer.slice)}"
        )
    return configs.Conv2dSliceConfig(slice_type=SLICE_AXES[axis.upper()], num_slices=int(count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a run of layers."""

    spec: DeviceSpec
    values: Values = "exact"  # How values are computed; "off" plans only
    l1_small_size: int = USUAL_L1_SMALL_SIZE  # Bytes of L1 kept for index tables
    strict: bool = True  # Refuse what the real library accepts and gets wrong
    cycles: bool = True  # Whether cycles are estimated
    # Whether errors suggest configs that fit, and layers with estimated cycles get suggestions of faster configs
    suggestions: bool = True
    lowering: str = Lowering.ZERO_INSERTION.value  # How calls are computed, as `conv_transpose2d` takes it


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A call with its device and arguments, ready to run."""

    device: Device
    arguments: dict[str, Any]  # Keyword arguments of conv_transpose2d; the input is in the layer's input memory
    before: tuple[Event, ...]  # Events on the device since its opening
    events: list[Event]  # Later events, those of the call


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """The result of a call."""

    output: Tensor
    size: tuple[int, int]  # Rows and columns of an output image
    profile: Profile  # Empty if cycles are not estimated


TOO_LARGE: Final = (OutOfMemoryError, CircularBufferError, MemoryError)  # errors of calls that do not fit


def run_layer(layer: Layer, settings: Settings, *, watch: Callable[[Profile], object] | None = None) -> LayerResult:
    """Runs a layer on its own device; a failure is part of the result.

    `watch` gets the profile of a call that ran, while the device is open.
    """
    try:
        inputs = make_inputs(layer, values=settings.values != "off")
        placed = place(layer, inputs, settings)
    except (TTSimError, MemoryError) as error:
        return LayerResult(layer=layer, error=str(error), mistake=not isinstance(error, TOO_LARGE))
    source = layer_source(layer, placed.arguments)
    with placed.device:
        try:
            called = call(placed)
        except (TTSimError, MemoryError) as error:
            reached = operation_uses(settings.spec, placed.before, placed.events)
            mistake = not isinstance(error, TOO_LARGE)
            return LayerResult(layer=layer, error=str(error), reached=reached, source=source, mistake=mistake)
        accuracy = None if settings.values == "off" else accuracy_of(called.output, exact_output(layer, inputs))
        summary = summary_of(placed, called, accuracy)
        if watch is not None:
            watch(called.profile)
    if summary.cycles is not None and settings.suggestions:
        with planned(layer, settings) as (device, options):  # a search for faster configs
            advice = estimate_cycles(conv_transpose2d, device=device, suggestions=True, **options).advice
        summary = replace(summary, cycles=replace(summary.cycles, advice=advice))
    return LayerResult(layer=layer, summary=summary, source=source)


@contextmanager
def planned(layer: Layer, settings: Settings) -> Iterator[tuple[Device, dict[str, Any]]]:
    """A device with a layer's input, without values, and the arguments of the call; raises like `place`."""
    placed = place(layer, make_inputs(layer, values=False), replace(settings, values="off"))
    with placed.device as device:
        yield device, {name: value for name, value in placed.arguments.items() if name != "device"}


def place(layer: Layer, inputs: Inputs, settings: Settings) -> Placed:
    """A fresh device with the layer's input, and the arguments of the call."""
    of_device = [name for name in Settings.__dataclass_fields__ if name not in ("spec", "lowering")]
    options = {name: getattr(settings, name) for name in of_device}
    device = Device(settings.spec, **options)
    events: list[Event] = []
    device.machine.recorders.append(events)
    shape = inputs.x.shape if layer.input_4d else (1, 1, math.prod(inputs.x.shape[:3]), inputs.x.shape[3])
    dtype = partial(member, DataType, "dtype")
    layout = member(Layout, "input_layout", layer.input_layout)
    x = Tensor(inputs.x.reshape(shape), dtype(layer.input_dtype), layout=layout)
    if layer.input_memory != "host":
        x = x.to(device, {"dram": DRAM_MEMORY_CONFIG, "l1": L1_MEMORY_CONFIG}[layer.input_memory])
    weights_dtype = dtype(layer.weights_dtype)
    own = {
        "input_tensor": x,
        "weight_tensor": Tensor(inputs.w, weights_dtype),
        "bias_tensor": None if inputs.b is None else Tensor(inputs.b, weights_dtype),
        "device": device,
        "dtype": None if layer.dtype is None else dtype(layer.dtype),
        "conv_config": conv_config(layer),
        "compute_config": compute_config(layer, device.arch()),
        "dram_slice_config": slice_config(layer),
    }
    # Tensors come first; the other parameters are fields of a layer
    arguments = {
        name: own[name] if name in own else getattr(layer, name)
        for name in sorted(ConvTranspose2d.parameters(), key=lambda name: name not in TENSORS)
        if name in own or name in FIELDS
    }
    if settings.lowering != Lowering.ZERO_INSERTION:
        arguments["lowering"] = settings.lowering
    before = tuple(events)
    events.clear()
    return Placed(device=device, arguments=arguments, before=before, events=events)


def call(placed: Placed) -> Called:
    """Runs the call; raises ArgumentError, ArgumentTypeError, or DeviceError if the call does not fit the device."""
    with profile(placed.device) as recorded:
        output, size = conv_transpose2d(**placed.arguments, return_output_dim=True)
    return Called(output=output, size=size, profile=recorded)


def summary_of(placed: Placed, called: Called, accuracy: Accuracy | None = None) -> Summary:
    """The figures of a call."""
    return summarize(
        spec=placed.device.spec,
        before=placed.before,
        events=placed.events,
        layouts=layouts_of(placed.events),
        output=called.output.spec,
        output_size=called.size,
        accuracy=accuracy,
        cycles=called.profile.report() if placed.device.cycles else None,
    )


def layouts_of(events: Iterable[Event]) -> list[ConvPartition]:
    """The partitions of all convolutions that ran, in order."""
    ops = (event.op for event in events if isinstance(event, OperationBegin))
    return [op.layout for op in ops if isinstance(op, Conv2dOp | PhaseConv2dOp)]


def accuracy_of(output: Tensor, exact: npt.NDArray[np.float64] | None) -> Accuracy | None:
    """The accuracy of an output against float64; None without an exact output."""
    return None if exact is None else measure(output.cpu().to_numpy(), exact)
