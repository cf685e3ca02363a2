"""What a matmul program computes: the numbers of its output, K block by K block in the program's order.

Where it differs from a convolution (docs/values.md, Matmul): activations are multiplied as they come; partial sums
are float32 whenever Dst is, and are reloaded into Dst whole. Only the addition of a bias cuts them.
"""

import numpy as np

from device.matrix_unit.arithmetic import RUN_ELEMENTS, Arithmetic, arithmetic_of, cut
from device.matrix_unit.exact import MatrixUnitMode
from device.memory.memory_config import TILE
from device.numbers.formats import FLOAT32, Array, DataFormat
from device.numbers.vector_unit import VectorUnitMode
from device.spec.device_spec import DeviceSpec
from ops.programs.eltwise.functions import apply_activation
from ops.programs.matmul.op import MatmulOp

HALVES = 2  # 16-column halves of a tile


def matmul_values(
    op: MatmulOp, rows: Array, weights: Array, bias: Array | None, spec: DeviceSpec, arithmetic: Arithmetic
) -> Array:
    """The output [M, out_channels] of one matmul program, in storage of the output format.

    Rows are [M, K] in storage of the input format; their columns may lack the padding to tiles. Weights are the padded
    matrix [K, N], the bias is [N], each in storage of its own format.
    """
    problem, arithmetic = op.problem, arithmetic_of(arithmetic, rows, weights, bias)
    depth = problem.k_tiles * TILE
    mode = MatrixUnitMode(
        fidelity_phases=op.fidelity_phases, fp32_dest=problem.fp32_dest, minus_one_quirk=spec.compute.minus_one_quirk
    )
    seen = _unpacked(op, weights[:depth], problem.weight_format, arithmetic)
    activation_mask, weight_mask = arithmetic.operand_masks(mode)
    operand = cut(seen, weight_mask)
    row = None if bias is None else _unpacked(op, bias, problem.added_format, arithmetic)
    result = np.empty((rows.shape[0], op.out_channels), problem.out_format.storage)
    step = max(1, RUN_ELEMENTS // weights.shape[1])

    def compute(start: int) -> None:
        run = np.zeros((min(step, rows.shape[0] - start), depth), np.float32)
        run[:, : rows.shape[1]] = rows[start : start + step]
        activations = cut(_unpacked(op, run, problem.in_format, arithmetic), activation_mask)
        dst = _multiply(op, activations, operand, mode, arithmetic)
        finished = _finish(op, dst, row, arithmetic, spec)
        result[start : start + step] = finished[:, : op.out_channels]

    arithmetic.each(compute, range(0, rows.shape[0], step))
    return result


def _unpacked(op: MatmulOp, values: Array, data_format: DataFormat, arithmetic: Arithmetic) -> Array:
    """Values as the matrix unit reads them, float32."""
    return arithmetic.unpack(values.astype(np.float32, copy=False), data_format, fp32_dest=op.problem.fp32_dest)


def _multiply(op: MatmulOp, rows: Array, weights: Array, mode: MatrixUnitMode, arithmetic: Arithmetic) -> Array:
    """All K blocks of a run of rows, with the trips through the packer between them.

    The result is Dst before the final pack, float32 [rows, N]; with a bias, the partial sums as they are read to add
    it.
    """
    problem, fp32_dest = op.problem, mode.fp32_dest
    partials, accumulates = op.partials_format, op.l1_accumulation
    columns, blocks = op.config.in0_block_w * TILE, op.k_blocks
    packed: Array | None = None
    for block in range(blocks):
        final = block == blocks - 1 and not problem.bias
        k = slice(block * columns, (block + 1) * columns)
        dst: Array | None = None
        if packed is not None and (final or not accumulates):
            as_they_are = partials == FLOAT32 and fp32_dest  # into a 32-bit Dst
            dst = packed if as_they_are else arithmetic.unpack(packed, partials, fp32_dest=fp32_dest)
        halves = (HALVES,) * op.config.in0_block_w
        dst = arithmetic.product(rows[:, k], weights[k], dst, mode=mode, half_counts=halves)
        if final:
            return dst
        repacked = arithmetic.pack(dst, partials, fp32_dest=fp32_dest)
        adds = packed is not None and accumulates
        packed = arithmetic.accumulate_l1(packed, repacked, partials) if packed is not None and adds else repacked
    if packed is None:
        raise AssertionError("a matmul has at least one K block")
    return arithmetic.unpack(packed, partials, fp32_dest=fp32_dest)


def _finish(op: MatmulOp, dst: Array, bias: Array | None, arithmetic: Arithmetic, spec: DeviceSpec) -> Array:
    """Bias, activation and the final pack."""
    fp32_dest = op.problem.fp32_dest
    if bias is not None:
        dst = arithmetic.add_bias(dst, bias, fp32_dest=fp32_dest)
    relu = op.activation is not None and op.activation[0] == "relu"
    if op.activation is not None and not relu:
        vector_unit = VectorUnitMode(fp32_dest=fp32_dest, reciprocal_table=spec.compute.reciprocal_table)
        dst = apply_activation(dst, *op.activation, mode=vector_unit)
    return arithmetic.pack(dst, op.problem.out_format, fp32_dest=fp32_dest, relu=relu)
