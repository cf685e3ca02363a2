"""Compiled loops are there before anything is timed, as they are in a script that computes for a while."""

from math import inf
from typing import Final

from device.host.compiling import worth_loading

LOOPS: Final = (
    "device.host.product_loops",
    "device.matrix_unit.compiled",
    "device.matrix_unit.fused_loops",
    "device.matrix_unit.packing_loops",
    "device.numbers.loops",
    "ops.programs.conv2d.weight_loops",
    "ops.programs.patch_matmul.loops",
    "ops.programs.patch_matmul.shifted_loops",
)


def load_loops() -> None:
    """Loads all of them, compiled where they are not yet; without numba nothing."""
    for loops in LOOPS:
        worth_loading(loops, inf)
