"""A rotary embedding: numbers against float64, buffers as recorded, errors."""

import numpy as np
import pytest

import ttsim as ttnn

ROTARY = ttnn.experimental.rotary_embedding


def on(device, values, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT):
    return ttnn.from_numpy(np.asarray(values, np.float32), dtype, layout=layout, device=device)


@pytest.mark.parametrize("values", ["exact", "fast"])
@pytest.mark.parametrize(("columns", "token"), [(64, None), (32, None), (128, 7)])
def test_halves_are_exchanged(values, columns, token):
    """Each row takes its own row of the tables, or all rows take that of a token; padded rows are results, too."""
    rng = np.random.default_rng(3)
    x, (cosines, sines) = rng.normal(size=(1, 2, 40, columns)), rng.normal(size=(2, 1, 1, 64, columns))
    with ttnn.open_device(values=values) as device:
        result = ROTARY(on(device, x), on(device, cosines), on(device, sines), token).to_numpy().astype(float)
    assert result.shape == (1, 2, 64, columns)
    cosines, sines = (table[:, :, :40] if token is None else table[:, :, [7]] for table in (cosines, sines))
    turned = np.concatenate([-x[..., columns // 2 :], x[..., : columns // 2]], -1)
    assert np.abs(result[:, :, :40] - (x * cosines + turned * sines)).max() < 0.08


def circular_buffers(call):
    ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NORMAL)
    call()
    nodes = ttnn.graph.end_graph_capture()
    return [int(node["params"]["size"]) for node in nodes if node["node_type"] == "circular_buffer_allocate"]


@pytest.mark.parametrize(
    ("columns", "dtype", "token", "sizes"),
    [
        (64, ttnn.bfloat16, None, [8192, 8192, 16384, 16384, 2048, 2048, 4096, 4096, 8192]),
        (32, ttnn.bfloat8_b, None, [2176, 1088, 8192, 8192, 1088, 1088, 1088, 2176]),
        (32, ttnn.float32, None, [8192, 2048, 8192, 8192, 4096, 4096, 4096, 8192]),
        (64, ttnn.bfloat8_b, 3, [4352, 4352, 8192, 8192, 2048, 1088, 4096, 4096, 4352, 8192, 8192, 4096, 4096]),
    ],
)
def test_buffers_of_the_real_library(device, columns, dtype, token, sizes):
    x = on(device, np.zeros((1, 8, 32, columns)), dtype)
    table = on(device, np.zeros((1, 1, 64, columns)), ttnn.float32)
    assert circular_buffers(lambda: ROTARY(x, table, table, token)) == sizes


def test_rows_are_tilized_first_and_shards_follow_from_the_tensor(device):
    """8 heads of 4 rows of tiles lie on 32 cores."""
    x, table = (
        on(device, np.zeros((1, 8, 128, 64)), layout=ttnn.ROW_MAJOR_LAYOUT),
        on(device, np.zeros((1, 1, 128, 64))),
    )
    with ttnn.profile(device) as profiled:
        result = ROTARY(x, table, table, memory_config=ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG)
    ran = [op.name for call in profiled.report().calls for op in call.operations]
    assert ran == ["TilizeWithValPaddingDeviceOperation", "RotaryEmbeddingDeviceOperation"]
    shards = result.memory_config().shard_spec
    assert (shards.shape, shards.grid.num_cores()) == ([32, 64], 32)


def test_integers_are_planned_and_their_numbers_refused():
    """Tables are looked at first; a device that calculates no numbers has the result."""
    for values in ("off", "exact"):
        with ttnn.open_device(values=values) as device:
            x = on(device, np.zeros((1, 1, 32, 64)), ttnn.uint16)
            tables = [on(device, np.zeros((1, 1, rows, 64))) for rows in (32, 32, 64)]
            with pytest.raises(ttnn.DeviceError, match=r"^Cosine and Sine cache dimensions must match\."):
                ROTARY(x, *tables[1:])
            if values == "off":
                assert ROTARY(x, *tables[:2]).dtype is ttnn.uint16
            else:
                with pytest.raises(ttnn.NotSimulatedError, match="rotary_embedding: ttsim does not rotate integers"):
                    ROTARY(x, *tables[:2])


@pytest.mark.parametrize(
    ("shapes", "token", "line"),
    [
        (((1, 1, 32, 96),) * 3, None, "Input X dimension (96) must be either 32 (single tile) or divisible by 64"),
        (((1, 1, 32, 64), (1, 1, 32, 64), (1, 1, 64, 64)), None, "Cosine and Sine cache dimensions must match."),
        (((1, 1, 32, 64), (1, 1, 32, 64), (3, 1, 1, 32, 64)), None, "Cosine and Sine cache dimensions must match."),
        (((1, 1, 32, 64), (1, 1, 32, 128), (1, 1, 32, 128)), None, "Cosine cache dimensions must match input dim"),
        (((1, 1, 61, 64), (1, 1, 60, 64), (1, 1, 60, 64)), None, "Cosine cache must cover the input sequence length."),
        (((1, 1, 32, 64), (1, 1, 60, 64), (1, 1, 60, 64)), 60, "Cosine cache must cover the token index. Token index"),
        (
            ((2, 1, 32, 64), (1, 1, 60, 64), (1, 1, 60, 64)),
            6,
            "When token index is provided, sequence length must be 1",
        ),
    ],
)
def test_errors_begin_as_those_of_the_real_library(device, shapes, token, line):
    with pytest.raises(ttnn.DeviceError) as refused:
        ROTARY(*(on(device, np.zeros(shape)) for shape in shapes), token)
    assert str(refused.value).startswith(line)


def test_shards_in_dram_hold_no_buffers(device):
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(0, 0))])
    shards = ttnn.ShardSpec(cores, (32, 64), ttnn.ShardOrientation.ROW_MAJOR)
    place = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.DRAM, shards)
    table = on(device, np.zeros((1, 1, 32, 64)))
    x = ttnn.to_memory_config(table, place)
    with pytest.raises(ttnn.DeviceError, match=r"^Only L1 buffers can have an associated circular buffer!"):
        ROTARY(x, table, table)


@pytest.mark.parametrize(
    ("dtype", "bytes_"), [(ttnn.bfloat4_b, 14272), (ttnn.int32, 38912), (ttnn.uint32, 38912), (ttnn.uint8, 17408)]
)
def test_a_matrix_of_bfloat16_exchanges_columns_of_other_formats(device, dtype, bytes_):
    """As ttnn 0.81.1 plans them."""
    x, table = (ttnn.zeros((1, 1, 64, 32), kind, ttnn.TILE_LAYOUT, device) for kind in (dtype, ttnn.bfloat16))
    assert (
        ttnn.graph.query_op_constraints(ROTARY, device, x, table, table).resource_usage.cb_peak_size_per_core == bytes_
    )
