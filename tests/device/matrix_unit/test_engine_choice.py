"""When a product is worth loading the compiled engine; what products give is tested in test_exact."""

import importlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from device.matrix_unit import blocks
from device.matrix_unit.exact import MatrixUnitMode


@pytest.mark.parametrize(
    ("steps", "phases", "rows", "cols", "loads"),
    [
        (62, 1, 8, 2, False),  # 62 * (64,000 + 16 * 8 * 2) = 3,983,872
        (63, 1, 8, 2, True),  # 4,048,128
        (31, 2, 8, 2, False),
        (32, 2, 8, 2, True),
        (2, 1, 512, 236, False),  # 2 * (64,000 + 16 * 512 * 236) = 3,994,624
        (2, 1, 512, 237, True),
    ],
)
def test_many_narrow_steps_are_worth_the_compiled_engine(monkeypatch, steps, phases, rows, cols, loads):
    asked = []

    def load(name):
        asked.append(name)
        return SimpleNamespace(AVAILABLE=False)

    monkeypatch.delitem(sys.modules, blocks.COMPILED_MODULE, raising=False)
    monkeypatch.setattr(importlib, "import_module", load)
    monkeypatch.setattr(blocks, "compiled_engine_available", lambda: True)
    mode = MatrixUnitMode(fidelity_phases=phases, fp32_dest=True, minus_one_quirk=False)
    left, right = np.zeros((rows, 16 * steps), np.float32), np.zeros((16 * steps, cols), np.float32)
    blocks.block_product(left, right, mode=mode, half_counts=[1] * steps)
    assert asked == [blocks.COMPILED_MODULE] * loads
