"""Training on a simulated device: gradients against torch's own."""

import pytest

torch = pytest.importorskip("torch")

import ttsim  # noqa: E402
from ttsim.torch import ConvTranspose2d, conv_transpose2d  # noqa: E402


@pytest.fixture(params=["fast", "exact"])
def device(request):
    with ttsim.open_device(values=request.param) as opened:
        yield opened


def gradients(function, *tensors):
    """The result of a function and the gradients of its tensors for a fixed gradient of the result."""
    own = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    result = function(*own)
    torch.manual_seed(1)
    result.backward(torch.randn_like(result))
    return [result.detach(), *(tensor.grad for tensor in own)]


@pytest.mark.parametrize("lowering", ["frame", "phase"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "padding": 1, "output_padding": 1},
        {"stride": (2, 3), "padding": (0, 1), "dilation": (1, 2), "groups": 2},
        {"stride": 2, "dilation": 3, "output_padding": 2},
    ],
)
def test_gradients_are_torch_s(device, options, lowering):
    torch.manual_seed(0)
    groups = options.get("groups", 1)
    tensors = torch.randn(2, 4, 3, 5), torch.randn(4, 6 // groups, 3, 2), torch.randn(6)
    ours = gradients(lambda *t: conv_transpose2d(*t, device=device, lowering=lowering, **options), *tensors)
    theirs = gradients(lambda *t: torch.nn.functional.conv_transpose2d(*t, **options), *tensors)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-5)


def test_only_the_gradients_that_are_asked_for_are_computed(device):
    source, weight = torch.randn(1, 2, 3, 3), torch.randn(2, 2, 2, 2, requires_grad=True)
    with ttsim.profile(device) as profile:
        conv_transpose2d(source, weight, device=device).sum().backward()
    names = [call.function for call in profile.calls]
    assert names == ["onednn.ConvTranspose", "onednn.ConvTransposeBackwardWeights"]
    assert source.grad is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_types_are_kept(dtype):
    source, weight = torch.ones(1, 2, 3, 3, dtype=dtype), torch.ones(2, 2, 2, 2, dtype=dtype)
    assert conv_transpose2d(source, weight).dtype == dtype


def test_an_image_needs_no_batch():
    source, weight = torch.randn(2, 3, 3), torch.randn(2, 4, 2, 2)
    assert torch.equal(conv_transpose2d(source, weight), conv_transpose2d(source[None], weight)[0])


def test_other_types_and_sizes_are_refused():
    with pytest.raises(ValueError, match="src must be of type"):
        conv_transpose2d(torch.zeros(1, 1, 2, 2, dtype=torch.float64), torch.zeros(1, 1, 1, 1, dtype=torch.float64))
    with pytest.raises(ValueError, match="stride must be one integer or two, not"):
        conv_transpose2d(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 1, 1), stride=(1, 1, 1))


def test_a_module_takes_torch_s_parameters_and_output_size():
    torch.manual_seed(0)
    theirs = torch.nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2)
    ours = ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2)
    ours.load_state_dict(theirs.state_dict())
    source = torch.randn(2, 4, 5, 4)
    for size in (None, [10, 7], [9, 8]):
        torch.testing.assert_close(ours(source, size), theirs(source, size), rtol=1e-5, atol=1e-5)


def test_a_layer_can_be_trained(device):
    torch.manual_seed(0)
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
