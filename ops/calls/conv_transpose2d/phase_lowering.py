"""conv_transpose2d by output phase: one small dense convolution for every product of phases, without inserted zeros.

No library computes it so; the programs are those of `ops.programs.patch_matmul`. They read sticks in DRAM, multiply
numbers of one type in one pass, and sum in float32 whatever the compute config says.
"""

from collections.abc import Iterator
from dataclasses import fields
from math import prod
from types import MappingProxyType
from typing import Final

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16, FLOAT32
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.calls.conv_transpose2d.validation import require_sane
from ops.calls.convolution.arguments import ConvArguments, ConvConfig
from ops.calls.convolution.problem import compute_config, output_format, weight_format
from ops.calls.convolution.sanity import refuse_first
from ops.calls.convolution.validation import SHARD_LAYOUTS
from ops.calls.onednn.forward import Lowering, forward
from ops.calls.onednn.problem import Deconvolution
from ops.calls.onednn.stages import HOST_TENSOR, image_sticks
from ops.definition.geometry import plan_geometry
from ops.meanings import MEANINGS
from ops.programs.movement.placement import converted, tilized, to_config, to_interleaved
from ops.programs.movement.work import Conversion
from ops.programs.patch_matmul.slicing import Precision

FORMATS: Final = (BFLOAT16, FLOAT32)
# Fields of a conv config that are followed, or that decide nothing here: there is no halo, and no index tensor.
FIELDS: Final = frozenset(
    {
        "weights_format",
        "output_layout",
        "deallocate_activation",
        "reallocate_halo_output",
        "config_tensors_in_dram",
        "full_inner_dim",
        "enable_kernel_stride_folding",
        "enable_activation_reuse",
    }
)
USERS_NAMES: Final = MappingProxyType({"replicate_padding": "padding_mode"})  # where the public config has another name


def require_phases(call: ConvArguments) -> None:
    """Refuses a call that this lowering can not carry out, and all that a strict device refuses.

    Args:
        call: The call, validated.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    require_sane(call)
    refuse_first('conv_transpose2d, lowering="phase"', call, (_places, _raw_operands, _formats, _config))


def _places(call: ConvArguments) -> Iterator[str]:
    if call.slice_config is not None:
        yield "dram_slice_config must be None: there are no slices, the input is read from DRAM stick by stick"
    if call.memory_config is not None and call.memory_config.is_sharded():
        yield (
            f"memory_config must be interleaved, not {call.memory_config.memory_layout.name}; use DRAM_MEMORY_CONFIG "
            "or L1_MEMORY_CONFIG, and to_memory_config afterwards"
        )
    place = call.input.spec.memory_config
    if not call.input.on_host and place.is_sharded() and place.memory_layout not in SHARD_LAYOUTS:
        yield f"input_tensor must not be {place.memory_layout.name}; use to_memory_config(..., DRAM_MEMORY_CONFIG)"


def _raw_operands(call: ConvArguments) -> Iterator[str]:
    for name, operand in (("weight_tensor", call.weight), ("bias_tensor", call.bias)):
        if operand is not None and not operand.on_host:
            yield (
                f'{name} must be on the host: what is on the device was prepared for lowering="frame"; '
                "pass it as it was made"
            )


def _formats(call: ConvArguments) -> Iterator[str]:
    source, weights, made = call.input.spec.data_format, weight_format(call), output_format(call)
    known = " or ".join(one.name for one in FORMATS)
    if source not in FORMATS:
        yield f"input_tensor must be {known}, not {source}; convert it with typecast"
    if made not in FORMATS:
        yield f"dtype must be {known}, not {made}; convert the output with typecast"
    if weights != source:
        yield (
            f"conv_config.weights_dtype (by default that of weight_tensor) must be the type of input_tensor, {source}, "
            f"not {weights}: both operands are multiplied in one type; set weights_dtype={source}, or convert "
            "input_tensor"
        )


def _config(call: ConvArguments) -> Iterator[str]:
    default = ConvConfig()
    for field in fields(ConvConfig):
        given = getattr(call.conv_config, field.name)
        if field.name not in FIELDS and given != getattr(default, field.name):
            name = USERS_NAMES.get(field.name, field.name)
            yield f'conv_config.{name} is not known to this lowering; leave it out, or use lowering="frame"'


def deconvolution_of(call: ConvArguments) -> Deconvolution:
    """A call as a transposed convolution of two axes, of a kernel that is not mirrored."""
    top, bottom, left, right = call.padding
    return Deconvolution(
        geometry=plan_geometry(
            (call.input_height, call.input_width),
            call.kernel_size,
            stride=call.stride,
            pad_before=(top, left),
            pad_after=(bottom, right),
            output_padding=call.output_padding,
            dilation=call.dilation,
        ),
        batch=call.batch_size,
        in_channels=call.in_channels,
        out_channels=call.out_channels,
        groups=call.groups,
        data_format=call.input.spec.data_format,
        out_format=output_format(call),
        precision=Precision.DEVICE,
        fidelity_phases=compute_config(call).fidelity_phases,
        channels_last=True,
        weights_format="IOX",
    )


def plan_phases(call: ConvArguments, device_spec: DeviceSpec) -> Plan:
    """Plan a call that `require_phases` let pass.

    Args:
        call: The call.
        device_spec: The device.

    Returns:
        A plan of "input", on the host or the device, of the host tensors "weights" (not mirrored) and "bias", and of
        the result "output".
    """
    d = deconvolution_of(call)
    builder = PlanBuilder(device_spec, {"input": call.input.spec, "weights": HOST_TENSOR, "bias": HOST_TENSOR})
    sticks = _sticks(builder, call, d)
    result = forward(builder, d, sticks, bias=call.bias is not None, lowering=Lowering.PHASE)
    positions = d.batch * prod(d.geometry.output_shape)
    rows = TensorSpec((1, 1, positions, d.out_channels), d.dst_format, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
    result = PlanTensor(result.name, rows)
    if call.conv_config.output_layout is Layout.TILE:
        tiles = tilized(builder, result, "output.tiles")
        builder.free(result)
        result = tiles
    if call.memory_config is not None:
        result = to_config(builder, result, call.memory_config, "output.moved")
    return builder.finish({"output": result.name}, {result.name: result.spec}, known_works=MEANINGS)


def _sticks(builder: PlanBuilder, call: ConvArguments, d: Deconvolution) -> PlanTensor:
    """The input as sticks in DRAM: uploaded, brought there by one program or two, or as it lies."""
    if call.input.on_host:
        return image_sticks(builder, d, "input", d.geometry.input_shape, d.in_channels, parts=1)
    given = sticks = builder.tensor("input")
    if given.spec.memory_config.is_sharded():
        sticks = to_interleaved(builder, given, DRAM_MEMORY_CONFIG, "input.interleaved")
    made = TensorSpec(given.spec.shape, given.spec.data_format, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
    if sticks.spec.layout is Layout.TILE:
        whole = sticks.spec.shape == sticks.spec.padded_shape
        conversion = Conversion.UNTILIZE if whole else Conversion.UNTILIZE_WITH_UNPADDING
        sticks = converted(builder, conversion, sticks, "input.sticks", made)
    elif sticks.in_l1:
        sticks = converted(builder, Conversion.COPY, sticks, "input.sticks", made)
    if call.conv_config.deallocate_activation and given.in_l1:
        builder.free(given)
    return sticks
