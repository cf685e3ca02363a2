"""Kernel stride folding: windows that do not overlap become channels, so that a 1x1 convolution is left.

Rule: tt-metal, compared with calls of the real library, version 0.81.1.
"""

from dataclasses import replace

from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from device.plan import Allocate, Free, Operation
from device.spec.device_spec import DeviceSpec
from ops.calls.convolution.arguments import Conv2dArguments, Operand
from ops.calls.convolution.convolution_input import uploaded_image
from ops.programs.movement.reshape import reshaped
from ops.programs.movement.staged import Staged, computed, owning
from ops.programs.movement.work import FoldWindows, PadImage


def folds(a: Conv2dArguments) -> bool:
    """Whether the real library folds: as the config says, or by itself where the kernel is the stride."""
    given = a.conv_config.enable_kernel_stride_folding
    if given is not None:
        return given and a.stride != (1, 1)
    if a.stride != a.kernel_size or a.stride == (1, 1) or a.dilation != (1, 1):
        return False
    top, bottom, left, right = a.padding
    if (a.input_height + top + bottom) % a.stride[0] or (a.input_width + left + right) % a.stride[1]:
        return False
    place = a.input.spec.memory_config
    in_dram = a.input.on_host or place.buffer_type is BufferType.DRAM
    rows_or_plain = a.input.spec.layout is Layout.ROW_MAJOR or not any(a.padding)
    return (in_dram and rows_or_plain) or (
        not a.input.on_host and place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    )


def folded_input(a: Conv2dArguments, spec: DeviceSpec) -> Staged:
    """The input with its windows folded into channels, as rows; every copy made on the way is released.

    Args:
        a: The call.
        spec: The device.

    Returns:
        Steps that end in the tensor "input.folded" [N, H / sh, W / sw, sh * sw * C], which is left to the caller.
    """
    start = Staged(name="input", spec=a.input.spec)
    if a.input.on_host:
        start = uploaded_image(start.name, start.spec, spec)
    shape = (a.batch_size, a.input_height, a.input_width, a.in_channels)
    image = reshaped(start, shape, spec, "input.image")
    result, copies = start.followed_by(image), [one for one in (start.name, image.name) if one != "input"]
    top, bottom, left, right = a.padding
    if any(a.padding):
        work = PadImage(image=shape, padding=a.padding)
        shape = (shape[0], shape[1] + top + bottom, shape[2] + left + right, shape[3])
        padded = TensorSpec(shape, image.spec.data_format, Layout.ROW_MAJOR, image.spec.memory_config)
        image = computed("Pad", image, "input.padded", padded, spec, work)
        result = result.followed_by(image)
        copies.append(image.name)
    (rows, columns), (batch, height, width, channels) = a.stride, shape
    data_format = BFLOAT16 if image.spec.data_format.is_block else image.spec.data_format
    folded = TensorSpec(
        (batch, height // rows, width // columns, rows * columns * channels),
        data_format,
        Layout.ROW_MAJOR,
        image.spec.memory_config,
    )
    fold = FoldWindows(window=a.stride, image=shape, data_format=data_format)
    step = Operation(
        name="Fold",
        inputs=(image.name,),
        outputs=(Allocate("input.folded", folded.buffer(spec)),),
        work=fold,
        key=("fold", image.spec, fold),
    )
    made = Staged(name="input.folded", spec=folded, steps=(step,), tensors={"input.folded": folded})
    if a.conv_config.deallocate_activation and not a.input.on_host and start.in_l1:
        copies.append("input")
    frees = (Free(name) for name in dict.fromkeys(copies))
    return owning(result.followed_by(made).then(*frees))


def folded_call(a: Conv2dArguments, image: Staged) -> Conv2dArguments:
    """The 1x1 convolution that is left of a call whose input was folded."""
    _, height, width, channels = image.spec.shape
    return replace(
        a,
        input=Operand(spec=image.spec, on_host=False, name=image.name),
        in_channels=channels,
        input_height=height,
        input_width=width,
        kernel_size=(1, 1),
        stride=(1, 1),
        padding=(0, 0, 0, 0),
        folded=a.kernel_size,
    )
