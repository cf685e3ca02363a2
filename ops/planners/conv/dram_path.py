"""The DRAM path: the input as an image in DRAM, the output put together slice by slice (docs/planning.md)."""

from dataclasses import dataclass, replace
from math import prod

from device.errors import DeviceError, OutOfMemoryError, TTSimError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, TensorMemoryLayout
from device.plan import Decision, Step
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.conv.arguments import ConvCall, Operand, SliceConfig
from ops.planners.conv.checks import input_in_dram, input_rank, placing, rows_in_dram
from ops.planners.conv.l1_path import l1_path
from ops.planners.conv.operand_checks import refuse_first
from ops.planners.conv.operands import operand_names
from ops.planners.conv.slicing import (
    OutputSlice,
    check_slice_count,
    choose_slices,
    describe_slices,
    input_cores,
    input_memory,
    output_slices,
)
from ops.programs.conv2d.partition import UnknownRatesError
from ops.programs.data_movement.placement import to_interleaved, uploaded_image
from ops.programs.data_movement.reshape import reshaped
from ops.programs.data_movement.slice import SliceWrite, Window, sliced_input, write_slice
from ops.window import PaddedInput


def dram_path(builder: PlanBuilder, call: ConvCall, source: PlanTensor, *, free_l1_bytes: int) -> PlanTensor:
    """Steps from an input on the host or in DRAM to the output in DRAM.

    With a given slice type, one slice of a transposed convolution means the L1 path with the caller's own config, and a
    sharded output; without a slice config, or for conv2d, one slice means the L1 path between two copies. If more
    slices are asked for than the output has, or no number of slices fits, the plan ends in a refusal after the program
    that makes an image of the input. Raises DeviceError if a call that needs slices has its input in L1.
    """
    slice_config, frame = call.slice_config, None
    if slice_config is not None and slice_config.num_slices:
        config, decision = slice_config, None
    else:
        frame = call.frame()
        try:
            chosen = choose_slices(call, builder.device_spec, free_l1_bytes=free_l1_bytes, frame=frame)
        except (OutOfMemoryError, UnknownRatesError) as error:
            return _refused(builder, call, source, error)
        config, decision = chosen.config, chosen.decision
    counted = call if config is slice_config else replace(call, slice_config=config)
    if call.slices_skip_dram(config.num_slices):
        refuse_first(counted, (placing, input_rank))
        return l1_path(builder, call, source)
    refuse_first(counted, (rows_in_dram, input_in_dram) if slice_config else (rows_in_dram,))
    frame = frame or call.frame()
    try:
        check_slice_count(call, config, frame)
    except TTSimError as error:
        return _refused(builder, call, source, error)
    refuse_first(counted, (placing,))
    if decision is None:
        decision = Decision(
            name="num_slices", value=config.num_slices, text=f"{describe_slices(config)}, as dram_slice_config says"
        )
    builder.decide(decision)
    image = dram_image(builder, source, call.image_shape, on_host=call.input.on_host)
    out_shape = (call.batch_size, frame.rows.outputs, frame.columns.outputs, call.out_channels)
    image_spec = TensorSpec(out_shape, call.output_format, call.conv_config.output_layout, DRAM_MEMORY_CONFIG)
    target = builder.allocate("output.image", image_spec)
    if config.num_slices > 1:
        _slices(builder, call, config, frame, image, target)
        if builder.refused:
            return target
        return image_output(builder, target, "output.rows")
    builder.free(target)  # allocated before the number of slices was known, and not needed for one slice
    output = l1_path(builder, call.as_slice(Operand(spec=image.spec, on_host=False)), image, frame=frame)
    if builder.refused:
        return output
    return dram_output(builder, output, "output.dram")


def _refused(builder: PlanBuilder, call: ConvCall, source: PlanTensor, error: TTSimError) -> PlanTensor:
    """The image of the input, whose programs stay in the cache though no slice is ever cut.

    Raises the error at once if the input has another volume: the real library takes that input for the image.
    """
    if source.spec.volume != prod(call.image_shape):
        raise error
    image = dram_image(builder, source, call.image_shape, on_host=call.input.on_host)
    builder.refuse(error)
    return image


def _slices(
    builder: PlanBuilder, call: ConvCall, config: SliceConfig, frame: PaddedInput, image: PlanTensor, target: PlanTensor
) -> None:
    """One slice after the other; the first prepares the weights for all. Raises DeviceError if no slice reads input."""
    ready = call
    planned: dict[OutputSlice, _PlannedSlice] = {}
    for index, part in enumerate(output_slices(call, config, frame)):
        if part.is_empty:
            continue
        prefix, earlier = f"slice{index}.", planned.get(part.at_origin)
        if earlier is None:
            computed = _one_slice(builder, ready, part, prefix, image)
        else:
            computed = _once_more(builder, earlier, _input_window(call, part), prefix, image)
        if builder.refused:
            return
        _written(builder, part, computed, target)
        if ready is call:  # the first slice uploads the weights, so that no other is like it
            ready = _after_first_slice(call, computed.scheme)
        elif earlier is None:
            planned[part.at_origin] = computed
    if ready is call:
        raise DeviceError(
            f"No slice has input: {config.num_slices} slices of type {config.slice_type.name} begin in the padding\n"
            "dram_slice_config: the real library computes nothing then and returns what happens to be in memory; "
            "use fewer slices"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlannedSlice:
    """A slice whose steps are planned."""

    prefix: str  # Prefix of the names of its tensors
    window: PlanTensor  # Its part of the input
    scheme: TensorMemoryLayout  # The sharding of the window
    steps: tuple[Step, ...]  # From the window to the output
    output: PlanTensor
    columns: int  # Columns of the output, which may exceed the slice's own


def _one_slice(
    builder: PlanBuilder, call: ConvCall, part: OutputSlice, prefix: str, image: PlanTensor
) -> _PlannedSlice:
    """A slice from its part of the input to its output."""
    dealt = input_cores(call, part, builder.device_spec)
    if dealt.choice is not None:
        builder.decide(dealt.choice.decision)
    cores = dealt.cores
    place = input_memory(call, part, cores)
    window = sliced_input(builder, image, _input_window(call, part), place, f"{prefix}input")
    sliced = dealt.call.as_slice(Operand(spec=window.spec, on_host=False), cores.scheme)  # the scheme is fixed
    begin = len(builder.steps)
    output = l1_path(builder, sliced, window, prefix=prefix, frame=dealt.problem.frame)
    return _PlannedSlice(
        prefix=prefix,
        window=window,
        scheme=cores.scheme,
        steps=builder.steps[begin:],
        output=output,
        columns=dealt.problem.frame.columns.outputs,
    )


def _once_more(
    builder: PlanBuilder, earlier: _PlannedSlice, input_window: Window, prefix: str, image: PlanTensor
) -> _PlannedSlice:
    """A slice that differs from an earlier slice only in its place: the same steps, on its own tensors."""
    window = sliced_input(builder, image, input_window, earlier.window.spec.memory_config, f"{prefix}input")
    begin = len(builder.steps)
    builder.repeat(earlier.steps, earlier.prefix, prefix)
    output = earlier.output._replace(name=prefix + earlier.output.name.removeprefix(earlier.prefix))
    return replace(earlier, prefix=prefix, window=window, steps=builder.steps[begin:], output=output)


def _written(builder: PlanBuilder, part: OutputSlice, computed: _PlannedSlice, target: PlanTensor) -> None:
    """The output of a slice where it belongs in the call's."""
    images, height, width, channels = target.spec.shape
    nominal = Window(
        shape=(images, height, width, channels),
        begins=(0, part.rows[0], part.columns[0], 0),
        ends=(images, part.rows[1], part.columns[1], channels),
    )
    write = SliceWrite(nominal, computed.columns)
    write_slice(builder, computed.output, target, write, f"{computed.prefix}written")
    if builder.is_live(computed.window):  # a call without a halo reads it to the end
        builder.free(computed.window)


def _input_window(call: ConvCall, part: OutputSlice) -> Window:
    return Window(
        shape=call.image_shape,
        begins=(0, part.down.start, part.across.start, 0),
        ends=(call.batch_size, part.down.stop, part.across.stop, call.in_channels),
    )


def _after_first_slice(call: ConvCall, scheme: TensorMemoryLayout) -> ConvCall:
    """The call when weights and bias are on the device, prepared for the scheme that the first slice chose for all."""
    names = operand_names(call)
    weight = replace(call.weight, on_host=False, name=names[0])
    bias = None if call.bias is None else replace(call.bias, on_host=False, name=names[1])
    return replace(call, weight=weight, bias=bias, conv_config=replace(call.conv_config, shard_layout=scheme))


def dram_image(
    builder: PlanBuilder, source: PlanTensor, shape: tuple[int, int, int, int], *, on_host: bool
) -> PlanTensor:
    """The input as an image tensor in DRAM; a copy is released when the call returns.

    An image with fewer rows than the tensor holds the tensor's first rows. The memory config of a host tensor does not
    matter.
    """
    start = uploaded_image(builder, source) if on_host else source
    spec = start.spec
    if spec.layout is Layout.ROW_MAJOR and spec.shape[-1] == shape[-1] and prod(shape) < spec.volume:
        image = PlanTensor(start.name, TensorSpec(shape, spec.data_format, spec.layout, spec.memory_config))
    else:
        image = reshaped(builder, start, shape, f"{source.name}.image")
    if image.name != start.name and on_host:
        builder.free(start)
    if image.name != source.name:
        builder.adopt(image)
    return image


def dram_output(builder: PlanBuilder, source: PlanTensor, name: str) -> PlanTensor:
    """The sharded output of a single slice, copied to DRAM and released."""
    copy = to_interleaved(builder, source, DRAM_MEMORY_CONFIG, name)
    builder.free(source)
    return copy


def image_output(builder: PlanBuilder, source: PlanTensor, name: str) -> PlanTensor:
    """The assembled output [N, OH, OW, O] of a sliced run as [1, 1, N*OH*OW, O]; a copy releases its source."""
    shape = source.spec.shape
    rows = reshaped(builder, source, (1, 1, prod(shape[:-1]), shape[-1]), name)
    if rows.name != source.name:
        builder.free(source)
    return rows
