"""Programs of layer_norm by Welford's algorithm: their circular buffers, as the real library allocates them."""

from dataclasses import replace

import pytest

from device.cores import core_rectangle
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from ops.builder import PlanTensor
from ops.programs.normalization.layer_norm import Exchange, LayerNorm, RowBuffers, total_bytes
from ops.programs.normalization.layer_norm_welford import WelfordRows, reciprocals, welford_shard_buffers
from tests.build import N150

L1_BYTES = 1_360_544  # of a Wormhole's core, with 32 KiB of L1_SMALL


def rows(source=BFLOAT16, width_tiles=32, residual=None, weight=None, vectors_by_rows=False):
    op = LayerNorm(
        shape=(32, 32 * width_tiles), rms=False, epsilon=1e-5, data_format=source, residual_format=residual,
        weight_format=weight, bias_format=None, fidelity_phases=4, fp32_dest=True, cores=core_rectangle(2, 1),
        core_tiles=(1, width_tiles), welford=True,
    )  # fmt: skip
    return WelfordRows(rows=RowBuffers(op=op, width_tiles=width_tiles, by_rows=False, vectors_by_rows=vectors_by_rows))


@pytest.mark.parametrize(
    ("program", "size_bytes"),
    [
        # 68 KiB, three rows of 64 KiB, one of 128 KiB of float32
        (rows(), 397_312),
        (rows(BFLOAT8_B), 297_472),
        (rows(FLOAT32), 479_232),
        (rows(weight=BFLOAT16), 495_616),
        # two rows each of the tensor and the residual, and two of float32
        (rows(residual=BFLOAT16), 593_920),
        (rows(residual=FLOAT32), 724_992),
        (rows(FLOAT32, residual=BFLOAT16), None),
        # 128 tiles: one row as it is, and one of float32, which float32 does not need
        (rows(width_tiles=128), 856_064),
        (rows(FLOAT32, width_tiles=128), 610_304),
        (rows(width_tiles=128, residual=BFLOAT16), 1_150_976),
        # 208 tiles do not fit, but a weight in rows has the library try
        (rows(width_tiles=208), None),
        (rows(width_tiles=256, weight=BFLOAT16, vectors_by_rows=True), 2_199_552),
    ],
)
def test_buffers_of_two_passes(program, size_bytes):
    buffers = program.in_two_passes(L1_BYTES)
    assert (None if buffers is None else total_bytes(buffers)) == size_bytes


@pytest.mark.parametrize(
    ("program", "size_bytes"),
    [
        (rows(width_tiles=256), 413_696),  # blocks of 56 tiles
        (rows(FLOAT32, width_tiles=512), 315_392),  # of 28
        (rows(FLOAT32, residual=FLOAT32), 413_696),  # a whole row of 32
    ],
)
def test_buffers_beside_reciprocals(program, size_bytes):
    assert total_bytes(program.by_tiles(L1_BYTES)) == size_bytes


def test_buffers_of_shards():
    """3 x 2 tiles on 4 cores of a row: 2 x (3 + 3 + 3 + 3 + 4) tiles of means and variances, and two blocks of 6."""
    grid = core_rectangle(4, 2)
    place = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1, ShardSpec(grid, (96, 64)))
    output = PlanTensor("output", TensorSpec((192, 256), FLOAT32, Layout.TILE, place))
    op = replace(rows(FLOAT32).rows.op, cores=grid, core_tiles=(3, 2), partners=4)
    buffers = welford_shard_buffers(op, (output, None), output, Exchange(partners=4, first_stage=0, second_stage=0))
    own = [buffer.size_bytes for buffer in buffers if buffer.view_of is None]
    assert sum(own) == 44 * FLOAT32.tile_bytes
    table = PlanTensor(
        "table", TensorSpec((64, 100), FLOAT32, Layout.ROW_MAJOR, MemoryConfig(buffer_type=BufferType.L1))
    )
    assert reciprocals(table, op, N150).size_bytes == 400  # one row in a bank
