"""Devices, meshes of one device and the system: what they say, under ttnn's names, old and new."""

from dataclasses import replace

import pytest

import ttsim
from device.errors import DeviceClosedError, SpecError
from ttsim.runtime.session import current, remember

Arch, ClusterType = ttsim.Arch, ttsim.ClusterType


def test_what_a_device_says():
    with ttsim.open_device(device_id=3, l1_small_size=32768, spec="wormhole_n150") as device:
        assert (device.id(), device.arch(), device.get_num_devices()) == (3, Arch.WORMHOLE_B0, 1)
        assert (ttsim.is_wormhole_b0(device), ttsim.is_blackhole(device)) == (True, False)
        assert repr(device.core_grid) == "ttnn.CoreGrid(x=8, y=8)"
        assert device.compute_with_storage_grid_size() == ttsim.CoreCoord(8, 8)
        assert device.num_program_cache_entries() == 0
        device.enable_program_cache()
        device.disable_and_clear_program_cache()
        ttsim.synchronize_device(device)
        assert repr(device) == "MeshDevice(1x1 grid, 1 devices: wormhole_n150, 8x8 cores)"
        table = device._repr_html_()
        assert table.startswith('<table><caption style="text-align: left">wormhole_n150</caption>')
        assert ">clock</td>" in table
        assert ">1 GHz</td>" in table
    with pytest.raises(DeviceClosedError):
        device.machine.allocate(ttsim.Tensor([1.0]).spec.buffer(device.spec))


def test_a_device_file_has_its_family_and_is_checked_for_programs(tmp_path):
    file = tmp_path / "nextgen.toml"
    file.write_text('extends = "wormhole_n150"\nname = "nextgen"\narch = "nextgen"\n[grid]\nrows = 7\n')
    with ttsim.open_device(spec=file) as device:
        assert (device.spec.arch, device.arch(), device.core_grid.y) == ("nextgen", Arch.WORMHOLE_B0, 7)
        assert ttsim.is_wormhole_b0(device)
    with ttsim.open_device(spec=device.spec.replace(family="quasar")) as device:
        assert device.arch() is Arch.QUASAR
    family = r"^nextgen: family must be one of wormhole_b0, blackhole, quasar, not 'blackhol', "
    with pytest.raises(SpecError, match=family):
        device.spec.replace(family="blackhol")
    file.write_text('extends = "wormhole_n150"\n[conv_costs]\nstart_cycle = 3\n')
    with pytest.raises(SpecError, match=r"unknown key 'conv_costs\.start_cycle', did you mean 'start_cycles'\?"):
        ttsim.open_device(spec=file)


def test_older_names():
    device = ttsim.CreateDevice(0, 1, 16384)
    assert device.machine.l1_small_bytes == 16384
    assert (ttsim.GetNumPCIeDevices(), ttsim.GetNumAvailableDevices(), ttsim.GetPCIeDeviceID(0)) == (1, 1, 0)
    ttsim.close_device(device)
    ttsim.CloseDevice(device)
    with ttsim.manage_device(device_id=1) as managed:
        assert managed.id() == 1
    assert managed.machine.closed
    with pytest.raises(ValueError, match="values must be one of exact, fast, off, not 'quick'"):
        ttsim.open_device(values="quick")
    assert "wormhole_n150" in ttsim.device_names()


def test_a_mesh_of_one_is_a_device_of_one_part():
    with ttsim.open_mesh_device(ttsim.MeshShape(1, 1), l1_small_size=8192) as device:
        assert (device.get_num_devices(), device.machine.l1_small_bytes) == (1, 8192)
        assert (device.shape, device.get_device_ids(), device.get_submeshes()) == (ttsim.MeshShape(1, 1), [0], [])
        x = ttsim.zeros((2, 3))
        there = x.to(device)
        assert ttsim.from_host_shards([x], ttsim.MeshShape(1, 1)) is x
        ttsim.copy_device_to_host_tensor(there, ttsim.allocate_tensor_on_host(there.spec, device))
        mapper = ttsim.ShardTensor2dMesh(device, (1, 1), (None, 0))
        assert ttsim.from_torch(x.to_numpy(), mesh_mapper=mapper).shape == [2, 3]
    ttsim.close_mesh_device(device)
    assert repr(ttsim.MeshShape((1, 2))) == "MeshShape([1, 2])"
    assert ttsim.MeshShape(2, 4).mesh_size() == 8
    assert ttsim.SystemMeshDescriptor().shape() == ttsim.MeshShape(1, 1)


def test_links_can_be_set_as_on_one_device_and_change_nothing():
    for config in (ttsim.FabricConfig.FABRIC_1D, ttsim.FabricConfig.DISABLED):
        ttsim.set_fabric_config(config)
    with pytest.raises(ttsim.ArgumentTypeError, match=r"config must be a FabricConfig"):
        ttsim.set_fabric_config("FABRIC_1D")


def test_more_than_one_is_refused():
    two = ttsim.MeshShape(1, 2)
    for call, text in (
        (lambda: ttsim.from_host_shards([ttsim.zeros((2, 3))], two), "needs 2 parts on the host, not 1 parts"),
        (lambda: ttsim.open_mesh_device(two), "is not within the system, which has 1 device; TTSIM"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


def test_the_system_is_the_default_device_or_the_last_open_one_or_the_named_one(monkeypatch):
    def system():
        return ttsim.get_arch_name(), ttsim.is_blackhole(), ttsim.is_wormhole_b0(), ttsim.cluster.get_cluster_type()

    monkeypatch.setenv("TTSIM_DEVICE", "blackhole_p100")
    remember(replace(current(), opened=()))  # devices that other tests left open
    assert system()[:3] == ("blackhole", True, False)
    assert (ttsim.get_num_devices(), ttsim.get_device_ids()) == (1, [0])
    with ttsim.open_device(spec="blackhole_p150") as default:
        assert system() == ("blackhole", True, False, ClusterType.P150)
        with ttsim.open_device(spec="wormhole_n300") as device:
            assert system() == ("wormhole_b0", False, True, ClusterType.N300)
            assert ttsim.GetDefaultDevice() is None
            ttsim.SetDefaultDevice(default)
            assert ttsim.GetDefaultDevice() is default
            assert system()[3] is ClusterType.P150
            ttsim.SetDefaultDevice(None)
            ttsim.ReadDeviceProfiler(device)
        assert system()[3] is ClusterType.P150
    forgotten = ttsim.open_device(spec="wormhole_n150")
    del forgotten
    assert system()[0] == "blackhole"
    for cluster, kind in (("T3K", ClusterType.T3K), ("lab", ClusterType.CUSTOM)):
        with ttsim.open_device(spec=ttsim.load_spec("wormhole_n150").replace(cluster=cluster, name="my_p150")):
            assert system()[3] is kind
