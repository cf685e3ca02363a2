"""The program of a matmul of interleaved operands, against the circular buffers of ttnn 0.81.1 on an 8x8 grid."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.parts import GridSpec
from ops.programs.matmul.buffers import interleaved_config, matmul_circular_buffers, program_cores
from ops.programs.matmul.op import MatmulConfig, MatmulOp, MatmulProblem, MatmulProgram

GRID = GridSpec(cols=8, rows=8)
L1_BYTES = 1360544
B16, B8, F32 = BFLOAT16, BFLOAT8_B, FLOAT32


def problem(m, k, n, in_format=B16, weight_format=B16, out_format=B16, *, bias=False, fp32_dest=False, l1_acc=False):
    return MatmulProblem(
        m_tiles=m, k_tiles=k, n_tiles=n, in_format=in_format, weight_format=weight_format, out_format=out_format,
        bias=bias, fp32_dest=fp32_dest, packer_l1_acc=l1_acc,
    )  # fmt: skip


def op(product, config):
    return MatmulOp(problem=product, config=config, fidelity_phases=1, out_channels=32)


def buffers(product, *, in_dram):
    config = interleaved_config(product, GRID, in_dram=in_dram, l1_bytes=L1_BYTES)
    memory = DRAM_MEMORY_CONFIG if in_dram else L1_MEMORY_CONFIG
    result = matmul_circular_buffers(op(product, config), source="x", in_memory=memory, output="y", out_sharded=False)
    assert len({str(buffer.cores) for buffer in result}) == 1
    assert all(buffer.view_of is None for buffer in result)
    return [buffer.size_bytes for buffer in result], str(result[0].cores)


@pytest.mark.parametrize(
    ("product", "sizes", "cores"),
    [
        (problem(4, 16, 2, B8, B16, B16), [4352, 8192, 2048], "{[0-0 - 1-3]}"),
        (problem(2, 20, 2, B8, B16, B16), [2176, 4096, 2048], "{[0-0 - 1-1]}"),
        (problem(56, 16, 32, B16, B16, B8), [57344, 32768, 30464], "{[0-0 - 7-7]}"),
        (problem(35, 1, 64), [10240, 16384, 81920], "{[0-0 - 7-6]}"),
        (problem(16, 4, 8, B16, F32, B16, bias=True), [8192, 8192, 4096, 4096], "{[0-0 - 7-7]}"),
        (problem(7, 5, 6, B16, F32, B16, bias=True, fp32_dest=True), [4096, 8192, 2048, 4096, 4096], "{[0-0 - 5-6]}"),
        (
            problem(4, 4, 16, F32, B8, B16, bias=True, fp32_dest=True, l1_acc=True),
            [8192, 4352, 4096, 8192, 2176],
            "{[0-0 - 7-3]}",
        ),
    ],
)
def test_two_axes(product, sizes, cores):
    assert buffers(product, in_dram=True) == (sizes, cores)


@pytest.mark.parametrize(
    ("product", "in_dram", "sizes", "cores"),
    [
        (problem(49, 2, 2, B16, B8, F32, fp32_dest=True), True, [4096, 4352, 8192], "{[0-0 - 7-5], [0-6 - 0-6]}"),
        (problem(2, 3, 1, B16, B8, B16, bias=True), True, [4096, 2176, 2048, 1088], "{[0-0 - 1-0]}"),
        (problem(1, 1, 3, B16, F32, bias=True, fp32_dest=True), True, [2048, 4096, 2048, 4096, 4096], "{[0-0 - 2-0]}"),
        (problem(1, 3, 32, F32, B8, F32, l1_acc=True), False, [8192, 2176, 4096, 2048], "{[0-0 - 7-3]}"),
        (problem(512, 4, 2, fp32_dest=True, l1_acc=True), False, [65536, 16384, 32768, 65536], "{[0-0 - 7-7]}"),
    ],
)  # fmt: skip
def test_one_axis(product, in_dram, sizes, cores):
    """Outputs that are long or thin; in DRAM also those of one row or column of tiles."""
    assert buffers(product, in_dram=in_dram) == (sizes, cores)


@pytest.mark.parametrize(
    ("product", "sizes", "cores"),
    [
        (problem(1, 1, 1), [4096, 4096, 4096], "{[0-0 - 0-0]}"),
        (problem(7, 1, 4, B16, F32, B8, fp32_dest=True), [4096, 8192, 2176], "{[0-0 - 3-3], [0-4 - 2-7]}"),
        (problem(14, 5, 1, B8, B16, B8, l1_acc=True), [2176, 4096, 2176], "{[0-0 - 1-5], [0-6 - 0-7]}"),
        (problem(2, 1, 64, B8, B16, B8), [2176, 2048, 2176], "{[0-0 - 7-7]}"),
    ],
)
def test_operand_in_l1(product, sizes, cores):
    """Small products and odd depths are computed tile by tile, or dealt along one axis."""
    assert buffers(product, in_dram=False) == (sizes, cores)


def test_accumulation_in_l1_makes_partial_sums_bfloat16_from_two_blocks_on():
    product = problem(56, 4, 4, B8, F32, B8, l1_acc=True)
    assert buffers(product, in_dram=True)[0] == [4352, 65536, 4352, 8192]
    assert buffers(replace(product, k_tiles=2), in_dram=True)[0][-1] != 8192


@pytest.mark.parametrize(("out_sharded", "out"), [(False, (4 * 2048, None)), (True, (8 * 2048, "y"))])
def test_a_sharded_output_is_held_whole(out_sharded, out):
    """4 x 2 tiles of a core, in blocks of 2 x 2."""
    config = MatmulConfig(
        program=MatmulProgram.MCAST_2D, grid=GRID, in0_block_w=1, out_block_h=2, out_block_w=2, per_core_m=4,
        per_core_n=2,
    )  # fmt: skip
    matmul = op(problem(32, 4, 16), config)
    result = matmul_circular_buffers(
        matmul, source="x", in_memory=DRAM_MEMORY_CONFIG, output="y", out_sharded=out_sharded
    )
    assert [(buffer.size_bytes, buffer.view_of) for buffer in result if buffer.name == "out"] == [out]


sides = st.integers(1, 300)
formats = st.sampled_from([B16, B8, F32])
problems = st.builds(problem, sides, st.integers(1, 64), sides, formats, formats, formats)


@given(product=problems, in_dram=st.booleans(), l1_bytes=st.integers(100_000, 1_400_000))
def test_every_output_tile_has_a_core(product, in_dram, l1_bytes):
    config = interleaved_config(product, GRID, in_dram=in_dram, l1_bytes=l1_bytes)
    cores = program_cores(op(product, config), DRAM_MEMORY_CONFIG)
    assert GRID.cols > max(core.x for core in cores.cores())
    assert GRID.rows > max(core.y for core in cores.cores())
    assert op(product, config).k_blocks * config.in0_block_w == product.k_tiles
    if config.program is MatmulProgram.SINGLE_TILES:
        assert cores.num_cores() == min(64, product.m_tiles * product.n_tiles)
        return
    assert cores.num_cores() * config.per_core_m * config.per_core_n >= product.m_tiles * product.n_tiles
    assert config.per_core_m % config.out_block_h == 0
    assert config.per_core_n % config.out_block_w == 0
