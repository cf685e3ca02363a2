"""Why the matmul program of a 1x1 convolution can not be built.

A device finds out while it builds the program, so that buffers that do not fit are reported first.
"""

from typing import Final

from device.cores import CoreCoord
from device.memory.memory_config import MemoryConfig
from device.memory.shard_cores import no_bank
from device.memory.tiles import TILE
from device.numbers.integers import div_up
from device.spec.parts import GridSpec
from ops.calls.convolution.l1_path import LaidOut
from ops.programs.conv2d.partition import HEIGHT, WIDTH
from ops.programs.matmul.config import MatmulProblem

# Activations that a matmul program can apply itself (tt-metal 0.81.1).
FUSED_ACTIVATIONS: Final = frozenset(
    {"relu", "silu", "tanh", "gelu", "relu6", "sigmoid", "hardsigmoid", "hardtanh", "selu", "softplus"}
)


def matmul_refusal(
    laid_out: LaidOut,
    problem: MatmulProblem,
    memory: MemoryConfig,
    activation: tuple[str, tuple[float, ...]] | None,
    device_grid: GridSpec,
) -> str | None:
    """Why no matmul program of a 1x1 convolution can be built, in the real library's words and ours; None if it can.

    Args:
        laid_out: The call.
        problem: The matmul.
        memory: Where its input lies.
        activation: What it fuses.
        device_grid: The device's cores.
    """
    held = div_up(laid_out.problem.in_channels, TILE)
    cores, box = laid_out.layout.config.channel_cores, laid_out.layout.config.cores.bounding_box()
    if memory.memory_layout is WIDTH and cores > device_grid.cols:  # its output goes to one row of so many cores
        outside = no_bank(CoreCoord(device_grid.cols, 0), device_grid.cores, "L1")
        return f"{outside}{device_grid.cols}x{device_grid.rows}"
    if laid_out.layout.scheme is HEIGHT and memory.memory_layout is WIDTH and held == problem.k_tiles:
        return (
            "MatmulMultiCoreReuseMultiCast1DProgramConfig: input A must be HEIGHT_SHARDED, got: "
            f"TensorMemoryLayout::{memory.memory_layout.name}\n"
            "input_tensor: flattened, all its rows lie in one shard; give it as [1, 1, N*H*W, C], or on one core"
        )
    if held != problem.k_tiles:
        return (
            f"K dimension in tiles must match between input A ({held}) and input B ({problem.k_tiles})\n"
            f"core_grid: {cores} cores do not divide the {held} channel tiles; give a grid that does"
        )
    if memory.memory_layout is WIDTH and cores > box.cols:
        return (
            f"MatmulMultiCoreReuseMultiCastProgramConfig: Num output blocks along x ({cores}) must be smaller than or "
            f"equal to the number of columns in compute grid ({box.cols})!\n"
            "A 1x1 convolution takes HEIGHT_SHARDED and BLOCK_SHARDED inputs: set shard_layout and "
            "reshard_if_not_optimal"
        )
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
