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
