import pytest

import ttsim


def test_the_system_is_the_default_device_or_else_the_named_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTSIM_DEVICE", "blackhole_p150")
    assert ttsim.get_arch_name() == "blackhole"
    assert ttsim.is_blackhole()
    assert not ttsim.is_wormhole_b0()
    assert ttsim.get_num_devices() == 1
    assert ttsim.get_device_ids() == [0]
    assert ttsim.cluster.get_cluster_type() is ttsim.ClusterType.P150
    with ttsim.open_device(spec="wormhole_n150") as device:
        ttsim.SetDefaultDevice(device)
        assert ttsim.get_arch_name() == "wormhole_b0"
        assert ttsim.cluster.get_cluster_type() is ttsim.ClusterType.N150
        ttsim.SetDefaultDevice(None)
        ttsim.ReadDeviceProfiler(device)
