"""What the table says of a matmul."""

import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from device.spec.device_spec import load_spec
from device.time.stages import Stage
from ops.op_model import CyclesContext, Ends, ValuesContext
from ops.op_models import OP_MODELS
from ops.programs.data_movement.movement import copy_movement
from ops.programs.data_movement.movement_cycles import movement_cycles
from ops.programs.matmul.buffers import interleaved_config
from ops.programs.matmul.cycles import matmul_cycles
from ops.programs.matmul.op import MatmulOp, MatmulProblem, Place, Places
from ops.programs.matmul.values import Transpose

SPEC = load_spec("wormhole_n150")


def op(*, bias):
    problem = MatmulProblem(
        m_tiles=1, k_tiles=1, n_tiles=1, in_format=BFLOAT16, weight_format=BFLOAT16, out_format=BFLOAT16, bias=bias,
        fp32_dest=False, packer_l1_acc=False,
    )  # fmt: skip
    config = interleaved_config(problem, SPEC.grid, in_dram=True, l1_bytes=SPEC.l1.usable_bytes)
    return MatmulOp(problem=problem, config=config, fidelity_phases=3, out_channels=TILE)


@pytest.mark.parametrize("bias", [False, True])
def test_rows_of_any_rank_are_multiplied(bias):
    rows = np.arange(4 * TILE).reshape(1, 2, 2, TILE).astype(BFLOAT16.storage) % 5
    twice = (2 * np.eye(TILE)).astype(BFLOAT16.storage).reshape(1, 1, TILE, TILE)
    ones = np.ones((1, 1, TILE, TILE), BFLOAT16.storage)
    inputs = [rows, twice, *([ones] if bias else [])]
    context = ValuesContext(spec=SPEC, arithmetic=EXACT)
    got = OP_MODELS[MatmulOp].values(op(bias=bias), inputs, context)
    assert got.shape == (1, 1, 4, TILE)
    assert got.astype(np.float32).ravel().tolist() == (2 * rows.astype(np.float32).ravel() + bias).tolist()


def test_what_is_sharded_is_not_read_again():
    made = op(bias=False)
    interleaved = TensorSpec((1, 1, TILE, TILE), BFLOAT16, Layout.TILE)
    place = MemoryConfig(
        TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(matmul_cycles(
            made, SPEC
        ).groups[0].cores, (TILE, TILE)),
    )  # fmt: skip
    sharded = TensorSpec((1, 1, TILE, TILE), BFLOAT16, Layout.TILE, place)
    context = CyclesContext(spec=SPEC, contention=True)
    for ends, places in (
        (Ends(read=interleaved, written=interleaved), Places()),
        (Ends(read=sharded, written=interleaved), Places(first=Place.OWN)),
        (Ends(read=sharded, written=sharded), Places(first=Place.OWN, output=Place.OWN)),
    ):
        assert OP_MODELS[MatmulOp].cycles(made, ends, context) == matmul_cycles(made, SPEC, places)
    assert OP_MODELS[MatmulOp].fidelity_phases(made) == 3


def test_a_transpose_turns_tiles_while_it_copies_them():
    turned = TensorSpec((1, 1, 64 * TILE, TILE), BFLOAT16, Layout.TILE)
    ends = Ends(read=TensorSpec((1, 1, TILE, 64 * TILE), BFLOAT16, Layout.TILE), written=turned)
    context = CyclesContext(spec=SPEC, contention=True)
    found = OP_MODELS[Transpose].cycles(Transpose(data_format=BFLOAT16), ends, context)
    copied = movement_cycles(copy_movement(ends.read, ends.written, SPEC), SPEC)
    assert found.cycles == copied.cycles
    assert found.slowest.stages[-1].stage is Stage.TILIZE
    assert found.groups == (found.slowest,)
    assert found.working == copied.working | {Stage.TILIZE}
    slow = CyclesContext(spec=SPEC.replace(compute_pack_bytes_per_cycle=0.01), contention=True)
    late = OP_MODELS[Transpose].cycles(Transpose(data_format=BFLOAT16), ends, slow)
    assert late.cycles == late.slowest.stages[-1].busy_cycles > found.cycles
    assert late.bound_by is Stage.TILIZE
