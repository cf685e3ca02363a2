"""Calls on invented machines: no device operation is faster than its matrix units, its banks, or its busiest link.

The least cycles are those of `ops.passes.floors`; tests hold link loads against links that are counted one by one.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

import ttsim
from device.memory.memory_config import TILE
from device.spec.device_spec import DeviceSpec
from ops.passes.cycles import ends_of, operations_of, run_cycles
from ops.passes.floors import least_cycles
from tools.fuzz.finding import Finding
from tools.random_calls.drafts import Choices
from ttsim.recording.profiling import planned

CARDS: Final = ("wormhole_n150", "blackhole_p150")
FACTORS: Final = (0.25, 0.5, 1.0, 1.0, 2.0, 4.0)
SCALED: Final = ("noc_flit_bytes", "dram_bank_bytes_per_second", "clock_hz", "compute_phase_cycles")
GRIDS: Final = ((8, 8), (8, 8), (5, 4), (11, 10), (4, 8), (13, 10), (2, 2))
L1_SMALL_BYTES: Final = 32768
SLACK: Final = 1e-6  # of rounding, as a part
ATTEMPTS: Final = 6  # calls that are drawn until one of them fits


def machine(draw: Choices) -> DeviceSpec:
    """A card with other figures."""
    spec = ttsim.load_spec(draw.pick(CARDS))
    cols, rows = draw.pick(GRIDS)
    figures = {name: _scaled(spec, name, draw.pick(FACTORS)) for name in SCALED}
    return spec.replace(grid_cols=cols, grid_rows=rows, **figures)


def _scaled(spec: DeviceSpec, name: str, factor: float) -> float:
    part, _, field = name.partition("_")
    value = spec.clock_hz if name == "clock_hz" else getattr(getattr(spec, part), field)
    return type(value)(value * factor)


def tensor(draw: Choices, *shape: int, layout: Any = None) -> ttsim.TensorDescription:
    """An interleaved tensor."""
    dtype = draw.pick((ttsim.bfloat16, ttsim.bfloat16, ttsim.bfloat8_b, ttsim.float32))
    place = draw.pick((ttsim.DRAM_MEMORY_CONFIG, ttsim.DRAM_MEMORY_CONFIG, ttsim.L1_MEMORY_CONFIG))
    layout = layout or draw.pick((ttsim.TILE_LAYOUT, ttsim.TILE_LAYOUT, ttsim.ROW_MAJOR_LAYOUT))
    if dtype is ttsim.bfloat8_b and layout is ttsim.ROW_MAJOR_LAYOUT:
        dtype = ttsim.bfloat16
    return ttsim.TensorDescription(shape, dtype, layout, place)


def _sizes(draw: Choices) -> tuple[int, int]:
    return TILE * int(2 ** draw.pick(range(8))), TILE * int(2 ** draw.pick(range(6)))


def _one(draw: Choices) -> tuple[Any, ...]:
    rows, columns = _sizes(draw)
    functions = (ttsim.relu, ttsim.gelu, ttsim.softmax, ttsim.rms_norm, ttsim.layer_norm, ttsim.clone)
    return draw.pick(functions), (tensor(draw, 1, 1, rows, columns),), {}


def _two(draw: Choices) -> tuple[Any, ...]:
    rows, columns = _sizes(draw)
    tensors = (tensor(draw, 1, 1, rows, columns, layout=ttsim.TILE_LAYOUT) for _ in range(2))
    return draw.pick((ttsim.add, ttsim.multiply, ttsim.subtract)), tuple(tensors), {}


def _matmul(draw: Choices) -> tuple[Any, ...]:
    (rows, inner), (columns, _) = _sizes(draw), _sizes(draw)
    first = tensor(draw, 1, 1, rows, inner, layout=ttsim.TILE_LAYOUT)
    return ttsim.matmul, (first, tensor(draw, 1, 1, inner, columns, layout=ttsim.TILE_LAYOUT)), {}


def _moved(draw: Choices) -> tuple[Any, ...]:
    rows, columns = _sizes(draw)
    given = tensor(draw, 1, 1, rows, columns)
    place = draw.pick((ttsim.DRAM_MEMORY_CONFIG, ttsim.L1_MEMORY_CONFIG))
    calls: tuple[tuple[Any, ...], ...] = (
        (ttsim.to_memory_config, (given, place), {}),
        (ttsim.to_layout, (given, draw.pick((ttsim.TILE_LAYOUT, ttsim.ROW_MAJOR_LAYOUT))), {"memory_config": place}),
        (ttsim.transpose, (given, 2, 3), {"memory_config": place}),
        (ttsim.permute, (given, (0, 2, 1, 3)), {"memory_config": place}),
        (ttsim.concat, ([given, given], draw.pick((2, 3))), {"memory_config": place}),
        (ttsim.pad, (given, [(0, 0), (0, 0), (0, TILE), (0, 0)], 0.0), {"memory_config": place}),
        (ttsim.repeat, (given, (1, 2, 1, 1)), {"memory_config": place}),
        (ttsim.reshape, (given, (1, 2, rows // 2, columns)), {}),
    )
    return draw.pick(calls)


def _convolution(draw: Choices) -> tuple[Any, ...]:
    side, channels, out = (int(2 ** draw.pick(range(low, high))) for low, high in ((3, 7), (4, 8), (4, 8)))
    transposed, kernel = draw.chance(0.5), draw.pick((1, 2, 3))
    shape = (channels, out, kernel, kernel) if transposed else (out, channels, kernel, kernel)
    options = {
        "input_tensor": ttsim.TensorDescription((1, 1, side * side, channels), ttsim.bfloat16, ttsim.ROW_MAJOR_LAYOUT),
        "weight_tensor": ttsim.TensorDescription(shape, ttsim.bfloat16),
        "in_channels": channels, "out_channels": out, "batch_size": 1, "input_height": side, "input_width": side,
        "kernel_size": (kernel, kernel), "stride": (draw.pick((1, 2)),) * 2, "padding": (0, 0),
    }  # fmt: skip
    return ttsim.conv_transpose2d if transposed else ttsim.conv2d, (), options


DRAWN: Final[tuple[Callable[[Choices], tuple[Any, ...]], ...]] = (_one, _two, _matmul, _moved, _moved, _convolution)


def check(seed: int, index: int) -> Finding:
    """A call on a machine; a fault where an operation is too fast."""
    draw = Choices(np.random.default_rng([seed, index]))
    spec = machine(draw)
    for _ in range(ATTEMPTS):
        function, arguments, options = draw.pick(DRAWN)(draw)
        shown = f"{function.__name__}{arguments} {options} on {spec.name} {_figures(spec)}"
        try:
            with ttsim.open_device(spec=spec, l1_small_size=L1_SMALL_BYTES, values="off") as device:
                calls = planned(function, arguments, options, device).ran
        except ttsim.TTSimError:
            continue
        for call in calls:
            timed = run_cycles(call.plan, spec, ran=call.ran).operations
            for step, operation in zip(operations_of(call.plan, call.ran), timed, strict=True):
                if operation.cycles is None:
                    continue
                ends = ends_of(step, call.plan)
                for stage, least in least_cycles(operation.cycles, ends, operation.fidelity_phases, spec).items():
                    if operation.cycles.cycles < least * (1 - SLACK):
                        took = f"{operation.name} takes {operation.cycles.cycles:.0f} cycles, its {stage} {least:.0f}"
                        return Finding(outcome="fault", text=took, again=shown)
        return Finding(outcome="right")
    return Finding(outcome="none fits")


def _figures(spec: DeviceSpec) -> Mapping[str, Any]:
    return {
        "grid": (spec.grid.cols, spec.grid.rows), "flit_bytes": spec.noc.flit_bytes, "clock_hz": spec.clock_hz,
        "bank_bytes_per_second": spec.dram.bank_bytes_per_second, "phase_cycles": spec.compute.phase_cycles,
    }  # fmt: skip
