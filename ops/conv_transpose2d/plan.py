"""The plan of ttnn.conv_transpose2d: which path, and what every step of it allocates and runs."""

from device.layouts import DRAM_MEMORY_CONFIG, TensorSpec
from device.memory_config import BufferType
from device.plan import Free, Plan
from device.spec import DeviceSpec
from ops.conv_transpose2d.arguments import ConvTranspose2dArguments, SliceType
from ops.conv_transpose2d.l1_path import l1_path
from ops.conv_transpose2d.lowering import as_slice, frame_of, output_format
from ops.conv_transpose2d.slicing import check_slice_count, choose_slices
from ops.data_movement import convolution_input
from ops.data_movement.staged import Staged


def plan_conv_transpose2d(a: ConvTranspose2dArguments, spec: DeviceSpec, *, free_l1_bytes: int) -> Plan:
    """Plan a call.

    Args:
        a: The call, validated.
        spec: The device.
        free_l1_bytes: Free bytes of every L1 bank when the call begins: they decide how many slices are needed.

    Raises:
        DeviceError: The real library refuses the call for a reason that needs a plan to see.
    """
    staged = _on_l1_path(a, spec) if _takes_l1_path(a) else _on_dram_path(a, spec, free_l1_bytes=free_l1_bytes)
    tensors = {"input": a.input.spec, "weight": a.weight.spec, **staged.tensors}
    results = {"output": staged.name, "weight": "weight.prepared" if a.weight.on_host else "weight"}
    if a.bias is not None:
        tensors["bias"] = a.bias.spec
        results["bias"] = "bias.prepared" if a.bias.on_host else "bias"
    return Plan(steps=staged.steps, tensors={**tensors, staged.name: staged.spec}, results=results)


def _takes_l1_path(a: ConvTranspose2dArguments) -> bool:
    """The L1 path is for inputs in L1 without a slice config, for L1_FULL, and for a single slice (reference, 2.6)."""
    if a.slice_config is None:
        return not a.input.on_host and a.input.spec.memory_config.buffer_type is BufferType.L1
    return a.slice_config.slice_type is SliceType.L1_FULL or a.slice_config.num_slices == 1


def _on_l1_path(a: ConvTranspose2dArguments, spec: DeviceSpec) -> Staged:
    source = Staged(name="input", spec=a.input.spec)
    return l1_path(a, source, spec)


def _on_dram_path(a: ConvTranspose2dArguments, spec: DeviceSpec, *, free_l1_bytes: int) -> Staged:
    """The input as an image in DRAM, and slices of the output, or the L1 path between two copies when one slice is enough."""
    if a.slice_config is not None and a.slice_config.num_slices == 0:
        config = choose_slices(a, spec, free_l1_bytes=free_l1_bytes)
        if config.num_slices == 1:
            return _on_l1_path(a, spec)
    else:
        config = a.slice_config or choose_slices(a, spec, free_l1_bytes=free_l1_bytes)
    check_slice_count(a, config)
    image_shape = (a.batch_size, a.input_height, a.input_width, a.in_channels)
    image = convolution_input.dram_image("input", a.input.spec, image_shape, spec, on_host=a.input.on_host)
    frame = frame_of(a)
    shape = (a.batch_size, frame.rows.outputs, frame.columns.outputs, a.out_channels)
    reserved = TensorSpec(shape, output_format(a), a.conv_config.output_layout, DRAM_MEMORY_CONFIG)
    single = config.num_slices == 1
    result = image.followed_by(convolution_input.reserved_output("output.reserved", reserved, spec, given_up=single))
    source = Staged(name=image.name, spec=image.spec)
    if not single:
        raise NotImplementedError("slices")
    output = l1_path(as_slice(a), source, spec)
    result = result.followed_by(output).followed_by(convolution_input.dram_output(output, spec, "output.dram"))
    return result.then(*(Free(name) for name in image.owned))
