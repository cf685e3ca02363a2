"""Rows of conv.csv, understood and predicted."""

import csv
from pathlib import Path

import pytest

from ops.programs.conv2d.parallel_config import BLOCK, HEIGHT
from tools.validate.conv import predict_conv, read_conv_row
from tools.validate.prediction import OF_2025, NotPredictedError, device_spec
from tools.validate.report import sum_up

DATA = Path(__file__).resolve().parents[2] / "data" / "measured" / "conv.csv"
MEAN, BIAS, WORST = 0.05, 0.02, 0.20  # what is asked of each architecture


def read():
    with DATA.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


ROWS = read()
COUNTED = [row for row in ROWS if row["quantity"] == "DEVICE KERNEL DURATION" and "helper" not in row["config"]]
COUNTED = [row for row in COUNTED if row["in_c"] and row["k_h"]]


def row(**facts):
    return next(row for row in COUNTED if all(row[name] == value for name, value in facts.items()))


@pytest.mark.parametrize("one", COUNTED, ids=lambda one: f"{one['device']}-{one['row'] or one['config'][-20:]}")
def test_the_plan_has_the_blocks_that_were_measured(one):
    """The planner is right about every row: cores, tiles of a core, blocks and sub-blocks."""
    layout = read_conv_row(one).op.layout
    blocks, shards = layout.blocks, layout.shards
    stem = "act_block_h_override" in one["notes"]  # there per_core_m is a block's height
    planned = (
        blocks.act_h_tiles if stem else shards.out_row_tiles,
        shards.out_col_tiles,
        blocks.subblock_h_tiles,
        blocks.subblock_w_tiles,
    )
    assert planned == tuple(int(one[name]) for name in ("per_core_m_tiles", "per_core_n_tiles", "subblk_h", "subblk_w"))
    if one["act_block_w_tiles"]:
        given = tuple(int(one[name]) for name in ("act_block_h_tiles", "act_block_w_tiles"))
        assert (blocks.act_h_tiles, blocks.act_w_tiles) == given


@pytest.mark.parametrize("architecture", ["wormhole_b0", "blackhole"])
def test_errors_stay_within_what_is_asked(architecture):
    predictions = [predict_conv(one) for one in COUNTED if one["arch"] == architecture]
    errors = sum_up(predictions)
    assert errors.mean <= MEAN
    assert abs(errors.bias) <= BIAS
    assert errors.worst <= WORST


def test_proposed_kernels_are_no_measurement_of_the_released_one():
    one = next(row for row in ROWS if "kernel=helper_sbm" in row["config"])
    with pytest.raises(NotPredictedError, match="kernel helper_sbm is a proposal, not the released one"):
        predict_conv(one)


def test_rows_without_a_shape_say_so():
    one = next(row for row in ROWS if not row["in_c"] or not row["k_h"])
    with pytest.raises(NotPredictedError, match="the row gives no full shape"):
        predict_conv(one)


def test_activation_reuse_is_planned():
    one = next(row for row in ROWS if "act_reuse=on" in row["config"])
    found = read_conv_row(one)
    assert not found.counted  # a target, no measurement
    assert found.op.layout.blocks.k_blocks == 1
    assert predict_conv(one).predicted_ns > 0


def test_an_unknown_device_says_so():
    with pytest.raises(NotPredictedError, match=r"the row does not say which device \(Grayskull\)"):
        predict_conv({**row(device="N150"), "device": "Grayskull"})


def test_targets_are_predicted_but_not_counted():
    one = predict_conv(next(row for row in ROWS if "target" in row["kind"]))
    assert not one.counted
    assert one.group[0] == "target, no measurement"


def test_older_software_has_the_older_tilize():
    one = read_conv_row(row(device="Blackhole P100"))
    assert one.older
    assert one.spec == device_spec(row(device="Blackhole P100")).replace(**OF_2025["blackhole"])


def test_weights_of_the_benchmark_are_double_buffered_where_resnet_does():
    resnet = row(device="P100A", in_c="128", batch="20")
    assert read_conv_row(resnet).op.options.weights_double_buffer
    unet = row(device="P100A", batch="1", shard="HS")
    assert not read_conv_row(unet).op.options.weights_double_buffer


def test_cores_of_a_row_are_taken_as_they_are():
    one = row(device="Blackhole P100", shard="BS")
    config = read_conv_row(one).op.layout.config
    assert (config.scheme, config.nhw_cores) == (BLOCK, int(one["cores_nhw"]))
    assert read_conv_row(row(device="N150", shard="HS")).op.layout.scheme is HEIGHT
