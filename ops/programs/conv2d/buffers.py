"""The circular buffers of the conv2d micro-op, in order of allocation (docs/planning.md, Circular buffers)."""

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from device.cores import CoreRangeSet
from device.errors import DeviceError
from device.memory.memory_config import TILE
from device.numbers.block_floats import div_up
from device.numbers.formats import BFLOAT16, FLOAT32, UINT16, DataFormat
from device.plan import CircularBuffer
from ops.programs.conv2d.blocks import Blocks, Shards
from ops.programs.conv2d.parallel_config import BLOCK, HEIGHT, WIDTH, ParallelConfig
from ops.window import PaddedInput


def check_reuse(config: ParallelConfig, *, act_h_tiles: int, columns: int) -> None:
    """Refuses blocks in which no second row of the image begins, for HEIGHT.

    Raises:
        DeviceError: The block is not higher than a row of the image.
    """
    row_tiles = div_up(columns, TILE)
    if config.scheme is HEIGHT and act_h_tiles <= row_tiles:
        raise DeviceError(
            f"Activation reuse needs act block h ({act_h_tiles}) to be bigger than output image width in tiles "
            f"({row_tiles}) for the optimization to give boost\n"
            "conv_config.enable_activation_reuse: leave it out, or give every core more rows of the output"
        )


def check_estimated_format(data_format: DataFormat) -> None:
    """Refuses a block float where L1 is estimated for two readers that reuse activations.

    Raises:
        DeviceError: The format has no bytes for an element.
    """
    if data_format.is_block:
        raise DeviceError(
            "datum for bfp2, bfp4, bfp8 is invalid\n"
            f"conv_config.enable_activation_reuse: the buffers of an input in {data_format} can not be estimated with "
            "it; leave it out, or use bfloat16"
        )


def reuse_tiles(
    data_format: DataFormat, *, act_h_tiles: int, act_w_tiles: int, columns: int, channels: int, kernel: tuple[int, int]
) -> int:
    """Tiles of the buffer of one reader."""
    row_tiles = div_up(columns, TILE)
    element_bytes = data_format.element_bytes or 0
    added = channels * kernel[1] * (1 + -columns % TILE * kernel[0]) * element_bytes
    return row_tiles * act_w_tiles + div_up(div_up(act_h_tiles, row_tiles) * added, data_format.tile_bytes)


def reuse_refusal(config: ParallelConfig, frame: PaddedInput, *, split_reader: bool) -> str | None:
    """Why the program can not reuse activations, in the real library's words and ours; None if it can, or is WIDTH."""
    if config.scheme not in (HEIGHT, BLOCK):
        return None
    axes, way_out = (frame.rows, frame.columns), "conv_config.enable_activation_reuse: leave it out"
    if config.scheme is BLOCK:
        return f"Activation data reuse is not supported for block sharded\n{way_out}, or use HEIGHT_SHARDED"
    if any(axis.dilation != 1 for axis in axes):
        return f"Activation data reuse is not supported for dilation > 1\n{way_out}"
    if any(axis.stride != 1 for axis in axes):
        return f"Activation data reuse is not supported for stride > 1\n{way_out}"
    if not split_reader:
        return f"Activation data reuse requires split reader to be on\n{way_out}, or leave force_split_reader out"
    return None


Viewed: TypeAlias = Literal["output", "halo", "reader_indices"]

L1_ARRAY_BYTES = 64  # scratch for semaphores and addresses; same in every recorded run


class ConvBuffersArguments(NamedTuple):
    """What decides the circular buffers."""

    config: ParallelConfig  # Cores of the input
    multicast: bool  # Activations are sent between the cores of a row (`multicasts_activations`)
    accumulation_blocks: int  # K blocks as the real library counts them to decide on L1 accumulation
    reused_columns: int  # Columns of the output if activations are reused, else 0
    tap_channels: int  # Rows of weights of a tap
    shards: Shards
    blocks: Blocks
    kernel: tuple[int, int]  # (kh, kw)
    act_format: DataFormat  # Format of the halo output
    weight_format: DataFormat
    out_format: DataFormat
    fp32_dest: bool  # Dst accumulates in float32
    packer_l1_acc: bool  # The config asks for accumulation in L1
    bias: bool
    untilize_out: bool  # The output is ROW_MAJOR
    act_double_buffer: bool  # Activations are double buffered
    weights_double_buffer: bool  # Weights are double buffered
    split_reader: bool  # Both data-movement processors read activations
    config_tensors_in_dram: bool  # Reader indices live in DRAM and get a local buffer
    reader_indices_bytes: int  # Bytes of the reader indices of one core
    halo_bytes: int  # Bytes of the halo output on one core

    @property
    def l1_accumulation(self) -> bool:
        """Whether partial sums are added in L1."""
        return l1_accumulation(requested=self.packer_l1_acc, bias=self.bias, k_blocks=self.accumulation_blocks)


class BufferRequest(NamedTuple):
    """A circular buffer that has a role but no place yet."""

    name: str  # The role it has in the micro-op
    size_bytes: int  # Bytes on each core
    page_bytes: int
    data_format: DataFormat  # Element format of a page
    view_of: Viewed | None = None  # The tensor on whose shard it is placed; None if it takes L1 of its own
    offset_bytes: int = 0  # Distance from the start of that shard


def multicasts_activations(config: ParallelConfig, out_config: ParallelConfig) -> bool:
    """Whether activations travel between cores: BLOCK and WIDTH with more than one channel core on either side."""
    return config.scheme is not HEIGHT and (config.channel_cores > 1 or out_config.channel_cores > 1)


def l1_accumulation(*, requested: bool, bias: bool, k_blocks: int) -> bool:
    """Whether packer_l1_acc has an effect: there must be something to accumulate that is not reloaded anyway."""
    return requested and ((bias and k_blocks > 1) or k_blocks > 2)


def partials_format(conv: ConvBuffersArguments) -> DataFormat:
    """Format of the partial sums between K blocks."""
    if conv.l1_accumulation:
        return FLOAT32 if conv.fp32_dest else BFLOAT16
    return conv.out_format


def conv_circular_buffers(
    conv: ConvBuffersArguments, *, output: str, halo: str, reader_indices: str, cores: CoreRangeSet
) -> tuple[CircularBuffer, ...]:
    """All circular buffers of one conv2d program, in order of allocation."""
    return placed_buffers(buffer_requests(conv), output=output, halo=halo, reader_indices=reader_indices, cores=cores)


def placed_buffers(
    requests: Iterable[BufferRequest], *, output: str, halo: str, reader_indices: str, cores: CoreRangeSet
) -> tuple[CircularBuffer, ...]:
    """What a program asks for as circular buffers; the other arguments as of `conv_circular_buffers`."""
    tensors = {"output": output, "halo": halo, "reader_indices": reader_indices}
    return tuple(
        [
            CircularBuffer(name, size, page, data_format, cores, None if viewed is None else tensors[viewed], offset)
            for name, size, page, data_format, viewed, offset in requests
        ]
    )


def buffer_requests(conv: ConvBuffersArguments) -> list[BufferRequest]:
    """What one conv2d program asks for, in order of allocation."""
    scheme, blocks, shards = conv.config.scheme, conv.blocks, conv.shards
    act_h, act_w, out_w = blocks.act_h_tiles, blocks.act_w_tiles, shards.out_col_tiles
    h_blocks = shards.out_row_tiles // act_h
    buffered = 2 if conv.weights_double_buffer else 1
    weight_blocks = conv.kernel[0] if scheme is HEIGHT and h_blocks > 1 else buffered
    if scheme is HEIGHT and conv.reused_columns:
        weight_blocks = 1

    first_tiles, second_tiles = _gathered(conv)
    # A BLOCK core whose activations need no conversion gathers them in the buffer they are multicast through.
    gathers_in_act = scheme is BLOCK and conv.act_format == conv.out_format and conv.multicast
    if scheme is HEIGHT:
        act, gathered_tiles = _tiles("act", first_tiles, conv.act_format), 0
    else:
        act = _tiles("act", first_tiles + second_tiles if conv.multicast else 0, conv.out_format)
        gathered_tiles = 2 * act_w if scheme is WIDTH else 0 if gathers_in_act else first_tiles

    made = (
        _tiles("weights", out_w * act_w * weight_blocks, conv.weight_format),
        _partials(conv),
        act,
        _tiles("act_second_reader", 0 if gathers_in_act else second_tiles, conv.act_format),
        _tiles("act_tilized", act_h * act_w, conv.out_format),
        _tiles("bias", out_w if conv.bias else 0, conv.weight_format),
        _tiles("act_row_major", gathered_tiles, conv.act_format),
        _tiles("out", shards.out_row_tiles * out_w, conv.out_format, "output"),
        _page(
            "reader_indices",
            conv.reader_indices_bytes,
            UINT16,
            None if conv.config_tensors_in_dram else "reader_indices",
        ),
        _page("l1_array", L1_ARRAY_BYTES, UINT16),
        _page("act_sharded", conv.halo_bytes, conv.act_format, "halo"),
    )
    return [one for one in made if one.size_bytes]


def _gathered(conv: ConvBuffersArguments) -> tuple[int, int]:
    """Tiles that the first reader gathers, and the second."""
    blocks, double = conv.blocks, 2 if conv.act_double_buffer else 1
    second = blocks.act_h_tiles // 2 if conv.split_reader else 0
    heights = (blocks.act_h_tiles - second, second)
    if not (conv.reused_columns and conv.split_reader):
        return heights[0] * blocks.act_w_tiles * double, heights[1] * blocks.act_w_tiles * double
    first_tiles, second_tiles = (
        reuse_tiles(
            conv.act_format,
            act_h_tiles=height,
            act_w_tiles=blocks.act_w_tiles,
            columns=conv.reused_columns,
            channels=conv.tap_channels,
            kernel=conv.kernel,
        )
        for height in heights
    )
    return first_tiles * double, second_tiles * double


def _partials(conv: ConvBuffersArguments) -> BufferRequest:
    """Partial sums of one block; on the last block of the output where they have its format."""
    partials, out_w = partials_format(conv), conv.shards.out_col_tiles
    made = _tiles("partials", conv.blocks.act_h_tiles * out_w, partials)
    if conv.untilize_out or partials != conv.out_format:
        return made
    output_bytes = conv.shards.out_row_tiles * out_w * partials.tile_bytes
    return made._replace(view_of="output", offset_bytes=output_bytes - made.size_bytes)


def _tiles(name: str, tiles: int, data_format: DataFormat, view_of: Viewed | None = None) -> BufferRequest:
    tile_bytes = data_format.tile_bytes
    return BufferRequest(name, tiles * tile_bytes, tile_bytes, data_format, view_of)


def _page(name: str, page_bytes: int, data_format: DataFormat, view_of: Viewed | None = None) -> BufferRequest:
    return BufferRequest(name, page_bytes, page_bytes, data_format, view_of)


def local_bytes(buffers: Iterable[BufferRequest | CircularBuffer]) -> int:
    """Bytes of the buffers that take L1 of their own."""
    return sum([b.size_bytes for b in buffers if b.view_of is None])
