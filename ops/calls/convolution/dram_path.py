"""The DRAM path: the input as an image in DRAM, the output put together slice by slice: reference, section 2.6."""

from dataclasses import replace

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TensorMemoryLayout
from device.plan import Free
from device.spec.device_spec import DeviceSpec
from ops.calls.convolution import convolution_input
from ops.calls.convolution.arguments import ConvArguments, ConvTranspose2dArguments, Operand, SliceConfig
from ops.calls.convolution.l1_path import l1_path, operand_names
from ops.calls.convolution.problem import as_slice, frame_of, output_format
from ops.calls.convolution.slice_choice import choose_slices, input_cores, input_memory
from ops.calls.convolution.slicing import OutputSlice, check_slice_count, output_slices, slice_call
from ops.programs.conv2d.partition import ParallelConfig
from ops.programs.movement import slicing
from ops.programs.movement.staged import Staged
from ops.programs.movement.work import SliceWrite, Window


def dram_path(a: ConvArguments, spec: DeviceSpec, *, free_l1_bytes: int) -> Staged:
    """Steps from an input on the host or in DRAM to the output in DRAM.

    With a given slice type, one slice of a transposed convolution means the L1 path with the caller's own config, and a
    sharded output; with no slice config at all, or for conv2d, it means the L1 path between two copies.

    Raises:
        DeviceError: More slices are asked for than there can be, or no number of slices fits.
    """
    given = a.slice_config
    config = given if given is not None and given.num_slices else choose_slices(a, spec, free_l1_bytes=free_l1_bytes)
    single = config.num_slices == 1
    if given is not None and one_slice_skips_dram(a, config.num_slices):
        return l1_path(a, Staged(name="input", spec=a.input.spec), spec)
    check_slice_count(a, config)
    shape = (a.batch_size, a.input_height, a.input_width, a.in_channels)
    image = convolution_input.dram_image("input", a.input.spec, shape, spec, on_host=a.input.on_host)
    frame = frame_of(a)
    out_shape = (a.batch_size, frame.rows.outputs, frame.columns.outputs, a.out_channels)
    target_spec = TensorSpec(out_shape, output_format(a), a.conv_config.output_layout, DRAM_MEMORY_CONFIG)
    target = convolution_input.reserved_output("output.image", target_spec, spec, given_up=single)
    result = image.followed_by(target)
    source = Staged(name=image.name, spec=image.spec)
    if single:
        output = l1_path(as_slice(a, Operand(spec=image.spec, on_host=False)), source, spec)
        return result.followed_by(output).followed_by(convolution_input.dram_output(output, spec, "output.dram"))
    result = result.followed_by(_slices(a, config, source, target, spec))
    return result.followed_by(convolution_input.image_output(target, spec, "output.rows"))


def one_slice_skips_dram(a: ConvArguments, slices: int) -> bool:
    """Whether a number of slices that the caller's slice config leads to means the L1 path instead."""
    return slices == 1 and isinstance(a, ConvTranspose2dArguments)


def _slices(a: ConvArguments, config: SliceConfig, image: Staged, target: Staged, spec: DeviceSpec) -> Staged:
    """One slice after the other; the first one that runs prepares the weights for all.

    Raises:
        DeviceError: None of them reads any input.
    """
    result = Staged(name=target.name, spec=target.spec)
    ready = a
    for index, part in enumerate(output_slices(a, config)):
        if part.is_empty:
            continue
        cores = input_cores(ready, part, spec)
        done = _one_slice(ready, part, cores, f"slice{index}.", image, target, spec)
        result = result.followed_by(done)
        ready = _after_first_slice(ready, cores.scheme)
    if not result.steps:
        raise DeviceError(
            f"No slice has input: {config.num_slices} slices of type {config.slice_type.name} begin in the padding\n"
            "dram_slice_config: the real library computes nothing then and returns what happens to be in memory; "
            "use fewer slices"
        )
    return result


def _one_slice(
    a: ConvArguments,
    part: OutputSlice,
    cores: ParallelConfig,
    prefix: str,
    image: Staged,
    target: Staged,
    spec: DeviceSpec,
) -> Staged:
    place = input_memory(a, part, cores)
    window = slicing.sliced_input(image, _input_window(a, part), place, spec, f"{prefix}input")
    call = as_slice(slice_call(a, part), Operand(spec=window.spec, on_host=False))
    output = l1_path(call, Staged(name=window.name, spec=window.spec), spec, prefix=prefix)
    shape = target.spec.shape
    nominal = Window(
        shape=(shape[0], shape[1], shape[2], shape[3]),
        begins=(0, part.rows[0], part.columns[0], 0),
        ends=(shape[0], part.rows[1], part.columns[1], shape[3]),
    )
    write = SliceWrite(nominal, frame_of(call).columns.outputs)
    done = window.followed_by(output).followed_by(
        slicing.written_slice(output, target, write, spec, f"{prefix}written")
    )
    release = Free(window.name)  # that of a call without a halo, which reads it to the end
    return replace(done if release in done.steps else done.then(release), owned=())


def _input_window(a: ConvArguments, part: OutputSlice) -> Window:
    return Window(
        shape=(a.batch_size, a.input_height, a.input_width, a.in_channels),
        begins=(0, part.down.start, part.across.start, 0),
        ends=(a.batch_size, part.down.stop, part.across.stop, a.in_channels),
    )


def _after_first_slice(a: ConvArguments, scheme: TensorMemoryLayout) -> ConvArguments:
    """The call when weights and bias are on the device, laid out for the scheme that the first slice chose for all."""
    weight = replace(a.weight, on_host=False, name=operand_names(a)[0])
    bias = None if a.bias is None else replace(a.bias, on_host=False, name=operand_names(a)[1])
    return replace(a, weight=weight, bias=bias, conv_config=replace(a.conv_config, shard_layout=scheme))
