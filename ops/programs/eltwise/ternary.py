"""Element-wise operations of three operands; one operand may be a scalar (tt-metal 0.81.1)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from device.matrix_unit.packer import typecast
from device.memory.layouts import TensorSpec
from device.numbers.formats import FLOAT32, Array, DataFormat, quantize
from device.spec.device_spec import DeviceSpec
from ops.op_model import Detail, ValuesContext, given, uncompared_fact
from ops.programs import kernel_costs
from ops.programs.eltwise.cycles import Compute
from ops.programs.eltwise.function import stored
from ops.programs.eltwise.op import OnSomeCores, mode_of, packed
from ops.programs.eltwise.shards import all_lie_alike
from ops.programs.eltwise.vector_steps import vector_cycles

# Functions of three operands and the operation's numbers, in float64 or of integers.
TERNARY: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "addcdiv": lambda a, b, c, value: a + value * b / c,
        "addcmul": lambda a, b, c, value: a + value * b * c,
        "lerp": lambda a, b, c: a + c * (b - a),
        "mac": lambda a, b, c: a * b + c,
        "where": lambda a, b, c: np.where(a != 0, b, c),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ternary(OnSomeCores):
    """Three operands, element by element; sides of length 1 are repeated."""

    operation: str  # A row of `TERNARY`
    formats: tuple[DataFormat | None, ...]  # Formats of the operands; None for a number
    scalar: float | None = None  # The number, if there is one
    numbers: tuple[float, ...] = ()  # Those of the function beside its operands
    data_format: DataFormat  # Format of the result

    @property
    def operand_count(self) -> int:
        """Number of tensor operands."""
        return sum(data_format is not None for data_format in self.formats)

    def in_place(self, operands: tuple[TensorSpec, ...], result: TensorSpec, spec: DeviceSpec) -> bool:
        """Whether the program processes shards in place."""
        return all_lie_alike([*operands, result])

    def tile_work(self, operands: tuple[TensorSpec, ...], result: TensorSpec, spec: DeviceSpec) -> Compute:
        """A tile of each tensor passes the vector unit once."""
        unpacked = [kernel_costs.unpack_tile_cycles(spec, operand.data_format.tile_bytes) for operand in operands]
        return Compute(
            unpack_cycles=sum(unpacked),
            math_cycles=vector_cycles(spec, "where"),
            pack_cycles=kernel_costs.pack_tile_cycles(spec, result.data_format.tile_bytes),
        )

    def details(self) -> tuple[Detail, ...]:
        """No operation of three operands was compared with recordings."""
        return (uncompared_fact(f"numbers of {self.operation} never compared with the real kernel's"),)

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The function by its definition, rounded to Dst once; in storage of the result's format."""
        tensors = iter(inputs)
        first = next(data_format for data_format in self.formats if data_format is not None)
        number = None if self.scalar is None else quantize(np.asarray([self.scalar], np.float32), first)
        operands = [number if data_format is None else given(next(tensors)) for data_format in self.formats]
        floats = any(data_format is not None and data_format.is_float for data_format in self.formats[1:])
        kind = np.float64 if floats else np.int64
        seen = [np.asarray(operand).astype(kind) for operand in operands]
        with np.errstate(all="ignore"):
            result = np.asarray(TERNARY[self.operation](*seen, *self.numbers))
        if not floats and self.operation == "where":
            return quantize(result.astype(np.float64), self.data_format)
        if not self.data_format.is_float:
            whole = result.astype(np.int64).astype(first.storage)
            return typecast(whole, first, self.data_format)
        wide = FLOAT32 in (self.data_format, *self.formats)
        mode = mode_of(context.spec.compute, wide=wide)
        dst = stored(np.atleast_1d(result.astype(np.float32)), mode)
        return packed(dst, self.data_format, context.arithmetic, wide=wide).reshape(result.shape)
