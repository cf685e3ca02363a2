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

FIGURES = {
    "fetch_cycles": 1000, "fetch_binary_cycles": 10, "binary_bytes_per_cycle": 16, "config_bytes_per_cycle": 20,
    "command_cycles": 100, "write_cycles": 500, "write_core_cycles": 2, "write_binary_cycles": 50,
    "write_group_cycles": 300, "argument_core_cycles": 7, "start_cycles": 800, "start_buffer_cycles": 5,
}  # fmt: skip
ROUND = load_spec("wormhole_n150").replace(
    **{f"dispatch_costs_{name}": value for name, value in FIGURES.items()}, noc_link_share=1.0
)


def program(**changes):
    """A program on one core, one processor."""
    return LaunchedProgram(**{"name": "one", "cores": 1, "processors": 1, "binaries": 1, "binary_bytes": 640} | changes)


@pytest.mark.parametrize(
    ("changes", "fetch", "write", "start"),
    [
        ({}, 1000 + 640 / 16, 500 + 2 + 640 / 32, 800),  # without configuration
        ({"binaries": 3, "processors": 3, "cores": 10}, 1000 + 2 * 10 + 1920 / 16, 500 + 20 + 100 + 1920 / 32, 800),
        # four buffers of 16 bytes, of which each of two groups of cores has another copy
        ({"circular_buffers": 4, "buffer_groups": 2, "groups": 2}, 1140 + 2 * 64 / 20, 522 + 100 + 300, 800 + 4 * 5),
        # arguments go core by core: 40 bytes take less than the 7 cycles of a write, 400 bytes more
        ({"cores": 8, "arguments": 10}, 1140 + 8 * 40 / 20, 500 + 16 + 20 + 100 + 8 * 7, 800),
        ({"cores": 8, "arguments": 100}, 1140 + 8 * 400 / 20, 500 + 16 + 20 + 100 + 8 * 400 / 32, 800),
        # those of each group are a command
        ({"cores": 8, "arguments": 10, "groups": 2}, 1240 + 8 * 40 / 20, 636 + 300 + 100 + 8 * 7, 800),
        # common arguments and semaphores share a command
        ({"common_arguments": 5}, 1140 + 20 / 20, 522 + 100, 800),
        ({"semaphores": 2}, 1140 + 32 / 20, 522 + 100, 800),
        ({"semaphores": 2, "common_arguments": 5}, 1140 + 52 / 20, 522 + 100, 800),
    ],
)  # fmt: skip
def test_cycles_of_a_launch_by_hand(changes, fetch, write, start):
    found = launch_cycles(program(**changes), ROUND)
    assert (found.fetch, found.write, found.start) == (fetch, write, start)
    slow = launch_cycles(program(**changes), ROUND.replace(dispatch_costs_dispatcher_factor=1.5))
    assert (slow.fetch, slow.write, slow.start) == pytest.approx((1.5 * fetch, 1.5 * write, 1.5 * start))


def test_what_lies_on_a_core():
    found = program(processors=5, binaries=7, circular_buffers=3, arguments=2, semaphores=1)
    assert found.core_bytes == 5 * 640 + 3 * 16 + 5 * 2 * 4 + 16


SPEC = load_spec("wormhole_n150")  # a cycle is a nanosecond
SMALL = LaunchedProgram(name="small", cores=1, processors=1, binaries=1, binary_bytes=256)
LARGE = LaunchedProgram(name="large", cores=1, processors=5, binaries=5, binary_bytes=8192)  # two do not fit a core


def period(program, kernel_cycles, spec=SPEC):
    """Time from program to program of a long queue."""
    ends = kernel_end_nanoseconds([Launch(program, kernel_cycles)] * 10, spec, Replay.TRACE)
    assert ends == sorted(ends)
    return ends[-1] - ends[-2]


def test_launches_follow_each_other():
    """The dispatching core writes on while the prefetching core still fetches, which is the longer of the two."""
    small, large = launch_cycles(SMALL, SPEC), launch_cycles(LARGE, SPEC)
    assert small.fetch > small.write
    ends = kernel_end_nanoseconds([Launch(SMALL, 100)], SPEC, Replay.TRACE)
    assert ends == pytest.approx([small.fetch + small.start + 100])
    assert period(SMALL, 0) == pytest.approx(small.fetch)  # short kernels wait for the slower core
    assert period(SMALL, 10_000) == pytest.approx(10_000 + small.start)  # long kernels hide all but the start
    # What does not fit beside the running program is written after it
    assert period(LARGE, 10_000) == pytest.approx(10_000 + large.start + large.write)
    roomy = SPEC.replace(dispatch_costs_config_buffer_bytes=2 * LARGE.core_bytes)
    assert period(LARGE, 10_000, roomy) == pytest.approx(10_000 + large.start)


def test_a_host_that_is_slower_than_the_device_is_waited_for():
    slow = SPEC.replace(dispatch_costs_host_launch_nanoseconds=20_000)
    cost = launch_cycles(SMALL, slow)
    ends = kernel_end_nanoseconds([Launch(SMALL, 100)] * 3, slow, Replay.WARM_CACHE)
    assert ends == pytest.approx([at * 20_000 + cost.fetch + cost.start + 100 for at in (1, 2, 3)])


def test_nothing_is_written_before_it_is_made():
    """A program whose writing takes longer than its fetching: a slower host delays it all the same."""
    wide = LaunchedProgram(name="wide", cores=64, processors=5, binaries=5, binary_bytes=64, arguments=8)
    slow = SPEC.replace(dispatch_costs_host_launch_nanoseconds=300)
    cost = launch_cycles(wide, slow)
    assert cost.write > cost.fetch + 300
    ends = [
        kernel_end_nanoseconds([Launch(wide, 100)], slow, replay)[0] for replay in (Replay.WARM_CACHE, Replay.TRACE)
    ]
    assert ends == pytest.approx([300 + cost.write + cost.start + 100, cost.write + cost.start + 100])


def test_a_first_call_copies_each_program_once():
    named = LaunchedProgram(name="a", cores=1, processors=1, binaries=1, binary_bytes=13_500, key="a")
    slow = SPEC.replace(dispatch_costs_host_launch_nanoseconds=20_000)
    twice = [Launch(named, 0)] * 2
    found = between_kernels_nanoseconds(twice, slow)
    assert found[Replay.FIRST_CALL] - found[Replay.WARM_CACHE] == pytest.approx(1000)  # 13,500 bytes at 13.5 GB/s
    nameless = between_kernels_nanoseconds([Launch(SMALL, 0)] * 2, slow)
    assert nameless[Replay.FIRST_CALL] - nameless[Replay.WARM_CACHE] == pytest.approx(2 * 256 / 13.5)


def test_gaps_are_what_no_kernel_fills():
    queue = [Launch(SMALL, 10_000), Launch(LARGE, 10_000), Launch(LARGE, 50)]
    first, second, third = gaps_nanoseconds(queue, SPEC, Replay.TRACE)
    assert first == pytest.approx(launch_cycles(SMALL, SPEC).fetch + launch_cycles(SMALL, SPEC).start)
    assert second == pytest.approx(launch_cycles(LARGE, SPEC).start)
    assert first + second + third == pytest.approx(between_kernels_nanoseconds(queue, SPEC)[Replay.TRACE])
    assert gaps_nanoseconds([], SPEC, Replay.TRACE) == []
    assert between_kernels_nanoseconds([], SPEC) == dict.fromkeys(Replay, 0)


BLACKHOLE = load_spec("blackhole_p150")
RATES = {"binary_bytes_per_cycle", "config_bytes_per_cycle", "config_buffer_bytes", "host_bytes_per_second"}
PLAIN = LaunchedProgram(name="plain", cores=100, processors=1, binaries=1, binary_bytes=4096)
ODDS = {"groups": 2, "circular_buffers": 32, "arguments": 2, "common_arguments": 40, "semaphores": 4}
FULL = replace(PLAIN, processors=5, binaries=10, **ODDS)
WORDY = replace(PLAIN, processors=5, binaries=5, arguments=128)
QUEUES = [
    *([Launch(program, cycles)] * 8 for program in (PLAIN, FULL, WORDY) for cycles in (0.0, 4_000.0, 100_000.0)),
    [Launch(PLAIN, 0.0), Launch(FULL, 20_000.0), Launch(WORDY, 500.0)] * 3,
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


def test_a_faster_link_is_never_slower_and_time_of_the_device_scales_with_its_clock():
    faster = BLACKHOLE.replace(noc_flit_bytes=2 * BLACKHOLE.noc.flit_bytes)
    assert all(new <= old + 1e-6 for new, old in zip(between(faster), between(BLACKHOLE), strict=True))
    twice = BLACKHOLE.replace(clock_hz=2 * BLACKHOLE.clock_hz)
    for queue in QUEUES:
        usual = between_kernels_nanoseconds(queue, BLACKHOLE)[Replay.TRACE]
        assert between_kernels_nanoseconds(queue, twice)[Replay.TRACE] == pytest.approx(usual / 2)
