"""What numpy would take for a product, by which the compiled engine is loaded; what products give is in test_exact."""

import numpy as np
import pytest

from device.matrix_unit import blocks
from device.matrix_unit.exact import MatrixUnitMode


@pytest.mark.parametrize(
    ("steps", "phases", "rows", "cols", "microseconds"),
    [
        (50, 1, 8, 2, 50 * 160 + 50 * 16 * 8 * 2 * 0.0025),
        (50, 2, 8, 2, 100 * 160 + 100 * 16 * 8 * 2 * 0.0025),
        (2, 1, 512, 250, 2 * 160 + 2 * 16 * 512 * 250 * 0.0025),
    ],
)
def test_narrow_steps_take_time_by_themselves(monkeypatch, steps, phases, rows, cols, microseconds):
    asked = []
    monkeypatch.setattr(blocks, "worth_loading", lambda module, seconds: asked.append((module, seconds)))
    mode = MatrixUnitMode(fidelity_phases=phases, fp32_dest=True, minus_one_quirk=False)
    left, right = np.zeros((rows, 16 * steps), np.float32), np.zeros((16 * steps, cols), np.float32)
    blocks.block_product(left, right, mode=mode, half_counts=[1] * steps)
    assert asked == [("device.matrix_unit.compiled", pytest.approx(microseconds * 1e-6))]
