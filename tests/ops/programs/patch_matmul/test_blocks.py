import pytest
from hypothesis import given, strategies as st

from device.numbers.formats import BFLOAT16, FLOAT32
from device.spec.parts import GridSpec
from ops.programs.matmul.buffers import buffers_bytes
from ops.programs.matmul.op import MatmulProblem, MatmulProgram
from ops.programs.patch_matmul.plan import gathering_config

GRID = GridSpec(cols=8, rows=8)
L1_BYTES = 500_000


def problem(m, k, n):
    return MatmulProblem(
        m_tiles=m, k_tiles=k, n_tiles=n, in_format=BFLOAT16, weight_format=BFLOAT16, out_format=FLOAT32, bias=False,
        fp32_dest=True, packer_l1_acc=False,
    )  # fmt: skip


@given(st.integers(1, 3000), st.integers(1, 300), st.integers(1, 100), st.booleans())
def test_blocks_divide_shares_and_fit(m, k, n, rows):
    found = gathering_config(problem(m, k, n), GRID, l1_bytes=L1_BYTES, rows=rows)
    assert found.per_core_m * GRID.cores >= m or found.program is not MatmulProgram.MCAST_IN1
    assert found.per_core_m % found.out_block_h == 0
    assert found.per_core_n % found.out_block_w == 0
    assert found.out_block_h % found.out_subblock_h == 0
    assert found.out_block_w % found.out_subblock_w == 0
    blocks = (found.out_block_h, found.out_block_w, found.in0_block_w)
    assert buffers_bytes(problem(m, k, n), *blocks) < L1_BYTES or blocks[:2] == (1, 1)


@pytest.mark.parametrize(("rows", "program"), [(True, MatmulProgram.MCAST_IN1), (False, MatmulProgram.MCAST_IN0)])
def test_every_core_gathers_for_itself(rows, program):
    assert gathering_config(problem(64, 8, 64), GRID, l1_bytes=L1_BYTES, rows=rows).program is program


def test_a_short_side_is_not_split_alone():
    assert gathering_config(problem(8, 8, 64), GRID, l1_bytes=L1_BYTES, rows=True).program is MatmulProgram.MCAST_2D


def test_what_is_gathered_is_gathered_once_if_the_other_side_fits():
    found = gathering_config(problem(1000, 8, 16), GRID, l1_bytes=L1_BYTES, rows=True)
    assert found.out_block_w == found.per_core_n == 16
