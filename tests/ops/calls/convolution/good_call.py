"""A transposed convolution that every check accepts, to be changed in one thing."""

from dataclasses import replace
from typing import Any

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, BufferType, Layout, MemoryConfig, ShardSpec
from device.numbers.formats import BFLOAT16
from ops.calls.conv_transpose2d.rules import CONV_TRANSPOSE2D
from ops.calls.convolution.arguments import ConvArguments, Operand, SliceConfig, SliceType
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


def call(**changes: Any) -> ConvArguments:
    """An 8x8 image of 32 channels, kernel 3, stride 2, that every check accepts, with changes."""
    good = ConvArguments(
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


def bias(*shape: int, **how: Any) -> Operand:
    return operand(*shape, **how)
