"""Why the matmul program of a 1x1 convolution can not be built.

A device finds out while it builds the program, so that buffers that do not fit are reported first.
"""

from device.cores import CoreCoord
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, MemoryConfig, ShardOrientation
from device.memory.shard_cores import no_bank
from device.memory.tiles import TILE
from device.numbers.integers import div_up
from device.spec.parts import GridSpec
from ops.calls.convolution.laid_out import LaidOut
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH
from ops.programs.eltwise.activation_rules import fused_by_matmul_refusal
from ops.programs.matmul.config import MatmulProblem
from ops.programs.movement.reshape import flattened


def matmul_refusal(
    laid_out: LaidOut,
    problem: MatmulProblem,
    weights: TensorSpec,
    memory: MemoryConfig,
    activation: tuple[str, tuple[float, ...]] | None,
    device_grid: GridSpec,
) -> str | None:
    """Why no matmul program of a 1x1 convolution can be built, in the real library's words and ours; None if it can.

    Args:
        memory: Where its input lies.
        activation: What it fuses.
        device_grid: The device's cores.
    """
    refused = _formats_refusal(problem, weights) or _place_refusal(laid_out, problem, memory, device_grid)
    refused = refused or _weights_refusal(laid_out, problem, weights) or _shards_refusal(laid_out, problem, memory)
    if refused is not None:
        return refused
    if memory.memory_layout is WIDTH:
        cores, box = laid_out.layout.config.channel_cores, laid_out.layout.config.cores.bounding_box()
        first = (
            f"Num output blocks along x ({cores}) must be smaller than or equal to the number of columns in compute "
            f"grid ({box.cols})!"
            if cores > box.cols
            else f"Unsupported memory layout TensorMemoryLayout::{WIDTH.name}."
        )
        return (
            f"MatmulMultiCoreReuseMultiCastProgramConfig: {first}\n"
            "A 1x1 convolution takes HEIGHT_SHARDED and BLOCK_SHARDED inputs: set shard_layout and "
            "reshard_if_not_optimal"
        )
    return None if activation is None else fused_by_matmul_refusal(activation)


def _formats_refusal(problem: MatmulProblem, weights: TensorSpec) -> str | None:
    """Why the formats of the operands do not suit any program."""
    for name, letter, held in (("input_tensor", "A", problem.in_format), ("weight_tensor", "B", weights.data_format)):
        if not held.is_float:
            return (
                f"Unsupported data format for input {letter}: DataType::{held.name.upper()}\n"
                f"{name}: a kernel of 1x1 runs as a matmul, which multiplies floats; typecast it"
            )
    return None


def _place_refusal(
    laid_out: LaidOut, problem: MatmulProblem, memory: MemoryConfig, device_grid: GridSpec
) -> str | None:
    """Why the cores of the input do not suit any program."""
    cores = laid_out.layout.config.channel_cores
    if memory.memory_layout is WIDTH and cores > device_grid.cols:  # its output goes to one row of so many cores
        outside = no_bank(CoreCoord(device_grid.cols, 0), device_grid.cores, "L1")
        return f"{outside}{device_grid.cols}x{device_grid.rows}"
    if memory.memory_layout is HEIGHT and memory.buffer_type is not BufferType.L1:
        return (
            "MatmulMultiCoreReuseMultiCast1DProgramConfig: input A and output buffer types must match, got input: "
            f"BufferType::{memory.buffer_type.name} vs output: BufferType::L1\n"
            "input_tensor: its shards in DRAM lie as the convolution wants them, and are not moved; put the input in L1"
        )
    held = div_up(laid_out.problem.in_channels, TILE)
    if laid_out.layout.scheme is HEIGHT and memory.memory_layout is WIDTH and held == problem.k_tiles:
        return (
            "MatmulMultiCoreReuseMultiCast1DProgramConfig: input A must be HEIGHT_SHARDED, got: "
            f"TensorMemoryLayout::{memory.memory_layout.name}\n"
            "input_tensor: flattened, all its rows lie in one shard; give it as [1, 1, N*H*W, C], or on one core"
        )
    return None


def _weights_refusal(laid_out: LaidOut, problem: MatmulProblem, weights: TensorSpec) -> str | None:
    """Why the weights, prepared by this call or ahead of it, do not suit the input."""
    call, channels = laid_out.arguments, flattened(laid_out.arguments.input.spec.shape)[-1]
    held, given, columns = div_up(channels, TILE), weights.padded_shape[-2] // TILE, weights.padded_shape[-1]
    prepared = not call.weight.on_host
    if (prepared or call.folding is None) and channels != weights.shape[-2]:
        if channels != call.in_channels:
            told = f"input_tensor: its channels are not the {call.in_channels} of the call; give it those"
        elif prepared:
            told = "weight_tensor: it was prepared for other channels; pass it on the host"
        else:
            told = (
                f"weight_tensor: with its padding it has the shape {list(call.weight.spec.padded_shape)}, which is no "
                f"1x1 kernel for {channels} channels; give it in ROW_MAJOR_LAYOUT, and for this call"
            )
        return (
            "The width of the first tensor must be equal to the height of the second tensor. "
            f"Mismatch: width={channels} height={weights.shape[-2]}\n{told}"
        )
    tiles = "K dimension in tiles must match between input A ({}) and input B ({})\n"
    if held != given and call.folding is not None and not call.folding.weights:
        return (
            f"{tiles.format(held, given)}conv_config.enable_kernel_stride_folding: the image in DRAM was folded, but "
            "not the weights; set it to False, leave shard_layout out, or put the input in L1"
        )
    if held != given and prepared:
        return (
            f"{tiles.format(held, given)}weight_tensor: it was prepared for {given} tiles of channels, which fill "
            "other cores; pass it on the host"
        )
    if columns < problem.n_tiles * TILE:
        return (
            f"Shard width {problem.n_tiles * TILE} must match physical width {columns} for height sharded\n"
            "weight_tensor: it was prepared for other channels; pass it on the host"
        )
    if held != problem.k_tiles and not prepared:
        return (
            f"{tiles.format(held, problem.k_tiles)}core_grid: {laid_out.layout.config.channel_cores} cores do not "
            f"divide the {held} channel tiles; give a grid that does"
        )
    return None


def _shards_refusal(laid_out: LaidOut, problem: MatmulProblem, memory: MemoryConfig) -> str | None:
    """Why the shards of the input do not suit the blocks of the program."""
    shards, per_core = memory.shard_spec, laid_out.layout.shards.out_row_tiles
    if shards is None or memory.memory_layout is WIDTH:
        return None
    grid = laid_out.layout.out_config.cores
    blocks, box = div_up(problem.m_tiles, per_core), grid.bounding_box()
    kind = "MatmulMultiCoreReuseMultiCast" + ("1DProgramConfig" if memory.memory_layout is HEIGHT else "ProgramConfig")
    if box.start != CoreCoord(0, 0):
        return (
            f"{kind}: output shard grid {grid} must lie within extent {box.cols}-{box.rows}\n"
            "core_grid, or the grid of the input's shards: give cores that begin at (0, 0)"
        )
    by_rows = shards.orientation is ShardOrientation.ROW_MAJOR
    cores = shards.num_cores() if memory.memory_layout is HEIGHT else box.rows if by_rows else box.cols
    if blocks > cores:
        first = (
            f"number of M blocks ceil(M/per_core_M)={blocks} must not exceed input A shard grid cores ({cores})"
            if memory.memory_layout is HEIGHT
            else f"Num output blocks along {'y' if by_rows else 'x'} ({blocks}) must be smaller than or "
            f"equal to the number of {'rows' if by_rows else 'columns'} in compute grid ({cores})!"
        )
        return (
            f"{kind}: {first}\n"
            f"input_tensor: it has {problem.m_tiles} tiles of rows, and a core computes {per_core} of those that the "
            "call says; give as many as those"
        )
    rows = shards.shape[0]
    if rows != per_core * TILE:
        given = {
            HEIGHT: f"shard_shape[0] ({rows}) / in0_tile height ({TILE})",
            BLOCK: f"shard_shape[0] / in0_tile.get_height() ({rows // TILE})",
        }[memory.memory_layout]
        return (
            f"{kind}: per_core_M ({per_core}) must equal {given}\n"
            f"input_tensor: its rows fill {per_core} tiles on each of its cores; give it shards of {per_core * TILE} "
            "rows, or set reshard_if_not_optimal"
        )
    return None
