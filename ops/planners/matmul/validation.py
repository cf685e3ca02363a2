"""The errors of a matmul for every program config; first lines of ttnn 0.81.1."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from device.errors import ArgumentError, NotSimulatedError
from device.memory.memory_config import TILE, Layout
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32, DataFormat, round_up
from ops.planners.matmul.arguments import MatmulArguments
from ops.planners.matmul.choice import require_program
from ops.programs.matmul.op import MatmulConfig, MatmulProblem, MatmulProgram


def check_batches(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> None:
    """Raises ArgumentError for batches of the second operand alone, unless the program keeps the first for them."""
    plain = call.first.memory_config.shard_spec is None and config.activation is None and not config.fuse_batch
    alike = len(call.first.shape) == len(call.second.shape)  # other ranks are refused before
    if not problem.keeps_first or not alike or (config.program is MatmulProgram.MCAST_IN1 and plain):
        return
    pairs = enumerate(zip(call.first.shape[:-2], call.second.shape[:-2], strict=True))
    axis, (first_batch, second_batch) = next((axis, pair) for axis, pair in pairs if pair[0] != pair[1])
    raise ArgumentError(
        f"{batches_mismatch(axis, first_batch, second_batch)}\n"
        f"input_tensor_a: a single matrix can serve the batches of {list(call.second.shape)} only in a program of "
        "rows of blocks, which is chosen if both operands and the output are in DRAM; put them there"
    )


def check_target(call: MatmulArguments, config: MatmulConfig) -> None:
    """Raises ArgumentError for a target that does not hold the product of transposed operands of single tiles."""
    if config.program is not MatmulProgram.SINGLE_TILES or call.bias is not None or call.target is None:
        return
    rows, columns = _expected_sides(call)
    if rows * columns != call.first_sides[0] * call.second_sides[1]:
        raise ArgumentError(
            "Invalid optional output tensor\nmatmul: with an operand or the output in L1, transposed operands give "
            f"{[rows, columns]} for the output; transpose them before the call, or put all in DRAM"
        )


def _expected_sides(call: MatmulArguments) -> tuple[int, int]:
    """The sides that the library expects of a product of operands that it transposed first: transposed again."""
    (rows, depth), columns = call.first_sides, call.second_sides[1]
    return depth if call.transpose_a else rows, depth if call.transpose_b else columns


def expected_shape(call: MatmulArguments, *, turned: bool) -> tuple[int, ...]:
    """The shape that the library gives a product with its bias; ``turned`` if operations of their own turned operands.

    Raises ArgumentError for a bias that does not broadcast to the product.
    """
    sides = _expected_sides(call) if turned else (call.first_sides[0], call.second_sides[1])
    expected, bias = (*call.output_shape[:-2], *sides), () if call.bias is None else tuple(call.bias.shape)
    try:
        return np.broadcast_shapes(expected, bias)
    except ValueError:
        raise ArgumentError(
            f"Broadcast error: Invalid dimension\nlinear: the product counts as {list(expected)}, and the bias has "
            f"{list(bias)}; with an operand or the output in L1, transposed operands count as transposed twice"
        ) from None


def batches_mismatch(axis: int, first: int, second: int) -> str:
    """The real library's words where two batches do not pair."""
    return (
        f"bmm (non-bcast matmul) expects input tensors of shapes BCMK*BCKN=BCMN or batch dimension {axis} mismatch: "
        f"a={first} vs b={second} (dimension mismatch only allowed when all batch dimensions of a are size 1 and using "
        "MatmulMultiCoreReuseMultiCast1DProgramConfig with fuse_batch=false, fused_activation=none, mcast_in0=false, "
        "and non-sharded inputs for in0 reuse optimization)"
    )


FORMATS = (BFLOAT16, FLOAT32, BFLOAT8_B, BFLOAT4_B)
FORMAT_NAMES = ", ".join(data_format.name for data_format in FORMATS)
INTEGER_OUTPUT = "the packer's bits of a sum are no integers; convert the output instead"


def validate(call: MatmulArguments, require_output: Callable[[], None], require_blocks: Callable[[], None]) -> None:
    """Raises for a refused call.

    ``require_output`` checks its output, which the library makes before layout checks, and ``require_blocks`` the
    blocks of a given program, which the library checks before batches.
    """
    for check in (_choices, _target_place, _batches_of_output, _operands, _depths, _batches, _target):
        for text in check(call):
            if check in (_batches_of_output, _operands, _depths, _batches):
                require_program(call)
            if check in (_operands, _depths, _batches):
                require_output()
            if check is _batches:
                require_blocks()
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


def bias_of_integers(data_format: DataFormat) -> str:
    """Why nobody knows the values of a product whose program adds a bias of integers."""
    return f"linear: bias must be one of {FORMAT_NAMES}, not {data_format}, whose bits the library takes for floats"


def require_floats(call: MatmulArguments) -> None:
    """Raises, for a strict device, for an output, or a bias, whose values are wrong in the real library."""
    if call.bias is not None and not call.bias.data_format.is_float:
        raise ArgumentError(bias_of_integers(call.bias.data_format))
    if not call.output_format.is_float:
        raise ArgumentError(f"matmul: dtype must be one of {FORMAT_NAMES}, not {call.output_format}: {INTEGER_OUTPUT}")


def _depths(call: MatmulArguments) -> Iterator[str]:
    width, height = call.first_sides[1], call.second_sides[0]
    if width != height:
        yield (
            f"The width of the first tensor must be equal to the height of the second tensor. Mismatch: width={width} "
            f"height={height}\ninput_tensor_b: {list(call.second.shape)} can not follow {list(call.first.shape)}"
        )


def _batches(call: MatmulArguments) -> Iterator[str]:
    first, second = call.first.shape, call.second.shape
    reuse = call.program is not None and call.program.program is MatmulProgram.REUSE and call.batches[0] == 1
    if call.batches[1] == 1 and not reuse:
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


def _batches_of_output(call: MatmulArguments) -> Iterator[str]:
    """Axes that only the second operand has, in the shape of an output that the library makes."""
    if call.target is None and len(call.first.shape) > 1:
        yield from _front_axes(call.first.shape, call.second.shape)


def _front_axes(first: Sequence[int], second: Sequence[int]) -> Iterator[str]:
    if any(side != 1 for side in second[: max(0, len(second) - len(first))]):
        yield (
            "When in1 rank greater than in0 rank front dimensions need to be 1\ninput_tensor_b: its shape "
            f"{list(second)} has more axes than {list(first)}; reshape input_tensor_a to as many"
        )


def shape_of_nothing(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    """The shape that the library gives the product of operands [..., M, K] or [K], and [..., K, N] or [K].

    For operands of which one has no elements: sides and batches may differ. Raises ArgumentError for a second operand
    of more axes, unless they are of length 1.
    """
    rows = tuple(first) if len(first) > 1 else (1, *first)
    columns = tuple(second) if len(second) > 1 else (*second, 1)
    for text in _front_axes(rows, columns):
        raise ArgumentError(text)
    batches = (*(1,) * (len(columns) - len(rows)), *rows[:-2])
    if prod(batches) == 1 < prod(columns[:-2]) and len(rows) == len(columns):
        batches = columns[:-2]
    return (*batches, *rows[-2:-1] * (len(first) > 1), *columns[-1:] * (len(second) > 1))


REMEDY = "optional_output_tensor: give a tensor that the call would return"


def _target_place(call: MatmulArguments) -> Iterator[str]:
    if call.target is None:
        return
    if call.target.memory_config != call.memory_config:
        yield (
            f"Memory config mismatch between optional output tensor {call.target.memory_config.reported()} & output "
            f"tensor {call.memory_config}\n{REMEDY}"
        )
    given, asked = (f"DataType::{kind.name.upper()}" for kind in (call.target.data_format, call.output_format))
    if given != asked:
        yield f"Type mismatch between optional output tensor {given} & output tensor {asked}\n{REMEDY}"


def _target(call: MatmulArguments) -> Iterator[str]:
    if call.target is None:
        return
    sides = replace(call, target=None).output_shape
    if call.target.volume != prod(sides) and call.bias is None:
        yield f"Invalid optional output tensor\n{REMEDY} of the shape {list(sides)}"
    if call.target.volume != prod(sides) or call.target.layout is not Layout.TILE:
        raise NotSimulatedError(f"{REMEDY} of the shape {list(sides)} in TILE layout; ttsim does not simulate others")


def require_bias(call: MatmulArguments) -> None:
    """Raises for a bias of the matmul's own program whose shape does not match the product."""
    if call.bias is None:
        return
    columns, wide = call.second_sides[1], call.bias.shape[-1] if call.bias.shape else 1
    told = f"linear: bias must be a row of {columns} columns, or as many rows as the product, not the shape "
    if call.bias.layout is not Layout.TILE:
        raise ArgumentError(
            f"Unsupported bias layout: Layout::{call.bias.layout.name}, has to be TILE\n"
            "bias: use to_layout(TILE_LAYOUT)"
        )
    held, needed = (round_up(width, TILE) for width in (wide, columns))
    if held != needed:
        raise ArgumentError(
            f"Unsupported bias shape: padded last dimension of bias, {held}, not equal to second input's padded last "
            f"dimension, {needed}.\n{told}{list(call.bias.shape)}"
        )


def misplaced(activation: str) -> str:
    """The library's error text for an activation with shards."""
    return (
        f"Sharded matmul run with UnaryOpType::{activation.upper()} activation: this should be placed in the program "
        "config's fused_activation field\nactivation: give it there"
    )


def _choices(call: MatmulArguments) -> Iterator[str]:
    """The errors of arguments that exclude each other."""
    sharded = call.first.memory_config.is_sharded() or call.second.memory_config.is_sharded()
    if sharded and call.activation is not None:
        yield misplaced(call.activation[0])
    if call.program is not None and call.core_grid is not None:
        yield "Cannot use both user core grid/coordinates and a program config\ncore_grid: leave it out"
