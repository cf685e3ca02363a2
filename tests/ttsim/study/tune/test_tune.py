"""Reasons are figures and facts of the reports on both calls."""

import re
from dataclasses import replace

import pytest

import ttsim
from device.memory.memory_config import TensorMemoryLayout
from tests.ttsim.study.tune.tuned_calls import DRAM, L1, options, question
from ttsim.study.tune.search import Search, evaluate
from ttsim.study.tune.tune import differences, report_on
from ttsim.study.tune.tuned import Choice, Tuned, TunedLayer, TunedNetwork


def made(scheme):
    asked = question("l1")
    config = replace(asked.call.conv_config, shard_layout=TensorMemoryLayout[scheme])
    return evaluate(replace(asked.call, conv_config=config), asked.snapshot)


def test_the_greatest_gain_comes_first_with_what_was_planned_apart():
    best, before = made("HEIGHT_SHARDED"), made("BLOCK_SHARDED")
    spec = question("l1").snapshot.machine.spec
    after = report_on(best, spec)
    first, *_, last = differences(after, report_on(before, spec))
    (conv,) = [operation for operation in after.operations if operation.name == "Conv2dDeviceOperation"]
    assert first.startswith("Conv2dDeviceOperation: ")
    assert f"-> {conv.cycles:,} cycles; HEIGHT_SHARDED instead of BLOCK_SHARDED" in first
    assert f"takes {after.total.roofline.cycles:,} cycles (its roofline)" in last
    assert after.cycles == best.cycles
    assert len(differences(after, after)) == 1


QUICK = {"keep": ("core_grid", "transpose_shards"), "effort": 12}


@pytest.fixture
def device():
    with ttsim.open_device(l1_small_size=32768, spec="wormhole_n150", values="off") as opened:
        yield opened


@pytest.mark.parametrize("memory", [L1, DRAM])
def test_the_best_is_what_its_arguments_take(device, memory):
    given = options(memory, conv_config=ttsim.Conv2dConfig(act_block_h_override=32))
    live = len(device.machine.memory.live())
    found, again = (ttsim.tune(ttsim.conv_transpose2d, device=device, **QUICK, **given) for _ in range(2))
    assert str(found) == str(again)
    assert len(device.machine.memory.live()) == live
    assert found.best.cycles <= min(found.given.cycles, found.default.cycles)
    again = ttsim.estimate_cycles(ttsim.conv_transpose2d, device=device, **(given | dict(found.best.options())))
    assert again.cycles == found.best.cycles
    pasted = eval(f"dict({found.best.arguments})", {"ttnn": ttsim})
    assert ttsim.estimate_cycles(ttsim.conv_transpose2d, device=device, **(given | pasted)).cycles == found.best.cycles
    default = {name: value for name, value in given.items() if name != "conv_config"}
    assert ttsim.estimate_cycles(ttsim.conv_transpose2d, device=device, **default).cycles == found.default.cycles


def test_a_call_that_does_not_fit_is_tuned_too(device):
    large = options(L1, channels=512, outputs=32, side=28, conv_config=ttsim.Conv2dConfig(
        shard_layout=ttsim.TensorMemoryLayout.WIDTH_SHARDED))  # fmt: skip
    output = ttsim.tune(ttsim.conv_transpose2d, device=device, **QUICK, **large)
    assert output.given is None
    assert "L1" in output.given_error
    assert output.best.cycles > 0
    assert output.gain_over_given is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"allow": ("speed",)}, "allow takes math_fidelity"),
        ({"keep": ("padding",)}, "keep takes slices"),
        ({"effort": 1}, "at least 2 calls"),
        ({"function": lambda **_: None}, "no convolution"),
        ({"function": "conv2d"}, "function must be one of this library"),
    ],
)
def test_tunings_that_are_refused(device, changes, words):
    function = changes.pop("function", ttsim.conv_transpose2d)
    with pytest.raises((ttsim.ArgumentError, ttsim.ArgumentTypeError), match=words):
        ttsim.tune(function, device=device, **changes, **options())


def test_another_lowering_begins_with_the_call_as_it_is_given_and_the_default(device, monkeypatch):
    """Nothing bounds what phases take, so that a search could end before it came to them."""
    begun = []

    def run(search, space, *, begin=(), **options):
        begun.append([(call.rules.by_phases, call.conv_config.act_block_h_override) for call in begin])

    monkeypatch.setattr(Search, "run", run)
    given = options(L1, conv_config=ttsim.Conv2dConfig(act_block_h_override=32))
    ttsim.tune(ttsim.conv_transpose2d, device=device, allow=["lowering"], **given)
    assert begun == [[], [(True, 32), (True, 0)]]


def choice(cycles, **changes):
    made = Choice(
        conv_config=ttsim.Conv2dConfig(),
        slice_config=None,
        compute_config=None,
        lowering="zero_insertion",
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
    space=("core_grid (both)", "shard_layout (one)"),
)


def test_words():
    assert str(FOUND).splitlines() == [
        "up on a device",
        "  as it is given: 3,000 cycles, 2,048 B of L1",
        "  ttnn's default: Out of Memory",
        "  the best found: 1,000 cycles, 2,048 B of L1",
        "  3.00 times as fast as the call as it is given",
        "  conv_config=ttnn.Conv2dConfig()",
        "  output TILE, L1 HEIGHT_SHARDED",
        "  because",
        "  Slower, and smaller or more exact:",
        "    1,500 cycles, 1,024 B of L1, error 1.00e-02: conv_config=ttnn.Conv2dConfig()",
        "  10 calls tried, 2 like these, 30 passed over by bounds: complete within this space",
        "  Space: core_grid (both); shard_layout (one)",
    ]

    assert repr(FOUND) == "<Tuned: up on a device, the best found: 1,000 cycles, 2,048 B of L1>"
    assert re.findall("<td[^>]*>([^<]*)</td>", FOUND._repr_html_())[6:14] == [
        *("ttnn&#x27;s default", "", "", "", "", "Out of Memory"), "the best found", "1,000",
    ]  # fmt: skip
    left = str(replace(FOUND, untried=5, least_untried_cycles=900)).splitlines()[-2]
    assert left.endswith("5 groups of calls left untried, which could save at most 10.0 % more")
    nothing = replace(FOUND, given=None, given_error="No", front=())
    assert (nothing.best, nothing.gain, nothing.gain_over_given) == (None, None, None)
    assert "  the best found: nothing that was tried runs" in str(nothing)


def test_plain_values_and_options():
    values = FOUND.to_dict()
    assert (values["gain"], values["gain_over_given"], values["default"]) == (None, 3.0, None)
    assert [choice["cycles"] for choice in values["front"]] == [1000, 1500]
    options = {"conv_config": ttsim.Conv2dConfig(), "slice_config": None, "compute_config": None, "lowering": "phase"}
    assert choice(1, lowering="phase").options("slice_config") == options


def test_a_name_does_not_steer_the_terminal():
    steering = "up\x1b[31m\u202e\nsecond"
    shown = str(replace(FOUND, name=steering, reasons=("\x07",)))
    assert shown.startswith("up\\x1b[31m\\u202e\\nsecond on a device\n")
    assert "\n  \\x07\n" in shown
    layer = TunedLayer(where="a\x1b.py:3\n", function="ttnn.f\x07", note="left as it is")
    network = TunedNetwork(device="d", clock_hz=10**9, chains=1, cycles_before=2, cycles=1, layers=(layer,))
    assert "\n  a\\x1b.py:3\\n, ttnn.f\\x07: left as it is\n" in str(network)
    assert str(network).startswith("one convolution in one chain on d: ")
    assert repr(network).startswith("<TunedNetwork: one convolution in one chain on d: 2 -> 1 cycles")
    assert "left as it is</td></tr></tbody></table>" in network._repr_html_()
    assert str(replace(network, chains=2, layers=(layer,) * 3)).startswith("3 convolutions in 2 chains on d: ")


def test_members_of_a_family_whose_scheme_the_library_chooses_hide_no_others():
    """The library's choice of a scheme changes with double buffers where L1 is scarce."""
    with ttsim.open_device(l1_small_size=32768, spec="wormhole_n150,grid=8x4,l1.bytes=512KiB", values="off") as device:
        given = options(channels=128, outputs=64, side=32)
        tuned = ttsim.tune(ttsim.conv_transpose2d, device=device, keep=["core_grid", "output_layout"], **given)
    assert "HEIGHT_SHARDED, enable_weights_double_buffer=True" in tuned.best.arguments
