"""A call of either convolution, from its checks to its plan: the path that it takes, and the path through DRAM.

The DRAM path makes an image of the input in DRAM and puts the output together slice by slice
(docs/reference/planning.md, DRAM path). Its slices run on the L1 path.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import prod
from typing import Final, NamedTuple

from device.errors import ArgumentError, DeviceError, OutOfMemoryError, TTSimError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, Layout, MemoryConfig
from device.numbers.formats import div_up
from device.plan import Decision, Plan, Step
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.conv import checks, slicing
from ops.planners.conv.arguments import COUNTS, ConvCall, Operand, SliceConfig, refuse_first
from ops.planners.conv.folding import FOLDED, folded_call, folded_input, sliced_as
from ops.planners.conv.l1_path import PHASES, check_phase_weights, l1_path
from ops.planners.conv.matmul_path import matmul_path
from ops.planners.conv.operands import operand_names, operands
from ops.planners.conv.split import PlanPart, check_split, split_path, undivided
from ops.planners.conv.strict import check_strict, plan_fault
from ops.programs.conv2d.partition import UnknownRatesError
from ops.programs.data_movement.placement import to_interleaved, uploaded_image
from ops.programs.data_movement.reshape import is_view, reshaped
from ops.programs.data_movement.slice import SliceWrite, Window, sliced_input, write_slice

BYTES: Final = 2**64


def check_call(call: ConvCall, spec: DeviceSpec, *, strict: bool, free_l1_bytes: int | None = None) -> None:
    """Raises an error for a call that cannot be planned, or (strict) is wrong in the real library, in its order.

    ``free_l1_bytes`` are the free bytes of every L1 bank; None before anything is computed. Raises ArgumentError for
    the first failed check, or OutOfMemoryError if a tensor is larger than DRAM.
    """
    checks.check_arguments(call, spec)
    checks.check_possible(call, free_l1_bytes)
    checks.check_sizes(call, spec)
    if strict and call.rules.transposed:
        checks.check_slices(call)
    if strict or call.runs_by_phases:
        check_strict(call)
    if call.runs_by_phases:
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
    """The plan of a call that was checked; arguments and errors as in `plan_convolution`.

    Raises ArgumentError if the plan is strict and would give a wrong result, or if it reads weights that were prepared
    for another plan of output phases.
    """
    if call.rules.splits:
        own = partial(plan_call, spec=spec, free_l1_bytes=free_l1_bytes, strict=strict)
        if (whole := undivided(call, partial(own, returns_weights=returns_weights), free_l1_bytes)) is not None:
            return whole
        check_split(call, returns_weights=returns_weights)
        return plan_split(call, spec, partial(own, returns_weights=False), free_l1_bytes=free_l1_bytes)
    plan = plan_convolution(call, spec, free_l1_bytes=free_l1_bytes, returns_weights=returns_weights)
    left = folded_call(call, plan.tensors[FOLDED]) if call.folds else call
    if strict and (fault := plan_fault(plan, left)) is not None:
        raise ArgumentError(fault)
    if call.rules.by_phases:
        check_phase_weights(plan, call)
    return plan


def plan_split(call: ConvCall, spec: DeviceSpec, plan_part: PlanPart, *, free_l1_bytes: int) -> Plan:
    """The plan of a call that becomes several calls of ttnn; errors as in `plan_call`."""
    builder = builder_of(call, spec)
    image = dram_image(builder, builder.tensor("input"), call.image_shape, on_host=call.input.on_host)
    output = split_path(builder, call, image, plan_part, free_l1_bytes=free_l1_bytes)
    if builder.refused:
        return builder.finish({})
    builder.free_adopted()
    return builder.finish({"output": output})


def reads_free_l1(call: ConvCall) -> bool:
    """Whether the free bytes of L1 can change the plan of a call: with slices, parts, a matmul, or folded windows."""
    return call.folds or call.is_matmul or call.rules.splits or not call.takes_l1_path


def plan_convolution(
    call: ConvCall, device_spec: DeviceSpec, *, free_l1_bytes: int, returns_weights: bool = True
) -> Plan:
    """The plan of a call, which returns prepared weights and bias on demand and else releases them at the end.

    Windows that are folded into channels leave a convolution of stride 1. Adjacent windows leave a 1x1 kernel, which
    the DRAM path takes to the L1 path; there it runs as a matmul unless it has a dilation or WIDTH shards. Raises
    DeviceError if the real library refuses the call for a reason that needs a plan to see.
    """
    builder = builder_of(call, device_spec)
    if not call.folds:
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
    checks.check_folded(folded, device_spec)
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
    bias = None if call.bias is None else call.bias.spec
    return PlanBuilder(device_spec, {"input": call.input.spec, "weight": call.weight.spec, "bias": bias})


def finished(builder: PlanBuilder, call: ConvCall, output: PlanTensor, *, returns_weights: bool) -> Plan:
    """The plan of a call whose steps are written, with its last releases and its results, if any."""
    if builder.refused:
        return builder.finish({})
    builder.free_adopted()
    prepared = operands(builder, call)
    if returns_weights:
        return builder.finish({"output": output, **dict(zip(("weight", "bias"), prepared, strict=False))})
    builder.free_own(*prepared)
    return builder.finish({"output": output})


def wrapped_output(call: ConvCall) -> TensorSpec:
    """A tensor in DRAM with the pages that the real library allocates for an output of a call that `wraps`.

    As observed with version 0.81.1, the library counts elements and bytes in 64 bits, but pages in 32 bits. If the
    bytes of a ROW_MAJOR output are not whole pages, its error named a few bytes less in two calls. Raises ArgumentError
    if the remaining bytes are not whole pages.
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
    """The image of the input and the output buffer of a call that `wraps`; a refusal if both fit DRAM."""
    refuse_first(call, (checks.rows_in_dram,))
    if (text := slicing.too_many_of_nothing(call, call.output_lengths(unsigned=True))) is not None:
        raise ArgumentError(f"{text}\n{call.describe_no_outputs()}")
    image = dram_image(builder, builder.tensor("input"), call.image_shape, on_host=call.input.on_host)
    try:
        output = wrapped_output(call)
    except ArgumentError as error:
        builder.refuse(error)
        return image
    target = builder.allocate("output.image", output)
    builder.refuse(ArgumentError(call.describe_no_outputs()))
    return target


# The path through DRAM


def dram_path(builder: PlanBuilder, call: ConvCall, source: PlanTensor, *, free_l1_bytes: int) -> PlanTensor:
    """Steps from an input on the host or in DRAM to the output in DRAM.

    With a given slice type, one slice of a transposed convolution means the L1 path with the caller's own config, and a
    sharded output; without a slice config, or for conv2d, one slice means the L1 path between two copies. If more
    slices are asked for than the output has, or no number of slices fits, the plan ends in a refusal after the program
    that makes an image of the input. Raises DeviceError if a call that needs slices has its input in L1.
    """
    slice_config = call.slice_config
    if slice_config is not None and slice_config.num_slices:
        config = slice_config
        text = f"{slicing.describe_slices(config)}, as dram_slice_config says"
        decision = Decision(name="num_slices", value=config.num_slices, text=text)
    else:
        try:
            config, decision = slicing.choose_slices(call, builder.device_spec, free_l1_bytes=free_l1_bytes)
        except (OutOfMemoryError, UnknownRatesError) as error:
            return _refused(builder, call, source, error)
    counted = call if config is slice_config else replace(call, slice_config=config)
    if call.slices_skip_dram(config.num_slices):
        refuse_first(counted, (checks.placing,))
        checks.require_rank(counted, builder.device_spec)
        return l1_path(builder, call, source)
    refuse_first(counted, (checks.rows_in_dram, checks.input_in_dram) if slice_config else (checks.rows_in_dram,))
    try:
        slicing.check_slice_count(call, config)
    except TTSimError as error:
        return _refused(builder, call, source, error)
    refuse_first(counted, (checks.placing,))
    builder.decide(decision)
    image = dram_image(builder, source, call.image_shape, on_host=call.input.on_host)
    out_shape = (call.batch_size, call.axis(0).outputs, call.axis(1).outputs, call.out_channels)
    image_spec = TensorSpec(out_shape, call.output_format, call.conv_config.output_layout, DRAM_MEMORY_CONFIG)
    target = builder.allocate("output.image", image_spec)
    if config.num_slices > 1:
        _slices(builder, call, config, image, target)
        if builder.refused:
            return target
        rows = reshaped(builder, target, (1, 1, prod(out_shape[:-1]), out_shape[-1]), "output.rows")
        builder.free_own(target, keep=[rows])
        return rows
    builder.free(target)  # allocated before the number of slices was known, and not needed for one slice
    output = l1_path(builder, call.as_slice(Operand(spec=image.spec, on_host=False)), image)
    if builder.refused:
        return output
    copy = to_interleaved(builder, output, DRAM_MEMORY_CONFIG, "output.dram")
    builder.free(output)
    return copy


def _refused(builder: PlanBuilder, call: ConvCall, source: PlanTensor, error: TTSimError) -> PlanTensor:
    """The image of the input, whose programs stay in the cache though no slice is ever cut.

    Raises the error at once if the input has another volume: the real library takes that input for the image.
    """
    if source.spec.volume != prod(call.image_shape):
        raise error
    image = dram_image(builder, source, call.image_shape, on_host=call.input.on_host)
    builder.refuse(error)
    return image


class _PlannedSlice(NamedTuple):
    """A slice whose steps are planned."""

    prefix: str  # Prefix of the names of its tensors
    memory: MemoryConfig  # The place of its window
    steps: tuple[Step, ...]  # From the window to the output
    output: PlanTensor
    columns: int  # Columns of the output, which may exceed the slice's own


def _slices(builder: PlanBuilder, call: ConvCall, config: SliceConfig, image: PlanTensor, target: PlanTensor) -> None:
    """Plans the slices in sequence; the first prepares the weights. Raises DeviceError if no slice reads input.

    A slice that differs from an earlier slice only in its position repeats the steps on its own tensors.
    """
    ready = call
    planned: dict[slicing.OutputSlice, _PlannedSlice] = {}
    for index, part in enumerate(slicing.output_slices(call, config)):
        if part.is_empty:
            continue
        if (text := checks.slice_refusal(call, config, index, part)) is not None:
            builder.refuse(ArgumentError(text))
            return
        prefix, like = f"slice{index}.", planned.get(part.at_origin)
        read = _window(call.image_shape, part.down[:2], part.across[:2])
        if like is None:
            dealt = slicing.input_cores(ready, part, builder.device_spec)
            if dealt.choice is not None:
                builder.decide(dealt.choice.decision)
            window = sliced_input(builder, image, read, dealt.memory, f"{prefix}input")
            begin, source = len(builder.steps), Operand(spec=window.spec, on_host=False)
            output = l1_path(builder, dealt.call.as_slice(source, dealt.cores.scheme), window, prefix=prefix)
            columns = dealt.problem.frame.columns.outputs
            computed = _PlannedSlice(prefix, dealt.memory, builder.steps[begin:], output, columns)
        else:
            window = sliced_input(builder, image, read, like.memory, f"{prefix}input")
            builder.repeat(like.steps, like.prefix, prefix)
            name = prefix + like.output.name.removeprefix(like.prefix)
            computed = like._replace(output=like.output._replace(name=name))
        if builder.refused:
            return
        written = SliceWrite(_window(target.spec.shape, part.rows, part.columns), computed.columns)
        write_slice(builder, computed.output, target, written, f"{prefix}written")
        builder.free_own(window)  # a call without a halo reads it to the end
        if ready is call:  # the first slice uploads weights and bias, and chooses the scheme, so no other is like it
            weight, *bias = (
                replace(operand, on_host=False, name=name)
                for operand, name in zip((call.weight, call.bias), operand_names(call), strict=False)
                if operand is not None
            )
            settled = replace(call.conv_config, shard_layout=computed.memory.memory_layout)
            ready = replace(call, weight=weight, bias=next(iter(bias), None), conv_config=settled)
        elif like is None:
            planned[part.at_origin] = computed
    if ready is call:
        raise DeviceError(
            f"No slice has input: {config.num_slices} slices of type {config.slice_type.name} begin in the padding\n"
            "dram_slice_config: the real library computes nothing then and returns what happens to be in memory; "
            "use fewer slices"
        )


def _window(shape: tuple[int, ...], rows: tuple[int, int], columns: tuple[int, int]) -> Window:
    """Some rows and columns of images, from the first to one past the last."""
    images, height, width, channels = shape
    begins, ends = (0, rows[0], columns[0], 0), (images, rows[1], columns[1], channels)
    return Window(shape=(images, height, width, channels), begins=begins, ends=ends)


def dram_image(
    builder: PlanBuilder, source: PlanTensor, shape: tuple[int, int, int, int], *, on_host: bool
) -> PlanTensor:
    """The input as an image tensor in DRAM; a copy is released when the call returns.

    An image with fewer rows than the tensor holds the tensor's first rows. The memory config of a host tensor does not
    matter.
    """
    start = uploaded_image(builder, source) if on_host else source
    spec = start.spec
    if is_view(spec, shape) and prod(shape) < spec.volume:
        image = PlanTensor(start.name, spec.changed(shape=shape))
    else:
        image = reshaped(builder, start, shape, f"{source.name}.image")
    if image.name != start.name and on_host:
        builder.free(start)
    if image.name != source.name:
        builder.adopt(image)
    return image
