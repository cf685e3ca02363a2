"""Functions of torch that compute ttnn's operations, and correlations, for numbers worked by hand."""

from typing import Any

import pytest

import ttsim as ttnn
from ttsim.runtime.golden import get_golden_function_for_activation

torch = pytest.importorskip("torch")


def golden(function: Any, *args: Any, **kwargs: Any) -> Any:
    operands = [torch.tensor(value) if isinstance(value, list) else value for value in args]
    return ttnn.get_golden_function(function)(*operands, **kwargs)


@pytest.mark.parametrize(
    ("name", "args", "wanted"),
    [
        ("addalpha", ([1.0, 2.0], [3.0, 4.0], 2.0), [7.0, 10.0]),
        ("div_no_nan", ([1.0, 2.0], [0.0, 4.0]), [0.0, 0.5]),
        ("eqz", ([0.0, 2.0],), [True, False]),
        ("hardmish", ([-3.0, -1.0, 4.0],), [0.0, -0.5, 4.0]),
        ("logical_right_shift", ([-10], 1), [2**31 - 5]),
        ("mac", ([2.0], [3.0], [4.0]), [10.0]),
        ("max", ([[1.0, 5.0], [7.0, 2.0]], -1), [5.0, 7.0]),
        ("maximum", ([1.0, 3.0], 2.0), [2.0, 3.0]),
        ("polyval", ([2.0], [1.0, 0.0, 3.0]), [7.0]),
        ("prelu", ([-4.0, 4.0], 0.25), [-1.0, 4.0]),
        ("reglu", ([1.0, 2.0, 3.0, -1.0],), [3.0, 0.0]),
        ("relu_max", ([-1.0, 1.0, 9.0], 6.0), [0.0, 1.0, 6.0]),
        ("rpow", ([3.0], 2.0), [8.0]),
        ("rsub_", ([1.0], [5.0]), [4.0]),
        ("where", ([0.0, 2.0], [1.0, 1.0], 5.0), [5.0, 1.0]),
        ("pow", ([2.0], 3), [8.0]),  # torch's own
    ],
)
def test_numbers(name: str, args: tuple[Any, ...], wanted: list[Any]) -> None:
    result = golden(getattr(ttnn, name), *args)
    assert result.tolist() == wanted


def test_what_places_a_result_is_ignored_and_activations_are_applied() -> None:
    relu = ttnn.UnaryWithParam(ttnn.UnaryOpType.LEAKY_RELU, 0.5)
    options = {"memory_config": ttnn.L1_MEMORY_CONFIG, "dtype": ttnn.bfloat16}
    assert golden(ttnn.add, [1.0, 2.0], [-5.0, 2.0], activations=[relu], **options).tolist() == [-2.0, 4.0]
    assert golden(ttnn.mul, [4.0], [-1.0], input_tensor_b_activations=[ttnn.UnaryOpType.RELU]).tolist() == [0.0]


def test_in_place_functions_leave_their_operand_alone() -> None:
    first = torch.tensor([1.0, 2.0])
    assert golden(ttnn.add_, first, [3.0, 4.0]).tolist() == [4.0, 6.0]
    result = golden(ttnn.eq_, first, [1.0, 4.0])
    assert (result.tolist(), result.dtype, first.tolist()) == ([1.0, 0.0], torch.float32, [1.0, 2.0])


def test_reductions_over_all_axes_keep_them_if_asked() -> None:
    assert golden(ttnn.mean, [[1.0, 3.0]], keepdim=True).tolist() == [[2.0]]
    assert golden(ttnn.sum, [[1.0, 3.0]], scalar=2.0).tolist() == 8.0
    assert golden(ttnn.cumsum, [1.0, 2.0, 4.0], dim=0, reverse_order=True).tolist() == [7.0, 6.0, 4.0]


def test_heads() -> None:
    queries, keys, values = golden(
        ttnn.transformer.split_query_key_value_and_split_heads, [[list(range(8))]], num_heads=2, num_kv_heads=1
    )
    assert (queries.tolist(), keys.tolist(), values.tolist()) == (
        [[[[0, 1]], [[2, 3]]]], [[[[4], [5]]]], [[[[6, 7]]]]
    )  # fmt: skip
    scores = golden(ttnn.transformer.attention_softmax, [[0.0, 2.0]], head_size=4)
    assert torch.allclose(scores, torch.tensor([[0.0, 1.0]]).softmax(-1))


def test_a_quarter_turn_counterclockwise() -> None:
    image = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 2, 2, 1)
    assert golden(ttnn.rotate, image, 90.0).flatten().tolist() == [2.0, 4.0, 1.0, 3.0]


def test_activations() -> None:
    slope = get_golden_function_for_activation(ttnn.UnaryWithParam(ttnn.UnaryOpType.LEAKY_RELU, 0.5))
    assert slope is not None
    assert slope(torch.tensor([-2.0])).tolist() == [-1.0]
    assert get_golden_function_for_activation(None) is None
    with pytest.raises(ttnn.DeviceError, match=r"^Unsupported activation: nope\n"):
        get_golden_function_for_activation("nope")


def test_operations_without_one() -> None:
    with pytest.raises(ttnn.DeviceError, match=r"^conv2d does not have a golden function\n"):
        ttnn.get_golden_function(ttnn.conv2d)
    with pytest.raises(ttnn.ArgumentTypeError, match="operation must be a function of ttnn, not 3"):
        ttnn.get_golden_function(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expected", "actual", "wanted"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 1.0),
        ([0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0], 0.0),
        ([1.0, 2.0], [2.0, 1.0], -1.0),
        ([1.0, 1.0], [1.0, 2.0], 0.0),
        ([float("nan")], [float("nan")], 1.0),
        ([float("nan")] * 2, [1.0, 2.0], 0.0),
        ([1.0, float("inf"), 0.0], [1.0, float("nan"), 0.0], 1.0),
    ],
)
def test_pearson_correlation_coefficient(expected: list[float], actual: list[float], wanted: float) -> None:
    assert ttnn.pearson_correlation_coefficient(torch.tensor(expected), torch.tensor(actual)) == pytest.approx(wanted)


def test_a_tensor_of_ttnn_has_a_correlation_with_one_of_torch() -> None:
    rising = ttnn.from_torch(torch.tensor([1.0, 2.0, 4.0]), ttnn.bfloat16)
    assert ttnn.pearson_correlation_coefficient(torch.tensor([1.0, 2.0, 4.0]), rising) == 1.0


def test_what_has_no_correlation() -> None:
    one = torch.ones(1)
    with pytest.raises(ttnn.ArgumentTypeError, match=r"^Expected tensor is not a torch.Tensor\n"):
        ttnn.pearson_correlation_coefficient([1.0], one)
    with pytest.raises(ttnn.ArgumentError, match="have 1 and 2 elements"):
        ttnn.pearson_correlation_coefficient(one, torch.ones(2))
