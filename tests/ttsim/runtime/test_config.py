import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ttsim

ROOT = Path(__file__).resolve().parents[3]


def test_a_field_is_set_for_a_block() -> None:
    copied = ttsim.Config(ttsim.CONFIG)
    with ttsim.manage_config("report_name", "mine"):
        assert ttsim.CONFIG.report_name == "mine"
        assert ttsim.CONFIG.report_path == Path("generated/ttnn/reports/mine")
    assert copied == ttsim.CONFIG
    with pytest.raises(ValueError, match="Unknown configuration key: colour"), ttsim.manage_config("colour", 1):
        pass


def test_files_and_dictionaries(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    ttsim.save_config_to_json_file(path)
    saved = json.loads(path.read_text())
    assert saved["comparison_mode_pcc"] == 0.9999
    path.write_text(json.dumps(saved | {"of_another_version": 1}))
    ttsim.load_config_from_json_file(path)
    with pytest.raises(ValueError, match="Unknown configuration key: of_another_version"):
        ttsim.load_config_from_dictionary({"of_another_version": 1})
    with pytest.raises(ttsim.ArgumentTypeError, match="config must be a Mapping, not 'of_another_version'"):
        ttsim.load_config_from_dictionary("of_another_version")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("overrides", "told"), [('{"enable_logging": true}', "True"), ("{", "TTNN_CONFIG_OVERRIDES: no JSON")]
)
def test_the_environment_overrides(overrides: str, told: str) -> None:
    command = [sys.executable, "-c", "import ttsim; print(ttsim.CONFIG.enable_logging)"]
    environment = os.environ | {"TTNN_CONFIG_OVERRIDES": overrides, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert told in done.stdout + done.stderr
