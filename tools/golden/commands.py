"""What the command line prints and writes: every command, its help, and its errors."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tools.golden.exports import file_text
from tools.golden.plain import ROOT, plain
from tools.golden.store import Sections, title

FILES: Final = {
    "layers.toml": """\
[common]
kernel_size = 2
stride = 2

[[layer]]
name = "up"
in_channels = 32
out_channels = 16
input_height = 16
input_width = 16

[[layer]]
name = "wide"
in_channels = 96
out_channels = 64
input_height = 8
input_width = 24
input_memory = "l1"
config = { shard_layout = "BLOCK_SHARDED", weights_dtype = "bfloat8_b" }

[[layer]]
name = "too_large"
in_channels = 512
out_channels = 512
input_height = 128
input_width = 128
slice = "l1_full"
""",
    "machines.toml": """\
layers = "layers.toml"
only = "up"

[device]
base = "wormhole_n150"

[space]
grid = ["4x8", "8x8"]
l1.bytes = ["1MiB", "1464KiB"]
noc.flit_bytes = [32, 64]

[costs]
area = "grid.cols * grid.rows * (1.0 + 0.5 * l1.bytes / 2**20 + noc.flit_bytes / 256)"
""",
    "lab_card.toml": """\
extends = "wormhole_n150"
name = "lab_card"

[grid]
rows = 4

[dram]
banks = 6
""",
    "broken.toml": 'extends = "wormhole_n150"\nname = "broken"\n\n[grid]\nrowz = 4\n',
    "script.py": """\
import sys

import torch_or_not as np
import ttnn

device = ttnn.open_device(device_id=0, l1_small_size=32768)
x = ttnn.Tensor(np.ones((1, 1, 64, 32), np.float32), ttnn.bfloat16).to(device, ttnn.L1_MEMORY_CONFIG)
w = ttnn.Tensor(np.ones((32, 32, 2, 2), np.float32), ttnn.bfloat16)
for _ in range(2):
    y = ttnn.conv_transpose2d(
        input_tensor=x, weight_tensor=w, device=device, in_channels=32, out_channels=32, batch_size=1,
        input_height=8, input_width=8, kernel_size=(2, 2), stride=(2, 2))
    z = ttnn.relu(ttnn.to_layout(y, ttnn.TILE_LAYOUT))
print(sys.argv[1:], z.shape, z.memory_config())
print(z)
ttnn.close_device(device)
""".replace("torch_or_not", "numpy"),
    "fails.py": "import ttnn\n\n\ndef inner():\n    return ttnn.no_such_operation\n\n\ninner()\n",
    "test_script.py": """\
import numpy as np
import ttnn


def test_relu(device):
    x = ttnn.Tensor(-np.ones((1, 1, 32, 32), np.float32), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT).to(device)
    assert not ttnn.relu(x).cpu().to_numpy().any()


def test_wrong(device):
    assert ttnn.Shape([1, 2]) == [2, 1]
""",
}

# name -> (columns, arguments); files that a command writes into out/ are recorded, too. {name} of another command's
# output folder stands for a command that runs on what that one wrote.
COMMANDS: Final[dict[str, tuple[int, str]]] = {
    **{
        f"help of {name}": (100, f"{name} --help")
        for name in ("run", "devices", "exec", "compare", "tune", "design", "sweep")
    },
    "help": (80, "--help"),
    "help of pytest": (80, "pytest --help"),
    "version": (80, "--version"),
    "no command": (80, ""),
    "unknown command": (80, "fly"),
    "run": (80, "run --layers layers.toml"),
    "run wide": (160, "run --layers layers.toml --values fast"),
    "run verbose": (120, "run --layers layers.toml --values off -v --device blackhole_p150"),
    "run summary": (100, "run --summary --values off --no-suggestions"),
    "run in JSON": (80, "run --layers layers.toml --values off --json"),
    "run from flags": (
        100,
        "run --shape 1,8,8,32 --out-channels 16 --kernel-size 3 --stride 2 --padding 1 --bias --config"
        " output_layout=ROW_MAJOR --compute math_fidelity=HiFi2 --set dram.banks=6",
    ),
    "run of a wrong flag": (100, "run --shape 1,8,8"),
    "run of an unknown layer": (100, "run --only nowhere"),
    "run on an unknown device": (100, "run --device n151"),
    "run on a broken device": (100, "run --device broken.toml"),
    "run of an unknown field": (100, "run --shape 1,8,8,32 --config shard_layuot=HEIGHT_SHARDED"),
    "run with files": (
        100,
        "run --layers layers.toml --only up --values fast --html out/page.html --report out/report",
    ),
    "devices": (80, "devices"),
    "two devices": (120, "devices wormhole_n150 blackhole_p150"),
    "own device": (80, "devices lab_card.toml --set l1.bytes=2MiB"),
    "devices in JSON": (80, "devices wormhole_n150 wormhole_n300 blackhole_p100a blackhole_p150 --json"),
    "device explained": (120, "devices wormhole_n150 --explain --only dram"),
    "exec": (80, "exec --device wormhole_n150 --values exact script.py a --b"),
    "exec with report": (100, "exec --device blackhole_p150 --values off --report out/report script.py"),
    "exec tuned": (100, "exec --tune --values off script.py"),
    "exec of an error": (80, "exec fails.py"),
    "exec of no file": (80, "exec missing.py"),
    "pytest": (80, "pytest --values fast -q -p no:cacheprovider test_script.py"),
    "tune": (120, "tune --layers layers.toml --only up"),
    "tune of more": (120, "tune --layers layers.toml --only wide --allow fidelity --device blackhole_p150"),
    "tune in JSON": (80, "tune --layers layers.toml --only up --json"),
    "sweep": (
        120,
        "sweep --layers layers.toml --device wormhole_n150 blackhole_p150 --vary act_block_h_override=0,32"
        " --vary shard_layout=none,HEIGHT_SHARDED --csv out/rows.csv --json out/rows.json --file out/rows.jsonl",
    ),
    "sweep of an unknown setting": (100, "sweep --vary act_block=0,32"),
    "design": (120, "design machines.toml --csv out/machines.csv --json out/machines.json"),
    "design of no file": (100, "design nowhere.toml"),
    "compare": (120, "compare before.json after.json"),
    "compare in percent": (80, "compare before.json after.json --fail-over 1%"),
    "compare of no report": (80, "compare layers.toml after.json"),
}
LAYER_IN_JSON: Final = "run --shape 1,16,16,32 --out-channels 16 --stride 2 --values off --no-suggestions --json"
BEFORE_COMPARE: Final = {
    "before.json": LAYER_IN_JSON,
    "after.json": f"{LAYER_IN_JSON} --config act_block_h_override=32",
}


def command_sections(name: str) -> Sections:
    """Exit status, output, error output and written files of a command, run in a folder of its own."""
    columns, arguments = COMMANDS[name]
    with tempfile.TemporaryDirectory(prefix="golden-") as temporary:
        folder = Path(temporary)
        for file, text in FILES.items():
            (folder / file).write_text(text, encoding="utf-8")
        (folder / "out").mkdir()
        if arguments.startswith("compare"):
            _make_reports(folder)
        ended = _run(arguments, folder, columns)
        found = {
            "arguments": arguments,
            "exit status": f"{ended.returncode}",
            "output": plain(ended.stdout),
            "error output": plain(ended.stderr),
        }
        written = sorted(path for path in (folder / "out").rglob("*") if path.is_file())
        found |= {f"file {path.relative_to(folder).as_posix()}": plain(file_text(path)) for path in written}
    return {title(name, aspect): text for aspect, text in found.items()}


def _make_reports(folder: Path) -> None:
    """Writes the two reports that are compared: one layer with two configs."""
    for file, arguments in BEFORE_COMPARE.items():
        (folder / file).write_text(_run(arguments, folder, 80).stdout, encoding="utf-8")


def _run(arguments: str, folder: Path, columns: int) -> subprocess.CompletedProcess[str]:
    """Runs the command line in a folder, as in a terminal without colors that is so many columns wide."""
    chosen = {"COLUMNS": f"{columns}", "NO_COLOR": "1", "PYTHONPATH": f"{ROOT}", "PYTHONWARNINGS": "ignore"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TTSIM_", "TTNN_", "PYTEST_"))}
    return subprocess.run(
        [sys.executable, "-m", "ttsim", *arguments.split()],
        cwd=folder,
        env={**kept, **chosen},
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="backslashreplace",
        check=False,
        stdin=subprocess.DEVNULL,
    )
