import gc

import ml_dtypes
import numpy as np
import pytest

import ttsim
from device.cores import first_cores
from device.errors import DeviceError, OutOfMemoryError
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from ttsim.recording.memory_reports import get_memory_view
from ttsim.runtime.device import Device
from ttsim.runtime.storage import StorageType
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.tensors import DataType


@pytest.fixture
def device() -> Device:
    return ttsim.open_device(l1_small_size=32768)


def allocated(device: Device, memory: BufferType = BufferType.DRAM) -> int:
    return get_memory_view(device, memory).total_bytes_allocated_per_bank


def test_a_host_tensor_rounds_and_keeps_the_callers_array_out() -> None:
    array = np.array([[1.00390625, 1.01171875], [-0.0, 3.0]], np.float32)
    tensor = Tensor(array, ttsim.bfloat16)
    array[:] = 9
    assert tensor.to_list() == [[1.0, 1.015625], [-0.0, 3.0]]
    assert str(tensor.dtype) == "DataType.BFLOAT16"
    assert tensor.shape == [2, 2]
    assert repr(tensor.shape) == "Shape([2, 2])"
    assert tensor.storage_type() is StorageType.HOST
    assert tensor.device() is None
    same = np.ones(3, np.float32)
    kept = Tensor(same)
    same[:] = 2
    assert kept.to_list() == [1, 1, 1]
    assert same.flags.writeable


@pytest.mark.parametrize(
    ("numpy_type", "dtype"),
    [
        (np.float64, DataType.FLOAT32),
        (np.float32, DataType.FLOAT32),
        (ml_dtypes.bfloat16, DataType.BFLOAT16),
        (np.int32, DataType.INT32),
        (np.uint16, DataType.UINT16),
        (np.bool_, DataType.UINT8),
    ],
)
def test_data_types_of_arrays(numpy_type: type, dtype: DataType) -> None:
    assert Tensor(np.ones((2, 2), numpy_type)).dtype is dtype


def test_what_no_tensor_is_made_of() -> None:
    with pytest.raises(TypeError, match="there is no data type for int64 values"):
        Tensor(np.ones(2, np.int64))
    with pytest.raises(TypeError, match="data must be an array of numbers, not str"):
        Tensor("x", ttsim.uint16)
    with pytest.raises(TypeError, match="data_type must be a DataType"):
        Tensor(np.ones(2), "bfloat16")  # type: ignore[arg-type]
    with pytest.raises(DeviceError, match=r"^Layout must be Layout::TILE for bfloat8_b or bfloat4_b!\nlayout: "):
        Tensor(np.ones((2, 2)), ttsim.bfloat8_b, layout=ttsim.ROW_MAJOR_LAYOUT)


def test_block_floats_lie_in_tiles() -> None:
    tensor = Tensor(np.ones((1, 1, 3, 4), np.float32), ttsim.bfloat8_b)
    assert tensor.layout is Layout.TILE
    assert tensor.padded_shape == (1, 1, 32, 32)
    assert tensor.shape == (1, 1, 3, 4)


def test_a_device_tensor_comes_back_whole(device: Device) -> None:
    values = np.arange(2 * 5 * 7, dtype=np.float32).reshape(1, 2, 5, 7)
    for layout in Layout:
        tensor = Tensor(values, ttsim.float32, layout=layout).to(device, ttsim.L1_MEMORY_CONFIG)
        assert tensor.storage_type() is StorageType.DEVICE
        assert tensor.device() is device
        assert tensor.memory_config() == ttsim.L1_MEMORY_CONFIG
        assert tensor.buffer_address() > 0
        np.testing.assert_array_equal(tensor.cpu().to_numpy(), values)
        np.testing.assert_array_equal(tensor.buffer.decoded()[:, :2, :5, :7], values)


def test_memory_is_given_back_with_the_last_sharer(device: Device) -> None:
    before = allocated(device)
    tensor = Tensor(np.ones((1, 1, 4, 32), np.float32)).to(device)
    view = tensor.reshape(1, 2, 2, 32)
    assert view.buffer is tensor.buffer
    del tensor
    gc.collect()
    assert allocated(device) > before
    assert view.to_numpy().sum() == 128
    del view
    gc.collect()
    assert allocated(device) == before


def test_deallocation(device: Device) -> None:
    tensor = Tensor(np.ones((1, 1, 4, 32), np.float32)).to(device)
    view = tensor.reshape(1, 1, 2, 64)
    tensor.deallocate()
    assert not tensor.is_allocated()
    assert view.is_allocated()
    shared = Tensor(np.ones((1, 1, 4, 32), np.float32)).to(device)
    other = shared.reshape(1, 2, 2, 32)
    shared.deallocate(force=False)
    assert shared.is_allocated()
    shared.deallocate(force=True)
    shared.deallocate(force=True)
    assert not other.is_allocated()
    for use in (tensor.cpu, tensor.to_list, tensor.buffer_address, lambda: tensor.to(device)):
        with pytest.raises(DeviceError, match=r"^Tensor is not allocated"):
            use()
    assert repr(tensor) == (
        "ttnn.Tensor(<buffer is not allocated>, shape=Shape([1, 1, 4, 32]), dtype=DataType::FLOAT32, "
        "layout=Layout::ROW_MAJOR)"
    )
    host = Tensor(np.ones(2, np.float32))
    host.deallocate()
    assert not host.is_allocated()


def test_to_dtype_rounds_host_tensors_alone(device: Device) -> None:
    values = np.array([[1.00390625, 2.0, 3.0]], np.float32)
    assert ttsim.to_dtype(Tensor(values), ttsim.bfloat16).to_list() == [[1.0, 2.0, 3.0]]
    assert ttsim.to_dtype(Tensor(np.ones((32, 64), np.float32)), ttsim.bfloat8_b).layout is Layout.TILE
    with pytest.raises(ttsim.DeviceError, match=r"^Expected Tensor with HostStorage, got StorageType::DEVICE"):
        ttsim.to_dtype(Tensor(values).to(device), ttsim.bfloat16)
    padded = (
        r"^to_dtype: Converting layout to Layout::TILE implicitly changed physical shape from \(1, 3\) to \(32, 32\) "
    )
    with pytest.raises(ttsim.DeviceError, match=padded):
        ttsim.to_dtype(Tensor(values), ttsim.bfloat8_b)


def test_layouts_and_types_change_on_the_device(device: Device) -> None:
    values = np.array([[1.00390625, 2.0, 3.0]], np.float32)
    tensor = Tensor(values).to(device)
    tiled = tensor.to(ttsim.TILE_LAYOUT)
    assert tiled.padded_shape == (32, 32)
    np.testing.assert_array_equal(tiled.to_numpy(), values)
    rounded = ttsim.typecast(tiled, ttsim.bfloat16)
    assert rounded.to_list() == [[1.0, 2.0, 3.0]]
    moved = ttsim.to_memory_config(tensor, ttsim.L1_MEMORY_CONFIG)
    assert moved.memory_config().buffer_type is BufferType.L1
    assert ttsim.to_memory_config(moved, ttsim.L1_MEMORY_CONFIG) is moved
    assert ttsim.to_layout(tensor, ttsim.ROW_MAJOR_LAYOUT) is tensor
    with pytest.raises(DeviceError, match=r"^Device Operations expect device tensors as inputs"):
        ttsim.to_memory_config(Tensor(values), ttsim.L1_MEMORY_CONFIG)


def test_reshape_of_padded_tensors_moves_elements(device: Device) -> None:
    values = np.arange(2 * 40 * 32, dtype=np.float32).reshape(2, 1, 40, 32)
    tensor = Tensor(values, layout=ttsim.TILE_LAYOUT).to(device)
    reshaped = tensor.reshape(1, 1, 80, 32)
    assert reshaped.buffer is not tensor.buffer
    np.testing.assert_array_equal(reshaped.to_numpy(), values.reshape(1, 1, 80, 32))
    assert tensor.reshape([-1, 32]).shape == (80, 32)
    with pytest.raises(DeviceError, match=r"^Invalid arguments to reshape"):
        tensor.reshape(1, 1, 81, 32)
    with pytest.raises(DeviceError, match=r"^Invalid arguments to reshape"):
        tensor.reshape(-1, -1)


def test_values_stored_with_padding_are_cut(device: Device) -> None:
    tensor = Tensor(np.zeros((1, 3, 5), np.float32), layout=ttsim.TILE_LAYOUT).to(device)
    stored = np.arange(32 * 32, dtype=np.float32).reshape(1, 32, 32)
    tensor.buffer.store(stored, tensor.spec)
    np.testing.assert_array_equal(tensor.to_numpy(), stored[:, :3, :5])
    assert tensor.padded_values() is stored
    assert tensor.cpu().padded_values().sum() == stored[:, :3, :5].sum()
    assert Tensor([1.0, 2.0], layout=ttsim.TILE_LAYOUT).padded_values()[0, :3].tolist() == [1, 2, 0]


def test_shards_must_hold_the_tensor(device: Device) -> None:
    def place(rows: int) -> MemoryConfig:
        shards = ShardSpec(first_cores(2, 8, 8), (rows, 16))
        return MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, shards)

    tensor = Tensor(np.ones((1, 1, 64, 16), np.float32))
    assert tensor.to(device, place(32)).is_sharded()
    with pytest.raises(DeviceError, match=r"^Number of shards along height 4 must not exceed number of cores 2"):
        tensor.to(device, place(16))
    with pytest.raises(OutOfMemoryError, match=r"^Out of Memory: Not enough space to allocate"):
        Tensor(np.ones((1, 1, 1 << 16, 16), np.float32)).to(device, place(1 << 15))


def test_no_values_where_none_are_computed() -> None:
    device = ttsim.open_device(values="off")
    tensor = Tensor(np.ones((2, 2), np.float32)).to(device)
    assert tensor.to_list() == [[1, 1], [1, 1]]
    empty = Tensor.of_buffer(device, device.machine.allocate(tensor.spec.buffer(device.spec)), tensor.spec)
    with pytest.raises(DeviceError, match="opened with values='off'"):
        empty.to_numpy()
    assert "<no values>" in repr(empty)
    assert not empty.to(ttsim.TILE_LAYOUT).buffer.written


@pytest.mark.parametrize("on_device", [False, True])
def test_a_reshape_rounds_block_floats_for_their_new_neighbors(on_device: bool) -> None:
    values = np.random.default_rng(0).standard_normal((64, 79)).astype(np.float32)
    tensor = Tensor(values, DataType.BFLOAT8_B)
    if on_device:
        tensor = tensor.to(ttsim.open_device())
    reshaped = tensor.reshape(79, 64)
    kept = reshaped.to_numpy()
    assert not np.array_equal(kept, tensor.to_numpy().reshape(79, 64))
    np.testing.assert_array_equal(Tensor(kept, DataType.BFLOAT8_B).to_numpy(), kept)
    np.testing.assert_allclose(kept.astype(np.float32), values.reshape(79, 64), atol=0.05)
    np.testing.assert_array_equal(tensor.reshape(2, 32, 79).to_numpy().reshape(64, 79), tensor.to_numpy())


def test_a_device_rounds_half_up_where_the_host_rounds_to_even() -> None:
    tensor = Tensor(np.array([[64.0, 0.5, 1.5]], np.float32), DataType.BFLOAT16, layout=ttsim.TILE_LAYOUT)
    assert ttsim.typecast(tensor, ttsim.bfloat8_b).to_list() == [[64.0, 0.0, 2.0]]
    assert ttsim.typecast(tensor.to(ttsim.open_device()), ttsim.bfloat8_b).to_list() == [[64.0, 1.0, 2.0]]


def test_small_things() -> None:
    tensor = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert repr(tensor).startswith("ttnn.Tensor([[ 0.0000,  1.0000,  2.0000],")
    assert (tensor.volume(), tensor.logical_volume(), tensor.element_size()) == (6, 6, 4)
    assert Tensor(np.array([2.5], np.float32)).item() == 2.5
    with pytest.raises(DeviceError, match="exactly one element, but got 6 elements"):
        tensor.item()
    with pytest.raises(TypeError, match="the target must be a device or a layout, not int"):
        tensor.to(3)  # type: ignore[arg-type]
