"""Tuning a call: never worse than what was given, to paste, the device as it was, and clear about what it cannot do."""

import pytest

import ttsim
from tests.ttsim.study.tune.tuned_calls import DRAM, L1, conv2d_options, options
from ttsim.study.tune.search import Search

QUICK = {"keep": ("core_grid", "transpose_shards"), "effort": 12}


@pytest.fixture
def device():
    with ttsim.open_device(l1_small_size=32768, spec="wormhole_n150", values="off") as opened:
        yield opened


@pytest.mark.parametrize("memory", [L1, DRAM])
def test_the_best_is_what_its_arguments_take(device, memory):
    given = options(memory, conv_config=ttsim.Conv2dConfig(act_block_h_override=32))
    live = len(device.machine.memory.live())
    found = ttsim.tune(ttsim.conv_transpose2d, device=device, **QUICK, **given)
    assert len(device.machine.memory.live()) == live
    assert found.best.cycles <= min(found.given.cycles, found.default.cycles)
    again = ttsim.estimate_cycles(ttsim.conv_transpose2d, device=device, **(given | dict(found.best.options())))
    assert again.cycles == found.best.cycles
    pasted = eval(f"dict({found.best.arguments})", {"ttnn": ttsim})
    assert ttsim.estimate_cycles(ttsim.conv_transpose2d, device=device, **(given | pasted)).cycles == found.best.cycles
    default = {name: value for name, value in given.items() if name != "conv_config"}
    assert ttsim.estimate_cycles(ttsim.conv_transpose2d, device=device, **default).cycles == found.default.cycles


def test_the_same_call_is_tuned_alike(device):
    first, second = (str(ttsim.tune(ttsim.conv2d, device=device, **QUICK, **conv2d_options())) for _ in range(2))
    assert first == second


def test_a_call_that_does_not_fit_is_tuned_too(device):
    large = options(L1, channels=512, outputs=32, side=28, conv_config=ttsim.Conv2dConfig(
        shard_layout=ttsim.TensorMemoryLayout.WIDTH_SHARDED))  # fmt: skip
    found = ttsim.tune(ttsim.conv_transpose2d, device=device, **QUICK, **large)
    assert found.given is None
    assert "L1" in found.given_error
    assert found.best.cycles > 0
    assert found.gain_over_given is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"allow": ("speed",)}, "allow takes math_fidelity"),
        ({"keep": ("padding",)}, "keep takes slices"),
        ({"effort": 1}, "at least 2 calls"),
    ],
)
def test_wrong_names_are_refused(device, changes, words):
    with pytest.raises(ttsim.ArgumentError, match=words):
        ttsim.tune(ttsim.conv_transpose2d, device=device, **changes, **options())


def test_a_function_without_a_convolution_is_refused(device):
    with pytest.raises(ttsim.ArgumentError, match="no convolution"):
        ttsim.tune(lambda device: None, device=device)
    with pytest.raises(ttsim.ArgumentTypeError, match="function"):
        ttsim.tune("conv2d", device=device)


def test_another_lowering_begins_with_the_call_as_it_is_given_and_the_default(device, monkeypatch):
    """Nothing bounds what phases take, so that a search could end before it came to them."""
    begun = []

    def run(search, space, *, begin=(), **options):
        begun.append([(one.rules.by_phases, one.conv_config.act_block_h_override) for one in begin])

    monkeypatch.setattr(Search, "run", run)
    given = options(L1, conv_config=ttsim.Conv2dConfig(act_block_h_override=32))
    ttsim.tune(ttsim.conv_transpose2d, device=device, allow=["lowering"], **given)
    assert begun == [[], [(True, 32), (True, 0)]]
