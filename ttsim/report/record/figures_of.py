"""The figures of a record, from reports and plans: each computed once, here."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from device.memory.layouts import TensorSpec
from device.plan import MadeTensor
from device.spec.device_spec import DeviceSpec, catalog_names, load_spec
from device.time.stages import nanoseconds
from ops.launch import Launch, Replay, gaps_nanoseconds
from ttsim.report.cycles.figures import CallTime, OperationTime
from ttsim.report.network.figures import PassOperation
from ttsim.report.record.figures import CoreSpan, DeviceFigures, KernelTime, RecordedOperation

LEAST_NANOSECONDS: Final = 1  # of a kernel: viewers take none for a measurement that failed


@dataclass(frozen=True, slots=True, kw_only=True)
class RanStep:
    """A device operation that ran, as its plan has it."""

    name: str  # As a graph capture shows it
    key: Hashable  # Equal keys mean the same program
    cached: bool  # Whether the program was found in the cache
    inputs: tuple[TensorSpec, ...]  # What it reads
    output: TensorSpec  # What it makes, or writes into
    attributes: tuple[tuple[str, str], ...] = ()  # What the real library's profiler prints of it, by name
    fidelity_phases: int = 0  # Fidelity phases, 1 (LoFi) to 4 (HiFi4); 0 if it multiplies nothing


def recorded_operations(
    steps: Sequence[RanStep],
    passed: Sequence[PassOperation],
    calls: Iterable[CallTime],
    launches: Sequence[Launch],
    spec: DeviceSpec,
) -> tuple[RecordedOperation, ...]:
    """The device operations of a record.

    Args:
        steps: What ran.
        passed: The same operations in the report on the network.
        calls: The calls that ran them, in the report on cycles.
        launches: Of the same operations.
    """
    programs: dict[Hashable, int] = {}
    found, now = [], 0
    times = (one for call in calls for one in call.in_order)
    gaps = gaps_nanoseconds(launches, spec, Replay.TRACE)
    for step, one, taken, gap in zip(steps, passed, times, gaps, strict=True):
        time = taken if isinstance(taken, OperationTime) else None
        now += round(gap * spec.clock_hz / 1e9)
        spans = () if time is None else core_spans(time)
        found.append(
            RecordedOperation(
                number=one.number,
                name=step.name,
                call=one.call,
                program=programs.setdefault((step.name, step.key), len(programs) + 1),
                cached=step.cached,
                inputs=step.inputs,
                output=step.output,
                attributes=step.attributes,
                fidelity_phases=step.fidelity_phases,
                start_cycle=now,
                end_cycle=now + one.cycles,
                gap_nanoseconds=round(gap),
                core_count=one.core_count,
                nanoseconds=None if time is None else kernel_time(time, spans, spec),
                time=time,
                spans=spans,
            )
        )
        now += one.cycles
    return tuple(found)


def core_spans(time: OperationTime) -> tuple[CoreSpan, ...]:
    """Every core's part of an operation, row by row; a core of several groups is there until the last of them ends."""
    ends: dict[tuple[int, int], int] = {}
    for group in time.groups:
        for column, row in group.coordinates:
            ends[row, column] = max(ends.get((row, column), 0), group.cycles)
    return tuple(CoreSpan(column=column, row=row, cycles=ends[row, column]) for row, column in sorted(ends))


def kernel_time(time: OperationTime, spans: Sequence[CoreSpan], spec: DeviceSpec) -> KernelTime:
    """The times of an operation."""
    ends = [one.cycles for one in spans] or [time.cycles]
    return KernelTime(
        kernel=kernel_nanoseconds(time.cycles, spec),
        least=kernel_nanoseconds(min(ends), spec),
        mean=kernel_nanoseconds(sum(ends) / len(ends), spec),
        ideal=kernel_nanoseconds(time.roofline.cycles, spec),
        products=kernel_nanoseconds(time.roofline.math_cycles, spec),
        dram=kernel_nanoseconds(time.roofline.dram_cycles, spec),
    )


def kernel_nanoseconds(cycles: float, spec: DeviceSpec) -> int:
    """Cycles in whole nanoseconds; a kernel takes at least `LEAST_NANOSECONDS`."""
    return max(round(nanoseconds(cycles, spec.clock_hz)), LEAST_NANOSECONDS)


def numbered(tensors: Iterable[MadeTensor]) -> dict[MadeTensor, int]:
    """A number for each tensor: that of its buffer; what sees a buffer as another tensor is counted behind the last."""
    each = list(dict.fromkeys(tensors))
    views, found = [], {}
    taken: set[int] = set()
    for one in each:
        if one.number in taken:
            views.append(one)
            continue
        taken.add(one.number)
        found[one] = one.number
    found.update((one, number) for number, one in enumerate(views, start=max(taken, default=0) + 1))
    return found


def device_figures(spec: DeviceSpec, l1_small_bytes: int) -> DeviceFigures:
    """A device, with so many bytes of each core's L1 set apart for index tables."""
    cores, bank = spec.grid.cores, spec.l1.usable_bytes - l1_small_bytes
    return DeviceFigures(
        device_id=0,
        num_y_cores=spec.grid.rows,
        num_x_cores=spec.grid.cols,
        num_y_compute_cores=spec.grid.rows,
        num_x_compute_cores=spec.grid.cols,
        worker_l1_size=spec.l1.bytes,
        l1_num_banks=cores,
        l1_bank_size=bank,
        address_at_first_l1_bank=spec.l1.base_bytes,
        address_at_first_l1_cb_buffer=spec.l1.base_bytes,
        num_banks_per_storage_core=1,
        num_compute_cores=cores,
        num_storage_cores=0,
        total_l1_memory=spec.l1.bytes * cores,
        total_l1_for_tensors=bank * cores,
        total_l1_for_interleaved_buffers=bank * cores,
        total_l1_for_sharded_buffers=bank * cores,
        cb_limit=spec.l1.usable_bytes,
    )


def known_arch(spec: DeviceSpec) -> str:
    """The family of a device if a device of the catalog has it, too; else nothing, for viewers refuse what is new."""
    return spec.family if any(load_spec(name).family == spec.family for name in catalog_names()) else ""
