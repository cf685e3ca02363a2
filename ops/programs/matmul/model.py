"""The model of a matmul: values, cycles and description."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from device.matrix_unit.arithmetic import RUN_ELEMENTS, Arithmetic, arithmetic_of, cut
from device.matrix_unit.exact import MatrixUnitMode
from device.memory.memory_config import TILE
from device.numbers.formats import FLOAT32, Array, DataFormat
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles, Stage
from ops.op_model import (
    Description,
    Detail,
    Ends,
    OpModel,
    ValuesContext,
    counted,
    given,
    matrix,
    row,
    tiles,
    uncompared_fact,
)
from ops.programs.eltwise.functions import uncompared
from ops.programs.k_blocks import finish, sum_blocks
from ops.programs.matmul.cycles import matmul_cycles
from ops.programs.matmul.op import MatmulConfig, MatmulOp, MatmulProgram, Places, place_of, place_text
from ops.programs.matmul.transpose import transposed

HALVES: Final = 2  # 16-column halves of a tile
COMMON_STAGES: Final = MappingProxyType(  # of every program that multiplies as a matmul does
    {
        Stage.WEIGHT_READER: "the second operand is read from DRAM, tile by tile",
        Stage.WEIGHT_MULTICAST: "blocks of the second operand are sent on to the cores that share them",
        Stage.UNPACK: "tiles are brought to the matrix unit",
        Stage.PACK: "results are packed into L1",
        Stage.NETWORK: "transfers wait for others on the same links",
        Stage.DRAM: "DRAM delivers or takes what all cores move",
    }
)


def describe_matmul(op: MatmulOp, ends: Ends, spec: DeviceSpec) -> Description:
    """How a matmul was planned."""
    return Description(
        facts=matmul_facts(op),
        stages={
            **COMMON_STAGES,
            Stage.READER: f"the first operand is read from {place_text(ends.read)}, tile by tile",
            Stage.ACT_MULTICAST: "blocks of the first operand are sent on to the cores that share them",
            Stage.WRITER: f"finished output blocks are written to {place_text(ends.written)}",
        },
        measured_as=matmul_class(op),
        composed_of="the steps of measured matmuls, one for each batch",
        attributes=(("program_config", _program_config(op.config)),),
    )


def matmul_class(op: MatmulOp) -> str:
    """The class of a matmul's program, for evidence of its cycles."""
    if op.config.program is MatmulProgram.DRAM_SHARDED:
        return "Matmul, second operand in shards of DRAM"
    if op.config.program is MatmulProgram.REUSE:
        return "Matmul, each core with operands of its own"
    return f"Matmul, {'program config given' if op.config.given else 'planned by the library'}"


def matmul_facts(op: MatmulOp) -> tuple[Detail, ...]:
    """Program, cores and blocks."""
    config, batches = op.config, op.problem.batches
    sent = [name for name, sends in zip(("first", "second"), op.sends, strict=True) if sends]
    text = uncompared([] if op.activation is None else [op.activation[0]], fp32_dest=op.problem.fp32_dest)
    return (
        Detail("program", config.program.name, config.program.name),
        counted("cores", op.cores, "core"),
        tiles("core_tiles", config.per_core_m, config.per_core_n, "{} output tiles a core"),
        tiles("out_block_tiles", config.out_block_h, config.out_block_w, "output blocks of {} tiles"),
        counted("out_blocks", op.out_blocks, "output block"),
        tiles("subblock_tiles", config.out_subblock_h, config.out_subblock_w, "sub-blocks of {}"),
        counted("k_blocks", op.k_blocks, "K block"),
        Detail(
            "multicast_operands",
            ", ".join(sent),
            f"{' and '.join(sent)} operand multicast" if sent else "each core reads its own operands",
        ),
        *(() if text is None else (uncompared_fact(text),)),
        *((Detail("batches", batches, f"{batches} batches, one by one"),) if batches > 1 else ()),
    )


def _program_config(config: MatmulConfig) -> str:
    """The program config as profiles show it, with the program's name in this package."""
    return (
        f"{config.program.name}(compute_with_storage_grid_size=(x={config.grid.cols},y={config.grid.rows}),"
        f"in0_block_w={config.in0_block_w},out_subblock_h={config.out_subblock_h},"
        f"out_subblock_w={config.out_subblock_w},per_core_M={config.per_core_m},per_core_N={config.per_core_n})"
    )


def matmul_values(
    op: MatmulOp, rows: Array, weights: Array, bias: Array | None, spec: DeviceSpec, arithmetic: Arithmetic
) -> Array:
    """The output [M, out_channels] of one matmul program, in storage of the output format.

    Rows are [M, K] in storage of the input format; their columns may lack the padding to tiles. Weights are the padded
    matrix [K, N], the bias is [N], each in storage of its own format. Where a matmul differs from a convolution
    (docs/reference/values.md, Matmul), activations are not converted, and float32 partial sums are reloaded whole.
    """
    problem, arithmetic = op.problem, arithmetic_of(arithmetic, rows, weights, bias)
    fp32_dest, partials = problem.fp32_dest, op.partials_format
    depth, columns = problem.k_tiles * TILE, op.config.in0_block_w * TILE
    mode = MatrixUnitMode(
        fidelity_phases=op.fidelity_phases, fp32_dest=fp32_dest, minus_one_quirk=spec.compute.minus_one_quirk
    )
    activation_mask, weight_mask = arithmetic.operand_masks(mode)

    def unpacked(values: Array, data_format: DataFormat) -> Array:
        """Values as the matrix unit reads them, float32."""
        return arithmetic.unpack(values.astype(np.float32, copy=False), data_format, fp32_dest=fp32_dest)

    operand = cut(unpacked(weights[:depth], problem.weight_format), weight_mask)
    added = None if bias is None else unpacked(bias, problem.added_format)
    result = np.empty((rows.shape[0], op.out_channels), problem.out_format.storage)
    step = max(1, RUN_ELEMENTS // weights.shape[1])

    def compute(start: int) -> None:
        run = np.zeros((min(step, rows.shape[0] - start), depth), np.float32)
        run[:, : rows.shape[1]] = rows[start : start + step]
        activations = cut(unpacked(run, problem.in_format), activation_mask)
        parts = [slice(first, first + columns) for first in range(0, depth, columns)]
        dst = sum_blocks(
            ((activations[:, k], operand[k], (HALVES,) * op.config.in0_block_w) for k in parts),
            len(parts),
            arithmetic,
            mode,
            partials,
            accumulates=op.l1_accumulation,
            has_bias=problem.bias,
            reloads_whole=partials == FLOAT32 and fp32_dest,
        )
        finished = finish(given(dst), added, op.activation, problem.out_format, arithmetic, spec, fp32_dest=fp32_dest)
        result[start : start + step] = finished[:, : op.out_channels]

    arithmetic.each(compute, range(0, rows.shape[0], step))
    return result


def _values(op: MatmulOp, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
    """Inputs are the rows, the weights and, if there is one, the bias."""
    problem = op.problem
    rows, weights, *bias = map(
        given, inputs[: 3 if problem.bias else 2]
    )  # not the tensor that is written, if there is one
    added = row(matrix(bias[0])[0]) if bias else None  # the program adds the first row to all rows
    if problem.transpose_first:
        rows = transposed(problem.in_format, rows, context.arithmetic)
    if problem.transpose_second:
        weights = np.swapaxes(weights, -1, -2)

    def product(first: Array, second: Array) -> Array:
        factor = matrix(first)
        if op.out_rows is not None and op.out_rows > len(factor):
            factor = np.pad(factor, ((0, op.out_rows - len(factor)), (0, 0)))
        return matmul_values(op, factor, _whole_tiles(op, matrix(second)), added, context.spec, context.arithmetic)

    if problem.batches == 1 or not problem.second_batched:
        out = product(rows, weights)  # rows do not know of each other
        return out.reshape(1, 1, *out.shape)
    count = problem.batches if problem.first_batched else 1
    firsts = rows.reshape(count, *rows.shape[-2:])
    seconds = weights.reshape(-1, *weights.shape[-2:])
    return np.stack([product(firsts[index % count], second) for index, second in enumerate(seconds)])


def _whole_tiles(op: MatmulOp, second: Array) -> Array:
    """The second operand with the padding to tiles, which a transposed operand lacks."""
    missing = tuple(
        max(0, tiles * TILE - side)
        for tiles, side in zip((op.problem.k_tiles, op.problem.n_tiles), second.shape, strict=True)
    )
    return np.pad(second, tuple((0, count) for count in missing)) if any(missing) else second


def _cycles(op: MatmulOp, ends: Ends, spec: DeviceSpec) -> OperationCycles:
    added = place_of(ends.others[1]) if op.problem.bias and len(ends.others) > 1 else op.second_place
    places = Places(first=place_of(ends.read), second=op.second_place, added=added, output=place_of(ends.written))
    return matmul_cycles(op, spec, places)


OP_MODELS: Final = (
    OpModel(
        op=MatmulOp,
        values=_values,
        cycles=_cycles,
        fidelity_phases=lambda op: op.fidelity_phases,
        describe=describe_matmul,
    ),
)
