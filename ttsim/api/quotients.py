"""ttnn's quotients, powers and other element-wise functions that select one of several device operations."""

from collections.abc import Sequence
from math import inf, log, nan, pi
from numbers import Integral, Real
from typing import Any, Final

from device.errors import DeviceError, shown
from device.memory.memory_config import MemoryConfig
from device.numbers.formats import INT32, UINT8
from ops.planners.eltwise import require_wanted
from ops.planners.powers import plan_integer_power
from ttsim.api.compositions import ROUNDINGS, public, where
from ttsim.api.conversions import typecast
from ttsim.api.copies import assign, copy
from ttsim.api.creation import full_like, zeros_like
from ttsim.api.device_calls import converted, format_of, require_left_out
from ttsim.api.eltwise import LegacyChoice, allowed, combined, require_legacy
from ttsim.api.unary import applied
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import wrong
from ttsim.runtime.types.configs import UnaryOpType, UnaryWithParam
from ttsim.runtime.types.tensors import DataType

NUMBER: Final = {"value": ["input_tensor_b"]}  # ttnn's name of a number as the second operand
REPEATED = (0, 1, 2, 3)  # exponents for which the library multiplies repeatedly


def _divided(
    name: str,
    operands: tuple[object, object],
    *,
    fast: bool,
    rounding_mode: object,
    dtype: DataType | None,
    memory_config: MemoryConfig | None,
    output_tensor: Tensor | None,
    activations: tuple[object, object, object],
    cores: object = None,
) -> Tensor:
    """A quotient, optionally rounded; int32 has its own operations."""
    whole = all(
        operand.spec.data_format == INT32 if isinstance(operand, Tensor) else isinstance(operand, Integral)
        for operand in operands
    )
    after, left, right = activations
    settings = {"memory_config": memory_config, "output_tensor": output_tensor, "activations": after}
    settings |= {"left_activations": left, "right_activations": right, "cores": cores}
    if whole:
        if fast:
            raise DeviceError(
                "Integer Division does not support fast_and_approximate_mode=true true\n"
                "fast_and_approximate_mode: leave it out"
            )
        if rounding_mode in ("floor", "trunc"):
            return combined(name, f"div_{rounding_mode}", operands, dtype=dtype, **settings)  # type: ignore[arg-type]
        if dtype not in (None, DataType.FLOAT32):
            raise DeviceError(
                "Incorrect output_dtype value for Integer Division(rounding_mode=None) ; valid input values are None "
                "or ttnn.float32\ndtype: leave it out"
            )
        if output_tensor is not None and output_tensor.dtype is not DataType.FLOAT32:
            raise DeviceError(
                "For integer division, supported output dtype is FLOAT32\noutput_tensor: give one of float32"
            )
        return combined(name, "div", operands, **settings)  # type: ignore[arg-type]
    if rounding_mode not in ROUNDINGS:
        raise DeviceError(
            "Incorrect rounding mode (expected None, 'trunc', or 'floor')\n"
            f"rounding_mode: {shown(rounding_mode)} is none of these"
        )
    blocks = any(isinstance(operand, Tensor) and operand.spec.data_format.is_block for operand in operands)
    fast = fast and (rounding_mode is None or blocks)
    if rounding_mode is None:
        return combined(name, "div", operands, dtype=dtype, fast=fast, **settings)  # type: ignore[arg-type]
    require_wanted(None if output_tensor is None else output_tensor.spec, format_of(dtype))
    last = dtype if output_tensor is None else output_tensor.dtype
    whole = last is not None and not last.format.is_float  # rounded floats are cast to integers last
    if whole:
        settings["output_tensor"] = dtype = None
    quotient = combined(name, "div", operands, dtype=dtype, fast=fast, **settings)  # type: ignore[arg-type]
    rounding, target = (str(rounding_mode), ()), settings["output_tensor"]
    rounded = applied(str(rounding_mode), rounding, quotient, memory_config, target, allowed(name, cores))  # type: ignore[arg-type]
    if not whole:
        return rounded
    result = typecast(rounded, last, memory_config=memory_config, output_tensor=output_tensor)  # type: ignore[arg-type]
    del rounded, quotient
    return result


@public(
    "input_tensor_a / input_tensor_b, perhaps rounded.",
    "div(x, y)",
    "[[0.5, 1.0]]",
    others=NUMBER,
)
def div(
    input_tensor_a: object,
    input_tensor_b: object,
    *,
    fast_and_approximate_mode: bool = False,
    rounding_mode: object = None,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    activations: object = (),
    input_tensor_a_activations: object = (),
    input_tensor_b_activations: object = (),
    use_legacy: LegacyChoice = None,
    sub_core_grids: object = None,
    sub_device_id: object = None,
) -> Tensor:
    """One operation, and a second operation for rounding."""
    require_legacy("div", use_legacy, (input_tensor_a, input_tensor_b))
    require_left_out("div", sub_device_id=sub_device_id)
    operands = (input_tensor_a, input_tensor_b)
    for operand in operands:
        if not isinstance(operand, Tensor | Real):
            raise wrong("div", f"an operand must be a Tensor or a number, not {shown(operand)}")
    if not any(isinstance(operand, Tensor) for operand in operands):
        raise wrong("div", "one of the operands must be a Tensor")
    if rounding_mode is not None and not isinstance(rounding_mode, str):
        raise wrong("div", f"rounding_mode must be a str or None, not {shown(rounding_mode)}")
    return _divided(
        "div",
        operands,
        fast=fast_and_approximate_mode,
        rounding_mode=rounding_mode,
        dtype=dtype,
        memory_config=memory_config,
        output_tensor=output_tensor,
        activations=(activations, input_tensor_a_activations, input_tensor_b_activations),
        cores=sub_core_grids,
    )


divide = div  # ttnn has both names


@public("value / x, perhaps rounded.", "rdiv(x, 4.0)", "[[4.0, 2.0]]")
def rdiv(
    input_tensor: Tensor,
    value: object,
    *,
    rounding_mode: object = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    sub_core_grids: object = None,
) -> Tensor:
    """One operation."""
    if not isinstance(value, Real) or not isinstance(rounding_mode, str | None):
        raise wrong("rdiv", f"value must be a number and rounding_mode a str, not {shown((value, rounding_mode))}")
    if rounding_mode not in ROUNDINGS:
        raise DeviceError(
            "Incorrect rounding mode (expected None, 'trunc', or 'floor')\n"
            f"rounding_mode: {shown(rounding_mode)} is none of these"
        )
    numbers = (float(value), float(ROUNDINGS.index(rounding_mode)))
    cores = allowed("rdiv", sub_core_grids)
    return applied("rdiv", ("rdiv", numbers), input_tensor, memory_config, output_tensor, cores)


@public("x to the power of the exponent.", "pow(x, 3)", "[[1.0, 8.0]]")
def pow(
    input_tensor: object,
    exponent: object,
    *,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    activations: object = (),
    input_tensor_a_activations: object = (),
    input_tensor_b_activations: object = (),
) -> Tensor:
    """One operation; for a number to the power of a tensor, a tensor is filled with the number first."""
    settings: dict[str, Any] = {"dtype": dtype, "memory_config": memory_config, "output_tensor": output_tensor}
    settings |= {"activations": activations, "left_activations": input_tensor_a_activations}
    settings |= {"right_activations": input_tensor_b_activations}
    if isinstance(exponent, Tensor) and isinstance(input_tensor, Tensor | Real):
        base = input_tensor
        if isinstance(base, Real):
            base = full_like(exponent, float(base))
        return combined("pow", "pow", (base, exponent), **settings)
    if not isinstance(input_tensor, Tensor) or not isinstance(exponent, Real):
        raise wrong("pow", f"give tensors or numbers, not {shown((input_tensor, exponent))}")
    if dtype is not None or activations or input_tensor_a_activations or input_tensor_b_activations:
        raise wrong("pow", "a number as exponent goes with memory_config and output_tensor alone")
    data_format = input_tensor.spec.data_format
    if exponent == 1 and output_tensor is None:
        return assign(input_tensor, memory_config=memory_config or input_tensor.memory_config())
    if exponent == 1 and output_tensor is not None:
        alike = (output_tensor.layout, output_tensor.spec.shape) == (input_tensor.layout, input_tensor.spec.shape)
        if alike and output_tensor.dtype is not input_tensor.dtype:
            raise DeviceError(f"Mismatched output dtype\npow: give an output_tensor of {data_format}")
        return copy(input_tensor, output_tensor)
    if exponent == 0:
        return full_like(input_tensor, 1.0, memory_config=memory_config, optional_tensor=output_tensor)
    if not data_format.is_float and data_format != UINT8:
        power = float(exponent)
        return converted("pow", plan_integer_power, input_tensor, power, place=memory_config, target=output_tensor)
    name = "power_iterative" if exponent in REPEATED else "power"
    return applied("pow", (name, (float(exponent),)), input_tensor, memory_config, output_tensor)


def _with_factor(name: str, operation: str, operands: tuple[Tensor, Tensor], alpha: object, **placed: object) -> Tensor:
    if not isinstance(alpha, Real):
        raise wrong(name, f"alpha must be a number, not {shown(alpha)}")
    scaled = (UnaryWithParam(UnaryOpType.MUL_UNARY_SFPU, float(alpha)),)
    return combined(name, operation, operands, right_activations=scaled, **placed)  # type: ignore[arg-type]


@public("input_tensor_a + alpha * input_tensor_b.", "addalpha(x, y, 0.5)", "[[2.0, 3.0]]")
def addalpha(
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    alpha: object,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """A product and a sum."""
    placed = {"memory_config": memory_config, "output_tensor": output_tensor}
    return _with_factor("addalpha", "add", (input_tensor_a, input_tensor_b), alpha, **placed)


@public("input_tensor_a - alpha * input_tensor_b.", "subalpha(x, y, 0.5)", "[[0.0, 1.0]]")
def subalpha(
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    alpha: object,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """A product and a difference."""
    placed = {"memory_config": memory_config, "output_tensor": output_tensor}
    return _with_factor("subalpha", "subtract", (input_tensor_a, input_tensor_b), alpha, **placed)


def _inverse(name: str, value: object) -> float | None:
    """The factor that replaces a division by a number; None for a division by 0."""
    if not isinstance(value, Real):
        raise wrong(name, f"value must be a Tensor or a number, not {shown(value)}")
    return 1 / float(value) if value else None


@public("x / y rounded down, and x / y where that is infinite.", "floor_div(x, y)", "[[0.0, 1.0]]", others=NUMBER)
def floor_div(input_tensor_a: Tensor, input_tensor_b: object, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """Two quotients, a rounding and a where; for a number, a product and a rounding."""
    if not isinstance(input_tensor_b, Tensor):
        factor = _inverse("floor_div", input_tensor_b)
        if factor is None:
            zero = applied("eqz", ("eqz", ()), input_tensor_a, memory_config)
            sign = applied("sign", ("sign", ()), input_tensor_a, memory_config)
            infinite = combined("multiply", "multiply", (sign, inf), memory_config=memory_config)
            result = where(zero, nan, infinite)
            del infinite, sign, zero
            return result
        product = combined("multiply", "multiply", (input_tensor_a, factor), memory_config=memory_config)
        return applied("floor", ("floor", ()), product, memory_config)
    quotient = combined("div", "div", (input_tensor_a, input_tensor_b), memory_config=memory_config)
    rounded = div(input_tensor_a, input_tensor_b, rounding_mode="floor", memory_config=memory_config)
    infinite = applied("isinf", ("isinf", ()), quotient, memory_config)
    result = where(infinite, quotient, rounded, memory_config=memory_config)
    del infinite, rounded, quotient
    return result


@public("x / y, and 0 where y is 0.", "div_no_nan(x, y)", "[[0.5, 1.0]]", others=NUMBER)
def div_no_nan(input_tensor_a: Tensor, input_tensor_b: object, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """A quotient and a where; for a number, a product."""
    if not isinstance(input_tensor_b, Tensor):
        factor = _inverse("div_no_nan", input_tensor_b)
        if factor is None:
            return zeros_like(input_tensor_a, memory_config=memory_config)
        return combined("multiply", "multiply", (input_tensor_a, factor), memory_config=memory_config)
    quotient = combined("div", "div", (input_tensor_a, input_tensor_b), memory_config=memory_config)
    zero = applied("eqz", ("eqz", ()), input_tensor_b, memory_config)
    result = where(zero, 0.0, quotient)
    del zero, quotient
    return result


@public("1 where |x - y| <= atol + rtol * |y|, else 0.", "isclose(x, y)", "[[0.0, 1.0]]")
def isclose(
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    *,
    rtol: object = 9.999999747378752e-06,
    atol: object = 9.99999993922529e-09,
    equal_nan: bool = False,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """One operation; int32 is converted to float32 first."""
    if not isinstance(rtol, Real) or not isinstance(atol, Real):
        raise wrong("isclose", f"rtol and atol must be numbers, not {shown((rtol, atol))}")
    pair = [
        typecast(tensor, DataType.FLOAT32) if tensor.spec.data_format == INT32 else tensor
        for tensor in (input_tensor_a, input_tensor_b)
    ]
    numbers = (float(rtol), float(atol), float(equal_nan))
    result = combined("isclose", "isclose", (pair[0], pair[1]), numbers=numbers, memory_config=memory_config)
    while pair:
        pair.pop()
    return result


@public("The GELU of a sum.", "bias_gelu(x, 1.0)", "[[1.953125, 3.0]]")
def bias_gelu(
    input_tensor_a: Tensor,
    input_tensor_b: object,
    *,
    fast_and_approximate_mode: bool = False,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    activations: object = (),
    input_tensor_a_activations: object = (),
    input_tensor_b_activations: object = (),
    sub_core_grids: object = None,
    sub_device_id: object = None,
) -> Tensor:
    """One operation; two for a number."""
    require_left_out("bias_gelu", sub_device_id=sub_device_id)
    cores = allowed("bias_gelu", sub_core_grids)
    placed: dict[str, Any] = {"memory_config": memory_config, "output_tensor": output_tensor}
    if isinstance(input_tensor_b, Tensor):
        settings: dict[str, Any] = {"dtype": dtype, "activations": activations, "cores": cores}
        settings |= {"left_activations": input_tensor_a_activations, "right_activations": input_tensor_b_activations}
        return combined("bias_gelu", "bias_gelu", (input_tensor_a, input_tensor_b), **placed, **settings)
    if not isinstance(input_tensor_b, Real):
        raise wrong("bias_gelu", f"input_tensor_b must be a Tensor or a number, not {shown(input_tensor_b)}")
    require_wanted(None if output_tensor is None else output_tensor.spec, format_of(dtype))
    tensor, after = input_tensor_a, dtype not in (None, DataType.FLOAT32, input_tensor_a.dtype)
    if dtype is DataType.FLOAT32 and tensor.dtype is not dtype:
        tensor = typecast(tensor, dtype, memory_config=memory_config)
    placed["output_tensor"] = None if after else output_tensor
    total = combined("add", "add", (tensor, input_tensor_b), **placed, cores=cores)  # the library drops activations
    result = applied("gelu", ("gelu", ()), total, memory_config, placed["output_tensor"], cores)
    if not after:
        return result
    del total
    return typecast(result, dtype, memory_config=memory_config, output_tensor=output_tensor)  # type: ignore[arg-type]


@public(
    "A polynomial of x, its coefficients from the highest power on.", "polyval(x, [1.0, 2.0, 3.0])", "[[6.0, 11.0]]"
)
def polyval(input_tensor_a: Tensor, coeffs: Sequence, *, memory_config: MemoryConfig | None = None) -> Tensor:  # type: ignore[type-arg]
    """A product and a sum for every coefficient."""
    if not all(isinstance(number, Real) for number in coeffs):
        raise wrong("polyval", f"coeffs must be numbers, not {shown(coeffs)}")
    if not coeffs:
        raise DeviceError("polyval requires at least one coefficient\npolyval: give coeffs, the highest power first")
    first, *rest = (float(number) for number in coeffs)
    if not rest:
        return full_like(input_tensor_a, first, memory_config=memory_config)
    result = combined("multiply", "multiply", (input_tensor_a, first), memory_config=memory_config)
    for at, number in enumerate(rest):
        if at:
            result = combined("multiply", "multiply", (result, input_tensor_a), memory_config=memory_config)
        result = combined("add", "add", (result, number), memory_config=memory_config)
    return result


@public(
    "The logarithm of the multivariate gamma function of order 4, lgamma(x) + lgamma(x - 0.5) + lgamma(x - 1) + "
    "lgamma(x - 1.5) + 3 * log(pi).",
    "multigammaln(ttnn.add(x, 3.0))",
    "[[7.40625, 12.0625]]",
)
def multigammaln(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """Four logarithms, three shifts of x, and four sums."""
    result = applied("multigammaln", ("lgamma", ()), input_tensor, memory_config)
    for shift in (0.5, 1.0, 1.5):
        shifted = combined("multigammaln", "subtract", (input_tensor, shift), memory_config=memory_config)
        term = applied("multigammaln", ("lgamma", ()), shifted, memory_config)
        result = combined("multigammaln", "add", (result, term), memory_config=memory_config)
        del term, shifted
    return combined("multigammaln", "add", (result, 3 * log(pi)), memory_config=memory_config)
