"""How much memory a layer takes: peak allocations of a fresh interpreter against the bytes of its tensors."""

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator

from device.numbers.formats import FORMATS
from device.spec.device_spec import load_spec
from tools.bench.figure import Figure
from ttsim.runtime.settings import DEFAULT_SPEC
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import Settings, call, make_inputs, place, run_layer
from ttsim.types.layer import Layer

LIMIT_OF_TENSORS = 2.1
LIMIT_OF_STORED = 4.0
LIMIT_OF_STORED_BLOCKS = 5.8  # of a block float input: what a script has in float32 alone takes 3.8 times as much
MIB = 1 << 20


def stored_bytes(elements: int, dtype: str) -> float:
    """Bytes of a tensor in its data format."""
    data_format = FORMATS[dtype]
    return elements * data_format.tile_bytes / 1024


def tensor_bytes(layer: Layer, output_elements: int) -> float:
    """Bytes of input, weights and output in their data formats."""
    inputs = make_inputs(layer)
    weights = inputs.w.size + (0 if inputs.b is None else inputs.b.size)
    return (
        stored_bytes(inputs.x.size, layer.input_dtype)
        + stored_bytes(weights, layer.weights_dtype)
        + stored_bytes(output_elements, layer.dtype or layer.input_dtype)
    )


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


def measure_apart(layer: Layer) -> dict[str, float]:
    """`measure_layer` in an interpreter of its own."""
    command = [sys.executable, "-m", "tools.bench.memory", layer.name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def bench_memory(repeats: int) -> Iterator[Figure]:
    """Peak of every layer; once each, since allocations repeat."""
    for layer in read_layers(DEFAULT_LAYERS):
        found = measure_apart(layer)
        case = layer.name
        yield Figure(bench="memory", case=case, name="peak", value=found["peak"] / MIB, unit="MiB")
        yield Figure(bench="memory", case=case, name="tensors as stored", value=found["stored"] / MIB, unit="MiB")
        ratio = found["peak"] / found["stored"]
        limit = LIMIT_OF_STORED_BLOCKS if FORMATS[layer.input_dtype].is_block else LIMIT_OF_STORED
        yield Figure(bench="memory", case=case, name="of stored", value=ratio, unit="x", limit=limit)
        ratio = found["peak"] / found["float32"]
        yield Figure(bench="memory", case=case, name="of float32", value=ratio, unit="x", limit=LIMIT_OF_TENSORS)


def main() -> None:
    """Measure the layer that is named on the command line, for `measure_apart`."""
    layer = next(layer for layer in read_layers(DEFAULT_LAYERS) if layer.name == sys.argv[1])
    print(json.dumps(measure_layer(layer)))


if __name__ == "__main__":
    main()
