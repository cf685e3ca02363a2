"""ttnn.embedding as users call it: numbers, shapes, refusals."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.ttsim.api.calls import captured

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
