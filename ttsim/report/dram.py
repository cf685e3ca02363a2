"""DRAM use of device operations: row hits, refresh, and the resulting rate.

The cycles of a report do not depend on it. The mapping of addresses to channels, bank groups and rows is not published,
so figures assume GDDR6 with a common mapping.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from statistics import mean
from typing import Final, NamedTuple

from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType
from device.spec.device_spec import DeviceSpec
from device.time.dram import DramStream, DramTime, dram_time
from ops.op_models import load_spec
from ttsim.report.cycles import OperationTime, share_of
from ttsim.report.formatting import TableColumn, count_of, percent, short_name, table_lines, time, wrapped
from ttsim.report.rows import Column, Row

LARGE_PAGE: Final = 512  # bytes of a page from which on the closed form is close


class DramUse(Row):
    """The DRAM traffic of an operation, and the time that GDDR6 would take if nothing else limited the operation."""

    operation: OperationTime
    streams: tuple[DramStream, ...]
    taken: DramTime

    name = Column[str](lambda use: use.operation.name)
    moved_bytes = Column[int](lambda use: use.taken.moved_bytes)
    page_bytes = Column[tuple[int, ...]](lambda use: tuple(stream.page_bytes for stream in use.streams))
    nanoseconds = Column[float](lambda use: use.taken.nanoseconds)
    share = Column[float](lambda use: share_of(use.taken.nanoseconds, use.operation.nanoseconds))  # Of its time
    bytes_per_second = Column[float](lambda use: use.taken.bytes_per_second)  # That GDDR6 would give
    peak_share = Column[float](
        lambda use: share_of(use.taken.bytes_per_second, use.operation.spec.dram.peak_bytes_per_second)
    )
    row_hit_share = Column[float](lambda use: use.taken.row_hit_share)
    refresh_share = Column[float](lambda use: use.taken.refresh_share)
    bound_by = Column[str](lambda use: use.taken.bound_by)


def dram_uses(operations: Sequence[OperationTime]) -> tuple[DramUse, ...]:
    """The operations that use DRAM, in order."""
    asked = ((op, _streams(op)) for op in operations)
    return tuple(DramUse(op, streams, dram_time(streams, op.spec)) for op, streams in asked if streams)


def _streams(op: OperationTime) -> tuple[DramStream, ...]:
    """The read streams, split by the sizes of the inputs in DRAM, and the write streams."""
    taken, ends = op.taken, op.timed.ends
    cores = sum(moved.cores.num_cores() for moved in taken.moved if moved.dram_bytes) or taken.cores
    read = [] if ends is None else [tensor for tensor in (ends.read, *ends.others) if _in_dram(tensor)]
    written = [ends.written] if ends is not None and _in_dram(ends.written) else []
    return (
        *_sides(taken.dram_read_bytes, read, cores, op.spec, writes=False),
        *_sides(taken.dram_written_bytes, written, cores, op.spec, writes=True),
    )


def _sides(
    moved: int, tensors: Sequence[TensorSpec], cores: int, spec: DeviceSpec, *, writes: bool
) -> list[DramStream]:
    """The streams of one direction; bytes of no known tensor, such as tables of a halo, count as packet-sized pages."""
    buffers = [buffer for buffer in (tensor.buffer(spec) for tensor in tensors) if buffer.size_bytes]
    together = sum(buffer.size_bytes for buffer in buffers)
    if not moved:
        return []
    if not together:
        size = min(moved, spec.noc.packet_bytes)
        return [DramStream(moved, size, -(-moved // size), cores, writes)]
    return [
        DramStream(
            round(moved * buffer.size_bytes / together),
            buffer.page_bytes,
            -(-buffer.size_bytes // buffer.page_bytes),
            cores,
            writes,
        )
        for buffer in buffers
    ]


def _in_dram(tensor: TensorSpec) -> bool:
    return tensor.memory_config.buffer_type is BufferType.DRAM


class Simulated(NamedTuple):
    """A stream that a DRAM simulator ran; a copy reads and writes equal numbers of pages."""

    banks: int
    page_bytes: int
    pages: int
    sources: int
    kind: str  # "read", "write" or "copy"
    bank_bytes_per_second: float
    row_hit_share: float

    @property
    def streams(self) -> tuple[DramStream, ...]:
        """The streams, of all banks."""
        directions = {"read": (False,), "write": (True,), "copy": (False, True)}[self.kind]
        moved = self.pages * self.page_bytes
        return tuple(DramStream(moved, self.page_bytes, self.pages, self.sources, writes) for writes in directions)


@cache
def simulated() -> tuple[Simulated, ...]:
    """The streams that were simulated."""
    table = tomllib.loads(files("ttsim.report").joinpath("dram_simulated.toml").read_text(encoding="utf-8"))
    return tuple(Simulated(*row) for row in table["streams"])


def error_of(stream: Simulated) -> float:
    """The relative error of the closed form's rate."""
    spec = load_spec("wormhole_n150" if stream.banks == load_spec("wormhole_n150").dram.banks else "blackhole_p150")
    dram = replace(spec.dram, bank_bytes_per_second=SIMULATED_BYTES_PER_SECOND)
    taken = dram_time(stream.streams, spec.replace(dram=dram, dram_costs_bank_channels=1))
    return taken.bytes_per_second / stream.banks / stream.bank_bytes_per_second - 1


SIMULATED_BYTES_PER_SECOND: Final = 32 / 1.14e-9  # of a channel: bursts of 32 bytes in two cycles of 0.57 ns


def basis() -> str:
    """The basis of the figures, with their errors."""
    errors = [(abs(error_of(stream)), stream.page_bytes >= LARGE_PAGE) for stream in simulated()]
    large = [error for error, is_large in errors if is_large]
    return (
        f"DRAM: a closed form of GDDR6, {percent(mean(error for error, _ in errors))} off Ramulator 2 in the mean of "
        f"{len(errors)} streams, {percent(max(errors)[0])} at most; {percent(mean(large))} and {percent(max(large))} "
        f"for pages of {LARGE_PAGE} bytes and more. The order of addresses in a channel is a guess, no figure was "
        "measured on a card, and the cycles above do not depend on it."
    )


DRAM_TABLE: Final[Sequence[TableColumn[DramUse]]] = (
    TableColumn("operation", lambda use: short_name(use.name), words=True),
    TableColumn("DRAM time", lambda use: time(use.nanoseconds)),
    TableColumn("of operation", lambda use: percent(use.share)),
    TableColumn("rate", lambda use: f"{count_of(use.bytes_per_second)}B/s"),
    TableColumn("of peak", lambda use: percent(use.peak_share), goes=2),
    TableColumn("row hits", lambda use: percent(use.row_hit_share)),
    TableColumn("refresh", lambda use: percent(use.refresh_share), goes=1),
    TableColumn("bound by", lambda use: use.bound_by, words=True),
    TableColumn("pages", lambda use: " ".join(f"{size:,}" for size in dict.fromkeys(use.page_bytes)), goes=3),
)


def dram_lines(operations: Sequence[OperationTime], width: int | None = None) -> list[str]:
    """The table of the operations that use DRAM, and the basis of its figures."""
    uses = dram_uses(operations)
    if not uses:
        return ["DRAM: no operation uses it."]
    return [*table_lines(DRAM_TABLE, uses, width), *wrapped(basis(), width, indent=2)]
