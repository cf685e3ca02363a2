"""What the launch of programs takes: of one by hand, how launches follow each other, and what costs change."""

import pytest

from device.spec.device_spec import load_spec
from ops.launch import Launch, LaunchedProgram, Replay, kernel_end_nanoseconds, launch_cycles


def program(**changes):
    """A program on one core, one processor."""
    return LaunchedProgram(**{"name": "one", "cores": 1, "processors": 1, "binaries": 1, "binary_bytes": 640} | changes)


def test_what_lies_on_a_core():
    found = program(processors=5, binaries=7, circular_buffers=3, arguments=2, semaphores=1)
    assert found.core_bytes == 5 * 640 + 3 * 16 + 5 * 2 * 4 + 16


SPEC = load_spec("wormhole_n150")  # a cycle is a nanosecond


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
