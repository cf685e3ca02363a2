import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    FACE,
    L1_MEMORY_CONFIG,
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    TensorMemoryLayout,
    pad_to_tiles,
    tilize,
    untilize,
)
from device.numbers.formats import BFLOAT16
from device.spec.device_spec import load_spec
from tests.build import place, tensor_spec

PLAIN = '{"buffer_type":1,"created_with_nd_shard_spec":false,"memory_layout":0,"per_core_allocation":false}'
GRID = '[{"end":{"x":3,"y":1},"start":{"x":0,"y":0}}]'


def test_texts_are_those_of_the_real_library():
    config = place("height/32x64/4x2")
    cores = config.shard_spec.grid
    assert L1_MEMORY_CONFIG.to_json() == PLAIN
    assert cores.to_json() == GRID
    assert f'"shard_spec":{{"grid":{GRID},"orientation":0,"shape":[32,64]}}}}' in config.to_json()
    assert MemoryConfig.from_json(config.to_json()) == config
    assert (L1_MEMORY_CONFIG.interleaved, config.interleaved, cores.size()) == (True, False, 1)
    with pytest.raises(ValueError, match="no text of to_json"):
        MemoryConfig.from_json("[]")
    for text, reason in (
        ('{"memory_layout":77,"buffer_type":1}', "77 is not"),
        ('{"buffer_type":1}', "'memory_layout' is m"),
    ):
        with pytest.raises(ArgumentError, match=reason):
            MemoryConfig.from_json(text)


def test_shards_are_assigned_like_those_of_the_real_library():
    """`shape` is a list of its own for each reader; a config has a copy of its shards, which can be assigned there."""
    shards = place("height/32x64/4x2").shard_spec
    shape = shards.shape
    shape[-1] += 64
    assert (shape, shards.shape) == ([32, 128], [32, 64])
    config, before = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, shards), hash(shards)
    shards.shape, shards.orientation = shape, ShardOrientation.COL_MAJOR
    assert (config.shard_spec.shape, shards.shape, hash(shards) == before) == ([32, 64], [32, 128], False)
    config.shard_spec.shape = [64, 64]
    assert config.shard_spec == place("height/64x64/4x2").shard_spec
    for name, value in (("shape", [32]), ("shape", [0, 32]), ("grid", 3), ("orientation", 0)):
        with pytest.raises((TypeError, ValueError)):
            setattr(shards, name, value)


def test_the_shards_of_a_tensor_stay():
    """Whoever gave the config may assign it, and so may who asks the tensor for it."""
    config = place("height/32x64/4x2")
    tensor = TensorSpec((1, 1, 256, 64), BFLOAT16, Layout.TILE, config)
    config.shard_spec.shape = [64, 64]
    tensor.memory_config.reported().shard_spec.shape = [64, 64]
    assert tensor.shards.shape == [32, 64]
    with pytest.raises(ArgumentError, match="a tensor's shards do not change"):
        tensor.shards.shape = [64, 64]


WORMHOLE = load_spec("wormhole_n150")


@pytest.mark.parametrize(
    ("cores", "core", "memory", "banks"),
    [
        ("13x1", "(8, 0)", "L1", 64),
        ("4x10", "(0, 8)", "L1", 64),
        ("10x10 col", "(0, 8)", "L1", 64),
        ("13x1 dram", "(12, 0)", "DRAM", 12),
    ],
)
def test_every_core_of_the_grid_must_be_there(cores, core, memory, banks):
    with pytest.raises(DeviceError) as caught:
        tensor_spec(f"1x1x160x32 tile height/32x32/{cores}").buffer(WORMHOLE)
    first, ours = str(caught.value).splitlines()
    assert first.startswith(
        f"Invalid shard grid: shard core {core} has no {memory} bank on this device, which has {banks} of them. Derive"
    )
    assert first.endswith("legal only while it is claimed via ServiceCoreManager.")
    assert core in ours


def test_block_shards_count_up_to_the_last():
    assert tensor_spec("1x1x160x32 tile block/32x32/9x5").buffer(WORMHOLE).num_cores == 5


SIZES = st.integers(1, 70)


def test_face_order():
    tile = tilize(np.arange(1024).reshape(32, 32))[0, 0]
    assert tile[:16].tolist() == list(range(16))  # row 0 of face (0, 0)
    assert tile[16] == 32  # row 1
    assert tile[256] == 16  # face (0, 1) begins at column 16
    assert tile[512] == 16 * 32  # face (1, 0) begins at row 16
    assert tile[768] == 16 * 32 + 16


@given(SIZES, SIZES, st.lists(st.integers(1, 3), max_size=2))
def test_every_element_is_where_the_definition_puts_it(rows, cols, lead):
    matrix = np.arange(1, np.prod(lead, dtype=int) * rows * cols + 1).reshape(*lead, rows, cols)
    tiles = tilize(matrix)
    row, col = rows - 1, cols // 2
    face = (row % TILE // FACE) * 2 + col % TILE // FACE
    element = face * FACE * FACE + row % FACE * FACE + col % FACE
    assert (tiles[..., row // TILE, col // TILE, element] == matrix[..., row, col]).all()
    assert tiles.sum() == matrix.sum()  # the padding is zero
    assert np.array_equal(untilize(tiles, rows, cols), matrix)
    assert np.array_equal(untilize(tiles), pad_to_tiles(matrix))


def test_whole_tiles_are_not_copied():
    matrix = np.zeros((64, 32), np.float32)
    assert pad_to_tiles(matrix) is matrix
    assert pad_to_tiles(matrix[:33]).shape == (64, 32)
