"""Odd values as arguments of the public functions: each is taken or refused by name, and the device stays whole."""

import gc
import re
from typing import Any, Final

import numpy as np

import ttsim
from tools.fuzz.finding import Finding, block_tables, tried
from tools.random_calls.device_calls import REFERENCE
from tools.random_calls.drafts import PRELUDE, Choices, Draft, Shadow, State, Step
from tools.random_calls.odd_values import spoiled
from tools.random_calls.operations import OPERATIONS

TENSORS: Final = """\
device = ttsim.open_device(l1_small_size=32768, values="fast")
other, closed = ttsim.open_device(l1_small_size=32768), ttsim.open_device()
closed.close()
ones, f = np.ones((1, 1, 32, 32), np.float32), np.ones((1, 4, 4, 2), np.float32)
h, t = ttsim.Tensor(ones, ttsim.bfloat16), ttsim.Tensor(ones, ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
x, w = ttsim.Tensor(ones, ttsim.bfloat16, device), ttsim.Tensor(np.ones((32, 32, 2, 2), np.float32), ttsim.bfloat16)
single, empty = ttsim.Tensor(np.float32(1), ttsim.bfloat16), ttsim.Tensor(np.zeros((0, 3), np.float32), ttsim.bfloat16)
freed, foreign = ttsim.Tensor(ones, ttsim.bfloat16, device), ttsim.Tensor(ones, ttsim.bfloat16, other)
freed.deallocate()
rows, half = shards("HEIGHT", [32, 32], (0, 0, 1, 0)), shards("WIDTH", [32, 16], (0, 0, 1, 0))
image, spread = ttsim.Tensor(np.ones((1, 4, 8, 32), np.float32), ttsim.bfloat16, device), t.to(device, rows)
"""
LIVE: Final = ("h", "t", "x", "image", "spread")  # of these, drawn calls take their tensors

# Calls that no drawn step makes.
MORE: Final = (
    'ttsim.open_device(l1_small_size=32768, spec="wormhole_n150", values="fast")',
    "ttsim.Tensor(ones, ttsim.bfloat16, device, ttsim.TILE_LAYOUT, ttsim.DRAM_MEMORY_CONFIG)",
    "ttsim.TensorDescription((1, 1, 32, 32), ttsim.bfloat16, ttsim.TILE_LAYOUT)",
    'ttsim.load_spec("wormhole_n150")',
    "device.spec.replace(name='mine', clock_hz=1, grid_cols=8, l1_bytes=1 << 20)",
    "ttsim.CoreGrid(x=1, y=1)",
    "ttsim.init_device_compute_kernel_config(device.arch(), math_fidelity=ttsim.MathFidelity.LoFi)",
    "ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat16)",
    "ttsim.graph.extract_calltrace([])",
    "ttsim.graph.extract_peak_L1_memory_usage([])",
    "ttsim.graph.extract_resource_usage_per_core([], None)",
)
CONSUMING: Final = re.compile(r"deallocate|closed|reallocate|move\(|output_tensor|_\(|del |begin_trace|cache\(\)")


def usual(names: dict[str, Any], generator: np.random.Generator) -> str:
    """A call as a user writes it, of tensors that are there."""
    if generator.random() < 0.25:
        return str(generator.choice(MORE))
    state = State(names)
    for name in LIVE:
        state.shadows[name] = Shadow(name, names[name], np.asarray(names[name].to_numpy(), np.float64))
    step: Step | None = None
    while step is None or step.contradictory:
        step = OPERATIONS[str(generator.choice(list(OPERATIONS)))](Draft(generator, state, 0))
    return step.text.partition(REFERENCE)[0]


def drawn(seed: int, index: int) -> tuple[str, dict[str, Any]]:
    """A call as Python, always the same of a seed and an index, and the names that it is made with."""
    names: dict[str, Any] = {}
    exec(PRELUDE + TENSORS, names)
    generator = np.random.default_rng([seed, index])
    return spoiled(usual(names, generator), names, Choices(generator)), names


def check(seed: int, index: int) -> Finding:
    """Makes a call; it may be refused in the library's words only, and leaves the device as it was."""
    text, names = drawn(seed, index)
    device: ttsim.Device = names["device"]
    before, known = block_tables(device), set(names)
    finding = tried(lambda: exec(text, names), again=f"{PRELUDE}{TENSORS}{text}")
    for name in set(names) - known:
        del names[name]
    gc.collect(0)
    device.clear_program_cache()
    if finding.outcome != "fault" and not CONSUMING.search(text) and block_tables(device) != before:
        return Finding(outcome="fault", text="blocks are left", again=finding.again)
    return finding
