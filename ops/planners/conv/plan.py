"""A call of either convolution, from its checks to its plan: which path it takes, and what follows without outputs."""

from collections.abc import Iterator
from typing import Final

from device.errors import ArgumentError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, Layout
from device.numbers.formats import div_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.op_models import OP_MODELS
from ops.planners.conv.arguments import COUNTS, ConvCall
from ops.planners.conv.checks import (
    check_arguments,
    check_folded,
    check_possible,
    check_sizes,
    check_slices,
    check_strict,
    rows_in_dram,
)
from ops.planners.conv.dram_path import dram_image, dram_path
from ops.planners.conv.folding import folded_call, folded_input, folds, left_of, sliced_as
from ops.planners.conv.l1_path import l1_path
from ops.planners.conv.matmul_path import matmul_path
from ops.planners.conv.operand_checks import refuse_first
from ops.planners.conv.operands import operand_names
from ops.planners.conv.phase_program import runs_by_phases
from ops.planners.conv.plan_checks import PHASES, check_phase_weights, check_strict_plan

BYTES: Final = 2**64


def check_call(call: ConvCall, spec: DeviceSpec, *, strict: bool, free_l1_bytes: int | None = None) -> None:
    """Refuses a call that cannot be planned, or (strict) that the real library gets wrong, in the real library's order.

    ``free_l1_bytes`` are the free bytes of every L1 bank; None before anything is computed. Raises ArgumentError for
    the first failed check, or OutOfMemoryError if a tensor is larger than DRAM.
    """
    check_arguments(call)
    check_possible(call, free_l1_bytes)
    check_sizes(call, spec)
    if call.rules.transposed:
        check_slices(call)
    by_phases = runs_by_phases(call)
    if strict or by_phases:
        check_strict(call)
    if by_phases:
        refuse_first(call, (_not_by_phases,), PHASES)


def _not_by_phases(call: ConvCall) -> Iterator[str]:
    """Settings that this lowering does not support."""
    config = call.conv_config
    for name, setting, why in (
        ("padding_mode", config.replicate_padding, "padding is zero"),
        ("enable_activation_reuse", config.enable_activation_reuse, "rows of a phase are gathered by themselves"),
        ("force_split_reader", bool(config.force_split_reader), "the second processor reads weights alone"),
    ):
        if setting:
            yield (
                f"conv_config.{name} is not known to this lowering ({why}); "
                'leave it out, or use lowering="zero_insertion"'
            )


def plan_call(call: ConvCall, spec: DeviceSpec, *, free_l1_bytes: int, returns_weights: bool, strict: bool) -> Plan:
    """The plan of a call that was checked; arguments and errors as of `plan_convolution`.

    Raises ArgumentError if the plan is strict and would give a wrong result, or if it reads weights that were prepared
    for another plan of output phases.
    """
    plan = plan_convolution(call, spec, free_l1_bytes=free_l1_bytes, returns_weights=returns_weights)
    if strict:
        check_strict_plan(plan, left_of(call, plan))
    if call.rules.by_phases:
        check_phase_weights(plan, call)
    return plan


def reads_free_l1(call: ConvCall) -> bool:
    """Whether the free bytes of L1 can change the plan of a call: with slices, a matmul, or folded windows."""
    return folds(call) or call.is_matmul or not call.takes_l1_path


def plan_convolution(
    call: ConvCall, device_spec: DeviceSpec, *, free_l1_bytes: int, returns_weights: bool = True
) -> Plan:
    """The plan of a call, which returns prepared weights and bias on demand and else releases them at the end.

    Windows that are folded into channels leave a convolution of stride 1. Adjacent windows leave a 1x1 kernel, which
    the DRAM path takes to the L1 path; there it runs as a matmul unless it has a dilation or WIDTH shards. Raises
    DeviceError if the real library refuses the call for a reason that needs a plan to see.
    """
    builder = builder_of(call, device_spec)
    if not folds(call):
        source = builder.tensor("input")
        if call.plans_without_outputs:
            output = plan_without_outputs(builder, call)
        elif call.is_matmul:
            output = matmul_path(builder, call, source, from_dram=not call.takes_l1_path, free_l1_bytes=free_l1_bytes)
        elif call.takes_l1_path:
            output = l1_path(builder, call, source)
        else:
            output = dram_path(builder, call, source, free_l1_bytes=free_l1_bytes)
        return finished(builder, call, output, returns_weights=returns_weights)
    image = folded_input(builder, call)
    folded = folded_call(call, image.spec)
    check_folded(folded)
    if folded.is_matmul:
        output = matmul_path(builder, folded, image, from_dram=False, free_l1_bytes=free_l1_bytes)
    elif call.takes_l1_path or call.kernel_size == call.stride:
        output = l1_path(builder, folded, image)
    else:
        output = dram_path(builder, sliced_as(folded, call), image, free_l1_bytes=free_l1_bytes)
    if builder.is_own(image) and not builder.refused:
        builder.free(image)
    return finished(builder, folded, output, returns_weights=returns_weights)


def builder_of(call: ConvCall, device_spec: DeviceSpec) -> PlanBuilder:
    """An empty plan of a call; its tensors are "input", "weight" and, if there is one, "bias"."""
    operands = {"input": call.input, "weight": call.weight, "bias": call.bias}
    return PlanBuilder(device_spec, {name: operand.spec for name, operand in operands.items() if operand is not None})


def finished(builder: PlanBuilder, call: ConvCall, output: PlanTensor, *, returns_weights: bool) -> Plan:
    """The plan of a call whose steps are written, with its last releases and its results, if any."""
    if builder.refused:
        return builder.finish({})
    names = operand_names(call)
    builder.free_adopted()
    if not returns_weights:
        builder.free(*(tensor for tensor in map(builder.tensor, names) if builder.is_own(tensor)))
    operands = dict(zip(("weight", "bias"), names, strict=False)) if returns_weights else {}
    return builder.finish({"output": output.name, **operands}, {output.name: output.spec}, known_works=OP_MODELS)


def wrapped_output(call: ConvCall) -> TensorSpec:
    """A tensor in DRAM of as many pages as the real library allocates for an output of a call that `wraps`.

    The library counts elements and bytes in 64 bits, and pages in 32: calls of the real library, version 0.81.1, show
    this. Where the bytes of an output in rows are no whole pages, its error named a few bytes less in two calls. Raises
    ArgumentError if the remaining bytes are no whole pages.
    """
    (height, width), batch, channels = call.output_lengths(unsigned=True), call.batch_size, call.out_channels
    layout, number_format = call.conv_config.output_layout, call.output_format
    element_bytes = number_format.element_bytes
    if layout is Layout.TILE or element_bytes is None:  # block floats in rows are refused before
        tiles = batch * height * div_up(width, TILE) * div_up(channels, TILE)
        page_bytes = number_format.tile_bytes
        size_bytes = tiles % (BYTES // TILE**2) * page_bytes % BYTES
    else:
        page_bytes = channels * element_bytes
        size_bytes = batch * height * width * page_bytes % BYTES
    pages, rest = divmod(size_bytes, page_bytes)
    if rest:
        raise ArgumentError(
            f"For valid non-interleaved buffers page size {page_bytes} must equal buffer size {size_bytes}. For "
            "interleaved-buffers, buffer size should be divisible by the page size\n" + call.describe_no_outputs()
        )
    rows, columns = (pages % COUNTS * TILE, TILE) if layout is Layout.TILE else (pages % COUNTS, channels)
    return TensorSpec((1, 1, rows, columns), number_format, layout, DRAM_MEMORY_CONFIG)


def plan_without_outputs(builder: PlanBuilder, call: ConvCall) -> PlanTensor:
    """The image of the input and the output buffer of a call that `wraps`; a refusal if both fit DRAM.

    Raises ArgumentError if the output would be block floats in rows.
    """
    refuse_first(call, (rows_in_dram,))
    image = dram_image(builder, builder.tensor("input"), call.image_shape, on_host=call.input.on_host)
    try:
        output = wrapped_output(call)
    except ArgumentError as error:
        builder.refuse(error)
        return image
    target = builder.allocate("output.image", output)
    builder.refuse(ArgumentError(call.describe_no_outputs()))
    return target
