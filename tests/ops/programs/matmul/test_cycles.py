"""Cycles of matmuls: tile products, fidelities, operands on their way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16
from device.spec.device_spec import GridSpec, load_spec
from device.time.stages import Stage
from ops.programs.matmul.config import MatmulConfig, MatmulProblem, MatmulProgram, MatmulWork
from ops.programs.matmul.costs import MatmulCosts
from ops.programs.matmul.cycles import matmul_cycles


def work(
    *, m=32, k=32, n=32, grid=(8, 8), fidelity_phases=2, data_format=BFLOAT8_B, program=MatmulProgram.MCAST_2D, blocks=1
):
    cols, rows = grid
    down, across = {
        MatmulProgram.MCAST_2D: (rows, cols),
        MatmulProgram.MCAST_IN0: (1, rows * cols),
        MatmulProgram.MCAST_IN1: (rows * cols, 1),
        MatmulProgram.SINGLE_TILES: (m, n),
    }[program]
    per_core_m, per_core_n = -(-m // down), -(-n // across)
    problem = MatmulProblem(
        m_tiles=m, k_tiles=k, n_tiles=n, in_format=data_format, weight_format=data_format, out_format=data_format,
        bias=False, fp32_dest=False, packer_l1_acc=True,
    )  # fmt: skip
    config = MatmulConfig(
        program=program, grid=GridSpec(cols=cols, rows=rows), in0_block_w=4,
        out_block_h=-(-per_core_m // blocks), out_block_w=per_core_n, per_core_m=per_core_m, per_core_n=per_core_n,
    )  # fmt: skip
    return MatmulWork(problem=problem, config=config, fidelity_phases=fidelity_phases, out_channels=32 * n)


def cycles(one, spec, **changes):
    return matmul_cycles(one, spec, **{"in_sharded": False, "out_sharded": False} | changes)


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


@given(specs, kinds)
def test_less_to_work_with_is_never_faster(spec, kind):
    found = cycles(work(**kind), spec)
    alone = cycles(work(**kind), spec, contention=False)
    least = found.cycles * (1 - 1e-9)  # sums of the same terms round differently
    assert alone.cycles * (1 - 1e-9) <= found.cycles
    assert found.contention_cycles == pytest.approx(found.cycles - alone.cycles, abs=1e-6)
    assert cycles(work(**kind), spec.replace(dram_banks=1)).cycles >= least
    assert cycles(work(**kind), spec.replace(noc_link_bytes_per_cycle=5.0)).cycles >= least
    assert cycles(work(**kind, grid=(4, 8)), spec).cycles >= least
    assert cycles(work(**kind, blocks=2), spec).dram_read_bytes >= found.dram_read_bytes
    assert cycles(work(**kind), spec, in_sharded=True, out_sharded=True).cycles * (1 - 1e-9) <= found.cycles
    assert found.issued_flops >= found.useful_flops


@given(specs, sizes)
def test_a_tile_product_costs_16_cycles_a_phase(spec, k):
    fast = spec.replace(matmul_costs_unpack_bytes_per_cycle=1e9)
    stages = [
        {
            stage.stage: stage.busy_cycles
            for stage in cycles(work(k=k, fidelity_phases=fidelity_phases), fast).slowest.stages
        }
        for fidelity_phases in (1, 2, 3, 4)
    ]
    products = 4 * 4 * k
    more = spec.costs_of(MatmulCosts).product_cycles
    assert [one[Stage.MATH] / products - more for one in stages] == pytest.approx([16, 32, 48, 64])


def test_large_tiles_are_bound_by_unpacking_where_phases_are_few():
    spec = load_spec("wormhole_n150")
    large = {"m": 256, "k": 256, "n": 256, "data_format": BFLOAT16}
    assert cycles(work(**large, fidelity_phases=2), spec).bound_by is Stage.UNPACK
    assert cycles(work(**large, fidelity_phases=4), spec).bound_by is Stage.MATH


def test_bytes_are_those_of_the_operands():
    found = cycles(work(m=8, k=16, n=24), load_spec("wormhole_n150"))
    assert found.dram_read_bytes == (8 * 16 + 16 * 24) * BFLOAT8_B.tile_bytes
    assert found.dram_written_bytes == 8 * 24 * BFLOAT8_B.tile_bytes
    assert found.useful_flops == 2 * 8 * 16 * 24 * 32**3
