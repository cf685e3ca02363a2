"""What the launch of one program takes, by hand."""

import pytest

from device.spec.device_spec import load_spec
from ops.launch import LaunchedProgram, launch_cycles

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
SPEC = load_spec("wormhole_n150").replace(**ROUND)


def program(**changes):
    """A program on one core, one processor."""
    facts = {"name": "one", "cores": 1, "processors": 1, "binaries": 1, "binary_bytes": 640}
    return LaunchedProgram(**facts | changes)


def parts(**changes):
    """Fetch, write and start of it."""
    found = launch_cycles(program(**changes), SPEC)
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
    slow = SPEC.replace(dispatch_costs_dispatcher_factor=1.5)
    usual, found = launch_cycles(program(), SPEC), launch_cycles(program(), slow)
    assert (found.fetch, found.write, found.start) == pytest.approx(
        (1.5 * usual.fetch, 1.5 * usual.write, 1.5 * usual.start)
    )


def test_what_lies_on_a_core():
    assert program(processors=5, binaries=7, circular_buffers=3, arguments=2, semaphores=1).core_bytes == (
        5 * 640 + 3 * 16 + 5 * 2 * 4 + 16
    )
