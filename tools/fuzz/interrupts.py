"""Ctrl-C at any line of a call: afterwards the block table is as before, and nobody listens or waits."""

import gc
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from types import FrameType, MappingProxyType
from typing import Any, Final

import numpy as np

import ttsim
from tools.fuzz.finding import Finding, block_tables

WATCHED: Final = ("/device/memory/", "/device/machine", "/device/undo", "/ttsim/", "/ops/passes/memory")


class Interrupt:
    """Raises KeyboardInterrupt at one line of what runs, counted from 0 in files that hold state."""

    def __init__(self, line: int) -> None:
        self.left = line

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        """What ``sys.settrace`` calls."""
        name = frame.f_code.co_filename
        if not any(part in name for part in WATCHED) or "/tools/" in name:
            return None
        if event == "line":
            self.left -= 1
            if self.left == -1:
                raise KeyboardInterrupt
        return self


def interrupted(function: Callable[[], object], line: int) -> int:
    """Runs a function with an interrupt; returns how many lines are left of the count, -1 or less if it came."""
    hook = Interrupt(line)
    shown, sys.unraisablehook = sys.unraisablehook, lambda told: None  # one that keeps nothing alive
    sys.settrace(hook)
    try:
        function()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
        sys.unraisablehook = shown
    return hook.left


def _convolution(device: ttsim.Device, function: str, place: ttsim.MemoryConfig | None, **more: object) -> object:
    x = ttsim.Tensor(np.zeros((1, 1, 64, 32), np.float32), ttsim.bfloat16)
    return getattr(ttsim, function)(
        input_tensor=x if place is None else x.to(device, place),
        weight_tensor=ttsim.Tensor(np.zeros((32, 32, 3, 3), np.float32), ttsim.bfloat16),
        device=device,
        in_channels=32,
        out_channels=32,
        batch_size=1,
        input_height=8,
        input_width=8,
        kernel_size=(3, 3),
        **more,
    )


def _sliced(device: ttsim.Device) -> object:
    cut = ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceHeight, num_slices=2)
    config = ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat16)
    place = ttsim.DRAM_MEMORY_CONFIG
    return _convolution(device, "conv_transpose2d", place, dram_slice_config=cut, conv_config=config)


def _too_large(device: ttsim.Device) -> object:
    config = ttsim.Conv2dConfig(act_block_h_override=64)
    held = ttsim.Tensor(np.zeros((1, 1, 44 * 32 * 8, 1024), np.float32), ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
    try:
        held = ttsim.to_memory_config(held, ttsim.L1_MEMORY_CONFIG)
        return _convolution(device, "conv2d", ttsim.L1_MEMORY_CONFIG, conv_config=config)
    except ttsim.TTSimError:
        return None


def _products(device: ttsim.Device) -> object:
    x = ttsim.Tensor(np.zeros((1, 1, 64, 64), np.float32), ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
    row = ttsim.Tensor(np.zeros((1, 1, 1, 64), np.float32), ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
    return ttsim.linear(x, ttsim.matmul(x, x), bias=row)


def _moves(device: ttsim.Device) -> object:
    x = ttsim.Tensor(np.zeros((1, 1, 32, 32), np.float32), ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
    y = ttsim.to_memory_config(x, ttsim.L1_MEMORY_CONFIG)
    ttsim.deallocate(x)
    return ttsim.typecast(y, ttsim.bfloat8_b).reshape(1, 1, 16, 64)


def _gradient(device: ttsim.Device) -> object:
    image, kernel = np.zeros((1, 4, 4, 2), np.float32), np.zeros((3, 3, 2, 2), np.float32)
    given = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}
    return ttsim.onednn.conv_transpose_backward_data(image, kernel, device=device, **given)  # type: ignore[arg-type]


SCENES: Final[Mapping[str, Callable[[ttsim.Device], object]]] = MappingProxyType(
    {
        "conv_transpose2d from L1": lambda d: _convolution(d, "conv_transpose2d", ttsim.L1_MEMORY_CONFIG),
        "conv_transpose2d in slices": _sliced,
        "conv2d from the host": lambda d: _convolution(d, "conv2d", None, return_weights_and_bias=True),
        "conv2d without room": _too_large,
        "matmul and linear": _products,
        "tensors that move": _moves,
        "a gradient of oneDNN": _gradient,
        "an estimate": lambda d: ttsim.estimate_cycles(
            lambda device: _convolution(device, "conv_transpose2d", ttsim.DRAM_MEMORY_CONFIG), device=d
        ),
    }
)


def _opened() -> ttsim.Device:
    return ttsim.open_device(l1_small_size=32768, values="off")


@cache
def lines(scene: str) -> int:
    """Lines of a scene that an interrupt may come at."""
    with _opened() as device:
        return (1 << 30) - interrupted(lambda: SCENES[scene](device), 1 << 30)


def check(seed: int, index: int) -> Finding:
    """Interrupts a scene at a line, in the first or the second run on a device."""
    rng = np.random.default_rng([seed, index])
    scene = str(rng.choice(list(SCENES)))
    line, warm = int(rng.integers(lines(scene))), bool(rng.random() < 0.3)
    again = f"tools.fuzz.interrupts.found_after({scene!r}, {line}, warm={warm})"
    begun = time.perf_counter()
    came, wrong = found_after(scene, line, warm=warm)
    outcome = "fault" if wrong else "interrupted" if came else "over before"
    return Finding(outcome=outcome, text=wrong, again=again, seconds=time.perf_counter() - begun)


def found_after(scene: str, line: int, *, warm: bool = False) -> tuple[bool, str]:
    """Whether the interrupt came, and what does not hold after it; ``warm``: the programs are cached already."""
    device = _opened()
    if warm:
        SCENES[scene](device)
        gc.collect(0)
    before, programs = block_tables(device), device.num_program_cache_entries()
    came = interrupted(lambda: SCENES[scene](device), line) < 0
    gc.collect()
    if device.num_program_cache_entries() > programs:  # the call was over: its programs may stay
        device.clear_program_cache()
        before = block_tables(_opened())
    wrong = ""
    if block_tables(device) != before:
        wrong = f"blocks are left: {[one.name for one in device.machine.memory.live()][:3]}"
    elif device.machine.recorders or device.running or device.profilers:
        wrong = "somebody listens still"
    elif device.machine.turn.mine or device.machine.caller is not None:
        wrong = "the turn was not given up"
    device.close()
    return came, wrong
