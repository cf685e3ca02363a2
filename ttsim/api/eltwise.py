"""ttnn's functions of the elements of one tensor, or of two."""

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import Any, ClassVar, Final

from device.cores import PlainEnum
from device.errors import ArgumentError, ArgumentTypeError, DeviceError, NotSimulatedError, shown
from device.memory.memory_config import Layout, MemoryConfig
from ops.planners.eltwise import BinaryArguments, plan_binary, plan_unary
from ops.programs.eltwise.functions import FUNCTIONS, comparison
from ops.programs.eltwise.op import Binary as BinaryOp, BinaryOperation
from ttsim.api.device_calls import format_of, require_left_out
from ttsim.runtime.calls import on_device
from ttsim.runtime.device import Device
from ttsim.runtime.execution import require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import OPERATIONS, Call, checked_as, function_of, incompatible, param
from ttsim.runtime.types.configs import UnaryOpType, UnaryWithParam
from ttsim.runtime.types.docs import RAISES, documented
from ttsim.runtime.types.tensors import DataType


class Combination(Call):
    """What all functions of two operands have."""

    input_tensor_a: object = param(
        "[..., rows, columns] on the device, in TILE or ROW_MAJOR layout; or a number, if the other is a tensor.",
        kw_only=False,
    )
    input_tensor_b: object = param("Another such tensor, or a number.", kw_only=False)
    fast_and_approximate_mode: bool | None = param(
        "Compute a product with the matrix unit; sums and differences have one mode only.", default=None
    )
    activations: object = param(
        "Functions that are applied to the result in this order, by name or as UnaryWithParam. Numbers of functions "
        "applied here were never compared with recordings of the real kernels.",
        default=(),
    )
    input_tensor_a_activations: object = param("Functions applied to the first operand first.", default=())
    input_tensor_b_activations: object = param("Functions applied to the second operand first.", default=())
    sub_core_grids: object = param("Not simulated; None for all cores.", default=None)
    sub_device_id: object = param("Not simulated; None for all cores.", default=None)

    _operation: ClassVar[BinaryOperation]
    # Parameters of functions that do not write into their first operand
    dtype: DataType | None = None
    memory_config: MemoryConfig | None = None
    output_tensor: Tensor | None = None
    use_legacy: object = None

    def run(self) -> Tensor:
        """Combines the operands."""
        name, operation, target = self._name, self._operation, self.output_tensor
        grids = {"sub_core_grids": self.sub_core_grids, "sub_device_id": self.sub_device_id}
        require_left_out(name, use_legacy=self.use_legacy, **grids)
        left, right = self.input_tensor_a, self.input_tensor_b
        scalar_first = isinstance(left, Real)
        if scalar_first:
            left, right = right, left
        if not isinstance(left, Tensor):
            raise _wrong(name, f"input_tensor_a must be a Tensor, not {shown(left)}")
        if not isinstance(right, Tensor | Real):
            raise _wrong(name, f"input_tensor_b must be a Tensor or a number, not {shown(right)}")
        roles = {"input": left, "input_b": right, "target": target}
        tensors = {role: tensor for role, tensor in roles.items() if isinstance(tensor, Tensor)}
        device = device_of(tensors)
        specs = {role: tensor.spec for role, tensor in tensors.items()}
        second, written, out_format = specs.get("input_b"), specs.get("target"), format_of(self.dtype)
        op = BinaryOp(
            operation=operation,
            left_format=left.spec.data_format,
            right_format=None if second is None else second.data_format,
            scalar=float(right) if isinstance(right, Real) else None,
            data_format=written.data_format if written is not None else out_format or left.spec.data_format,
            activations=_activations(name, self.activations),
            left_activations=_activations(name, self.input_tensor_a_activations),
            right_activations=_activations(name, self.input_tensor_b_activations),
            fast=self.fast_and_approximate_mode is True and operation is BinaryOperation.MULTIPLY,
            scalar_first=scalar_first,
        )
        call = BinaryArguments(
            op=op, left=left.spec, right=second, out_format=out_format, place=self.memory_config, target=written
        )
        plan = plan_binary(call, device.spec)
        if target is not None and target.layout is Layout.ROW_MAJOR and (device.strict or device.values != "off"):
            raise ArgumentError(
                f"{name}: the result goes into a tensor in rows, and the real library writes tiles into pages of rows, "
                f"which is planned with values off alone; use {operation.value} without an output, or bring it into "
                "TILE_LAYOUT"
            )
        with device.function(f"ttnn.{name}"):
            return run(plan, tensors, device)["output"]


class Binary(Combination):
    """A function of two operands."""

    dtype: DataType | None = param("Data type of the result; None for that of the first tensor.", default=None)
    memory_config: MemoryConfig | None = param(
        "Memory of the result; None lets the call choose, mostly the memory of the first tensor.", default=None
    )
    output_tensor: Tensor | None = param(
        "A tensor of the result's shape that receives the result and is returned.", default=None
    )
    use_legacy: object = param("Not simulated; None lets the library choose.", default=None)


class InPlace(Combination):
    """A function of two operands that writes into the first."""

    input_tensor_a: Tensor = param(
        "[..., rows, columns] on the device, in TILE layout and of the result's shape.", kw_only=False
    )
    fast_and_approximate_mode: bool | None = param(
        "Compute a product with the matrix unit; sums and differences have one mode only.", default=True
    )

    def run(self) -> Tensor:
        """Combines the operands."""
        self.output_tensor = self.input_tensor_a
        return super().run()


def _wrong(name: str, text: str) -> ArgumentTypeError:
    return ArgumentTypeError(f"{incompatible(OPERATIONS + name)}\n{name}: {text}")


def _binary(
    operation: BinaryOperation, sentence: str, units: str, results: tuple[float, float]
) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """The function of two operands, and the one that writes into the first."""

    class Function(
        Binary,
        name=operation.value,
        parameters="input_tensor_a input_tensor_b fast_and_approximate_mode dtype memory_config output_tensor "
        "activations input_tensor_a_activations input_tensor_b_activations use_legacy sub_core_grids sub_device_id",
    ):
        __doc__ = f"""{sentence}, element by element; sides of length 1 are repeated.

        {units}

        Returns:
            A tensor of the broadcast shape, or ``output_tensor``.

        Raises:
            DeviceError: The shapes cannot be broadcast, a tensor is on the host, or the result does not fit its memory.

        Examples:
            >>> tensor = ttnn.Tensor(np.array([[1.0, 2.0]]), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
            >>> ttnn.{operation.value}(tensor, 3.0).to_list()
            [[{results[0]}, {results[1]}]]
        """
        _operation = operation

    class FunctionInPlace(
        InPlace,
        name=f"{operation.value}_",
        parameters="input_tensor_a input_tensor_b activations input_tensor_a_activations input_tensor_b_activations "
        "fast_and_approximate_mode sub_core_grids sub_device_id",
    ):
        __doc__ = f"""{sentence}, written into the first tensor; otherwise as `{operation.value}`.

        Its outputs were never compared with recordings of the real library.

        Returns:
            ``input_tensor_a``, which holds the result.

        Raises:
            DeviceError: The shapes cannot be broadcast, or a tensor is on the host.

        Examples:
            >>> tensor = ttnn.Tensor(np.array([[1.0, 2.0]]), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
            >>> ttnn.{operation.value}_(tensor, 3.0) is tensor
            True
            >>> tensor.to_list()
            [[{results[0]}, {results[1]}]]
        """
        _operation = operation

    return on_device(function_of(Function)), on_device(function_of(FunctionInPlace))


_OPERANDS = "The {} of two tensors, or of a tensor and a number"
_MATRIX_UNIT = "Computed by the matrix unit, or by the vector unit if both operands are float32."
_VECTOR_UNIT = "Computed by the vector unit."

add, add_ = _binary(BinaryOperation.ADD, _OPERANDS.format("sum"), _MATRIX_UNIT, (4.0, 5.0))
subtract, subtract_ = _binary(BinaryOperation.SUBTRACT, _OPERANDS.format("difference"), _MATRIX_UNIT, (-2.0, -1.0))
multiply, multiply_ = _binary(
    BinaryOperation.MULTIPLY, _OPERANDS.format("product"), "Computed by the vector unit.", (3.0, 6.0)
)
sub, sub_, mul, mul_ = subtract, subtract_, multiply, multiply_  # ttnn has both names of each


def device_of(tensors: Mapping[str, Tensor]) -> Device:
    """The device on which all tensors are; raises DeviceError for one on the host."""
    for name, tensor in tensors.items():
        which = {"input": "Input Tensor A", "input_b": "Input Tensor B"}.get(name, "Tensor")
        require_allocated(tensor, first_line=f"{which if 'input_b' in tensors else 'Input Tensor'} is not allocated")
    devices = []
    for name, tensor in tensors.items():
        which = {"input": "A", "input_b": "B"}.get(name, "output")
        if (device := tensor.device()) is None:
            raise DeviceError(
                f"Input tensor {which} must be on device, got storage type: StorageType::HOST\n"
                "give every tensor to the device with .to(device)"
            )
        devices.append(device)
    return devices[0]


def _activations(owner: str, activations: object) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Activations by their names in lower case, and their parameters; a single one may stand alone."""
    if activations is None:
        return ()
    several = isinstance(activations, Sequence) and not isinstance(activations, str)
    return tuple(_activation(owner, activation) for activation in (activations if several else (activations,)))  # type: ignore[attr-defined]


def _activation(owner: str, activation: object) -> tuple[str, tuple[float, ...]]:
    """An activation by its name in lower case, and its parameters."""
    if isinstance(activation, UnaryWithParam):
        name, parameters = activation.op_type.name.lower(), activation.params
    else:
        name, parameters = (activation.name if isinstance(activation, UnaryOpType) else str(activation)).lower(), ()
    if name not in FUNCTIONS:
        raise ArgumentError(f"{owner}: there is no activation {shown(activation)}; for example 'relu', 'gelu', 'silu'")
    return name, parameters


class SigmoidMode(PlainEnum):
    """How a sigmoid is computed; only Accurate is simulated.

    Examples:
        >>> ttnn.SigmoidMode.Accurate.value
        2
    """

    FastApproximate = 0
    AccurateWithFastExp = 1
    Accurate = 2


class GeluVariant(PlainEnum):
    """How a GELU is computed; only Accurate is simulated.

    Examples:
        >>> ttnn.GeluVariant.Accurate.value
        0
    """

    Accurate = 0
    FastLut = 1
    Tanh = 2


# Keywords of one function alone, each with the value that alone is simulated.
FIXED_KEYWORDS: Final[Mapping[str, Mapping[str, object]]] = MappingProxyType(
    {"sigmoid": {"vector_mode": 4, "mode": SigmoidMode.Accurate}, "gelu": {"variant": GeluVariant.Accurate}}
)


def _unary(name: str, activation: str) -> Callable[..., Tensor]:
    """Ttnn's function of one tensor that applies an activation of `FUNCTIONS`."""
    parameters, fixed = FUNCTIONS[activation].parameters, FIXED_KEYWORDS.get(name, {})
    placed = [key for key, default in parameters.items() if default is None]  # those with a default are keywords alone

    @on_device
    def function(input_tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        for key, value in fixed.items():
            if (argument := kwargs.pop(key, value)) != value:
                raise NotSimulatedError(f"{name}: {key}={shown(argument)} is not simulated; {value} is")
        values = {**parameters, **dict(zip(placed, args, strict=False))}
        values.update({key: kwargs.pop(key) for key in parameters if key in kwargs})
        if len(args) > len(placed):
            raise _wrong(name, f"{len(args) - len(placed)} by position are too many")
        for key, number in values.items():
            if not isinstance(number, Real):
                raise _wrong(name, f"{key} must be a number, not {shown(number)}")
        return keywords(input_tensor, tuple(float(number) for number in values.values()), **kwargs)

    @checked_as(name=name)
    def keywords(
        input_tensor: Tensor,
        numbers: tuple,  # type: ignore[type-arg]
        *,
        memory_config: MemoryConfig | None = None,
        output_tensor: Tensor | None = None,
        fast_and_approximate_mode: object = None,
        sub_core_grids: object = None,
    ) -> Tensor:
        require_left_out(name, fast_and_approximate_mode=fast_and_approximate_mode, sub_core_grids=sub_core_grids)
        tensors = {"input": input_tensor} | ({} if output_tensor is None else {"target": output_tensor})
        device = device_of(tensors)
        target = None if output_tensor is None else output_tensor.spec
        plan = plan_unary(input_tensor.spec, (activation, numbers), device.spec, place=memory_config, target=target)
        with device.function(f"ttnn.{name}"):
            return run(plan, tensors, device)["output"]

    function.__name__ = function.__qualname__ = name
    texts = {
        "input_tensor": "[..., rows, columns] on the device, in TILE or ROW_MAJOR layout.",
        **dict.fromkeys(parameters, "The number of this name in the formula above."),
        **{key: f"Only {value} is simulated." for key, value in fixed.items()},
        "memory_config": "Memory of the result; None for that of ``input_tensor``.",
        "output_tensor": "A tensor of the same shape that receives the result and is returned.",
        "fast_and_approximate_mode": "Not simulated; None or False for the library's default code.",
        "sub_core_grids": "Not simulated; None for all cores.",
    }
    head = f"{FUNCTIONS[activation].text} of every element x.\n\n{comparison(name)}"
    returns = "\n\nReturns:\n    A tensor of the same shape and data type, or ``output_tensor``."
    row = FUNCTIONS[activation]
    given = "".join(f", {key}=0.5" for key in placed)
    example = f"""

Examples:
    >>> tensor = ttnn.Tensor(np.array([{list(row.numbers)}]), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
    >>> ttnn.{name}(tensor{given}).to_list()
    [{list(row.results)}]"""
    function.__doc__ = documented(head + returns + example, {"Args": texts, "Raises": RAISES})
    return function


_UNARY: Final = {name: _unary(name, name) for name, function in FUNCTIONS.items() if function.text}
_UNARY["sigmoid_accurate"] = _unary("sigmoid_accurate", "sigmoid")


def __getattr__(name: str) -> Callable[..., Tensor]:
    """A function of one tensor by ttnn's name."""
    if name not in _UNARY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _UNARY[name]
