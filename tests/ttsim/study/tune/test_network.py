"""Chains: convolutions are together where one reads what the other made, alone."""

import numpy as np
import pytest

import ttsim
from tests.shards import high
from tests.ttsim.study.tune.tuned_calls import L1, options
from ttsim.study.tune import network
from ttsim.study.tune.network import advice_on_longest, chains, moving_cycles, snapshot_before, tune_network
from ttsim.study.tune.search import Search

SHARDS = ttsim.TensorMemoryLayout
NAMES = ("dram_slice_config", "slice_config")
PLACE = high((32, 32), 8)


def run(first, second=None):
    """A profile of one convolution or two that follow each other, and of a movement, and how it is tuned."""
    profile = recorded(first, second)
    return profile, tune_network(profile, effort=4)


def recorded(first, second=None):
    """The profile alone."""
    with ttsim.open_device(l1_small_size=32768, spec="wormhole_n150", values="off") as device:
        x = ttsim.Tensor(np.zeros((1, 1, 64, 64), np.float32), ttsim.bfloat16).to(device, L1)
        w = ttsim.Tensor(np.zeros((64, 32, 2, 2), np.float32), ttsim.bfloat16)
        with ttsim.profile(device) as profile:
            given = options(input_tensor=x, weight_tensor=w, device=device)
            y = ttsim.conv_transpose2d(**(given | first))
            if second is not None:
                w = ttsim.Tensor(np.zeros((32, 32, 3, 3), np.float32), ttsim.bfloat16)
                given = {"in_channels": 32, "out_channels": 32, "batch_size": 1, "input_height": 16, "input_width": 16}
                given |= {"kernel_size": (3, 3), "padding": (1, 1), "device": device}
                y = ttsim.conv2d(input_tensor=y, weight_tensor=w, **(given | second))
            ttsim.to_memory_config(y, PLACE)
    return profile


def block(**more):
    return {"conv_config": ttsim.Conv2dConfig(shard_layout=SHARDS.BLOCK_SHARDED, **more)}


def test_convolutions_that_follow_each_other_are_a_chain_on_the_device_as_it_was():
    profile = recorded(block(), block())
    ((first, second),) = chains(profile.calls)
    assert second.call.input.spec == first.output
    assert (first.moved_to, second.moved_to.memory_config) == (None, PLACE)
    assert first.call.weight.on_host
    assert (first.call.weight.spec.shape, second.call.weight.spec.shape) == ((64, 32, 2, 2), (32, 32, 3, 3))
    snapshot = snapshot_before(second, profile.device, second.call.input.spec)
    live = sorted(buffer.spec.bank_bytes for buffer in snapshot.machine.memory.live())
    assert live == sorted(buffer.buffer.bank_bytes for buffer in second.ran.before)
    assert snapshot.buffers["input"].spec == second.call.input.spec.buffer(profile.device.spec)
    assert moving_cycles(first.output, first.output, profile.device.spec) == 0


def test_the_tuned_script_takes_the_cycles_of_its_tuning():
    profile, tuned = run(block())
    assert (tuned.chains, tuned.cycles_before) == (1, profile.report().cycles)
    (layer,) = tuned.layers
    assert layer.moved_cycles < 0  # the movement that follows has less to do
    again = recorded(layer.choice.options())
    assert again.report().cycles == tuned.cycles < tuned.cycles_before
    assert f"{tuned.gain:.2f} times as fast" in str(tuned)
    assert tuned.to_dict()["layers"][0]["choice"]["arguments"] == layer.choice.arguments
    best = tune_network(again, effort=4)
    assert best.cycles == best.cycles_before
    assert "best as it is" in str(best)


def test_a_chain_is_tuned_together():
    profile, tuned = run(block(), block())
    assert (tuned.chains, len(tuned.layers)) == (1, 2)
    again = recorded(*(layer.choice.options(name) for layer, name in zip(tuned.layers, NAMES, strict=True)))
    assert again.report().cycles == tuned.cycles < profile.report().cycles


def test_what_is_not_searched_could_not_pay(monkeypatch):
    profile, tuned = run(block(), block())
    tried = []

    class Thorough(Search):
        """A search that any number of cycles may satisfy."""

        def __init__(self, *, most_cycles, **limits):
            super().__init__(**limits)
            tried.append(most_cycles)

    monkeypatch.setattr(network, "Search", Thorough)
    assert tune_network(profile, effort=4).cycles == tuned.cycles
    assert max(tried) == tuned.cycles_before > min(tried)


def test_advice_on_the_longest_convolutions_is_what_the_changed_script_takes():
    profile = recorded(block())
    advice = advice_on_longest(profile)
    (change,) = advice.changes
    again = recorded(eval(f"dict({change.arguments})", {"ttnn": ttsim}))
    assert again.report().cycles == change.cycles < advice.cycles == profile.report().cycles
    assert change.saved_share == pytest.approx(1 - change.cycles / advice.cycles)
    assert "#0 ttnn.conv_transpose2d, test_network.py:" in change.text


def test_a_profile_without_convolutions_is_refused():
    with ttsim.open_device(spec="wormhole_n150", values="off") as device, ttsim.profile(device) as profile:
        pass
    assert advice_on_longest(profile).changes == ()
    with pytest.raises(ttsim.ArgumentError, match="no convolution"):
        tune_network(profile)
