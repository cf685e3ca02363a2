"""What of a plan's programs has to reach the cores before their kernels run: a reading beside that of cycles.

A plan knows the cores and circular buffers of its programs, and their model of cycles which processors they need. It
has no binaries and no runtime arguments; what is taken for them is said here, and in every report.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from device.plan import Operation, Plan
from device.spec.device_spec import DeviceSpec
from device.time.data_movement import hands
from device.time.stages import OperationCycles, Stage
from ops.launch.program import LaunchedProgram
from ops.launch.queue import Launch
from ops.readings.cycles import TimedOperation, operations_of

MOVING_KERNELS: Final = 2  # of a program, on as many data movement processors
COMPUTE_PROCESSORS: Final = 3  # unpackers, matrix unit and packer have one each
COMPUTE_STAGES: Final = frozenset({Stage.TILIZE, Stage.UNPACK, Stage.MATH, Stage.PACK, Stage.BIAS, Stage.UNTILIZE})
MULTICAST_STAGES: Final = frozenset({Stage.ACT_MULTICAST, Stage.WEIGHT_MULTICAST})
BINARY_BYTES: Final = 4096  # guess: a kernel of a few hundred instructions
ARGUMENTS: Final = 8  # guess: words of its own for each processor of each core
ASSUMPTIONS: Final = (
    f"each kernel binary has {BINARY_BYTES} bytes, each processor of a core {ARGUMENTS} arguments of its own",
    "where blocks are multicast, senders and receivers have a kernel each",
    "the host adds no time of Python, and the device waits for nobody but its programs",
)


def launches_of(
    plan: Plan, timed: Sequence[TimedOperation], spec: DeviceSpec, *, ran: Iterable[int] | None = None
) -> tuple[Launch, ...]:
    """The device operations of a plan as a queue of launches; one without a model of its cycles takes none.

    Args:
        timed: The reading of its cycles, in the same order.
        ran: Steps that ran, as of `operations_of`.
    """
    return tuple(
        Launch(_program(step, one.cycles, spec), 0.0 if one.cycles is None else one.cycles.cycles)
        for step, one in zip(operations_of(plan, ran), timed, strict=True)
    )


def _program(step: Operation, cycles: OperationCycles | None, spec: DeviceSpec) -> LaunchedProgram:
    """One program; an operation without a model of its cycles counts as one that uses all processors."""
    places = {buffer.cores for buffer in step.circular_buffers}
    stages = frozenset(Stage) - MULTICAST_STAGES if cycles is None else cycles.working
    processors = hands(spec, MOVING_KERNELS) + (COMPUTE_PROCESSORS if stages & COMPUTE_STAGES else 0)
    multicasts = len(stages & MULTICAST_STAGES)
    cores = max((place.num_cores() for place in places), default=1 if cycles is None else cycles.cores)
    groups = min(max(2**multicasts, len(places)), cores)
    return LaunchedProgram(
        name=step.name,
        cores=cores,
        processors=processors,
        binaries=processors + multicasts,
        binary_bytes=BINARY_BYTES,
        groups=groups,
        circular_buffers=len(step.circular_buffers),
        buffer_groups=min(max(len(places), 1), groups),
        arguments=ARGUMENTS,
        key=step.key,
    )
