"""torch's modules on a simulated device: training, parameters, copies."""

from copy import deepcopy

import pytest

torch = pytest.importorskip("torch")

import ttsim  # noqa: E402
from ttsim.torch import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d  # noqa: E402

MODULES = [ConvTranspose1d, ConvTranspose2d, ConvTranspose3d]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_takes_torch_s_parameters_and_output_size(module):
    theirs = getattr(torch.nn, module.__name__)(4, 6, 3, 2, 1, 0, 2)
    ours = module(4, 6, 3, 2, 1, 0, 2)
    assert ours.load_state_dict(theirs.state_dict()) == theirs.load_state_dict(ours.state_dict())
    assert repr(ours) == repr(theirs)
    assert isinstance(ours, type(theirs))
    sizes = (5, 4, 2)[: len(ours.kernel_size)]
    source = torch.randn(2, 4, *sizes)
    for size in (None, [2 * n for n in sizes], [2 * n - 1 for n in sizes]):
        torch.testing.assert_close(ours(source, size), theirs(source, size), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("module", MODULES)
def test_other_padding_modes_are_refused(module):
    with pytest.raises(ttsim.ArgumentError, match=f'^Only "zeros" padding mode is supported for {module.__name__}'):
        module(2, 2, 3, padding_mode="reflect")


@pytest.mark.parametrize("values", ["fast", "exact"])
def test_a_layer_can_be_trained(values):
    torch.manual_seed(0)
    with ttsim.open_device(values=values) as device:
        layer = ConvTranspose2d(3, 2, 4, stride=2, padding=1, simulator=device)
        source, target = torch.randn(1, 3, 4, 4), torch.randn(1, 2, 8, 8)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
        losses = []
        for _ in range(10):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(layer(source), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] * 0.8


def test_a_copy_has_parameters_of_its_own_on_the_same_device():
    with ttsim.open_device(values="fast") as device:
        network = torch.nn.Sequential(ConvTranspose1d(2, 2, 2, simulator=device), torch.nn.ReLU())
        copied = deepcopy(network)
        assert copied[0].simulator is device
        source = torch.randn(1, 2, 3)
        assert torch.equal(copied(source), network(source))
        with torch.no_grad():
            copied[0].weight.zero_()
        assert network[0].weight.any()
