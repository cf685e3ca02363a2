"""Element-wise device operations: values, cycles and circular buffers (tt-metal 0.81.1)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar, Final

import numpy as np

from device.cores import CoreRangeSet
from device.host.threads import parts_of
from device.matrix_unit.arithmetic import Arithmetic
from device.matrix_unit.exact import multiplied_elements
from device.matrix_unit.packer import typecast
from device.memory.layouts import TensorSpec
from device.numbers.formats import (
    BFLOAT16,
    FLOAT32,
    UINT8,
    UINT16,
    UINT32,
    Array,
    DataFormat,
    quantize,
    whole_groups,
)
from device.numbers.vector_unit import VectorUnitMode, cut_to_bfloat16, rounded_to_even_bfloat16
from device.spec.device_spec import DeviceSpec
from device.spec.parts import ComputeSpec
from device.spec.releases import release_of
from device.time.stages import OperationCycles, Stage
from ops.builder import PlanBuilder, PlanTensor
from ops.op_model import Description, Detail, Ends, ModeledOp, ValuesContext, given, row, uncompared_fact
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import BUFFERING
from ops.programs.eltwise.cycles import Compute, EltwiseProgram, eltwise_cycles, is_repeated, tiles_for
from ops.programs.eltwise.function import stored
from ops.programs.eltwise.functions import RELU, applied_to_integers, apply_activation, uncompared
from ops.programs.eltwise.pairs import PAIRS
from ops.programs.eltwise.refusals import operation_refusal
from ops.programs.eltwise.shards import lies_in_place, tiles_of, works_on_shards
from ops.programs.eltwise.vector_steps import chain_cycles, vector_cycles

Activations = tuple[tuple[str, tuple[float, ...]], ...]

ADD: Final = "add"
MULTIPLY: Final = "multiply"
DIVIDE: Final = "div"
LDEXP: Final = "ldexp"  # brings block floats to bfloat16
FOLLOWED: Final = (ADD, "subtract", MULTIPLY)  # operations whose kernels are followed step by step
PRODUCTS: Final = (MULTIPLY, DIVIDE, "logical_and", LDEXP)  # operations that multiply in the matrix unit
FIDELITY_PHASES: Final = 4  # of such products; each takes half as long as one of a matrix product
# Functions of the matrix unit's sums, which the vector unit computes
FUNCTIONS_AFTER: Final = {
    "eq": "eqz", "ne": "nez", "gt": "gtz", "ge": "gez", "lt": "ltz", "le": "lez", "squared_difference": "square",
    "logical_or": "nez", "logical_xor": "nez", "bias_gelu": "gelu", "hypot": "sqrt",
}  # fmt: skip
BITCAST: Final = "bitcast"  # no function of numbers: their bits are another format's
FILL: Final = "fill"  # the function that gives one number everywhere; a 16-bit Dst cuts it
STAGES: Final = {
    Stage.READER: "tiles of the operands are read",
    Stage.UNPACK: "tiles are brought to the registers",
    Stage.MATH: "elements are computed",
    Stage.PACK: "results are packed into L1",
    Stage.WRITER: "tiles of the result are written",
    Stage.DRAM: "DRAM delivers or takes the pages of all cores",
}


class Eltwise(ModeledOp):
    """Base class of element-wise operations, whose cycles are derived from the cycles of a tile on one core."""

    __slots__ = ()

    combines: ClassVar[bool] = True  # Whether the program is one of those that combine operands

    def operands(self, ends: Ends) -> tuple[TensorSpec, ...]:
        """The tensors that the operation reads."""
        return (ends.read, *ends.others)[: self.operand_count]

    @property
    def operand_count(self) -> int:
        """How many tensors the operation reads."""
        return 1

    def in_place(self, operands: tuple[TensorSpec, ...], result: TensorSpec, spec: DeviceSpec) -> bool:
        """Whether the program processes shards in place."""
        return lies_in_place(operands[0], result, spec)

    def tile_work(self, operands: tuple[TensorSpec, ...], result: TensorSpec, spec: DeviceSpec) -> Compute:
        """The work of the compute threads for a tile of the result."""
        raise NotImplementedError

    @property
    def allowed_cores(self) -> CoreRangeSet | None:
        """The cores that may be used; None for all."""
        return None

    @property
    def number_bytes(self) -> int:
        """Bytes of a tile filled with the scalar that replaces a second operand; 0 without one."""
        return 0

    def details(self) -> tuple[Detail, ...]:
        """The parts of the values that were never compared with recordings."""
        return ()

    def cycles(self, ends: Ends, spec: DeviceSpec) -> OperationCycles:
        """Cycles of the core with the most tiles, and the bytes of all cores together."""
        operands, result = self.operands(ends), ends.written
        program = EltwiseProgram(
            operands=operands,
            result=result,
            in_place=self.in_place(operands, result, spec),
            compute=self.tile_work(operands, result, spec),
            number_bytes=self.number_bytes,
            combines=self.combines,
            allowed=self.allowed_cores,
        )
        return eltwise_cycles(program, spec)

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """An element-wise program."""
        return Description(
            facts=self.details,
            stages=STAGES,
            composed_of="reading, unpacking, packing and writing of tiles as in other programs",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRow(Eltwise):
    """A row is added to every row of a matrix."""

    data_format: DataFormat  # Format of the matrix and of the sum
    row_format: DataFormat

    @property
    def operand_count(self) -> int:
        """The matrix and the row."""
        return 2

    def tile_work(self, operands: tuple[TensorSpec, ...], result: TensorSpec, spec: DeviceSpec) -> Compute:
        """A tile of the row is expanded, and added to a tile of the matrix."""
        added = spec.costs_of(kernel_costs.ComputeCosts).add_tile_cycles
        return computed(operands, result, spec, spread_cycles(self.row_format, spec) + added)

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The sum of a matrix [..., columns] and the first row of a prepared bias, in storage of their formats."""
        matrix, arithmetic = given(inputs[0]), context.arithmetic
        added = row(given(inputs[1]))[: matrix.shape[-1]].astype(np.float32)
        if self.data_format == self.row_format == FLOAT32:
            return np.asarray(matrix + added, np.float32)
        wide = FLOAT32 in (self.data_format, self.row_format)
        seen = arithmetic.unpack(matrix.astype(np.float32), self.data_format, fp32_dest=wide)
        total = arithmetic.add_bias(seen, arithmetic.unpack(added, self.row_format, fp32_dest=wide), fp32_dest=wide)
        return packed(total, self.data_format, arithmetic, wide=wide)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnSomeCores(Eltwise):
    """Base class of operations that a call may restrict to some cores."""

    cores: CoreRangeSet | None = None  # That may be used; None for all

    @property
    def allowed_cores(self) -> CoreRangeSet | None:
        """The cores that may be used; None for all."""
        return self.cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Activate(OnSomeCores):
    """A function of every element."""

    name: str  # ttnn's name in lower case
    parameters: tuple[float, ...]
    data_format: DataFormat  # Format of the tensor, which decides how wide Dst is
    out_format: DataFormat | None = None  # Format of the result; None for that of the tensor
    then: Activations = ()  # Functions of the results in order, before these are packed

    combines: ClassVar[bool] = False

    def tile_work(self, operands: tuple[TensorSpec, ...], result: TensorSpec, spec: DeviceSpec) -> Compute:
        """A tile passes the vector unit once for every function."""
        return computed(operands, result, spec, chain_cycles(spec, self.chain))

    @property
    def chain(self) -> Activations:
        """All functions in order."""
        return ((self.name, self.parameters), *self.then)

    def details(self) -> tuple[Detail, ...]:
        """Whether the function was never compared with recordings."""
        return _uncompared([name for name, _ in self.chain], self.data_format, "")

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The function of every element, in the same shape."""
        values, result = given(inputs[0]), self.out_format or self.data_format
        if self.name == BITCAST:
            return seen_as(values, self.data_format, result)
        if not self.data_format.is_float:
            for name, parameters in self.chain:
                values = applied_to_integers(values, name, result, parameters)
            return values
        rows = values.reshape(prod(values.shape[:-1]), values.shape[-1]) if values.ndim else values.reshape(1, 1)
        computed_rows = np.empty(rows.shape, result.storage)

        def function(part: slice) -> None:
            computed_rows[part] = self._of_rows(rows[part], result, context)

        context.arithmetic.each(function, parts_of(*rows.shape))
        return computed_rows.reshape(values.shape)

    def _of_rows(self, rows: Array, result: DataFormat, context: ValuesContext) -> Array:
        """The function of some rows."""
        mode = mode_of(context.spec.compute, wide=self.data_format == FLOAT32)
        dst = rows.astype(np.float32)
        if not mode.fp32_dest:
            dst = context.arithmetic.unpack(dst, self.data_format, fp32_dest=False)
        for name, parameters in self.chain:
            if name == FILL:
                number = np.full_like(dst, parameters[0])
                dst = number if mode.fp32_dest else cut_to_bfloat16(number)
            else:
                dst = apply_activation(dst, name, parameters, mode=mode)
        return packed(dst, result, context.arithmetic, wide=mode.fp32_dest)


def keeps_bits(before: DataFormat, after: DataFormat) -> bool:
    """Whether the elements of two formats have the same number of bits."""
    return not (before.is_block or after.is_block) and before.tile_bytes == after.tile_bytes


def seen_as(values: Array, before: DataFormat, after: DataFormat) -> Array:
    """The bits of elements as elements of another format, in its storage."""
    if before == after:
        return values
    half = BFLOAT16 in (before, after)  # which is stored as float32, its upper half
    bits = values.astype(before.storage)
    if before.is_float:
        bits = bits.astype(np.float32).view(np.uint32) >> (16 if half else 0)
    bits = bits.astype(np.int64)
    if after.is_float:
        return ((bits & 0xFFFFFFFF) << (16 if half else 0)).astype(np.uint32).view(np.float32)
    return bits.astype(np.uint32).astype(after.storage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(OnSomeCores):
    """Two tensors, or a tensor and a number, element by element; sides of length 1 are repeated."""

    operation: str  # What is done: a row of `PAIRS`
    left_format: DataFormat  # Format of the first operand
    right_format: DataFormat | None = None  # Format of the second; None for a number
    scalar: float | None = None  # The number, if the second operand is one
    data_format: DataFormat
    activations: Activations = ()  # Functions of the result in order, each with its parameters
    left_activations: Activations = ()  # The same of the first operand; intermediate results have its format
    right_activations: Activations = ()  # The same of the second
    # A product or quotient that the matrix unit computes, but of float32 tensors; other functions know no such mode
    fast: bool = False
    exact: bool = False  # A sum that the vector unit computes, to round it to the nearest bfloat16
    numbers: tuple[float, ...] = ()  # Those of the function beside its operands
    scalar_first: bool = False  # The number is the first operand, and the tensor the second

    @property
    def by_vector_unit(self) -> bool:
        """Whether the vector unit computes it."""
        if not self.left_format.is_float or self.exact:
            return True
        if self.operation == MULTIPLY and not self.fast:
            return not self.left_format.is_block and (self.right_format is None or not self.right_format.is_block)
        pair = PAIRS[self.operation]
        if pair.vector_unit and not self.fast:
            return True
        alike = pair.alike if not self.fast else (FLOAT32,)
        return self.left_format in alike and self.right_format in (None, self.left_format)

    @property
    def functions_before(self) -> tuple[str, str]:
        """The operation's own functions of the left and the right operand; empty where it has none."""
        pair = PAIRS[self.operation]
        if self.by_vector_unit and (self.fast or not pair.always_before):
            return ("", "")
        return pair.fast if self.fast and pair.fast is not None else pair.before

    @property
    def before(self) -> tuple[DataFormat | None, DataFormat | None]:
        """Formats of the buffers for results of functions of the left and the right operand; None without functions."""
        own, wide = self.functions_before, self.operation == LDEXP and self.left_format.is_block
        if wide:
            return BFLOAT16, BFLOAT16
        left = _changing(self.left_activations, self.left_format) or own[0]
        right = _changing(self.right_activations, self.second_format) or own[1]
        return self.left_format if left else None, self.second_format if right else None

    @property
    def scalar_format(self) -> DataFormat:
        """The format of a number operand: the tensor's format, unless it is a block float or has 8 bits."""
        return BFLOAT16 if self.left_format.is_block or self.left_format == UINT8 else self.left_format

    @property
    def second_format(self) -> DataFormat:
        """Format of the second operand, tensor or number."""
        return self.right_format or self.scalar_format

    @property
    def fp32_dest(self) -> bool:
        """Whether Dst is 32 bits wide."""
        return self.data_format == FLOAT32 or self.left_format == self.second_format == FLOAT32

    @property
    def operand_count(self) -> int:
        """The second operand may be a number."""
        return 1 if self.right_format is None else 2

    @property
    def number_bytes(self) -> int:
        """Bytes of the tile that a number fills."""
        return self.scalar_format.tile_bytes if self.right_format is None else 0

    def in_place(self, operands: tuple[TensorSpec, ...], result: TensorSpec, spec: DeviceSpec) -> bool:
        """Whether the program processes shards in place."""
        return works_on_shards(operands[0], operands[1] if len(operands) > 1 else None, result, spec.release)

    def tile_work(self, operands: tuple[TensorSpec, ...], result: TensorSpec, spec: DeviceSpec) -> Compute:
        """Activations run on the vector unit, like some operations; activations of operands are packed first."""
        slow = release_of(spec.release).vector_products
        by_vector_unit = (self if slow else replace(self, fast=True)).by_vector_unit
        combined = vector_cycles(spec, self.operation) if by_vector_unit else self._matrix_unit_cycles(spec)
        operand_functions = (self.left_activations, self.right_activations)
        for functions, own, packed_as in zip(operand_functions, self.functions_before, self.before, strict=True):
            if packed_as is not None:
                combined += chain_cycles(spec, (*functions, *(((own, ()),) if own else ())))
                combined += spread_cycles(packed_as, spec)
        combined += chain_cycles(spec, self.activations) + _repeated_cycles(operands, result, spec)
        return computed(operands, result, spec, combined, together=not by_vector_unit)

    def _matrix_unit_cycles(self, spec: DeviceSpec) -> float:
        """A call that adds or multiplies two tiles, and the function of the sum that makes up the operation."""
        costs = spec.costs_of(kernel_costs.ComputeCosts)
        phases = FIDELITY_PHASES if self.operation in PRODUCTS else 1
        combined = costs.matmul_call_cycles + costs.add_tile_cycles + (phases - 1) * spec.compute.phase_cycles / 2
        after = FUNCTIONS_AFTER.get(self.operation)
        return combined + (0.0 if after is None else vector_cycles(spec, after))

    def details(self) -> tuple[Detail, ...]:
        """Whether functions of operands and result were never compared with recordings."""
        functions = [name for name, _ in (*self.left_activations, *self.right_activations, *self.activations)]
        if self.operation not in FOLLOWED and self.left_format.is_float:
            return (uncompared_fact(f"numbers of {self.operation} never compared with the real kernel's"),)
        return _uncompared(functions, self.left_format, self.operation)

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """Both operands combined: the broadcast shape, in storage of the result's format."""
        left, right = given(inputs[0]), np.asarray(self.scalar) if self.right_format is None else given(inputs[1])
        if not self.left_format.is_float:
            return self._of_integers(left, right)
        arithmetic, mode = context.arithmetic, mode_of(context.spec.compute, wide=self.fp32_dest)
        if self.right_format is None:
            right = quantize(np.asarray(self.scalar, np.float32), self.scalar_format)
        shape = np.broadcast_shapes(left.shape, right.shape)

        def seen(operand: Array, data_format: DataFormat, functions: Activations) -> Array:
            """An operand as the operation computes on it: float32, after its functions, which are packed in its format.

            It is whole in a 32-bit Dst of the vector unit, else as the matrix unit has it.
            """
            numbers = np.atleast_1d(operand.astype(np.float32))
            if functions:
                dst = numbers if mode.fp32_dest else arithmetic.unpack(numbers, data_format, fp32_dest=False)
                numbers = _activated(dst, functions, data_format, arithmetic, mode).astype(np.float32)
            if not self.by_vector_unit or not mode.fp32_dest:
                numbers = arithmetic.unpack(numbers, data_format, fp32_dest=mode.fp32_dest)
            return np.broadcast_to(numbers, shape or (1,)).copy()

        operands = self._in_order(
            seen(left, self.left_format, self.left_activations), seen(right, self.second_format, self.right_activations)
        )
        if self.operation in FOLLOWED:
            dst = self._combined(*operands, arithmetic, context.spec.compute)
        else:
            numbers = self._defined(*operands).astype(np.float32)
            to_even = self.exact and not mode.fp32_dest
            dst = rounded_to_even_bfloat16(numbers) if to_even else stored(numbers, mode)
        if not self.data_format.is_float:  # the last of the activations is a typecast
            floats = _activated(dst, self.activations, FLOAT32, arithmetic, mode)
            return typecast(floats, FLOAT32, self.data_format).reshape(shape)
        return _activated(dst, self.activations, self.data_format, arithmetic, mode).reshape(shape)

    def _defined(self, left: Array, right: Array) -> Array:
        """The function of both operands, in float64 of floats."""
        kind = np.float64 if self.left_format.is_float else np.int64
        with np.errstate(all="ignore"):
            return np.asarray(PAIRS[self.operation].values(left.astype(kind), right.astype(kind), *self.numbers))

    def _in_order(self, tensor: Array, other: Array) -> tuple[Array, Array]:
        return (other, tensor) if self.scalar_first else (tensor, other)

    def _of_integers(self, left: Array, right: Array) -> Array:
        """The result for integer operands of one format, modulo 2**bits."""

        def applied(values: Array, functions: Activations, data_format: DataFormat) -> Array:
            for name, parameters in functions:
                values = applied_to_integers(values, name, data_format, parameters)
            return values

        operands = self._in_order(
            applied(left, self.left_activations, self.left_format),
            applied(right, self.right_activations, self.left_format),
        )
        numbers = self._defined(*operands)
        if self.operation == DIVIDE:
            return quantize(applied(numbers, self.activations, self.left_format).astype(np.float32), self.data_format)
        result = applied(numbers.astype(np.int64).astype(self.left_format.storage), self.activations, self.left_format)
        return result if self.data_format == self.left_format else typecast(result, self.left_format, self.data_format)

    def _combined(self, left: Array, right: Array, arithmetic: Arithmetic, compute: ComputeSpec) -> Array:
        """Dst, as wide as the operation has it."""
        if self.operation == MULTIPLY and not self.by_vector_unit and arithmetic.slice_by_slice:
            bits = [operand.view(np.uint32) for operand in (left, right)]
            quirk = compute.minus_one_quirk
            return multiplied_elements(*bits, fp32_dest=self.fp32_dest, minus_one_quirk=quirk).view(np.float32)
        if self.operation == MULTIPLY:
            product = np.asarray(left * right, np.float32)
            return product if self.fp32_dest else rounded_to_even_bfloat16(product)
        addend = right if self.operation == ADD else -right
        if self.by_vector_unit:
            total = np.asarray(left + addend, np.float32)
            return total if self.fp32_dest else rounded_to_even_bfloat16(total)
        return arithmetic.add_bias(left, addend, fp32_dest=self.fp32_dest)


def computed(
    operands: tuple[TensorSpec, ...], result: TensorSpec, spec: DeviceSpec, math: float, *, together: bool = True
) -> Compute:
    """A tile of every operand is unpacked, by both unpackers `together` where the matrix unit combines two."""
    unpacked = [kernel_costs.unpack_tile_cycles(spec, operand.data_format.tile_bytes) for operand in operands]
    return Compute(
        unpack_cycles=max(unpacked) if together else sum(unpacked),
        math_cycles=math,
        pack_cycles=kernel_costs.pack_tile_cycles(spec, result.data_format.tile_bytes),
    )


def spread_cycles(data_format: DataFormat, spec: DeviceSpec) -> float:
    """A tile is unpacked and packed again on its way: its first row in all rows, or a function of it."""
    return kernel_costs.convert_tile_cycles(spec, data_format, data_format)


def _repeated_cycles(operands: tuple[TensorSpec, ...], result: TensorSpec, spec: DeviceSpec) -> float:
    """Cycles to expand rows, columns and numbers to tiles."""
    return sum(
        tiles_for(operand, result) * spread_cycles(operand.data_format, spec)
        for operand in operands
        if is_repeated(operand, result)
    )


def _changing(functions: Activations, data_format: DataFormat) -> Activations:
    """The functions that have kernels: unsigned integers are their own magnitudes."""
    unsigned = data_format in (UINT8, UINT16, UINT32)
    return tuple(function for function in functions if not (unsigned and function[0] == "abs"))


def mode_of(compute: ComputeSpec, *, wide: bool) -> VectorUnitMode:
    """The vector unit of a device, with a 32-bit Dst or a 16-bit one."""
    return VectorUnitMode(fp32_dest=wide, reciprocal_table=compute.reciprocal_table)


def _uncompared(functions: Sequence[str], data_format: DataFormat, fused_into: str) -> tuple[Detail, ...]:
    if not data_format.is_float:
        return (uncompared_fact("integers never compared with the real kernel's"),)
    text = uncompared(functions, fp32_dest=data_format == FLOAT32, fused_into=fused_into)
    return () if text is None else (uncompared_fact(text),)


def _activated(
    dst: Array, functions: Activations, data_format: DataFormat, arithmetic: Arithmetic, mode: VectorUnitMode
) -> Array:
    """Applies functions to every element of Dst in order and packs the result; the packer applies a last ReLU."""
    last_relu = bool(functions) and functions[-1][0] == RELU
    for name, parameters in functions[: -1 if last_relu else None]:
        dst = apply_activation(dst, name, parameters, mode=mode)
    return packed(dst, data_format, arithmetic, wide=mode.fp32_dest, relu=last_relu)


def packed(dst: Array, data_format: DataFormat, arithmetic: Arithmetic, *, wide: bool, relu: bool = False) -> Array:
    """Dst as the packer writes it: [..., columns] in storage of a format."""
    columns = dst.shape[-1]
    if data_format != FLOAT32:
        dst = np.where(np.isnan(dst), np.float32(np.inf), dst)  # the packer knows no NaN
    if data_format.is_block:
        dst = whole_groups(dst)
    result = arithmetic.pack(dst, data_format, fp32_dest=wide, relu=relu)
    return result[..., :columns].astype(data_format.storage)


def with_row(
    builder: PlanBuilder, matrix: PlanTensor, row: PlanTensor, row_format: DataFormat, name: str
) -> PlanTensor:
    """Adds a row, read as `row_format`, to every row of an interleaved matrix, which is freed.

    The program has two tiles each of the matrix, the row, the row expanded to a tile (unless the matrix has only one
    row) and the sum, on all cores of the device.
    """
    spread = ("spread_row",) if matrix.spec.shape[-2] > 1 else ()
    result = builder.run(
        "BinaryNgDeviceOperation",
        AddRow(data_format=matrix.spec.data_format, row_format=row_format),
        [matrix, row],
        PlanTensor(name, matrix.spec),
        tuple(
            tiles_of(role, BUFFERING, (row if "row" in role else matrix).spec.data_format, builder.device_spec)
            for role in ("matrix", "row", *spread, "sum")
        ),
    )
    builder.free(matrix)
    return result


def activated(
    builder: PlanBuilder, source: PlanTensor, activation: tuple[str, tuple[float, ...]], name: str
) -> PlanTensor:
    """An activation (ttnn's name in lower case, and its parameters) of every element of a tensor, which is released."""
    result, data_format = PlanTensor(name, source.spec), source.spec.data_format
    builder.run(
        "UnaryDeviceOperation",
        Activate(name=activation[0], parameters=activation[1], data_format=data_format),
        [source],
        result,
        tuple(tiles_of(role, BUFFERING, data_format, builder.device_spec) for role in ("argument", "result")),
        dataflow=True,
        refused=operation_refusal(activation, data_format),
    )
    builder.free(source)
    return result
