"""conv_transpose2d by output phase: one small dense convolution for every product of phases, without inserted zeros.

No library computes it so; the programs are those of `ops.deconvolution`. They read sticks in DRAM, multiply numbers of
one type in one pass, and sum in float32 whatever the compute config says.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from math import prod
from types import MappingProxyType
from typing import Final

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16, FLOAT32, Array
from device.plan import Free, Plan
from device.spec.device_spec import DeviceSpec
from ops.calls.convolution.arguments import ConvArguments, ConvConfig, ConvTranspose2dArguments
from ops.calls.convolution.problem import compute_config, output_format, weight_format
from ops.calls.convolution.strictness import refuse_first, require_sane
from ops.calls.convolution.validation import SHARD_LAYOUTS
from ops.calls.onednn.forward import Lowering, plan_forward_of
from ops.calls.onednn.problem import Deconvolution
from ops.calls.onednn.stages import image_sticks
from ops.definition.geometry import plan_geometry
from ops.programs.movement import values as data_movement
from ops.programs.movement.placement import tilized, to_config, to_interleaved
from ops.programs.movement.staged import Staged, computed
from ops.programs.movement.work import Relayout
from ops.programs.patch_matmul import host_values as deconvolution
from ops.programs.patch_matmul.host_work import PrepareBias
from ops.programs.patch_matmul.slicing import Precision
from ops.programs.patch_matmul.values import Exact
from ops.programs.patch_matmul.work import PatchMatmul

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


def require_phases(a: ConvTranspose2dArguments) -> None:
    """Refuses a call that this lowering can not carry out, and all that a strict device refuses.

    Args:
        a: The call, validated.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    require_sane(a)
    refuse_first('conv_transpose2d, lowering="phase"', a, (_places, _raw_operands, _formats, _config))


def _places(a: ConvArguments) -> Iterator[str]:
    if a.slice_config is not None:
        yield "dram_slice_config must be None: there are no slices, the input is read from DRAM stick by stick"
    if a.memory_config is not None and a.memory_config.is_sharded():
        yield (
            f"memory_config must be interleaved, not {a.memory_config.memory_layout.name}; use DRAM_MEMORY_CONFIG or "
            "L1_MEMORY_CONFIG, and to_memory_config afterwards"
        )
    place = a.input.spec.memory_config
    if not a.input.on_host and place.is_sharded() and place.memory_layout not in SHARD_LAYOUTS:
        yield f"input_tensor must not be {place.memory_layout.name}; use to_memory_config(..., DRAM_MEMORY_CONFIG)"


def _raw_operands(a: ConvArguments) -> Iterator[str]:
    for name, operand in (("weight_tensor", a.weight), ("bias_tensor", a.bias)):
        if operand is not None and not operand.on_host:
            yield (
                f'{name} must be on the host: what is on the device was prepared for lowering="frame"; '
                "pass it as it was made"
            )


def _formats(a: ConvArguments) -> Iterator[str]:
    source, weights, made = a.input.spec.data_format, weight_format(a), output_format(a)
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


def _config(a: ConvArguments) -> Iterator[str]:
    default = ConvConfig()
    for field in fields(ConvConfig):
        given = getattr(a.conv_config, field.name)
        if field.name not in FIELDS and given != getattr(default, field.name):
            name = USERS_NAMES.get(field.name, field.name)
            yield f'conv_config.{name} is not known to this lowering; leave it out, or use lowering="frame"'


def deconvolution_of(a: ConvTranspose2dArguments) -> Deconvolution:
    """A call as a transposed convolution of two axes, of a kernel that is not mirrored."""
    top, bottom, left, right = a.padding
    return Deconvolution(
        geometry=plan_geometry(
            (a.input_height, a.input_width),
            a.kernel_size,
            stride=a.stride,
            pad_before=(top, left),
            pad_after=(bottom, right),
            output_padding=a.output_padding,
            dilation=a.dilation,
        ),
        batch=a.batch_size,
        in_channels=a.in_channels,
        out_channels=a.out_channels,
        groups=a.groups,
        data_format=a.input.spec.data_format,
        out_format=output_format(a),
        precision=Precision.DEVICE,
        fidelity_phases=compute_config(a).fidelity_phases,
        channels_last=True,
        weights_format="IOX",
    )


def plan_phases(a: ConvTranspose2dArguments, spec: DeviceSpec) -> Plan:
    """Plan a call that `require_phases` let pass.

    Args:
        a: The call.
        spec: The device.

    Returns:
        A plan of "input", on the host or the device, of the host tensors "weights" (not mirrored) and "bias", and of
        the result "output".
    """
    d = deconvolution_of(a)
    plan = plan_forward_of(d, _sticks(a, d, spec), spec, bias=a.bias is not None, lowering=Lowering.PHASE)
    positions = d.batch * prod(d.geometry.output_shape)
    rows = TensorSpec((1, 1, positions, d.out_channels), d.dst_format, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
    result = Staged(name="dst", spec=rows, steps=plan.steps, tensors=plan.tensors)
    if a.conv_config.output_layout is Layout.TILE:
        result = result.followed_by(tilized(result, spec, "output.tiles").then(Free("dst")))
    if a.memory_config is not None:
        result = result.followed_by(to_config(result, a.memory_config, spec, "output.moved"))
    tensors = {"input": a.input.spec, **result.tensors, result.name: result.spec}
    return Plan(steps=result.steps, tensors=tensors, results={"output": result.name})


def _sticks(a: ConvTranspose2dArguments, d: Deconvolution, spec: DeviceSpec) -> Staged:
    """The input as sticks in DRAM: uploaded, brought there by one program or two, or as it lies."""
    given = a.input.spec
    if a.input.on_host:
        return image_sticks(d, "input", d.geometry.input_shape, d.in_channels, spec, parts=1)
    staged = Staged(name="input", spec=given)
    if given.memory_config.is_sharded():
        staged = staged.followed_by(to_interleaved(staged, DRAM_MEMORY_CONFIG, spec, "input.interleaved"))
    made = TensorSpec(given.shape, given.data_format, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
    if staged.spec.layout is Layout.TILE:
        whole = staged.spec.shape == staged.spec.padded_shape
        operation = "Untilize" if whole else "UntilizeWithUnpadding"
        staged = staged.followed_by(computed(operation, staged, "input.sticks", made, spec, Relayout()))
    elif staged.in_l1:
        staged = staged.followed_by(computed("Copy", staged, "input.sticks", made, spec, Relayout()))
    consumed = a.conv_config.deallocate_activation and Staged(name="input", spec=given).in_l1
    return staged.then(Free("input")) if consumed else staged


def evaluator(exact: Exact | None) -> Callable[[object, Sequence[Array | None]], Array]:
    """A function from a work and the arrays of its inputs to the array it makes (see `ops.readings.memory.run_values`).

    Args:
        exact: How the matrix unit multiplies; None for BLAS.
    """
    return partial(_evaluate, deconvolution.evaluator(exact))


def _evaluate(
    programs: Callable[[object, Sequence[Array | None]], Array], work: object, inputs: Sequence[Array | None]
) -> Array:
    """Readers give arrays the shape that they need: ttnn's have been flattened."""
    match work, inputs:
        case Relayout(), _:
            return data_movement.result(work, inputs)
        case PrepareBias(), [bias] if bias is not None:
            return programs(work, [bias.reshape(-1)])
        case PatchMatmul(patches=patches), [image, *others] if image is not None:
            shape = (patches.batch, *(axis.input_size for axis in patches.axes), patches.channels)
            return programs(work, [image.reshape(shape), *others])
    return programs(work, inputs)
