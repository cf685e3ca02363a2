"""Which calls of matmul and linear are refused once their program is chosen."""

from device.errors import ArgumentError
from device.memory.tiles import TILE
from ops.calls.matmul.arguments import MatmulArguments
from ops.programs.matmul.config import MatmulConfig, MatmulProblem, MatmulProgram

MAX_TRANSPOSED_AXES = 4


def require_possible(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> None:
    """Refuses what a program of single tiles can not do, or not rightly.

    Args:
        problem: What the program multiplies; without the bias if that is added later.

    Raises:
        ArgumentError: It can not.
    """
    if config.program is not MatmulProgram.SINGLE_TILES:
        return
    if problem.keeps_first:
        pairs = enumerate(zip(call.first.shape[:-2], call.second.shape[:-2], strict=True))
        axis, (one, other) = next((axis, pair) for axis, pair in pairs if pair[0] != pair[1])
        raise ArgumentError(
            f"{batches_mismatch(axis, one, other)}\n"
            f"input_tensor_a: a single matrix can serve the batches of {list(call.second.shape)} only in a program of "
            "blocks, which is chosen if both operands and the output are in DRAM; put them there"
        )
    for name, spec, turned in (("a", call.first, call.transpose_a), ("b", call.second, call.transpose_b)):
        if turned and len(spec.shape) > MAX_TRANSPOSED_AXES:
            raise ArgumentError(
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
    told = "Broadcast error: Invalid dimension"
    if expected[1] == columns:
        told = "Attempting to reshape between two shapes with different volumes"
        if rows % TILE == 0 and depth % TILE == 0:
            told = "MeshBuffer must be large enough to hold the tensor."
    raise ArgumentError(
        f"{told}\n"
        f"linear: with a bias and an operand or the output in L1, transposed operands give {list(expected)} for the "
        f"output of {[rows, columns]}; transpose them before the call, or put all in DRAM"
    )


def batches_mismatch(axis: int, first: int, second: int) -> str:
    """The real library's words where two batches do not pair.

    Args:
        axis: The axis on which they differ.
        first: The first operand's extent there.
    """
    return (
        f"bmm (non-bcast matmul) expects input tensors of shapes BCMK*BCKN=BCMN or batch dimension {axis} mismatch: "
        f"a={first} vs b={second} (dimension mismatch only allowed when all batch dimensions of a are size 1 and using "
        "MatmulMultiCoreReuseMultiCast1DProgramConfig with fuse_batch=false, fused_activation=none, mcast_in0=false, "
        "and non-sharded inputs for in0 reuse optimization)"
    )
