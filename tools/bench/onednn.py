"""Speed of the transposed convolution and its gradients against torch's, float32, in the same process."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tools.bench.figure import TORCH, Figure, beside_torch, in_turns, threads, timed, torch
from tools.machine import load_loops
from ttsim import onednn
from ttsim.runtime.device import Device, open_device

OURS = "ttsim"
# What holds on two threads of a quiet machine, with some room: wanted is 1.2 for every direction.
LIMIT_OF_TORCH = 1.5  # of every direction
LIMIT_OF_DEPTHWISE = 2.5  # of a layer whose groups have one channel each: they are multiplied as one matrix
PAUSE_SECONDS = 0.01  # torch's threads turn for some 4 ms after its work
TURNS = 3  # for one repeat: a direction takes some milliseconds, and what disturbs a machine lasts longer
LIMIT_OF_TORCH_IN_SUM = 0.75


@dataclass(frozen=True, slots=True)
class Case:
    """One layer with square images and kernels."""

    name: str
    batch: int
    channels: tuple[int, int]  # I and O
    size: int  # Height and width of the source
    kernel: int  # Taps on each axis
    stride: int = 2
    padding: int = 0  # At both ends
    output_padding: int = 0  # At the end
    dilation: int = 1
    groups: int = 1


CASES = (
    Case("unet up, deepest", 1, (512, 256), 32, 2),
    Case("unet up, middle", 1, (128, 64), 128, 2),
    Case("unet up, largest", 1, (64, 32), 256, 2),
    Case("dcgan, first", 8, (100, 512), 1, 4, 1),
    Case("dcgan, second", 8, (512, 256), 4, 4, 2, 1),
    Case("dcgan, fourth", 8, (128, 64), 16, 4, 2, 1),
    Case("dcgan, last", 8, (64, 3), 32, 4, 2, 1),
    Case("vae up", 4, (128, 128), 32, 3, 2, 1, 1),
    Case("vae up, last", 4, (64, 32), 64, 3, 2, 1, 1),
    Case("dilated", 1, (64, 64), 64, 3, 1, 2, 0, 2),
    Case("dilated and strided", 1, (64, 64), 48, 3, 2, 2, 1, 2),
    Case("4 groups", 1, (128, 128), 64, 3, 2, 1, 1, 1, 4),
    Case("32 groups", 1, (256, 256), 32, 4, 2, 1, 0, 1, 32),
    Case("depthwise", 1, (64, 64), 64, 4, 2, 1, 0, 1, 64),
)


def bench_onednn(repeats: int) -> Iterator[Figure]:
    """Every layer in all directions, taking turns with torch where it is installed."""
    load_loops()
    in_sum = Counter[str]()
    with open_device(values="fast") as device:
        for case in CASES:
            totals = Counter[str]()
            limit = LIMIT_OF_DEPTHWISE if case.groups == min(case.channels) else LIMIT_OF_TORCH
            for direction, works in directions(case, device):
                ops = {name: timed(op) for name, op in works.items()}
                seconds = in_turns(ops, TURNS * repeats, pause_seconds=PAUSE_SECONDS)
                totals.update(seconds)
                yield from beside_torch(f"{case.name}, {direction}", seconds, {OURS: limit})
            yield from beside_torch(f"{case.name}, all", totals, {})
            in_sum.update(totals)
    yield from beside_torch("all layers", in_sum, {OURS: LIMIT_OF_TORCH_IN_SUM})


def directions(case: Case, device: Device) -> Iterator[tuple[str, dict[str, Callable[[], object]]]]:
    """The name of each direction, with its work here and, where it is installed, in torch."""
    rng = np.random.default_rng(0)
    ins, outs = case.channels
    src = rng.standard_normal((case.batch, case.size, case.size, ins), np.float32)
    weights = rng.standard_normal((ins, outs // case.groups, case.kernel, case.kernel), np.float32)
    bias = rng.standard_normal(outs, np.float32)
    attributes: dict[str, Any] = {"groups": case.groups, "weights_format": "IOX", "device": device}
    attributes |= {"strides": [case.stride] * 2, "dilations": [case.dilation] * 2}
    attributes |= {name: [case.padding] * 2 for name in ("pads_begin", "pads_end")}
    attributes["output_padding"] = [case.output_padding] * 2
    shape = onednn.conv_transpose(src, weights, bias, **attributes).shape
    diff = np.asarray(rng.standard_normal(shape, np.float32))
    theirs = {} if torch is None else _torch_works(case, src, weights, bias, diff)
    ours: dict[str, Callable[[], object]] = {
        "forward": lambda: onednn.conv_transpose(src, weights, bias, **attributes),
        "data": lambda: onednn.conv_transpose_backward_data(diff, weights, **attributes),
        "weights": lambda: onednn.conv_transpose_backward_weights(src, diff, weights.shape, **attributes),
    }
    for direction, op in ours.items():
        yield direction, {OURS: op} | ({TORCH: theirs[direction]} if theirs else {})


def _torch_works(case: Case, src: Any, weights: Any, bias: Any, diff: Any) -> dict[str, Callable[[], object]]:
    """The works in torch, on tensors in torch's own order."""
    torch.set_num_threads(threads())
    x, gradient = (torch.from_numpy(a).permute(0, 3, 1, 2).contiguous() for a in (src, diff))
    w, b = torch.from_numpy(weights), torch.from_numpy(bias)
    options = {name: getattr(case, name) for name in ("stride", "padding", "output_padding", "dilation", "groups")}
    result = torch.nn.functional.conv_transpose2d(x.requires_grad_(), w.requires_grad_(), b, **options)

    def forward() -> object:
        with torch.no_grad():
            return torch.nn.functional.conv_transpose2d(x, w, b, **options)

    return {
        "forward": forward,
        "data": lambda: torch.autograd.grad(result, x, gradient, retain_graph=True),
        "weights": lambda: torch.autograd.grad(result, w, gradient, retain_graph=True),
    }
