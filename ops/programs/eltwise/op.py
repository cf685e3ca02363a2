"""Element-wise device operations: what they compute, and what they take."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

import numpy as np

from device.cores import first_cores
from device.matrix_unit.arithmetic import Arithmetic
from device.matrix_unit.exact import multiplied_elements
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType
from device.numbers.formats import (
    BFLOAT16,
    FLOAT32,
    INT32,
    UINT8,
    UINT16,
    UINT32,
    Array,
    DataFormat,
    Integers,
    div_up,
    quantize,
    whole_groups,
)
from device.numbers.vector_unit import (
    VectorUnitMode,
    apply_activation,
    cut_to_bfloat16,
    rounded_to_even_bfloat16,
    uncompared,
)
from device.spec.device_spec import DeviceSpec
from device.spec.parts import ComputeSpec
from device.time.network import hands, shared_cycles
from device.time.stages import OperationCycles, Stage
from ops.op_model import (
    CyclesContext,
    Description,
    Detail,
    Ends,
    ModeledOp,
    ValuesContext,
    given,
    row,
    uncompared_fact,
)
from ops.programs.buffer_shapes import alike_cycles, pipelined_cycles
from ops.programs.kernel_costs import (
    ComputeCosts,
    pack_tile_cycles,
    read_page_cycles,
    unpack_tile_cycles,
    waited_read_cycles,
    write_page_cycles,
)

SIX: Final = 6  # where relu6 ends
RELU: Final = "relu"

# The formats of integers that each function takes.
SUPPORTED: Final[Mapping[str, tuple[DataFormat, ...]]] = MappingProxyType(
    {
        "abs": (UINT8, UINT16, UINT32, INT32),
        RELU: (UINT8, UINT16, UINT32, INT32),
        "relu6": (UINT8, UINT16, UINT32, INT32),
        "leaky_relu": (UINT8, UINT16, UINT32),
        "neg": (INT32,),
        "square": (UINT16, UINT32, INT32),
    }
)
_FUNCTIONS: Final[Mapping[str, Callable[[Integers], Integers]]] = MappingProxyType(
    {
        "abs": np.abs,
        RELU: lambda values: np.maximum(values, 0),
        "relu6": lambda values: np.clip(values, 0, SIX),
        "leaky_relu": lambda values: values,  # of formats without a sign alone
        "neg": np.negative,
        "square": np.square,
    }
)


def applied_to_integers(values: Array, name: str, data_format: DataFormat) -> Array:
    """A function of every element, in storage of the same format."""
    with np.errstate(over="ignore"):
        return _FUNCTIONS[name](values.astype(np.int64)).astype(data_format.storage)


def combined_integers(left: Array, right: Array, operation: str, data_format: DataFormat) -> Array:
    """The sum, difference or product of integers, in storage of their format; ``operation`` is ttnn's name."""
    first, second = left.astype(np.int64), right.astype(np.int64)
    with np.errstate(over="ignore"):
        made = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}[operation](first, second)
    return np.asarray(made, np.int64).astype(data_format.storage)


Activations = tuple[tuple[str, tuple[float, ...]], ...]


STAGES: Final = MappingProxyType(
    {
        Stage.READER: "tiles of the operands are read",
        Stage.UNPACK: "tiles are brought to the registers",
        Stage.MATH: "elements are computed",
        Stage.PACK: "results are packed into L1",
        Stage.WRITER: "tiles of the result are written",
        Stage.DRAM: "DRAM delivers or takes the pages of all cores",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What each tile takes on one core, in cycles; 0 for a part that has nothing to do, since shards lie in place."""

    read: float  # Until all operands of a tile are there
    unpack: float  # They go into the matrix unit's registers
    math: float  # They become one tile
    pack: float  # It goes back to L1
    write: float  # It goes to its bank
    read_bytes: int  # Bytes of the operands of a tile

    def parts(self, spec: DeviceSpec) -> tuple[float, ...]:
        """What works side by side: packing is one tile behind; one data movement processor reads and writes in turn."""
        moved = (self.read, self.write) if hands(spec, 2) > 1 else (self.read + self.write,)
        return *moved, self.unpack + self.math, self.pack


def _wait_cycles(tensor: TensorSpec, spec: DeviceSpec, tile_bytes: int, second_bytes: int = 0) -> float:
    """Until a tile is there, and one of a second tensor asked for behind it: nothing if they lie in the core's shards.

    Args:
        second_bytes: Of the second tensor's tiles; 0 if there is none.
    """
    if tensor.memory_config.is_sharded():
        return 0.0
    waited = waited_read_cycles(spec, tile_bytes, in_dram=tensor.memory_config.buffer_type is BufferType.DRAM)
    return waited + (read_page_cycles(spec, second_bytes) if second_bytes else 0.0)


def _write_cycles(tensor: TensorSpec, spec: DeviceSpec) -> float:
    """Between two tiles that are written."""
    if tensor.memory_config.is_sharded():
        return 0.0
    return write_page_cycles(spec, tensor.data_format.tile_bytes)


class Eltwise(ModeledOp):
    """The base of element-wise operations, whose cycles follow from what a tile takes on one core."""

    __slots__ = ()

    def steps(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Steps:
        """What each tile takes."""
        raise NotImplementedError

    def details(self) -> tuple[Detail, ...]:
        """What of the numbers was never compared with recordings."""
        return ()

    def cycles(self, ends: Ends, context: CyclesContext) -> OperationCycles:
        """All tiles of the core that has most of them, and of all cores together."""
        read, written, spec = ends.read, ends.written, context.spec
        steps = self.steps(read, written, spec)
        step_bytes = steps.read_bytes if steps.read else 0
        rows, columns = written.matrix
        tiles = div_up(rows, TILE) * div_up(columns, TILE)
        shards = read.memory_config.shard_spec
        cores = (
            first_cores(min(tiles, spec.grid.cores), spec.grid.cols, spec.grid.rows) if shards is None else shards.grid
        )
        share = div_up(tiles, cores.num_cores())
        if shards is not None:
            share = div_up(shards.shape[0], TILE) * div_up(shards.shape[1], TILE)
        alone = pipelined_cycles(steps.parts(spec), share)
        in_dram = [tensor.memory_config.buffer_type is BufferType.DRAM for tensor in (read, written)]
        read_bytes = tiles * step_bytes if in_dram[0] else 0
        written_bytes = tiles * written.data_format.tile_bytes if in_dram[1] else 0
        shared = shared_cycles(spec, read_bytes + written_bytes) if context.contention else 0.0
        body = max(alone, shared)
        busy = {
            Stage.READER: share * steps.read,
            Stage.UNPACK: share * steps.unpack,
            Stage.MATH: share * steps.math,
            Stage.PACK: share * steps.pack,
            Stage.WRITER: share * steps.write,
            Stage.DRAM: shared,
        }
        return alike_cycles(
            cores,
            body,
            busy,
            spec,
            dram_read_bytes=read_bytes,
            dram_written_bytes=written_bytes,
            network_bytes=tiles * (step_bytes + (written.data_format.tile_bytes if steps.write else 0)),
            contention_cycles=body - alone,
        )

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """An element-wise program."""
        return Description(
            facts=self.details,
            stages=STAGES,
            composed_of="reading, unpacking, packing and writing of tiles as in other programs",
        )


def _uncompared(functions: Sequence[str], data_format: DataFormat, fused_into: str) -> tuple[Detail, ...]:
    if not data_format.is_float:
        return (uncompared_fact("integers never compared with the real kernel's"),)
    text = uncompared(functions, fp32_dest=data_format == FLOAT32, fused_into=fused_into)
    return () if text is None else (uncompared_fact(text),)


class BinaryOperation(Enum):
    """What is done to two operands; values are ttnn's names."""

    ADD = "add"
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(Eltwise):
    """Two tensors, or a tensor and a number, element by element; sides of length 1 are repeated."""

    operation: BinaryOperation  # What is done
    left_format: DataFormat  # Format of the first operand
    right_format: DataFormat | None = None  # Format of the second; None for a number
    scalar: float | None = None  # The number, if the second operand is one
    data_format: DataFormat
    activations: Activations = ()  # Functions of the result in order, each with its parameters
    left_activations: Activations = ()  # The same of the first operand, whose results lie in its format on their way
    right_activations: Activations = ()  # The same of the second
    # A product that the matrix unit computes, but of float32 tensors; sums and differences know no such mode
    fast: bool = False
    scalar_first: bool = False  # The number is the first operand, and the tensor the second

    @property
    def by_vector_unit(self) -> bool:
        """Whether the vector unit computes it."""
        if not self.left_format.is_float:
            return True
        if self.operation is BinaryOperation.MULTIPLY and not self.fast:
            return self.right_format in (None, self.left_format) and not self.left_format.is_block
        return self.left_format == FLOAT32 and self.right_format in (None, FLOAT32)

    @property
    def scalar_format(self) -> DataFormat:
        """What a number is packed as: the tensor's own format for the vector unit, unless that is a block float."""
        return self.left_format if self.by_vector_unit and not self.left_format.is_block else BFLOAT16

    @property
    def second_format(self) -> DataFormat:
        """Format of the second operand, tensor or number."""
        return self.scalar_format if self.right_format is None else self.right_format

    @property
    def fp32_dest(self) -> bool:
        """Whether Dst is 32 bits wide."""
        return self.data_format == FLOAT32 or self.left_format == self.second_format == FLOAT32

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """Both operands combined."""
        right = given(inputs[1]) if self.right_format is not None else None
        return combined(self, given(inputs[0]), right, context.arithmetic, context.spec.compute)

    def details(self) -> tuple[Detail, ...]:
        """Whether functions of operands and result were never compared with recordings."""
        functions = [name for name, _ in (*self.left_activations, *self.right_activations, *self.activations)]
        return _uncompared(functions, self.left_format, self.operation.value)

    def steps(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Steps:
        """Both operands of a tile are read, and their functions computed."""
        left = self.left_format.tile_bytes
        right = 0 if self.right_format is None else self.right_format.tile_bytes
        costs = spec.costs_of(ComputeCosts)
        functions = len(self.activations) + self.by_vector_unit
        return Steps(
            read=_wait_cycles(read, spec, left, right),
            unpack=unpack_tile_cycles(spec, left) + (unpack_tile_cycles(spec, right) if right else 0.0),
            math=functions * costs.vector_tile_cycles + (0.0 if self.by_vector_unit else costs.add_tile_cycles),
            pack=pack_tile_cycles(spec, self.data_format.tile_bytes),
            write=_write_cycles(written, spec),
            read_bytes=left + right,
        )


def combined(op: Binary, left: Array, right: Array | None, arithmetic: Arithmetic, compute: ComputeSpec) -> Array:
    """The result of an operation.

    Args:
        left: The first operand in storage of its format.
        right: The second one; None for a number.
        arithmetic: What is rounded where.
        compute: Figures of the device's math units.

    Returns:
        The broadcast shape, in storage of the result's format.
    """
    if not op.left_format.is_float:
        return _of_integers(op, left, right)
    wide = op.fp32_dest
    second = np.asarray(op.scalar, np.float32) if right is None else right.astype(np.float32)
    if right is None:
        second = quantize(second, op.scalar_format).astype(np.float32)
    shape = np.broadcast_shapes(left.shape, second.shape)
    mode = VectorUnitMode(fp32_dest=wide, reciprocal_table=compute.reciprocal_table)
    operands = (
        (left.astype(np.float32), op.left_format, op.left_activations),
        (second, op.second_format, op.right_activations),
    )
    first, other = (
        np.broadcast_to(
            _seen(_prepared(np.atleast_1d(one), data_format, functions, arithmetic, mode), data_format, op, arithmetic),
            shape or (1,),
        ).copy()
        for one, data_format, functions in operands
    )
    dst = _combined(op, *((other, first) if op.scalar_first else (first, other)), arithmetic, compute)
    last_relu = bool(op.activations) and op.activations[-1][0] == RELU
    for name, parameters in op.activations[: -1 if last_relu else None]:
        dst = applied(dst, name, parameters, mode)
    return packed(dst, op.data_format, arithmetic, wide=wide, relu=last_relu).reshape(shape)


def _of_integers(op: Binary, left: Array, right: Array | None) -> Array:
    """The result of operands that are integers of one format."""
    operands = [left, np.asarray(op.scalar) if right is None else right]
    for number, functions in enumerate((op.left_activations, op.right_activations)):
        for name, _ in functions:
            operands[number] = applied_to_integers(operands[number], name, op.left_format)
    first, second = reversed(operands) if op.scalar_first else operands
    made = combined_integers(first, second, op.operation.value, op.data_format)
    for name, _ in op.activations:
        made = applied_to_integers(made, name, op.data_format)
    return made


def _prepared(
    values: Array, data_format: DataFormat, functions: Activations, arithmetic: Arithmetic, mode: VectorUnitMode
) -> Array:
    """Functions of an operand before the operation, packed in its format."""
    if not functions:
        return values
    dst = values if mode.fp32_dest else arithmetic.unpack(values, data_format, fp32_dest=False)
    last_relu = functions[-1][0] == RELU
    for name, parameters in functions[: -1 if last_relu else None]:
        dst = applied(dst, name, parameters, mode)
    return packed(dst, data_format, arithmetic, wide=mode.fp32_dest, relu=last_relu).astype(np.float32)


def applied(dst: Array, name: str, parameters: tuple[float, ...], mode: VectorUnitMode) -> Array:
    """A function of every element of Dst, by ttnn's name in lower case."""
    return np.maximum(dst, np.float32(0)) if name == RELU else apply_activation(dst, name, parameters, mode=mode)


def packed(dst: Array, data_format: DataFormat, arithmetic: Arithmetic, *, wide: bool, relu: bool = False) -> Array:
    """Dst as the packer writes it: [..., columns] in storage of a format."""
    columns = dst.shape[-1]
    if data_format != FLOAT32:
        dst = np.where(np.isnan(dst), np.float32(np.inf), dst)  # the packer knows no NaN
    if data_format.is_block:
        dst = whole_groups(dst)
    made = arithmetic.pack(dst, data_format, fp32_dest=wide, relu=relu)
    return made[..., :columns].astype(data_format.storage)


def _seen(values: Array, data_format: DataFormat, op: Binary, arithmetic: Arithmetic) -> Array:
    """An operand where it is computed on: whole in a 32-bit Dst of the vector unit, else as the matrix unit has it."""
    if op.by_vector_unit and op.fp32_dest:
        return values
    return arithmetic.unpack(values, data_format, fp32_dest=op.fp32_dest)


def _combined(op: Binary, left: Array, right: Array, arithmetic: Arithmetic, compute: ComputeSpec) -> Array:
    """Dst, as wide as the work has it."""
    if op.operation is BinaryOperation.MULTIPLY and not op.by_vector_unit and arithmetic.slice_by_slice:
        bits = [one.view(np.uint32) for one in (left, right)]
        quirk = compute.minus_one_quirk
        return multiplied_elements(*bits, fp32_dest=op.fp32_dest, minus_one_quirk=quirk).view(np.float32)
    if op.operation is BinaryOperation.MULTIPLY:
        product = np.asarray(left * right, np.float32)
        return product if op.fp32_dest else rounded_to_even_bfloat16(product)
    addend = right if op.operation is BinaryOperation.ADD else -right
    if op.by_vector_unit:
        return np.asarray(left + addend, np.float32)
    return arithmetic.add_bias(left, addend, fp32_dest=op.fp32_dest)


FILL = "fill"  # the function that gives one number everywhere; a 16-bit Dst cuts it


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRow(Eltwise):
    """A row is added to every row of a matrix."""

    data_format: DataFormat  # Format of the matrix and of the sum
    row_format: DataFormat

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The sum of the matrix and the first row of a prepared bias."""
        matrix, bias = map(given, inputs)
        return added_row(self, matrix, row(bias), context.arithmetic)

    def steps(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Steps:
        """The row is put into every row of a tile, then added."""
        row, matrix = self.row_format.tile_bytes, self.data_format.tile_bytes
        spread = unpack_tile_cycles(spec, row) + pack_tile_cycles(spec, row)  # the row is put into every row of a tile
        return Steps(
            read=_wait_cycles(read, spec, matrix, row),
            unpack=unpack_tile_cycles(spec, matrix) + unpack_tile_cycles(spec, row) + spread,
            math=spec.costs_of(ComputeCosts).add_tile_cycles,
            pack=pack_tile_cycles(spec, matrix),
            write=_write_cycles(written, spec),
            read_bytes=matrix + row,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Activate(Eltwise):
    """A function of every element."""

    name: str  # ttnn's name in lower case
    parameters: tuple[float, ...]
    data_format: DataFormat  # Format of the tensor, which decides how wide Dst is
    out_format: DataFormat | None = None  # Format of the result; None for that of the tensor

    @property
    def made_format(self) -> DataFormat:
        """Format of the result."""
        return self.out_format or self.data_format

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The function of every element."""
        table = context.spec.compute.reciprocal_table
        return activated(self, given(inputs[0]), context.arithmetic, reciprocal_table=table)

    def details(self) -> tuple[Detail, ...]:
        """Whether the function was never compared with recordings."""
        return _uncompared([self.name], self.data_format, "")

    def steps(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Steps:
        """Every tile passes the vector unit once."""
        tile_bytes = self.data_format.tile_bytes
        return Steps(
            read=_wait_cycles(read, spec, tile_bytes),
            unpack=unpack_tile_cycles(spec, tile_bytes),
            math=spec.costs_of(ComputeCosts).vector_tile_cycles,
            pack=pack_tile_cycles(spec, self.made_format.tile_bytes),
            write=_write_cycles(written, spec),
            read_bytes=tile_bytes,
        )


def added_row(op: AddRow, matrix: Array, row: Array, arithmetic: Arithmetic) -> Array:
    """The sum of a matrix and a row.

    Args:
        matrix: [..., columns] in storage of its format.
        row: [at least columns] in storage of its format.
        arithmetic: What is rounded where.

    Returns:
        [..., columns] in storage of the matrix's format.
    """
    wide = FLOAT32 in (op.data_format, op.row_format)
    used = row[: matrix.shape[-1]].astype(np.float32)
    if op.data_format == op.row_format == FLOAT32:
        return np.asarray(matrix + used, np.float32)
    seen = arithmetic.unpack(matrix.astype(np.float32), op.data_format, fp32_dest=wide)
    total = arithmetic.add_bias(seen, arithmetic.unpack(used, op.row_format, fp32_dest=wide), fp32_dest=wide)
    return packed(total, op.data_format, arithmetic, wide=wide)


def activated(op: Activate, values: Array, arithmetic: Arithmetic, *, reciprocal_table: bool) -> Array:
    """A function of every element, in the same shape.

    Args:
        values: Any shape, in storage of the tensor's format.
        arithmetic: What is rounded where.
        reciprocal_table: A figure of the device's math units.

    Returns:
        In storage of the result's format.
    """
    if not op.data_format.is_float:
        return applied_to_integers(values, op.name, op.made_format)
    wide = op.data_format == FLOAT32
    dst = np.atleast_1d(values.astype(np.float32))
    if not wide:
        dst = arithmetic.unpack(dst, op.data_format, fp32_dest=False)
    mode = VectorUnitMode(fp32_dest=wide, reciprocal_table=reciprocal_table)
    if op.name == FILL:
        number = np.full_like(dst, op.parameters[0])
        dst = number if wide else cut_to_bfloat16(number)
    else:
        dst = applied(dst, op.name, op.parameters, mode)
    return packed(dst, op.made_format, arithmetic, wide=wide).reshape(values.shape)
