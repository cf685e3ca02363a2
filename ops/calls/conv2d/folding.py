"""Kernel stride folding: windows that do not overlap become channels, so that a 1x1 convolution is left.

Rule: tt-metal, compared with calls of the real library, version 0.81.1.
"""

from dataclasses import replace

from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from ops.builder import PlanBuilder, PlanTensor
from ops.calls.convolution.arguments import ConvArguments, Operand
from ops.calls.convolution.problem import image_shape
from ops.programs.movement.placement import uploaded_image
from ops.programs.movement.reshape import reshaped
from ops.programs.movement.work import FoldWindows, PadImage


def folds(call: ConvArguments) -> bool:
    """Whether the real library folds: as the config says, or by itself where the kernel is the stride."""
    given = call.conv_config.enable_kernel_stride_folding
    if given is not None:
        return given and call.stride != (1, 1)
    if call.stride != call.kernel_size or call.stride == (1, 1) or call.dilation != (1, 1):
        return False
    top, bottom, left, right = call.padding
    if (call.input_height + top + bottom) % call.stride[0] or (call.input_width + left + right) % call.stride[1]:
        return False
    place = call.input.spec.memory_config
    in_dram = call.input.on_host or place.buffer_type is BufferType.DRAM
    rows_or_plain = call.input.spec.layout is Layout.ROW_MAJOR or not any(call.padding)
    return (in_dram and rows_or_plain) or (
        not call.input.on_host and place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    )


def folded_input(builder: PlanBuilder, call: ConvArguments) -> PlanTensor:
    """The input with its windows folded into channels, as rows; every copy made on the way is released.

    Args:
        builder: The plan; its tensor "input" is the call's.
        call: The call.

    Returns:
        "input.folded" [N, H / sh, W / sw, sh * sw * C].
    """
    source = builder.tensor("input")
    start = uploaded_image(builder, source) if call.input.on_host else source
    shape = image_shape(call)
    image = reshaped(builder, start, shape, "input.image")
    copies = [start, image]
    top, bottom, left, right = call.padding
    if any(call.padding):
        work = PadImage(image=shape, padding=call.padding)
        shape = (shape[0], shape[1] + top + bottom, shape[2] + left + right, shape[3])
        padded = TensorSpec(shape, image.spec.data_format, Layout.ROW_MAJOR, image.spec.memory_config)
        image = builder.run("PadDeviceOperation", work, [image], output=PlanTensor("input.padded", padded))
        copies.append(image)
    (rows, columns), (batch, height, width, channels) = call.stride, shape
    data_format = BFLOAT16 if image.spec.data_format.is_block else image.spec.data_format
    folded = TensorSpec(
        (batch, height // rows, width // columns, rows * columns * channels),
        data_format,
        Layout.ROW_MAJOR,
        image.spec.memory_config,
    )
    fold = FoldWindows(window=call.stride, image=shape, data_format=data_format)
    made = builder.run("Fold", fold, [image], output=PlanTensor("input.folded", folded))
    consumes = call.conv_config.deallocate_activation and not call.input.on_host and start.in_l1
    for one in {copy.name: copy for copy in reversed(copies)}.values():
        if one.name != source.name:
            builder.free(one)
    if consumes:
        builder.free(source)
    return made


def folded_call(call: ConvArguments, image: PlanTensor) -> ConvArguments:
    """The 1x1 convolution that is left of a call whose input was folded."""
    _, height, width, channels = image.spec.shape
    return replace(
        call,
        input=Operand(spec=image.spec, on_host=False, name=image.name),
        in_channels=channels,
        input_height=height,
        input_width=width,
        kernel_size=(1, 1),
        stride=(1, 1),
        padding=(0, 0, 0, 0),
        folded=call.kernel_size,
    )
