"""torch's functions on a simulated device: types, sizes, and what is refused."""

import pytest

torch = pytest.importorskip("torch")

import ttsim  # noqa: E402
from tests.ttsim.api.calls import refusal  # noqa: E402
from ttsim.torch import conv_transpose1d, conv_transpose2d, conv_transpose3d  # noqa: E402

SOURCE, WEIGHT, BIAS = torch.ones(1, 2, 3, 3), torch.ones(2, 2, 2, 2), torch.ones(2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_types_are_kept(dtype):
    assert conv_transpose2d(SOURCE.to(dtype), WEIGHT.to(dtype)).dtype == dtype


@pytest.mark.parametrize("function", [conv_transpose1d, conv_transpose2d, conv_transpose3d])
def test_an_image_needs_no_batch(function):
    rank = int(function.__name__[-2])
    torch.manual_seed(0)
    source, weight = torch.randn(2, *(3, 2, 2)[:rank]), torch.randn(2, 4, *(2, 1, 2)[:rank])
    assert torch.equal(function(source, weight), function(source[None], weight)[0])


def test_no_image_has_gradients_of_zero():
    weight, bias = WEIGHT.clone().requires_grad_(), BIAS.clone().requires_grad_()
    result = conv_transpose2d(SOURCE[:0], weight, bias)
    assert result.shape == (0, 2, 4, 4)
    result.sum().backward()
    assert not weight.grad.any()
    assert not bias.grad.any()


def test_values_off_gives_no_numbers():
    with ttsim.open_device(values="off") as device:
        assert conv_transpose2d(SOURCE, WEIGHT, device=device).isnan().all()


@pytest.mark.parametrize("two", [2, [2], (2, 2), torch.Size([2, 2])])
def test_one_number_counts_for_all_axes(two):
    expected = torch.nn.functional.conv_transpose2d(SOURCE, WEIGHT, stride=two, output_padding=1)
    assert torch.equal(conv_transpose2d(SOURCE, WEIGHT, stride=two, output_padding=1), expected)


KINDS = "torch.float32, torch.float16, torch.bfloat16"
TYPES = f"Argument: conv_transpose2d: input must be of type {KINDS} for precision 'ieee',"
REFUSED = [
    ([SOURCE.numpy(), WEIGHT], {}, "ArgumentType: conv_transpose2d: input must be a torch.Tensor, not ndarray"),
    ([SOURCE, WEIGHT, [1.0, 1.0]], {}, "ArgumentType: conv_transpose2d: bias must be a torch.Tensor, not list"),
    ([SOURCE, WEIGHT], {"stride": True}, "ArgumentType: conv_transpose2d: stride must be an integer or 2 of them, n"),
    ([SOURCE, WEIGHT], {"padding": "same"}, "ArgumentType: conv_transpose2d: padding must be an integer or 2 of them"),
    ([SOURCE[0, 0], WEIGHT], {}, "Argument: Expected 3D (unbatched) or 4D (batched) input to conv_transpose2d, but"),
    ([SOURCE, WEIGHT[0]], {}, "Argument: conv_transpose2d: weight must have 4 axes, [C, O / groups, *kernel], not the"),
    ([SOURCE.int(), WEIGHT.int()], {}, f"{TYPES} not torch.int32"),
    ([SOURCE, WEIGHT.bfloat16()], {},
     "Argument: conv_transpose2d: weight must be of the type of input, torch.float32, not torch.bfloat16"),
    ([SOURCE.half(), WEIGHT.half(), BIAS], {}, "Argument: conv_transpose2d: bias must be of the type of input, "),
    ([SOURCE.double(), WEIGHT.double()], {}, f"{TYPES} not torch.float64; convert all tensors, or for gradcheck in"),
    ([SOURCE, WEIGHT], {"precision": "float64"}, "Argument: conv_transpose2d: input must be of type torch.float64 f"),
    ([SOURCE, WEIGHT], {"precision": None}, "Argument: ConvTranspose: precision must be one of ieee, device, float64"),
    ([SOURCE, WEIGHT], {"stride": (1, 1, 1)}, "Argument: expected stride to be a single integer value or a list of"),
    ([SOURCE, WEIGHT], {"stride": 0}, "Argument: conv_transpose2d: stride must be at least 1 on every axis, not 0"),
    ([SOURCE, WEIGHT], {"padding": -1}, "Argument: conv_transpose2d: padding must be at least 0 on every axis, not -1"),
    ([SOURCE, WEIGHT], {"output_padding": (0, 1)},
     "Argument: output padding must be smaller than either stride or dilation\nconv_transpose2d: on every axis, and "
     "output_padding is [0, 1] with stride [1, 1] and dilation [1, 1]"),
    ([SOURCE, WEIGHT], {"groups": 3}, "Argument: ConvTranspose: groups must divide"),
]  # fmt: skip


@pytest.mark.parametrize(("tensors", "options", "text"), REFUSED, ids=range(len(REFUSED)))
def test_what_breaks_a_rule_is_refused(tensors, options, text):
    error = refusal(lambda: conv_transpose2d(*tensors, **options))
    assert error.startswith(text), error
