import numpy as np
import pytest

import ttsim
from device.errors import DeviceError
from tests.shards import high


def test_numpy_there_and_back() -> None:
    with ttsim.open_device() as device:
        values = np.arange(8, dtype=np.float32).reshape(2, 4)
        tensor = ttsim.from_numpy(values, ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device)
        assert ttsim.is_tensor_storage_on_device(tensor)
        np.testing.assert_array_equal(ttsim.from_device(tensor).to_numpy(), values)
        assert ttsim.reshape(tensor, (4, 2)).shape == (4, 2)
        ttsim.deallocate(tensor)
        assert not tensor.is_allocated()


def test_arguments_that_contradict_each_other() -> None:
    with pytest.raises(DeviceError, match=r"^ttnn.from_torch: bfloat8_b requires TILE_LAYOUT!"):
        ttsim.from_torch(np.ones((2, 2)), ttsim.bfloat8_b, layout=ttsim.ROW_MAJOR_LAYOUT)
    with pytest.raises(DeviceError, match=r"^device must be specified if memory_config is specified"):
        ttsim.as_tensor(np.ones((2, 2)), memory_config=ttsim.L1_MEMORY_CONFIG)


def test_torch_there_and_back() -> None:
    torch = pytest.importorskip("torch")
    values = torch.tensor([[1.0, 1.00390625], [-2.5, 3.0]])
    assert ttsim.from_torch(values).dtype is ttsim.float32
    short = ttsim.from_torch(values.to(torch.bfloat16))
    assert short.dtype is ttsim.bfloat16
    assert torch.equal(ttsim.to_torch(short), values.to(torch.bfloat16))
    assert ttsim.to_torch(ttsim.from_torch(values, ttsim.bfloat8_b)).dtype is torch.float32
    assert ttsim.to_torch(short, dtype=torch.float32).dtype is torch.float32
    assert torch.equal(ttsim.from_torch(values).to_torch(), values)


def test_block_floats_of_rows_are_refused_before_places() -> None:
    with ttsim.open_device() as device:
        tensor = ttsim.from_numpy(np.zeros((32, 32), np.float32), ttsim.bfloat16, device=device)
        place = high((16, 32), 2)
        with pytest.raises(DeviceError, match=r"^Only TILE layout is supported for BFLOAT8_B dtype!"):
            ttsim.typecast(tensor, ttsim.bfloat8_b, memory_config=place)
