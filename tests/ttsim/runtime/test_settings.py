"""ttnn's configuration object, and what the environment and flags choose."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ttsim

ROOT = Path(__file__).resolve().parents[3]
QUERY = {"in_channels": 32, "out_channels": 32, "batch_size": 1, "kernel_size": (2, 2), "input_height": 8}
QUERY |= {"input_width": 8, "input_tensor": ttsim.TensorDescription((1, 1, 64, 32))}


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    for name in ("TTSIM_DEVICE", "TTSIM_VALUES", "TTSIM_STRICT"):
        monkeypatch.delenv(name, raising=False)


def test_a_field_is_set_for_a_block():
    copied = ttsim.Config(ttsim.CONFIG)
    with ttsim.manage_config("report_name", "mine"):
        assert ttsim.CONFIG.report_name == "mine"
        assert ttsim.CONFIG.report_path == Path("generated/ttnn/reports/mine")
    assert copied == ttsim.CONFIG
    with pytest.raises(ValueError, match="Unknown configuration key: colour"), ttsim.manage_config("colour", 1):
        pass


def test_files_and_dictionaries(tmp_path):
    path, unknown = tmp_path / "config.json", {"of_another_version": 1}
    ttsim.save_config_to_json_file(path)
    saved = json.loads(path.read_text())
    assert (saved["comparison_mode_pcc"], type(saved["tmp_dir"])) == (0.9999, str)
    assert [name for name, value in saved.items() if value is True] == ["enable_fast_runtime_mode"]
    path.write_text(json.dumps(saved | unknown))
    ttsim.load_config_from_json_file(path)
    with pytest.raises(ValueError, match="Unknown configuration key: of_another_version"):
        ttsim.load_config_from_dictionary(unknown)
    with pytest.raises(ttsim.ArgumentTypeError, match="config must be a Mapping, not 'of_another_version'"):
        ttsim.load_config_from_dictionary("of_another_version")


def test_the_environment_overrides():
    command = [sys.executable, "-c", "import ttsim; print(ttsim.CONFIG.enable_logging)"]
    for overrides, text in (('{"enable_logging": true}', "True"), ("{", "TTNN_CONFIG_OVERRIDES: no JSON")):
        environment = os.environ | {"TTNN_CONFIG_OVERRIDES": overrides, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert text in done.stdout + done.stderr


def test_the_environment_chooses_device_values_and_strict(monkeypatch):
    def opened(function=ttsim.open_device, **given):
        with function(**given) as device:
            return device.spec.name, device.values, device.strict

    assert opened() == ("wormhole_n150", "exact", True)
    for name, value in (("DEVICE", "blackhole_p150"), ("VALUES", "fast"), ("STRICT", "0")):
        monkeypatch.setenv(f"TTSIM_{name}", value)
    assert opened(ttsim.CreateDevice) == ("blackhole_p150", "fast", False)
    assert opened(spec="wormhole_n150", values="off", strict=True) == ("wormhole_n150", "off", True)


@pytest.mark.parametrize("name", ["TTSIM_VALUES", "TTSIM_STRICT", "TTSIM_DEVICE"])
def test_a_wrong_choice_is_named(monkeypatch, name):
    monkeypatch.setenv(name, "wormhole")
    text = "wormhole_n150" if name == "TTSIM_DEVICE" else f"{name} must be one of .*, not 'wormhole'"
    with pytest.raises(ValueError, match=text):
        ttsim.open_device()


def test_a_query_asks_the_device_that_the_environment_names(monkeypatch):
    usual = ttsim.query_op_constraints(**QUERY)
    monkeypatch.setenv("TTSIM_DEVICE", "blackhole_p150")
    asked = ttsim.query_op_constraints(**QUERY)
    assert usual == ttsim.query_op_constraints(spec="wormhole_n150", **QUERY)
    assert asked == ttsim.query_op_constraints(spec="blackhole_p150", **QUERY) != usual
