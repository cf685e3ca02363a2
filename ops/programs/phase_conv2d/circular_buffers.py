"""The circular buffers of a program of output phases, in order of allocation.

One set serves all phases, so that each buffer is as large as the phase that needs most of it. Two are this program's
own: a finished block as sticks, and, for an output in tiles, the whole output shard as sticks.
"""

from collections.abc import Sequence

from device.numbers.formats import DataFormat
from ops.programs.conv2d.circular_buffers import BufferRequest, ConvBuffersArguments, buffer_requests
from ops.programs.conv2d.layout import ConvLayout


def phase_buffer_requests(
    phases: Sequence[ConvBuffersArguments], layout: ConvLayout, sticks: DataFormat, *, tiled: bool
) -> list[BufferRequest]:
    """What a program asks for.

    Args:
        phases: What decides the buffers of the micro-op of each phase.
        layout: How the convolution over the frame with inserted zeros is laid out.
        sticks: What finished sticks are held in.
        tiled: The output is in tiles.
    """
    largest: dict[str, BufferRequest] = {}
    for conv in phases:
        for one in buffer_requests(conv):
            known = largest.setdefault(one.name, one)
            largest[one.name] = max(known, one, key=lambda request: request.size_bytes)
    height, width = layout.shards.out_row_tiles, layout.shards.out_col_tiles
    block = max(conv.blocks.act_h_tiles * conv.shards.out_col_tiles for conv in phases)
    own = [BufferRequest("out_sticks", block * sticks.tile_bytes, sticks.tile_bytes, sticks)]
    if tiled:
        own.append(BufferRequest("out_rows", height * width * sticks.tile_bytes, sticks.tile_bytes, sticks))
    out = largest["out"]
    largest["out"] = out._replace(size_bytes=height * width * out.page_bytes)
    if "bias" in largest:  # every phase of a group adds the same
        largest["bias"] = largest["bias"]._replace(size_bytes=width * largest["bias"].page_bytes)
    made = list(largest.values())
    place = made.index(largest["out"])
    return [*made[:place], *own, *made[place:]]
