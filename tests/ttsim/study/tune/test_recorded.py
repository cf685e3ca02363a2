"""Chains: convolutions are together where one reads what the other made, alone."""

from tests.ttsim.study.tune.test_network import PLACE, block, recorded
from ttsim.study.tune.network import chains, ground_of


def test_two_that_follow_each_other_are_a_chain():
    profile = recorded(block(), block())
    ((first, second),) = chains(profile.calls)
    assert second.call.input.spec == first.output
    assert (first.moved_to, second.moved_to.memory_config) == (None, PLACE)
    assert first.call.weight.on_host
    assert first.call.weight.spec.shape == (64, 32, 2, 2)
    assert second.call.weight.spec.shape == (32, 32, 3, 3)


def test_the_device_is_as_it_was_before_the_call():
    profile = recorded(block(), block())
    ((_, second),) = chains(profile.calls)
    ground = ground_of(second, profile.device, second.call.input.spec)
    live = sorted(one.spec.bank_bytes for one in ground.machine.memory.live())
    assert live == sorted(one.buffer.bank_bytes for one in second.ran.before)
    assert ground.held["input"].spec == second.call.input.spec.buffer(profile.device.spec)
