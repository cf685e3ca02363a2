"""The plan of ttnn.matmul and ttnn.linear for interleaved tensors, single matrices or batches of them.

Rules: ttnn 0.81.1, compared with its device operations, buffers and dataflow buffers on a device without kernels.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from device.errors import ArgumentError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, MemoryConfig
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32, DataFormat, div_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.eltwise.op import activated, with_row
from ops.programs.matmul.buffers import interleaved_config, matmul_circular_buffers
from ops.programs.matmul.op import MatmulConfig, MatmulOp, MatmulProblem, MatmulProgram
from ops.programs.matmul.transpose import Transpose, transpose_buffers, transposed_spec

DEFAULT_PHASES = 2  # HiFi2
LOW_PRECISION_PHASES = 1  # LoFi, where both operands are block floats


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulArguments:
    """One call of matmul or linear."""

    first: TensorSpec  # [..., M, K]; [..., K, M] if it is transposed
    second: TensorSpec  # [..., K, N]; [..., N, K] if it is transposed
    bias: TensorSpec | None  # A single row of N; None without
    out_format: DataFormat | None  # Output format; None for the first operand's
    memory_config: MemoryConfig  # Where the output lies, interleaved
    activation: tuple[str, tuple[float, ...]] | None = None  # Its name in lower case and its parameters; None without
    fidelity_phases: int | None = None  # Fidelity phases; None for the library's default
    fp32_dest: bool = False  # Dst is 32 bits wide; read only with fidelity phases given, as packer_l1_acc
    packer_l1_acc: bool = False  # Partial sums are added in L1
    transpose_a: bool = False  # The last two axes of the first operand change places
    transpose_b: bool = False  # Those of the second do

    @property
    def output_format(self) -> DataFormat:
        """Format of the output."""
        return self.out_format or self.first.data_format

    @property
    def first_sides(self) -> tuple[int, int]:
        """M and K, of the first operand."""
        rows, columns = self.first.shape[-2:]
        return (columns, rows) if self.transpose_a else (rows, columns)

    @property
    def second_sides(self) -> tuple[int, int]:
        """K and N, of the second operand."""
        rows, columns = self.second.shape[-2:]
        return (columns, rows) if self.transpose_b else (rows, columns)

    @property
    def batches(self) -> tuple[int, int]:
        """Matrices of both operands."""
        return prod(self.first.shape[:-2]), prod(self.second.shape[:-2])

    @property
    def output_shape(self) -> tuple[int, ...]:
        """[..., M, N], of the rank of the operand, or bias, that has most axes."""
        batches = self.first.shape[:-2] if self.batches[1] == 1 else self.second.shape[:-2]
        rank = max(len(operand.shape) for operand in (self.first, self.second, self.bias) if operand is not None)
        shape = (*batches, self.first_sides[0], self.second_sides[1])
        return (1,) * (rank - len(shape)) + shape


def with_defaults(call: MatmulArguments, device_spec: DeviceSpec) -> MatmulArguments:
    """The call with the library's compute config, where the caller gave none.

    Two float32 operands get HiFi4, but HiFi3 on devices whose HiFi4 errs with a 32-bit Dst.
    """
    if call.fidelity_phases is not None:
        return call
    formats, wide = (call.first.data_format, call.second.data_format), call.output_format == FLOAT32
    fidelity_phases = LOW_PRECISION_PHASES if all(data_format.is_block for data_format in formats) else DEFAULT_PHASES
    if formats == (FLOAT32, FLOAT32):
        fidelity_phases = 3 if device_spec.compute.minus_one_quirk else 4
    return replace(call, fidelity_phases=fidelity_phases, fp32_dest=wide, packer_l1_acc=not wide)


MAX_TRANSPOSED_AXES = 4


def check_arguments(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> None:
    """Raises ArgumentError for a call that a program of single tiles cannot run, or runs wrongly."""
    if config.program is not MatmulProgram.SINGLE_TILES:
        return
    if problem.keeps_first:
        pairs = enumerate(zip(call.first.shape[:-2], call.second.shape[:-2], strict=True))
        axis, (first_batch, second_batch) = next((axis, pair) for axis, pair in pairs if pair[0] != pair[1])
        raise ArgumentError(
            f"{batches_mismatch(axis, first_batch, second_batch)}\n"
            f"input_tensor_a: a single matrix can serve the batches of {list(call.second.shape)} only in a program of "
            "blocks, which is chosen if both operands and the output are in DRAM; put them there"
        )
    for name, spec, turned in (("a", call.first, call.transpose_a), ("b", call.second, call.transpose_b)):
        if turned and len(spec.shape) > MAX_TRANSPOSED_AXES:
            raise NotSimulatedError(
                f"matmul: transpose_{name} of {len(spec.shape)} axes is not simulated where an operand or the output "
                f"is in L1; reshape input_tensor_{name} to {MAX_TRANSPOSED_AXES}, or put all in DRAM"
            )
    if call.bias is not None:
        _require_expected_shape(call)


def _require_expected_shape(call: MatmulArguments) -> None:
    """Refuses a bias after operands that were transposed beforehand: the real library transposes the shapes again."""
    (rows, depth), columns = call.first_sides, call.second_sides[1]
    expected = (depth if call.transpose_a else rows, depth if call.transpose_b else columns)
    if expected == (rows, columns):
        return
    first_line = "Broadcast error: Invalid dimension"
    if expected[1] == columns:
        first_line = "Attempting to reshape between two shapes with different volumes"
        if rows % TILE == 0 and depth % TILE == 0:
            first_line = "MeshBuffer must be large enough to hold the tensor."
    raise ArgumentError(
        f"{first_line}\nlinear: with a bias and an operand or the output in L1, transposed operands give "
        f"{list(expected)} for the output of {[rows, columns]}; transpose them before the call, or put all in DRAM"
    )


def batches_mismatch(axis: int, first: int, second: int) -> str:
    """The real library's words where two batches do not pair."""
    return (
        f"bmm (non-bcast matmul) expects input tensors of shapes BCMK*BCKN=BCMN or batch dimension {axis} mismatch: "
        f"a={first} vs b={second} (dimension mismatch only allowed when all batch dimensions of a are size 1 and using "
        "MatmulMultiCoreReuseMultiCast1DProgramConfig with fuse_batch=false, fused_activation=none, mcast_in0=false, "
        "and non-sharded inputs for in0 reuse optimization)"
    )


def plan_matmul(arguments: MatmulArguments, device_spec: DeviceSpec, *, free_l1_bytes: int) -> Plan:
    """Plan a call of the tensors "input", "weight" and "bias"; raises ArgumentError if the program cannot run it."""
    call = with_defaults(arguments, device_spec)
    problem, config = _program(call, device_spec, free_l1_bytes)
    output_spec = TensorSpec(call.output_shape, call.output_format, Layout.TILE, call.memory_config)
    op = MatmulOp(
        problem=problem, config=config, fidelity_phases=call.fidelity_phases or 1, out_channels=output_spec.shape[-1]
    )
    turns = (call.transpose_a and not problem.transpose_first, call.transpose_b and not problem.transpose_second)

    def write(builder: PlanBuilder, first: PlanTensor, second: PlanTensor, *bias: PlanTensor) -> PlanTensor:
        inputs = [
            _transposed(builder, operand) if turned else operand
            for operand, turned in zip((first, second), turns, strict=True)
        ]
        fused = bias if problem.bias else ()
        result = run_matmul(builder, op, [*inputs, *fused], output_spec, key=(call.first, call.second))
        if call.bias is not None and not problem.bias:
            result = with_row(builder, result, bias[0], call.bias.data_format, "output.biased")
        if call.activation is not None:
            result = activated(builder, result, call.activation, "output.activated")
        builder.free_own(*reversed(inputs))
        return result

    return plan_of({"input": call.first, "weight": call.second, "bias": call.bias}, device_spec, write)


def _transposed(builder: PlanBuilder, operand: PlanTensor) -> PlanTensor:
    """An operand transposed by an operation of its own, in its own kind of memory."""
    result = PlanTensor(f"{operand.name}.transposed", transposed_spec(operand.spec))
    op = Transpose(data_format=result.spec.data_format)
    buffers = transpose_buffers(result.spec, builder.device_spec.grid)
    return builder.run("TransposeDeviceOperation", op, [operand], result, buffers, dataflow=True)


def _program(call: MatmulArguments, device_spec: DeviceSpec, free_l1_bytes: int) -> tuple[MatmulProblem, MatmulConfig]:
    """The problem and the config of a matmul; a program of single tiles leaves the bias to another operation."""
    (rows, depth), columns = call.first_sides, call.second_sides[1]
    places = (call.first.memory_config, call.second.memory_config, call.memory_config)
    in_dram = all(place.buffer_type is BufferType.DRAM for place in places)
    problem = MatmulProblem(
        m_tiles=div_up(rows, TILE),
        k_tiles=div_up(depth, TILE),
        n_tiles=div_up(columns, TILE),
        in_format=call.first.data_format,
        weight_format=call.second.data_format,
        out_format=call.output_format,
        bias=call.bias is not None,
        fp32_dest=call.fp32_dest,
        packer_l1_acc=call.packer_l1_acc,
        bias_format=None if call.bias is None else call.bias.data_format,
        batches=max(call.batches),
        first_batched=call.batches[0] > 1,
        second_batched=call.batches[1] > 1,
        transpose_first=call.transpose_a,
        transpose_second=call.transpose_b,
    )
    config = interleaved_config(problem, device_spec.grid, in_dram=in_dram, l1_bytes=free_l1_bytes)
    added_later = config.program is MatmulProgram.SINGLE_TILES or not in_dram or problem.second_batched
    if problem.bias and added_later:
        problem = replace(problem, bias=False)
        config = interleaved_config(problem, device_spec.grid, in_dram=in_dram, l1_bytes=free_l1_bytes)
    check_arguments(call, problem, config)
    if config.program is MatmulProgram.SINGLE_TILES:
        problem = replace(problem, transpose_first=False, transpose_second=False)
    return problem, config


def run_matmul(
    builder: PlanBuilder,
    op: MatmulOp,
    inputs: Sequence[PlanTensor],
    result_spec: TensorSpec,
    *,
    key: tuple[Hashable, ...],
    refused: str | None = None,
) -> PlanTensor:
    """One matmul program from two operands, and a bias if given, to the tensor "output"."""
    first = inputs[0]
    buffers = matmul_circular_buffers(
        op,
        source=first.name,
        in_memory=first.spec.memory_config,
        output="output",
        out_sharded=result_spec.memory_config.is_sharded(),
    )
    return builder.run(
        "MatmulDeviceOperation",
        op,
        inputs,
        PlanTensor("output", result_spec),
        buffers,
        dataflow=True,
        key=("matmul", op, *key, result_spec),
        refused=refused,
    )


FORMATS = (BFLOAT16, FLOAT32, BFLOAT8_B, BFLOAT4_B)
FORMAT_NAMES = ", ".join(data_format.name for data_format in FORMATS)


def validate(call: MatmulArguments) -> None:
    """Refuses a call."""
    for check in (_operands, _shapes, _places_and_bias):
        for text in check(call):
            raise ArgumentError(text)


def _operands(call: MatmulArguments) -> Iterator[str]:
    for name, letter, spec in (("input_tensor_a", "A", call.first), ("input_tensor_b", "B", call.second)):
        if len(spec.shape) < 2:
            yield (
                f"matmul: {name} must have at least two axes, not the shape {list(spec.shape)}; "
                "vectors are not simulated"
            )
        if spec.layout is not Layout.TILE:
            yield f"Inputs to matmul must be tilized\n{name}: it is in {spec.layout.name}; use to_layout(TILE_LAYOUT)"
        if spec.data_format not in FORMATS:
            yield (
                f"Unsupported data format for input {letter}: DataType::{spec.data_format.name.upper()}\n"
                f"{name}: it must be one of {FORMAT_NAMES}"
            )
    if call.output_format not in FORMATS:
        yield (
            f"matmul: dtype must be one of {FORMAT_NAMES}, not {call.output_format}: "
            "the packer's bits of a sum are no integers; convert the output instead"
        )


def _shapes(call: MatmulArguments) -> Iterator[str]:
    width, height = call.first_sides[1], call.second_sides[0]
    if width != height:
        yield (
            f"The width of the first tensor must be equal to the height of the second tensor. Mismatch: width={width} "
            f"height={height}\ninput_tensor_b: {list(call.second.shape)} can not follow {list(call.first.shape)}"
        )
    first, second = call.first.shape, call.second.shape
    if any(side != 1 for side in second[: max(0, len(second) - len(first))]):
        yield (
            "When in1 rank greater than in0 rank front dimensions need to be 1\ninput_tensor_b: its shape "
            f"{list(second)} has more axes than {list(first)}; reshape input_tensor_a to as many"
        )
    if call.batches[1] == 1:
        return
    if len(first) != len(second):
        yield (
            "Batched (non-bcast) matmul requires inputs of the same rank, "
            f"got a_shape rank: {len(first)} vs b_shape rank: {len(second)}\n"
            f"input_tensor_a: reshape it from {list(first)} to {len(second)} axes, as input_tensor_b has"
        )
    if call.batches[0] == 1:
        return
    for axis, (first_batch, second_batch) in enumerate(zip(first[:-2], second[:-2], strict=True)):
        if first_batch != second_batch:
            yield (
                f"{batches_mismatch(axis, first_batch, second_batch)}\ninput_tensor_b: {list(second)} must have the "
                f"batches of input_tensor_a, {list(first)}, or be a single matrix; or else input_tensor_a a single one"
            )


def _places_and_bias(call: MatmulArguments) -> Iterator[str]:
    for name, place in (
        ("input_tensor_a", call.first.memory_config),
        ("input_tensor_b", call.second.memory_config),
        ("memory_config", call.memory_config),
    ):
        if place.is_sharded():
            yield (
                f"matmul: {name} must be interleaved, not {place.memory_layout.name}: matmuls of sharded tensors are "
                "simulated as 1x1 convolutions only"
            )
    if call.bias is None:
        return
    columns = call.second_sides[1]
    if call.bias.shape[-1:] != (columns,) or call.bias.volume != columns:
        yield (
            f"linear: bias must be a single row of {columns} columns, [..., 1, {columns}], not the shape "
            f"{list(call.bias.shape)}"
        )
    if call.bias.layout is not Layout.TILE:
        yield f"linear: bias must be in TILE layout, not {call.bias.layout.name}; use to_layout(TILE_LAYOUT)"
    if call.bias.data_format not in FORMATS:
        yield f"linear: bias must be one of {FORMAT_NAMES}, not {call.bias.data_format}"
