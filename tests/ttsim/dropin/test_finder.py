import importlib
import sys
from types import ModuleType

import pytest

import ttsim
from ttsim.dropin.finder import Face, ttnn_is_ttsim


def test_ttnn_is_ttsim_inside_and_nothing_outside() -> None:
    with ttnn_is_ttsim():
        ttnn = importlib.import_module("ttnn")
        assert ttnn.conv_transpose2d is ttsim.conv_transpose2d
        assert {"conv2d", "bfloat16"} <= set(dir(ttnn))
    assert "ttnn" not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("ttnn")


def test_names_are_found_in_the_modules_where_the_real_library_has_them() -> None:
    with ttnn_is_ttsim():
        assert importlib.import_module("ttnn.operations.conv2d").Conv2dConfig is ttsim.Conv2dConfig
        assert importlib.import_module("ttnn.device").is_blackhole is ttsim.device.is_blackhole
        assert importlib.import_module("ttnn.graph").begin_graph_capture is ttsim.graph.begin_graph_capture
        assert importlib.import_module("ttnn")._ttnn.multi_device.MeshDevice is ttsim.MeshDevice


def test_a_module_that_ttsim_has_nothing_of_is_told() -> None:
    with (
        ttnn_is_ttsim(),
        pytest.raises(ModuleNotFoundError, match=r"nothing of the module ttnn\.nonsense; it has .*graph"),
    ):
        importlib.import_module("ttnn.nonsense")


def test_what_is_assigned_is_assigned_to_ttsim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ttsim, "TILE_SIZE", 32)
    with ttnn_is_ttsim():
        ttnn = importlib.import_module("ttnn")
        ttnn.TILE_SIZE = 16
        assert ttsim.TILE_SIZE == ttnn.TILE_SIZE == 16


def test_a_missing_name_says_what_a_script_can_do() -> None:
    with ttnn_is_ttsim(), pytest.raises(AttributeError, match=r"softmax.* to_torch|softmax.*ttsim\.to_torch"):
        importlib.import_module("ttnn").softmax  # noqa: B018


def test_a_real_library_that_is_loaded_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ModuleType("ttnn")
    monkeypatch.setitem(sys.modules, "ttnn", real)
    with pytest.raises(ImportError, match="loaded already"), ttnn_is_ttsim():
        pass
    assert sys.modules["ttnn"] is real
    assert not isinstance(real, Face)
