"""A pytest plugin for tests written for ttnn: ``pytest -p ttsim.pytest_plugin``, or ``python -m ttsim pytest``.

While it is loaded, ``import ttnn`` imports ttsim, and tests have the fixtures and markers of tt-metal's conftest files.
Definitions in a conftest of the tests take precedence.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from ttsim.dropin.finder import TtnnFinder, install, uninstall
from ttsim.runtime.device import CreateDevice, Device, MeshShape, close_device
from ttsim.runtime.system import GetDefaultDevice, SetDefaultDevice, get_arch_name, get_num_devices, open_mesh_device
from ttsim.runtime.tracebacks import shortened

SEED = 213919
SELECTIONS = (
    *("eager_host_side", "frequent", "frequently_hangs", "models_device_performance_bare_metal"),
    *("models_performance_bare_metal", "models_performance_virtual_machine", "post_commit", "skip_post_commit"),
    *("slow", "t3k_compat"),
)
MARKERS = (
    "requires_grid_size(cores): skip where the grid is smaller than a pair (columns, rows) or a number of cores",
    "use_module_device(device_params): one device for all tests of a module",
    "requires_fast_runtime_mode_off: has no meaning on a simulator",
    "no_reset_default_device: leave the default device as the test sets it",
    *(f"{name}: one of tt-metal's selections" for name in SELECTIONS),
)
# Of the parameters of devices, those of links between devices and of dispatch: there is one device, and no dispatch.
WITHOUT_MEANING = frozenset(
    (
        *("dispatch_core_axis", "dispatch_core_type", "fabric_config", "fabric_manager", "fabric_router_config"),
        *("fabric_tensix_config", "reliability_mode"),
    )
)
FINDER = pytest.StashKey[TtnnFinder]()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Redirects ``import ttnn`` to ttsim before any conftest is imported."""
    early_config.stash[FINDER] = install()


def pytest_configure(config: pytest.Config) -> None:
    """Registers tt-metal's markers."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends the redirection of ``import ttnn``."""
    finder = config.stash.get(FINDER, None)
    if finder is not None:
        uninstall(finder)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Reports refusals of ttsim without the frames inside ttsim, unless ``--full-trace`` is given."""
    whole = call.excinfo
    if whole is None or item.config.getoption("fulltrace"):
        return (yield)
    with shortened(whole.value):
        call.excinfo = pytest.ExceptionInfo.from_exception(whole.value)
        report = yield
    call.excinfo = whole
    return report


@pytest.fixture
def device_params(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Arguments of the device; tests give them by indirect parametrization."""
    return dict(getattr(request, "param", {}))


@pytest.fixture(scope="module")
def _module_device(request: pytest.FixtureRequest) -> Iterator[Device]:
    marker = request.node.get_closest_marker("use_module_device")
    params = {} if marker is None else marker.args[0] if marker.args else marker.kwargs.get("device_params", {})
    with _default_device(params) as opened:
        yield opened


@pytest.fixture
def device(request: pytest.FixtureRequest, device_params: dict[str, Any]) -> Iterator[Device]:
    """A device, which is also the default device; a marker selects one device per module."""
    if request.node.get_closest_marker("use_module_device"):
        if device_params:
            raise ValueError("device_params: a test of a module with use_module_device cannot have its own")
        yield request.getfixturevalue("_module_device")
        return
    with _default_device(device_params) as opened:
        yield opened


@pytest.fixture
def mesh_device(request: pytest.FixtureRequest, device_params: dict[str, Any]) -> Iterator[Device]:
    """A mesh of the requested devices, by default of all; tests that need more devices than there are are skipped."""
    wanted = getattr(request, "param", get_num_devices())
    shape = MeshShape(*wanted) if isinstance(wanted, tuple) else MeshShape(1, wanted)
    if shape.mesh_size() > get_num_devices():
        pytest.skip(f"a mesh of {shape.mesh_size()} devices: the system has {get_num_devices()}")
    opened = open_mesh_device(shape, **_meaningful(device_params))
    yield opened
    close_device(opened)


@contextmanager
def _default_device(params: Mapping[str, Any]) -> Iterator[Device]:
    before = GetDefaultDevice()
    opened = CreateDevice(device_id=0, **_meaningful(params))
    SetDefaultDevice(opened)
    try:
        yield opened
    finally:
        SetDefaultDevice(before)
        close_device(opened)


def _meaningful(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name not in WITHOUT_MEANING}


@pytest.fixture(autouse=True)
def _large_enough(request: pytest.FixtureRequest) -> None:
    marker = request.node.get_closest_marker("requires_grid_size")
    name = next((fixture for fixture in ("mesh_device", "device") if fixture in request.fixturenames), None)
    if marker is None or not marker.args or name is None:
        return
    grid, wanted = request.getfixturevalue(name).compute_with_storage_grid_size(), marker.args[0]
    sides = isinstance(wanted, tuple)
    if not (grid.x >= wanted[0] and grid.y >= wanted[1] if sides else grid.x * grid.y >= int(wanted)):
        pytest.skip(f"requires_grid_size: the test wants {wanted}, the device has {grid.x} x {grid.y} cores")


@pytest.fixture
def reset_seeds() -> None:
    """Sets the seeds of random, numpy and, if it is installed, torch."""
    random.seed(SEED)
    np.random.seed(SEED)
    if find_spec("torch") is not None:
        import_module("torch").manual_seed(SEED)


@pytest.fixture
def function_level_defaults(reset_seeds: None) -> None:
    """The seeds, under an older name."""


@pytest.fixture
def silicon_arch_name() -> str:
    """The architecture of the devices that tests get."""
    return get_arch_name()


def _only_on(wanted: str) -> Any:
    def fixture(silicon_arch_name: str) -> None:
        if silicon_arch_name != wanted:
            pytest.skip(f"the test is for {wanted}, the device is a {silicon_arch_name}")

    return pytest.fixture(fixture, name=f"silicon_arch_{wanted}")


silicon_arch_wormhole_b0, silicon_arch_blackhole = _only_on("wormhole_b0"), _only_on("blackhole")


@pytest.fixture
def is_ci_env() -> bool:
    """False: the tests do not run in tt-metal's CI."""
    return False


@pytest.fixture(scope="session")
def is_ci_v2_env() -> bool:
    """False, like is_ci_env."""
    return False


@pytest.fixture(scope="session")
def model_location_generator() -> Callable[..., str]:
    """Returns the name of a model unchanged: there is no model store."""
    return lambda model_version, *subdirectories, **options: str(model_version)


@pytest.fixture
def expect_error() -> Callable[..., AbstractContextManager[Any]]:
    """A context manager that expects an error of a type whose text matches a pattern."""
    return lambda kind, message: pytest.raises(kind, match=message)
