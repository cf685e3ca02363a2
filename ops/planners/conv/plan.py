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

    Args:
        free_l1_bytes: Free bytes of every L1 bank; None where nothing is computed yet.

    Raises:
        ArgumentError: The first check that complains.
        OutOfMemoryError: A tensor is larger than DRAM.
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
    """What this lowering can not carry out."""
    config = call.conv_config
    for name, given, why in (
        ("padding_mode", config.replicate_padding, "padding is zero"),
        ("enable_activation_reuse", config.enable_activation_reuse, "rows of a phase are gathered by themselves"),
        ("force_split_reader", bool(config.force_split_reader), "the second processor reads weights alone"),
    ):
        if given:
            yield f'conv_config.{name} is not known to this lowering ({why}); leave it out, or use lowering="frame"'


def plan_call(call: ConvCall, spec: DeviceSpec, *, free_l1_bytes: int, returns_weights: bool, strict: bool) -> Plan:
    """The plan of a call that was checked; arguments and errors as of `plan_convolution`.

    Raises:
        ArgumentError: The plan would give a wrong result, and is to be strict; or it takes weights that were prepared
            for another plan of output phases.
    """
    plan = plan_convolution(call, spec, free_l1_bytes=free_l1_bytes, returns_weights=returns_weights)
    if strict:
        check_strict_plan(plan, left_of(call, plan))
    if call.rules.by_phases:
        check_phase_weights(plan, call)
    return plan


def reads_free_l1(call: ConvCall) -> bool:
    """Whether the free bytes of L1 can change the plan of a call: of slices, a matmul, or what folding leaves."""
    return folds(call) or call.is_matmul or not call.takes_l1_path


def plan_convolution(
    call: ConvCall, device_spec: DeviceSpec, *, free_l1_bytes: int, returns_weights: bool = True
) -> Plan:
    """Plan a call.

    Windows that are folded into channels leave a convolution of stride 1. Side by side, that is a 1x1 kernel, which
    the DRAM path takes to the L1 path, where it is a matmul unless it has a dilation or WIDTH shards.

    Args:
        returns_weights: The caller gets prepared weights and bias; otherwise they are released at the end.

    Raises:
        DeviceError: The real library refuses the call for a reason that needs a plan to see.
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
    given = {"input": call.input, "weight": call.weight, "bias": call.bias}
    return PlanBuilder(device_spec, {name: one.spec for name, one in given.items() if one is not None})


def finished(builder: PlanBuilder, call: ConvCall, output: PlanTensor, *, returns_weights: bool) -> Plan:
    """The plan of a call whose steps are written: what it releases at the end, and what it returns, if anything."""
    if builder.refused:
        return builder.finish({})
    names = operand_names(call)
    builder.free_adopted()
    if not returns_weights:
        builder.free(*(one for one in map(builder.tensor, names) if builder.is_own(one)))
    operands = dict(zip(("weight", "bias"), names, strict=False)) if returns_weights else {}
    return builder.finish({"output": output.name, **operands}, {output.name: output.spec}, known_works=OP_MODELS)


def wrapped_output(call: ConvCall) -> TensorSpec:
    """A tensor in DRAM of as many pages as the real library allocates for an output of a call that `wraps`.

    Elements and bytes are counted by 64 bits, and pages by 32: what calls of the real library, version 0.81.1, show.
    Where the bytes of an output in rows are no whole pages, the number that it names was some bytes less in two calls.

    Raises:
        ArgumentError: The bytes that are left are no whole pages.
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
    """The image of the input and the buffer of the output of a call that `wraps`; where DRAM holds that, a refusal.

    Raises:
        ArgumentError: The output would be block floats in rows.
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
