import pytest

import ttsim
from device.memory.layouts import TensorSpec
from device.numbers.formats import BFLOAT16

SHAPE = (1, 1, 60, 128)
SHARDS = ttsim.ShardSpec(
    ttsim.CoreRangeSet([ttsim.CoreRange(ttsim.CoreCoord(0, 0), ttsim.CoreCoord(1, 0))]),
    (32, 128),
    ttsim.ShardOrientation.ROW_MAJOR,
)
HEIGHT, L1 = ttsim.TensorMemoryLayout.HEIGHT_SHARDED, ttsim.BufferType.L1
IN_SHARDS = ttsim.MemoryConfig(HEIGHT, L1, SHARDS)


@pytest.mark.parametrize(
    ("place", "named", "config"),
    [
        ((), {}, ttsim.DRAM_MEMORY_CONFIG),
        ((L1,), {}, ttsim.L1_MEMORY_CONFIG),
        ((L1, ttsim.Tile()), {}, ttsim.L1_MEMORY_CONFIG),
        ((), {"buffer_type": L1, "tile": None}, ttsim.L1_MEMORY_CONFIG),
        ((HEIGHT, SHARDS, L1), {}, IN_SHARDS),
        (
            (),
            {"memory_layout": HEIGHT, "shard_spec": SHARDS, "buffer_type": L1},
            ttsim.MemoryConfig(HEIGHT, L1, SHARDS),
        ),
        ((ttsim.L1_MEMORY_CONFIG,), {}, ttsim.L1_MEMORY_CONFIG),
        ((), {"memory_config": ttsim.L1_MEMORY_CONFIG}, ttsim.L1_MEMORY_CONFIG),
    ],
)
def test_each_form_describes_the_tensor_that_lies_there(place, named, config):
    spec = ttsim.TensorSpec(SHAPE, ttsim.bfloat16, ttsim.TILE_LAYOUT, *place, **named)
    same = TensorSpec(SHAPE, BFLOAT16, ttsim.TILE_LAYOUT, config)
    assert spec == same
    assert same == spec
    assert hash(spec) == hash(same)
    assert (spec.dtype, spec.padded_shape, spec.tile) == (ttsim.bfloat16, (1, 1, 64, 128), ttsim.Tile())
    assert ttsim.TensorSpec.of(same) == spec
    assert spec != same.changed(shape=(1, 1, 61, 128))


@pytest.mark.parametrize(
    ("place", "named"),
    [((3,), {}), ((L1,), {"buffer_type": L1}), ((), {"memory": L1}), ((L1, None, None), {}), ((HEIGHT, L1), {})],
)
def test_other_arguments_are_refused(place, named):
    with pytest.raises(ttsim.ArgumentTypeError, match="TensorSpec"):
        ttsim.TensorSpec(SHAPE, ttsim.bfloat16, ttsim.TILE_LAYOUT, *place, **named)


def test_no_side_is_negative():
    with pytest.raises(ttsim.ArgumentTypeError, match="no side of shape may be negative"):
        ttsim.TensorSpec((1, -1), ttsim.bfloat16, ttsim.TILE_LAYOUT)
