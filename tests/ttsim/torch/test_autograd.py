"""Gradients of any order on a simulated device, against torch's own."""

import pytest

torch = pytest.importorskip("torch")

import ttsim  # noqa: E402
from ttsim.torch import conv_transpose1d, conv_transpose2d, conv_transpose3d  # noqa: E402

FUNCTIONS = {1: conv_transpose1d, 2: conv_transpose2d, 3: conv_transpose3d}
THEIRS = {rank: getattr(torch.nn.functional, f"conv_transpose{rank}d") for rank in FUNCTIONS}
LAYERS = [
    (1, (5,), (3,), {"stride": 3, "padding": 1, "output_padding": 2, "groups": 2}),
    (2, (3, 5), (3, 2), {}),
    (2, (3, 5), (3, 2), {"stride": (2, 3), "padding": (0, 1), "dilation": (1, 2), "groups": 2}),
    (2, (3, 5), (3, 2), {"stride": 2, "dilation": 3, "output_padding": 2}),
    (3, (2, 3, 2), (2, 1, 2), {"stride": (2, 1, 2), "padding": (1, 0, 0)}),
]


@pytest.fixture(params=["fast", "exact"])
def device(request):
    with ttsim.open_device(values=request.param) as opened:
        yield opened


def tensors(size, kernel, groups=1, **given):
    """Source, weight and bias of 2 images, from 4 channels to 6."""
    torch.manual_seed(0)
    result = torch.randn(2, 4, *size), torch.randn(4, 6 // groups, *kernel), torch.randn(6)
    return [tensor.requires_grad_() for tensor in result]


def orders(function, given):
    """The result, its gradients, and theirs, each for a fixed gradient of what it is made from."""
    torch.manual_seed(1)
    result = function(*given)
    first = torch.autograd.grad(result, given, torch.randn_like(result), create_graph=True)
    second = torch.autograd.grad(first[:2], given[:2], [torch.randn_like(tensor) for tensor in first[:2]])
    return [result, *first, *second]


@pytest.mark.parametrize("lowering", ["zero_insertion", "phase"])
@pytest.mark.parametrize(("rank", "size", "kernel", "options"), LAYERS)
def test_gradients_and_their_gradients_are_torch_s(device, rank, size, kernel, options, lowering):
    given = tensors(size, kernel, **options)
    ours = orders(lambda *t: FUNCTIONS[rank](*t, device=device, lowering=lowering, **options), given)
    theirs = orders(lambda *t: THEIRS[rank](*t, **options), given)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=3e-5)


def names(profile):
    return [call.function.removeprefix("onednn.ConvTranspose") for call in profile.calls]


def test_gradients_of_gradients_are_calls_on_the_device(device):
    source, weight, outer = (torch.randn(shape, requires_grad=True) for shape in ((1, 2, 3), (2, 2, 2), (1, 2, 4)))
    with ttsim.profile(device) as profile:
        result = conv_transpose1d(source, weight.detach(), device=device)
        (of_source,) = torch.autograd.grad(result, source, outer, create_graph=True)
        torch.autograd.grad(of_source.sum(), outer)
        result = conv_transpose1d(source.detach(), weight, device=device)
        (of_weight,) = torch.autograd.grad(result, weight, outer, create_graph=True)
        torch.autograd.grad(of_weight.sum(), outer)
    assert names(profile) == ["", "BackwardData", "", "", "BackwardWeights", ""]


@pytest.mark.parametrize("lowering", ["zero_insertion", "phase"])
def test_derivatives_in_float64_are_quotients_of_differences(lowering):
    rank, size, kernel, options = LAYERS[2]
    given = [tensor.detach().double().requires_grad_() for tensor in tensors(size, kernel, **options)]
    with ttsim.open_device(values="fast") as device:

        def layer(*inputs):
            return FUNCTIONS[rank](*inputs, device=device, precision="float64", lowering=lowering, **options)

        torch.testing.assert_close(layer(*given), THEIRS[rank](*given, **options), rtol=1e-13, atol=1e-13)
        assert torch.autograd.gradcheck(layer, given, fast_mode=True)
        assert torch.autograd.gradgradcheck(layer, given, fast_mode=True)


def test_no_graph_is_made_where_none_is_wanted():
    source, weight = torch.randn(1, 2, 3), torch.randn(2, 2, 2, requires_grad=True)
    with torch.no_grad():
        assert conv_transpose1d(source, weight).grad_fn is None
    assert conv_transpose1d(source, weight.detach()).grad_fn is None
    assert conv_transpose1d(source, weight).requires_grad


def test_a_weight_that_changes_before_the_backward_pass_is_refused():
    weight = torch.randn(2, 2, 2, requires_grad=True)
    result = conv_transpose1d(torch.randn(1, 2, 3, requires_grad=True), weight)
    with torch.no_grad():
        weight.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_vmap_is_refused():
    def layer(one):
        return conv_transpose1d(one, torch.ones(2, 2, 2))

    cases = (torch.func.vmap(layer), torch.ones(3, 1, 2, 3)), (torch.func.jacrev(layer), torch.ones(2, 3))
    for mapped, given in cases:
        with pytest.raises(ttsim.ArgumentError, match=r"^conv_transpose1d: torch\.vmap, and what is built on it"):
            mapped(given)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # of torch, by torch
def test_forward_mode_is_refused():
    forward, source = torch.autograd.forward_ad, torch.ones(2, 3)
    with forward.dual_level(), pytest.raises(ttsim.ArgumentError, match=r"^conv_transpose1d: there is no forward-mode"):
        conv_transpose1d(forward.make_dual(source, source), torch.ones(2, 2, 2))
