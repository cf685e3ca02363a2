"""Measured halos, matmuls, layout operations and launches are predicted within the errors that are claimed for them."""

from pathlib import Path

import pytest

from tools.validate.__main__ import read_rows, validate
from tools.validate.conv import predict_halo, read_halo_row
from tools.validate.gemm import predict_gemm, read_gemm_row
from tools.validate.layout_ops import read_layout_row
from tools.validate.prediction import NotPredictedError
from tools.validate.report import sum_up

ROWS = Path(__file__).resolve().parents[1] / "data" / "measured"
MOST_BYTES = 1_500_000


@pytest.mark.parametrize(("name", "mean"), [("halo", 0.07), ("gemm", 0.04), ("layout_ops", 0.12), ("dispatch", 0.03)])
def test_errors_are_as_claimed(name, mean):
    predicted, skipped = validate(ROWS / f"{name}.csv")
    errors = sum_up([one for one in predicted if one.architecture in ("wormhole_b0", "blackhole")])
    assert errors.mean < mean
    assert abs(errors.bias) < 0.05
    assert len(predicted) + len(skipped) == len(read_rows(ROWS / f"{name}.csv"))
    assert all(one.reason for one in skipped)


def test_measured_rows_stay_small():
    assert sum(path.stat().st_size for path in ROWS.iterdir()) < MOST_BYTES


def test_halos_are_rebuilt_stick_by_stick():
    rows = [row for row in read_rows(ROWS / "halo.csv") if row["max_out_nsticks_per_core"]]
    assert len(rows) > 100
    for row in rows:
        assert read_halo_row(row).plan.max_sticks == int(row["max_out_nsticks_per_core"])


def test_rows_that_say_too_little_are_refused_with_the_reason():
    halos, matmuls, layouts = (read_rows(ROWS / f"{name}.csv") for name in ("halo", "gemm", "layout_ops"))
    with pytest.raises(NotPredictedError, match="gives no shards"):
        predict_halo(next(row for row in halos if not row["cores_nhw"]))
    tuned = next(row for row in matmuls if "Tuned" in row["config"])
    with pytest.raises(NotPredictedError, match="no kernel time"):
        predict_gemm(tuned | {"quantity": "host wall time per op (avg)"})
    with pytest.raises(NotPredictedError, match="does not say which device"):
        read_gemm_row(tuned | {"device": ""})
    with pytest.raises(NotPredictedError, match="no operation of a convolution"):
        read_layout_row(layouts[0] | {"op": "TransposeDeviceOperation"})


def test_a_utilization_becomes_cycles():
    row = next(
        row
        for row in read_rows(ROWS / "gemm.csv")
        if "implied device cycles" in row["notes"] and "Tuned" in row["config"]
    )
    cycles = int(row["notes"].rpartition(" ")[2])
    assert predict_gemm(row).measured_ns * float(row["clock_mhz"]) / 1000 == pytest.approx(cycles, rel=1e-3)
