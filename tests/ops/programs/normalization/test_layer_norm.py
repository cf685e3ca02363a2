"""Programs of layer_norm and rms_norm: their circular buffers, as the real library allocates them."""

import pytest

from device.cores import core_rectangle
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from ops.builder import PlanTensor
from ops.programs.normalization.layer_norm import Exchange, LayerNorm, RowBuffers, shard_buffers

L1_BYTES = 1_360_544  # of a Wormhole's core, with 32 KiB of L1_SMALL


def norm(rms=False, source=BFLOAT16, residual=None, weight=None, bias=None, wide=True, tiles=(1, 8)):
    return LayerNorm(
        shape=(32, 256), rms=rms, epsilon=1e-5, data_format=source, residual_format=residual, weight_format=weight,
        bias_format=bias, fidelity_phases=4, fp32_dest=wide, cores=core_rectangle(4, 1), core_tiles=tiles,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("op", "width_tiles", "sizes"),
    [
        # blocks of 4 tiles: float32 between steps, two tiles of constants
        (norm(source=FLOAT32), 2, [16384, 32768, 8192, 4096, 4096, 8192, 16384, 16384, 32768]),
        # gathered blocks of weights, and two blocks between scaling and shifting
        (
            norm(weight=BFLOAT16), 8,
            [16384, 16384, 8192, 4096, 4096, 8192, 32768, 32768, 32768, 32768, 16384],
        ),
        # a row of 256 tiles does not fit: blocks of 56 tiles of bfloat16 with weights, and a running sum
        (
            norm(rms=True, source=FLOAT32, weight=BFLOAT16, wide=False), 256,
            [229376, 65536, 4096, 4096, 4096, 114688, 114688, 16384, 2048, 32768, 114688],
        ),
        # of 112 tiles without, half as many of float32
        (norm(rms=True, source=BFLOAT8_B), 512, [60928, 8704, 4096, 4096, 8192, 229376, 229376, 32768, 4096]),
    ],
)  # fmt: skip
def test_buffers_of_rows(op, width_tiles, sizes):
    buffers = RowBuffers(op=op, width_tiles=width_tiles, by_rows=False, vectors_by_rows=False).buffers(L1_BYTES)
    assert [buffer.size_bytes for buffer in buffers] == sizes


def test_a_row_fits_up_to_95_percent_of_l1():
    """rms_norm of bfloat8_b with a 16-bit Dst: 392 tiles take 1,275,392 B, 400 take 1,300,480."""
    fits = []
    for width_tiles in (392, 400):
        op = norm(rms=True, source=BFLOAT8_B, wide=False)
        buffers = RowBuffers(op=op, width_tiles=width_tiles, by_rows=False, vectors_by_rows=False).buffers(L1_BYTES)
        fits.append("running_sum" not in [buffer.name for buffer in buffers])
    assert fits == [True, False]


@pytest.mark.parametrize(
    ("room_bytes", "size_bytes", "said"),
    [
        (1360544, 729088, None),
        (737952, 651264, None),  # blocks of 56 tiles: 95 % are less than the row of 64 needs
        (672416, 610304, None),
        (148128, 118784, None),  # one block of 4
        (115360, 118784, "require 118784 bytes, but only 109592 bytes of the allocator's L1 span are available"),
    ],
)  # fmt: skip
def test_blocks_of_a_row_fill_the_room_below_other_tensors(room_bytes, size_bytes, said):
    """layer_norm of 64 tiles of bfloat16 below tensors in L1, as the real library plans it."""
    rows = RowBuffers(op=norm(), width_tiles=64, by_rows=False, vectors_by_rows=False)
    buffers = rows.buffers(room_bytes)
    assert sum(buffer.size_bytes for buffer in buffers) == size_bytes
    shortage = rows.shortage(buffers, room_bytes)
    assert shortage is None if said is None else said in shortage


def test_buffers_of_shards():
    """3 x 4 tiles on 3 cores of a row, whose 383 columns end within a tile: a mask of 4 tiles, and masked tiles."""
    grid = core_rectangle(3, 4)
    place = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1, ShardSpec(grid, (96, 128)))
    output = PlanTensor("output", TensorSpec((383, 383), BFLOAT16, Layout.TILE, place))
    source = PlanTensor("input", output.spec)
    exchange = Exchange(partners=3, first_stage=0, second_stage=0)
    buffers = shard_buffers(norm(weight=FLOAT32, tiles=(3, 4)), (source, None), output, exchange)
    assert [(buffer.size_bytes, buffer.view_of) for buffer in buffers] == [
        (24576, "input"), (2048, None), (2048, None), (4096, None), (49152, None), (8192, None), (12288, None),
        (12288, None), (12288, None), (4096, None), (12288, None), (12288, None), (12288, None), (16384, None),
        (49152, None), (49152, None), (12288, None), (24576, "output"),
    ]  # fmt: skip


def test_sums_of_a_grid_are_exchanged_in_two_stages():
    """rms_norm of 3 x 4 tiles on 5 x 5 cores: 5 + 5 - 1 tiles of sums."""
    grid = core_rectangle(5, 5)
    place = MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1, ShardSpec(grid, (96, 128)))
    output = PlanTensor("output", TensorSpec((96, 3200), FLOAT32, Layout.TILE, place))
    exchange = Exchange(partners=25, first_stage=5, second_stage=5)
    op = norm(rms=True, source=FLOAT32, tiles=(3, 4))
    sizes = {buffer.name: buffer.size_bytes for buffer in shard_buffers(op, (output, None), output, exchange)}
    assert (sizes["gathered"], sizes["inverse_roots"], sizes["partial"]) == (36864, 4096, 12288)
