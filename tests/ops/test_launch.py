"""What the launch of programs takes: of one by hand, how launches follow each other, and what costs change."""

from dataclasses import fields, replace

import pytest

from device.spec.device_spec import load_spec
from ops.launch import (
    DispatchCosts,
    Launch,
    LaunchedProgram,
    Replay,
    between_kernels_nanoseconds,
    gaps_nanoseconds,
    kernel_end_nanoseconds,
    launch_cycles,
)

ROUND = {
    "dispatch_costs_fetch_cycles": 1000,
    "dispatch_costs_fetch_binary_cycles": 10,
    "dispatch_costs_binary_bytes_per_cycle": 16,
    "dispatch_costs_config_bytes_per_cycle": 20,
    "dispatch_costs_command_cycles": 100,
    "dispatch_costs_write_cycles": 500,
    "dispatch_costs_write_core_cycles": 2,
    "dispatch_costs_write_binary_cycles": 50,
    "dispatch_costs_write_group_cycles": 300,
    "dispatch_costs_argument_core_cycles": 7,
    "dispatch_costs_start_cycles": 800,
    "dispatch_costs_start_buffer_cycles": 5,
    "noc_link_share": 1.0,
}

ROUND_SPEC = load_spec("wormhole_n150").replace(**ROUND)


def program(**changes):
    """A program on one core, one processor."""
    facts = {"name": "one", "cores": 1, "processors": 1, "binaries": 1, "binary_bytes": 640}
    return LaunchedProgram(**facts | changes)


def parts(**changes):
    """Fetch, write and start of it."""
    found = launch_cycles(program(**changes), ROUND_SPEC)
    return found.fetch, found.write, found.start


def test_a_program_without_configuration():
    assert parts() == (1000 + 640 / 16, 500 + 2 + 640 / 32, 800)


def test_every_binary_and_every_core_count():
    assert parts(binaries=3, processors=3, cores=10) == (1000 + 2 * 10 + 1920 / 16, 500 + 20 + 100 + 1920 / 32, 800)


def test_circular_buffers_of_every_group_are_another_copy():
    """Four buffers of 16 bytes, in two groups of cores."""
    fetch, write, start = parts(circular_buffers=4, buffer_groups=2, groups=2)
    assert fetch == 1000 + 40 + 100 + 2 * 64 / 20
    assert write == 502 + 20 + 100 + 300
    assert start == 800 + 4 * 5


def test_arguments_go_core_by_core():
    """40 bytes take less than the 7 cycles of a write, 400 bytes more."""
    assert parts(cores=8, arguments=10)[1] == 500 + 16 + 20 + 100 + 8 * 7
    assert parts(cores=8, arguments=100)[1] == 500 + 16 + 20 + 100 + 8 * 400 / 32
    assert parts(cores=8, arguments=100)[0] == 1000 + 40 + 100 + 8 * 400 / 20


def test_arguments_of_each_group_are_a_command():
    assert parts(cores=8, arguments=10, groups=2)[1] - parts(cores=8, arguments=10)[1] == 300 + 100


def test_common_arguments_and_semaphores_share_a_command():
    assert parts(common_arguments=5)[0] == 1000 + 40 + 100 + 20 / 20
    assert parts(semaphores=2)[0] == 1000 + 40 + 100 + 32 / 20
    assert parts(semaphores=2, common_arguments=5)[0] == 1000 + 40 + 100 + 52 / 20


def test_slower_dispatchers_are_slower_throughout():
    slow = ROUND_SPEC.replace(dispatch_costs_dispatcher_factor=1.5)
    usual, found = launch_cycles(program(), ROUND_SPEC), launch_cycles(program(), slow)
    assert (found.fetch, found.write, found.start) == pytest.approx(
        (1.5 * usual.fetch, 1.5 * usual.write, 1.5 * usual.start)
    )


def test_what_lies_on_a_core():
    assert program(processors=5, binaries=7, circular_buffers=3, arguments=2, semaphores=1).core_bytes == (
        5 * 640 + 3 * 16 + 5 * 2 * 4 + 16
    )


SPEC = load_spec("wormhole_n150")  # a cycle is a nanosecond
SMALL = LaunchedProgram(name="small", cores=1, processors=1, binaries=1, binary_bytes=256)
LARGE = LaunchedProgram(name="large", cores=1, processors=5, binaries=5, binary_bytes=8192)  # two do not fit a core


def period(program, kernel_cycles):
    """Time from program to program of a long queue."""
    ends = kernel_end_nanoseconds([Launch(program, kernel_cycles)] * 10, SPEC, Replay.TRACE)
    assert ends == sorted(ends)
    return ends[-1] - ends[-2]


def test_a_first_program_is_fetched_and_started():
    """The dispatching core writes on while the prefetching core still fetches, which is the longer of the two."""
    cost = launch_cycles(SMALL, SPEC)
    assert cost.fetch > cost.write
    assert kernel_end_nanoseconds([Launch(SMALL, 100)], SPEC, Replay.TRACE) == pytest.approx(
        [cost.fetch + cost.start + 100]
    )


def test_short_kernels_wait_for_the_slower_core():
    assert period(SMALL, 0) == pytest.approx(launch_cycles(SMALL, SPEC).fetch)


def test_long_kernels_hide_all_but_the_start():
    assert period(SMALL, 10_000) == pytest.approx(10_000 + launch_cycles(SMALL, SPEC).start)


def test_what_does_not_fit_beside_the_running_program_is_written_after_it():
    cost = launch_cycles(LARGE, SPEC)
    assert period(LARGE, 10_000) == pytest.approx(10_000 + cost.start + cost.write)
    roomy = SPEC.replace(dispatch_costs_config_buffer_bytes=2 * LARGE.core_bytes)
    ends = kernel_end_nanoseconds([Launch(LARGE, 10_000)] * 10, roomy, Replay.TRACE)
    assert ends[-1] - ends[-2] == pytest.approx(10_000 + cost.start)


def test_a_host_that_is_slower_than_the_device_is_waited_for():
    slow = SPEC.replace(dispatch_costs_host_launch_nanoseconds=20_000)
    cost = launch_cycles(SMALL, slow)
    ends = kernel_end_nanoseconds([Launch(SMALL, 100)] * 3, slow, Replay.WARM_CACHE)
    assert ends == pytest.approx([at * 20_000 + cost.fetch + cost.start + 100 for at in (1, 2, 3)])


def test_a_first_call_copies_each_program_once():
    named = LaunchedProgram(name="a", cores=1, processors=1, binaries=1, binary_bytes=13_500, key="a")
    slow = SPEC.replace(dispatch_costs_host_launch_nanoseconds=20_000)
    twice = [Launch(named, 0)] * 2
    found = between_kernels_nanoseconds(twice, slow)
    assert found[Replay.FIRST_CALL] - found[Replay.WARM_CACHE] == pytest.approx(1000)  # 13,500 bytes at 13.5 GB/s
    nameless = between_kernels_nanoseconds([Launch(SMALL, 0)] * 2, slow)
    assert nameless[Replay.FIRST_CALL] - nameless[Replay.WARM_CACHE] == pytest.approx(2 * 256 / 13.5)


def test_nothing_takes_nothing():
    assert between_kernels_nanoseconds([], SPEC) == dict.fromkeys(Replay, 0)


def test_gaps_are_what_no_kernel_fills():
    queue = [Launch(SMALL, 10_000), Launch(LARGE, 10_000), Launch(LARGE, 50)]
    first, second, third = gaps_nanoseconds(queue, SPEC, Replay.TRACE)
    assert first == pytest.approx(launch_cycles(SMALL, SPEC).fetch + launch_cycles(SMALL, SPEC).start)
    assert second == pytest.approx(launch_cycles(LARGE, SPEC).start)
    assert first + second + third == pytest.approx(between_kernels_nanoseconds(queue, SPEC)[Replay.TRACE])
    assert gaps_nanoseconds([], SPEC, Replay.TRACE) == []


BLACKHOLE = load_spec("blackhole_p150")
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
    costs = BLACKHOLE.costs_of(DispatchCosts)
    better = getattr(costs, name) * 2 if name in RATES else getattr(costs, name) / 2
    better = type(getattr(costs, name))(better)
    usual, found = between(BLACKHOLE), between(BLACKHOLE.with_costs(replace(costs, **{name: better})))
    assert all(new <= old + 1e-6 for new, old in zip(found, usual, strict=True))
    assert min(new - old for new, old in zip(found, usual, strict=True)) < -1


def test_a_faster_link_is_never_slower():
    faster = BLACKHOLE.replace(noc_flit_bytes=2 * BLACKHOLE.noc.flit_bytes)
    assert all(new <= old + 1e-6 for new, old in zip(between(faster), between(BLACKHOLE), strict=True))


def test_time_of_the_device_scales_with_its_clock():
    twice = BLACKHOLE.replace(clock_hz=2 * BLACKHOLE.clock_hz)
    for queue in QUEUES:
        usual = between_kernels_nanoseconds(queue, BLACKHOLE)[Replay.TRACE]
        assert between_kernels_nanoseconds(queue, twice)[Replay.TRACE] == pytest.approx(usual / 2)
