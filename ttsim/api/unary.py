"""ttnn's element-wise functions of one tensor: a function for every row of `FUNCTIONS` that has a text."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from inspect import Parameter, Signature, signature
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from device.cores import CoreRangeSet, PlainEnum
from device.errors import ArgumentError, DeviceError, shown
from device.memory.memory_config import MemoryConfig
from device.numbers.formats import BFLOAT16, DataFormat, quantize
from device.numbers.vector_unit import VectorUnitMode
from ops.planners.eltwise import plan_unary
from ops.programs.eltwise.definitions import DEGREES
from ops.programs.eltwise.functions import FUNCTIONS, apply_activation, comparison
from ops.programs.eltwise.refusals import WHOLE_TILES, Activation
from ttsim.api.eltwise import device_of
from ttsim.runtime.calls import on_device
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import checked_as, wrong
from ttsim.runtime.types.docs import RAISES, documented


class SigmoidMode(PlainEnum):
    """How a sigmoid is computed; AccurateWithFastExp gives the values of Accurate, FastApproximate none in ttsim.

    Examples:
        >>> ttnn.SigmoidMode.Accurate.value
        2
    """

    FastApproximate = 0
    AccurateWithFastExp = 1
    Accurate = 2


class GeluVariant(PlainEnum):
    """How a GELU is computed; values of FastLut are not simulated.

    Examples:
        >>> ttnn.GeluVariant.Accurate.value
        0
    """

    Accurate = 0
    FastLut = 1
    Tanh = 2


# Keywords of one function alone, with their defaults.
OWN_KEYWORDS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "sigmoid": {"vector_mode": WHOLE_TILES, "mode": SigmoidMode.Accurate},
        "gelu": {"variant": GeluVariant.Accurate},
    }
)
KEYWORD_TEXTS: Final = {
    "vector_mode": "4 computes whole tiles; 2 computes the first 16 columns of every tile and keeps the other columns.",
    "mode": "How the function is computed; values of FastApproximate are not simulated.",
    "variant": "How the function is computed; values of FastLut are not simulated.",
}
GELUS: Final[Mapping[GeluVariant, Activation]] = MappingProxyType(
    {
        GeluVariant.Accurate: ("gelu", ()),
        GeluVariant.FastLut: ("gelu", (1.0,)),
        GeluVariant.Tanh: ("gelu_tanh", ()),
    }
)


# Names of ttnn that are not those of the activations: the activation, and its numbers where they are fixed.
OTHER_NAMES: Final[Mapping[str, tuple[str, tuple[float, ...]]]] = MappingProxyType(
    {
        "deg2rad": ("mul_unary_sfpu", (1 / DEGREES,)),
        "log_sigmoid": ("logsigmoid", ()),
        "logical_not": ("logical_not_unary", ()),
        "rad2deg": ("mul_unary_sfpu", (DEGREES,)),
        "reciprocal": ("recip", ()),
        "sigmoid_accurate": ("sigmoid", ()),
        "swish": ("silu", ()),
    }
)
TEXTS: Final = {"deg2rad": "x / 180 * pi", "rad2deg": "x * 180 / pi"}
# Functions with a mode that computes faster and less exactly.
WITH_FAST_MODE: Final = frozenset((
    "erf", "exp", "gelu", "log", "log10", "log1p", "log2", "mish", "rsqrt", "sigmoid_accurate", "sqrt", "tanh",
))  # fmt: skip
WHOLE_NUMBERS: Final = ("decimals", "k")  # parameters of ttnn's functions that are integers
OPTIONAL_NUMBERS: Final = ("decimals", "eps")  # parameters of round and logit that may be None
Placed = tuple[Any, ...]  # The tensor, and where its results go: arguments of `applied`
GREATEST_ORDER: Final = 11  # of polygamma
IN_MEMORY_ALONE: Final = frozenset(("polygamma",))  # functions that 0.81.1 gives no output_tensor and no cores


def _row(name: str) -> tuple[str, Mapping[str, float | None], tuple[float, ...]]:
    """The activation of a function, its parameters, and its numbers if they are fixed."""
    activation, numbers = OTHER_NAMES.get(name, (name, ()))
    return activation, {} if numbers else FUNCTIONS[activation].parameters, numbers


def _variant(name: str, kwargs: dict[str, Any]) -> Activation | None:
    """The function that keywords of its own select, which are removed from ``kwargs``; None without such keywords."""
    defaults = OWN_KEYWORDS.get(name, {})
    values = {key: kwargs.pop(key, default) for key, default in defaults.items()}
    for key, value in values.items():
        if not isinstance(value, type(defaults[key])) or (isinstance(value, int) and not -(2**31) <= value < 2**31):
            raise wrong(name, f"{key} must be of the kind of {defaults[key]}, not {shown(value)}")
    match values:
        case {"variant": variant}:
            return GELUS[variant]
        case {"vector_mode": vector_mode, "mode": mode} if mode is not SigmoidMode.AccurateWithFastExp:
            settings = (float(vector_mode), float(mode is SigmoidMode.FastApproximate))
            return name, () if settings == (WHOLE_TILES, 0) else settings
    return None


def _bound(
    name: str, parameters: Mapping[str, float | None], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[float, ...]:
    """The parameters of a call, which are removed from its keywords."""
    placed = [key for key, default in parameters.items() if default is None]  # those with a default are keywords alone
    values = {**parameters, **dict(zip(placed, args, strict=False))}
    values.update({key: kwargs.pop(key) for key in parameters if key in kwargs})
    if len(args) > len(placed):
        raise wrong(name, f"{len(args) - len(placed)} by position are too many")
    for key, number in values.items():
        if number is None and key in OPTIONAL_NUMBERS:  # the default
            values[key] = parameters[key]
        elif not isinstance(number, Integral if key in WHOLE_NUMBERS else Real):
            kind = "an integer" if key in WHOLE_NUMBERS else "a number"
            raise wrong(name, f"{key} must be {kind}, not {shown(number)}")
    return tuple(float(number) for number in values.values() if number is not None)


@cache
def _unary(name: str) -> Callable[..., Tensor]:
    """The function of one tensor that ttnn has under this name."""
    activation, parameters, fixed = _row(name)

    def function(input_tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        numbers = fixed or _bound(name, parameters, args, kwargs)
        if name == "polygamma" and not 1 <= numbers[0] <= GREATEST_ORDER:
            raise DeviceError(
                f"polygamma order must be in range [1, {GREATEST_ORDER}], got {numbers[0]:g}\n"
                "k: give the order of the derivative; ttnn.digamma is the function itself"
            )
        one_form = OWN_KEYWORDS.get(name, {}).keys().isdisjoint(kwargs)  # the fast mode is another of such functions
        if name in WITH_FAST_MODE and one_form:
            fast = kwargs.pop("fast_and_approximate_mode", False)
            if not isinstance(fast, bool):
                raise wrong(name, f"fast_and_approximate_mode must be a bool, not {shown(fast)}")
        chosen = _variant(name, kwargs) or (activation, numbers)
        return applied(name, chosen, *keywords(input_tensor, **kwargs))

    @checked_as(name=name)
    def in_memory(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Placed:
        return input_tensor, memory_config

    @checked_as(name=name)
    def anywhere(
        input_tensor: Tensor,
        *,
        memory_config: MemoryConfig | None = None,
        output_tensor: Tensor | None = None,
        sub_core_grids: CoreRangeSet | None = None,
    ) -> Placed:
        return input_tensor, memory_config, output_tensor, sub_core_grids

    keywords: Callable[..., Placed] = in_memory if name in IN_MEMORY_ALONE else anywhere
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _documentation(name)
    function.__signature__ = _signature(name, signature(keywords))  # type: ignore[attr-defined]
    return on_device(function)


def _signature(name: str, keywords: Signature) -> Signature:
    """The parameters of a function: its own numbers and keywords behind the tensor."""
    first, *others = keywords.parameters.values()
    by_name, own = Parameter.KEYWORD_ONLY, _row(name)[1]
    required = [Parameter(key, Parameter.POSITIONAL_OR_KEYWORD) for key, default in own.items() if default is None]
    settings: dict[str, object] = {key: default for key, default in own.items() if default is not None}
    settings |= OWN_KEYWORDS.get(name, {})
    settings |= {"fast_and_approximate_mode": False} if name in WITH_FAST_MODE else {}
    optional = [Parameter(key, by_name, default=default) for key, default in settings.items()]
    return keywords.replace(parameters=[first, *required, *optional, *others], return_annotation=Tensor)


def applied(
    name: str,
    function: tuple[str, tuple[float, ...]],
    tensor: Tensor,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    cores: CoreRangeSet | None = None,
    then: tuple[Activation, ...] | None = None,
    seen_as: DataFormat | None = None,
) -> Tensor:
    """Applies an activation to every element of a tensor, as the ttnn function of this name does.

    Activations ``then`` follow in the same program, as in `unary_chain`. The result of a bitcast has the format
    ``seen_as``.
    """
    tensors = {"input": tensor} | ({} if output_tensor is None else {"target": output_tensor})
    device = device_of(tensors)
    target = None if output_tensor is None else output_tensor.spec
    settings: dict[str, Any] = {"place": memory_config, "target": target, "cores": cores, "then": then}
    plan = plan_unary(tensor.spec, function, device.spec, seen_as=seen_as, **settings)
    if device.values != "off" and not tensor.spec.data_format.is_float:
        _require_32_bits(name, [number for _, numbers in (function, *(then or ())) for number in numbers])
    with device.function(f"ttnn.{name}"):
        return run(plan, tensors, device)["output"]


def _require_32_bits(name: str, numbers: Sequence[float]) -> None:
    """Raises ArgumentError for a number that is no integer of 32 bits once its fraction is cut off."""
    for number in numbers:
        if not -(1 << 31) - 1 < number < 1 << 32:
            raise ArgumentError(
                f"{name}: {number:g} is outside the integers of 32 bits, and what a device computes of it with "
                "integers is not known; give another number, typecast the tensor to floats, or plan with values off"
            )


def _documentation(name: str) -> str:
    activation, parameters, fixed = _row(name)
    row, given = (
        FUNCTIONS[activation],
        {key: 2 if key in WHOLE_NUMBERS else 0.5 for key, default in parameters.items() if default is None},
    )
    fast = {
        "fast_and_approximate_mode": "Whether the card computes faster and less exactly; values are those of the "
        "exact mode."
    }
    texts = {
        "input_tensor": "[..., rows, columns] on the device, in TILE or ROW_MAJOR layout.",
        **dict.fromkeys(parameters, "The number of this name in the formula above."),
        **{key: KEYWORD_TEXTS[key] for key in OWN_KEYWORDS.get(name, {})},
        **(fast if name in WITH_FAST_MODE else {}),
        "memory_config": "Memory of the result; None for that of ``input_tensor``.",
    }
    if name not in IN_MEMORY_ALONE:
        texts["output_tensor"] = "A tensor of the same shape that receives the result and is returned."
        texts["sub_core_grids"] = "Cores that may be used; None for all."
    head = f"{TEXTS.get(name, row.text)} of every element x.\n\n{comparison(activation)}"
    given_back = "" if name in IN_MEMORY_ALONE else ", or ``output_tensor``"
    returns = f"\n\nReturns:\n    A tensor of the same shape and data type{given_back}."
    shown_keywords = "".join(f", {key}={value}" for key, value in given.items())
    if activation == "bitwise_not":
        example = BITWISE_NOT_EXAMPLE
    else:
        results = row.results if row.results and not fixed else _results(activation, fixed or tuple(given.values()))
        example = f"""
    >>> tensor = ttnn.Tensor(np.array([{list(row.numbers)}]), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
    >>> ttnn.{name}(tensor{shown_keywords}).to_list()
    [{list(results)}]"""
    return documented(f"{head}{returns}\n\nExamples:{example}", {"Args": texts, "Raises": RAISES})


BITWISE_NOT_EXAMPLE: Final = """
    >>> tensor = ttnn.Tensor(np.array([[0, 5]]), ttnn.int32, device, ttnn.TILE_LAYOUT)
    >>> ttnn.bitwise_not(tensor).to_list()
    [[-1, -6]]"""


def _results(activation: str, numbers: tuple[float, ...]) -> list[float]:
    """The results of a function for the numbers of its example, in bfloat16."""
    mode = VectorUnitMode(fp32_dest=False, reciprocal_table=False)
    row = FUNCTIONS[activation]
    defaults = tuple(default for default in row.parameters.values() if default is not None)
    values = apply_activation(np.array([row.numbers], np.float32), activation, numbers or defaults, mode=mode)
    return [float(value) + 0.0 for value in quantize(values, BFLOAT16)[0]]


_RENAMED: Final = {activation for activation, _ in OTHER_NAMES.values()} - {"sigmoid", "silu"}
# Names of ttnn's functions of one tensor
NAMES: Final = (*(name for name, row in FUNCTIONS.items() if row.text and name not in _RENAMED), *OTHER_NAMES)


def __getattr__(name: str) -> Callable[..., Tensor]:
    """A function of one tensor by ttnn's name."""
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _unary(name)
