from ttsim.study.store import Row, Verdict
from ttsim.study.sweep import SweepResult, best_table, words_of

FITS = Row(
    key="k", layer="up", device="d", verdict=Verdict.FITS, cycles=1234, clock_hz=10**9, cycles_error_share=0.0271,
    untimed_operations=0, l1_peak_bytes=5000, l1_headroom_bytes=6000, plan_key="p",
)  # fmt: skip
NOT = Row(key="l", layer="down", device="d", verdict=Verdict.DOES_NOT_FIT, error="too large")
FAILED = Row(key="m", layer="down", device="d", verdict=Verdict.FAILED, error="KeyError: \x1b'x'")


def test_the_table_of_the_best():
    told = best_table(SweepResult(axes=("config.x",), samples=(({"config.x": None}, FITS), ({"config.x": 2}, NOT))))
    assert told == (
        "layer  device     fit  cycles     +-     time  slowest  L1 peak B  headroom B  fastest\n"
        "up     d       1 of 1   1,234  2.7 %  1.23 us    1,234      5,000       6,000  x=none\n"
        "down   d       0 of 1                                                          nothing runs: too large\n"
        "2 points, one different plan: 1 fits, 1 does not fit\n"
    )


def test_on_a_narrow_terminal_settings_stay():
    told = best_table(SweepResult(axes=("config.x",), samples=(({"config.x": 2}, FITS),)), width=40)
    assert told.splitlines()[:2] == ["layer  device  cycles     time  fastest", "up     d        1,234  1.23 us  x=2"]


def test_mistakes_of_ttsim_are_told():
    told = best_table(SweepResult(axes=(), samples=(({}, FAILED), ({}, FAILED))))
    assert told.splitlines()[-1].startswith("failed: KeyError: ")
    assert "\x1b" not in told


def test_words_of_labels():
    assert words_of({"config.a": True, "kernel_size": (2, 2), "device.dram.banks": "6", "compute.b": 0}) == (
        "a=true, kernel_size=2x2, b=0"
    )
    assert words_of({}) == "as given"
