"""Run the convolutions of a network one after the other on a simulated device, and time them.

Every layer gets the tensor that the layer before left in L1, so that shards are inherited and a tensor moves where it
moves on the device. Nothing here is fitted: the constants are those of the device's description.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from types import MappingProxyType
from typing import Final

import numpy as np

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import FLOAT32, div_up
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.op_model import CyclesContext, Ends, OpModels
from ops.op_models import OP_MODELS
from ops.programs.data_movement.copy import CopyTensor
from ops.programs.data_movement.movement import movement_cycles
from tools.validate.conv import SCHEMES
from tools.validate.network_rows import BETWEEN, NS_PER_S, NetworkStep, Walk
from tools.validate.prediction import OF_2025, Row, numbers, with_software_of_2025
from ttsim.api.conv import conv2d, conv_transpose2d
from ttsim.recording.profiling import profile, timed_call
from ttsim.runtime.device import Device
from ttsim.runtime.settings import Values
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.traces import RanCall
from ttsim.runtime.types.configs import (
    Conv2dConfig,
    MathFidelity,
    UnaryOpType,
    UnaryWithParam,
    WormholeComputeKernelConfig,
)
from ttsim.runtime.types.tensors import DataType, bfloat4_b, bfloat8_b, bfloat16, float32

L1_SMALL_BYTES: Mapping[str, int] = {"vgg_unet": 32768, "vanilla_unet": 98304}  # what their tests open devices with
DTYPES: Mapping[str, DataType] = {"bf16": bfloat16, "bfp8_b": bfloat8_b, "bfp4_b": bfloat4_b, "fp32": float32}


class Software(Enum):
    """Whose kernels are timed; the value is how a report names it."""

    RELEASE = "release 0.81.1"
    OF_2025 = "software of 2025"


def _copy_of_2025(op: CopyTensor, ends: Ends, context: CyclesContext) -> OperationCycles:
    """Programs of 2025 copy every stick twice when they shard a tensor."""
    movement = op.movement(ends.read, ends.written, context.spec, bounces_always=True)
    return movement_cycles(movement, context.spec, contention=context.contention)


MODELS_OF: Final[Mapping[Software, OpModels]] = MappingProxyType(
    {
        Software.RELEASE: OP_MODELS,
        Software.OF_2025: {**OP_MODELS, CopyTensor: replace(OP_MODELS[CopyTensor], cycles=_copy_of_2025)},
    }
)


def softwares(spec: DeviceSpec) -> tuple[Software, ...]:
    """Those that the device's description tells apart: kernels that tilize were replaced on some devices."""
    return (Software.RELEASE, Software.OF_2025) if spec.arch in OF_2025 else (Software.RELEASE,)


@dataclass(frozen=True, slots=True)
class TimedKind:
    """A device operation and its time."""

    name: str  # Which, without the ending that all share
    time_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTime:
    """What became of one step of a network."""

    step: NetworkStep
    operations: tuple[TimedKind, ...] = ()  # Device operations of its call; none for the end of the network
    between: tuple[TimedKind, ...] = ()  # Device operations before it
    left_out: tuple[str, ...] = ()  # Operations before it that the real library has and that are not simulated
    scheme: str = ""  # How its output is dealt to how many cores
    reason: str = ""  # Why it was not timed, or not entirely; empty if it was

    @property
    def time_ns(self) -> float:
        """Of the call."""
        return total_ns(self.operations)


def total_ns(kinds: Iterable[TimedKind]) -> float:
    """The time of some operations together."""
    return sum(kind.time_ns for kind in kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over a network."""

    calls_ns: float  # Of all calls of convolutions
    between_ns: float  # Of what is timed between them
    operations: int  # Device operations that are timed
    left_out: Mapping[str, int]  # Those of the real library that are not simulated, by name
    failed: int  # Layers without a time, or with a part of it missing

    @property
    def timed_ns(self) -> float:
        """Everything that is timed."""
        return self.calls_ns + self.between_ns


def totals(times: Sequence[LayerTime]) -> Totals:
    """Sums up the steps of a network."""
    return Totals(
        calls_ns=sum(layer.time_ns for layer in times),
        between_ns=total_ns(kind for layer in times for kind in layer.between),
        operations=sum(len(layer.operations) + len(layer.between) for layer in times),
        left_out=Counter(name for layer in times for name in layer.left_out),
        failed=sum(bool(layer.reason) for layer in times),
    )


def run_network(
    steps: Sequence[NetworkStep], spec: DeviceSpec, software: Software = Software.RELEASE
) -> list[LayerTime]:
    """Times all convolutions of a network on a fresh device; plans are those of the release.

    ``software`` says whose kernels: those of 2025 tilize slower, and copy every stick twice when they shard a tensor,
    as `tools.validate` assumes for measured rows of that time.
    """
    spec = with_software_of_2025(spec) if software is Software.OF_2025 else spec
    with device_of(steps, spec, "off") as device:
        walk = Walk(device, needed_again(steps))
        return [_step(walk, step, software) for step in steps]


def device_of(steps: Sequence[NetworkStep], spec: DeviceSpec, values: Values) -> Device:
    """A device as the network's test opens it."""
    small = max((L1_SMALL_BYTES.get(step.flow["model"], 0) for step in steps), default=0)
    # Not strict: the first layer's input has more channels than the call says, which the real library allows.
    return Device(spec, l1_small_size=small, values=values, strict=False)


def needed_again(steps: Iterable[NetworkStep]) -> frozenset[str]:
    """Layers whose outputs stay in L1 until a later step takes them up."""
    return frozenset(step.before[1] for step in steps if step.before[:1] == ("concat",))


def _step(walk: Walk, step: NetworkStep, software: Software) -> LayerTime:
    """The result of one step, which includes its errors."""
    word = step.before[0] if step.before else ""
    if word not in BETWEEN:
        walk.x = None
        return LayerTime(step=step, reason=f"before it stands {word}, which is not known")
    result = LayerTime(step=step)
    walk.begin(step)
    try:
        with profile(walk.device) as profiled:
            walk.left_out.clear()
            BETWEEN[word](walk, step)
        between, missing = _times(profiled.calls, walk.device.spec, software)
        result = replace(result, between=between, left_out=tuple(walk.left_out), reason="; ".join(missing))
        if step.row is None:
            return result
        with profile(walk.device) as profiled:
            output = convolve(walk, step, *map(_empty, operand_shapes(step.row)))
    except (DeviceError, ValueError, KeyError) as error:
        walk.x = None
        return replace(result, reason=f"not planned: {str(error).splitlines()[0]}")
    walk.becomes(output, step.row["layer"])
    operations, more = _times(profiled.calls, walk.device.spec, software)
    return replace(result, operations=operations, scheme=_scheme(output), reason="; ".join(missing + more))


def _times(calls: Iterable[RanCall], spec: DeviceSpec, software: Software) -> tuple[tuple[TimedKind, ...], list[str]]:
    """The operations of calls with their times, and what is not timed."""
    timed = [timed_call(call, spec, op_models=MODELS_OF[software]) for call in calls]
    kinds = tuple(
        TimedKind(operation.name.removesuffix("DeviceOperation"), operation.taken.cycles / spec.clock_hz * NS_PER_S)
        for call in timed
        for operation in call.operations
    )
    return kinds, [f"{missing.name} is not timed: {missing.reason}" for call in timed for missing in call.untimed]


def network_passed(walk: Walk, steps: Iterable[NetworkStep], operands: Mapping[str, tuple[Tensor, Tensor]]) -> Tensor:
    """The output of a whole network, with the numbers of the walk's image."""
    for step in steps:
        walk.begin(step)
        BETWEEN[step.before[0] if step.before else ""](walk, step)
        if step.row is not None:
            layer = step.row["layer"]
            walk.becomes(convolve(walk, step, *operands[layer]), layer)
    return walk.current()


def operand_shapes(row: Row) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of a layer's weights and bias."""
    ins, outs, size = numbers(row, "in_c out_c k")
    channels = (ins, outs) if row["op"] == "conv_transpose2d" else (outs, ins)
    return (*channels, size, size), (1, 1, 1, outs)


def convolve(walk: Walk, step: NetworkStep, weight: Tensor, bias: Tensor) -> Tensor:
    """The convolution of a layer, on the output of the last step."""
    row, flow = step.layer, step.flow
    batch, height, width, ins, outs = numbers(row, "batch in_h in_w in_c out_c")
    size, stride, padding = numbers(row, "k s pad")
    shard = flow["shard_seen"] or row["shard"]
    output = (conv_transpose2d if row["op"] == "conv_transpose2d" else conv2d)(
        input_tensor=walk.current(),
        weight_tensor=weight,
        bias_tensor=bias,
        device=walk.device,
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
            activation=None if row["activation"] == "none" else UnaryWithParam(UnaryOpType[row["activation"].upper()]),
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
    return output


def _empty(shape: tuple[int, ...]) -> Tensor:
    """A host tensor of zeros that takes no memory."""
    return Tensor.of_host(np.broadcast_to(np.float32(0), shape), TensorSpec(shape, FLOAT32, Layout.ROW_MAJOR))


def _scheme(output: Tensor) -> str:
    config = output.memory_config()
    if config.shard_spec is None:
        return f"interleaved {config.buffer_type.name}"
    shards = prod(map(div_up, output.padded_shape[-2:], config.shard_spec.shape))
    return f"{config.memory_layout.name.partition('_')[0].lower()} {min(shards, config.shard_spec.grid.num_cores())}"
