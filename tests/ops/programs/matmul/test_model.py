"""What passes read of a matmul and of a transpose."""

import numpy as np
import pytest

from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16
from device.time.stages import Stage
from ops.op_models import OP_MODELS
from ops.programs.data_movement.movement import copy_movement, movement_cycles
from ops.programs.matmul.buffers import interleaved_config
from ops.programs.matmul.cycles import matmul_cycles
from ops.programs.matmul.op import MatmulOp, MatmulProblem, Place, Places
from ops.programs.matmul.transpose import Transpose
from tests.build import N150, op_cycles, op_values, tensor_spec


def op(*, bias):
    problem = MatmulProblem(
        m_tiles=1, k_tiles=1, n_tiles=1, in_format=BFLOAT16, weight_format=BFLOAT16, out_format=BFLOAT16, bias=bias,
        fp32_dest=False, packer_l1_acc=False,
    )  # fmt: skip
    config = interleaved_config(problem, N150.grid, in_dram=True, l1_bytes=N150.l1.usable_bytes)
    return MatmulOp(problem=problem, config=config, fidelity_phases=3, out_channels=TILE)


@pytest.mark.parametrize("bias", [False, True])
def test_rows_of_any_rank_are_multiplied(bias):
    rows = np.arange(4 * TILE).reshape(1, 2, 2, TILE).astype(BFLOAT16.storage) % 5
    twice = (2 * np.eye(TILE)).astype(BFLOAT16.storage).reshape(1, 1, TILE, TILE)
    ones = np.ones((1, 1, TILE, TILE), BFLOAT16.storage)
    got = op_values(op(bias=bias), rows, twice, *([ones] if bias else []))
    assert got.shape == (1, 1, 4, TILE)
    assert got.astype(np.float32).ravel().tolist() == (2 * rows.astype(np.float32).ravel() + bias).tolist()
    assert OP_MODELS[MatmulOp].fidelity_phases(op(bias=bias)) == 3


@pytest.mark.parametrize(
    ("read", "written", "places"),
    [
        ("", "", Places()),
        ("height/32x32/1", "", Places(first=Place.OWN)),
        ("height/32x32/1", "height/32x32/1", Places(first=Place.OWN, output=Place.OWN)),
        ("l1", "", Places(first=Place.L1)),
    ],
)
def test_what_is_sharded_is_not_read_again(read, written, places):
    ends = (tensor_spec(f"1x1x32x32 tile {place}") for place in (read, written))
    assert op_cycles(op(bias=False), *ends) == matmul_cycles(op(bias=False), N150, places)


def test_a_transpose_turns_tiles_while_it_copies_them():
    ends = tensor_spec("1x1x32x2048 tile"), tensor_spec("1x1x2048x32 tile")
    cycles = op_cycles(Transpose(data_format=BFLOAT16), *ends)
    copied = movement_cycles(copy_movement(*ends, N150), N150)
    assert cycles.cycles == copied.cycles
    assert cycles.groups == (cycles.slowest,)
    assert cycles.working == copied.working | {Stage.TILIZE}
    late = op_cycles(Transpose(data_format=BFLOAT16), *ends, N150.replace(compute_pack_bytes_per_cycle=0.01))
    assert late.cycles == late.slowest.stages[-1].busy_cycles > cycles.cycles
    assert (late.slowest.stages[-1].stage, late.bound_by) == (Stage.TILIZE, Stage.TILIZE)
