from pathlib import Path

import pytest

import ttsim
from device.errors import DeviceClosedError, SpecError
from ttsim.runtime.system import is_blackhole, is_wormhole_b0


def test_what_a_device_says() -> None:
    with ttsim.open_device(device_id=3, l1_small_size=32768, spec="wormhole_n150") as device:
        assert device.id() == 3
        assert device.arch() is ttsim.Arch.WORMHOLE_B0
        assert is_wormhole_b0(device)
        assert not is_blackhole(device)
        assert repr(device.core_grid) == "ttnn.CoreGrid(x=8, y=8)"
        assert device.compute_with_storage_grid_size() == ttsim.CoreCoord(8, 8)
        assert device.get_num_devices() == 1
        assert device.num_program_cache_entries() == 0
        device.enable_program_cache()
        device.disable_and_clear_program_cache()
        ttsim.synchronize_device(device)
        assert repr(device) == "MeshDevice(1x1 grid, 1 devices: wormhole_n150, 8x8 cores)"
    with pytest.raises(DeviceClosedError):
        device.machine.allocate(ttsim.Tensor([1.0]).spec.buffer(device.spec))


def test_the_environment_names_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TTSIM_DEVICE", raising=False)
    assert ttsim.open_device().spec.name == "wormhole_n150"
    monkeypatch.setenv("TTSIM_DEVICE", "blackhole_p150")
    assert ttsim.open_device().arch() is ttsim.Arch.BLACKHOLE
    assert ttsim.open_device(spec="wormhole_n150").arch() is ttsim.Arch.WORMHOLE_B0
    monkeypatch.setenv("TTSIM_DEVICE", "wormhole")
    with pytest.raises(SpecError, match="wormhole_n150"):
        ttsim.open_device()


def test_an_architecture_of_its_own_behaves_as_its_family(tmp_path: Path) -> None:
    file = tmp_path / "nextgen.toml"
    file.write_text('extends = "wormhole_n150"\nname = "nextgen"\narch = "nextgen"\n[grid]\nrows = 7\n')
    with ttsim.open_device(spec=file) as device:
        assert device.spec.arch == "nextgen"
        assert device.arch() is ttsim.Arch.WORMHOLE_B0
        assert is_wormhole_b0(device)
        assert device.core_grid.y == 7
    with ttsim.open_device(spec=device.spec.replace(family="quasar")) as device:
        assert device.arch() is ttsim.Arch.QUASAR
    with pytest.raises(
        SpecError, match=r"^nextgen: family must be one of wormhole_b0, blackhole, quasar, not 'blackhol', "
    ):
        device.spec.replace(family="blackhol")


def test_older_names() -> None:
    device = ttsim.CreateDevice(0, 1, 16384)
    assert device.machine.l1_small_bytes == 16384
    assert ttsim.GetDefaultDevice() is None
    ttsim.SetDefaultDevice(device)
    assert ttsim.GetDefaultDevice() is device
    ttsim.SetDefaultDevice(None)
    assert (ttsim.GetNumPCIeDevices(), ttsim.GetNumAvailableDevices(), ttsim.GetPCIeDeviceID(2)) == (1, 1, 2)
    ttsim.close_device(device)
    ttsim.CloseDevice(device)
    with ttsim.manage_device(device_id=1) as managed:
        assert managed.id() == 1
    assert managed.machine.closed


def test_wrong_options() -> None:
    with pytest.raises(ValueError, match="values must be one of exact, fast, off, not 'quick'"):
        ttsim.open_device(values="quick")  # type: ignore[arg-type]
    assert "wormhole_n150" in ttsim.device_names()


def test_a_device_file_is_checked_for_programs_too_when_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('extends = "wormhole_n150"\n[conv_costs]\nstart_cycle = 3\n')
    with pytest.raises(SpecError, match=r"unknown key 'conv_costs\.start_cycle', did you mean 'start_cycles'\?"):
        ttsim.open_device(spec=tmp_path / "mine.toml")
