"""Convolutions on small machines: what the tuner finds is held against every call of its space, planned and timed.

Calls that the lower bounds call alike count once (`tests/ops/planners/conv/test_lower_bounds.py` compares their plans).
"""

from collections.abc import Hashable, Iterator
from typing import Any, Final

import numpy as np

import ttsim
from device.errors import DeviceError
from device.memory.memory_config import BufferType
from ops.planners.conv.lower_bounds import ConvTimes, LowerBounds
from ops.window import NoWindowError
from tools.fuzz.finding import Finding
from tools.random_calls.drafts import Choices
from ttsim.diagnose import MachineSnapshot
from ttsim.study.tune.search import GRAIN, Candidate, evaluate, front
from ttsim.study.tune.space import Space
from ttsim.study.tune.tune import answer, question_of
from ttsim.study.tune.tuned import Tuned

CARDS: Final = ("wormhole_n150", "blackhole_p150")
GRIDS: Final = ("2x2", "2x3", "3x2", "4x2")
L1_SIZES: Final = ("512KiB", "768KiB", "1MiB", "1464KiB")
CHANNELS: Final = (8, 16, 32, 48, 64, 128, 256)
SIDES: Final = (4, 8, 10, 16, 24, 32)
SLICED_SIDES: Final = (4, 6, 8)  # images in DRAM have every number of slices as well
L1_SMALL_BYTES: Final = 32768
EFFORT: Final = 1_000_000  # calls: the search ends by itself


def check(seed: int, index: int) -> Finding:
    """A call on a machine; a fault where the search ends early, or leaves out something better."""
    draw = Choices(np.random.default_rng([seed, index]))
    grid, size, card = draw.pick(GRIDS), draw.pick(L1_SIZES), draw.pick(CARDS)
    machine = f"{card},grid={grid},l1.bytes={size}"
    function, options, keep = _call(draw)
    again = f"{function.__name__} {options} on {machine}, keep={keep}"
    with ttsim.open_device(spec=ttsim.load_spec(machine), l1_small_size=L1_SMALL_BYTES, values="off") as device:
        question = question_of(function, options, device)
        snapshot = question.snapshot
        tuned = answer(question, keep=keep, effort=EFFORT)
        fastest = answer(question, keep=keep, effort=EFFORT, fastest_only=True)
        free = snapshot.machine.allocator.statistics(BufferType.L1).free_bytes_per_bank
        space = Space(call=question.call, spec=snapshot.machine.spec, free_l1_bytes=free, keep=frozenset(keep))
        whole = front(list(everything(space, snapshot)))
    text = next(_faults(tuned, fastest, whole, space), "")
    return Finding(outcome="fault" if text else "right" if whole else "none fits", text=text, again=again)


def _call(draw: Choices) -> tuple[Any, dict[str, Any], tuple[str, ...]]:
    """A convolution, and the fields that are kept so that all calls can be made."""
    kind = draw.pick(("transposed", "transposed", "transposed", "phases", "conv2d"))
    in_dram = draw.chance(0.35)
    kernel, stride = draw.pick((2, 3, 4)), 1 if kind == "conv2d" else draw.pick((1, 2, 2))
    (ins, outs), sides = (draw.pick(CHANNELS), draw.pick(CHANNELS)), SLICED_SIDES if in_dram else SIDES
    height, width = draw.pick(sides), draw.pick(sides)
    place = ttsim.DRAM_MEMORY_CONFIG if in_dram else ttsim.L1_MEMORY_CONFIG
    layout = draw.pick((ttsim.TILE_LAYOUT, ttsim.ROW_MAJOR_LAYOUT))
    padding = draw.below(2) if kernel > 2 else 0
    channels = (outs, ins) if kind == "conv2d" else (ins, outs)
    options: dict[str, Any] = {
        "input_tensor": ttsim.TensorDescription((1, 1, height * width, ins), ttsim.bfloat16, layout, place),
        "weight_tensor": ttsim.TensorDescription((*channels, kernel, kernel)),
        "in_channels": ins, "out_channels": outs, "batch_size": 1, "input_height": height, "input_width": width,
        "kernel_size": (kernel, kernel), "stride": (stride, stride), "padding": (padding, padding),
    }  # fmt: skip
    if draw.chance(0.3):
        options["bias_tensor"] = ttsim.TensorDescription((1, 1, 1, outs))
    if kind == "phases":
        options["lowering"] = "phase"
    # The bounds know nothing of phases, and slices multiply the space
    keep = ("core_grid", "transpose_shards") if in_dram else ("output_layout",) if kind == "phases" else ()
    return ttsim.conv2d if kind == "conv2d" else ttsim.conv_transpose2d, options, keep


def everything(space: Space, snapshot: MachineSnapshot) -> Iterator[Candidate]:
    """Every call of a space that runs, of equal ones the first."""
    bounds, seen = LowerBounds(ConvTimes(space.spec), space.free_l1_bytes), set[Hashable]()
    for chosen, _ in space.schemes():
        for placed in space.placements(chosen):
            for first in space.blocks(placed):
                for member in space.members(first):
                    try:
                        key = bounds.of(member).plan_key
                        if key is None or key not in seen:
                            seen.add(key)
                            yield evaluate(member, snapshot)
                    except (DeviceError, NoWindowError):
                        continue


def _faults(tuned: Tuned, fastest: Tuned, whole: tuple[Candidate, ...], space: Space) -> Iterator[str]:
    """What a search left out."""
    if tuned.untried or fastest.untried:
        yield f"the search ended after {tuned.tried} calls"
    best, quick, least = (found[0].cycles if found else None for found in (tuned.front, fastest.front, whole))
    if not best == quick == least:
        yield f"tune finds {best} cycles, the search for the fastest alone {quick}, and the space has {least}"
    slack = GRAIN * space.spec.l1.usable_bytes
    given = [choice.cycles for choice in (tuned.given, tuned.default) if choice is not None]
    for candidate in whole:
        near = any(
            (1 - GRAIN) * choice.cycles <= candidate.cycles and choice.l1_peak_bytes <= candidate.l1_peak_bytes + slack
            for choice in tuned.front
        )
        if candidate.cycles <= min(given, default=candidate.cycles) and not near:
            yield f"{candidate.cycles} cycles in {candidate.l1_peak_bytes} bytes are not on the front"
