import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import pytest
import ttnn

@pytest.mark.parametrize("device_params", [{"l1_small_size": 16384, "dispatch_core_axis": None}], indirect=True)
def test_params(device, device_params, reset_seeds):
    assert ttnn.GetDefaultDevice() is device
    assert device.machine.l1_small_bytes == 16384
    assert device.values == "fast"

@pytest.mark.parametrize("mesh_device", [1, (1, 1), 2], indirect=True)
def test_mesh(mesh_device):
    assert mesh_device.get_num_devices() == 1

@pytest.mark.requires_grid_size((9, 9))
def test_grid(device):
    raise AssertionError

def test_refused(device):
    ttnn.relu(1)

def test_error(expect_error, silicon_arch_wormhole_b0):
    with expect_error(RuntimeError, "fits|loaded"):
        raise RuntimeError("it fits")
"""

OF_A_MODULE = """
import pytest
import ttnn

pytestmark = pytest.mark.use_module_device({"l1_small_size": 8192})
SEEN = set()

@pytest.mark.parametrize("again", [0, 1])
def test_module(device, again):
    SEEN.add(device)
    assert device.machine.l1_small_bytes == 8192
    assert len(SEEN) == 1
"""


def test_tests_of_ttnn_find_their_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "test_module.py").write_text(OF_A_MODULE)
    (tmp_path / "tests" / "ops").mkdir(parents=True)
    (tmp_path / "tests" / "ops" / "__init__.py").touch()
    (tmp_path / "tests" / "ops" / "test_shadowed.py").touch()
    flags = ["--continue-on-collection-errors", "--values", "fast", "-q", "--strict-markers", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "ttsim", "pytest", *flags, "test_it.py", "test_module.py", "tests"]
    environment = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert "1 failed, 6 passed, 2 skipped, 1 error" in done.stdout, done.stdout + done.stderr
    assert ">       ttnn.relu(1)\nE       ttsim.ArgumentTypeError: ttnn.relu(): incompatible" in done.stdout
    assert "call.py" not in done.stdout
    assert f"{tmp_path / 'tests' / 'ops'}/ is not imported, because 'ops' is a package of ttsim" in done.stdout
