"""Transfers by themselves are predicted from the figures of the network."""

from pathlib import Path

import pytest

from device.spec.device_spec import load_spec
from tools.validate.__main__ import read_rows, validate
from tools.validate.dispatch import predict_transfers, read_transfers
from tools.validate.prediction import NotPredictedError
from tools.validate.report import sum_up

ROWS = Path(__file__).resolve().parents[2] / "data" / "measured" / "dram_noc.csv"
SPEC = load_spec("blackhole_p150")


def row(**changed):
    """16 reads of 64 bytes from a core off both axes."""
    plain = next(one for one in read_rows(ROWS) if one["mechanism"] == "unicast read")
    sizes = {"arch": "blackhole", "num_transactions": "16", "transaction_bytes": "64", "same_axis": "false"}
    return plain | sizes | changed


MULTICAST = {"mechanism": "multicast write", "pattern": "L1 one-to-all multicast", "subordinates": "130"} | {
    "linked": "true",
    "loopback": "true",
}


@pytest.mark.parametrize(
    ("changed", "cycles"),
    [
        ({}, 119 + 29 * 9 + 15 * 35 + 64 / (64 * 0.952)),
        ({"same_axis": "true"}, 119 + 12 * 9 + 15 * 35 + 64 / (64 * 0.952)),
        ({"transaction_bytes": "8192"}, 119 + 29 * 9 + 16 * 8192 / (64 * 0.952)),
        ({"mechanism": "unicast write"}, 119 + 29 * 9 + 15 * 23 + 64 / (64 * 0.952)),
        (
            {"mechanism": "DRAM read", "pattern": "single bank (pattern 0)", "transaction_bytes": "8192"},
            119 + 29 * 9 + 78 * 1.35 + 16 * 8192 / (64e9 * 0.5 / 1.35e9),
        ),
        (MULTICAST, 119 + 29 * 9 + 119 + 29 * 9 / 2 + 16 * (130 * 1.03 + 64 / (64 * 0.952))),
        (
            MULTICAST | {"linked": "false", "pattern": "L1 one-to-column", "loopback": "true", "subordinates": "10"},
            119 + 12 * 9 + 16 * (119 + 6 * 9) + 15 * 23 + 10 * 1.03 + 64 / (64 * 0.952),
        ),
    ],
)
def test_transfers_by_hand(changed, cycles):
    assert read_transfers(row(**changed), SPEC)() == pytest.approx(cycles, rel=1e-12)


def test_errors_are_as_claimed():
    predicted, skipped = validate(ROWS)
    assert len(predicted) + len(skipped) == len(read_rows(ROWS))
    for mechanism, most in (("unicast read", 0.05), ("unicast write", 0.04), ("multicast write", 0.14)):
        assert sum_up([one for one in predicted if one.group[1] == mechanism]).mean < most


def test_what_is_not_a_wait_is_refused():
    with pytest.raises(NotPredictedError, match="how long one core waits"):
        predict_transfers(row(op="link/endpoint capacity"))
    with pytest.raises(NotPredictedError, match="atomic is no transfer of the model"):
        predict_transfers(row(mechanism="atomic"))
