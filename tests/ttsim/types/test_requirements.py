import numpy as np
import pytest

import ttsim as ttnn

ONES = np.ones((1, 1, 32, 32), np.float32)


@pytest.fixture
def device():
    with ttnn.open_device(l1_small_size=8192) as opened:
        yield opened


@pytest.fixture
def x():
    return ttnn.Tensor(ONES, ttnn.bfloat16)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d, x: ttnn.Tensor(ONES, ttnn.bfloat16, ttnn.TILE_LAYOUT), "Tensor: device must be a Device"),
        (lambda d, x: ttnn.Tensor(ONES, ttnn.bfloat16, d, d), "Tensor: layout must be a Layout"),
        (lambda d, x: ttnn.Tensor(ONES, ttnn.bfloat16, d, None, 5), "Tensor: mem_config must be a MemoryConfig, not 5"),
        (lambda d, x: x.to(d, 5), "to: mem_config must be a MemoryConfig, not 5"),
        (lambda d, x: ttnn.from_torch(ONES, 5), "from_torch: dtype must be a DataType, not 5"),
        (lambda d, x: ttnn.to_torch(5), "to_torch: tensor must be a Tensor, not 5"),
        (lambda d, x: ttnn.to_device(x, 5), "to_device: device must be a Device, not 5"),
        (lambda d, x: ttnn.from_device(5), "from_device: tensor must be a Tensor, not 5"),
        (lambda d, x: ttnn.to_layout(x, 5), "to_layout: layout must be a Layout, not 5"),
        (lambda d, x: ttnn.to_dtype(x, 5), "to_dtype: dtype must be a DataType, not 5"),
        (lambda d, x: ttnn.to_memory_config(x, 5), "to_memory_config: memory_config must be a MemoryConfig, not 5"),
        (lambda d, x: ttnn.deallocate(5), "deallocate: tensor must be a Tensor, not 5"),
        (lambda d, x: ttnn.reshape(5, (1,)), "reshape: tensor must be a Tensor, not 5"),
        (lambda d, x: ttnn.profile(5).__enter__(), "profile: device must be a Device, not 5"),
        (lambda d, x: ttnn.ShardSpec(5, [1, 1]), "ShardSpec: grid must be a CoreRangeSet, not 5"),
        (lambda d, x: ttnn.ShardSpec(ttnn.CoreRangeSet(), [1, 1], 5), "ShardSpec: orientation must be a ShardOrient"),
        (lambda d, x: ttnn.MemoryConfig(5), "MemoryConfig: memory_layout must be a TensorMemoryLayout, not 5"),
        (lambda d, x: ttnn.MemoryConfig(buffer_type=5), "MemoryConfig: buffer_type must be a BufferType, not 5"),
        (lambda d, x: ttnn.MemoryConfig(shard_spec=5), "MemoryConfig: shard_spec must be a ShardSpec, not 5"),
        (lambda d, x: ttnn.CoreRange(5, 5), "CoreRange: start and end must be CoreCoord, not 5 and 5"),
    ],
)
def test_an_argument_of_another_type_is_named(call, message, device, x):
    with pytest.raises(TypeError) as caught:
        call(device, x)
    assert str(caught.value).startswith(message)


def test_ragged_lists_are_refused():
    with pytest.raises(ValueError, match=r"^Tensor: the rows of nested lists must be of one length"):
        ttnn.Tensor([[1], [1, 2]], ttnn.bfloat16)
