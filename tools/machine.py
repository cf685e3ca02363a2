"""This machine: its processor, and compiled loops that are there before anything is timed."""

import platform
from math import inf
from pathlib import Path
from typing import Final

from device.host.compiling import worth_loading

LOOPS: Final = (
    "device.host.product_loops",
    "device.matrix_unit.compiled",
    "device.matrix_unit.fused_loops",
    "device.matrix_unit.packing_loops",
    "device.numbers.loops",
    "ops.programs.conv2d.weight_loops",
)


def load_loops() -> None:
    """Loads all of them, compiled where they are not yet; without numba nothing."""
    for loops in LOOPS:
        worth_loading(loops, inf)


def processor() -> str:
    """What the processor calls itself, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())
