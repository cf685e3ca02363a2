"""Whole networks: a pass of the simulator, values, plans and report, against torch's own forward pass of the same."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any, Final

import numpy as np

from device.numbers.formats import Array
from device.spec.device_spec import load_spec
from tools.bench.figure import TORCH, Figure, beside_torch, in_turns, threads, timed, torch
from tools.bench.layers import unseen
from tools.machine import load_loops
from tools.validate.network_walk import (
    POOL,
    NetworkStep,
    Walk,
    device_of,
    needed_again,
    network_passed,
    operand_shapes,
    steps_of,
)
from tools.validate.rows import MEASURED, read_rows
from ttsim.recording.profiling import profile
from ttsim.report.accuracy import measure
from ttsim.runtime.device import Device
from ttsim.runtime.settings import DEFAULT_SPEC
from ttsim.runtime.tensor import Tensor

NETWORKS: Final = ("vgg_unet", "vanilla_unet")
NEW, FIRST, AGAIN = "first pass on a new spec", "first pass on a new device", "pass again"
# What holds on two threads of a quiet machine with AVX512-BF16, with some room: wanted are 1.5.
LIMITS_OF_TORCH: Final = {NEW: 1.3, FIRST: 1.1, AGAIN: 1.0}
LEAST_CORRELATION: Final = 0.9  # of bfloat8_b weights and LoFi products with float32, over some thirty layers


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A network with its numbers."""

    steps: Sequence[NetworkStep]  # Its layers and what stands between them
    image: Array  # float32 [N, C, H, W]
    operands: Mapping[str, tuple[Array, Array]]  # Weights and bias of each layer, float32


def read_network(model: str) -> Network:
    """A network of the recorded ones, with random numbers that neither die away nor grow from layer to layer."""
    steps, left = steps_of(model, read_rows(MEASURED / "model_layers.csv"), read_rows(MEASURED / "model_flow.csv"))
    if left:
        raise AssertionError(f"{model}: {left[0][1]}")
    rng = np.random.default_rng(0)
    operands = {}
    for row in (step.row for step in steps if step.row is not None):
        shape, of_bias = operand_shapes(row)
        multiply_adds = int(row["in_c"]) * int(row["k"]) ** 2
        met = multiply_adds // int(row["s"]) ** 2 if row["op"] == "conv_transpose2d" else multiply_adds
        weights = rng.standard_normal(shape, dtype=np.float32) * np.float32(sqrt(2 / met))
        operands[row["layer"]] = (weights, rng.standard_normal(of_bias, dtype=np.float32) / np.float32(10))
    first = steps[0].row or {}
    image = rng.standard_normal([int(first[name]) for name in ("batch", "in_c", "in_h", "in_w")], dtype=np.float32)
    return Network(steps=steps, image=image, operands=operands)


def host_tensors(network: Network) -> dict[str, tuple[Tensor, Tensor]]:
    """Weights and bias of each layer, as a script has them once for all passes."""
    return {layer: (Tensor(weights), Tensor(bias)) for layer, (weights, bias) in network.operands.items()}


def one_pass(network: Network, device: Device, operands: Mapping[str, tuple[Tensor, Tensor]]) -> Array:
    """From the image to the output on the host, with the report of its figures; the device is left empty."""
    walk = Walk(device, needed_again(network.steps), image=network.image)
    with profile(device) as profiled:
        output = network_passed(walk, network.steps, operands).cpu().to_numpy()
    profiled.report()
    return output


def fresh_pass(network: Network, operands: Mapping[str, tuple[Tensor, Tensor]], *, new: bool = False) -> Array:
    """The same on a device of its own; of a spec that no device had before if it is to be ``new``."""
    spec = load_spec(DEFAULT_SPEC)
    with device_of(network.steps, unseen(spec) if new else spec, "fast") as device:
        return one_pass(network, device, operands)


def torch_pass(network: Network) -> Callable[[], Any]:
    """The same in torch, float32, on tensors that are in place: its output."""
    torch.set_num_threads(threads())
    image = torch.from_numpy(network.image)
    operands = {
        layer: (torch.from_numpy(weights), torch.from_numpy(bias.reshape(-1)))
        for layer, (weights, bias) in network.operands.items()
    }
    joined = {step.before[1] for step in network.steps if step.word.startswith("concat")}

    def forward() -> Any:
        x = image
        outputs: dict[str, Any] = {}
        with torch.no_grad():
            for step in network.steps:
                x = _between(step.before, x, outputs)
                if step.row is not None:
                    x = _layer(step.row, x, *operands[step.row["layer"]])
                    if step.row["layer"] in joined:
                        outputs[step.row["layer"]] = x
        return x

    return forward


def _between(before: tuple[str, ...], x: Any, outputs: dict[str, Any]) -> Any:
    """The operation before a layer; memory configs and layouts mean nothing to torch."""
    match before:
        case ("pool" | "save_pool", *_):
            return torch.nn.functional.max_pool2d(x, POOL)
        case ("concat" | "concat_saved", layer, *_):
            return torch.cat([x, outputs.pop(layer)], dim=1)
        case ("sigmoid",):
            return torch.sigmoid(x)
    return x


def _layer(row: Mapping[str, str], x: Any, weights: Any, bias: Any) -> Any:
    functions = torch.nn.functional
    convolve = functions.conv_transpose2d if row["op"] == "conv_transpose2d" else functions.conv2d
    result = convolve(x, weights, bias, stride=int(row["s"]), padding=int(row["pad"]))
    return result if row["activation"] == "none" else getattr(torch, f"{row['activation']}_")(result)


def bench_networks(repeats: int) -> Iterator[Figure]:
    """A pass of each network, and of torch if installed: on a new spec, on a new device, and on a used device."""
    load_loops()
    for model in NETWORKS:
        network = read_network(model)
        operands = host_tensors(network)
        with device_of(network.steps, load_spec(DEFAULT_SPEC), "fast") as device:
            again = partial(one_pass, network, device, operands)
            first = partial(fresh_pass, network, operands)
            passes: dict[str, Callable[[], Any]] = {NEW: partial(first, new=True), FIRST: first, AGAIN: again}
            if torch is not None:
                passes[TORCH] = torch_pass(network)
                yield disagreement(model, again(), passes[TORCH]().numpy())
            ops = {name: timed(call) for name, call in passes.items()}
            yield from beside_torch(model, in_turns(ops, repeats), LIMITS_OF_TORCH)


def disagreement(model: str, output: Array, wanted: Array) -> Figure:
    """How far an output is from torch's, which shows that both compute the same network; each has one channel."""
    value = 1 - measure(output.reshape(-1), wanted.reshape(-1).astype(np.float64)).pcc
    return Figure(model, "1 - correlation with torch", value, "", 1 - LEAST_CORRELATION)
