"""Tensors on the host and on a device: values, types, places, views, padding, indices and their printed form."""

import gc
import re
from copy import deepcopy

import ml_dtypes
import numpy as np
import pytest

import ttsim
from device.errors import ArgumentError, ArgumentIndexError, ArgumentTypeError, DeviceError
from device.memory.memory_config import BufferType, Layout
from ttsim.recording.memory_reports import get_memory_view
from ttsim.runtime import storage
from ttsim.runtime.device import Device
from ttsim.runtime.operators import box_of
from ttsim.runtime.storage import StorageType, copied
from ttsim.runtime.tensor import Tensor, printed
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
    assert (str(tensor.dtype), tensor.shape, repr(tensor.shape)) == ("DataType.BFLOAT16", [2, 2], "Shape([2, 2])")
    assert (tensor.storage_type(), tensor.device()) == (StorageType.HOST, None)
    same = np.ones(3, np.float32)
    kept = Tensor(same)
    same[:] = 2
    assert kept.to_list() == [1, 1, 1]


def test_data_types_of_arrays() -> None:
    kinds = (np.float64, np.float32, ml_dtypes.bfloat16, np.int32, np.uint16, np.bool_)
    names = [Tensor(np.ones((2, 2), kind)).dtype.name for kind in kinds]
    assert names == ["FLOAT32", "FLOAT32", "BFLOAT16", "INT32", "UINT16", "UINT8"]


MASKED = np.ma.masked_array(np.ones((2, 2), np.float32), [[True, False], [False, True]])


def test_arrays_that_hold_odd_numbers() -> None:
    assert Tensor(MASKED.filled(0), ttsim.bfloat16).to_list() == [[0, 1], [1, 0]]
    assert Tensor(np.ma.masked_array(np.ones(2, np.float32))).to_list() == [1, 1]
    whole = Tensor(np.array([[1, -2, 127, -128]], np.int8))
    assert (whole.dtype, whole.to_list(), str(ttsim.int8)) == (ttsim.int8, [[1, -2, 127, -128]], "DataType.INT8")
    assert Tensor(np.array([1.7, -2.5, 300, -300]), ttsim.int8).to_list() == [1, -2, 44, -44]
    blocks = Tensor(np.ones((1, 1, 3, 4), np.float32), ttsim.bfloat8_b)
    assert (blocks.layout, blocks.padded_shape, blocks.shape) == (Layout.TILE, (1, 1, 32, 32), (1, 1, 3, 4))


def test_a_device_tensor_comes_back_whole(device: Device) -> None:
    values = np.arange(2 * 5 * 7, dtype=np.float32).reshape(1, 2, 5, 7)
    for layout in Layout:
        tensor = Tensor(values, ttsim.float32, layout=layout).to(device, ttsim.L1_MEMORY_CONFIG)
        assert (tensor.storage_type(), tensor.device()) == (StorageType.DEVICE, device)
        assert tensor.memory_config() == ttsim.L1_MEMORY_CONFIG
        np.testing.assert_array_equal(tensor.cpu().to_numpy(), values)
        np.testing.assert_array_equal(tensor.buffer.decoded()[:, :2, :5, :7], values)


@pytest.mark.usefixtures("quick_collections")
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
    assert (tensor.is_allocated(), view.is_allocated()) == (False, True)
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


def test_layouts_and_types_change_on_the_host_and_on_the_device(device: Device) -> None:
    values = np.array([[1.00390625, 2.0, 3.0]], np.float32)
    assert ttsim.to_dtype(Tensor(values), ttsim.bfloat16).to_list() == [[1.0, 2.0, 3.0]]
    assert ttsim.to_dtype(Tensor(np.ones((32, 64), np.float32)), ttsim.bfloat8_b).layout is Layout.TILE
    with pytest.raises(ttsim.DeviceError, match=r"TILE implicitly changed physical shape from \(1, 3\) to \(32, 32\)"):
        ttsim.to_dtype(Tensor(values), ttsim.bfloat8_b)
    tensor = Tensor(values).to(device)
    tiled = tensor.to(ttsim.TILE_LAYOUT)
    assert tiled.padded_shape == (32, 32)
    np.testing.assert_array_equal(tiled.to_numpy(), values)
    assert ttsim.typecast(tiled, ttsim.bfloat16).to_list() == [[1.0, 2.0, 3.0]]
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
        tensor.reshape((1, 1, 81, 32))


def test_values_stored_with_padding_are_cut(device: Device) -> None:
    tensor = Tensor(np.zeros((1, 3, 5), np.float32), layout=ttsim.TILE_LAYOUT).to(device)
    stored = np.arange(32 * 32, dtype=np.float32).reshape(1, 32, 32)
    tensor.buffer.store(stored, tensor.spec)
    np.testing.assert_array_equal(tensor.to_numpy(), stored[:, :3, :5])
    assert tensor.padded_values() is stored
    assert tensor.cpu().padded_values().sum() == stored[:, :3, :5].sum()
    assert Tensor([1.0, 2.0], layout=ttsim.TILE_LAYOUT).padded_values()[0, :3].tolist() == [1, 2, 0]


def test_numpy_takes_tensors(device: Device) -> None:
    """As float32 or integers, in the logical shape; a copy, but where numpy is told to share."""
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    for data_type in (ttsim.bfloat16, ttsim.bfloat8_b, ttsim.float32):
        for tensor in (Tensor(rows, data_type), Tensor(rows, data_type).to(device)):
            array = np.asarray(tensor)
            assert (array.dtype, array.flags.writeable) == (np.float32, True)
            np.testing.assert_array_equal(array, tensor.to_numpy())
            assert np.asarray(tensor, dtype=np.float64).dtype == np.float64
    assert np.asarray(Tensor(np.arange(3, dtype=np.uint16))).dtype == np.uint16
    shared = Tensor(rows).__array__(copy=False)
    assert (shared.flags.writeable, shared.tolist()) == (False, rows.tolist())
    with pytest.raises(ValueError, match="a BFLOAT16 tensor has no float32 values without a copy"):
        Tensor(rows, ttsim.bfloat16).__array__(copy=False)
    on_device = Tensor(np.ones((32, 32), np.float32), ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
    assert isinstance(np.float32(2) * on_device, Tensor)
    with pytest.raises(ArgumentTypeError, match="must be a Tensor or a number, not a numpy"):
        np.ones((32, 32), np.float32) * on_device
    on_device.deallocate()
    with pytest.raises(DeviceError, match="Tensor is not allocated"):
        np.asarray(on_device)


def test_a_deep_copy_has_a_buffer_of_its_own(device: Device) -> None:
    tensor = Tensor(np.ones((32, 32), np.float32), ttsim.bfloat16).to(device)
    before, twin = allocated(device), deepcopy(tensor)
    assert twin.buffer_address() != tensor.buffer_address()
    tensor.deallocate()
    assert (allocated(device), twin.to_numpy().sum()) == (before, 1024)
    with pytest.raises(DeviceError, match="Tensor is not allocated"):
        deepcopy(tensor)


def test_no_values_where_none_are_computed() -> None:
    device = ttsim.open_device(values="off")
    tensor = Tensor(np.ones((2, 2), np.float32)).to(device)
    assert tensor.to_list() == [[1, 1], [1, 1]]
    empty = Tensor.of_buffer(device, device.machine.allocate(tensor.spec.buffer(device.spec)), tensor.spec)
    with pytest.raises(DeviceError, match="opened with values='off'"):
        np.asarray(empty)
    assert "<no values>" in repr(empty)
    assert not empty.to(ttsim.TILE_LAYOUT).buffer.written


@pytest.mark.parametrize("on_device", [False, True])
def test_a_reshape_rounds_block_floats_for_their_new_neighbors(on_device: bool) -> None:
    values = np.random.default_rng(0).standard_normal((64, 79)).astype(np.float32)
    tensor = Tensor(values, DataType.BFLOAT8_B)
    if on_device:
        tensor = tensor.to(ttsim.open_device())
    reshaped = tensor.reshape((79, 64))
    kept = reshaped.to_numpy()
    assert not np.array_equal(kept, tensor.to_numpy().reshape(79, 64))
    np.testing.assert_array_equal(Tensor(kept, DataType.BFLOAT8_B).to_numpy(), kept)
    np.testing.assert_allclose(kept.astype(np.float32), values.reshape(79, 64), atol=0.05)
    np.testing.assert_array_equal(tensor.reshape((2, 32, 79)).to_numpy().reshape(64, 79), tensor.to_numpy())
    halves = Tensor(np.array([[64.0, 0.5, 1.5]], np.float32), DataType.BFLOAT16, layout=ttsim.TILE_LAYOUT)
    halves = halves.to(ttsim.open_device()) if on_device else halves  # a device rounds half up, the host to even
    assert ttsim.typecast(halves, ttsim.bfloat8_b).to_list() == [[64.0, float(on_device), 2.0]]


def test_small_things() -> None:
    given = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert repr(given).startswith("ttnn.Tensor([[ 0.0000,  1.0000,  2.0000],")
    assert (given.volume(), given.logical_volume(), given.element_size()) == (6, 6, 4)
    assert Tensor(np.array([2.5], np.float32)).item() == 2.5
    first, other = tensor(2, 2), tensor(2, 2)
    assert other.tensor_id + 1 == first.tensor_id == first.tensor_id  # in the order in which they are asked


def test_copies_are_of_another_type_and_their_own(monkeypatch):
    for large_bytes in (storage.LARGE_BYTES, 1 << 20):
        monkeypatch.setattr(storage, "LARGE_BYTES", large_bytes)
        for shape in ((), (3, 0), (3, 700, 300)):
            values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(ml_dtypes.bfloat16)
            result = copied(values, np.dtype(np.float32))
            assert result.dtype == np.float32
            assert np.array_equal(result, values.astype(np.float32))
            assert not np.shares_memory(copied(result, result.dtype), result)


def tensor(*shape, dtype=ttsim.bfloat16):
    return ttsim.Tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), dtype)


@pytest.mark.parametrize(
    ("shape", "filled"), [((1, 1, 3, 4), (1, 1, 32, 32)), ((4,), (32, 32)), ((2, 1, 33, 64), (2, 1, 64, 64))]
)
def test_the_last_two_axes_are_filled_up_to_tiles(shape, filled):
    result = tensor(*shape).pad_to_tile(0.0)
    assert (result.shape, result.padded_shape, result.layout) == (shape, filled, ttsim.ROW_MAJOR_LAYOUT)
    assert np.array_equal(result.to_numpy(), tensor(*shape).to_numpy())
    if len(shape) > 1:
        assert result.unpad_from_tile(shape).padded_shape == shape
    part = tensor(1, 1, 32, 32).unpad_from_tile([1, 1, 2, 3])
    assert part.to_list() == [[[[0.0, 1.0, 2.0], [32.0, 33.0, 34.0]]]]
    assert tensor(1, 1, 32, 32).unpad_from_tile([3, 4]).shape == (1, 1, 3, 4)


def test_tiles_of_the_device_are_as_pad_to_tile_would_make_them():
    tiles = tensor(30, 40).to(ttsim.TILE_LAYOUT).to(ttsim.open_device())
    assert tiles.pad_to_tile(0.0) is tiles


def test_a_device_operation_gives_a_tensor_of_the_device_its_layout():
    with ttsim.open_device() as device, ttsim.profile(device) as profile:
        tiles = tensor(30, 40).to(ttsim.TILE_LAYOUT).to(device)
        assert tiles.to(ttsim.ROW_MAJOR_LAYOUT).layout == ttsim.ROW_MAJOR_LAYOUT
    (operation,) = profile.network().operations
    assert operation.name.startswith("Untilize")


SHAPE = (2, 3, 4)


def test_integers_slices_and_what_is_not_named():
    box = box_of((1, ..., slice(1, None, 2)), SHAPE)
    assert box.corners == ((1, 0, 1), (2, 3, 4), (1, 1, 2))
    assert box.gone == (0,)
    assert box_of(-1, SHAPE).corners == ((1, 0, 0), (2, 3, 4), (1, 1, 1))
    assert box_of(slice(-2, -1), SHAPE).corners == ((-2, 0, 0), (-1, 3, 4), (1, 1, 1))
    assert box_of(..., SHAPE).gone == ()
    assert tensor(*SHAPE)[1, ..., 1:3].to_list() == [[13, 14], [17, 18], [21, 22]]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([0.1, 2, -3], "[ 0.1000,  2.0000, -3.0000]"),
        ([1e6, 2.5], "[ 1.0000e+06,  2.5000e+00]"),
        ([np.nan, np.inf, -np.inf, 1], "[    nan,     inf,    -inf,  1.0000]"),
        ([np.inf, 5e-5], "[        inf,  5.0000e-05]"),
        (np.arange(6.0) * 100, "[ 0.0000, 100.0000,  ..., 400.0000, 500.0000]"),
        ([1, 1000], "[ 1.0000, 1000.0000]"),
        ([3e38, 2e38], "[ 3.0000e+38,  2.0000e+38]"),
        ([2e8, 1e8], "[ 2.0000e+08,  1.0000e+08]"),
        (3.5, " 3.5000"),
        (np.zeros((0, 3)), "[]"),
        ([[-1.5, 2], [33.25, 4]], "[[-1.5000,  2.0000],\n             [33.2500,  4.0000]]"),
    ],
)
def test_floats(values: object, text: str) -> None:
    assert printed(np.asarray(values, np.float32)) == text


def test_integers_and_cut_axes() -> None:
    assert printed(np.arange(3, dtype=np.int32) * -100000) == "[    0, -100000, -200000]"
    rows = ["[[    0,     1,  ...,    28,    29]", "...", "[  270,   271,  ...,   298,   299]]"]
    lines = printed(np.arange(300, dtype=np.uint32).reshape(10, 30)).splitlines()
    assert [lines[0], lines[2].strip(), lines[4].strip()] == [f"{rows[0]},", f"{rows[1]},", rows[2]]


def test_empty_lines_stand_between_matrices() -> None:
    gap, zeros = "\n\n             ", "[[ 0.0000,  0.0000]]"
    parts = [zeros, zeros, "...", zeros, zeros]
    assert printed(np.zeros((5, 1, 2), np.float32)) == "[" + f",{gap}".join(parts) + "]"


OUT_OF_RANGE = "Last 2 dims of output must be within range to have been padded to input"
REFUSED = [
    (lambda: Tensor(np.ones(2, np.uint64)), ArgumentTypeError, "Tensor: there is no data type for uint64 values"),
    (lambda: Tensor("x", ttsim.uint16), ArgumentTypeError, "Tensor: data must be an array of numbers, not str"),
    (lambda: Tensor(tensor(6)), ArgumentTypeError, "Tensor: data is a tensor already; to_dtype, to_layout and to_dev"),
    (lambda: Tensor(np.ones(2), "bfloat16"), ArgumentTypeError, "Tensor: data_type must be a DataType"),
    (lambda: Tensor(np.ones((2, 2)), ttsim.bfloat8_b, layout=Layout.ROW_MAJOR), DeviceError, "Layout must be Layout::"),
    (lambda: Tensor([[1], [1, 2]], ttsim.bfloat16), ArgumentError, "Tensor: the rows of nested lists must be of one"),
    (lambda: Tensor(MASKED, ttsim.bfloat16), ArgumentError, "Tensor: data has 2 masked elements, which are no number"),
    (lambda: tensor(6).item(), DeviceError, "tensor.item() requires tensor to have exactly one element, but got 6 "),
    (lambda: tensor(6).to(3), ArgumentTypeError, "to: the target must be a device or a layout, not int"),
    (lambda: tensor(1, 1, 64, 64).unpad_from_tile([1, 1, 3, 4]), DeviceError, OUT_OF_RANGE),
    (lambda: tensor(1, 1, 32, 32).unpad_from_tile([1, 1, 40, 4]), DeviceError, OUT_OF_RANGE),
    (lambda: tensor(2, 1, 32, 32).unpad_from_tile([1, 1, 3, 4]), DeviceError, "Input shape must match output shape ap"),
    (lambda: tensor(1, 1, 32, 32).to(ttsim.TILE_LAYOUT).unpad_from_tile([1, 1, 3, 4]), DeviceError,
     "Tensor layout must be ROW_MAJOR for unpadding"),
    (lambda: tensor(1, 1, 3, 4).to(ttsim.open_device()).pad_to_tile(0.0), DeviceError,
     "Tensor must be on host for pad_to_tile conversion"),
    (lambda: tensor(6)[::2], DeviceError, "Host tensors cannot be accessed with non-unit stride"),
    (lambda: box_of((..., ...), SHAPE), ArgumentError, "Only one ellipsis"),
    (lambda: box_of((0, 0, 0, 0), SHAPE), ArgumentIndexError, "Too many indices for tensor of dimension 3"),
    (lambda: box_of((0, 3), SHAPE), ArgumentIndexError, "Index 3 (converted to 3) is out of bounds for dimension 1"),
    (lambda: box_of("a", SHAPE), ArgumentTypeError, "Invalid slice type: 'a'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_tensor_and_no_part_of_one(call, kind, text) -> None:
    with pytest.raises(kind, match=f"^{re.escape(text)}"):
        call()


def test_a_list_of_numbers_and_a_shape() -> None:
    made = ttsim.Tensor([0.3, 3.3, -1.7, 2.0], [2, 2], ttsim.int32, ttsim.TILE_LAYOUT)  # integers lose fractions
    assert (made.to_list(), made.padded_shape) == ([[0, 3], [-1, 2]], [32, 32])
    with ttsim.open_device() as device:
        place = ttsim.L1_MEMORY_CONFIG
        placed = ttsim.Tensor(range(4), ttsim.Shape((4,)), ttsim.bfloat16, ttsim.ROW_MAJOR_LAYOUT, device, place)
        assert placed.to_numpy().tolist() == [0, 1, 2, 3]
        assert placed.memory_config() == place


@pytest.mark.parametrize(
    ("numbers", "data_type", "line"),
    [
        ([1.0] * 3, ttsim.bfloat16, "Buffer size 3 differs from shape volume 4"),
        ([1.0] * 4, ttsim.bfloat4_b, "Only TILE layout is supported for BFLOAT4_B dtype!"),
    ],
)
def test_lists_that_do_not_fill_a_shape(numbers: list[float], data_type: ttsim.DataType, line: str) -> None:
    with pytest.raises(ttsim.DeviceError) as raised:
        ttsim.Tensor(numbers, [2, 2], data_type, ttsim.ROW_MAJOR_LAYOUT)
    assert str(raised.value).splitlines()[0] == line
