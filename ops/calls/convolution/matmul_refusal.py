"""Why no matmul program can be built for a 1x1 convolution (docs/planning.md, Matmul path)."""

from typing import Final

from device.memory.layouts import TensorSpec
from device.memory.memory_config import MemoryConfig
from device.memory.tiles import TILE
from device.numbers.integers import div_up
from ops.calls.convolution.l1_path import LaidOut
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH
from ops.programs.matmul.config import MatmulProblem

# Activations that a matmul program can apply itself (tt-metal 0.81.1).
FUSED_ACTIVATIONS: Final = frozenset(
    {"relu", "silu", "tanh", "gelu", "relu6", "sigmoid", "hardsigmoid", "hardtanh", "selu", "softplus"}
)


def matmul_refusal(
    laid_out: LaidOut,
    problem: MatmulProblem,
    weights: TensorSpec,
    memory: MemoryConfig,
    activation: tuple[str, tuple[float, ...]] | None,
) -> str | None:
    """Why no program multiplies these operands, in the real library's words and ours; None if one does.

    Args:
        laid_out: The call.
        problem: The product.
        weights: The prepared weights.
        memory: Where the tiles of the input lie.
        activation: Name and parameters of the activation that the program would apply.
    """
    held, given = div_up(laid_out.problem.in_channels, TILE), weights.padded_shape[-2] // TILE
    prepared = not laid_out.arguments.weight.on_host
    if held != given and prepared:
        return (
            f"K dimension in tiles must match between input A ({held}) and input B ({given})\n"
            f"weight_tensor: it was prepared for {given} tiles of channels, which fill other cores; pass it on the host"
        )
    if held != problem.k_tiles and not prepared:
        cores = laid_out.layout.config.channel_cores
        return (
            f"K dimension in tiles must match between input A ({held}) and input B ({problem.k_tiles})\n"
            f"core_grid: {cores} cores do not divide the {held} channel tiles; give a grid that does"
        )
    if (unfit := _shards_refusal(laid_out, memory)) is not None:
        return unfit
    if memory.memory_layout is WIDTH:
        return (
            f"MatmulMultiCoreReuseMultiCastProgramConfig: Unsupported memory layout TensorMemoryLayout::{WIDTH.name}.\n"
            "A 1x1 convolution takes HEIGHT_SHARDED and BLOCK_SHARDED inputs: set shard_layout "
            "and reshard_if_not_optimal"
        )
    if activation is not None and activation[0] not in FUSED_ACTIVATIONS:
        return (
            f"Unsupported UnaryOpType for fused activation: UnaryOpType::{activation[0].upper()}\n"
            f"A sharded 1x1 convolution fuses {', '.join(sorted(FUSED_ACTIVATIONS)).upper()}; without shard_layout any "
            "activation runs as an operation of its own"
        )
    return None


def _shards_refusal(laid_out: LaidOut, memory: MemoryConfig) -> str | None:
    """Why the shards of the input do not suit the blocks of the program."""
    shards, per_core = memory.shard_spec, laid_out.layout.shards.out_row_tiles
    if shards is None or memory.memory_layout is WIDTH:
        return None
    rows = shards.shape[0]
    if rows != per_core * TILE:
        program, given = {
            HEIGHT: ("1D", f"shard_shape[0] ({rows}) / in0_tile height ({TILE})"),
            BLOCK: ("", f"shard_shape[0] / in0_tile.get_height() ({rows // TILE})"),
        }[memory.memory_layout]
        return (
            f"MatmulMultiCoreReuseMultiCast{program}ProgramConfig: per_core_M ({per_core}) must equal {given}\n"
            f"input_tensor: its rows fill {per_core} tiles on each of its cores; give it shards of {per_core * TILE} "
            "rows, or set reshard_if_not_optimal"
        )
    return None
