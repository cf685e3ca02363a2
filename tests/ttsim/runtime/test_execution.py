"""Plans on a device: weights that come again are prepared once, which nobody sees."""

import numpy as np
import pytest

import ttsim
from ops.programs.conv2d import weights as prepared
from ttsim.runtime.tensor import Tensor

KERNEL = (32, 16, 2, 2)


def numbers(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def convolve(device, weight):
    x = Tensor(numbers((1, 1, 64, 32), 0), ttsim.bfloat16).to(device)
    with ttsim.profile(device) as seen:
        output = ttsim.conv_transpose2d(
            input_tensor=x, weight_tensor=weight, device=device, in_channels=32, out_channels=16, batch_size=1,
            input_height=8, input_width=8, kernel_size=(2, 2), stride=(2, 2),
            conv_config=ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat8_b),
        )  # fmt: skip
    return output.to_numpy(), seen.report().to_json()


@pytest.fixture
def preparations(monkeypatch):
    counted = []
    real = prepared.prepare_weights
    monkeypatch.setattr(prepared, "prepare_weights", lambda *given: counted.append(1) or real(*given))
    return counted


@pytest.mark.parametrize("values", ["exact", "fast"])
def test_weights_that_come_again_are_prepared_once(preparations, values):
    outcomes = []
    for _ in range(2):
        with ttsim.open_device(l1_small_size=32768, values=values) as device:
            outcomes += [convolve(device, Tensor(numbers(KERNEL, 1), ttsim.bfloat16)) for _ in range(2)]
    assert len(preparations) == 2
    with ttsim.open_device(l1_small_size=32768, values=values) as device:
        other, report = [convolve(device, Tensor(numbers(KERNEL, seed), ttsim.bfloat16)) for seed in (2, 1)]
    first, second = outcomes[:2]
    assert all(np.array_equal(first[0], values) for values, _ in (*outcomes, report))
    assert not np.array_equal(first[0], other[0])
    assert [text for _, text in outcomes] == [first[1], second[1], first[1], second[1]]
    assert second[1] == report[1]  # whether its weights were prepared before or not


def test_weights_that_are_written_to_are_prepared_anew(preparations):
    weight = Tensor(numbers(KERNEL, 1), ttsim.bfloat16)
    with ttsim.open_device(l1_small_size=32768, values="fast") as device:
        first, _ = convolve(device, weight)
        ttsim.copy_device_to_host_tensor(Tensor(-numbers(KERNEL, 1), ttsim.bfloat16).to(device), weight)
        other, _ = convolve(device, weight)
    assert len(preparations) == 2
    assert np.array_equal(other, -first)


def test_a_closed_device_keeps_nothing():
    device = ttsim.open_device(l1_small_size=32768, values="fast")
    convolve(device, Tensor(numbers(KERNEL, 1), ttsim.bfloat16))
    assert device.kept.bytes > 0
    device.close()
    assert device.kept.bytes == 0
