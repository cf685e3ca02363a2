"""Rows of operations are asked as the public call that makes them."""

import pytest

import ttsim as ttnn
from device.memory.memory_config import TensorMemoryLayout
from device.spec.device_spec import load_spec
from tools.validate.asked import LATE_CYCLES, predict_matmul, predict_operation
from tools.validate.calls import CALLS
from tools.validate.operands import Asked
from tools.validate.prediction import NotPredictedError, device_spec
from tools.validate.rows import MEASURED, read_rows, validator_name

ROWS = read_rows(MEASURED / "ops.csv")
BLANK = dict.fromkeys(ROWS[0], "") | {
    "device": "N150", "arch": "wormhole_b0", "clock_mhz": "1000", "cores": "64", "op": "Unary", "value": "5000",
    "unit": "ns", "in_shape": "1x1x4096x256", "out_shape": "1x1x4096x256", "in_layout": "TILE", "out_layout": "TILE",
    "in_mem": "DRAM_INTERLEAVED", "out_mem": "DRAM_INTERLEAVED", "dtype_in0": "bf16", "config": "UnaryOpType::RELU",
}  # fmt: skip
SHARDED = {"in_mem": "L1_HEIGHT_SHARDED", "out_mem": "L1_HEIGHT_SHARDED"}


def asked(**changes):
    return Asked(BLANK | changes, load_spec("wormhole_n150"), "bf16")


def test_a_row_is_asked_as_its_call_and_names_its_evidence():
    prediction = predict_operation(BLANK)
    assert prediction.evidence == ("Unary", "DRAM")
    with ttnn.open_device(spec=load_spec("wormhole_n150"), values="off", l1_small_size=16384) as device:
        tensor = ttnn.TensorDescription((1, 1, 4096, 256), ttnn.bfloat16, ttnn.TILE_LAYOUT, ttnn.DRAM_MEMORY_CONFIG)
        (operation,) = ttnn.estimate_cycles(ttnn.relu, tensor, device=device).operations
    assert round(prediction.cycles_on(prediction.spec)[0]) == operation.cycles
    assert predict_operation(BLANK | SHARDED).evidence == ("Unary", "shards")


def test_several_programs_of_one_class_are_evidence_of_that_class_and_of_two_classes_of_none():
    """Repeats along two axes run two programs of one kind; a ragged tensor is untilized and repeated."""
    row = {"op": "ttnn.repeat (generated path)", "in_layout": "ROW_MAJOR", "config": "repeat_dims=[1; 2; 3; 1]"}
    row |= {"in_shape": "1x2x20x40"}
    assert predict_operation(BLANK | row).evidence == ("RepeatCodegen", "DRAM")
    mixed = predict_operation(BLANK | row | {"in_layout": "TILE"})
    assert mixed.evidence == ("", "")
    with pytest.raises(NotPredictedError, match="two axes by one program"):
        predict_operation(BLANK | row | {"config": "repeat_dims=[2; 2; 1; 1]"})


def test_cards_of_2026_have_the_cores_that_their_firmware_shows():
    thread = {"device": "P150", "source_path": "PR #50187 comment 2"}
    grids = [device_spec(BLANK | changes).grid for changes in (thread, thread | {"source_path": "GEMM_FLOPS.md"})]
    assert [(grid.cols, grid.rows) for grid in grids] == [(11, 10), (13, 10)]


def test_compute_threads_of_the_run_of_early_2025_end_late():
    """A function computes; a tensor that is sharded in its format moves alone. Reports do not add it, nor do bars."""
    run = {"source_path": "ops_perf_results_2025_02_16_18_11_10.csv"}
    sharding = {"op": "InterleavedToSharded", "config": "", "dtype_out": "bf16", "out_mem": "L1_HEIGHT_SHARDED"}
    for changes, late in (({}, LATE_CYCLES), (sharding, 0)):
        now, then = (predict_operation(BLANK | changes | path) for path in ({}, run))
        assert then.cycles_on(then.spec)[0] - now.cycles_on(now.spec)[0] == pytest.approx(late)
        today = then.later
        barred = (today.evidence, today.cycles()) if late else (then.evidence, then.cycles_on(then.spec)[0])
        assert barred == (now.evidence, now.cycles_on(now.spec)[0])


def test_every_call_of_the_table_has_a_row_that_it_predicts():
    names = set()
    for row in ROWS:
        name = row["op"].removeprefix("ttnn.").partition(" ")[0]
        if name not in names:
            try:
                predict_operation(row)
            except NotPredictedError:
                continue
            names.add(name)
    assert names | {"ShardedToInterleaved", "Untilize"} == set(CALLS)


def test_shards_that_no_row_states_are_even_ones_on_the_cores_of_the_program():
    """4,096 rows on 64 cores are two tiles each; 4,096x256 in blocks on 16 cores are 8 down, 2 across."""
    height = asked(**SHARDED).place
    assert height.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    assert (tuple(height.shard_spec.shape), height.shard_spec.grid.num_cores()) == ((64, 256), 64)
    block = asked(in_mem="L1_BLOCK_SHARDED", out_mem="L1_BLOCK_SHARDED", cores="16").place
    assert (tuple(block.shard_spec.shape), block.shard_spec.grid.num_cores()) == ((512, 128), 16)
    stated = asked(**SHARDED, out_shard="128x256 ROW_MAJOR on [(x=0;y=0) - (x=3;y=7)]").place
    assert (tuple(stated.shard_spec.shape), stated.shard_spec.grid.num_cores()) == ((128, 256), 32)


def test_of_a_pair_of_programs_the_one_that_runs_is_predicted():
    """Whole tiles are untilized by the generated program of this release, ragged ones by the older one."""
    row = BLANK | {"op": "ttnn.untilize (generated path)"}
    assert predict_operation(row).evidence[0] == "UntilizeCodegen"
    with pytest.raises(NotPredictedError, match="the program that this release does not run"):
        predict_operation(row | {"op": "ttnn.untilize (native path)"})
    ragged = {"op": "ttnn.untilize (native path)", "in_shape": "1x1x100x200"}
    assert predict_operation(row | ragged).evidence[0] == "UntilizeWithUnpadding"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"op": "Sort"}, "no call of its own makes it"),
        ({"config": ""}, "does not say what was done"),
        ({"config": "UnaryOpType::RELU;UnaryOpType::EXP"}, "a chain of functions"),
        ({"in_mem": "L1_BLOCK_SHARDED", "cores": ""}, "does not state its shards"),
        ({"in_mem": "DRAM_BLOCK_SHARDED"}, "shards in DRAM"),
        ({"op": "BinaryNg", "config": "BinaryOpType::WHERE_TST"}, "no function of this library"),
        ({"in_shape": ""}, "no shape or dtype"),
        ({"op": "Slice", "config": "slice_start=Shape([0; 0; 0; 0]);slice_end=Shape([1; 1; 9999; 4])"}, "does not fit"),
    ],
)
def test_what_a_row_does_not_say_is_not_predicted(changes, message):
    with pytest.raises(NotPredictedError, match=message):
        predict_operation(BLANK | changes)


def test_a_matmul_without_a_program_config_is_the_librarys():
    row = read_rows(MEASURED / "matmul_segformer.csv")[0]
    prediction = predict_matmul(row)
    assert prediction.evidence == ("Matmul, planned by the library", "shards")
    assert abs(prediction.error) < 0.2


def test_the_name_of_a_file_says_whose_rows_it_has(tmp_path):
    names = {"layout_ops": "layout_ops", "ops_of_a_card": "ops", "matmul_segformer": "matmul", "operations": ""}
    assert {name: validator_name(tmp_path / f"{name}.csv") for name in names} == names
