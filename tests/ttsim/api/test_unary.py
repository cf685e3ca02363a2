"""Functions of one tensor as users call them."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.shards import high


def placed(device, array):
    return ttnn.from_torch(np.asarray(array, np.float32), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)


def test_slopes_are_given_by_position_or_name(device):
    x = placed(device, np.full((1, 1, 32, 32), -4.0))
    assert ttnn.leaky_relu(x, 0.5).to_numpy().max() == -2.0
    assert ttnn.leaky_relu(x, negative_slope=0.25).to_numpy().max() == -1.0


def test_the_accurate_sigmoid_has_two_names(device):
    x = placed(device, np.linspace(-4, 4, 1024).reshape(1, 1, 32, 32))
    usual = ttnn.sigmoid(x, vector_mode=4, mode=ttnn.SigmoidMode.Accurate).to_numpy()
    ttnn.graph.begin_graph_capture()
    accurate = ttnn.sigmoid_accurate(x)
    trace = ttnn.graph.end_graph_capture()
    assert np.array_equal(accurate.to_numpy(), usual)
    assert ttnn.graph.extract_calltrace(trace)[:2] == ["ttnn.sigmoid_accurate", "UnaryDeviceOperation"]
    assert "circular_buffer_allocate" not in [one["node_type"] for one in trace]  # one program for both
    with pytest.raises(ttnn.ArgumentError, match=r"sigmoid: mode=SigmoidMode.FastApproximate is not simulated"):
        ttnn.sigmoid(x, mode=ttnn.SigmoidMode.FastApproximate)


def test_the_negative_is_exact(device):
    values = np.linspace(-4, 4, 1024).reshape(1, 1, 32, 32)
    x = placed(device, values)
    assert np.array_equal(ttnn.neg(x).to_numpy(), -x.to_numpy())


def test_numbers_with_a_default_are_keywords_alone(device):
    x = ttnn.from_torch(np.ones((32, 32), np.float32), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    assert ttnn.elu(x, alpha=2.0).shape == ttnn.leaky_relu(x, 0.1).shape == [32, 32]
    with pytest.raises(ttnn.ArgumentTypeError, match="1 by position are too many"):
        ttnn.elu(x, 1.0)


def test_vectors_of_rows_in_shards_are_refused(device):
    x = ttnn.from_torch(np.zeros(64, np.float32), ttnn.bfloat16, device=device, memory_config=high((1, 64), 2))
    with pytest.raises(ttnn.DeviceError, match=r"^Rank must be at least 2\n"):
        ttnn.relu(x)
    assert ttnn.relu(ttnn.to_memory_config(x, ttnn.DRAM_MEMORY_CONFIG)).shape == [64]
