"""ttnn's functions of two operands that run one device operation, and their in-place forms."""

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from device.errors import DeviceError
from device.numbers.formats import BFLOAT16, INT32, UINT32, quantize
from ops.planners.eltwise import require_wanted
from ops.programs.eltwise.pairs import PAIRS
from ttsim.api.conversions import typecast
from ttsim.api.device_calls import format_of
from ttsim.api.eltwise import (
    IN_PLACE_OPERANDS,
    ORDER,
    Activations,
    Combination,
    Grids,
    Placed,
    Typed,
    Whole,
    Written,
    allowed,
)
from ttsim.api.unary import applied
from ttsim.runtime.calls import on_device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import function_of, param, wrong
from ttsim.runtime.types.tensors import DataType


class OfTensors(Combination):
    """A function of two tensors, without numbers."""

    input_tensor_b: Tensor = param("Another such tensor.", kw_only=False)


SCALAR: Final = {"input_b": ("input_tensor_b",)}  # ttnn's name of a number as the second operand


class OfIntegers(Placed, Written, Activations, Grids):
    """A function of integers; with a number and without activations, it runs as a function of one tensor."""

    _others = SCALAR

    def carry_out(self) -> Tensor:
        """Runs the operation; an integer operand becomes a parameter of the operation."""
        left, right = self.input_tensor_a, self.input_tensor_b
        if isinstance(right, Integral) and isinstance(left, Tensor) and not self.activated:
            unary = PAIRS[self._operation].op.lower()
            cores = allowed(self._name, self.sub_core_grids)
            return applied(self._name, (unary, (float(right),)), left, self.memory_config, self.output_tensor, cores)
        if isinstance(right, Real) and not isinstance(right, Integral):
            raise wrong(self._name, f"input_tensor_b must be a Tensor or an integer, not {right!r}")
        return super().carry_out()


class Extremum(Typed, Placed, Written, Activations):
    """Maximum or minimum; with a number, it runs as a function of one tensor, whose result may be converted."""

    _others = SCALAR

    def carry_out(self) -> Tensor:
        """Runs the operation; a number becomes a parameter of the operation."""
        left, right = self.input_tensor_a, self.input_tensor_b
        if not isinstance(right, Real) or not isinstance(left, Tensor):
            return super().carry_out()
        require_wanted(None if self.output_tensor is None else self.output_tensor.spec, format_of(self.dtype))
        function, target = (self._operation, (float(right),)), self.output_tensor
        if self.dtype in (None, left.dtype):
            return applied(self._name, function, left, self.memory_config, target)
        result = applied(self._name, function, left, self.memory_config)
        return typecast(result, self.dtype, output_tensor=target)


class Remainder(Placed, Grids):
    """The remainder of a division; a number makes it a function of one tensor, except an integer with int32."""

    def carry_out(self) -> Tensor:
        """Combines the operands."""
        left, right, name = self.input_tensor_a, self.input_tensor_b, self._operation
        if not isinstance(right, Real) or not isinstance(left, Tensor) or self.dtype is not None or self.activated:
            return super().carry_out()
        data_format, whole = left.spec.data_format, isinstance(right, Integral)
        if data_format == INT32 and whole:
            return super().carry_out()
        if data_format == INT32:
            left = typecast(left, DataType.FLOAT32)
        if data_format == UINT32 and name == "remainder" and not whole:
            raise DeviceError(
                f"Expected integer scalar divisor (uint32 or int32)\n{name}: give an integer, or typecast the tensor"
            )
        if data_format == UINT32 and name == "remainder" and right <= 0:
            raise DeviceError(f"Divisor must be positive, got {right}\n{name}: uint32 has no negative divisors")
        cores = allowed(name, self.sub_core_grids)
        return applied(name, (name, (float(right),)), left, self.memory_config, self.output_tensor, cores)


class ShortRemainder(Remainder):
    """A remainder whose second parameter has another name for a number."""

    _others: ClassVar[Mapping[str, Sequence[str]]] = {"scalar": ("input_tensor_b",)}


class WholeRemainder(Remainder, Whole):
    """A remainder with all parameters."""


class WithoutPlace(Typed, Written, Placed, Activations, OfTensors):
    """A function of two tensors of integers."""


class OfTwoTensors(Placed, OfTensors):
    """A function of two tensors."""


class Fast(Whole):
    """A function whose fast mode has no effect."""

    fast_and_approximate_mode: bool = param("Planned as the exact mode.", default=False)


class Reversed(Typed, Placed, Written, Activations):
    """A difference, the first operand taken from the second."""

    _others = SCALAR

    fast_and_approximate_mode: bool | None = param("False rounds the difference to the nearest bfloat16.", default=True)


class Row(NamedTuple):
    """A function of ttnn."""

    operation: str  # A row of `PAIRS`
    text: str  # What it gives for operands a and b
    kind: type[Combination] = Whole  # The call, with its parameters
    integers: bool = False  # Whether its example is of integers


EXTREMUM, INTEGER, TENSORS = Extremum, OfIntegers, OfTwoTensors
FUNCTIONS: Final = {
    "eq": Row("eq", "1 where a == b, else 0"),
    "ne": Row("ne", "1 where a != b, else 0"),
    "gt": Row("gt", "1 where a > b, else 0"),
    "ge": Row("ge", "1 where a >= b, else 0"),
    "lt": Row("lt", "1 where a < b, else 0"),
    "le": Row("le", "1 where a <= b, else 0"),
    "logical_and": Row("logical_and", "1 where neither a nor b is 0, else 0"),
    "logical_or": Row("logical_or", "1 where a or b is not 0, else 0"),
    "logical_xor": Row("logical_xor", "1 where one of a and b is 0 and the other is not, else 0"),
    "maximum": Row("maximum", "The larger of a and b", EXTREMUM),
    "minimum": Row("minimum", "The smaller of a and b", EXTREMUM),
    "remainder": Row("remainder", "What a / b, rounded down, leaves of a", WholeRemainder),
    "fmod": Row("fmod", "What a / b, rounded toward zero, leaves of a", ShortRemainder),
    "bitwise_and": Row("bitwise_and", "The bits of both a and b", INTEGER, integers=True),
    "bitwise_or": Row("bitwise_or", "The bits of a or b", INTEGER, integers=True),
    "bitwise_xor": Row("bitwise_xor", "The bits of one of a and b alone", INTEGER, integers=True),
    "bitwise_left_shift": Row("bitwise_left_shift", "a moved by b bits to the left", INTEGER, integers=True),
    "bitwise_right_shift": Row(
        "bitwise_right_shift", "a moved by b bits to the right, its sign repeated", INTEGER, integers=True
    ),
    "logical_left_shift": Row("bitwise_left_shift", "a moved by b bits to the left", INTEGER, integers=True),
    "logical_right_shift": Row("logical_right_shift", "a moved by b bits to the right", integers=True),
    "logaddexp": Row("logaddexp", "log(exp(a) + exp(b))"),
    "logaddexp2": Row("logaddexp2", "log2(2**a + 2**b)"),
    "ldexp": Row("ldexp", "a * 2**b"),
    "squared_difference": Row("squared_difference", "(a - b)**2"),
    "xlogy": Row("xlogy", "a * log(b), and 0 where a is 0"),
    "atan2": Row("atan2", "The angle of the point (b, a)", TENSORS),
    "hypot": Row("hypot", "The square root of a**2 + b**2", TENSORS),
    "nextafter": Row("nextafter", "The float32 after a on the way to b", TENSORS),
    "gcd": Row("gcd", "The greatest common divisor of a and b", WithoutPlace, integers=True),
    "lcm": Row("lcm", "The least common multiple of a and b", WithoutPlace, integers=True),
    "rsub": Row("rsub", "b - a", Reversed),
}


class ShortInPlace(Activations, Grids):
    """A function of two operands that writes into the first."""

    _called = IN_PLACE_OPERANDS

    def carry_out(self) -> Tensor:
        """Combines the operands."""
        self.output_tensor = self.input_tensor_a  # type: ignore[assignment]
        return super().carry_out()


class FastInPlace(ShortInPlace):
    """An in-place function with a mode that uses the matrix unit."""

    fast_and_approximate_mode: bool | None = param("Compute a quotient with the matrix unit.", default=False)

    def carry_out(self) -> Tensor:
        """Divides; refuses integers, whose float quotients the first operand cannot hold."""
        left, right = self.input_tensor_a, self.input_tensor_b
        whole = right.spec.data_format == INT32 if isinstance(right, Tensor) else isinstance(right, Integral)
        if whole and isinstance(left, Tensor) and left.spec.data_format == INT32:
            raise DeviceError(
                f"For integer division, supported output dtype is FLOAT32\n{self._name}: call div, or typecast it"
            )
        return super().carry_out()


class ReversedInPlace(ShortInPlace):
    """A difference, the first operand taken from the second."""

    fast_and_approximate_mode: bool | None = param("False rounds the difference to the nearest bfloat16.", default=True)


IN_PLACE: Final = {
    **{
        f"{name}_": FUNCTIONS[name]._replace(kind=ShortInPlace)
        for name in (
            "eq", "ne", "gt", "ge", "lt", "le", "logical_and", "logical_or", "logical_xor", "logaddexp", "logaddexp2",
            "ldexp", "squared_difference",
        )
    },
    "bias_gelu_": Row("bias_gelu", "The GELU of a + b", ShortInPlace),
    "rsub_": Row("rsub", "b - a", ReversedInPlace),
    "div_": Row("div", "a / b", FastInPlace),
    "divide_": Row("div", "a / b", FastInPlace),
}  # fmt: skip


def _example(name: str, row: Row) -> str:
    """Two lines that call the function, and what it gives."""
    of_tensors = issubclass(row.kind, OfTensors)
    numbers, other = ([12, 3], 2) if row.integers else ([1.0, 2.0], 2.0)
    kind: Any = np.int64 if row.integers else np.float64
    with np.errstate(all="ignore"):
        values = np.asarray(PAIRS[row.operation].values(np.array([numbers], kind), np.array(other, kind)))
    results = values.astype(np.int64).tolist() if row.integers else (quantize(values, BFLOAT16) + 0.0).tolist()
    made = (
        f"ttnn.Tensor(np.array([{numbers}]), ttnn.{'int32' if row.integers else 'bfloat16'}, device, ttnn.TILE_LAYOUT)"
    )
    second = f"ttnn.full_like(tensor, {other})" if of_tensors else other
    return f"""
            >>> tensor = {made}
            >>> ttnn.{name}(tensor, {second}).to_list()
            {results}"""


def _function(name: str, row: Row, *, in_place: bool) -> Callable[..., Tensor]:
    returns = "The first tensor, which holds the result" if in_place else "A tensor of the broadcast shape"

    class Function(row.kind, name=name, parameters=ORDER):  # type: ignore[misc, name-defined, call-arg]
        __doc__ = f"""{row.text}, for the elements a and b of two operands; sides of length 1 are repeated.

        Its numbers were never compared with recordings of the real kernel.

        Returns:
            {returns}.

        Raises:
            DeviceError: The shapes or formats do not go together, or a tensor is on the host.

        Examples:{_example(name, row)}
        """
        _operation: ClassVar[str] = row.operation

    return on_device(function_of(Function))


_MADE: Final[dict[str, Callable[..., Tensor]]] = {}


def __getattr__(name: str) -> Callable[..., Tensor]:
    """A function of two operands by ttnn's name."""
    row = FUNCTIONS.get(name) or IN_PLACE.get(name)
    if row is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in _MADE:
        _MADE[name] = _function(name, row, in_place=name in IN_PLACE)
    return _MADE[name]
