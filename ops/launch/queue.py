"""Programs that follow each other: fetched, written and run by three parts that work ahead of each other.

While kernels run, the dispatching core writes the next programs into the cores' configuration buffers, as many as
these hold; before it the prefetching core fetches them. So the time between two kernels is what of that is not hidden.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from device.spec.device_spec import DeviceSpec
from device.time.stages import nanoseconds
from ops.launch.costs import DispatchCosts
from ops.launch.program import LaunchedProgram, launch_cycles


class Replay(StrEnum):
    """How the commands of programs come to the device."""

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
    """When the kernels of each program of a queue end; it begins when the first command is there to be made or fetched.

    Args:
        replay: How the commands come.
    """
    return _ends(_brought(queue, spec), _made_nanoseconds(queue, spec, replay), spec)


def between_kernels_nanoseconds(queue: Sequence[Launch], spec: DeviceSpec) -> dict[Replay, float]:
    """Of the time from the first command to the last kernel's end, what no kernel fills, however the commands come."""
    if not queue:
        return dict.fromkeys(Replay, 0.0)
    kernels = sum(nanoseconds(launch.kernel_cycles, spec.clock_hz) for launch in queue)
    brought = _brought(queue, spec)
    return {replay: _ends(brought, _made_nanoseconds(queue, spec, replay), spec)[-1] - kernels for replay in Replay}


class _Brought(NamedTuple):
    """What a launch takes, in nanoseconds, however its commands come."""

    fetch: float  # The prefetching core is busy
    write: float  # The dispatching core is busy
    run: float  # From the go signal to the end of the kernels
    core_bytes: int  # In the configuration buffer of each core meanwhile


def _brought(queue: Sequence[Launch], spec: DeviceSpec) -> list[_Brought]:
    """Every launch of a queue."""
    clock_hz, cycles = spec.clock_hz, [launch_cycles(launch.program, spec) for launch in queue]
    return [
        _Brought(
            nanoseconds(taken.fetch, clock_hz),
            nanoseconds(taken.write, clock_hz),
            nanoseconds(taken.start + launch.kernel_cycles, clock_hz),
            launch.program.core_bytes,
        )
        for launch, taken in zip(queue, cycles, strict=True)
    ]


def _ends(launched: Sequence[_Brought], made_nanoseconds: Sequence[float], spec: DeviceSpec) -> list[float]:
    """As `kernel_end_nanoseconds`, by what each launch takes and when its commands are made."""
    room = spec.costs_of(DispatchCosts).config_buffer_bytes
    fetched = written = ended = 0.0
    ends: list[float] = []
    freed, waiting_bytes = 0, 0
    for launch, made in zip(launched, made_nanoseconds, strict=True):
        waiting_bytes += launch.core_bytes
        while waiting_bytes > room and freed < len(ends):
            waiting_bytes -= launched[freed].core_bytes
            freed += 1
        has_room = ends[freed - 1] if freed else 0.0
        fetched = max(fetched, made) + launch.fetch
        written = max(max(written, has_room) + launch.write, fetched)
        ended = max(written, ended) + launch.run
        ends.append(ended)
    return ends


def gaps_nanoseconds(queue: Sequence[Launch], spec: DeviceSpec, replay: Replay) -> list[float]:
    """What no kernel fills before each program of a queue; together `between_kernels_nanoseconds`."""
    ends = kernel_end_nanoseconds(queue, spec, replay)
    return [
        end - before - nanoseconds(launch.kernel_cycles, spec.clock_hz)
        for launch, before, end in zip(queue, (0.0, *ends), ends, strict=False)
    ]


def _made_nanoseconds(queue: Sequence[Launch], spec: DeviceSpec, replay: Replay) -> list[float]:
    """When the host has made the commands of each program; it works ahead of the device without end."""
    if replay is Replay.TRACE:
        return [0.0] * len(queue)
    costs, now, known = spec.costs_of(DispatchCosts), 0.0, set()
    made = []
    for launch in queue:
        now += costs.host_launch_nanoseconds
        key = launch.program.key
        if replay is Replay.FIRST_CALL and (key is None or key not in known):
            now += launch.program.code_bytes / costs.host_bytes_per_second * 1e9
            known.add(key)
        made.append(now)
    return made
