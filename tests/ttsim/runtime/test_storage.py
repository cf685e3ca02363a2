"""Buffers on a device whose tensors outlive the modules of an interpreter that ends."""

import subprocess
import sys

SCRIPT = """
import threading
import ttsim

device = ttsim.open_device()
threading.kept = ttsim.ones((32, 32), device=device)  # which goes after the names of threading have gone
"""


def test_a_tensor_that_outlives_modules_says_nothing():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stderr == ""
