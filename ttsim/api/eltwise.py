"""ttnn's element-wise functions of two operands: their parameters, and add, subtract and multiply."""

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Final

from device.cores import CoreRangeSet
from device.errors import ArgumentError, DeviceError, shown
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.numbers.formats import FLOAT32, UINT16, UINT32, DataFormat
from device.spec.releases import release_of
from ops.planners.eltwise import RANGES, BinaryArguments, plan_binary, require_integer
from ops.programs.eltwise.functions import FUNCTIONS
from ops.programs.eltwise.op import Activations as ActivationsOfOp, Binary as BinaryOp
from ops.programs.eltwise.pairs import PAIRS
from ttsim.api.conversions import typecast
from ttsim.api.device_calls import format_of, require_left_out
from ttsim.runtime.calls import on_device
from ttsim.runtime.device import Device
from ttsim.runtime.execution import require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import Call, Kind, function_of, kind_of, param, wrong
from ttsim.runtime.types.configs import UnaryOpType, UnaryWithParam
from ttsim.runtime.types.tensors import DataType

LEGACY: Final = (
    "The older of two programs, in releases that take it (0.81.1 does not); planned and computed as the newer one."
)


# A choice between two programs; one that is given, though it be None, stands in a tuple
LegacyChoice = Annotated[bool | None, Kind("bool or None", lambda value: (kind_of(bool | None).convert(value),))]


class Combination(Call):
    """Parameters of all functions of two operands."""

    input_tensor_a: object = param(
        "[..., rows, columns] on the device, in TILE or ROW_MAJOR layout; or a number, if the other is a tensor.",
        kw_only=False,
    )
    input_tensor_b: object = param("Another such tensor, or a number.", kw_only=False)

    _operation: ClassVar[str]  # A row of `PAIRS`
    # Parameters that not all functions have
    activations: object = ()
    input_tensor_a_activations: object = ()
    input_tensor_b_activations: object = ()
    fast_and_approximate_mode: object = None
    sub_core_grids: object = None
    sub_device_id: object = None
    dtype: DataType | None = None
    memory_config: MemoryConfig | None = None
    output_tensor: Tensor | None = None

    @property
    def activated(self) -> bool:
        """Whether activations are applied to operands or to the result."""
        return bool(self.activations or self.input_tensor_a_activations or self.input_tensor_b_activations)

    use_legacy: LegacyChoice = param(LEGACY, default=None)

    def run(self) -> Tensor:
        """Combines the operands, by the program that the call may choose."""
        require_legacy(self._name, self.use_legacy, (self.input_tensor_a, self.input_tensor_b))
        return self.carry_out()

    def carry_out(self) -> Tensor:
        """Combines the operands."""
        name, left, right = self._name, self.input_tensor_a, self.input_tensor_b
        require_left_out(name, sub_device_id=self.sub_device_id)
        number_first = self._operation in NUMBERS_FIRST and isinstance(left, Real) and isinstance(right, Tensor)
        written_to = self.output_tensor is not None and self.output_tensor is left  # a function in place
        if not isinstance(left, Tensor) and (written_to or not number_first):
            raise wrong(name, f"input_tensor_a must be a Tensor, not {shown(left)}")
        if not isinstance(right, Tensor | Real):
            raise wrong(name, f"input_tensor_b must be a Tensor or a number, not {shown(right)}")
        exact = self.fast_and_approximate_mode is False and self._operation in SUMS
        return combined(
            name,
            self._operation,
            (left, right),
            dtype=self.dtype,
            memory_config=self.memory_config,
            output_tensor=self.output_tensor,
            activations=self.activations,
            left_activations=self.input_tensor_a_activations,
            right_activations=self.input_tensor_b_activations,
            fast=self.fast_and_approximate_mode is True,
            exact=exact,
            cores=self.sub_core_grids,
        )


SUMS: Final = frozenset(("add", "subtract", "rsub"))  # which the matrix unit computes, unless asked for an exact mode


def combined(
    name: str,
    operation: str,
    operands: tuple[object, object],
    *,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    activations: object = (),
    left_activations: object = (),
    right_activations: object = (),
    fast: bool = False,
    exact: bool = False,
    numbers: tuple[float, ...] = (),
    cores: object = None,
) -> Tensor:
    """Runs one device operation on two tensors, or on a tensor and a number, as the ttnn function of this name."""
    left, right = operands
    scalar_first = isinstance(left, Real)
    if scalar_first:
        left, right = right, left
    assert isinstance(left, Tensor)
    roles = {"input": left, "input_b": right, "target": output_tensor}
    tensors = {role: tensor for role, tensor in roles.items() if isinstance(tensor, Tensor)}
    device = device_of(tensors)
    settings: dict[str, Any] = {
        "memory_config": memory_config, "output_tensor": output_tensor, "activations": activations, "dtype": dtype,
        "left_activations": left_activations, "right_activations": right_activations, "fast": fast, "exact": exact,
        "numbers": numbers, "cores": cores,
    }  # fmt: skip
    if new := _conversions(name, operation, tensors, right):
        with device.function(f"ttnn.{name}"):
            others = {role: typecast(tensors[role], dtype) for role, dtype in new.items()}
            pair = others.get("input", left), others.get("input_b", right)
            result = combined(name, operation, pair[::-1] if scalar_first else pair, **settings)
            del pair
            while others:
                others.popitem()  # the library releases what it converted, the last first
            return result
    if scalar_first:
        left_activations, right_activations = right_activations, left_activations
    specs = {role: tensor.spec for role, tensor in tensors.items()}
    first, second, written = specs["input"], specs.get("input_b"), specs.get("target")
    own = FLOAT32 if operation == "div" and not first.data_format.is_float else first.data_format
    op = BinaryOp(
        operation=operation,
        left_format=first.data_format,
        right_format=None if second is None else second.data_format,
        scalar=_scalar(right, first.data_format) if isinstance(right, Real) else None,
        data_format=written.data_format if written is not None else format_of(dtype) or own,
        activations=activations_of(name, activations),
        left_activations=_of_operand(name, left_activations, first),
        right_activations=_of_operand(name, right_activations, second or first),
        fast=fast and PAIRS[operation].fast is not None,
        exact=exact,
        numbers=numbers,
        scalar_first=scalar_first,
        cores=allowed(name, cores),
    )
    call = BinaryArguments(
        op=op, left=first, right=second, place=memory_config, target=written, wanted=format_of(dtype)
    )
    plan = plan_binary(call, device.spec)
    in_rows = output_tensor is not None and output_tensor.layout is Layout.ROW_MAJOR
    planned_alone = device.values == "off" and not device.strict
    if op.scalar is not None and not first.data_format.is_float and not planned_alone:
        require_integer(op.scalar, first.data_format, operation)
    if in_rows and not planned_alone:
        raise ArgumentError(
            f"{name}: the result goes into a tensor in rows, and the real library writes tiles into pages of rows, "
            f"which is planned with values off alone; use {operation} without an output, or bring it into TILE_LAYOUT"
        )
    with device.function(f"ttnn.{name}"):
        return run(plan, tensors, device)["output"]


def _of_operand(name: str, activations: object, operand: TensorSpec) -> ActivationsOfOp:
    """The activations of an operand without activations that are the identity in its format, as the library does."""
    functions = activations_of(name, activations)
    unsigned = operand.data_format in (UINT32, UINT16)
    return tuple(function for function in functions if not (unsigned and function[0] == "relu"))


def _scalar(number: Real, data_format: DataFormat) -> float:
    """A number as an operand; a 32-bit integer, signed or unsigned, takes the signedness of the tensor."""
    if data_format in RANGES and isinstance(number, Integral) and -(1 << 31) <= int(number) < 1 << 32:
        least, most = RANGES[data_format]
        return float((int(number) - least) % (most - least + 1) + least)
    return float(number)


def allowed(name: str, cores: object) -> CoreRangeSet | None:
    """The cores that a call may use."""
    if not isinstance(cores, CoreRangeSet | None):
        raise wrong(name, f"sub_core_grids must be a CoreRangeSet, not {shown(cores)}")
    return cores


def _conversions(name: str, operation: str, tensors: Mapping[str, Tensor], other: object) -> dict[str, DataType]:
    """Data types to which the library converts integer tensors before the operation."""
    given = {role: tensor.dtype for role, tensor in tensors.items() if role != "target"}
    if operation in COMPARISONS:
        if name in IN_PLACE_COMPARISONS:
            return {}
        return {role: DataType.UINT16 for role, dtype in given.items() if dtype is DataType.UINT8}
    if operation not in CONVERTING:
        return {}
    floats = {dtype for dtype in given.values() if dtype.format.is_float}
    if isinstance(other, Real) and not isinstance(other, Integral) and not floats:
        floats = {DataType.FLOAT32}
    new = {dtype: DataType.BFLOAT16 if dtype.format.is_block else dtype for dtype in floats}
    return {role: next(iter(new.values())) for role, dtype in given.items() if len(new) == 1 and dtype.format in RANGES}


COMPARISONS: Final = frozenset(("eq", "ne", "gt", "ge", "lt", "le"))
IN_PLACE_COMPARISONS: Final = frozenset(f"{name}_" for name in COMPARISONS)  # which take integers as they are
CONVERTING: Final = frozenset(("multiply", "div"))  # bring integers to the format of floats
NUMBERS_FIRST: Final = frozenset(("add", "subtract", "multiply", "div"))


ORDER: Final = (
    "input_tensor_a input_tensor_b alpha rtol atol equal_nan fast_and_approximate_mode rounding_mode dtype "
    "memory_config output_tensor activations input_tensor_a_activations input_tensor_b_activations use_legacy "
    "sub_core_grids sub_device_id"
)


class Activations(Combination):
    """Adds activations of the operands and of the result."""

    activations: object = param(
        "Functions that are applied to the result in this order, by name or as UnaryWithParam. Numbers of functions "
        "applied here were never compared with recordings of the real kernels.",
        default=(),
    )
    input_tensor_a_activations: object = param("Functions applied to the first operand first.", default=())
    input_tensor_b_activations: object = param("Functions applied to the second operand first.", default=())


class Grids(Combination):
    """Adds the choice of cores."""

    sub_core_grids: object = param("Cores that may be used; None for all.", default=None)
    sub_device_id: object = param("Not simulated; None for all cores.", default=None)


class Typed(Combination):
    """Adds the data type of the result."""

    dtype: DataType | None = param("Data type of the result; None for that of the first tensor.", default=None)


class Placed(Combination):
    """Adds the memory of the result."""

    memory_config: MemoryConfig | None = param(
        "Memory of the result; None lets the call choose, mostly the memory of the first tensor.", default=None
    )


class Written(Combination):
    """Adds an output tensor of the caller."""

    output_tensor: Tensor | None = param(
        "A tensor of the result's shape that receives the result and is returned.", default=None
    )


class Whole(Typed, Placed, Written, Activations, Grids):
    """All parameters of a function of two operands."""


class Binary(Whole):
    """A sum, a difference or a product."""

    fast_and_approximate_mode: bool | None = param(
        "Compute a product with the matrix unit; False rounds a sum or a difference to the nearest bfloat16.",
        default=None,
    )


# ttnn's names of the operands of functions that write into the first, but for add_ and subtract_
IN_PLACE_OPERANDS: Final = {"input_tensor_a": "input_a", "input_tensor_b": "input_b"}


class InPlace(Activations, Grids):
    """A function of two operands that writes into the first operand."""

    input_tensor_a: Tensor = param(
        "[..., rows, columns] on the device, in TILE layout and of the result's shape.", kw_only=False
    )
    fast_and_approximate_mode: bool | None = param(
        "Compute a product with the matrix unit; False rounds a sum or a difference to the nearest bfloat16.",
        default=True,
    )

    def carry_out(self) -> Tensor:
        """Combines the operands."""
        self.output_tensor = self.input_tensor_a
        return super().carry_out()


def require_legacy(name: str, use_legacy: object, operands: Sequence[object]) -> None:
    """Raises ArgumentTypeError for ``use_legacy`` on a device whose release has only one program."""
    devices = [device for operand in operands if isinstance(operand, Tensor) and (device := operand.device())]
    if use_legacy is None or not devices:
        return
    release = devices[0].spec.release
    if not release_of(release).takes_legacy:
        raise wrong(name, f"there is no 'use_legacy' in release {release}, which has one program; leave it out")


def _binary(
    operation: str, sentence: str, units: str, results: tuple[float, float]
) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """The function of two operands, and the one that writes into the first."""

    class Function(Binary, name=operation, parameters=ORDER):
        __doc__ = f"""{sentence}, element by element; sides of length 1 are repeated.

        {units}

        Returns:
            A tensor of the broadcast shape, or ``output_tensor``.

        Raises:
            DeviceError: The shapes cannot be broadcast, a tensor is on the host, or the result does not fit its memory.

        Examples:
            >>> tensor = ttnn.Tensor(np.array([[1.0, 2.0]]), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
            >>> ttnn.{operation}(tensor, 3.0).to_list()
            [[{results[0]}, {results[1]}]]
        """
        _operation = operation

    class FunctionInPlace(
        InPlace,
        name=f"{operation}_",
        parameters="input_tensor_a input_tensor_b activations input_tensor_a_activations input_tensor_b_activations "
        "fast_and_approximate_mode use_legacy sub_core_grids sub_device_id",
    ):
        __doc__ = f"""{sentence}, written into the first tensor; otherwise as `{operation}`.

        Its outputs were never compared with recordings of the real library.

        Returns:
            The first tensor, which holds the result.

        Raises:
            DeviceError: The shapes cannot be broadcast, or a tensor is on the host.

        Examples:
            >>> tensor = ttnn.Tensor(np.array([[1.0, 2.0]]), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
            >>> ttnn.{operation}_(tensor, 3.0) is tensor
            True
            >>> tensor.to_list()
            [[{results[0]}, {results[1]}]]
        """
        _operation = operation
        _called = IN_PLACE_OPERANDS if operation == "multiply" else {}

    return on_device(function_of(Function)), on_device(function_of(FunctionInPlace))


_OPERANDS = "The {} of two tensors, or of a tensor and a number"
_MATRIX_UNIT = "Computed by the matrix unit, or by the vector unit if both operands are float32."

add, add_ = _binary("add", _OPERANDS.format("sum"), _MATRIX_UNIT, (4.0, 5.0))
subtract, subtract_ = _binary("subtract", _OPERANDS.format("difference"), _MATRIX_UNIT, (-2.0, -1.0))
multiply, multiply_ = _binary("multiply", _OPERANDS.format("product"), "Computed by the vector unit.", (3.0, 6.0))
sub, sub_, mul, mul_ = subtract, subtract_, multiply, multiply_  # ttnn has both names of each


def device_of(tensors: Mapping[str, Tensor]) -> Device:
    """The device of all tensors; raises DeviceError if a tensor is on the host."""
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


def activations_of(owner: str, activations: object) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Activations as lower-case names with parameters; accepts a list or a single activation."""
    if activations is None:
        return ()
    several = isinstance(activations, Sequence) and not isinstance(activations, str)
    return tuple(_activation(owner, activation) for activation in (activations if several else (activations,)))  # type: ignore[attr-defined]


def _activation(owner: str, activation: object) -> tuple[str, tuple[float, ...]]:
    """An activation as its lower-case name and its parameters."""
    if isinstance(activation, UnaryWithParam):
        name, parameters = activation.op_type.name.lower(), activation.params
    else:
        name, parameters = (activation.name if isinstance(activation, UnaryOpType) else str(activation)).lower(), ()
    if name not in FUNCTIONS:
        raise ArgumentError(f"{owner}: there is no activation {shown(activation)}; for example 'relu', 'gelu', 'silu'")
    return name, parameters
