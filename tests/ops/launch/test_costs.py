"""Every constant of dispatch moves something, and a better machine is never slower."""

from dataclasses import fields, replace

import pytest

from device.spec.device_spec import load_spec
from ops.launch import DispatchCosts, Launch, LaunchedProgram, Replay, between_kernels_nanoseconds

SPEC = load_spec("blackhole_p150")
RATES = {"binary_bytes_per_cycle", "config_bytes_per_cycle", "config_buffer_bytes", "host_bytes_per_second"}
PLAIN = LaunchedProgram(name="plain", cores=100, processors=1, binaries=1, binary_bytes=4096)
FULL = replace(
    PLAIN, processors=5, binaries=10, groups=2, circular_buffers=32, arguments=2, common_arguments=40, semaphores=4
)
WORDY = replace(PLAIN, processors=5, binaries=5, arguments=128)
QUEUES = [[Launch(program, cycles)] * 8 for program in (PLAIN, FULL, WORDY) for cycles in (0.0, 4_000.0, 100_000.0)] + [
    [Launch(PLAIN, 0.0), Launch(FULL, 20_000.0), Launch(WORDY, 500.0)] * 3
]


def between(spec):
    """All queues in all readings."""
    return [passed for queue in QUEUES for passed in between_kernels_nanoseconds(queue, spec).values()]


@pytest.mark.parametrize("name", [field.name for field in fields(DispatchCosts)])
def test_each_constant_moves_something_and_only_the_right_way(name):
    costs = SPEC.costs_of(DispatchCosts)
    better = getattr(costs, name) * 2 if name in RATES else getattr(costs, name) / 2
    better = type(getattr(costs, name))(better)
    usual, found = between(SPEC), between(SPEC.with_costs(replace(costs, **{name: better})))
    assert all(new <= old + 1e-6 for new, old in zip(found, usual, strict=True))
    assert min(new - old for new, old in zip(found, usual, strict=True)) < -1


def test_a_faster_link_is_never_slower():
    faster = SPEC.replace(noc_flit_bytes=2 * SPEC.noc.flit_bytes)
    assert all(new <= old + 1e-6 for new, old in zip(between(faster), between(SPEC), strict=True))


def test_time_of_the_device_scales_with_its_clock():
    twice = SPEC.replace(clock_hz=2 * SPEC.clock_hz)
    for queue in QUEUES:
        usual = between_kernels_nanoseconds(queue, SPEC)[Replay.TRACE]
        assert between_kernels_nanoseconds(queue, twice)[Replay.TRACE] == pytest.approx(usual / 2)
