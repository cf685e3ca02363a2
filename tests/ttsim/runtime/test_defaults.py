from typing import Any

import pytest

import ttsim


def test_the_environment_chooses_values_and_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TTSIM_VALUES", raising=False)
    monkeypatch.delenv("TTSIM_STRICT", raising=False)
    with ttsim.open_device() as device:
        assert (device.values, device.strict) == ("exact", True)
    monkeypatch.setenv("TTSIM_VALUES", "fast")
    monkeypatch.setenv("TTSIM_STRICT", "0")
    with ttsim.CreateDevice(0) as device:
        assert (device.values, device.strict) == ("fast", False)
    with ttsim.open_device(values="off", strict=True) as device:
        assert (device.values, device.strict) == ("off", True)


@pytest.mark.parametrize("name", ["TTSIM_VALUES", "TTSIM_STRICT"])
def test_a_wrong_choice_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "quick")
    with pytest.raises(ValueError, match=f"{name} must be one of .*, not 'quick'"):
        ttsim.open_device()


def test_a_query_asks_the_device_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    call: dict[str, Any] = {"in_channels": 32, "out_channels": 32, "batch_size": 1, "kernel_size": (2, 2)}
    call |= {"input_height": 8, "input_width": 8, "input_tensor": ttsim.TensorDescription((1, 1, 64, 32))}
    monkeypatch.delenv("TTSIM_DEVICE", raising=False)
    usual = ttsim.query_op_constraints(**call)
    monkeypatch.setenv("TTSIM_DEVICE", "blackhole_p150")
    asked = ttsim.query_op_constraints(**call)
    assert usual == ttsim.query_op_constraints(spec="wormhole_n150", **call)
    assert asked == ttsim.query_op_constraints(spec="blackhole_p150", **call) != usual
