from dataclasses import replace

import pytest

import ttsim
from ttsim.runtime.session import current, remember


def test_the_system_is_the_device_that_was_opened_last_and_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TTSIM_DEVICE", raising=False)
    remember(replace(current(), opened=()))  # devices that other tests left open
    with ttsim.open_device(spec="blackhole_p150"):
        assert (ttsim.get_arch_name(), ttsim.is_blackhole(), ttsim.is_wormhole_b0()) == ("blackhole", True, False)
        with ttsim.open_device(spec="wormhole_n300"):
            assert ttsim.cluster.get_cluster_type() is ttsim.ClusterType.N300
            assert ttsim.get_arch_name() == "wormhole_b0"
        assert ttsim.cluster.get_cluster_type() is ttsim.ClusterType.P150
    forgotten = ttsim.open_device(spec="blackhole_p150")
    del forgotten
    assert ttsim.get_arch_name() == "wormhole_b0"


def test_the_cluster_is_a_field_of_the_device() -> None:
    spec = ttsim.load_spec("wormhole_n150")
    for cluster, kind in (("T3K", ttsim.ClusterType.T3K), ("lab", ttsim.ClusterType.CUSTOM)):
        with ttsim.open_device(spec=spec.replace(cluster=cluster, name="my_p150")):
            assert ttsim.cluster.get_cluster_type() is kind


def test_the_system_is_the_default_device_or_else_the_named_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTSIM_DEVICE", "blackhole_p150")
    remember(replace(current(), opened=()))  # devices that other tests left open
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
