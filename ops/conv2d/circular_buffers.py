"""The circular buffers of the conv2d micro-op, in order of allocation: reference, section 3.5."""

from dataclasses import dataclass

from device.cores import CoreRangeSet
from device.formats import BFLOAT16, FLOAT32, UINT16, DataFormat
from device.plan import CircularBuffer
from ops.conv2d.blocks import Blocks, Shards
from ops.conv2d.partition import BLOCK, HEIGHT, WIDTH, ParallelConfig

L1_ARRAY_BYTES = 64  # scratch for semaphores and addresses; same in every recorded run


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvBuffersArguments:
    """What decides the circular buffers.

    Attributes:
        config: Cores of the input.
        multicast: Activations are sent between the cores of a row (`multicasts_activations`).
        accumulation_blocks: K blocks as the real library counts them to decide on L1 accumulation.
        shards: Shard shapes.
        blocks: Block sizes.
        kernel: (kh, kw).
        act_format: Format of the halo output.
        weight_format: Format of weights and bias.
        out_format: Output format.
        fp32_dest: Dst accumulates in float32.
        packer_l1_acc: The config asks for accumulation in L1.
        bias: There is a bias.
        untilize_out: The output is ROW_MAJOR.
        act_double_buffer: Activations are double buffered.
        weights_double_buffer: Weights are double buffered.
        split_reader: Both data-movement processors read activations.
        config_tensors_in_dram: Reader indices live in DRAM and get a local buffer.
        reader_indices_bytes: Bytes of the reader indices of one core.
        halo_bytes: Bytes of the halo output on one core.
    """

    config: ParallelConfig
    multicast: bool
    accumulation_blocks: int
    shards: Shards
    blocks: Blocks
    kernel: tuple[int, int]
    act_format: DataFormat
    weight_format: DataFormat
    out_format: DataFormat
    fp32_dest: bool
    packer_l1_acc: bool
    bias: bool
    untilize_out: bool
    act_double_buffer: bool
    weights_double_buffer: bool
    split_reader: bool
    config_tensors_in_dram: bool
    reader_indices_bytes: int
    halo_bytes: int


def multicasts_activations(config: ParallelConfig, out_config: ParallelConfig) -> bool:
    """Whether activations travel between cores: BLOCK and WIDTH with more than one channel core on either side."""
    return config.scheme is not HEIGHT and (config.channel_cores > 1 or out_config.channel_cores > 1)


def l1_accumulation(*, requested: bool, bias: bool, k_blocks: int) -> bool:
    """Whether packer_l1_acc has an effect: there must be something to accumulate that is not reloaded anyway."""
    return requested and ((bias and k_blocks > 1) or k_blocks > 2)


def partials_format(a: ConvBuffersArguments) -> DataFormat:
    """Format of the partial sums between K blocks (P of the reference)."""
    if l1_accumulation(requested=a.packer_l1_acc, bias=a.bias, k_blocks=a.accumulation_blocks):
        return FLOAT32 if a.fp32_dest else BFLOAT16
    return a.out_format


def conv_circular_buffers(
    a: ConvBuffersArguments, *, output: str, halo: str, reader_indices: str, cores: CoreRangeSet
) -> tuple[CircularBuffer, ...]:
    """All circular buffers of one conv2d program, in order of allocation.

    Args:
        a: What decides them.
        output: Name of the output tensor.
        halo: Name of the halo output.
        reader_indices: Name of the reader index tensor.
        cores: The union of input and output cores.
    """
    made: list[CircularBuffer] = []

    def add(
        name: str,
        pages: int,
        data_format: DataFormat,
        *,
        page_bytes: int = 0,
        view_of: str | None = None,
        offset_bytes: int = 0,
    ) -> None:
        page = page_bytes or data_format.tile_bytes
        if pages:
            made.append(
                CircularBuffer(
                    name=name,
                    size_bytes=pages * page,
                    page_bytes=page,
                    data_format=data_format,
                    cores=cores,
                    view_of=view_of,
                    offset_bytes=offset_bytes,
                )
            )

    scheme, blocks, shards = a.config.scheme, a.blocks, a.shards
    act_h, act_w, out_w = blocks.act_h_tiles, blocks.act_w_tiles, shards.out_col_tiles
    h_blocks = shards.out_row_tiles // act_h
    buffered = 2 if a.weights_double_buffer else 1
    weight_blocks = a.kernel[0] if scheme is HEIGHT and h_blocks > 1 else buffered
    add("weights", out_w * act_w * weight_blocks, a.weight_format)

    partials = partials_format(a)
    aliased = not a.untilize_out and partials == a.out_format
    out_tiles = shards.out_row_tiles * out_w
    last_block = (out_tiles - act_h * out_w) * a.out_format.tile_bytes
    add(
        "partials",
        act_h * out_w,
        partials,
        view_of=output if aliased else None,
        offset_bytes=last_block if aliased else 0,
    )

    double = 2 if a.act_double_buffer else 1
    second_tiles = (act_h // 2 if a.split_reader else 0) * act_w * double
    first_tiles = act_h * act_w * double - second_tiles
    # A BLOCK core whose activations need no conversion gathers them in the buffer they are multicast through.
    gathers_in_act = scheme is BLOCK and a.act_format == a.out_format and a.multicast
    if scheme is HEIGHT:
        add("act", first_tiles, a.act_format)
    elif a.multicast:
        add("act", first_tiles + second_tiles, a.out_format)
    add("act_second_reader", 0 if gathers_in_act else second_tiles, a.act_format)
    add("act_tilized", act_h * act_w, a.out_format)
    add("bias", out_w if a.bias else 0, a.weight_format)
    if scheme is WIDTH:
        add("act_row_major", 2 * act_w, a.act_format)
    elif scheme is BLOCK and not gathers_in_act:
        add("act_row_major", first_tiles, a.act_format)
    add("out", out_tiles, a.out_format, view_of=output)
    add(
        "reader_indices",
        1,
        UINT16,
        page_bytes=a.reader_indices_bytes,
        view_of=None if a.config_tensors_in_dram else reader_indices,
    )
    add("l1_array", 1, UINT16, page_bytes=L1_ARRAY_BYTES)
    add("act_sharded", 1, a.act_format, page_bytes=a.halo_bytes, view_of=halo)
    return tuple(made)


def local_bytes(buffers: tuple[CircularBuffer, ...]) -> int:
    """Bytes of the buffers that take L1 of their own."""
    return sum(b.size_bytes for b in buffers if b.view_of is None)
