"""Planning alone: recorded calls of mode "plan", in processor time, and what stays allocated after many of them."""

import gc
import json
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from device.errors import DeviceError
from device.machine import Machine
from device.memory.memory_config import BufferType
from device.numbers.formats import FORMATS
from device.spec.device_spec import DeviceSpec, load_spec
from ops.planners.conv.arguments import ConvCall
from ops.planners.conv.plan import plan_convolution
from tools.bench.figure import Figure, least_seconds
from tools.golden.calls import DEVICE_OF
from tools.recorded import DATA, planner_arguments, read_records
from ttsim.runtime.settings import DEFAULT_SPEC
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import Settings, call, make_inputs, place, run_layer

FULL_COLLECTION = DATA.parents[2] / "shared" / "oracle" / "ttnn"
LIMIT_MS = 1.0  # a thousand plans a second, the mean over all calls
LIMIT_BLOCKS = 1000.0  # what the interpreter keeps for itself; a leak of one object per plan would be more


@dataclass(frozen=True, slots=True)
class Call:
    """A recorded call, ready to be planned."""

    arguments: ConvCall
    spec: DeviceSpec
    free_l1_bytes: int  # Of each of its L1 banks

    @property
    def group(self) -> str:
        """How the call is sliced."""
        if self.arguments.is_matmul:
            return "1x1"
        if self.arguments.takes_l1_path:
            return "one piece"
        slices = self.arguments.slice_config
        return "given slices" if slices is not None and slices.num_slices else "automatic slices"

    def plan(self) -> None:
        """Plans the call, or has it refused."""
        with suppress(DeviceError, ValueError):
            plan_convolution(self.arguments, self.spec, free_l1_bytes=self.free_l1_bytes)


def recorded_calls() -> Iterator[Call]:
    """The calls of mode "plan": of the full collection where it lies beside the checkout, else of the sample."""
    devices = {arch: Machine(name, l1_small_bytes=32768) for arch, name in DEVICE_OF.items()}
    for record in read_records(FULL_COLLECTION if FULL_COLLECTION.is_dir() else DATA):
        if record["mode"] == "plan":
            device = devices[record["arch"]]
            free = device.allocator.statistics(BufferType.L1).free_bytes_per_bank
            yield Call(planner_arguments(record["case"], record["arch"]), device.spec, free)


def blocks_kept(calls: Sequence[Call], rounds: int) -> int:
    """Blocks of memory that the interpreter holds after all calls were planned once, and so many times more."""
    counts = []
    for times in (1, rounds):
        for recorded in [*calls] * times:
            recorded.plan()
        gc.collect()
        counts.append(sys.getallocatedblocks())
    return counts[1] - counts[0]


def bench_plans(repeats: int) -> Iterator[Figure]:
    """Every group of calls, then all; each repeat plans all calls twice, once for the time, once for the memory."""
    calls = list(recorded_calls())
    times: defaultdict[str, list[float]] = defaultdict(list)
    for recorded in calls:
        times[recorded.group].append(1e3 * least_seconds(recorded.plan, repeats, clock=time.thread_time))
    times["all"] = [value for milliseconds in list(times.values()) for value in milliseconds]
    for group, milliseconds in times.items():
        case, limit = f"{len(milliseconds)} calls, {group}", LIMIT_MS if group == "all" else None
        ranks = statistics.quantiles(milliseconds, n=20) if len(milliseconds) > 1 else milliseconds
        yield Figure(case, "median", statistics.median(milliseconds))
        yield Figure(case, "95 of 100 within", ranks[-1])
        yield Figure(case, "mean", statistics.fmean(milliseconds), limit=limit)
    blocks = float(blocks_kept(calls, repeats))
    yield Figure(f"{repeats * len(calls)} plans", "kept", blocks, "blocks", LIMIT_BLOCKS)


LIMIT_SECONDS = 0.15
ARRAYS = "import numpy, ml_dtypes"  # what every script loads anyway
SCRIPT = "import time{before}; start = time.process_time(); {statement}; print(time.process_time() - start)"
CASES = (
    (ARRAYS, None, None),
    ("import ttsim", ARRAYS, LIMIT_SECONDS),
    ("import ttsim; ttsim.conv_transpose2d", ARRAYS, None),
    ("from ttsim import *", ARRAYS, None),
)


def statement_seconds(statement: str, before: str | None, repeats: int) -> float:
    """Processor time of the shortest of several runs of a statement, each in an interpreter of its own."""
    script = SCRIPT.format(statement=statement, before=f"; {before}" if before else "")

    def once() -> float:
        return float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)

    return min(once() for _ in range(repeats))


def bench_imports(repeats: int) -> Iterator[Figure]:
    """What numpy and ml_dtypes take, and what ttsim adds to them."""
    for statement, before, limit in CASES:
        seconds = statement_seconds(statement, before, max(repeats, 7))
        name = "import" if before is None else "above numpy and ml_dtypes"
        yield Figure(statement, name, seconds, "s", limit)


LIMIT_OF_TENSORS = 2.1
LIMIT_OF_STORED = 4.0
LIMIT_OF_STORED_BLOCKS = 5.8  # of a block float input: what a script has in float32 alone takes 3.8 times as much
MIB = 1 << 20


def tensor_bytes(layer: Layer, output_elements: int) -> float:
    """Bytes of input, weights and output in their data formats."""
    inputs = make_inputs(layer)
    weights = inputs.w.size + (0 if inputs.b is None else inputs.b.size)
    kinds = (layer.input_dtype, layer.weights_dtype, layer.dtype or layer.input_dtype)
    sizes = zip(kinds, (inputs.x.size, weights, output_elements), strict=True)
    return sum(elements * FORMATS[dtype].tile_bytes / 1024 for dtype, elements in sizes)


def measure_layer(layer: Layer) -> dict[str, float]:
    """Peak bytes that Python and numpy allocate for a call, with its inputs and the output read back."""
    settings = Settings(spec=load_spec(DEFAULT_SPEC))
    run_layer(layer, settings)  # modules and compiled code that a first call loads are no part of a layer
    tracemalloc.start()
    inputs = make_inputs(layer)
    placed = place(layer, inputs, settings)
    output = call(placed).output.cpu().to_numpy()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    placed.device.close()
    float32_bytes = sum(a.nbytes for a in (*inputs, output.astype("float32")) if a is not None)
    return {"peak": peak, "stored": tensor_bytes(layer, output.size), "float32": float(float32_bytes)}


def bench_memory(repeats: int) -> Iterator[Figure]:
    """Peak of every layer, each in an interpreter of its own; once each, since allocations repeat."""
    for layer in read_layers(DEFAULT_LAYERS):
        command = [sys.executable, "-m", "tools.bench.plans", layer.name]
        sizes = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        limit = LIMIT_OF_STORED_BLOCKS if FORMATS[layer.input_dtype].is_block else LIMIT_OF_STORED
        yield Figure(layer.name, "peak", sizes["peak"] / MIB, "MiB")
        yield Figure(layer.name, "tensors as stored", sizes["stored"] / MIB, "MiB")
        yield Figure(layer.name, "of stored", sizes["peak"] / sizes["stored"], "x", limit)
        yield Figure(layer.name, "of float32", sizes["peak"] / sizes["float32"], "x", LIMIT_OF_TENSORS)


def main() -> None:
    """Measures the layer that is named on the command line, for `bench_memory`."""
    layer = next(layer for layer in read_layers(DEFAULT_LAYERS) if layer.name == sys.argv[1])
    print(json.dumps(measure_layer(layer)))


if __name__ == "__main__":
    main()
