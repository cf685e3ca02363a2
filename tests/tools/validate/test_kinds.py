"""Rows of each kind become the programs that were measured."""

import pytest

from device.spec.device_spec import load_spec
from ops.launch import DispatchCosts
from ops.programs.conv2d.partition import BLOCK, HEIGHT
from ops.programs.matmul.op import MatmulProgram, Place
from tools.validate.conv import predict_conv, predict_halo
from tools.validate.dispatch import launches, predict_dispatch, predict_transfers, read_transfers
from tools.validate.gemm import gemm_measured_cycles, predict_gemm
from tools.validate.layout_ops import operation, predict_layout_op
from tools.validate.prediction import OF_2025, NotPredictedError, device_spec
from tools.validate.rows import MEASURED, read_rows

CONV, HALO, GEMM, MOVED, NOC = (
    read_rows(MEASURED / f"{name}.csv") for name in ("conv", "halo", "gemm", "layout_ops", "dram_noc")
)
COUNTED = [row for row in CONV if row["quantity"] == "DEVICE KERNEL DURATION" and "helper" not in row["config"]]
COUNTED = [row for row in COUNTED if row["in_c"] and row["k_h"]]


def conv(**facts):
    return next(row for row in COUNTED if all(row[name] == value for name, value in facts.items()))


def test_plans_have_the_cores_and_blocks_that_were_measured():
    """The planner is right about every row: cores, tiles of a core, blocks and sub-blocks."""
    for row in COUNTED:
        layout = predict_conv(row).program.layout
        blocks, shards = layout.blocks, layout.shards
        high = blocks.act_h_tiles if "act_block_h_override" in row["notes"] else shards.out_row_tiles
        planned = (high, shards.out_col_tiles, blocks.subblock_h_tiles, blocks.subblock_w_tiles)
        names = ("per_core_m_tiles", "per_core_n_tiles", "subblk_h", "subblk_w")
        assert planned == tuple(int(row[name]) for name in names), row
        if row["act_block_w_tiles"]:
            measured = tuple(int(row[name]) for name in ("act_block_h_tiles", "act_block_w_tiles"))
            assert (blocks.act_h_tiles, blocks.act_w_tiles) == measured, row


GEMM_ROW = {
    "device": "N150", "arch": "wormhole_b0", "clock_mhz": "1000", "cores": "64", "grid": "8x8", "op": "ttnn.matmul",
    "M": "2048", "K": "3072", "N": "3072", "batch": "1", "dtype_in0": "bf16", "dtype_in1": "bf16", "dtype_out": "bf16",
    "fidelity": "HiFi2", "fp32_acc": "", "packer_l1_acc": "", "memory": "L1,DRAM->L1",
    "config": "Manually Tuned Configurations;use_trace=False;in0_sharded=True;out_sharded=True",
    "quantity": "device based utilization", "value": "64.0", "notes": "",
}  # fmt: skip
PROFILED = GEMM_ROW | {
    "quantity": "DEVICE KERNEL DURATION", "op": "Matmul", "value": "54000", "config": "std::nullopt",
    "memory": "DRAM_INTERLEAVED,DRAM_INTERLEAVED->L1_INTERLEAVED",
}  # fmt: skip
NAMED = (
    "MatmulMultiCoreReuseMultiCast1DProgramConfig(compute_with_storage_grid_size=(x=8;y=8);in0_block_w=4;"
    "out_subblock_h=1;out_subblock_w=4;out_block_h=3;out_block_w=16;per_core_M=3;per_core_N=16;mcast_in0=0;"
    "gather_in0=0;hop_cores={})"
)
SINGLE = GEMM_ROW | {
    "device": "wormhole_b0", "quantity": "kernel duration", "grid": "1x1", "cores": "1", "value": "346350",
    "op": "single-core sharded matmul micro-benchmark", "M": "512", "K": "2048", "N": "512",
    "config": "matmul_block=1;num_blocks=8 of K=256;out subblock 4x2",
}  # fmt: skip
DISPATCH_ROW = {
    "device": "Wormhole", "arch": "wormhole_b0", "clock_mhz": "1000.0", "kind": "CI golden", "value": "2.5",
    "quantity": "time per program iteration", "unit": "us", "size_bytes": "1024", "test": "brisc_only_trace",
}  # fmt: skip
NOC_ROW = next(row for row in NOC if row["mechanism"] == "unicast read") | {
    "arch": "blackhole", "num_transactions": "16", "transaction_bytes": "64", "same_axis": "false",
}  # fmt: skip
RESHAPE = next(row for row in MOVED if operation(row) == "Reshape" and row["in_shape"] == "1x1x25312x256")
SHARDED_PROFILE = {"memory": "L1_HEIGHT_SHARDED,DRAM_INTERLEAVED->L1_HEIGHT_SHARDED"}


@pytest.mark.parametrize(
    ("predict", "row", "reason"),
    [
        (predict_conv, next(row for row in CONV if "kernel=helper_sbm" in row["config"]), "helper_sbm is a proposal"),
        (predict_conv, next(row for row in CONV if not row["in_c"] or not row["k_h"]), "gives no full shape"),
        (predict_conv, conv(device="N150") | {"device": "Grayskull"}, r"does not say which device \(Grayskull\)"),
        (predict_halo, next(row for row in HALO if not row["cores_nhw"]), "gives no shards"),
        (predict_gemm, GEMM_ROW | {"quantity": "host wall time per op (avg)"}, "no kernel time"),
        (predict_gemm, GEMM_ROW | {"device": ""}, "does not say which device"),
        (predict_gemm, GEMM_ROW | {"quantity": "duration (op runtime training label)"}, "formats and fidelity"),
        (predict_gemm, PROFILED | {"op": "MinimalMatmulOp"}, "MinimalMatmulOp: no program"),
        (predict_gemm, PROFILED | SHARDED_PROFILE, "sharded matmul is not said"),
        (predict_gemm, GEMM_ROW | {"M": "768"}, "no 3 x 12 x 12 tiles a core"),
        (predict_layout_op, MOVED[0] | {"op": "TransposeDeviceOperation"}, "no operation of a convolution"),
        (predict_layout_op, RESHAPE | {"out_shape": "1x1x64x96"}, "shapes do not fit each other"),
        (predict_dispatch, DISPATCH_ROW | {"kind": "measured (issue report)"}, "no time from program to program"),
        (predict_transfers, NOC_ROW | {"op": "link/endpoint capacity"}, "how long one core waits"),
        (predict_transfers, NOC_ROW | {"mechanism": "atomic"}, "atomic is no transfer of the model"),
    ],
)
def test_a_row_that_says_too_little_is_refused_with_the_reason(predict, row, reason):
    with pytest.raises(NotPredictedError, match=reason):
        predict(row)


def test_what_a_convolution_s_row_does_not_say_follows_from_its_source():
    older = predict_conv(conv(device="Blackhole P100"))
    assert older.spec == device_spec(older.row).replace(release=OF_2025)
    assert predict_conv(conv(device="P100A", in_c="128", batch="20")).program.options.weights_double_buffer
    assert not predict_conv(conv(device="P100A", batch="1", shard="HS")).program.options.weights_double_buffer
    block = conv(device="Blackhole P100", shard="BS")
    config = predict_conv(block).program.layout.config
    assert (config.scheme, config.nhw_cores) == (BLOCK, int(block["cores_nhw"]))
    assert predict_conv(conv(device="N150", shard="HS")).program.layout.scheme is HEIGHT


def test_halos_are_rebuilt_stick_by_stick():
    rows = [row for row in HALO if row["max_out_nsticks_per_core"]]
    assert len(rows) > 100
    assert all(predict_halo(row).program.ranges.max_sticks == int(row["max_out_nsticks_per_core"]) for row in rows)


def test_halos_of_older_kernels_are_told_from_those_of_today():
    """Filling 7x7 windows stick by stick takes 39.6 us of one processor; today's kernels share the work."""
    row = read_rows(MEASURED / "halo_segformer.csv")[0]
    older = predict_halo(row)
    assert (older.evidence[0], older.later.evidence[0]) == ("Halo of rows by task", "Halo of rows")
    assert older.later.cycles() < 0.4 * older.measured_cycles < older.cycles_on(older.spec)[0]
    assert predict_halo(next(row for row in HALO if row["max_out_nsticks_per_core"])).later is None


def test_padded_rows_of_a_reshape_follow_from_both_sides():
    """159 images of 159 x 159, and 25281 rows, are the only ones that fit 25312 and 159 x 160 padded rows."""
    movement = predict_layout_op(RESHAPE).program
    # 159 images of five by eight tiles on 20 cores: 318 each, each with 64 pieces but the last of an image.
    assert movement.writes.core_pages == 159 * 5 * 8 // 20
    assert 60 < movement.segments / movement.writes.core_pages <= 64


def test_a_tuned_matmul_is_the_benchmark_s_program():
    gemm = predict_gemm(GEMM_ROW).program
    config = gemm.op.config
    # 8 x 12 x 12 tiles a core; two K blocks of what a core holds; sub-blocks of a sharded output have one row.
    assert (config.per_core_m, config.per_core_n, config.in0_block_w) == (8, 12, 6)
    assert (config.out_subblock_h, config.out_subblock_w) == (1, 6)
    assert (gemm.places.first, gemm.places.second, gemm.places.output) == (Place.OWN, Place.DRAM, Place.OWN)
    assert gemm_measured_cycles(GEMM_ROW) == pytest.approx(64 * 96 * 96 * 32 / 64 / 0.64)
    notes = "implied device cycles"
    row = next(row for row in GEMM if notes in row["notes"] and "Tuned" in row["config"])
    assert predict_gemm(row).measured_cycles == pytest.approx(int(row["notes"].rpartition(" ")[2]), rel=1e-3)


def test_other_matmuls_say_their_program_or_have_it_planned():
    box = predict_gemm(GEMM_ROW | {"config": "Out of Box Results;use_trace=True", "memory": "DRAM,DRAM->DRAM"})
    planned, named, single = map(predict_gemm, (PROFILED, PROFILED | {"config": NAMED}, SINGLE))
    assert [row.program.whole for row in (box, planned, named, single)] == [False, True, True, True]
    assert [row.fitted for row in (predict_gemm(GEMM_ROW), box, planned, single)] == [True, False, False, True]
    assert (box.architecture, predict_gemm(GEMM_ROW).architecture) == ("wormhole_b0, out of box", "wormhole_b0")
    assert box.program.op.config.program is MatmulProgram.MCAST_2D
    assert (box.program.places.first, planned.program.places.output) == (Place.DRAM, Place.L1)
    config = named.program.op.config
    assert (config.program, config.out_block_h, config.out_subblock_w) == (MatmulProgram.MCAST_IN1, 3, 4)
    assert gemm_measured_cycles(PROFILED | {"clock_mhz": "1350"}) == pytest.approx(72_900)
    assert (single.program.op.config.in0_block_w, single.program.op.config.out_subblock_h) == (8, 4)
    assert single.program.places.second is Place.OWN
    assert not predict_gemm(SINGLE | {"notes": "values look copied"}).counted


@pytest.mark.parametrize(
    ("test", "facts"),
    [
        ("brisc_only_trace", {"cores": 1, "processors": 1, "binaries": 1, "binary_bytes": 1024}),
        ("brisc_trisc_only_trace", {"cores": 1, "processors": 4, "binaries": 4}),
        ("trisc_only_trace", {"cores": 1, "processors": 3, "binaries": 3}),
        ("all_processors_all_cores_trace", {"cores": 56, "processors": 5, "binaries": 5}),
        ("one_processors_all_cores_1_rta", {"cores": 56, "processors": 1, "binaries": 1}),
        ("sems_all_cores_1_processor_trace", {"cores": 56, "processors": 1, "binaries": 1}),
        ("kernel_groups_trace", {"cores": 56, "processors": 5, "binaries": 40}),
        ("kernel_groups_5_shadow", {"cores": 56, "processors": 5, "binaries": 35}),
        ("eth_dispatch", {"cores": 1, "processors": 1, "binaries": 1}),
        ("all_processors_all_cores_32cb_8g", {"circular_buffers": 32, "groups": 8}),
        ("kernel_groups_1_cb_trace", {"circular_buffers": 1, "buffer_groups": 1}),
        ("kernel_groups_128_rta_trace", {"arguments": 128}),
        ("all_processors_1_core_128_crta", {"common_arguments": 128}),
        ("all_processors_all_cores_1cb_1sem", {"semaphores": 1}),
        ("maxed_config_params_trace", {"arguments": 128, "circular_buffers": 32, "semaphores": 4, "groups": 1}),
        ("256_bytes_brisc_only_all_processors_trace", {"binary_bytes": 256}),
    ],
)
def test_the_program_that_a_test_launches(test, facts):
    program = launches(DISPATCH_ROW | {"test": test})[1][0].program
    assert {name: getattr(program, name) for name in facts} == facts


def test_kernels_that_run_for_some_cycles_and_an_iteration():
    def kernels(test, size="1024"):
        return [launch.kernel_cycles for launch in launches(DISPATCH_ROW | {"test": test, "size_bytes": size})[1]]

    assert kernels("brisc_only_trace") == [0]
    assert kernels("10000_kernel_all_cores_all_processors_32_cbs_trace") == [10_000]
    assert kernels("256_bytes_brisc_only_all_processors_trace", "3000") == [3000]
    assert kernels("kernel_groups_4_shadow") == [40_000, 0, 0, 0, 0]
    assert launches(DISPATCH_ROW | {"test": "eth_dispatch"})[0].name == "wormhole_n300"
    row = predict_dispatch(DISPATCH_ROW)
    costs = row.spec.costs_of(DispatchCosts)
    assert row.measured_ns == 2500
    # Empty kernels: from program to program the prefetching core is busy.
    assert row.predicted_ns == pytest.approx(costs.fetch_cycles + 1024 / costs.binary_bytes_per_cycle)


MULTICAST = {
    "mechanism": "multicast write", "pattern": "L1 one-to-all multicast", "subordinates": "130", "linked": "true",
    "loopback": "true",
}  # fmt: skip
COLUMN = MULTICAST | {"linked": "false", "pattern": "L1 one-to-column", "subordinates": "10"}
FAR = 119 + 29 * 9
BANK = {"mechanism": "DRAM read", "pattern": "single bank (pattern 0)", "transaction_bytes": "8192"}


@pytest.mark.parametrize(
    ("changed", "cycles"),
    [
        ({}, FAR + 15 * 35 + 64 / (64 * 0.952)),
        ({"same_axis": "true"}, 119 + 12 * 9 + 15 * 35 + 64 / (64 * 0.952)),
        ({"transaction_bytes": "8192"}, FAR + 16 * 8192 / (64 * 0.952)),
        ({"mechanism": "unicast write"}, FAR + 15 * 23 + 64 / (64 * 0.952)),
        (BANK, FAR + 78 * 1.35 + 16 * 8192 / (64e9 * 0.5 / 1.35e9)),
        (MULTICAST, FAR + 119 + 29 * 9 / 2 + 16 * (130 * 1.03 + 64 / (64 * 0.952))),
        (COLUMN, 119 + 12 * 9 + 16 * (119 + 6 * 9) + 15 * 23 + 10 * 1.03 + 64 / (64 * 0.952)),
    ],
)
def test_transfers_by_hand(changed, cycles):
    assert read_transfers(NOC_ROW | changed, load_spec("blackhole_p150"))() == pytest.approx(cycles, rel=1e-12)
