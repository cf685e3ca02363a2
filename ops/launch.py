"""Launching programs: the work of two dispatch cores before kernels start, and the part that kernels do not hide."""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple

from device.spec.device_spec import Costs, DeviceSpec
from device.time.stages import nanoseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchCosts(Costs):
    """Constants of dispatch, in cycles of the worker cores' clock unless named otherwise: cores that dispatch share it.

    `launch_cycles` says how they add up.
    """

    TABLE: ClassVar[str] = "dispatch_costs"

    fetch_cycles: float  # The prefetching core, for each program
    fetch_binary_cycles: float  # More, for each kernel binary beyond the first
    binary_bytes_per_cycle: float  # Rate at which it fetches binaries, page by page from DRAM
    config_bytes_per_cycle: float  # Rate at which it fetches what stands in the commands: arguments, circular buffers
    command_cycles: float  # For each command besides those that every program has, on either core
    write_cycles: float  # The dispatching core, for each program
    write_core_cycles: float  # More, for each core that runs it
    write_binary_cycles: float  # More, for each kernel binary beyond the first
    write_group_cycles: float  # More, for each group of cores beyond the first
    argument_core_cycles: float  # For each core with arguments of its own
    start_cycles: float  # From the end of a program, or of its writing, to the start of the kernels
    start_buffer_cycles: float  # More, for each circular buffer of a core
    config_buffer_bytes: int  # Of each core, for the configuration of programs that are running or written ahead
    dispatcher_factor: float  # On all cycles above, where slower cores dispatch
    host_launch_nanoseconds: int  # The host, for each program that is not replayed
    host_bytes_per_second: int  # Rate at which the host copies binaries to the device


WORD_BYTES: Final = 4  # of an argument
BUFFER_CONFIG_BYTES: Final = 16  # of a circular buffer: address, size, pages, page size
SEMAPHORE_BYTES: Final = 16  # each has a line of L1


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedProgram:
    """The parts of a program that the launch sends to the cores."""

    name: str  # The device operation
    cores: int
    processors: int  # Processors of a core that have a kernel, 1 to 5
    binaries: int  # Different kernel binaries in all
    binary_bytes: int  # Of each of them
    groups: int = 1  # Groups of cores that differ in kernels or circular buffers: each is started by itself
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
        """Bytes of the runtime arguments of one core."""
        return self.processors * self.arguments * WORD_BYTES

    @property
    def shared_bytes(self) -> int:
        """Configuration that all cores of a group share: circular buffers, common arguments, semaphores."""
        return (
            self.circular_buffers * BUFFER_CONFIG_BYTES
            + self.processors * self.common_arguments * WORD_BYTES
            + self.semaphores * SEMAPHORE_BYTES
        )

    @property
    def core_bytes(self) -> int:
        """Bytes in the configuration buffer of each core until the program ends."""
        return self.processors * self.binary_bytes + self.argument_bytes + self.shared_bytes


@dataclass(frozen=True, slots=True)
class LaunchCycles:
    """The cycles of one program's launch."""

    fetch: float  # The prefetching core is busy
    write: float  # The dispatching core is busy
    start: float  # Between the go signal, or the end of the program before, and the kernels' start


def launch_cycles(program: LaunchedProgram, spec: DeviceSpec) -> LaunchCycles:
    """Cycles of the worker cores that the launch of a program takes on a device.

    The kernel's binaries and the configuration that cores share are multicast; arguments of each core are written core
    by core. A program without any configuration needs fewer commands.
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


class Replay(StrEnum):
    """How the commands of programs reach the device."""

    FIRST_CALL = "first call"  # the host makes them and copies the binaries; compiling is not counted
    WARM_CACHE = "warm program cache"  # the host makes them
    TRACE = "trace replay"  # they lie on the device


@dataclass(frozen=True, slots=True)
class Launch:
    """A program in a queue."""

    program: LaunchedProgram  # What has to be brought
    kernel_cycles: float  # How long its kernels run

    @property
    def name(self) -> str:
        """The device operation."""
        return self.program.name


def kernel_end_nanoseconds(queue: Sequence[Launch], spec: DeviceSpec, replay: Replay) -> list[float]:
    """The end of the kernels of each program of a queue, from the time its first command can be made or fetched."""
    return _ends(queue, _launched(queue, spec), spec, replay)


def between_kernels_nanoseconds(
    queue: Sequence[Launch], spec: DeviceSpec, replays: Collection[Replay] = tuple(Replay)
) -> dict[Replay, float]:
    """The time without kernels between the first command and the last kernel's end, by the way of launching."""
    kernels = sum(nanoseconds(launch.kernel_cycles, spec.clock_hz) for launch in queue)
    launched = _launched(queue, spec)
    return {replay: _ends(queue, launched, spec, replay)[-1] - kernels if queue else 0.0 for replay in replays}


class _Launched(NamedTuple):
    """The launch time of a program in nanoseconds, and its bytes in the configuration buffer of each core."""

    fetch: float
    write: float
    run: float  # From the go signal to the end of its kernels
    core_bytes: int


def _launched(queue: Sequence[Launch], spec: DeviceSpec) -> list[_Launched]:
    cycles = [(launch_cycles(launch.program, spec), launch) for launch in queue]
    return [
        _Launched(
            nanoseconds(taken.fetch, spec.clock_hz),
            nanoseconds(taken.write, spec.clock_hz),
            nanoseconds(taken.start + launch.kernel_cycles, spec.clock_hz),
            launch.program.core_bytes,
        )
        for taken, launch in cycles
    ]


def _ends(queue: Sequence[Launch], launched: Sequence[_Launched], spec: DeviceSpec, replay: Replay) -> list[float]:
    room = spec.costs_of(DispatchCosts).config_buffer_bytes
    fetched = written = ended = 0.0
    kernel_ends: list[float] = []
    freed, waiting_bytes = 0, 0
    ready_nanoseconds = _ready_nanoseconds(queue, spec, replay)
    for (fetch, write, run, core_bytes), ready in zip(launched, ready_nanoseconds, strict=True):
        waiting_bytes += core_bytes
        while waiting_bytes > room and freed < len(kernel_ends):
            waiting_bytes -= launched[freed].core_bytes
            freed += 1
        has_room = kernel_ends[freed - 1] if freed else 0.0
        fetched = max(fetched, ready) + fetch
        written = max(max(written, has_room, ready) + write, fetched)
        ended = max(written, ended) + run
        kernel_ends.append(ended)
    return kernel_ends


def gaps_nanoseconds(queue: Sequence[Launch], spec: DeviceSpec, replay: Replay) -> list[float]:
    """The time without kernels before each program of a queue; the sum is `between_kernels_nanoseconds`."""
    kernel_ends = kernel_end_nanoseconds(queue, spec, replay)
    return [
        end - before - nanoseconds(launch.kernel_cycles, spec.clock_hz)
        for launch, before, end in zip(queue, (0.0, *kernel_ends), kernel_ends, strict=False)
    ]


def _ready_nanoseconds(queue: Sequence[Launch], spec: DeviceSpec, replay: Replay) -> list[float]:
    """The times when the host has made the commands of each program, ahead of the device without limit."""
    if replay is Replay.TRACE:
        return [0.0] * len(queue)
    costs, now, known = spec.costs_of(DispatchCosts), 0.0, set()
    result = []
    for launch in queue:
        now += costs.host_launch_nanoseconds
        key = launch.program.key
        if replay is Replay.FIRST_CALL and (key is None or key not in known):
            now += launch.program.code_bytes / costs.host_bytes_per_second * 1e9
            known.add(key)
        result.append(now)
    return result
