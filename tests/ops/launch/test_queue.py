"""Programs that follow each other: what hides behind kernels, by hand."""

import pytest

from device.spec.device_spec import load_spec
from ops.launch import (
    Launch,
    LaunchedProgram,
    Replay,
    between_kernels_nanoseconds,
    gaps_nanoseconds,
    kernel_end_nanoseconds,
    launch_cycles,
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
