"""The `OpModel` of a class of device operations: values, cycles and data movement.

Every folder of `ops.programs` defines the models of its operations; `ops.op_models` collects all models in one table
for the passes of `ops.passes`. Plans and passes do not depend on programs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

from device.errors import ArgumentError, NotSimulatedError, TTSimError
from device.matrix_unit.arithmetic import Arithmetic
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.formats import Array
from device.plan import DeviceOp
from device.spec.device_spec import DeviceSpec
from device.time.stages import Lazy, OperationCycles, Stage

W = TypeVar("W", bound=DeviceOp)

PRODUCT_FLOPS: Final = 2 * TILE**3  # multiplications and additions of two tiles
ON_HOST: Final = "the host does it, whose time is not counted"


class NoModelError(TTSimError, RuntimeError):
    """A device operation has no model of its cycles; the text names the operation or the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesContext:
    """A reading of values."""

    spec: DeviceSpec  # The device, for the ways in which matrix units differ
    arithmetic: Arithmetic  # Exact or fast


@dataclass(frozen=True, slots=True)
class Detail:
    """Something that was decided when a device operation was planned."""

    name: str  # What, as a key
    value: str | int | bool | tuple[int, ...]
    text: str  # The same in words, as part of a list


def counted(name: str, count: int, noun: str) -> Detail:
    """A count with its noun: "one core", "8 cores"."""
    return Detail(name, count, f"one {noun}" if count == 1 else f"{count} {noun}s")


def either(name: str, value: bool, text: str, otherwise: str) -> Detail:
    """A yes or no fact, with the texts of both cases."""
    return Detail(name, value, text if value else otherwise)


def tiles(name: str, height: int, width: int, text: str) -> Detail:
    """Height and width in tiles, inserted into a text: "blocks of {} tiles"."""
    return Detail(name, (height, width), text.format(f"{height}x{width}"))


def uncompared_fact(text: str) -> Detail:
    """The note that values of an operation were never compared with recordings (`device.numbers.vector_unit`)."""
    return Detail(name="uncompared", value=True, text=text)


@dataclass(frozen=True, kw_only=True)
class Description:
    """How an operation was planned, for reports; without figures of time.

    Facts, stage texts and attributes may be functions, which are called when they are read.

    Attributes:
        facts: How the operation was planned.
        stages: The work of its stages, as text; stages with the same work in every program may be omitted.
        attributes: Attributes that the real library's profiler prints for the operation, by name.
    """

    facts: Lazy[tuple[Detail, ...]] = Lazy(lambda description: ())  # noqa: RUF009 (a descriptor, not a default)
    stages: Lazy[Mapping[Stage, str]] = Lazy(lambda description: {})  # noqa: RUF009
    # The class of its program in `ops/passes/expected_errors.toml`; empty if it is the operation's name
    measured_as: str = ""
    composed_of: str = ""  # What its model is made of, if it was not measured
    attributes: Lazy[tuple[tuple[str, str], ...]] = Lazy(lambda description: ())  # noqa: RUF009


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The tensors at both ends of a device operation."""

    read: TensorSpec  # The first input
    written: TensorSpec  # The first output, or else the input it writes into
    others: tuple[TensorSpec, ...] = ()  # The inputs after the first
    whole: bool = True  # Whether all of it is written


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Data that one core sends to another."""

    network: int  # Which of `device.time.network.NETWORKS`
    source: tuple[int, int]  # Column and row of the core that sends
    destination: tuple[int, int]  # Of the core that receives
    size_bytes: int  # What is sent
    start_cycle: float  # From when on, counted from the start of the program
    end_cycle: float  # When the last of it has arrived


# The array of the result from the arrays of the inputs (None is an input without numbers); a tuple of several outputs.
ValuesOf: TypeAlias = Callable[[W, Sequence[Array | None], ValuesContext], Array | tuple[Array, ...]]
# From the first core's start to the last core's end.
CyclesOf: TypeAlias = Callable[[W, Ends, DeviceSpec], OperationCycles]
SentOf: TypeAlias = Callable[[W, DeviceSpec], Sequence[Sent]]
DescriptionOf: TypeAlias = Callable[[W, Ends, DeviceSpec], Description]

NO_DESCRIPTION: Final = Description()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpModel(Generic[W]):
    """The behavior of a class of operations in each pass over a plan."""

    op: type[W]
    # The array of the result, or of the last input that the operation writes into: logical numbers in storage of their
    # format, without padding. A tensor seen under another shape is the same array, so each operation gives its inputs
    # the shape that it needs (`matrix`, `row`).
    values: ValuesOf[W]
    cycles: CyclesOf[W] | None = None  # What it takes; may itself raise `NoModelError`. None if there is no model.
    no_model: str = ON_HOST  # Why there is none
    # Fidelity phases of its tile products, 1 (LoFi) to 4 (HiFi4); 0 if it multiplies nothing
    fidelity_phases: Callable[[W], int] = lambda op: 0
    describe: DescriptionOf[W] = lambda op, ends, spec: NO_DESCRIPTION  # How it was planned
    sent: SentOf[W] | None = None  # What it sends from core to core; None if its model knows bytes, but no routes


class ModeledOp(DeviceOp):
    """The base of operations whose own methods are their model (`model_of`)."""

    __slots__ = ()

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array | tuple[Array, ...]:
        """The values that the operation computes, see `OpModel.values`; operations of one input implement `moved`."""
        return self.moved(given(inputs[0]))

    def moved(self, values: Array) -> Array:
        """The result of the operation on its first input; by default the same values."""
        return values

    def cycles(self, ends: Ends, spec: DeviceSpec) -> OperationCycles:
        """The cycles of the operation."""
        raise NotImplementedError

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """The description of the planned operation and of its stages."""
        return NO_DESCRIPTION


M = TypeVar("M", bound=ModeledOp)


def model_of(op: type[M]) -> OpModel[M]:
    """The model of a class of operations whose methods state all of it."""
    return OpModel(op=op, values=op.values, cycles=op.cycles, describe=op.describe)


OpModels: TypeAlias = Mapping[type[DeviceOp], OpModel[Any]]


def op_model_of(op: DeviceOp | None, op_models: OpModels) -> OpModel[Any]:
    """The model of an operation; raises AssertionError if the table lacks it, a bug of the plan or of the table."""
    result = None if op is None else op_models.get(type(op))
    if result is None:
        raise AssertionError(f"nothing is known of {op!r}; add the model of its class to the table of models")
    return result


def cycles_of_work(cycles: Callable[..., OperationCycles]) -> CyclesOf[Any]:
    """The cycle model of an operation whose cycles do not depend on its tensors: of (op, spec)."""
    return lambda op, ends, spec: cycles(op, spec)


def values_of_first(values: Callable[[W, Array], Array]) -> ValuesOf[W]:
    """Values that depend on the first input alone, in every arithmetic."""
    return lambda op, inputs, context: values(op, given(inputs[0]))


UNWRITTEN: Final = "the tensor has no values: nothing was written to it; write it with copy_host_to_device_tensor"


def given(array: Array | None) -> Array:
    """An input array that an operation reads; raises ArgumentError for None, a tensor that nothing was written to."""
    if array is None:
        raise ArgumentError(UNWRITTEN)
    return array


def given_elements(array: Array | None, function: str) -> Array:
    """An input array that a kernel reads also where it has no elements; raises NotSimulatedError for such an array."""
    values = given(array)
    if not values.size:
        raise NotSimulatedError(
            f"{function}: numbers that the kernel reads from a tensor without elements are not simulated; give elements"
        )
    return values


def matrix(values: Array) -> Array:
    """[..., columns] as [rows, columns]."""
    return values.reshape(-1, values.shape[-1])


def row(values: Array) -> Array:
    """The first row of [..., columns]: all of a prepared bias that is no padding."""
    first: Array = matrix(values)[0]
    return first
