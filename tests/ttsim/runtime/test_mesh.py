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


def test_more_than_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ttsim simulates one device, not MeshShape\(\[1, 2\]\)"):
        ttsim.open_mesh_device(ttsim.MeshShape(1, 2))
    with pytest.raises(ValueError, match="no links"):
        ttsim.set_fabric_config(ttsim.FabricConfig.FABRIC_1D)
