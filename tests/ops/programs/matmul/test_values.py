"""What a matmul program computes: small integers against the definition, and the order of roundings by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from device.matrix_unit.arithmetic import EXACT, FAST
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, quantize
from device.spec.device_spec import load_spec
from device.spec.parts import GridSpec
from ops.programs.matmul.model import matmul_values
from ops.programs.matmul.op import MatmulConfig, MatmulOp, MatmulProblem, MatmulProgram

SPEC = load_spec("wormhole_n150")
ARITHMETICS = {"fast": FAST, "exact": EXACT}


def work_of(k=2, n=1, depth=1, out=BFLOAT16, *, bias=False, fp32_dest=False, l1_acc=False, activation=None):
    problem = MatmulProblem(
        m_tiles=1, k_tiles=k, n_tiles=n, in_format=BFLOAT16, weight_format=BFLOAT16, out_format=out, bias=bias,
        fp32_dest=fp32_dest, packer_l1_acc=l1_acc,
    )  # fmt: skip
    config = MatmulConfig(program=MatmulProgram.MCAST_2D, grid=GridSpec(cols=1, rows=1), in0_block_w=depth)
    return MatmulOp(problem=problem, config=config, fidelity_phases=4, out_channels=n * 32 - 5, activation=activation)


@pytest.mark.parametrize("name", ARITHMETICS)
@settings(max_examples=25)
@given(
    seed=st.integers(0, 1000), k=st.integers(1, 4), depth=st.integers(1, 4), bias=st.booleans(),
    fp32_dest=st.booleans(), l1_acc=st.booleans(), relu=st.booleans(),
)  # fmt: skip
def test_small_integers_are_exact(name, seed, k, depth, bias, fp32_dest, l1_acc, relu):
    rng = np.random.default_rng(seed)
    op = work_of(
        k=k * depth,
        n=2,
        depth=depth,
        bias=bias,
        fp32_dest=fp32_dest,
        l1_acc=l1_acc,
        activation=("relu", ()) if relu else None,
    )
    rows = np.zeros((37, k * depth * 32 - 9), np.float32)
    rows[np.arange(37), rng.integers(0, rows.shape[1], 37)] = rng.integers(-5, 6, 37)
    weights = rng.integers(-9, 10, (k * depth * 32, 64)).astype(np.float32)
    row = rng.integers(-9, 10, 64).astype(np.float32)
    got = matmul_values(
        op,
        quantize(rows, BFLOAT16),
        quantize(weights, BFLOAT16),
        quantize(row, BFLOAT16) if bias else None,
        SPEC,
        ARITHMETICS[name],
    )
    want = (rows @ weights[: rows.shape[1]] + row * bias)[:, :59]
    np.testing.assert_array_equal(got.astype(np.float32), np.maximum(want, 0) if relu else want)


def one_column(*values):
    """Rows of ones, and weights whose K tiles add up to these values."""
    weights = np.zeros((32 * len(values), 32), np.float32)
    weights[::32] = np.asarray(values, np.float32)[:, None]
    return quantize(np.ones((1, 32 * len(values)), np.float32), BFLOAT16), quantize(weights, BFLOAT16)


@pytest.mark.parametrize("bias", [False, True])
def test_a_wide_dst_keeps_its_sums_between_blocks(bias):
    """256 + 0.5 + 0.5 + 1: a bfloat16 between the blocks would lose all of it but the 256."""
    rows, weights = one_column(256, 0.5, 0.5, 1)
    row = quantize(np.zeros(32, np.float32), BFLOAT16) if bias else None
    wide = work_of(k=4, bias=bias, fp32_dest=True)
    narrow = work_of(k=4, bias=bias)
    assert matmul_values(wide, rows, weights, row, SPEC, EXACT)[0, 0] == 258
    assert matmul_values(narrow, rows, weights, row, SPEC, EXACT)[0, 0] != 257
    assert wide.partials_format == FLOAT32


def test_reloaded_float32_is_not_cut():
    """1 + 2**-12 needs more bits than an operand has, but passes from block to block; only a bias cuts it."""
    rows, weights = one_column(1, 2.0**-12, 0)
    op = work_of(k=3, out=FLOAT32, fp32_dest=True)
    assert matmul_values(op, rows, weights, None, SPEC, EXACT)[0, 0] == 1 + 2.0**-12
    biased = replace(op, problem=replace(op.problem, bias=True))
    zero = quantize(np.zeros(32, np.float32), BFLOAT16)
    assert matmul_values(biased, rows, weights, zero, SPEC, EXACT)[0, 0] == 1


@pytest.mark.parametrize(
    ("k", "asked", "effective"), [(1, True, False), (2, True, True), (3, True, True), (3, False, False)]
)
def test_accumulation_in_l1_from_two_blocks_on(k, asked, effective):
    op = work_of(k=k, out=BFLOAT8_B, l1_acc=asked)
    assert op.l1_accumulation is effective
    assert op.partials_format == (BFLOAT16 if effective else BFLOAT8_B)
