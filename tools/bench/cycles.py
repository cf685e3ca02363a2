"""Plan, memory map, cycles and their report of the eight layers, on a device of each generation."""

from collections.abc import Iterator
from statistics import median

from device.spec.device_spec import load_spec
from tools.bench.figure import Figure
from tools.bench.layers import call_seconds
from ttsim.layers.exact import make_inputs
from ttsim.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.layers.run import Settings

DEVICES = ("wormhole_n150", "blackhole_p150")
LIMIT_MS = 20.0


def bench_cycles(repeats: int) -> Iterator[Figure]:
    """Calls with values="off" and cycles=True, report included: each layer, and the median of them."""
    for device in DEVICES:
        settings = Settings(spec=load_spec(device), values="off", cycles=True)
        found = []
        for layer in read_layers(DEFAULT_LAYERS):
            inputs = make_inputs(layer)
            turns = range(max(repeats, 5))
            found.append(1e3 * min(call_seconds(layer, inputs, settings, read=False) for _ in turns))
            yield Figure(bench="cycles", case=f"{device} {layer.name}", name="report", value=found[-1], unit="ms")
        case = f"{device}, median"
        yield Figure(bench="cycles", case=case, name="report", value=median(found), unit="ms", limit=LIMIT_MS)
