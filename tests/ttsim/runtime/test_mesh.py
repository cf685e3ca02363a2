"""Meshes of several devices: parts of tensors, the same plans and times on every device, and what is refused."""

import numpy as np
import pytest

import ttsim
from device.errors import DeviceError

SHAPE = ttsim.MeshShape(1, 2)
CONV = {
    "in_channels": 32, "out_channels": 16, "batch_size": 1, "input_height": 8, "input_width": 8, "kernel_size": (2, 2),
    "stride": (2, 2),
}  # fmt: skip


@pytest.fixture
def mesh(monkeypatch):
    monkeypatch.setenv("TTSIM_DEVICE", "wormhole_n300")
    with ttsim.open_mesh_device(SHAPE, l1_small_size=32768) as opened:
        yield opened


def numbers(*shape):
    return np.random.default_rng(0).integers(-8, 8, shape).astype(np.float32)


def on(mesh, array, dim=0, **place):
    return ttsim.from_torch(array, ttsim.bfloat16, device=mesh, mesh_mapper=ttsim.ShardTensorToMesh(mesh, dim), **place)


def joined(tensor, mesh, dim=0):
    return ttsim.aggregate_tensor(tensor, ttsim.ConcatMeshToTensor(mesh, dim)).to_numpy()


def test_the_system_of_an_n300_has_two_devices(mesh):
    assert repr(mesh) == "MeshDevice(1x2 grid, 2 devices: 2 x wormhole_n300, 8x8 cores)"
    assert (ttsim.get_num_devices(), mesh.get_num_devices(), mesh.get_device_ids()) == (2, 2, [0, 1])
    assert mesh.shape == ttsim.SystemMeshDescriptor().shape() == SHAPE
    assert mesh.get_device_id(ttsim.MeshCoordinate(0, 1)) == 1
    assert list(ttsim.MeshCoordinateRange(SHAPE)) == [ttsim.MeshCoordinate(0, 0), ttsim.MeshCoordinate(0, 1)]
    assert mesh.create_submesh(SHAPE) is mesh
    mesh.reshape(ttsim.MeshShape(2, 1))
    assert mesh.shape == ttsim.MeshShape(2, 1)
    mesh.close()
    assert all(device.machine.closed for device in mesh.devices)


def test_each_device_computes_its_own_part_by_one_plan_in_the_time_of_one(mesh):
    image, weight = numbers(2, 1, 64, 32), ttsim.from_numpy(numbers(32, 16, 2, 2), dtype=ttsim.bfloat16)
    with ttsim.profile(mesh) as profiled:
        output = ttsim.conv_transpose2d(input_tensor=on(mesh, image), weight_tensor=weight, device=mesh, **CONV)
    with ttsim.open_device(spec="wormhole_n300", l1_small_size=32768) as single:
        outputs = []
        with ttsim.profile(single) as alone:
            for part in image:
                x = ttsim.from_numpy(part[None], dtype=ttsim.bfloat16, device=single)
                outputs.append(ttsim.conv_transpose2d(input_tensor=x, weight_tensor=weight, device=single, **CONV))
        expected = np.concatenate([tensor.to_numpy() for tensor in outputs])
    assert np.array_equal(joined(output, mesh), expected)
    parts = ttsim.get_device_tensors(output)
    assert [part.shape for part in parts] == [output.shape] * 2
    assert parts[0].buffer_address() == parts[1].buffer_address()
    assert profiled.report().cycles == alone.report().calls[0].total.cycles
    assert str(profiled.report()).startswith("2 x wormhole_n300: ")
    live = [len(device.machine.memory.live()) for device in mesh.devices]
    output.deallocate()
    assert [len(device.machine.memory.live()) for device in mesh.devices] == [count - 1 for count in live]
    assert not any(part.is_allocated() for part in parts)


def test_parts_go_by_rows_and_columns_of_devices_and_come_back(mesh):
    array = numbers(4, 6)
    for mapper, parts in (
        (ttsim.ReplicateTensorToMesh(mesh), [array, array]),
        (ttsim.ShardTensorToMesh(mesh, 0), [array[:2], array[2:]]),
        (ttsim.ShardTensorToMesh(mesh, -1), [array[:, :3], array[:, 3:]]),
        (ttsim.ShardTensor2dMesh(mesh, (1, 2), (0, 1)), [array[:, :3], array[:, 3:]]),
        (ttsim.ShardTensor2dMesh(mesh, (2, 1), (0, None)), [array[:2], array[2:]]),
        (ttsim.create_mesh_mapper(mesh, ttsim.MeshMapperConfig(row_dim=None, col_dim=0)), [array[:2], array[2:]]),
    ):
        tensor = ttsim.from_torch(array, ttsim.bfloat16, mesh_mapper=mapper)
        for each in (tensor, tensor.to(mesh), tensor.to(mesh).cpu()):
            assert [part.to_numpy().tolist() for part in ttsim.get_device_tensors(each)] == [
                part.tolist() for part in parts
            ]
    composer = ttsim.ConcatMesh2dToTensor(mesh, (1, 2), (0, 1))
    assert np.array_equal(ttsim.aggregate_tensor(on(mesh, array, 1), composer).to_numpy(), array)
    assert joined(ttsim.from_torch(array, ttsim.bfloat16, device=mesh), mesh).shape == (8, 6)  # a copy on each
    with ttsim.distribute(ttsim.ShardTensorToMesh(mesh, 0)):
        assert ttsim.from_torch(array).shape == [2, 6]


def test_conversions_views_copies_and_traces_reach_every_device(mesh):
    array = numbers(2, 32, 64)
    tensor = on(mesh, array, layout=ttsim.TILE_LAYOUT)
    assert np.array_equal(joined(tensor.reshape(1, 64, 32), mesh), array.reshape(2, 64, 32))
    for other in (
        ttsim.typecast(tensor, ttsim.float32), tensor.to(ttsim.ROW_MAJOR_LAYOUT), tensor.cpu(),
        ttsim.to_memory_config(tensor, ttsim.L1_MEMORY_CONFIG), ttsim.reshape(tensor, (1, 32, 64)),
    ):  # fmt: skip
        assert np.array_equal(joined(other, mesh), array)
    trace = ttsim.begin_trace_capture(mesh)
    output = ttsim.neg(tensor)
    ttsim.end_trace_capture(mesh, trace)
    ttsim.copy_host_to_device_tensor(on(mesh, 2 * array, layout=ttsim.TILE_LAYOUT).cpu(), tensor)
    ttsim.execute_trace(mesh, trace)
    assert np.array_equal(joined(output, mesh), -2 * array)
    ttsim.release_trace(mesh, trace)
    host = ttsim.allocate_tensor_on_host(tensor.spec, mesh)
    ttsim.copy_device_to_host_tensor(output, host)
    assert np.array_equal(joined(host, mesh), -2 * array)
    assert ttsim.combine_device_tensors(tensors=ttsim.get_device_tensors(output)).buffer is output.buffer
    shards = ttsim.from_host_shards(ttsim.get_device_tensors(host), SHAPE)
    assert np.array_equal(joined(shards, mesh), -2 * array)


def test_what_a_mesh_does_not_do_is_refused_in_a_sentence(mesh):
    tensor, part = on(mesh, numbers(2, 32)), numbers(3, 4)
    for call, error, text in (
        (tensor.to_numpy, DeviceError, r"Can't convert a tensor distributed on MeshShape\(\[1, 2\]\) mesh"),
        (
            lambda: ttsim.relu(ttsim.get_device_tensors(tensor.to(ttsim.TILE_LAYOUT))[0]),
            DeviceError,
            "no part for each",
        ),
        (lambda: on(mesh, part), DeviceError, r"Shard shape mismatch: expected Shape\(\[2, 4\]\) but got"),
        (lambda: on(mesh, part[:1]), ttsim.NotSimulatedError, "1 parts for 2 devices"),
        (lambda: on(mesh, part, 2), ttsim.ArgumentError, r"dim 2 is no axis of a tensor of shape \[3, 4\]"),
        (
            lambda: ttsim.from_torch(part, mesh_mapper=mesh),
            ttsim.ArgumentTypeError,
            "mesh_mapper must be a TensorToMesh",
        ),
        (lambda: ttsim.ShardTensor2dMesh(mesh, (2, 2), (0, 1)), DeviceError, "size of the supplied mesh shape"),
        (lambda: ttsim.ShardTensor2dMesh(mesh, (1, 1), (0, 1)), ttsim.NotSimulatedError, "1 of 2 devices"),
        (lambda: ttsim.ShardTensorToMesh(mesh, "0"), ttsim.ArgumentTypeError, "dim"),
        (lambda: ttsim.create_mesh_composer(mesh, ttsim.MeshComposerConfig([0])), DeviceError, "number of dimensions"),
        (lambda: mesh.create_submesh(ttsim.MeshShape(1, 1)), ttsim.NotSimulatedError, "open a mesh of this shape"),
        (lambda: mesh.get_device_id(ttsim.MeshCoordinate(1, 0)), ttsim.ArgumentError, "is no place of a mesh"),
        (lambda: ttsim.GetPCIeDeviceID(2), ttsim.ArgumentError, "the system has no device 2"),
        (lambda: ttsim.command_queue(-1).__enter__(), ttsim.ArgumentError, "at least 0"),
    ):
        with pytest.raises(error, match=text):
            call()
    with ttsim.open_device() as single, pytest.raises(DeviceError, match="a tensor of 2 parts can not be on a mesh"):
        tensor.cpu().to(single)
    for name in ("all_gather", "reduce_scatter", "all_reduce", "point_to_point", "mesh_partition"):
        with pytest.raises(ttsim.NotSimulatedError, match=f"^{name}: ttsim does not simulate it"):
            getattr(ttsim, name)(tensor)
    with pytest.raises(ttsim.NotSimulatedError, match=r"^experimental\.all_gather_async: ttsim does not simulate it"):
        ttsim.experimental.all_gather_async(tensor)
