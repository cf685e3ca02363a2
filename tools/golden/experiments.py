"""Sweeps, tunings and designs of three layers, as objects give them; the command line's are among the commands."""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import ttsim
from tools.golden.answers import lines_of, plain, zeros
from tools.golden.calls import DEVICES
from tools.golden.store import Sections, titled

UP: Final = {"kernel_size": (2, 2), "stride": (2, 2)}
OVERLAP: Final = {"kernel_size": (4, 4), "stride": (2, 2), "padding": (1, 1)}
LAYERS: Final[dict[str, dict[str, Any]]] = {
    "rows": {"in_channels": 32, "out_channels": 16, "input_height": 16, "input_width": 16, **UP},
    "wide": {"in_channels": 128, "out_channels": 64, "input_height": 32, "input_width": 32, **UP},
    "overlap": {"in_channels": 64, "out_channels": 48, "input_height": 24, "input_width": 20, **OVERLAP},
}
VARY: Final[dict[str, list[Any]]] = {
    "shard_layout": [None, "HEIGHT_SHARDED", "BLOCK_SHARDED"],
    "act_block_h_override": [0, 32],
    "dram.banks": [6, 12],
}
DESIGN: Final = """\
tune = false

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
    sections: Sections = {}
    for device in DEVICES:
        with ttsim.open_device(l1_small_size=32768, spec=device, values="off") as simulated:
            for aspect, allowed in {"as it is": (), "fidelity allowed": ("fidelity",)}.items():
                if layer == "rows" or not allowed:
                    how: dict[str, Any] = {"allow": allowed, "effort": EFFORT, "name": layer, "device": simulated}
                    result = ttsim.tune(ttsim.conv_transpose2d, **how, **_call(layer))
                    sections |= _titled(f"tune {layer} {device}", {aspect: _tuning_text(result)})
    return sections


def swept(layer: str) -> Sections:
    """A sweep of a layer on two devices."""
    vary = {name: values for name, values in VARY.items() if name != "dram.banks" or layer == "rows"}
    result = ttsim.sweep([{"name": layer, **LAYERS[layer]}], list(DEVICES), vary=vary, processes=1)
    texts = {"rows": lines_of(json.loads(result.to_json())), "CSV": result.to_csv(), "best": f"{result.best}"}
    verdicts = f"{result.verdicts} {result.plans} plans, note {result.note!r}"
    return _titled(f"sweep {layer}", texts | {"verdicts": verdicts})


def designed(layer: str) -> Sections:
    """Machines for a layer."""
    lines = [f"{name} = {list(value) if isinstance(value, tuple) else value}" for name, value in LAYERS[layer].items()]
    with tempfile.TemporaryDirectory(prefix="golden-") as temporary:
        path = Path(temporary) / "machines.toml"
        path.write_text("\n".join([DESIGN, "[[layer]]", f'name = "{layer}"', *lines, ""]), encoding="utf-8")
        result = ttsim.design(path)
    texts = {"text": f"{result}", "figures": lines_of(json.loads(result.to_json())), "CSV": result.to_csv()}
    return _titled(f"design {layer}", texts)


def tuned_network(layer: str) -> Sections:
    """A network of two convolutions around a layer, tuned."""
    call, channels = _call(layer), LAYERS[layer]["out_channels"]
    sizes = {"in_channels": channels, "out_channels": channels, "batch_size": 1, "kernel_size": (3, 3)}
    with ttsim.open_device(l1_small_size=32768, values="off") as device, ttsim.profile(device) as profile:
        call["input_tensor"] = ttsim.Tensor(zeros(call["input_tensor"].shape), ttsim.bfloat16).to(device)
        call["weight_tensor"] = ttsim.Tensor(zeros(call["weight_tensor"].shape), ttsim.bfloat16)
        y, (height, width) = ttsim.conv_transpose2d(**call, device=device, return_output_dim=True)
        weights = ttsim.Tensor(zeros((channels, channels, 3, 3)), ttsim.bfloat16)
        sizes |= {"input_height": height, "input_width": width, "padding": (1, 1)}
        ttsim.conv2d(input_tensor=y, weight_tensor=weights, device=device, **sizes)
        result = ttsim.tune_network(profile)
    return _titled(f"tune a network of {layer}", {"all": _tuning_text(result)})


EXPERIMENTS: Final[dict[str, Callable[[str], Sections]]] = {
    "tune": tuned,
    "sweep": swept,
    "design": designed,
    "network": tuned_network,
}


def _call(layer: str) -> dict[str, Any]:
    sizes = LAYERS[layer]
    ins, outs = sizes["in_channels"], sizes["out_channels"]
    image = ttsim.TensorDescription((1, 1, sizes["input_height"] * sizes["input_width"], ins))
    weights = ttsim.TensorDescription((ins, outs, *sizes["kernel_size"]))
    return {"input_tensor": image, "weight_tensor": weights, "batch_size": 1, **sizes}


def _tuning_text(result: Any) -> str:
    """A result with its dictionary, as JSON would hold it."""
    return f"{result}\n{lines_of(json.loads(json.dumps(result.to_dict(), default=str)))}"


def _titled(name: str, texts: Mapping[str, str]) -> Sections:
    return titled(name, {aspect: plain(text) for aspect, text in texts.items()})
