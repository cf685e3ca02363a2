"""Runs pytest on tests that import ttnn."""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from device.errors import ArgumentError

PLUGIN = "ttsim.pytest_plugin"


def run_tests(arguments: Sequence[str]) -> int:
    """Runs pytest with the plugin; returns its exit code; raises ArgumentError if pytest is not installed."""
    if find_spec("pytest") is None:
        raise ArgumentError("pytest: it is not installed; install ttsim[test]")
    return int(import_module("pytest").main(["-p", PLUGIN, *arguments]))
