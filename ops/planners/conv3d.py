"""The plan of ttnn.experimental.conv3d of prepared weights. Rules: ttnn 0.81.1, compared with the real planner."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError
from device.memory.layouts import TensorSpec, aligned_page_bytes, require_shard_spec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, FACE, TILE, BufferType, Layout, MemoryConfig
from device.numbers.formats import BFLOAT16, FLOAT32, UINT32, DataFormat, round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.conv3d import Conv3d, conv3d_buffers

FORMATS = (BFLOAT16, FLOAT32)
MOST_PREFETCHED = 500 * 1024  # bytes of positions that are read ahead
# L1 above the lowest circular buffer that the library leaves alone: 200 KiB, less 72 KiB of kernels below it
KERNEL_RESERVE_BYTES = 128 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv3dArguments:
    """A call."""

    volumes: TensorSpec  # [N, D, H, W, C]
    weights: TensorSpec  # [kernel * C, O]
    bias: TensorSpec | None
    out_channels: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...] = (1, 1, 1)
    padding: tuple[int, ...] = (0, 0, 0)
    dilation: tuple[int, ...] = (1, 1, 1)
    padding_mode: str = "zeros"
    groups: int = 1
    data_format: DataFormat = BFLOAT16
    place: MemoryConfig | None = None
    in_block: int = 0  # Input channels of a block; 0 for the default
    out_block: int = TILE  # Output channels of a block; 0 for all
    out_positions: tuple[int, ...] = (1, 1, 1)  # Of a block, along the axes
    grid: tuple[int, int] | None = None  # Columns and rows of cores; None for all
    fidelity_phases: int = 2
    fp32_dest: bool = False
    masked: bool = False  # Whether rows or columns of the volumes count as zeros
    output_pad: tuple[int, int] = (0, 0)  # Rows and columns of the result on both sides that are not written
    halo: TensorSpec | None = None  # Rows and columns around the volumes, one position in a page
    offset: TensorSpec | None = None  # First row and column of the volumes, which masks count from

    @property
    def block(self) -> int:
        """Input channels of a block."""
        return self.in_block or usual_block(self.kernel)

    @property
    def padded_channels(self) -> int:
        """Output channels in whole tiles."""
        return round_up(self.out_channels, TILE)

    @property
    def out_sides(self) -> tuple[int, ...]:
        """Sides of the result's volumes."""
        return tuple(
            (side + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
            for side, pad, dilation, kernel, stride in zip(
                self.volumes.shape[1:4], self.padding, self.dilation, self.kernel, self.stride, strict=True
            )
        )


def usual_block(kernel: Sequence[int]) -> int:
    """Input channels of a block where a call leaves them open: the fewest whose patches fill tiles."""
    return FACE if prod(kernel) % 2 == 0 else TILE


def _named(tensor: TensorSpec) -> str:
    return f"DataType::{tensor.data_format.name.upper()}"


def _tensor_refusals(call: Conv3dArguments) -> Iterator[str]:
    volumes, weights, bias = call.volumes, call.weights, call.bias
    if volumes.layout is not Layout.ROW_MAJOR:
        yield "Activation tensor must be row-major.\ninput_tensor: use ttnn.to_layout"
    for name, tensor in (("Activation", volumes), ("Weight", weights)):
        if tensor.data_format not in FORMATS:
            yield f"{name} tensor must be bfloat16 or float32. got {_named(tensor)}\ntypecast it"
    if volumes.data_format != weights.data_format:
        both = f"{_named(volumes)} vs {_named(weights)}"
        yield f"Input and weight tensors must have the same dtype. got {both}\ntypecast one of them"
    if bias is not None:
        if bias.layout is not Layout.TILE:
            yield "Bias tensor must be tiled.\nbias_tensor: use ttnn.to_layout"
        if bias.data_format != volumes.data_format:
            both = f"{_named(bias)} vs {_named(volumes)}"
            yield f"Bias tensor must have the same dtype as input tensor. got {both}\ntypecast it"
        if len(bias.shape) != 2:
            yield f"Bias tensor must have 2 dimensions. got {len(bias.shape)}\nbias_tensor: reshape it"


def _page_refusals(call: Conv3dArguments, spec: DeviceSpec) -> Iterator[str]:
    """Rows of shards that are no whole reads of their memory."""
    volumes, shards = call.volumes, call.volumes.memory_config.shard_spec
    if shards is None:
        return
    buffer = volumes.buffer(spec)
    if buffer.page_bytes != aligned_page_bytes(buffer.page_bytes, buffer.buffer_type, spec):
        yield (
            f"Input row-major shard width {shards.shape[1]} with data type {_named(volumes)} gives page size "
            f"{buffer.page_bytes} bytes, which must be aligned to {spec.l1.alignment_bytes} bytes\n"
            "input_tensor: give wider shards, or interleaved memory"
        )


def _size_refusals(call: Conv3dArguments) -> Iterator[str]:
    channels = call.volumes.shape[4]
    for name, count in (("Input", channels), ("Output", call.out_channels)):
        if count % call.groups:
            yield (
                f"{name} channels must be divisible by groups. Got {name.lower()} channels {count} and groups "
                f"{call.groups}\ngroups: give a divisor"
            )
    if call.padding_mode not in ("zeros", "replicate"):
        yield f"Padding mode must be zeros or replicate. got {call.padding_mode}\npadding_mode: leave it out"
    for axis, name in enumerate("THW"):
        side, pad = call.volumes.shape[1 + axis], call.padding[axis]
        kernel, dilation = call.kernel[axis], call.dilation[axis]
        if side + 2 * pad < dilation * (kernel - 1) + 1:
            low = name.lower()
            yield (
                f"Effective kernel size exceeds padded {name} dimension ({name}_in={side}, pad_{low}={pad}, "
                f"k_{low}={kernel}, d_{low}={dilation})\nkernel_size: give one that fits"
            )
    if call.out_block and (call.padded_channels % call.out_block or call.out_block % TILE):
        yield (
            f"C_out_block must be a multiple of {TILE} and divide evenly into padded output channels "
            f"({call.padded_channels}). Got C_out_block={call.out_block} and output_channels={call.out_channels}.\n"
            "config: choose another block"
        )
    depth = prod(call.kernel) * channels
    if call.weights.shape[0] != depth:
        yield (
            f"Weight patch size must match input patch size. got {call.weights.shape[0]} vs {depth}\n"
            "weight_tensor: prepare it for these channels and this kernel"
        )
    if call.weights.shape[1] != call.out_channels:
        yield (
            "Weight output channels must match input output channels. got "
            f"{call.weights.shape[1]} vs {call.out_channels}\nweight_tensor: prepare it for these channels"
        )
    if call.bias is not None and call.bias.shape[1] != call.out_channels:
        columns = call.bias.shape[1]
        yield f"Bias must match output channels. got {columns} vs {call.out_channels}\nbias_tensor: reshape it"


def _block_refusals(call: Conv3dArguments, grid: tuple[int, int], spec: DeviceSpec) -> Iterator[str]:
    channels, block = call.volumes.shape[4], call.block
    if grid[0] > spec.grid.cols or grid[1] > spec.grid.rows:
        yield (
            f"Requested grid size ({grid[0]}, {grid[1]}) exceeds device grid size ({spec.grid.cols}, "
            f"{spec.grid.rows})\nconfig: ask for fewer cores"
        )
    if channels % block:
        yield f"Input channels ({channels}) must be divisible by C_in_block ({block})\nconfig: choose another block"
    if block % spec.l1.alignment_bytes:
        yield f"C_in_block ({block}) must be a multiple of {spec.l1.alignment_bytes}\nconfig: choose another block"
    blocks, cores = channels // block, grid[0] * grid[1]
    if blocks > cores:
        yield (
            f"Number of C_in blocks ({blocks}) must be <= the number of cores ({cores})\nconfig: choose larger blocks"
        )
    wide, dst = (call.out_block or call.padded_channels) // TILE, 4 if call.fp32_dest else 8
    if wide % min(wide, dst):
        yield "matmul_N_t must be divisible by out_subblock_w\nconfig: choose another C_out_block"


def _surroundings_refusals(call: Conv3dArguments, spec: DeviceSpec) -> Iterator[str]:
    """The library's error text for a halo, and for the memory of the volumes."""
    halo, volumes, offset = call.halo, call.volumes, call.offset
    if halo is not None:
        if call.padding_mode != "zeros":
            yield f'Halo mode requires padding_mode "zeros". got {call.padding_mode}\nhalo_buffer: leave it out'
        if halo.data_format != volumes.data_format:
            both = f"{_named(halo)} vs {_named(volumes)}"
            yield f"Halo buffer dtype must match the input dtype. got {both}\nhalo_buffer: typecast it"
        if halo.layout is not Layout.ROW_MAJOR:
            yield "Halo buffer must be row-major.\nhalo_buffer: use ttnn.to_layout"
        held = halo.buffer(spec)
        page_bytes, read_bytes = (
            aligned_page_bytes(buffer.page_bytes, buffer.buffer_type, spec) for buffer in (held, volumes.buffer(spec))
        )
        if page_bytes != read_bytes:
            yield (
                f"Halo buffer page size ({page_bytes} B) must match the input's ({read_bytes} B); the reader fetches "
                "halo sticks with the input's row size\nhalo_buffer: give one position in each row"
            )
        images, (high, wide), (rows, columns) = prod(volumes.shape[:2]), volumes.shape[2:4], call.padding[1:]
        needed = 2 * images * (rows * wide + columns * (high + 2 * rows))
        pages = held.size_bytes // max(held.page_bytes, 1)
        if pages < needed:
            yield (
                f"Halo buffer holds {pages} pages but the [Htop|Hbot|Wleft|Wright] sections need {needed} "
                f"(N*T_in={images}, H_in={high}, W_in={wide}, pad_h={rows}, pad_w={columns})\n"
                "halo_buffer: give the rows above, those below, and the columns left and right of all of them"
            )
    if offset is not None and offset.data_format != UINT32:
        yield f"Pad offset tensor must be uint32. got {_named(offset)}\npad_offset_tensor: typecast it"


def plan_conv3d(call: Conv3dArguments, spec: DeviceSpec) -> Plan:
    """Plan a call of the tensors "input", "weight" and "bias", with "halo" and "offset".

    Raises DeviceError for a call that the library refuses: it checks the memory of the result before the arguments.
    """
    if len(call.volumes.shape) != 1 + 3 + 1:
        raise DeviceError(
            f"Activation tensor must have 5 dimensions. got {len(call.volumes.shape)}\ninput_tensor: reshape it"
        )
    grid = call.grid or (spec.grid.cols, spec.grid.rows)
    result = _result(call) if min(call.out_sides) > 0 else None
    if result is not None:
        result.buffer(spec)  # refuses cores that the device lacks
    for refusals in (
        _tensor_refusals(call),
        _page_refusals(call, spec),
        _size_refusals(call),
        _block_refusals(call, grid, spec),
        _surroundings_refusals(call, spec),
    ):
        for text in refusals:
            raise DeviceError(text)
    assert result is not None  # other kernels are refused
    op = Conv3d(
        shape=call.volumes.shape,
        out_sides=call.out_sides,
        out_channels=call.out_channels,
        kernel=call.kernel,
        stride=call.stride,
        padding=call.padding,
        dilation=call.dilation,
        replicate=call.padding_mode == "replicate",
        in_block=call.block,
        out_block=call.out_block or call.padded_channels,
        out_positions=call.out_positions,
        in_format=call.volumes.data_format,
        data_format=call.data_format,
        bias=call.bias is not None,
        fidelity_phases=call.fidelity_phases,
        fp32_dest=call.fp32_dest,
        cores=CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(grid[0] - 1, grid[1] - 1))),
    )
    volumes_place = call.volumes.memory_config
    in_dram = volumes_place.buffer_type is BufferType.DRAM
    aligns = in_dram and not volumes_place.is_sharded()
    op = _tilizing(_aligning(op, spec) if aligns else op, spec)
    _check_room(op, spec)
    place_bytes = spec.dram.alignment_bytes if call.offset is not None and call.masked else 0
    buffers = conv3d_buffers(op, _prefetched(op, spec, in_dram=in_dram), place_bytes=place_bytes)

    def write(builder: PlanBuilder, *tensors: PlanTensor) -> PlanTensor:
        if call.masked or any(call.output_pad) or call.halo is not None:
            builder.leave_out_values(
                "conv3d: ttsim does not calculate numbers of masked volumes, of volumes with a halo_buffer, or of "
                "framed results"
            )
        elif any(_splits_rows(tensor) for tensor in (call.volumes, result)):
            builder.leave_out_values("conv3d: ttsim does not calculate numbers of shards that part the channels")
        return builder.run("Conv3dDeviceOperation", op, list(tensors), PlanTensor("output", result), buffers)

    named = {"input": call.volumes, "weight": call.weights, "bias": call.bias, "halo": call.halo, "offset": call.offset}
    return plan_of(named, spec, write)


def _result(call: Conv3dArguments) -> TensorSpec:
    """The result; raises DeviceError for an unsupported memory."""
    deep, *sides = call.out_sides
    framed = (side + 2 * pad for side, pad in zip(sides, call.output_pad, strict=True))
    shape = (call.volumes.shape[0], deep, *framed, call.out_channels)
    place = DRAM_MEMORY_CONFIG if call.place is None else call.place
    padded = None if place.is_sharded() else (*shape[:-1], call.padded_channels)  # shards pad by their width
    result = TensorSpec(shape, call.data_format, Layout.ROW_MAJOR, place, padded)
    require_shard_spec(place, in_rows=True)
    return result


def _splits_rows(tensor: TensorSpec) -> bool:
    """Whether a row is in several pages, which the program does not support."""
    shards = tensor.memory_config.shard_spec
    return shards is not None and shards.shape[1] < tensor.shape[-1]


def _position_bytes(op: Conv3d) -> int:
    return op.in_block * (op.in_format.element_bytes or 0)


def _aligning(op: Conv3d, spec: DeviceSpec) -> Conv3d:
    """The program, with a scratchpad for an aligned read around a position if DRAM does not align positions."""
    size, alignment = _position_bytes(op), spec.dram.alignment_bytes
    return op if size % alignment == 0 else replace(op, scratch_bytes=round_up(size, alignment) + 2 * alignment)


def _check_room(op: Conv3d, spec: DeviceSpec) -> None:
    """Raises DeviceError for buffers that L1 does not hold, without positions."""
    needed = sum(buffer.size_bytes for buffer in conv3d_buffers(op, 0)) - op.scratch_bytes
    room = spec.l1.bytes - spec.l1.base_bytes
    if needed > room:
        high, deep, wide = op.tiles
        raise DeviceError(
            f"conv3d: the static circular buffers need {needed} B at out_subblock_h={op.tilized_rows} (M_t={high}, "
            f"K_t={deep}, N_t={wide}, C_in blocks={op.in_blocks}) but only {room} B of L1 lie above the allocator "
            "base; shrink the blocking (C_in_block, C_out_block, T/H/W_out_block)\nconfig: choose smaller blocks"
        )


def _room_bytes(op: Conv3d, spec: DeviceSpec) -> int:
    """Bytes of L1 that the buffers of a program leave, without positions that are read ahead; negative if none."""
    others = sum(buffer.size_bytes for buffer in conv3d_buffers(op, 0))
    return spec.l1.bytes - spec.l1.base_bytes - KERNEL_RESERVE_BYTES - others


def _tilizing(op: Conv3d, spec: DeviceSpec) -> Conv3d:
    """The program that tilizes whole sub-blocks, with the most rows that fit L1.

    The library does so only on Wormhole, whose matrix unit keeps several tiles stationary during a sub-block.
    """
    if spec.compute.stationary_tiles == 1:
        return op
    choices = [replace(op, tilized_rows=rows) for rows in op.subblock_rows]
    return next((choice for choice in choices if _room_bytes(choice, spec) >= 0), op)


def _prefetched(op: Conv3d, spec: DeviceSpec, *, in_dram: bool) -> int:
    """Positions of a block's windows that are read ahead; 0 for a 1x1x1 kernel, dilated taps, or if L1 has no room.

    If a block has all channels, rows of at least two pages per DRAM bank are read in turn: the buffer then has room for
    as many extra rows as fit, unless these are fewer than the banks.
    """
    if prod(op.kernel) == 1 or set(op.dilation) != {1}:
        return 0
    *sides, columns = (
        (block - 1) * stride + kernel
        for block, stride, kernel in zip(op.out_positions, op.stride, op.kernel, strict=True)
    )
    rows, row = prod(sides), columns * _position_bytes(op)
    room = min(MOST_PREFETCHED, _room_bytes(op, spec))
    if rows * row > room:
        return 0
    again, banks = min(rows, (room - rows * row) // row), spec.dram.banks
    staged = (
        in_dram and not op.scratch_bytes and op.in_blocks == 1 and columns >= 2 * banks and again >= min(rows, banks)
    )
    return (rows + again * staged) * columns
