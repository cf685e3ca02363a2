"""A program as dispatch sees it, and what it takes to bring it to the cores (docs/cycles.md, Between operations)."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from device.spec.device_spec import DeviceSpec
from ops.launch.costs import DispatchCosts

WORD_BYTES: Final = 4  # of an argument
BUFFER_CONFIG_BYTES: Final = 16  # of a circular buffer: address, size, pages, page size
SEMAPHORE_BYTES: Final = 16  # each has a line of L1


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedProgram:
    """What of a program has to reach the cores."""

    name: str  # The device operation
    cores: int
    processors: int  # Processors of a core that have a kernel, 1 to 5
    binaries: int  # Different kernel binaries in all
    binary_bytes: int  # Of each of them
    groups: int = 1  # Groups of cores that differ in kernels or circular buffers: each is told to start by itself
    circular_buffers: int = 0
    buffer_groups: int = 1  # Groups of cores that differ in circular buffers
    arguments: int = 0  # Words of its own that each processor of each core gets
    common_arguments: int = 0  # Words that each processor gets, the same on all cores
    semaphores: int = 0
    key: Hashable = None  # Equal keys are the same program in the program cache; None is always another one

    @property
    def code_bytes(self) -> int:
        """All binaries."""
        return self.binaries * self.binary_bytes

    @property
    def argument_bytes(self) -> int:
        """Arguments of one core's own."""
        return self.processors * self.arguments * WORD_BYTES

    @property
    def shared_bytes(self) -> int:
        """Configuration that all cores of a group get alike: circular buffers, common arguments, semaphores."""
        return (
            self.circular_buffers * BUFFER_CONFIG_BYTES
            + self.processors * self.common_arguments * WORD_BYTES
            + self.semaphores * SEMAPHORE_BYTES
        )

    @property
    def core_bytes(self) -> int:
        """What lies in the configuration buffer of each core as long as the program has not ended."""
        return self.processors * self.binary_bytes + self.argument_bytes + self.shared_bytes


@dataclass(frozen=True, slots=True)
class LaunchCycles:
    """What the launch of one program takes."""

    fetch: float  # The prefetching core is busy
    write: float  # The dispatching core is busy
    start: float  # Between the go signal, or the end of the program before, and the kernels' start


def launch_cycles(program: LaunchedProgram, spec: DeviceSpec) -> LaunchCycles:
    """What the launch of a program takes on a device, all of it in cycles of the worker cores.

    The kernel's binaries are multicast, and so is what cores share; arguments of each core's own are written core by
    core. A program without any configuration needs fewer commands.
    """
    costs = spec.costs_of(DispatchCosts)
    link = spec.noc.link_bytes_per_cycle
    commands = (1 if program.shared_bytes else 0) + (program.groups if program.argument_bytes else 0)
    copies = program.buffer_groups if program.circular_buffers else 1
    config_bytes = copies * program.shared_bytes + program.cores * program.argument_bytes
    fetch = (
        costs.fetch_cycles
        + costs.fetch_binary_cycles * (program.binaries - 1)
        + costs.command_cycles * commands
        + program.code_bytes / costs.binary_bytes_per_cycle
        + config_bytes / costs.config_bytes_per_cycle
    )
    write = (
        costs.write_cycles
        + costs.write_core_cycles * program.cores
        + costs.write_binary_cycles * (program.binaries - 1)
        + costs.write_group_cycles * (program.groups - 1)
        + costs.command_cycles * commands
        + program.code_bytes / link
    )
    if program.argument_bytes:
        write += program.cores * max(costs.argument_core_cycles, program.argument_bytes / link)
    start = costs.start_cycles + costs.start_buffer_cycles * program.circular_buffers
    return LaunchCycles(*(costs.dispatcher_factor * part for part in (fetch, write, start)))
