"""Devices of one spec share plans and cycles, and nobody can tell but by the clock: everything else is the same."""

import gc
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from weakref import ref

import numpy as np
import pytest

import ttsim
from ops.passes.caches import PlanCache
from ops.planners.conv import plan as conv_plan
from tests.ttsim.api.calls import conv, refusal

SPEC = ttsim.load_spec("wormhole_n150")


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    """The cache that the devices of a test share, and no other test filled."""
    plans = PlanCache()
    monkeypatch.setattr("ttsim.runtime.device.plans_of_process", lambda: plans)
    return plans


@pytest.fixture
def planned(monkeypatch):
    """Devices that calls were planned for, in order."""
    specs, plan = [], conv_plan.plan_convolution
    monkeypatch.setattr(
        conv_plan, "plan_convolution", lambda call, spec, **options: specs.append(spec) or plan(call, spec, **options)
    )
    return specs


def opened(spec=SPEC, **options):
    return ttsim.open_device(spec=spec, **{"l1_small_size": 32768, "values": "fast", **options})


def alone(spec=SPEC, **options):
    """A device that shares nothing."""
    device = opened(spec, **options)
    device.plans = PlanCache(0)
    return device


def made(device, words="l1", **changes):
    """A call on tensors of its own."""
    return conv(device, (8, 8), words=words, seed=0, **changes)


def seen(device, words="l1", **changes):
    """Events, report and values of a call."""
    events = []
    device.machine.recorders.append(events)
    with ttsim.profile(device) as profile:
        output = made(device, words, **changes)
    return repr(events), profile.report().to_json(), output.cpu().to_numpy().tobytes()


def seen_on(*devices, **changes):
    """Events, report and values of a call on each device, which is closed then."""
    outcomes = []
    for device in devices:
        with device:
            outcomes.append(seen(device, **changes))
    return outcomes


@pytest.mark.parametrize("spec", [SPEC, SPEC.replace(name="of its own")], ids=["catalog", "own"])
def test_a_fresh_device_of_the_spec_finds_the_plan(spec, planned):
    first, second, third = seen_on(opened(spec), opened(pickle.loads(pickle.dumps(spec))), alone(spec))
    assert first == second == third
    assert len(planned) == 2


@pytest.mark.parametrize(
    "change",
    [{"clock_hz": SPEC.clock_hz - 1}, {"name": "another"}, {"grid_rows": 7}, {"conv_costs_start_cycles": 1.0}],
    ids=str,
)
def test_a_device_with_one_figure_edited_has_its_own(change, planned):
    other = SPEC.replace(**change)
    first, second, third = seen_on(opened(), opened(other), alone(other))
    assert first[1] != second[1]
    assert second == third
    assert planned == [SPEC, other, other]


def test_a_figure_of_another_type_is_another_device(planned):
    written_otherwise = replace(SPEC, clock_hz=float(SPEC.clock_hz))
    assert written_otherwise == SPEC
    for spec in (SPEC, written_otherwise, SPEC):
        with opened(spec) as device:
            made(device)
            assert type(device.spec.clock_hz) is type(spec.clock_hz)
    assert len(planned) == 2


def ballast(device, rows):
    return ttsim.Tensor(np.zeros((1, 1, rows, 512), np.float32), ttsim.bfloat16).to(device, ttsim.L1_MEMORY_CONFIG)


@pytest.mark.parametrize("words", ["l1", "dram"])
def test_tensors_on_a_device_count_as_if_it_shared_nothing(words):
    for rows, small in ((0, 16384), (512, 32768), (4096, 32768), (0, 32768)):
        outcomes = []
        for device in (opened(l1_small_size=small), alone(l1_small_size=small)):
            with device:
                lying = ballast(device, rows) if rows else None
                outcomes.append((seen(device, words), lying is None or lying.is_allocated()))
        assert outcomes[0] == outcomes[1]


def test_a_refused_call_is_refused_again_word_for_word():
    texts = set()
    for device in (opened(), opened(), alone()):
        with device:
            lying = ballast(device, 84928)  # 1,696 bytes of each bank are left, too few for a halo
            texts.add(refusal(lambda device=device: made(device)))
            assert lying.is_allocated()
    (text,) = texts
    assert text.startswith("OutOfMemory: ")


def test_each_device_computes_values_in_its_own_way():
    with opened(values="exact") as exact, opened(values="fast") as fast, opened(values="off", cycles=False) as off:
        assert not np.array_equal(*(made(device).cpu().to_numpy() for device in (exact, fast)))
        assert "values='off'" in refusal(made(off).to_numpy)


@pytest.mark.usefixtures("quick_collections")
def test_the_cache_keeps_no_device_and_no_tensor(shared):
    with opened() as device:
        output = made(device)
        watched = [ref(device), ref(device.machine), ref(output)]
    del device, output
    gc.collect()
    assert not any(reference() for reference in watched)
    assert shared.steps > 0


def test_devices_in_threads_share(planned):
    strides = [(1, 1), (2, 2), (1, 2)]

    def in_a_thread(first):
        own = [strides[(first + number) % len(strides)] for number in range(4)]
        return [(stride, seen_on(opened(), stride=stride)[0]) for stride in own]

    with ThreadPoolExecutor(4) as pool:
        found = [outcome for outcomes in pool.map(in_a_thread, range(4)) for outcome in outcomes]
    expected = {stride: seen_on(alone(), stride=stride)[0] for stride in strides}
    assert all(text == expected[stride] for stride, text in found)
    assert len(planned) < len(found)
