"""Functions of torch that compute functions of ttnn, for the host fallback and for golden functions.

Each is torch's function of the same name, unless `FORMULAS` has another. Arguments that only place or tune the result
(memory, program and kernel configs) are ignored; fused activations are applied.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from math import cos, pi, sin
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from device.errors import DeviceError
from ttsim.runtime.types.configs import UnaryOpType, UnaryWithParam

PLACES: Final = ("nn.functional", "", "special", "Tensor")  # of torch, where functions are looked up in this order
# Arguments of ttnn that change where or how a result is computed, not its numbers
PLACING: Final = frozenset(
    (
        *("compute_kernel_config", "core_grid", "device", "dtype", "fast_and_approximate_mode", "layout"),
        *("memory_config", "numeric_stable", "out", "out_tensor", "output_dtype", "output_layout", "output_mem_config"),
        *("output_tensor", "program_config", "queue_id", "sub_core_grids", "use_legacy", "use_multicore", "variant"),
    )
)
# Activations of the operands, by their place, and of the result
OF_OPERANDS: Final = ("input_tensor_a_activations", "input_tensor_b_activations")
OF_RESULT: Final = "activations"
RENAMED: Final = MappingProxyType(
    {
        "epsilon": "eps",
        "keepdims": "keepdim",
        "input_tensor": "input",
        "input_tensor_a": "input",
        "input_tensor_b": "other",
        "input_tensors": "tensors",
    }
)
# Functions of torch that mean something else under the same name: other axes, or prepared weights
OTHER_MEANING: Final = frozenset(
    (
        *("avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d", "batch_norm", "conv1d", "conv2d", "conv3d"),
        *("conv_transpose2d", "fold", "from_torch", "full", "full_like", "group_norm", "max_pool2d", "rand"),
        *("to_torch", "view"),
    )
)
HIGH_AXES: Final = (0, 3, 1, 2)  # [N, H, W, C] as [N, C, H, W]
LOW_AXES: Final = (0, 2, 3, 1)
TorchTensor = Any
TorchFunction = Callable[..., Any]


def torch_function(name: str) -> tuple[str, TorchFunction] | None:
    """The full name and the torch function that computes a function of ttnn; None if there is none.

    It takes the arguments of `called`. For an in-place function of ttnn, it returns the result.
    """
    if find_spec("torch") is None or name in OTHER_MEANING:
        return None
    if name in FORMULAS:
        return "a formula of torch", FORMULAS[name]
    if name.endswith("_") and not name.startswith("_"):
        return _in_place(torch_function(name.removesuffix("_")))
    return function_of_torch(name)


def _in_place(found: tuple[str, TorchFunction] | None) -> tuple[str, TorchFunction] | None:
    """A function that returns the type of its first operand and, unlike ttnn, does not modify it."""
    if found is None:
        return None
    label, function = found
    return label, lambda input, *args, **kwargs: function(input, *args, **kwargs).to(input.dtype)


def function_of_torch(name: str) -> tuple[str, TorchFunction] | None:
    """The full name and the torch function of this name; None if there is none."""
    for place in PLACES:
        path = f"{place}.{name}".lstrip(".")
        with suppress(AttributeError):
            function = attrgetter(path)(import_module("torch"))
            if callable(function) and not isinstance(function, type):
                return f"torch.{path}", function
    return None


def called(function: TorchFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Calls a function of `torch_function` with arguments under ttnn's names."""
    operands, named = list(args), dict(kwargs)
    for place, key in enumerate(OF_OPERANDS):
        activations = named.pop(key, None)
        if activations and place < len(operands):
            operands[place] = _activated(operands[place], activations)
    activations = named.pop(OF_RESULT, None)
    named = {RENAMED.get(key, key): value for key, value in named.items() if key not in PLACING and value is not None}
    return _activated(function(*operands, **named), activations or ())


def activation_of(activation: str | UnaryOpType | UnaryWithParam) -> TorchFunction:
    """The torch function of an activation, given by name or with parameters; raises DeviceError if there is none."""
    given = activation.op_type if isinstance(activation, UnaryWithParam) else activation
    name = given.name.lower() if isinstance(given, UnaryOpType) else given
    parameters = activation.params if isinstance(activation, UnaryWithParam) else ()
    found = torch_function(name.removesuffix("_approx"))
    if found is None:
        raise DeviceError(f"Unsupported activation: {activation}\nactivation: torch has no function {name}")
    return lambda values: found[1](values, *parameters)


def _activated(values: TorchTensor, activations: Sequence[str | UnaryOpType | UnaryWithParam]) -> TorchTensor:
    for activation in activations:
        values = activation_of(activation)(values)
    return values


def _torch() -> Any:
    return import_module("torch")


def _functional() -> Any:
    return import_module("torch.nn.functional")


def _high(function: str) -> TorchFunction:
    """Adapts a function of torch, whose images are [N, C, H, W], to images [N, H, W, C]."""

    def adapted(image: TorchTensor, *args: Any, **kwargs: Any) -> TorchTensor:
        result: TorchTensor = getattr(_functional(), function)(image.permute(HIGH_AXES), *args, **kwargs)
        return result.permute(LOW_AXES)

    return adapted


def _layer_norm(
    input: TorchTensor,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-12,
    residual_input_tensor: Any = None,
    **_: Any,
) -> Any:
    values = input if residual_input_tensor is None else input + residual_input_tensor
    centered = values - values.mean(-1, keepdim=True)
    return _scaled(centered * (centered.square().mean(-1, keepdim=True) + eps).rsqrt(), weight, bias)


def _rms_norm(
    input: TorchTensor,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-12,
    residual_input_tensor: Any = None,
    **_: Any,
) -> Any:
    values = input if residual_input_tensor is None else input + residual_input_tensor
    return _scaled(values * (values.square().mean(-1, keepdim=True) + eps).rsqrt(), weight, bias)


def _scaled(values: TorchTensor, weight: Any, bias: Any) -> TorchTensor:
    values = values if weight is None else values * weight.reshape(-1)
    return values if bias is None else values + bias.reshape(-1)


def _linear(input: TorchTensor, other: TorchTensor, *, bias: Any = None, activation: Any = None, **turned: Any) -> Any:
    left, right = input, other
    left = left.mT if turned.pop("transpose_a", False) else left
    right = right.mT if turned.pop("transpose_b", False) else right
    product = left @ right if bias is None else left @ right + bias
    return product if activation is None else activation_of(activation)(product)


def _same(input: TorchTensor, *_: Any, **__: Any) -> TorchTensor:
    return input.clone()


def _concat(tensors: Sequence[TorchTensor], dim: int = 0, **_: Any) -> TorchTensor:
    return _torch().cat(tensors, dim)


def _concatenate_heads(input: TorchTensor, **_: Any) -> TorchTensor:
    return input.permute(0, 2, 1, 3).flatten(2)


def _heads(
    input: TorchTensor,
    kv_input_tensor: Any = None,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    transpose_key: bool = True,
    **_: Any,
) -> tuple[TorchTensor, ...]:
    """Splits [N, S, channels] into queries, keys, values [N, heads, S, size]; transposed keys [N, heads, size, S]."""
    others = num_kv_heads or num_heads
    own, rest = input, kv_input_tensor
    if rest is None:
        size = input.shape[-1] // (num_heads + 2 * others)
        own, rest = input.split((num_heads * size, 2 * others * size), -1)
    queries = own.unflatten(-1, (num_heads, -1)).transpose(1, 2)
    keys, values = rest.unflatten(-1, (2 * others, -1)).transpose(1, 2).chunk(2, 1)
    return queries, keys.mT if transpose_key else keys, values


def _softmax(input: TorchTensor, dim: int = -1, *, scale: Any = None, mask: Any = None, **_: Any) -> TorchTensor:
    values = input if scale is None else input * scale
    return (values if mask is None else values + mask).softmax(dim)


def _scaled_softmax(input: TorchTensor, scale: Any = None, mask: Any = None, **_: Any) -> TorchTensor:
    return _softmax(input, scale=scale, mask=mask)


def _attention_softmax(
    input: TorchTensor, *, head_size: int | None = None, attention_mask: Any = None, **_: Any
) -> TorchTensor:
    return _softmax(input, scale=head_size and head_size**-0.5, mask=attention_mask)


def _global_pool(input: TorchTensor, **_: Any) -> TorchTensor:
    return input.mean((1, 2), keepdim=True)


def _over_axes(function: str) -> TorchFunction:
    """A reduction of torch over ttnn's axes (None: all), optionally scaled."""

    def reduced(input: TorchTensor, dim: Any = None, keepdim: bool = False, *, scalar: float = 1.0, **more: Any) -> Any:
        axes = tuple(range(input.ndim)) if dim is None else dim
        result = getattr(_torch(), function)(input, axes, keepdim=keepdim, **more) if input.ndim else input.clone()
        return result if scalar == 1.0 else result * scalar

    return reduced


def _accumulated(function: str) -> TorchFunction:
    """Cumulative sums or products of torch along an axis, from its end with `reverse_order`."""

    def accumulated(input: TorchTensor, dim: int, *, reverse_order: bool = False, **_: Any) -> TorchTensor:
        axes = (dim,) if reverse_order else ()
        return getattr(_torch(), function)(input.flip(axes), dim).flip(axes)

    return accumulated


def _divided(input: TorchTensor, other: Any, rounding_mode: str | None = None, **_: Any) -> TorchTensor:
    return _torch().div(input, other, rounding_mode=rounding_mode)


def _comparison(function: str) -> TorchFunction:
    """A comparison with zero."""
    return lambda input, **_: getattr(_torch(), function)(input, 0)


def _gated(activation: TorchFunction) -> TorchFunction:
    """The first half of an axis times an activation of the second half."""

    def gated(input: TorchTensor, dim: int = -1, **_: Any) -> TorchTensor:
        values, gates = input.chunk(2, dim)
        return values * activation(gates)

    return gated


def _like(values: TorchTensor, number: Any) -> TorchTensor:
    """A number as a tensor of the type of other tensors; a tensor unchanged."""
    torch = _torch()
    return number if isinstance(number, torch.Tensor) else torch.full_like(values, number)


def _polyval(input: TorchTensor, coeffs: Sequence[float], **_: Any) -> TorchTensor:
    result = _torch().zeros_like(input)
    for coefficient in coeffs:
        result = result * input + coefficient
    return result


def _selu(input: TorchTensor, *, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772) -> TorchTensor:
    return scale * _functional().elu(input, alpha)


def _xielu(x: TorchTensor, alpha_p: float = 0.8, alpha_n: float = 0.8, *, beta: float = 0.5, **_: Any) -> TorchTensor:
    low = alpha_n * (x.clamp(max=-1e-6).expm1() - x)
    return _torch().where(x > 0, alpha_p * x * x, low) + beta * x


def _logical_right_shift(input: TorchTensor, shift_amt: Any, **_: Any) -> TorchTensor:
    """A logical right shift of 32-bit integers."""
    return ((input.long() & 0xFFFFFFFF) >> shift_amt).to(input.dtype)


def _where(predicate: TorchTensor, true_value: Any, false_value: Any, **_: Any) -> TorchTensor:
    return _torch().where(predicate != 0, true_value, false_value)


def _bcast(input: TorchTensor, other: TorchTensor, math_op: Any, dim: Any, **_: Any) -> TorchTensor:
    return {"ADD": _torch().add, "SUB": _torch().sub, "MUL": _torch().mul}[math_op.name](input, other)


def _rotate(
    input: TorchTensor,
    angle: float,
    center: tuple[float, float] | None = None,
    fill: float = 0.0,
    expand: bool = False,
    interpolation_mode: str = "nearest",
    **_: Any,
) -> TorchTensor:
    """Rotates images [N, H, W, C] counterclockwise by degrees about a center (x, y); outside pixels are `fill`.

    Like torchvision, which weights border pixels twice by their share of the image.
    """
    torch, (count, height, width, _) = _torch(), input.shape
    sine, cosine, places = (
        sin(angle * pi / 180),
        cos(angle * pi / 180),
        {"dtype": torch.float64, "device": input.device},
    )
    middle_x, middle_y = center or (0.5 * width, 0.5 * height)
    x = torch.arange(width, **places) + 0.5 - middle_x
    y = (torch.arange(height, **places) + 0.5 - middle_y)[:, None]
    from_x = x * cosine - y * sine + middle_x
    from_y = x * sine + y * cosine + middle_y
    grid = torch.stack((2 * from_x / width - 1, 2 * from_y / height - 1), -1).float().expand(count, -1, -1, -1)
    inside = torch.ones((count, 1, height, width), device=input.device)
    images = torch.cat((input.permute(HIGH_AXES).float(), inside), 1)
    turned = _functional().grid_sample(images, grid, mode=interpolation_mode, align_corners=False)
    share = turned[:, -1:]
    return (share * turned[:, :-1] + (1 - share) * fill).permute(LOW_AXES).to(input.dtype)


def _pad(input: TorchTensor, padding: Any, value: float = 0.0, **_: Any) -> TorchTensor:
    """Pads a tensor by (before, after) elements along each axis."""
    sides = [side for pair in reversed(padding) for side in pair]
    return _functional().pad(input, sides, value=value)


def _slice(input: TorchTensor, starts: Sequence[int], ends: Sequence[int], steps: Any = None, **_: Any) -> TorchTensor:
    steps = steps or [1] * len(starts)
    return input[tuple(slice(*bounds) for bounds in zip(starts, ends, steps, strict=True))]


MOVES: Final = (
    *("clone", "copy", "identity", "interleaved_to_sharded", "move", "reallocate", "reshard", "sharded_to_interleaved"),
    *("tilize", "to_layout", "to_memory_config", "typecast", "untilize"),
)
FORMULAS: Final[Mapping[str, TorchFunction]] = MappingProxyType(
    {
        **dict.fromkeys(MOVES, _same),
        "addalpha": lambda input, other, alpha, **_: input + other * alpha,
        "attention_softmax": _attention_softmax,
        "bcast": _bcast,
        "bias_gelu": lambda input, other, **_: _functional().gelu(input + other),
        "cbrt": lambda input, **_: input.sign() * input.abs().pow(1 / 3),
        "concat": _concat,
        "concatenate_heads": _concatenate_heads,
        "cumprod": _accumulated("cumprod"),
        "cumsum": _accumulated("cumsum"),
        "div": _divided,
        "divide": _divided,
        "div_no_nan": lambda input, other, **_: _torch().where(_like(input, other) == 0, 0, input / other),
        "eqz": _comparison("eq"),
        "floor_div": lambda input, other, **_: _divided(input, other, "floor"),
        "geglu": _gated(lambda gates: _functional().gelu(gates)),
        "gez": _comparison("ge"),
        "global_avg_pool2d": _global_pool,
        "grid_sample": _high("grid_sample"),
        "gtz": _comparison("gt"),
        "hardmish": lambda input, **_: input * (input + 2).clamp(0, 2) / 2,
        "heaviside": lambda input, value, **_: _torch().heaviside(input, _like(input, value)),
        "layer_norm": _layer_norm,
        "lez": _comparison("le"),
        "linear": _linear,
        "log_sigmoid": lambda input, **_: _functional().logsigmoid(input),
        "logical_left_shift": lambda input, shift_amt, **_: input << shift_amt,
        "logical_right_shift": _logical_right_shift,
        "ltz": _comparison("lt"),
        "mac": lambda input, other, third, **_: input * other + third,
        "matmul": _linear,
        "max": _over_axes("amax"),
        "maximum": lambda input, other, **_: _torch().maximum(input, _like(input, other)),
        "mean": _over_axes("mean"),
        "min": _over_axes("amin"),
        "minimum": lambda input, other, **_: _torch().minimum(input, _like(input, other)),
        "multigammaln": lambda input, **_: _torch().special.multigammaln(input, 4),
        "nez": _comparison("ne"),
        "pad": _pad,
        "polygamma": lambda input, k, **_: _torch().polygamma(k, input),
        "polyval": _polyval,
        "prelu": lambda input, weight, **_: _functional().prelu(input, _like(input.new_empty(1), weight)),
        "rdiv": lambda input, value, rounding_mode=None, **_: _divided(_like(input, value), input, rounding_mode),
        "reglu": _gated(lambda gates: _functional().relu(gates)),
        "relu_max": lambda input, upper_limit, **_: input.clamp(max=upper_limit).relu(),
        "relu_min": lambda input, lower_limit, **_: input.clamp(min=lower_limit),
        "rms_norm": _rms_norm,
        "rotate": _rotate,
        "rpow": lambda input, base, **_: _like(input, base).pow(input),
        "scale_causal_mask_hw_dims_softmax_in_place": _scaled_softmax,
        "scale_mask_softmax": _scaled_softmax,
        "scale_mask_softmax_in_place": _scaled_softmax,
        "selu": _selu,
        "sigmoid": lambda input, *_, **__: input.sigmoid(),
        "sigmoid_accurate": lambda input, *_, **__: input.sigmoid(),
        "slice": _slice,
        "softmax": _softmax,
        "softmax_in_place": _softmax,
        "split_query_key_value_and_split_heads": _heads,
        "squared_difference": lambda input, other, **_: (input - other) ** 2,
        "std": _over_axes("std"),
        "subalpha": lambda input, other, alpha, **_: input - other * alpha,
        "sum": _over_axes("sum"),
        "swiglu": _gated(lambda gates: _functional().silu(gates)),
        "swish": lambda input, **_: _functional().silu(input),
        "unsqueeze_to_4D": lambda input, **_: input.reshape((1,) * (4 - input.ndim) + tuple(input.shape)),
        "upsample": _high("interpolate"),
        "var": _over_axes("var"),
        "where": _where,
        "xielu": _xielu,
    }
)
