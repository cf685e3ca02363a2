"""A call whose windows fit nowhere, on the DRAM path: the real library counts its outputs without a sign.

An output of -1 columns has 4,294,967,295 of them there. Its buffer is the first thing to be allocated behind the image
of the input, with as many pages as 32 bits hold, and is mostly larger than any DRAM.
"""

from typing import Final

from device.errors import ArgumentError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.memory.tiles import TILE
from device.numbers.integers import div_up
from ops.builder import PlanBuilder, PlanTensor
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.dram_path import dram_image
from ops.calls.convolution.output_checks import rows_in_dram
from ops.calls.convolution.output_lengths import COUNTS, no_outputs_told, output_lengths
from ops.calls.convolution.problem import image_shape, output_format
from ops.calls.convolution.validation import raise_first

BYTES: Final = 2**64


def wrapped_output(call: ConvArguments) -> TensorSpec:
    """A tensor in DRAM of as many pages as the real library allocates for an output of a call that `wraps`.

    Elements and bytes are counted by 64 bits, and pages by 32: what calls of the real library, version 0.81.1, show.
    Where the bytes of an output in rows are no whole pages, the number that it names was some bytes less in two calls.

    Raises:
        ArgumentError: The bytes that are left are no whole pages.
    """
    (height, width), batch, channels = output_lengths(call, unsigned=True), call.batch_size, call.out_channels
    layout, number_format = call.conv_config.output_layout, output_format(call)
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
            "interleaved-buffers, buffer size should be divisible by the page size\n" + no_outputs_told(call)
        )
    rows, columns = (pages % COUNTS * TILE, TILE) if layout is Layout.TILE else (pages % COUNTS, channels)
    return TensorSpec((1, 1, rows, columns), number_format, layout, DRAM_MEMORY_CONFIG)


def plan_without_outputs(builder: PlanBuilder, call: ConvArguments) -> PlanTensor:
    """The image of the input and the buffer of the output of a call that `wraps`; where DRAM holds that, a refusal.

    Raises:
        ArgumentError: The output would be block floats in rows.
    """
    raise_first(call, (rows_in_dram,))
    image = dram_image(builder, builder.tensor("input"), image_shape(call), on_host=call.input.on_host)
    try:
        output = wrapped_output(call)
    except ArgumentError as error:
        builder.refuse(error)
        return image
    target = builder.allocate("output.image", output)
    builder.refuse(ArgumentError(no_outputs_told(call)))
    return target
