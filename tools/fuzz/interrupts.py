"""Ctrl-C at any line of a call, and threads on one device: the block table is as before then, and nobody waits."""

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from threading import Thread
from types import FrameType
from typing import Any, Final

import numpy as np

import ttsim
from tools.fuzz.finding import Finding, block_tables

WATCHED: Final = ("/device/memory/", "/device/machine", "/device/undo", "/ttsim/", "/ops/passes/memory")
THREADS: Final = 3
CALLS: Final = 3  # of each thread
INTERVAL: Final = 1e-6  # seconds between switches of threads

_NAMES: Final[Mapping[str, Any]] = {"np": np, "ttsim": ttsim, "zeros": lambda *shape: np.zeros(shape, np.float32)}
_GIVEN: Final = """\
x = ttsim.Tensor(zeros(1, 1, 64, 32), ttsim.bfloat16)
def tiles(*shape):
    return ttsim.Tensor(zeros(*shape), ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
def call(function, x, device=device, **more):
    w = ttsim.Tensor(zeros(32, 32, 3, 3), ttsim.bfloat16)
    return function(input_tensor=x, weight_tensor=w, device=device, in_channels=32, out_channels=32, batch_size=1,
                    input_height=8, input_width=8, kernel_size=(3, 3), **more)
"""
SCENES: Final = {
    "conv_transpose2d from L1": "y = call(ttsim.conv_transpose2d, x.to(device, ttsim.L1_MEMORY_CONFIG))",
    "conv_transpose2d in slices": """\
cut = ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceHeight, num_slices=2)
config = ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat16)
x = x.to(device, ttsim.DRAM_MEMORY_CONFIG)
y = call(ttsim.conv_transpose2d, x, dram_slice_config=cut, conv_config=config)""",
    "conv2d from the host": "y = call(ttsim.conv2d, x, return_weights_and_bias=True)",
    "conv2d without room": """\
large = tiles(1, 1, 44 * 32 * 8, 1024)
try:
    large = ttsim.to_memory_config(large, ttsim.L1_MEMORY_CONFIG)
    x = x.to(device, ttsim.L1_MEMORY_CONFIG)
    y = call(ttsim.conv2d, x, conv_config=ttsim.Conv2dConfig(act_block_h_override=64))
except ttsim.TTSimError:
    pass""",
    "matmul and linear": """\
x = tiles(1, 1, 64, 64)
y = ttsim.linear(x, ttsim.matmul(x, x), bias=tiles(1, 1, 1, 64))""",
    "tensors that move": """\
x = tiles(1, 1, 32, 32)
y = ttsim.to_memory_config(x, ttsim.L1_MEMORY_CONFIG)
ttsim.deallocate(x)
y = ttsim.typecast(y, ttsim.bfloat8_b).reshape(1, 1, 16, 64)""",
    "a gradient of oneDNN": """\
how = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}
ttsim.onednn.conv_transpose_backward_data(zeros(1, 4, 4, 2), zeros(3, 3, 2, 2), device=device, **how)""",
    "an estimate": """\
def estimated(device):
    return call(ttsim.conv_transpose2d, x.to(device, ttsim.DRAM_MEMORY_CONFIG), device)
ttsim.estimate_cycles(estimated, device=device)""",
}


class Interrupt:
    """Raises KeyboardInterrupt at one line of what runs, counted from 0 in files that hold state."""

    def __init__(self, line: int) -> None:
        self.left = line

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        """The trace function for ``sys.settrace``."""
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
    shown, sys.unraisablehook = sys.unraisablehook, lambda error: None  # one that keeps nothing alive
    sys.settrace(hook)
    try:
        function()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
        sys.unraisablehook = shown
    return hook.left


def play(scene: str, device: ttsim.Device) -> None:
    """Carries a scene out on a device; nothing of it stays."""
    names = {**_NAMES, "device": device}
    try:
        exec(_GIVEN + SCENES[scene], names)
    finally:
        names.clear()  # its functions refer to it, so that it would stay until a collection


def opened() -> ttsim.Device:
    """A device without values."""
    return ttsim.open_device(l1_small_size=32768, values="off")


@cache
def lines(scene: str) -> int:
    """Lines of a scene that an interrupt may come at, once modules are loaded and plans are kept in the process."""
    with opened() as device:
        play(scene, device)
    with opened() as device:
        return (1 << 30) - interrupted(lambda: play(scene, device), 1 << 30)


def check(seed: int, index: int) -> Finding:
    """Interrupts a scene at a line, in the first or the second run on a device."""
    rng = np.random.default_rng([seed, index])
    scene = str(rng.choice(list(SCENES)))
    line, warm = int(rng.integers(lines(scene))), bool(rng.random() < 0.3)
    came, wrong = found_after(scene, line, warm=warm)
    again = f"tools.fuzz.interrupts.found_after({scene!r}, {line}, warm={warm})"
    return Finding(outcome="fault" if wrong else "interrupted" if came else "over before", text=wrong, again=again)


def found_after(scene: str, line: int, *, warm: bool = False) -> tuple[bool, str]:
    """Whether the interrupt came, and what does not hold after it; ``warm``: the programs are cached already."""
    device = opened()
    if warm:
        play(scene, device)
        gc.collect()
    before, programs = block_tables(device), device.num_program_cache_entries()
    came = interrupted(lambda: play(scene, device), line) < 0
    gc.collect()
    if device.num_program_cache_entries() > programs:  # the call was over: its programs may stay
        device.clear_program_cache()
        before = block_tables(opened())
    return came, _unfinished(device, before)


def _unfinished(device: ttsim.Device, before: object) -> str:
    """The leftovers of a device after all calls, which is then closed; empty if there are none."""
    wrong = ""
    if block_tables(device) != before:
        wrong = f"blocks are left: {[buffer.name for buffer in device.machine.memory.live()][:3]}"
    elif device.machine.recorders or device.running or device.profilers:
        wrong = "somebody listens still"
    elif device.machine.turn.mine or device.machine.caller is not None:
        wrong = "the turn was not given up"
    device.close()
    return wrong


def check_threads(seed: int, index: int) -> Finding:
    """Lets threads make calls on one device, switched as often as Python can: every call is whole."""
    rng = np.random.default_rng([seed, index])
    plans = [[str(scene) for scene in rng.choice(list(SCENES), CALLS)] for _ in range(THREADS)]
    wrong = found_after_threads(plans)
    again = f"tools.fuzz.interrupts.found_after_threads({plans})"
    return Finding(outcome="fault" if wrong else "whole", text=wrong, again=again)


def found_after_threads(plans: Sequence[Sequence[str]]) -> str:
    """The violations after threads have run the scenes of each list; empty if there are none."""
    device = opened()
    before = block_tables(device)
    failures: list[str] = []

    def work(plan: Sequence[str]) -> None:
        try:
            for scene in plan:
                play(scene, device)
        except (ttsim.OutOfMemoryError, ttsim.CircularBufferError):  # the others had the room
            return
        except Exception as error:
            failures.append(f"{type(error).__name__}: {error}")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(INTERVAL)
    try:
        threads = [Thread(target=work, args=(plan,)) for plan in plans]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    gc.collect(1)
    device.clear_program_cache()
    return "; ".join(filter(None, [*failures, _unfinished(device, before)]))
