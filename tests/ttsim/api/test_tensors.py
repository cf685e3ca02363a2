"""Tensors as users make, describe, move, copy and store them, under the real library's names and keywords."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

import ttsim
from tests.ttsim.api.calls import operations, put, refusal

TILE, ROWS, L1 = ttsim.TILE_LAYOUT, ttsim.ROW_MAJOR_LAYOUT, ttsim.L1_MEMORY_CONFIG
ONES = np.ones((2, 2))


def small(device: ttsim.Device | None = None) -> ttsim.Tensor:
    values = np.arange(64 * 64, dtype=np.float32).reshape(1, 1, 64, 64) % 64
    return ttsim.Tensor(values, ttsim.bfloat16, device, TILE)


def test_defaults_are_those_of_the_real_library() -> None:
    assert tuple(ttsim.zeros((0, 32)).shape) == (0, 32)
    output = ttsim.zeros((2, 3))
    assert (output.shape, output.dtype, output.layout) == ([2, 3], ttsim.bfloat16, ROWS)
    assert ttsim.full((2, 2), 7, ttsim.int32).to_list() == [[7, 7], [7, 7]]
    assert ttsim.ones([1, 4]).to_list() == [[1.0] * 4]
    assert ttsim.arange(5).to_list() == [0, 1, 2, 3, 4]
    assert ttsim.arange(0, 10, 3, dtype=ttsim.int32).to_list() == [0, 3, 6, 9]


def test_tensors_are_made_on_a_device(device: ttsim.Device) -> None:
    output = ttsim.zeros((1, 1, 32, 64), ttsim.bfloat8_b, TILE, device, L1)
    assert output.memory_config() == L1
    like = ttsim.full_like(output, 2.0)
    assert (like.dtype, like.layout, like.device(), like.memory_config()) == (ttsim.bfloat8_b, TILE, device, L1)
    assert (like.to_numpy() == 2).all()
    random = ttsim.rand((32, 32), device)
    assert (random.dtype, random.layout) == (ttsim.bfloat16, TILE)
    assert 0.4 < float(random.to_numpy().mean()) < 0.6
    assert (random.to_numpy() == ttsim.rand((32, 32), device).to_numpy()).all()
    assert ttsim.empty_like(like).shape == [1, 1, 32, 64]
    assert ttsim.zeros_like(like).to_numpy().sum() == 0
    assert ttsim.ones_like(like).to_numpy().mean() == 1
    assert ttsim.empty((4, 4), device=device).layout is ROWS


def test_device_operations_make_them(device: ttsim.Device) -> None:
    """Random rows of integers are drawn as float32, cast and untilized; a 16-bit Dst cuts a number that fills tiles."""
    tiles = ttsim.zeros((64, 64), ttsim.bfloat16, TILE, device)
    options = {"dtype": ttsim.uint32, "layout": ROWS, "low": 0, "high": 9}
    assert operations(lambda: ttsim.rand((64, 64), device, **options)) == ["Rand", "Typecast", "Untilize"]
    assert operations(lambda: ttsim.full_like(tiles, 1.0)) == ["Unary"]
    assert operations(lambda: ttsim.empty_like(tiles)) == []
    assert (ttsim.full_like(tiles, 1.00390625 + 2**-9).to_numpy() == 1).all()
    rows = ttsim.full_like(tiles, 1.00390625 + 2**-9, layout=ROWS)
    assert (rows.to_numpy() == 1.0078125).all()  # rounded on the host


def unfit(name: str, text: str) -> str:
    """The start of the error for arguments that a function does not take."""
    return f"ArgumentType: ttnn.{name}(): incompatible function arguments.\n{name}: {text}"


REFUSED: list[tuple[Callable[[ttsim.Tensor], Any], str]] = [
    (lambda x: ttsim.zeros((2, -1)), "ArgumentType: full: no side of shape may be negative, as in (2, -1)"),
    (lambda x: ttsim.full((2, 2), "x"), unfit("full", "fill_value must be float, not 'x'")),  # type: ignore[arg-type]
    (lambda x: ttsim.zeros((2, 2), np.float32), unfit("zeros", "dtype must be DataType")),  # type: ignore[arg-type]
    (lambda x: ttsim.zeros((65536, 65536), device=5), unfit("zeros", "device must be Device")),  # type: ignore[arg-type]
    (lambda x: ttsim.zeros_like(x, memory_config=5), unfit("zeros_like", "memory_config must be Mem")),  # type: ignore[arg-type]
    (lambda x: ttsim.zeros_like(x, device=5), unfit("zeros_like", "device must be Device or None, not 5")),  # type: ignore[arg-type]
    (lambda x: ttsim.rand((2, 2), x.device(), memory_config=5), unfit("rand", "memory_config must be Mem")),  # type: ignore[arg-type]
    (lambda x: ttsim.rand((2, 2), 5), unfit("rand", "device must be Device, not 5")),  # type: ignore[arg-type]
    (lambda x: ttsim.arange(0, 4, 0.5), unfit("arange", "step must be int, not 0.5")),  # type: ignore[arg-type]
    (lambda x: ttsim.arange(), unfit("arange", "end is missing")),  # type: ignore[call-overload]
    (lambda x: ttsim.arange(1 << 40), "Device: std::bad_alloc\narange: the host has no room for so many numbers"),
    (lambda x: ttsim.zeros((2, 2), fill=1), unfit("zeros", "there is no 'fill'")),  # type: ignore[call-arg]
    (lambda x: ttsim.arange(0, 4, 0), "Device: Step must be nonzero\n"),
    (lambda x: ttsim.element_size(ttsim.bfloat8_b), "Argument: datum for bfp2, bfp4, bfp8 is invalid"),
    (lambda x: ttsim.from_torch(ONES, ttsim.bfloat8_b, layout=ROWS),
     "Device: ttnn.from_torch: bfloat8_b requires TILE_LAYOUT!"),
    (lambda x: ttsim.from_torch(ONES, col_tilize=True), "NotSimulated: from_torch: col_tilize"),
    (lambda x: ttsim.from_torch(ONES, ttsim.bfloat16, spec=x.spec), "Argument: from_torch: spec says dtype, layout"),
    (lambda x: ttsim.to_dtype(x, ttsim.float32),
     "Device: Expected Tensor with HostStorage, got StorageType::DEVICE"),
    (lambda x: x.cpu().buffer_address(), "Device: StorageType::HOST doesn't support buffer_address method"),
    (lambda x: x.item(), "Device: "),
    (lambda x: ttsim.copy_host_to_device_tensor(ttsim.zeros((1, 1, 32, 32), layout=TILE), x),
     "Device: copy_host_to_device_tensor: device_tensor must have shape"),
    (lambda x: ttsim.copy_device_to_host_tensor(x, ttsim.zeros((1, 1, 64, 64), ttsim.float32, TILE)),
     "Device: copy_device_to_host_tensor: host_tensor must have shape [1, 1, 64, 64], DataType.BFLOAT16"),
    (lambda x: ttsim.allocate_tensor_on_device(x.spec), "ArgumentType: allocate_tensor_on_device: give a spec"),
    (lambda x: ttsim.Shape([2, 3]).to_rank(1), "Device: Can't convert shape rank 2 to 1"),
    (lambda x: ttsim.Tile((16, 32)), "Device: Tile: tiles of (16, 32) are not simulated; 32 x 32 are"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), REFUSED, ids=range(len(REFUSED)))
def test_wrong_calls_are_refused(device: ttsim.Device, call: Callable[[ttsim.Tensor], Any], text: str) -> None:
    x = small(device)
    assert refusal(lambda: call(x)).startswith(text)


def test_padding_of_the_last_two_axes_and_bytes_of_tiles_and_elements(device: ttsim.Device) -> None:
    rows = ttsim.Tensor(np.zeros((1, 3, 32)), ttsim.bfloat16)
    tiles = rows.to(TILE)
    assert [ttsim.has_tile_padding(tensor) for tensor in (rows, tiles)] == [False, True]
    assert [ttsim.has_tile_padding(tiles, dim=axis) for axis in (0, 1, -1)] == [False, True, False]
    assert not ttsim.is_sharded(rows)
    places = [ttsim.has_storage_type_of(x, ttsim.DEVICE_STORAGE_TYPE) for x in (rows, rows.to(device))]
    assert places == [False, True]
    assert [ttsim.tile_size(dtype) for dtype in (ttsim.bfloat16, ttsim.bfloat8_b, ttsim.int8)] == [2048, 1088, 1024]
    assert [ttsim.element_size(dtype) for dtype in (ttsim.float32, ttsim.uint16, ttsim.int8)] == [4, 2, 1]
    assert ttsim.get_conv_output_dim(8, 3, 2, 1) == ttsim.get_conv_output_dim(8, 3, dilation=2) == 4
    assert ttsim.Shape([1, 2]).to_rank(4) == [1, 1, 1, 2]
    assert ttsim.Shape([1, 1, 3, 4]).to_rank(2) == [3, 4]


def test_a_device_tensor_says_what_the_real_one_says(device: ttsim.Device) -> None:
    x = small(device)
    assert (x.get_layout(), x.get_dtype()) == (TILE, ttsim.bfloat16)
    assert repr(x.tile) == repr(x.get_tile()) == "Tile with shape: [32, 32]"
    assert (x.buffer_page_size(), x.buffer_num_pages(), x.buffer_aligned_page_size()) == (2048, 4, 2048)
    assert ttsim.get_memory_config(x) == ttsim.DRAM_MEMORY_CONFIG
    assert ttsim.get_memory_config(x.cpu()) is None
    assert ttsim.get_device_tensors(x) == [x]


def test_keywords_are_those_of_the_real_library(device: ttsim.Device) -> None:
    x = small().to(device=device, mem_config=L1, cq_id=0)
    assert x.memory_config() == L1
    assert ttsim.to_layout(ttsim.Tensor(ONES, ttsim.float32, layout=TILE), ROWS).dtype is ttsim.float32
    assert x.cpu(blocking=False, cq_id=1).to(target_layout=ROWS).layout is ROWS
    assert ttsim.from_device(ttsim.to_device(small(), device, queue_id=0), queue_id=0).shape == x.shape
    cast = ttsim.typecast(x, ttsim.float32, memory_config=ttsim.DRAM_MEMORY_CONFIG)
    assert (cast.dtype, cast.memory_config()) == (ttsim.float32, ttsim.DRAM_MEMORY_CONFIG)
    out = ttsim.allocate_tensor_on_device(x.shape, x.dtype, x.layout, device, L1)
    assert ttsim.to_memory_config(x, L1, output_tensor=out) is out
    assert (out.to_numpy() == x.to_numpy()).all()
    ttsim.synchronize_device(device, cq_id=0)
    output = ttsim.from_torch(x.to_numpy(), spec=x.spec, device=device, tile=ttsim.Tile((32, 32)), cq_id=0)
    assert output.spec == x.spec


def test_a_result_in_a_given_tensor_takes_no_other_memory(device: ttsim.Device) -> None:
    x = small(device)
    out = ttsim.allocate_tensor_on_device(x.shape, ttsim.float32, TILE, device, L1)
    ttsim.graph.begin_graph_capture()
    ttsim.typecast(x, ttsim.float32, output_tensor=out)
    ttsim.to_memory_config(x, L1, dtype=ttsim.float32, output_tensor=out)
    usage = ttsim.graph.extract_resource_usage_per_core(ttsim.graph.end_graph_capture())
    assert usage.peak_l1 == 0
    assert (out.to_numpy() == x.to_numpy()).all()


def test_shards_are_dealt_into_those_of_the_given_tensor(device: ttsim.Device) -> None:
    by_rows = ttsim.create_sharded_memory_config((1, 1, 64, 64), ttsim.CoreGrid(x=2, y=1), ttsim.ShardStrategy.HEIGHT)
    by_columns = ttsim.create_sharded_memory_config((1, 1, 64, 64), ttsim.CoreGrid(x=2, y=1), ttsim.ShardStrategy.WIDTH)
    x = small().to(device, by_rows)
    out = ttsim.zeros(x.shape, x.dtype, TILE, device, by_columns)
    other = ttsim.create_sharded_memory_config((1, 1, 64, 64), ttsim.CoreGrid(x=1, y=2), ttsim.ShardStrategy.HEIGHT)
    assert ttsim.to_memory_config(x, other, output_tensor=out) is out
    assert (out.to_numpy() == x.to_numpy()).all()


@pytest.mark.parametrize(
    ("ends", "filled"),
    [((1, 1, 40, 64), True), ((1, 1, 32, 64), False), ((1, 1, 64, 64), False)],  # within a tile, at tiles, at the end
)
def test_padding_of_a_slice_is_filled_where_it_ends_within_tiles(
    device: ttsim.Device, ends: tuple[int, ...], filled: bool
) -> None:
    x = small(device)
    names = operations(lambda: ttsim.slice(x, (0, 0, 0, 0), ends, pad_value=1.0))
    assert ("FillPad" in names) == filled
    assert "FillPad" not in operations(lambda: ttsim.slice(x, (0, 0, 1, 0), ends, pad_value=1.0))


def test_values_are_copied_into_what_is_there(device: ttsim.Device) -> None:
    x = ttsim.allocate_tensor_on_device(small().spec, device)
    address = x.buffer_address()
    ttsim.copy_host_to_device_tensor(small(), x, cq_id=0)
    assert x.buffer_address() == address
    host = ttsim.zeros((1, 1, 64, 64), layout=TILE)
    ttsim.copy_device_to_host_tensor(x, host)
    assert (host.to_numpy() == small().to_numpy()).all()


def test_a_method_frees_what_nobody_shares(device: ttsim.Device) -> None:
    x = small(device)
    view = ttsim.squeeze(x)
    x.deallocate()
    assert view.is_allocated()
    x.deallocate(force=True)
    assert not view.is_allocated()


def test_torch_there_and_back() -> None:
    torch = pytest.importorskip("torch")
    values = torch.tensor([[1.0, 1.00390625], [-2.5, 3.0]])
    assert ttsim.from_torch(values).dtype is ttsim.float32
    short = ttsim.from_torch(values.to(torch.bfloat16))
    assert short.dtype is ttsim.bfloat16
    assert torch.equal(ttsim.to_torch(short), values.to(torch.bfloat16))
    assert ttsim.to_torch(ttsim.from_torch(values, ttsim.bfloat8_b)).dtype is torch.float32
    assert ttsim.to_torch(short, dtype=torch.float32).dtype is torch.float32
    assert ttsim.to_torch(ttsim.from_torch(values[None]), torch_rank=2).shape == (2, 2)
    assert torch.equal(ttsim.from_torch(values).to_torch(), values)


@pytest.mark.parametrize("dtype", [ttsim.bfloat16, ttsim.bfloat8_b, ttsim.float32, ttsim.int32])
def test_a_tensor_comes_back_from_a_file(tmp_path: Path, device: ttsim.Device, dtype: ttsim.DataType) -> None:
    tensor = ttsim.Tensor(np.arange(64).reshape(2, 32), dtype, layout=TILE)
    ttsim.dump_tensor(tmp_path / "x.tensorbin", tensor)
    again = ttsim.load_tensor(tmp_path / "x.tensorbin", device)
    assert (again.spec, again.device()) == (tensor.spec, device)
    assert (again.to_numpy() == tensor.to_numpy()).all()


@pytest.mark.parametrize("content", [b"", b"something else", b"PK\x03\x04 of a zip file", None])
def test_another_file_or_one_that_was_cut_short_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.tensorbin"
    ttsim.dump_tensor(path, ttsim.Tensor(np.arange(64), ttsim.int32))
    path.write_bytes(path.read_bytes()[:-40] if content is None else content)
    assert "no file of ttnn.dump_tensor" in refusal(lambda: ttsim.load_tensor(path))


@pytest.mark.parametrize("of", ["values", "kind"])
def test_a_file_that_claims_more_than_it_holds_takes_no_memory(tmp_path: Path, of: str) -> None:
    """A terabyte of values, or of words, in a file of some hundred bytes."""
    path = tmp_path / "x.tensorbin"
    ttsim.dump_tensor(path, ttsim.Tensor(np.arange(64), ttsim.int32))
    with np.load(path) as read:
        arrays = {name: read[name] for name in read.files}
    with ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                header = np.lib.format.header_data_from_array_1_0(array)
                header |= {"shape": (10**6, 10**6)} if name == of else {}
                np.lib.format.write_array_header_1_0(member, header)
                member.write(array.tobytes())
    assert f"claims {of} of the shape [1000000, 1000000], " in refusal(lambda: ttsim.load_tensor(path))


def test_block_floats_stay_in_tiles_on_the_host():
    """And to_layout leaves data types of the host alone; recorded from ttnn 0.81.1."""
    tensor = ttsim.from_torch(np.ones((32, 64)), ttsim.bfloat8_b, layout=TILE)
    for changed in (tensor.to(ROWS), *(ttsim.to_layout(tensor, ROWS, dtype) for dtype in (None, ttsim.bfloat16))):
        assert (changed.layout, changed.dtype) == (TILE, ttsim.bfloat8_b)
    assert ttsim.to_layout(ttsim.from_torch(ONES, ttsim.bfloat16), TILE, ttsim.bfloat8_b).dtype is ttsim.bfloat16


def test_block_floats_with_padding_have_no_rows_on_the_host():
    tensor = ttsim.from_torch(ONES, ttsim.bfloat8_b, layout=TILE)
    for call in (lambda: tensor.to(ROWS), lambda: ttsim.to_layout(tensor, ROWS)):
        assert refusal(call).startswith("Device: Tensor layout must be ROW_MAJOR for unpadding\nto: bfloat8_b has no")


WIDE_ROWS = "40x24 rows width/40x16/2"


@pytest.mark.parametrize(
    ("words", "change", "after"),
    [
        ("64x64 tile height/32x64/2", lambda x: x, "64x64 tile height/32x64/2"),
        ("64x64 tile height/32x64/2", lambda x: x.with_dtype(ttsim.float32), "64x64 tile height/32x64/2"),
        ("64x64 tile height/32x64/2", lambda x: x.reshape(1, 64, 64), "1x64x64 tile height/32x64/2"),
        ("64x64 tile height/32x64/2", lambda x: x.pad_to_tile(0.0), "64x64 tile height/32x64/2"),
        ("64x64 tile height/32x64/2", lambda x: x.to(ROWS), "64x64 rows"),
        ("64x64 rows height/32x64/2", lambda x: x.to(TILE), "64x64 tile height/32x64/2"),
        ("64x64 rows height/32x64/2", lambda x: x.reshape(128, 32), "128x32 rows height/64x32/2"),
        ("40x64 rows l1", lambda x: x, "40x64 rows l1"),
        ("40x64 rows l1", lambda x: x.to(TILE), "40x64 tile"),  # which is padded
        ("40x64 rows l1", lambda x: x.pad_to_tile(0.0), "40x64 rows"),
        (WIDE_ROWS, lambda x: x.reshape(1, 40, 24), "Device: Changing the last dimension of a sharded tensor is not"),
        ("64x64 tile height/32x64/2", lambda x: x.reshape(32, 128), "Device: Shard width 64 must match physical width"),
        (WIDE_ROWS, lambda x: x.to(TILE), "Device: Physical shard shape (40, 16) must be tile {32, 32} sized!"),
        (WIDE_ROWS, lambda x: ttsim.to_dtype(x, ttsim.bfloat8_b), "Device: Physical shard shape (40, 16) must be tile"),
    ],
)
def test_copies_on_the_host_go_back_to_their_place(device, words, change, after):
    host = put(device, words).cpu()
    if ":" in after:
        assert refusal(lambda: change(host).to(device)).startswith(after)
        return
    back, wanted = change(host).to(device), put(device, after)
    assert (back.shape, back.layout, back.memory_config()) == (wanted.shape, wanted.layout, wanted.memory_config())
    assert np.array_equal(back.to_numpy().ravel(), host.to_numpy().ravel())
    assert ttsim.to_device(host, device).memory_config() == ttsim.DRAM_MEMORY_CONFIG


@pytest.mark.parametrize(
    ("to", "padded"),
    [
        ("40x24 rows", (40, 32)),
        ("40x24 rows height/10x24/4", (40, 24)),
        ("40x24 rows width/40x48/1", (40, 48)),
        ("40x24 rows block/40x12/2x1", "to be aligned to 24 along the width for Row Major layout."),
    ],
)
def test_rows_of_copies_on_the_host_keep_the_width_of_their_shards(device, to, padded):
    host, place = put(device, WIDE_ROWS).cpu(), put(device, to).memory_config()
    if isinstance(padded, tuple):
        assert host.to(device, place).padded_shape == padded
        return
    text = refusal(lambda: host.to(device, place))
    assert text.startswith(f"Device: Alignment mismatch for sharded tensor: Expected physical shard shape 12 {padded}")


def test_a_tensor_whose_buffer_is_shared_stays_where_it_is(device):
    """Recorded from ttnn 0.81.1: a view keeps its tensor where it is, and shards with a view are refused."""
    tensor = ttsim.zeros((1, 1, 64, 64), layout=TILE, device=device, memory_config=L1)
    view = ttsim.reshape(tensor, (1, 64, 64))
    assert ttsim.move(tensor).buffer_address() == tensor.buffer_address() == view.buffer_address()
    place = ttsim.create_sharded_memory_config((64, 64), ttsim.CoreGrid(y=1, x=2), ttsim.ShardStrategy.HEIGHT)
    shards = ttsim.to_memory_config(tensor, place)
    view = ttsim.reshape(shards, (1, 64, 64))
    with pytest.raises(ttsim.DeviceError, match="probably another consumer"):
        ttsim.reallocate(shards)
    del view
    assert ttsim.reallocate(shards).is_allocated()
    assert not shards.is_allocated()


@pytest.mark.parametrize("grid", [(8, 2), ttsim.CoreCoord(8, 2)])
def test_shards_take_the_first_cores_of_a_grid(device, grid):
    scheme, by_rows = ttsim.TensorMemoryLayout.HEIGHT_SHARDED, ttsim.ShardOrientation.ROW_MAJOR
    tensor = ttsim.zeros((1, 1, 320, 32), layout=ttsim.TILE_LAYOUT, device=device)
    dealt = ttsim.interleaved_to_sharded(tensor, grid, [32, 32], scheme, by_rows)
    assert dealt.memory_config().shard_spec.grid.num_cores() == 10
    with pytest.raises(ttsim.DeviceError, match="Target number of cores 10 is greater than total number of available"):
        ttsim.interleaved_to_sharded(tensor, (2, 1), [32, 32], scheme, by_rows)
    with pytest.raises(ttsim.NotSimulatedError, match="crashes without rows"):
        ttsim.interleaved_to_sharded(tensor, grid, [0, 32], scheme, by_rows)


def test_a_host_tensor_remembers_the_memory_that_it_was_made_for():
    """As the real library's: a later to(device) goes there, and another choice has precedence."""
    tensor = ttsim.from_torch(np.ones((1, 1, 32, 32), np.float32), ttsim.bfloat16, memory_config=L1)
    assert (tensor.memory_config(), tensor.device()) == (L1, None)
    with ttsim.open_device() as device:
        assert tensor.to(device).memory_config() == L1
        assert tensor.to(device, ttsim.DRAM_MEMORY_CONFIG).memory_config() == ttsim.DRAM_MEMORY_CONFIG


def test_a_result_between_tensors_leaves_its_program_the_room_below_them():
    """Both tensors take 524,288 bytes of each core; the result lies where the first was, not in the 345,856 below."""
    shape, place = (1, 128, 128, 1024), ttsim.L1_MEMORY_CONFIG
    with ttsim.open_device(values="off") as device:
        first, rows = (ttsim.empty(shape, ttsim.bfloat16, ttsim.ROW_MAJOR_LAYOUT, device, place) for _ in range(2))
        where = first.buffer_address()
        ttsim.deallocate(first)
        assert ttsim.to_layout(rows, ttsim.TILE_LAYOUT).buffer_address() == where


@pytest.mark.parametrize("shape", [(0, 32), (1, 0), (0,), (2, 0, 3)])
@pytest.mark.parametrize("layout", [ttsim.TILE_LAYOUT, ttsim.ROW_MAJOR_LAYOUT])
def test_elementwise_operations_on_nothing_run_without_a_time(shape, layout):
    with ttsim.open_device() as device, ttsim.profile(device) as profile:
        empty = ttsim.Tensor(np.zeros(shape, np.float32), ttsim.bfloat16, device, layout)
        result = ttsim.add(ttsim.relu(empty), 1.0)
        with pytest.raises(ttsim.DeviceError, match=r"^Unary: zero-volume specless-sharded is only representable for"):
            ttsim.relu(empty, memory_config=ttsim.L1_BLOCK_SHARDED_MEMORY_CONFIG)
    assert tuple(result.shape) == shape
    assert [operation.untimed[:19] for operation in profile.runs()] == ["its result is empty"] * 2


@pytest.mark.parametrize("layout", [ttsim.TILE_LAYOUT, ttsim.ROW_MAJOR_LAYOUT])
def test_no_operation_slices_nothing(layout):
    with ttsim.open_device() as device, ttsim.profile(device) as profile:
        rows = ttsim.Tensor(np.ones((4, 64), np.float32), ttsim.bfloat16, device, layout)
        nothing = ttsim.slice(ttsim.slice(rows, (0, 0), (0, 64)), (0, 0), (0, 32))
    assert nothing.shape == [0, 32]
    assert not profile.runs()


@pytest.mark.parametrize("data_format", [ttsim.bfloat16, ttsim.bfloat8_b])
def test_tiles_become_rows_before_nothing_is_cut_inside_them(data_format):
    """As in the real planner; the rows are released."""
    with ttsim.open_device() as device, ttsim.profile(device) as profile:
        tiles = ttsim.Tensor(np.ones((4, 32), np.float32), data_format, device, ttsim.TILE_LAYOUT)
        nothing = ttsim.slice(tiles, (2, 4), (2, 32))
    assert (nothing.shape, nothing.dtype, nothing.layout) == ([0, 28], data_format, ttsim.TILE_LAYOUT)
    assert [operation.name for operation in profile.runs()] == ["UntilizeWithUnpaddingDeviceOperation"]


def test_tiles_of_nothing_are_cast_on_no_core_and_laid_out_without_a_program():
    """As in the real planner, tiles that were rows count their padding."""
    with ttsim.open_device() as device, ttsim.profile(device) as profile:
        rows = ttsim.Tensor(np.zeros((2, 0, 3), np.float32), ttsim.bfloat16, device, ttsim.ROW_MAJOR_LAYOUT)
        tiles = ttsim.to_layout(rows, ttsim.TILE_LAYOUT, dtype=ttsim.bfloat8_b)
        cast = ttsim.typecast(tiles, ttsim.float32)
        with pytest.raises(ttsim.DeviceError, match=r"^DFB 'out' has no producer"):
            ttsim.typecast(rows, ttsim.float32)
        assert ttsim.to_layout(tiles, ttsim.ROW_MAJOR_LAYOUT).dtype == ttsim.bfloat16
    assert (tiles.shape, cast.shape, cast.dtype) == ([2, 0, 32], [2, 0, 32], ttsim.float32)
    assert [operation.name for operation in profile.runs()] == ["TypecastDeviceOperation"]


def test_a_capture_shows_the_buffer_of_nothing_with_no_bytes():
    """The real library shows a buffer of size 0 for each empty tensor, though it allocates none."""
    with ttsim.open_device() as device:
        empty = ttsim.Tensor(np.zeros((0, 32), np.float32), ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
        ttsim.graph.begin_graph_capture()
        ttsim.relu(empty)
        nodes = ttsim.graph.end_graph_capture()
    sizes = [node["params"]["size"] for node in nodes if node["node_type"] == "buffer"]
    assert sizes == [0, 0]


@pytest.mark.parametrize("layout", [ttsim.TILE_LAYOUT, ttsim.ROW_MAJOR_LAYOUT])
def test_nothing_in_another_shape_is_a_view_wherever_it_is_wanted(layout):
    with ttsim.open_device() as device, ttsim.profile(device) as profile:
        empty = ttsim.Tensor(np.zeros((0, 9), np.float32), ttsim.bfloat16, device, layout)
        cubes = ttsim.reshape(empty, (0, 3, 3), memory_config=ttsim.L1_MEMORY_CONFIG)
        assert ttsim.squeeze(ttsim.reshape(cubes, (0, 1)), 1).shape == [0]
    assert (cubes.shape, cubes.memory_config()) == ([0, 3, 3], ttsim.DRAM_MEMORY_CONFIG)
    assert not profile.runs()
