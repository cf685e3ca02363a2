"""The shape of the house in numbers: parts of each package, arrows between them, files that a call enters.

A limit may go down at any time. Raising one takes a sentence in docs/explanation/design.md.
"""

import subprocess
import sys

import pytest

from tests.test_layers import MODULES, ROOT, imported, room

PACKAGES = {"device": (10, 22), "ops": (10, 20), "ttsim": (14, 35)}  # parts, and arrows between them
FILES_ENTERED = {"off": 40, "exact": 51, "report": 71}
CALL = """
import sys
from pathlib import Path

import numpy as np

import ttsim

ROOT = Path(ttsim.__file__).resolve().parents[1]


def call(device, channels):
    random = np.random.default_rng(0)
    image, weight = random.random((1, 18, 18, channels)), random.random((channels, 16, 2, 2))
    return {
        "input_tensor": ttsim.to_device(ttsim.from_numpy(image, dtype=ttsim.bfloat16), device),
        "weight_tensor": ttsim.from_numpy(weight, dtype=ttsim.bfloat16),
        "device": device,
        "in_channels": channels,
        "out_channels": 16,
        "batch_size": 1,
        "input_height": 18,
        "input_width": 18,
        "kernel_size": (2, 2),
        "stride": (2, 2),
    }


def entered(work):
    files = set()
    sys.setprofile(lambda frame, event, argument: files.add(frame.f_code.co_filename) if event == "call" else None)
    try:
        work()
    finally:
        sys.setprofile(None)
    return sum(name.startswith(tuple(str(ROOT / package) for package in ("device", "ops", "ttsim"))) for name in files)


for values, channels in (("off", 32), ("exact", 128)):
    device = ttsim.open_device(values=values, l1_small_size=32768)
    ttsim.conv_transpose2d(**call(device, 64))
    arguments = call(device, channels)
    print(values, entered(lambda: ttsim.conv_transpose2d(**arguments)))
arguments = call(device, 96)
with ttsim.profile(device) as profile:
    print("report", entered(lambda: (ttsim.conv_transpose2d(**arguments), profile.report())))
"""


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_have_few_parts_and_arrows(package):
    """Parts are what stands directly in a package; its own file has arrows, and is none."""
    inside = {name: path for name, path in MODULES.items() if name.startswith(f"{package}.") or name == package}
    targets = {(room(name), room(to)) for name, path in inside.items() for _, to in imported(path) if to in inside}
    arrows = {(source, target) for source, target in targets if target not in (source, "__init__")}
    parts = {room(name) for name in inside} - {"__init__"}
    most_parts, most_arrows = PACKAGES[package]
    assert len(parts) <= most_parts, sorted(parts)
    assert len(arrows) <= most_arrows, sorted(arrows)


def test_a_call_enters_few_files():
    """Of a shape not seen before, in a process that has made another call."""
    done = subprocess.run(
        [sys.executable, "-c", CALL], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    counts = {name: int(count) for name, count in map(str.split, done.stdout.splitlines())}
    assert counts.keys() == FILES_ENTERED.keys()
    assert {name: count for name, count in counts.items() if count > FILES_ENTERED[name]} == {}
