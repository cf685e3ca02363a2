"""torch.compile leaves the simulator out of its graphs; torch.save writes host tensors."""

import io

import numpy as np
import pytest

import ttsim

torch = pytest.importorskip("torch")
simulated = pytest.importorskip("ttsim.torch")


def decoder(x, weight, device):
    return torch.relu(simulated.conv_transpose2d(x * 2, weight, stride=2, device=device)) + 1


def on_the_device(x, weight, device):
    tensor = ttsim.from_torch(x * 2, dtype=ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device)
    return ttsim.to_torch(ttsim.relu(tensor) + ttsim.Tensor(weight, ttsim.bfloat16, device, ttsim.TILE_LAYOUT)) + 1


def with_onednn(x, weight, device):
    window = {"strides": [2, 2], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}
    arrays = ((x * 2).numpy(), weight.numpy())
    return torch.from_numpy(ttsim.onednn.conv_transpose(*arrays, **window, data_format="NCX", weights_format="IOX")) + 1


@pytest.mark.slow
@pytest.mark.filterwarnings("default::UserWarning")  # of torch, on gradients of tensors between graphs
@pytest.mark.parametrize("function", [decoder, on_the_device, with_onednn])
def test_compiled_functions_give_what_they_give_uncompiled(function):
    traced = []

    def backend(graph, inputs):
        traced.append(graph)
        return graph.forward

    shapes = [(1, 2, 4, 4), (2, 3, 2, 2)] if function is not on_the_device else [(32, 32)] * 2
    tensors = [torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape) / 8 for shape in shapes]
    with ttsim.open_device(values="fast", l1_small_size=32768) as device:
        expected = function(*tensors, device)
        assert torch.equal(torch.compile(function, backend=backend)(*tensors, device), expected)
        assert traced, "what is around the simulator is compiled"
        if function is decoder:
            tensors[0].requires_grad_()
            torch.compile(function, backend=backend)(*tensors, device).sum().backward()
            assert tensors[0].grad.shape == shapes[0]


def test_tensors_are_saved_from_the_host():
    file, tensor = io.BytesIO(), ttsim.Tensor(np.ones((2, 2), np.float32), ttsim.bfloat16)
    torch.save({"tensor": tensor}, file)
    file.seek(0)
    assert torch.load(file, weights_only=False)["tensor"].to_list() == [[1, 1], [1, 1]]
    with pytest.raises(ttsim.DeviceError, match=r"a tensor on a device cannot be pickled; bring it to the host first"):
        torch.save(tensor.to(ttsim.open_device()), io.BytesIO())
