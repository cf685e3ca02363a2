"""Convolutions that every check accepts: one to be changed in one thing, and those of any size."""

from dataclasses import replace
from typing import Any

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, BufferType, Layout, MemoryConfig, ShardSpec
from device.numbers.formats import BFLOAT16
from ops.planners.conv.arguments import ConvCall, ConvRules, Operand, SliceConfig, SliceType
from ops.planners.conv.conv2d import CONV2D
from ops.planners.conv.conv_transpose2d import CONV_TRANSPOSE2D
from ops.reference import Geometry, plan_geometry
from tests.shards import HEIGHT

L1_FULL = SliceConfig(slice_type=SliceType.L1_FULL)
TWO_SLICES = SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=2)
AUTO_SLICES = SliceConfig(slice_type=SliceType.DRAM_HEIGHT)


def operand(
    *shape: int, place: MemoryConfig | None = None, data_format: Any = BFLOAT16, layout: Layout = Layout.ROW_MAJOR
) -> Operand:
    """A tensor on the device if it has a place, else on the host."""
    return Operand(spec=TensorSpec(shape, data_format, layout, place or DRAM_MEMORY_CONFIG), on_host=place is None)


def height_sharded(buffer_type: BufferType) -> Operand:
    place = MemoryConfig(HEIGHT, buffer_type, ShardSpec(first_cores(2, 8, 8), (32, 32)))
    return operand(1, 1, 64, 32, place=place)


def call(**changes: Any) -> ConvCall:
    """An 8x8 image of 32 channels, kernel 3, stride 2, that every check accepts, with changes."""
    good = ConvCall(
        rules=CONV_TRANSPOSE2D,
        input=operand(1, 1, 64, 32, place=DRAM_MEMORY_CONFIG),
        weight=operand(32, 32, 3, 3),
        in_channels=32,
        out_channels=32,
        batch_size=1,
        input_height=8,
        input_width=8,
        kernel_size=(3, 3),
        stride=(2, 2),
        padding=(1, 1, 1, 1),
        output_padding=(1, 1),
    )
    return replace(good, **changes)


def sized_call(
    size: tuple[int, int],
    channels: tuple[int, int],
    kernel: tuple[int, int] = (3, 3),
    *,
    rules: ConvRules = CONV_TRANSPOSE2D,
    place: MemoryConfig | None = DRAM_MEMORY_CONFIG,
    layout: Layout = Layout.ROW_MAJOR,
    batch: int = 1,
    groups: int = 1,
    with_bias: bool = False,
    **changes: Any,
) -> ConvCall:
    """Images of a size, [1, 1, batch * height * width, channels], and weights on the host; place None: images, too."""
    ins, outs = channels
    weight = (outs, ins // groups) if rules is CONV2D else (ins, outs // groups)
    return ConvCall(
        rules=rules,
        input=operand(1, 1, batch * size[0] * size[1], ins, place=place, layout=layout),
        weight=operand(*weight, *kernel),
        bias=operand(1, 1, 1, outs) if with_bias else None,
        in_channels=ins,
        out_channels=outs,
        batch_size=batch,
        input_height=size[0],
        input_width=size[1],
        kernel_size=kernel,
        groups=groups,
        **changes,
    )


def geometry_of(made: ConvCall) -> Geometry:
    """Which inputs and outputs a call relates."""
    return plan_geometry(
        (made.input_height, made.input_width),
        made.kernel_size,
        stride=made.stride,
        pad_before=made.padding[::2],
        pad_after=made.padding[1::2],
        output_padding=made.output_padding,
        dilation=made.dilation,
    )
