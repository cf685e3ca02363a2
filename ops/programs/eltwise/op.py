"""Element-wise device operations: what they compute, what they take, and their circular buffers (tt-metal 0.81.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from device.cores import first_cores
from device.matrix_unit.arithmetic import Arithmetic
from device.matrix_unit.exact import multiplied_elements
from device.matrix_unit.packer import typecast
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, FLOAT32, Array, DataFormat, div_up, quantize, round_up, whole_groups
from device.numbers.vector_unit import VectorUnitMode, cut_to_bfloat16, rounded_to_even_bfloat16
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.spec.parts import ComputeSpec
from device.time.network import hands, shared_cycles
from device.time.stages import OperationCycles, Stage
from ops.builder import PlanBuilder, PlanTensor
from ops.op_model import Description, Detail, Ends, ModeledOp, ValuesContext, given, row, uncompared_fact
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import BUFFERING, is_uneven, pipelined_cycles, rows_follow, tile_buffer, uniform_cycles
from ops.programs.eltwise.function import stored
from ops.programs.eltwise.functions import RELU, applied_to_integers, apply_activation, uncompared
from ops.programs.eltwise.pairs import PAIRS
from ops.programs.eltwise.refusals import operation_refusal

Activations = tuple[tuple[str, tuple[float, ...]], ...]

ADD: Final = "add"
MULTIPLY: Final = "multiply"
DIVIDE: Final = "div"
LDEXP: Final = "ldexp"  # brings block floats to bfloat16
FOLLOWED: Final = (ADD, "subtract", MULTIPLY)  # operations whose kernels are followed step by step
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
    """The base of element-wise operations, whose cycles follow from what a tile takes on one core."""

    __slots__ = ()

    def tile_work(self, spec: DeviceSpec) -> tuple[tuple[DataFormat, ...], float, float]:
        """What a tile of the result takes.

        The formats of the tensors, of which it reads a tile each; the cycles in which one of these is put into all rows
        of a tile; and the cycles in which they are combined.
        """
        raise NotImplementedError

    def details(self) -> tuple[Detail, ...]:
        """The parts of the values that were never compared with recordings."""
        return ()

    def cycles(self, ends: Ends, spec: DeviceSpec) -> OperationCycles:
        """Cycles of the core with the most tiles, and the bytes of all cores together.

        Tiles of shards are neither read nor written. Packing is one tile behind; one data movement processor reads and
        writes in turn.
        """
        read, written = ends.read, ends.written
        formats, spread, math = self.tile_work(spec)
        sizes = [data_format.tile_bytes for data_format in formats]
        result_bytes, shards = written.data_format.tile_bytes, read.memory_config.shard_spec
        reads_dram, writes_dram = (tensor.memory_config.buffer_type is BufferType.DRAM for tensor in (read, written))
        reading = writing = 0.0
        if not read.memory_config.is_sharded():
            reading = kernel_costs.waited_read_cycles(spec, sizes[0], in_dram=reads_dram)
            reading += sum(kernel_costs.read_page_cycles(spec, size) for size in sizes[1:])
        if not written.memory_config.is_sharded():
            writing = kernel_costs.write_page_cycles(spec, result_bytes)
        unpack, pack = (
            sum(kernel_costs.unpack_tile_cycles(spec, size) for size in sizes) + spread,
            kernel_costs.pack_tile_cycles(spec, result_bytes),
        )

        tiles = prod(div_up(side, TILE) for side in written.matrix)
        if shards is None:
            cores = first_cores(min(tiles, spec.grid.cores), spec.grid.cols, spec.grid.rows)
            share = div_up(tiles, cores.num_cores())
        else:
            cores, share = shards.grid, prod(div_up(side, TILE) for side in shards.shape)
        moved = (reading, writing) if hands(spec, 2) > 1 else (reading + writing,)
        alone = pipelined_cycles((*moved, unpack + math, pack), share)
        read_bytes, written_bytes = tiles * sum(sizes) if reading else 0, tiles * result_bytes
        dram_read_bytes, dram_written_bytes = reads_dram * read_bytes, writes_dram * written_bytes
        shared = shared_cycles(spec, dram_read_bytes + dram_written_bytes)
        body = max(alone, shared)
        steps = {
            Stage.READER: reading, Stage.UNPACK: unpack, Stage.MATH: math, Stage.PACK: pack, Stage.WRITER: writing,
        }  # fmt: skip
        return uniform_cycles(
            cores,
            body,
            {stage: share * cycles for stage, cycles in steps.items()} | {Stage.DRAM: shared},
            spec,
            dram_read_bytes=dram_read_bytes,
            dram_written_bytes=dram_written_bytes,
            network_bytes=read_bytes + (written_bytes if writing else 0),
            contention_cycles=body - alone,
        )

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

    def tile_work(self, spec: DeviceSpec) -> tuple[tuple[DataFormat, ...], float, float]:
        """A tile of the row is spread, and added to one of the matrix."""
        tile_bytes = self.row_format.tile_bytes
        spread = kernel_costs.unpack_tile_cycles(spec, tile_bytes) + kernel_costs.pack_tile_cycles(spec, tile_bytes)
        return (self.data_format, self.row_format), spread, spec.costs_of(kernel_costs.ComputeCosts).add_tile_cycles

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
class Activate(Eltwise):
    """A function of every element."""

    name: str  # ttnn's name in lower case
    parameters: tuple[float, ...]
    data_format: DataFormat  # Format of the tensor, which decides how wide Dst is
    out_format: DataFormat | None = None  # Format of the result; None for that of the tensor

    def tile_work(self, spec: DeviceSpec) -> tuple[tuple[DataFormat, ...], float, float]:
        """A tile passes the vector unit once."""
        return (self.data_format,), 0.0, spec.costs_of(kernel_costs.ComputeCosts).vector_tile_cycles

    def details(self) -> tuple[Detail, ...]:
        """Whether the function was never compared with recordings."""
        return _uncompared([self.name], self.data_format, "")

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The function of every element, in the same shape."""
        values, result = given(inputs[0]), self.out_format or self.data_format
        if not self.data_format.is_float:
            return applied_to_integers(values, self.name, result, self.parameters)
        mode = mode_of(context.spec.compute, wide=self.data_format == FLOAT32)
        dst = np.atleast_1d(values.astype(np.float32))
        if not mode.fp32_dest:
            dst = context.arithmetic.unpack(dst, self.data_format, fp32_dest=False)
        if self.name == FILL:
            number = np.full_like(dst, self.parameters[0])
            dst = number if mode.fp32_dest else cut_to_bfloat16(number)
        else:
            dst = apply_activation(dst, self.name, self.parameters, mode=mode)
        return packed(dst, result, context.arithmetic, wide=mode.fp32_dest).reshape(values.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(Eltwise):
    """Two tensors, or a tensor and a number, element by element; sides of length 1 are repeated."""

    operation: str  # What is done: a row of `PAIRS`
    left_format: DataFormat  # Format of the first operand
    right_format: DataFormat | None = None  # Format of the second; None for a number
    scalar: float | None = None  # The number, if the second operand is one
    data_format: DataFormat
    activations: Activations = ()  # Functions of the result in order, each with its parameters
    left_activations: Activations = ()  # The same of the first operand, whose results lie in its format on their way
    right_activations: Activations = ()  # The same of the second
    # A product or quotient that the matrix unit computes, but of float32 tensors; other functions know no such mode
    fast: bool = False
    numbers: tuple[float, ...] = ()  # Those of the function beside its operands
    scalar_first: bool = False  # The number is the first operand, and the tensor the second

    @property
    def by_vector_unit(self) -> bool:
        """Whether the vector unit computes it."""
        if not self.left_format.is_float:
            return True
        if self.operation == MULTIPLY and not self.fast:
            return self.right_format in (None, self.left_format) and not self.left_format.is_block
        if PAIRS[self.operation].vector_unit and not self.fast:
            return True
        return self.operation != LDEXP and self.left_format == FLOAT32 and self.right_format in (None, FLOAT32)

    @property
    def before(self) -> tuple[DataFormat | None, DataFormat | None]:
        """Formats of the buffers for results of functions of the left and the right operand; None without functions."""
        pair, wide = PAIRS[self.operation], self.operation == LDEXP and self.left_format.is_block
        own = pair.fast if self.fast and pair.fast is not None else pair.before
        if self.by_vector_unit and (self.fast or not pair.always_before):
            own = ("", "")
        left, right = bool(self.left_activations or own[0] or wide), bool(self.right_activations or own[1])
        if wide:
            return BFLOAT16, BFLOAT16
        return self.left_format if left else None, self.second_format if right else None

    @property
    def scalar_format(self) -> DataFormat:
        """What a number is packed as: the tensor's own format, unless that is a block float."""
        return BFLOAT16 if self.left_format.is_block else self.left_format

    @property
    def second_format(self) -> DataFormat:
        """Format of the second operand, tensor or number."""
        return self.right_format or self.scalar_format

    @property
    def fp32_dest(self) -> bool:
        """Whether Dst is 32 bits wide."""
        return self.data_format == FLOAT32 or self.left_format == self.second_format == FLOAT32

    def tile_work(self, spec: DeviceSpec) -> tuple[tuple[DataFormat, ...], float, float]:
        """Functions of the result pass the vector unit, as the operation itself may."""
        costs, passes = spec.costs_of(kernel_costs.ComputeCosts), len(self.activations) + self.by_vector_unit
        formats = (self.left_format,) if self.right_format is None else (self.left_format, self.right_format)
        combined = 0.0 if self.by_vector_unit else costs.add_tile_cycles
        return formats, 0.0, passes * costs.vector_tile_cycles + combined

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
            dst = stored(self._defined(*operands).astype(np.float32), mode)
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
        """The result for integer operands of one format, modulo two to the power of its bits."""

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
            return np.asarray(left + addend, np.float32)
        return arithmetic.add_bias(left, addend, fp32_dest=self.fp32_dest)


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
    """Functions of every element of Dst in order, packed; the packer does a ReLU that comes last."""
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


def rescaled(shards: ShardSpec, before: TensorSpec, padded_shape: tuple[int, ...]) -> ShardSpec:
    """The shards of a tensor, scaled like the tensor's shape to another shape; at least a tile."""
    rows, columns = before.matrix
    high = max(shards.shape[0] * prod(padded_shape[:-1]) // rows, TILE)
    wide = max(shards.shape[1] * padded_shape[-1] // columns, TILE)
    return ShardSpec(shards.grid, (high, wide), shards.orientation)


def on_all_cores(padded_shape: tuple[int, ...], layout: TensorMemoryLayout, spec: DeviceSpec) -> ShardSpec:
    """Shards on all cores of a device, as the library chooses them for a result with a sharding but no shards."""
    grid, rows, columns = spec.grid, prod(padded_shape[:-1]), padded_shape[-1]
    by_blocks = layout is TensorMemoryLayout.BLOCK_SHARDED
    if layout is not TensorMemoryLayout.WIDTH_SHARDED:
        rows = round_up(div_up(rows, grid.rows if by_blocks else grid.cores), TILE)
    if layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        columns = round_up(div_up(columns, grid.cols if by_blocks else grid.cores), TILE)
    return ShardSpec(first_cores(grid.cores, grid.cols, grid.rows), (rows, columns))


def lies_in_place(read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> bool:
    """Whether an element-wise function works on the shards of both its tensors in place.

    Both are sharded in L1, in the same way over the same cores, and fill their shards; rows must be whole pages of a
    tile's elements, and end where L1 is aligned.
    """
    before, after = read.memory_config, written.memory_config
    in_dram = BufferType.DRAM in (before.buffer_type, after.buffer_type)
    if in_dram or before.memory_layout is not after.memory_layout or is_uneven(read) or is_uneven(written):
        return False
    shards = [place.shard_spec for place in (before, after) if place.shard_spec is not None]
    if len(shards) < 2 or shards[0].grid != shards[1].grid:
        return False
    return read.layout is Layout.TILE or all(
        prod(part.shape) % TILE**2 == 0 and rows_follow(read, part.shape[1], spec) for part in shards
    )


def shard_view(name: str, tensor: PlanTensor, spec: DeviceSpec) -> CircularBuffer:
    """A buffer on all cores of a device that lies on the shards of a tensor, in tiles or in rows as long as tiles."""
    tiles = prod(tensor.spec.shards.shape) // TILE**2
    return tiles_of(name, tiles, tensor.spec.data_format, spec, view_of=tensor.name)


def tiles_of(
    name: str, tiles: int, data_format: DataFormat, spec: DeviceSpec, *, view_of: str | None = None
) -> CircularBuffer:
    """A number of tiles of a format on all cores of a device; a view of a tensor's shards if the tensor is named."""
    grid = spec.grid
    return tile_buffer(name, tiles, data_format, first_cores(grid.cores, grid.cols, grid.rows), view_of)


def unary_buffers(
    read: PlanTensor, written: PlanTensor, spec: DeviceSpec, function: str = ""
) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of a function of every element: two tiles of argument and result, or views where they lie."""
    ends = {"argument": read, "result": written}
    between = tiles_of("between", BUFFERING, read.spec.data_format, spec)
    if lies_in_place(read.spec, written.spec, spec):
        argument, result = (shard_view(name, tensor, spec) for name, tensor in ends.items())
    else:
        argument, result = (tiles_of(name, BUFFERING, tensor.spec.data_format, spec) for name, tensor in ends.items())
    return (argument, between, result) if function == "logit" else (argument, result)


def with_row(
    builder: PlanBuilder, matrix: PlanTensor, row: PlanTensor, row_format: DataFormat, name: str
) -> PlanTensor:
    """A row, read as `row_format`, added to every row of an interleaved matrix, which is released.

    The program has two tiles each of the matrix, the row, the row spread over a tile (unless the matrix has one row
    only) and the sum, on all cores of the device.
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
