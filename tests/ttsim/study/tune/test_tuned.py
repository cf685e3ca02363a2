"""What a tuner found reads as figures, gains, and what is left."""

from dataclasses import replace

import ttsim
from ttsim.study.tune.tuned import Choice, Tuned, TunedLayer, TunedNetwork


def choice(cycles, **changes):
    made = Choice(
        conv_config=ttsim.Conv2dConfig(),
        slice_config=None,
        compute_config=None,
        lowering="frame",
        arguments="conv_config=ttnn.Conv2dConfig()",
        cycles=cycles,
        nanoseconds=float(cycles),
        l1_peak_bytes=2048,
        rms_error=None,
        hands_on="TILE, L1 HEIGHT_SHARDED",
    )
    return replace(made, **changes)


FOUND = Tuned(
    name="up",
    device="a device",
    given=choice(3000),
    given_error="",
    default=None,
    default_error="Out of Memory\nand more",
    front=(choice(1000), choice(1500, l1_peak_bytes=1024, rms_error=0.01)),
    reasons=("because",),
    tried=10,
    alike=2,
    passed=30,
    refused=1,
    untried=0,
    least_untried_cycles=None,
)


def test_words():
    assert str(FOUND).splitlines() == [
        "up on a device",
        "  as it is given: 3,000 cycles, 2,048 B of L1",
        "  ttnn's default: Out of Memory",
        "  the best found: 1,000 cycles, 2,048 B of L1",
        "  3.00 times as fast as the call as it is given",
        "  conv_config=ttnn.Conv2dConfig()",
        "  hands on TILE, L1 HEIGHT_SHARDED",
        "  because",
        "  Slower, and smaller or more exact:",
        "    1,500 cycles, 1,024 B of L1, error 1.00e-02: conv_config=ttnn.Conv2dConfig()",
        "  10 calls tried, 2 like these, 30 passed over by bounds: the search is complete, up to gains of 1 %",
    ]


def test_what_is_left_untried_is_told_with_its_bound():
    assert str(replace(FOUND, untried=5, least_untried_cycles=900)).endswith(
        "5 families left untried, which could save at most 10.0 % more"
    )


def test_nothing_that_runs():
    found = replace(FOUND, given=None, given_error="No", front=())
    assert (found.best, found.gain, found.gain_over_given) == (None, None, None)
    assert "  the best found: nothing that was tried runs" in str(found)


def test_plain_values():
    told = FOUND.to_dict()
    assert (told["gain"], told["gain_over_given"], told["default"]) == (None, 3.0, None)
    assert [one["cycles"] for one in told["front"]] == [1000, 1500]


def test_options_of_a_call():
    options = choice(1, lowering="phase").options("slice_config")
    assert options == {
        "conv_config": ttsim.Conv2dConfig(), "slice_config": None, "compute_config": None, "lowering": "phase",
    }  # fmt: skip


def test_a_name_does_not_steer_the_terminal():
    steering = "up\x1b[31m\u202e\nsecond"
    shown = str(replace(FOUND, name=steering, reasons=("\x07",)))
    assert shown.startswith("up\\x1b[31m\\u202e\\nsecond on a device\n")
    assert "\n  \\x07\n" in shown
    layer = TunedLayer(where="a\x1b.py:3\n", function="ttnn.f\x07", note="left as it is")
    network = TunedNetwork(device="d", clock_hz=10**9, chains=1, cycles_before=2, cycles=1, layers=(layer,))
    assert "\n  a\\x1b.py:3\\n, ttnn.f\\x07: left as it is\n" in str(network)
