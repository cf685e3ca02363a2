"""Rows of matmuls: which program each of them is."""

import pytest

from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16
from device.spec.parts import GridSpec
from ops.programs.matmul.op import MatmulProblem, MatmulProgram, Place
from tools.validate.gemm import benchmark_config, gemm_measured_cycles, kind_of, predict_gemm, read_gemm_row
from tools.validate.prediction import NotPredictedError

ROW = {
    "device": "N150", "arch": "wormhole_b0", "clock_mhz": "1000", "cores": "64", "grid": "8x8", "op": "ttnn.matmul",
    "M": "2048", "K": "3072", "N": "3072", "batch": "1", "dtype_in0": "bf16", "dtype_in1": "bf16", "dtype_out": "bf16",
    "fidelity": "HiFi2", "fp32_acc": "", "packer_l1_acc": "", "memory": "L1,DRAM->L1",
    "config": "Manually Tuned Configurations;use_trace=False;in0_sharded=True;out_sharded=True",
    "quantity": "device based utilization", "value": "64.0", "notes": "",
}  # fmt: skip
PROFILED = ROW | {
    "quantity": "DEVICE KERNEL DURATION",
    "op": "Matmul",
    "value": "54000",
    "memory": "DRAM_INTERLEAVED,DRAM_INTERLEAVED->L1_INTERLEAVED",
    "config": "std::nullopt",
}
NAMED = (
    "MatmulMultiCoreReuseMultiCast1DProgramConfig(compute_with_storage_grid_size=(x=8;y=8);in0_block_w=4;"
    "out_subblock_h=1;out_subblock_w=4;out_block_h=3;out_block_w=16;per_core_M=3;per_core_N=16;mcast_in0=0;"
    "gather_in0=0;hop_cores={})"
)
SINGLE = ROW | {
    "device": "wormhole_b0", "quantity": "kernel duration", "grid": "1x1", "cores": "1", "value": "346350",
    "op": "single-core sharded matmul micro-benchmark", "M": "512", "K": "2048", "N": "512",
    "config": "matmul_block=1;num_blocks=8 of K=256;out subblock 4x2",
}  # fmt: skip


def test_a_tuned_row_is_the_benchmark_s_program():
    gemm = read_gemm_row(ROW)
    config = gemm.op.config
    # 8 x 12 x 12 tiles a core; two K blocks of what a core holds; sub-blocks of a sharded output have one row.
    assert (config.per_core_m, config.per_core_n, config.in0_block_w) == (8, 12, 6)
    assert (config.out_subblock_h, config.out_subblock_w) == (1, 6)
    assert (gemm.places.first, gemm.places.second, gemm.places.output) == (Place.OWN, Place.DRAM, Place.OWN)
    assert gemm_measured_cycles(ROW) == pytest.approx(64 * 96 * 96 * 32 / 64 / 0.64)
    assert predict_gemm(ROW).architecture == "wormhole_b0"


@pytest.mark.parametrize(
    ("data_format", "tiles", "expected"),
    [
        (BFLOAT16, (128, 128, 128), (16, 8, 8, 4, 2)),  # K of a core in one block, halves of the output each way
        (BFLOAT8_B, (256, 256, 256), (16, 8, 8, 4, 2)),
        (BFLOAT4_B, (256, 256, 256), (16, 16, 16, 4, 2)),
        (BFLOAT8_B, (104, 80, 80), (10, 13, 10, 1, 5)),
    ],
)
def test_how_the_benchmark_cuts(data_format, tiles, expected):
    m, k, n = tiles
    problem = MatmulProblem(
        m_tiles=m, k_tiles=k, n_tiles=n, in_format=data_format, weight_format=data_format, out_format=data_format,
        bias=False, fp32_dest=False, packer_l1_acc=True,
    )  # fmt: skip
    config = benchmark_config(problem, GridSpec(cols=8, rows=8), sharded=False)
    found = (config.in0_block_w, config.out_block_h, config.out_block_w, config.out_subblock_h, config.out_subblock_w)
    assert found == expected
    assert config.program is MatmulProgram.MCAST_2D


def test_shapes_that_the_benchmark_has_not():
    with pytest.raises(NotPredictedError, match="no 3 x 12 x 12 tiles a core"):
        read_gemm_row(ROW | {"M": "768"})


def test_a_row_out_of_the_box_is_planned_as_the_library_plans():
    row = ROW | {"config": "Out of Box Results;use_trace=True", "memory": "DRAM,DRAM->DRAM"}
    gemm = read_gemm_row(row)
    assert gemm.op.config.program is MatmulProgram.MCAST_2D
    assert gemm.places.first is Place.DRAM
    assert not gemm.whole
    assert predict_gemm(row).architecture == "wormhole_b0, out of box"


def test_a_profiled_row_says_its_program_or_has_it_planned():
    planned, named = read_gemm_row(PROFILED), read_gemm_row(PROFILED | {"config": NAMED})
    assert planned.whole
    assert named.whole
    assert planned.places.output is Place.L1
    assert named.op.config.program is MatmulProgram.MCAST_IN1
    assert (named.op.config.out_block_h, named.op.config.out_subblock_w) == (3, 4)
    assert gemm_measured_cycles(PROFILED | {"clock_mhz": "1350"}) == pytest.approx(72_900)
    with pytest.raises(NotPredictedError, match="sharded matmul is not said"):
        read_gemm_row(PROFILED | {"memory": "L1_HEIGHT_SHARDED,DRAM_INTERLEAVED->L1_HEIGHT_SHARDED"})


def test_a_single_core_holds_everything():
    gemm = read_gemm_row(SINGLE)
    assert (gemm.op.config.in0_block_w, gemm.op.config.out_subblock_h) == (8, 4)
    assert gemm.places.second is Place.OWN
    assert predict_gemm(SINGLE).counted
    assert not predict_gemm(SINGLE | {"notes": "values look copied"}).counted


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"quantity": "host wall time per op (avg)"}, "no kernel time"),
        ({"quantity": "duration (op runtime training label)"}, "formats and fidelity"),
        ({"quantity": "DEVICE KERNEL DURATION", "op": "MinimalMatmulOp"}, "MinimalMatmulOp: no program"),
    ],
)
def test_what_is_no_kernel_of_ours(changes, reason):
    with pytest.raises(NotPredictedError, match=reason):
        kind_of(ROW | changes)
