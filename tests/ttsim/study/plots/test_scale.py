import pytest

from ttsim.study.plots import Scale, number, scale_of


@pytest.mark.parametrize(
    ("values", "from_zero", "low", "high", "logarithmic"),
    [
        ([1.0, 9.0], False, 0, 10, False),
        ([110.0, 390.0], True, 0, 400, False),
        ([-3.0, 4.0], True, -4, 4, False),
        ([7.0], False, 2, 12, False),
        ([0.0], True, 0, 1, False),
        ([0.0], False, -1, 1, False),
        ([30.0, 4000.0], False, 20, 5000, True),
        ([1.0, 1000.0], False, 1, 1000, True),
        ([-1.0, 1000.0], False, -200, 1000, False),
    ],
)
def test_ends_are_round(values, from_zero, low, high, logarithmic):
    made = scale_of(values, from_zero=from_zero)
    assert (made.low, made.high, made.logarithmic) == (pytest.approx(low), pytest.approx(high), logarithmic)
    assert all(0 <= made.share(value) <= 1 for value in values)


def test_ticks():
    assert Scale(low=0, high=400).ticks() == [0, 100, 200, 300, 400]
    assert Scale(low=-4, high=4).ticks() == [-4, -2, 0, 2, 4]
    assert Scale(low=20, high=5000, logarithmic=True).ticks() == [20, 50, 100, 200, 500, 1000, 2000, 5000]
    assert Scale(low=1, high=1e7, logarithmic=True).ticks() == [10.0**power for power in range(8)]


def test_shares():
    assert Scale(low=2, high=10).share(4) == 0.25
    assert Scale(low=1, high=10000, logarithmic=True).share(10) == 0.25


def test_numbers():
    assert [number(value) for value in (0, 0.05, 12.3456, 1234.5, 5_000_000, 2.5e9)] == [
        "0", "0.05", "12.35", "1,234", "5M", "2.5G"
    ]  # fmt: skip
