"""Cycles of matmuls: tile products, fidelities, operands on their way."""

from dataclasses import replace

from hypothesis import given, strategies as st

from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from device.spec.parts import GridSpec
from device.time.network import bandwidth
from ops.programs.matmul.cycles import matmul_cycles as cycles
from ops.programs.matmul.op import MatmulConfig, MatmulOp, MatmulProblem, MatmulProgram


def op(
    *, m=32, k=32, n=32, grid=(8, 8), fidelity_phases=2, data_format=BFLOAT8_B, program=MatmulProgram.MCAST_2D, blocks=1
):
    cols, rows = grid
    down, across = {
        MatmulProgram.MCAST_2D: (rows, cols),
        MatmulProgram.MCAST_IN0: (1, rows * cols),
        MatmulProgram.MCAST_IN1: (rows * cols, 1),
        MatmulProgram.SINGLE_TILES: (m, n),
        MatmulProgram.REUSE: (m, 1),
        MatmulProgram.DRAM_SHARDED: (1, rows * cols),
    }[program]
    per_core_m, per_core_n = -(-m // down), -(-n // across)
    problem = MatmulProblem(
        m_tiles=m, k_tiles=k, n_tiles=n, in_format=data_format, weight_format=data_format, out_format=data_format,
        bias=False, fp32_dest=False, packer_l1_acc=True,
    )  # fmt: skip
    config = MatmulConfig(
        program=program, grid=GridSpec(cols=cols, rows=rows), in0_block_w=4,
        banks=-(-n // per_core_n) if program is MatmulProgram.DRAM_SHARDED else 0,
        out_block_h=-(-per_core_m // blocks), out_block_w=per_core_n, per_core_m=per_core_m, per_core_n=per_core_n,
    )  # fmt: skip
    return MatmulOp(problem=problem, config=config, fidelity_phases=fidelity_phases, out_channels=32 * n)


specs = st.sampled_from(["wormhole_n150", "blackhole_p150"]).map(load_spec)
sizes = st.integers(1, 64)
kinds = st.fixed_dictionaries(
    {
        "m": sizes,
        "k": sizes,
        "n": sizes,
        "fidelity_phases": st.integers(1, 4),
        "data_format": st.sampled_from([BFLOAT16, BFLOAT8_B, BFLOAT4_B]),
        "program": st.sampled_from(MatmulProgram),
    }
)


BETTER = {
    "dram_banks": 24,
    "dram_access_ns": 10.0,
    "noc_flit_bytes": 128,
    "compute_phase_cycles": 8,
    "compute_unpack_bytes_per_cycle": 256.0,
    "compute_pack_bytes_per_cycle": 256.0,
    "transfer_costs_page_issue_cycles": 5.0,
    "transfer_costs_write_issue_cycles": 5.0,
    "compute_costs_subblock_cycles": 1.0,
    "compute_costs_matmul_call_cycles": 1.0,
    "matmul_costs_crossed_read_links": 8.0,
    "matmul_costs_crossed_write_links": 8.0,
}


@given(specs, kinds, st.integers(1, 4), st.sampled_from(list(BETTER)))
def test_a_better_machine_is_never_slower(spec, kind, blocks, figure):
    matmul = op(**kind, blocks=blocks)
    result, better = cycles(matmul, spec), cycles(matmul, spec.replace(**{figure: BETTER[figure]}))
    assert better.cycles <= result.cycles * (1 + 1e-9)
    math = result.issued_flops / matmul.cores / (2 * 32**3) * 16 * kind["fidelity_phases"]
    assert result.cycles >= math
    assert result.cycles >= (result.dram_read_bytes + result.dram_written_bytes) / bandwidth(spec)


def test_bytes_are_those_of_the_operands():
    result = cycles(op(m=8, k=16, n=24), load_spec("wormhole_n150"))
    assert result.dram_read_bytes == (8 * 16 + 16 * 24) * BFLOAT8_B.tile_bytes
    assert result.dram_written_bytes == 8 * 24 * BFLOAT8_B.tile_bytes
    assert result.useful_flops == 2 * 8 * 16 * 24 * 32**3


@given(specs, kinds, st.integers(2, 4))
def test_batches_follow_each_other(spec, kind, batches):
    matmul = op(**kind)
    several = replace(matmul, problem=replace(matmul.problem, batches=batches, second_batched=True))
    single, result = cycles(matmul, spec), cycles(several, spec)
    assert result.useful_flops == batches * single.useful_flops
    assert result.dram_written_bytes == batches * single.dram_written_bytes
    assert result.dram_read_bytes == batches * single.dram_read_bytes
    if kind["program"] not in (MatmulProgram.SINGLE_TILES, MatmulProgram.REUSE):  # which find idle cores
        assert result.issued_flops == batches * single.issued_flops
        shared = cycles(replace(several, problem=replace(several.problem, first_batched=False)), spec)
        assert shared.dram_read_bytes < result.dram_read_bytes
    assert result.cycles >= single.cycles  # single tiles may find idle cores
