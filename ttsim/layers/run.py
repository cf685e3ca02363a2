"""Run one layer on a fresh simulated device, and sum up what happened."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from device.errors import TTSimError
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.plan import Event, OperationBegin
from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import ConvPartition
from ops.programs.phase_conv2d.op import PhaseConv2dOp
from ttsim.api.conv_transpose2d import conv_transpose2d
from ttsim.layers.arguments import compute_config, conv_config, dtype, member, slice_config
from ttsim.layers.exact import Inputs, exact_output, make_inputs
from ttsim.layers.source import layer_source
from ttsim.recording.profiling import Profile, estimate_cycles, profile
from ttsim.report.cycles.advice import Advice
from ttsim.report.memory.accuracy import Accuracy, measure
from ttsim.report.memory.figures import LayerResult, Summary
from ttsim.report.memory.summary import operation_uses, summarize
from ttsim.runtime.device import Device
from ttsim.runtime.settings import USUAL_L1_SMALL_SIZE, Values
from ttsim.runtime.tensor import Tensor
from ttsim.types.layer import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How layers are run."""

    spec: DeviceSpec
    values: Values = "exact"  # How values are computed; "off" plans only
    l1_small_size: int = USUAL_L1_SMALL_SIZE  # Bytes of L1 kept for index tables
    strict: bool = True  # Refuse what the real library accepts and gets wrong
    cycles: bool = True  # Whether cycles are estimated
    # Whether the error of a layer that does not fit says what would; and of one that runs, where cycles are estimated,
    # what would make it faster
    suggestions: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A call that is ready to be made."""

    device: Device
    arguments: dict[str, Any]  # Keyword arguments of conv_transpose2d; the input lies where the layer wants it
    events: list[Event]  # What happens on the device, from its opening on
    before: int  # How many of them there are already


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """What a call gave."""

    output: Tensor
    size: tuple[int, int]  # Rows and columns of an output image
    profile: Profile  # What ran; empty where cycles are not estimated


def run_layer(layer: Layer, settings: Settings, *, watch: Callable[[Profile], object] | None = None) -> LayerResult:
    """Run one layer on a device of its own; the reason why it can not run is part of the result, too.

    Args:
        settings: How it is run.
        watch: Gets the profile of a call that ran, while the device is open.
    """
    try:
        inputs = make_inputs(layer, values=settings.values != "off")
        placed = place(layer, inputs, settings)
    except (TTSimError, MemoryError) as error:
        return LayerResult(layer=layer, error=str(error))
    source = layer_source(layer, placed.arguments)
    with placed.device:
        try:
            called = call(placed)
        except (TTSimError, MemoryError) as error:
            return LayerResult(
                layer=layer, error=str(error), reached=operation_uses(settings.spec, *split(placed)), source=source
            )
        accuracy = None if settings.values == "off" else accuracy_of(called.output, exact_output(layer, inputs))
        summary = summary_of(placed, called, accuracy)
        if watch is not None:
            watch(called.profile)
    if summary.cycles is not None and settings.suggestions:
        summary = replace(summary, cycles=replace(summary.cycles, advice=advice_on(layer, settings)))
    return LayerResult(layer=layer, summary=summary, source=source)


def advice_on(layer: Layer, settings: Settings) -> Advice | None:
    """What would make a layer faster that runs, found out on a device of its own."""
    placed = place(layer, make_inputs(layer, values=False), replace(settings, values="off"))
    with placed.device as device:
        options = {name: value for name, value in placed.arguments.items() if name != "device"}
        return estimate_cycles(conv_transpose2d, device=device, suggestions=True, **options).advice


def place(layer: Layer, inputs: Inputs, settings: Settings) -> Placed:
    """A fresh device with the input where the layer wants it, and the arguments of the call.

    Raises:
        ArgumentError: The layer names something that does not exist.
        ArgumentTypeError: A field of a config is unknown or of the wrong type.
        DeviceError: The input does not fit.
    """
    device = Device(
        settings.spec,
        l1_small_size=settings.l1_small_size,
        values=settings.values,
        cycles=settings.cycles,
        strict=settings.strict,
        suggestions=settings.suggestions,
    )
    events: list[Event] = []
    device.machine.recorders.append(events)
    shape = inputs.x.shape if layer.input_4d else (1, 1, math.prod(inputs.x.shape[:3]), inputs.x.shape[3])
    x = Tensor(
        inputs.x.reshape(shape), dtype(layer.input_dtype), layout=member(Layout, "input_layout", layer.input_layout)
    )
    if layer.input_memory != "host":
        x = x.to(device, {"dram": DRAM_MEMORY_CONFIG, "l1": L1_MEMORY_CONFIG}[layer.input_memory])
    given = dtype(layer.weights_dtype)
    arguments = {
        "input_tensor": x,
        "weight_tensor": Tensor(inputs.w, given),
        "bias_tensor": None if inputs.b is None else Tensor(inputs.b, given),
        "device": device,
        "in_channels": layer.in_channels,
        "out_channels": layer.out_channels,
        "batch_size": layer.batch_size,
        "input_height": layer.input_height,
        "input_width": layer.input_width,
        "kernel_size": layer.kernel_size,
        "stride": layer.stride,
        "padding": layer.padding,
        "output_padding": layer.output_padding,
        "dilation": layer.dilation,
        "groups": layer.groups,
        "dtype": None if layer.dtype is None else dtype(layer.dtype),
        "conv_config": conv_config(layer),
        "compute_config": compute_config(layer, device.arch()),
        "dram_slice_config": slice_config(layer),
        "mirror_kernel": layer.mirror_kernel,
    }
    return Placed(device=device, arguments=arguments, events=events, before=len(events))


def call(placed: Placed) -> Called:
    """Make the call.

    Raises:
        ArgumentError: Its arguments contradict each other.
        ArgumentTypeError: An argument is of the wrong type, or too large for it.
        DeviceError: It does not fit the device.
    """
    with profile(placed.device) as made:
        output, size = conv_transpose2d(**placed.arguments, return_output_dim=True)
    return Called(output=output, size=size, profile=made)


def summary_of(placed: Placed, called: Called, accuracy: Accuracy | None = None) -> Summary:
    """The figures of a call."""
    before, events = split(placed)
    return summarize(
        spec=placed.device.spec,
        before=before,
        events=events,
        layouts=layouts_of(events),
        output=called.output.spec,
        output_size=called.size,
        accuracy=accuracy,
        cycles=called.profile.report() if placed.device.cycles else None,
    )


def split(placed: Placed) -> tuple[list[Event], list[Event]]:
    """What happened before the call, and in it."""
    return placed.events[: placed.before], placed.events[placed.before :]


def layouts_of(events: Iterable[Event]) -> list[ConvPartition]:
    """The layouts of all convolutions that ran, in order."""
    works = (event.work for event in events if isinstance(event, OperationBegin))
    return [work.layout for work in works if isinstance(work, Conv2dOp | PhaseConv2dOp)]


def accuracy_of(output: Tensor, exact: npt.NDArray[np.float64] | None) -> Accuracy | None:
    """How close an output is to float64; None if that is not known."""
    return None if exact is None else measure(output.cpu().to_numpy(), exact)
