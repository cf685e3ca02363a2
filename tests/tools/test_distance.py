"""How far the fast reading is off, of one random call of each kind; infinities and NaN come out as on the device."""

from tools.distance import spreads


def test_random_calls():
    rows = list(spreads(1))
    assert [(row["output"], row["Dst bits"]) for row in rows] == [
        (name, dst) for name in ("bfloat16", "bfloat8_b", "float32") for dst in (16, 32)
    ]
    assert all(0 < row["largest"] == row["usual"] < 0.1 for row in rows)
    assert not any(row["other specials"] for row in rows)
