import pytest

import ttsim


def test_a_mesh_of_one_is_a_device() -> None:
    with ttsim.open_mesh_device(ttsim.MeshShape(1, 1), l1_small_size=8192) as device:
        assert device.get_num_devices() == 1
        assert (device.shape, device.get_device_ids(), device.get_submeshes()) == (ttsim.MeshShape(1, 1), [0], [])
        assert device.machine.l1_small_bytes == 8192
    ttsim.close_mesh_device(device)
    assert repr(ttsim.MeshShape((1, 2))) == "MeshShape([1, 2])"
    assert ttsim.MeshShape(2, 4).mesh_size() == 8
    assert ttsim.SystemMeshDescriptor().shape() == ttsim.MeshShape(1, 1)


def test_a_mesh_of_one_has_one_part() -> None:
    x = ttsim.zeros((2, 3))
    assert ttsim.from_host_shards([x], ttsim.MeshShape(1, 1)) is x
    with ttsim.open_device() as device:
        there = x.to(device)
        host = ttsim.allocate_tensor_on_host(there.spec, device)
        ttsim.copy_device_to_host_tensor(there, host)
        mapper = ttsim.ShardTensor2dMesh(device, (1, 1), (None, 0))
        assert ttsim.from_torch(x.to_numpy(), mesh_mapper=mapper).shape == [2, 3]


def test_more_than_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not MeshShape\(\[1, 2\]\) of 1 parts"):
        ttsim.from_host_shards([ttsim.zeros((2, 3))], ttsim.MeshShape(1, 2))
    with pytest.raises(ValueError, match=r"ttsim simulates one device, not MeshShape\(\[1, 2\]\)"):
        ttsim.open_mesh_device(ttsim.MeshShape(1, 2))
    with pytest.raises(ValueError, match="no links"):
        ttsim.set_fabric_config(ttsim.FabricConfig.FABRIC_1D)
