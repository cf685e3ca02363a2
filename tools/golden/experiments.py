"""Sweeps, tunings and designs of three layers, as objects give them; the command line's are among the commands."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import ttsim
from tools.golden.answers import lines_of, plain, zeros
from tools.golden.store import Sections, title

UP: Final = {"kernel_size": (2, 2), "stride": (2, 2)}
LAYERS: Final[dict[str, dict[str, Any]]] = {
    "rows": {"in_channels": 32, "out_channels": 16, "input_height": 16, "input_width": 16, **UP},
    "wide": {"in_channels": 128, "out_channels": 64, "input_height": 32, "input_width": 32, **UP},
    "overlap": {
        **{"in_channels": 64, "out_channels": 48, "input_height": 24, "input_width": 20, "kernel_size": (4, 4)},
        **{"stride": (2, 2), "padding": (1, 1)},
    },
}
VARY: Final[dict[str, list[Any]]] = {
    "shard_layout": [None, "HEIGHT_SHARDED", "BLOCK_SHARDED"],
    "act_block_h_override": [0, 32],
    "dram.banks": [6, 12],
}
DESIGN: Final = """\
[device]
base = "wormhole_n150"

[space]
grid = ["4x8", "8x8"]
l1.bytes = ["1MiB", "1464KiB"]
clock_hz = {from = "1GHz", to = "1.5GHz", step = "250MHz"}

[costs]
area = "grid.cols * grid.rows * (1.0 + 0.5 * l1.bytes / 2**20)"
"""
EFFORT: Final = 40  # calls of a tuning


def tuned(layer: str) -> Sections:
    """The best configs of a layer, as it is and with other arithmetic."""
    sections = {}
    for device in ("wormhole_n150", "blackhole_p150"):
        with ttsim.open_device(l1_small_size=32768, spec=device, values="off") as simulated:
            for allowed in ((), ("fidelity",)) if layer == "rows" else ((),):
                result = ttsim.tune(
                    ttsim.conv_transpose2d, device=simulated, allow=allowed, effort=EFFORT, name=layer, **_call(layer)
                )
                name = title(f"tune {layer} {device}", "fidelity allowed" if allowed else "as it is")
                sections[name] = plain(f"{result}\n{lines_of(_data(result.to_dict()))}")
    return sections


def swept(layer: str) -> Sections:
    """A sweep of a layer on two devices."""
    vary = {name: values for name, values in VARY.items() if name != "dram.banks" or layer == "rows"}
    result = ttsim.sweep(
        [{"name": layer, **LAYERS[layer]}], ["wormhole_n150", "blackhole_p150"], vary=vary, processes=1
    )
    texts = {"rows": lines_of(json.loads(result.to_json())), "CSV": result.to_csv(), "best": f"{result.best}"}
    texts["verdicts"] = f"{result.verdicts} {result.plans} plans, note {result.note!r}"
    return {title(f"sweep {layer}", aspect): plain(text) for aspect, text in texts.items()}


def designed(layer: str) -> Sections:
    """Machines for a layer."""
    lines = [f"{name} = {list(value) if isinstance(value, tuple) else value}" for name, value in LAYERS[layer].items()]
    with tempfile.TemporaryDirectory(prefix="golden-") as temporary:
        path = Path(temporary) / "machines.toml"
        path.write_text("\n".join([DESIGN, "[[layer]]", f'name = "{layer}"', *lines, ""]), encoding="utf-8")
        result = ttsim.design(path)
    texts = {"text": f"{result}", "figures": lines_of(json.loads(result.to_json())), "CSV": result.to_csv()}
    return {title(f"design {layer}", aspect): plain(text) for aspect, text in texts.items()}


def tuned_network(layer: str) -> Sections:
    """A network of two convolutions around a layer, tuned."""
    sizes = LAYERS[layer]
    with ttsim.open_device(l1_small_size=32768, values="off") as device, ttsim.profile(device) as profile:
        call = _call(layer) | {"device": device}
        call["input_tensor"] = ttsim.Tensor(zeros(call["input_tensor"].shape), ttsim.bfloat16).to(device)
        call["weight_tensor"] = ttsim.Tensor(zeros(call["weight_tensor"].shape), ttsim.bfloat16)
        y, (height, width) = ttsim.conv_transpose2d(**call, return_output_dim=True)
        channels = sizes["out_channels"]
        weights = ttsim.Tensor(zeros((channels, channels, 3, 3)), ttsim.bfloat16)
        shared = {
            "in_channels": channels,
            "out_channels": channels,
            "batch_size": 1,
            "kernel_size": (3, 3),
            "padding": (1, 1),
        }
        ttsim.conv2d(
            input_tensor=y, weight_tensor=weights, device=device, input_height=height, input_width=width, **shared
        )
        result = ttsim.tune_network(profile)
    return {title(f"tune a network of {layer}", "all"): plain(f"{result}\n{lines_of(_data(result.to_dict()))}")}


EXPERIMENTS: Final[dict[str, Callable[[str], Sections]]] = {
    "tune": tuned,
    "sweep": swept,
    "design": designed,
    "network": tuned_network,
}


def _call(layer: str) -> dict[str, Any]:
    sizes = LAYERS[layer]
    pixels = sizes["input_height"] * sizes["input_width"]
    image, weights = (
        (1, 1, pixels, sizes["in_channels"]),
        (sizes["in_channels"], sizes["out_channels"], *sizes["kernel_size"]),
    )
    tensors = {"input_tensor": ttsim.TensorDescription(image), "weight_tensor": ttsim.TensorDescription(weights)}
    return {**tensors, "batch_size": 1, **sizes}


def _data(value: Any) -> Any:
    """The dictionary of a result, as JSON would hold it."""
    return json.loads(json.dumps(value, default=str))
