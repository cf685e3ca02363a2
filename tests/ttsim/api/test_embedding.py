"""ttnn.embedding as users call it: numbers, shapes, refusals."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.build import place
from tests.ttsim.api.calls import captured, put

TABLE = np.random.default_rng(3).integers(-99, 99, (50, 64))


@pytest.mark.parametrize("layout", [None, ttnn.TILE_LAYOUT])
@pytest.mark.parametrize("shape", [(2, 32), (1, 1, 1, 40), (20,)])
def test_rows_of_a_table(device, layout, shape):
    numbers = np.random.default_rng(4).integers(0, 50, shape)
    indices = ttnn.from_numpy(numbers, ttnn.uint32, device=device)
    table = ttnn.from_numpy(TABLE, ttnn.bfloat16, device=device)
    result = ttnn.embedding(indices, table, layout=layout)
    kept = shape if len(shape) < 3 else (shape[0], shape[-1])
    assert np.array_equal(result.to_numpy(), TABLE[numbers].reshape(*kept, 64))
    assert result.layout == (layout or ttnn.ROW_MAJOR_LAYOUT)


@pytest.mark.parametrize("shape", [(0, 32), (1, 0), (0,)])
def test_no_indices_name_no_rows(device, shape):
    rows, tiles = (
        ttnn.zeros(shape, ttnn.uint32, layout, device) for layout in (ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT)
    )
    table = ttnn.from_numpy(TABLE, ttnn.bfloat16, device=device)
    for indices in (rows, tiles):
        assert ttnn.embedding(indices, table).shape == (*shape, 64)
    assert ttnn.embedding(tiles, table, layout=ttnn.TILE_LAYOUT).shape == (*shape, 64)
    with pytest.raises(ttnn.DeviceError, match=r"^DFB 'output' has no producer\ninput: no elements"):
        ttnn.embedding(rows, table, layout=ttnn.TILE_LAYOUT)


def test_an_index_behind_the_table(device):
    indices = ttnn.from_numpy(np.array([[1, 50]]), ttnn.uint32, device=device)
    with pytest.raises(ttnn.DeviceError, match="index 50 is behind the 50 rows of the table"):
        ttnn.embedding(indices, ttnn.from_numpy(TABLE, ttnn.bfloat16, device=device))


@pytest.mark.parametrize(
    ("dtype", "shape", "options", "text"),
    [
        (ttnn.uint16, (50, 64), {}, "Input must be UINT32 or BFLOAT16"),
        (ttnn.uint32, (2, 50, 64), {}, "First two dimensions for the weights must be 1 but got 1 and 2"),
        (
            ttnn.uint32, (50, 64), {"dtype": ttnn.float32},
            "Can only typecast output embeddings when producing TILE_LAYOUT output",
        ),
        (
            ttnn.uint32, (50, 64), {"embeddings_type": ttnn.EmbeddingsType.BINARY},
            "Weight tensor must have 2 embeddings for BINARY Embeddings Type",
        ),
    ],
)  # fmt: skip
def test_an_error_begins_as_that_of_the_real_library(device, dtype, shape, options, text):
    indices = ttnn.from_numpy(np.zeros((1, 32)), dtype, device=device)
    table = ttnn.from_numpy(np.zeros(shape), ttnn.bfloat16, device=device)
    with pytest.raises(ttnn.TTSimError, match=f"^{text}"):
        ttnn.embedding(indices, table, **options)


def test_a_strict_device_refuses_axes_that_are_dropped(device):
    indices = ttnn.from_numpy(np.zeros((1, 2, 32)), ttnn.uint32, device=device)
    table = ttnn.from_numpy(TABLE, ttnn.bfloat16, device=device)
    with pytest.raises(ttnn.ArgumentError, match="reshape them to two axes"):
        ttnn.embedding(indices, table)
    with pytest.raises(ttnn.DeviceError, match=r"^Weights tensor must have BFLOAT16 dtype"):
        ttnn.embedding(indices, ttnn.from_numpy(TABLE, ttnn.float32, device=device))


def test_cores_take_rows_of_tiled_indices_in_whole_faces(device):
    """2,000 rows are 125 faces: two for each of 63 of the 64 cores."""
    indices = ttnn.zeros((5, 400), dtype=ttnn.uint32, layout=ttnn.TILE_LAYOUT, device=device)
    table = ttnn.zeros((50, 64), dtype=ttnn.bfloat16, layout=ttnn.ROW_MAJOR_LAYOUT, device=device)
    _, _, nodes = captured(lambda: ttnn.embedding(indices, table), ttnn.graph.RunMode.NO_DISPATCH)
    cores = [node["params"]["core_range_set"] for node in nodes if node["node_type"] == "dataflow_buffer_allocate"]
    assert cores == ["{[0-0 - 7-6], [0-7 - 6-7]}"]


@pytest.mark.parametrize(("shape", "layout"), [((), "ROW_MAJOR"), ((32,), "TILE"), ((7,), "ROW_MAJOR")])
def test_a_table_of_fewer_axes_is_one_row(device, shape, layout):
    """As the real planner takes it; its results are [2, 3, columns]."""
    table = ttnn.from_numpy(np.full(shape, 2.0), ttnn.bfloat16, layout=getattr(ttnn, f"{layout}_LAYOUT"), device=device)
    indices = ttnn.from_numpy(np.zeros((2, 3)), ttnn.uint32, device=device)
    result = ttnn.embedding(indices, table).to_numpy()
    assert np.array_equal(result, np.full((2, 3, *(shape or (1,))), 2.0))


def target_of(device, shape, **options):
    form = {"dtype": ttnn.bfloat16, "layout": ttnn.ROW_MAJOR_LAYOUT, "memory_config": ttnn.L1_MEMORY_CONFIG} | options
    return ttnn.from_numpy(np.zeros(shape), device=device, **form)


@pytest.mark.parametrize("shape", [(2, 32, 64), (64, 64), (2, 1, 32, 64)])
def test_rows_are_written_into_the_callers_tensor(device, shape):
    numbers = np.random.default_rng(4).integers(0, 50, (2, 32))
    indices = ttnn.from_numpy(numbers, ttnn.uint32, device=device)
    table, target = ttnn.from_numpy(TABLE, ttnn.bfloat16, device=device), target_of(device, shape)
    before = device.machine.memory.live()
    result = ttnn.embedding(indices, table, output_tensor=target)
    assert device.machine.memory.live() == before  # nothing was allocated
    assert np.array_equal(result.to_numpy(), TABLE[numbers])
    assert np.array_equal(target.to_numpy().reshape(result.shape), TABLE[numbers])
    assert result.memory_config() == ttnn.L1_MEMORY_CONFIG


def test_a_layout_that_the_target_lacks_is_that_of_a_new_tensor():
    with ttnn.open_device(values="off") as device:
        indices = ttnn.from_numpy(np.zeros((2, 32)), ttnn.uint32, device=device)
        table = ttnn.from_numpy(TABLE, ttnn.bfloat16, device=device)
        result = ttnn.embedding(indices, table, layout=ttnn.TILE_LAYOUT, output_tensor=target_of(device, (2, 32, 64)))
        assert result.layout == ttnn.TILE_LAYOUT
        assert result.memory_config() == ttnn.L1_MEMORY_CONFIG


def test_bits_in_a_target_of_another_form_are_not_simulated(device):
    indices = ttnn.from_numpy(np.zeros((2, 32)), ttnn.uint32, device=device)
    table, target = (
        ttnn.from_numpy(TABLE, ttnn.bfloat16, device=device),
        target_of(device, (2, 32, 64), dtype=ttnn.float32),
    )
    with pytest.raises(ttnn.NotSimulatedError, match="whatever output_tensor is"):
        ttnn.embedding(indices, table, output_tensor=target)


@pytest.mark.parametrize(
    ("shape", "options", "text"),
    [
        ((2, 32, 96), {}, "Attempting to reshape between two shapes with different volumes"),
        ((2, 31, 64), {}, "MeshBuffer must be large enough to hold the tensor."),
        ((2, 31, 64), {"layout": ttnn.TILE_LAYOUT}, None),
        ((2, 33, 64), {}, None),
    ],
)
def test_a_target_of_another_volume_is_seen_where_it_holds_the_rows(shape, options, text):
    with ttnn.open_device(values="off") as device:
        indices = ttnn.from_numpy(np.zeros((2, 32)), ttnn.uint32, device=device)
        table, target = ttnn.from_numpy(TABLE, ttnn.bfloat16, device=device), target_of(device, shape, **options)
        if text is None:
            assert ttnn.embedding(indices, table, output_tensor=target).shape == (2, 32, 64)
            return
        with pytest.raises(ttnn.DeviceError, match=f"^{text}\n"):
            ttnn.embedding(indices, table, output_tensor=target)


@pytest.mark.parametrize(
    ("shard", "text"),
    [
        ((16, 64), "DFB 'weights_staging' has no consumer"),
        ((8, 64), "Embedding output buffer size 1024 B must be divisible by its tile size 2048 B"),
    ],
)
def test_tiles_in_shards_of_rows(shard, text):
    with ttnn.open_device(values="off") as device:
        indices = ttnn.from_numpy(np.zeros((1, 64)), ttnn.uint32, device=device)
        table = ttnn.from_numpy(TABLE, ttnn.bfloat16, device=device)
        place = ttnn.create_sharded_memory_config(
            shard,
            ttnn.CoreGrid(y=1, x=64 // shard[0]),
            ttnn.ShardStrategy.HEIGHT,
            use_height_and_width_as_shard_shape=True,
        )
        target = target_of(device, (1, 64, 64), memory_config=place)
        with pytest.raises(ttnn.DeviceError, match=f"^{text}\n"):
            ttnn.embedding(indices, table, layout=ttnn.TILE_LAYOUT, output_tensor=target)


@pytest.mark.parametrize(
    ("indices", "layout", "memory", "text"),
    [
        ("2x32 uint32", "TILE", "dram height/32x64/2", "DFB 'output' borrows memory from TensorParameter 'output'"),
        ("2x32 uint32", "TILE", "dram height/32x64/1x2", "Invalid DRAM shard grid"),
        ("2x32 uint32", "TILE", None, "bad optional access"),
        ("2x32 uint32", "ROW_MAJOR", None, "MemoryConfig must have Shard Spec specified"),
        ("3x33 uint32 width/3x32/2", "ROW_MAJOR", None, "Changing the last dimension of a sharded tensor is not"),
    ],
)
def test_memory_is_looked_at_in_the_library_s_order(device, indices, layout, memory, text):
    where = ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG if memory is None else place(memory)
    table = ttnn.from_numpy(TABLE, ttnn.bfloat16, device=device)
    with pytest.raises(ttnn.DeviceError, match=f"^{text}"):
        ttnn.embedding(put(device, indices), table, layout=ttnn.Layout[layout], memory_config=where)
