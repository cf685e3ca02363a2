"""Devices of one spec share plans and cycles, and nobody can tell but by the clock: all that is seen is the same."""

import gc
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from weakref import ref

import numpy as np
import pytest

import ttsim
from device.spec.device_spec import DeviceSpec
from ops.passes.caches import PlanCache
from ops.planners.conv import plan as conv_plan
from tests.sizes import conv_sizes

SIDE, CHANNELS, OUT = 8, 32, 32
SPEC = ttsim.load_spec("wormhole_n150")
L1, DRAM = ttsim.L1_MEMORY_CONFIG, ttsim.DRAM_MEMORY_CONFIG


@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> PlanCache:
    """What the devices of a test share, and no other test filled."""
    plans = PlanCache()
    monkeypatch.setattr("ttsim.runtime.device.plans_of_process", lambda: plans)
    return plans


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[DeviceSpec]:
    """Devices that calls were planned for, in order."""
    specs: list[DeviceSpec] = []
    plan = conv_plan.plan_convolution

    def listened(call: Any, spec: DeviceSpec, **options: Any) -> Any:
        specs.append(spec)
        return plan(call, spec, **options)

    monkeypatch.setattr(conv_plan, "plan_convolution", listened)
    return specs


def opened(spec: DeviceSpec = SPEC, **options: Any) -> ttsim.Device:
    return ttsim.open_device(spec=spec, **{"l1_small_size": 32768, "values": "fast", **options})


def made(device: ttsim.Device, memory: Any = L1, **changes: Any) -> Any:
    """A call on tensors of its own."""
    rng = np.random.default_rng(0)
    x = ttsim.Tensor(rng.standard_normal((1, 1, SIDE * SIDE, CHANNELS), dtype=np.float32), ttsim.bfloat16)
    return ttsim.conv_transpose2d(
        input_tensor=x.to(device, memory),
        weight_tensor=ttsim.Tensor(rng.standard_normal((CHANNELS, OUT, 2, 2), dtype=np.float32), ttsim.bfloat16),
        device=device,
        **conv_sizes(SIDE, SIDE, CHANNELS, OUT),
        **{"kernel_size": (2, 2), "stride": (2, 2), **changes},
    )


def seen(device: ttsim.Device, memory: Any = L1, **changes: Any) -> tuple[str, str, bytes]:
    """Events, report and values of a call."""
    events: list[Any] = []
    device.machine.recorders.append(events)
    with ttsim.profile(device) as profile:
        output = made(device, memory, **changes)
    return repr(events), profile.report().to_json(), output.cpu().to_numpy().tobytes()


def alone(spec: DeviceSpec = SPEC, **options: Any) -> ttsim.Device:
    """A device that shares nothing."""
    device = opened(spec, **options)
    device.plans = PlanCache(0)
    return device


@pytest.mark.parametrize("spec", [SPEC, SPEC.replace(name="of its own")], ids=["catalog", "own"])
def test_a_fresh_device_of_the_spec_finds_the_plan(spec: DeviceSpec, planned: list[DeviceSpec]) -> None:
    with opened(spec) as device:
        first = seen(device)
    with opened(pickle.loads(pickle.dumps(spec))) as device:
        again = seen(device)
    with alone(spec) as device:
        expected = seen(device)
    assert first == again == expected
    assert len(planned) == 2


@pytest.mark.parametrize(
    "change",
    [{"clock_hz": SPEC.clock_hz - 1}, {"name": "another"}, {"grid_rows": 7}, {"conv_costs_start_cycles": 1.0}],
    ids=str,
)
def test_a_device_with_one_figure_edited_has_its_own(change: dict[str, Any], planned: list[DeviceSpec]) -> None:
    other = SPEC.replace(**change)
    with opened() as device:
        first = seen(device)
    with opened(other) as device:
        second = seen(device)
    with alone(other) as device:
        assert seen(device) == second
    assert first[1] != second[1]
    assert planned == [SPEC, other, other]


def test_a_figure_of_another_type_is_another_device(planned: list[DeviceSpec]) -> None:
    written_otherwise = replace(SPEC, clock_hz=float(SPEC.clock_hz))
    assert written_otherwise == SPEC
    for spec in (SPEC, written_otherwise, SPEC):
        with opened(spec) as device:
            made(device)
            assert type(device.spec.clock_hz) is type(spec.clock_hz)
    assert len(planned) == 2


def ballast(device: ttsim.Device, rows: int) -> ttsim.Tensor:
    return ttsim.Tensor(np.zeros((1, 1, rows, 512), np.float32), ttsim.bfloat16).to(device, L1)


@pytest.mark.parametrize("memory", [L1, DRAM], ids=["L1", "DRAM"])
def test_what_lies_on_a_device_counts_as_if_it_shared_nothing(memory: Any) -> None:
    for rows in (0, 512, 4096, 0):
        for small in (16384, 32768):
            outcomes = []
            for device in (opened(l1_small_size=small), alone(l1_small_size=small)):
                with device:
                    lying = ballast(device, rows) if rows else None
                    outcomes.append((seen(device, memory), lying is None or lying.is_allocated()))
            assert outcomes[0] == outcomes[1]


def test_what_is_refused_is_refused_again_word_for_word() -> None:
    texts = []
    for device in (opened(), opened(), alone()):
        with device:
            lying = ballast(device, 84992)  # 672 bytes of each bank are left
            with pytest.raises(ttsim.OutOfMemoryError) as refused:
                made(device)
            assert lying.is_allocated()
            texts.append(str(refused.value))
    assert texts[0] == texts[1] == texts[2]


def test_how_values_are_computed_is_each_devices_own() -> None:
    with opened(values="exact") as exact, opened(values="fast") as fast, opened(values="off", cycles=False) as off:
        outputs = [made(one).cpu().to_numpy() for one in (exact, fast)]
        assert not np.array_equal(*outputs)
        with pytest.raises(ttsim.DeviceError, match="values='off'"):
            made(off).cpu()


def test_what_is_kept_keeps_no_device_and_no_tensor(shared: PlanCache) -> None:
    device = opened()
    output = made(device)
    watched = [ref(device), ref(device.machine), ref(output)]
    device.close()
    del device, output
    gc.collect()
    assert [one() for one in watched] == [None] * len(watched)
    assert shared.steps > 0


def test_devices_in_threads_share(planned: list[DeviceSpec]) -> None:
    strides: list[tuple[int, int]] = [(1, 1), (2, 2), (1, 2), (2, 1)]

    def in_a_thread(first: int) -> Iterator[tuple[tuple[int, int], tuple[str, str, bytes]]]:
        for number in range(8):
            stride = strides[(first + number) % len(strides)]
            with opened() as device:
                yield stride, seen(device, stride=stride)

    with ThreadPoolExecutor(4) as pool:
        found = [one for several in pool.map(lambda first: list(in_a_thread(first)), range(4)) for one in several]
    expected = {}
    for stride in strides:
        with alone() as device:
            expected[stride] = seen(device, stride=stride)
    assert all(text == expected[stride] for stride, text in found)
    assert len(planned) < len(found)
