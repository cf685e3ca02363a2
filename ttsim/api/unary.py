"""ttnn's functions of the elements of one tensor."""

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

from device.cores import PlainEnum
from device.errors import ArgumentError, ArgumentTypeError, shown
from device.memory.memory_config import MemoryConfig
from device.numbers.vector_unit import comparison
from ops.planners.eltwise import plan_unary
from ttsim.api.device_calls import require_left_out
from ttsim.api.elementwise import device_of
from ttsim.runtime.execution import on_device, run
from ttsim.runtime.tensor import Tensor
from ttsim.types.signature import OPERATIONS, checked, incompatible


class SigmoidMode(PlainEnum):
    """How a sigmoid is computed; the accurate way is simulated."""

    FastApproximate = 0
    AccurateWithFastExp = 1
    Accurate = 2


class GeluVariant(PlainEnum):
    """How a GELU is computed; the accurate way is simulated."""

    Accurate = 0
    FastLut = 1
    Tanh = 2


def _unary(
    name: str,
    meaning: str,
    parameters: Mapping[str, float | None] | None = None,
    *,
    simulated: Mapping[str, object] | None = None,
    computes: str = "",
) -> Callable[..., Tensor]:
    """One of the functions of one tensor.

    Args:
        name: ttnn's.
        meaning: For its documentation.
        parameters: Numbers by name, with their defaults (None: it must be given).
        simulated: Keywords of this function alone, with their defaults, which are all that is simulated.
        computes: The function that it is, if it has another name.
    """
    own, alone = dict(parameters or {}), dict(simulated or {})

    @on_device
    def function(input_tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        for key, value in alone.items():
            if (given := kwargs.pop(key, value)) != value:
                raise ArgumentError(f"{name}: {key}={shown(given)} is not simulated; {value} is")
        placed = [key for key, default in own.items() if default is None]  # those with a default are keywords alone
        values = {**own, **dict(zip(placed, args, strict=False))}
        values.update({key: kwargs.pop(key) for key in own if key in kwargs})
        _require_parameters(name, values, len(args) - len(placed))
        return _keywords(input_tensor, tuple(float(one) for one in values.values() if one is not None), **kwargs)

    @checked
    def _keywords(
        input_tensor: Tensor,
        numbers: tuple,  # type: ignore[type-arg]
        *,
        memory_config: MemoryConfig | None = None,
        output_tensor: Tensor | None = None,
        fast_and_approximate_mode: object = None,
        sub_core_grids: object = None,
    ) -> Tensor:
        require_left_out(name, fast_and_approximate_mode=fast_and_approximate_mode, sub_core_grids=sub_core_grids)
        tensors = {"input": input_tensor}
        if output_tensor is not None:
            tensors["target"] = output_tensor
        device = device_of(tensors)
        target = None if output_tensor is None else output_tensor.spec
        plan = plan_unary(
            input_tensor.spec, (computes or name, numbers), device.spec, place=memory_config, target=target
        )
        with device.function(f"ttnn.{name}"):
            return run(plan, tensors, device)["output"]

    _keywords.__name__ = name
    function.__name__ = function.__qualname__ = name
    wanted = "".join(f"        {key}: A number of the function.\n" for key in own)
    wanted += "".join(f"        {key}: {value} alone is simulated.\n" for key, value in alone.items())
    function.__doc__ = f"""{meaning} of every element.

    {comparison(name)}

    Args:
        input_tensor: [..., rows, columns] on the device, tiles or rows.
{wanted}        memory_config: Where the result goes; None for where the tensor is.
        output_tensor: A tensor that the result is written into, and that is returned.
        fast_and_approximate_mode: Not simulated; None or False for the library's default code.
        sub_core_grids: Not simulated; None for all cores.

    Returns:
        The same shape and data type.

    Raises:
        ArgumentTypeError: An argument is unknown, missing or of the wrong type.
        ArgumentError: What is not simulated is asked for.
        DeviceError: The tensor is on the host, or the result does not fit its place.
        OutOfMemoryError: No room.
    """
    return function


relu = _unary("relu", "The greater of 0 and the value")
relu6 = _unary("relu6", "The value between 0 and 6")
_SIGMOID = "1 / (1 + exp(-x))"
sigmoid = _unary("sigmoid", _SIGMOID, simulated={"vector_mode": 4, "mode": SigmoidMode.Accurate})
sigmoid_accurate = _unary("sigmoid_accurate", _SIGMOID, computes="sigmoid")
gelu = _unary("gelu", "x times the normal distribution's integral up to x", simulated={"variant": GeluVariant.Accurate})
silu = _unary("silu", "x / (1 + exp(-x))")
exp = _unary("exp", "e to the power")
sqrt = _unary("sqrt", "The square root")
abs = _unary("abs", "The magnitude")
neg = _unary("neg", "The negative")
square = _unary("square", "The square")
tanh = _unary("tanh", "The hyperbolic tangent")
log = _unary("log", "The natural logarithm (to the nearest; the kernel is not followed)")
hardswish = _unary("hardswish", "x times its hard sigmoid")
hardsigmoid = _unary("hardsigmoid", "x / 6 + 1 / 2 between 0 and 1")
leaky_relu = _unary("leaky_relu", "The value, times a slope below 0", {"negative_slope": None})
elu = _unary("elu", "The value, alpha * (exp(x) - 1) below 0 (to the nearest)", {"alpha": 1.0})


def _require_parameters(owner: str, values: Mapping[str, object], extra: int) -> None:
    """Raises ArgumentTypeError if numbers are missing, too many, or none."""
    if extra > 0:
        raise ArgumentTypeError(f"{incompatible(OPERATIONS + owner)}\n{owner}: {extra} by position are too many")
    for name, value in values.items():
        if not isinstance(value, Real):
            raise ArgumentTypeError(
                f"{incompatible(OPERATIONS + owner)}\n{owner}: {name} must be a number, not {shown(value)}"
            )
