"""Tables of pages: a list of columns for each, with the figures of reports."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from ops.passes.sensitivity import Sensitivity
from ttsim.report.accuracy import Accuracy
from ttsim.report.advice import Change
from ttsim.report.cycles import CoreTime, OperationTime, StageTime, Totals
from ttsim.report.explain import FIDELITIES
from ttsim.report.formatting import by
from ttsim.report.links import ARROWS, LinkUse, Node, network_of, part_text
from ttsim.report.memory import L1Block, OperationUse, Partition
from ttsim.report.network import NOWHERE, OpRun, Sum
from ttsim.report.sections import Cell, Field

LISTED_LINKS: Final = 4  # of each operation


def _timed(figure: Callable[[OperationTime], Cell]) -> Callable[[OpRun], Cell]:
    """A figure of an operation's cycles; None without a model."""
    return lambda op: None if op.time is None else figure(op.time)


def _unless_zero(figure: Callable[[OperationTime], float]) -> Callable[[OpRun], Cell]:
    return _timed(lambda time: figure(time) or None)


OPERATIONS: Final[Sequence[Field[OpRun]]] = (
    Field("#", lambda op: op.number, "number"),
    Field("operation", lambda op: op.name, "operation"),
    Field("begins", lambda op: op.start_nanoseconds, "ns"),
    Field("time", lambda op: None if op.untimed else op.nanoseconds, "ns", total=True),
    Field("share", lambda op: None if op.untimed else op.share, "share", total=True),
    Field("at least", _unless_zero(lambda time: time.roof_nanoseconds), "ns", total=True),
    Field("of roof", _unless_zero(lambda time: time.roofline.share), "share"),
    Field("bound by", lambda op: op.bound_by),
    Field("called by", lambda op: op.place),
    Field("cycles", lambda op: None if op.untimed else op.cycles, "cycles", total=True),
    Field("cores", lambda op: op.core_count or None, "number"),
    Field("fidelity", _timed(lambda time: FIDELITIES.get(time.fidelity_phases, ""))),
    Field("issued", _unless_zero(lambda time: time.math.issued_flops), "FLOP", total=True),
    Field("useful", _timed(lambda time: time.math.useful_share if time.math.issued_flops else None), "share"),
    Field("DRAM read", _unless_zero(lambda time: time.traffic.dram_read_bytes), "B", total=True),
    Field("DRAM written", _unless_zero(lambda time: time.traffic.dram_written_bytes), "B", total=True),
    Field("network", _unless_zero(lambda time: time.traffic.network_bytes), "B", total=True),
    Field("L1 of a core", lambda op: op.l1_bytes, "B"),
    Field("of L1", lambda op: op.l1_share or None, "share"),
    Field(
        "error expected", _timed(lambda time: "not measured" if time.error.share is None else time.error.share), "share"
    ),
    Field("not timed", lambda op: op.untimed),
)


class StageRow(NamedTuple):
    """A stage of an operation."""

    op: OpRun
    stage: StageTime


STAGES: Final[Sequence[Field[StageRow]]] = (
    Field("#", lambda row: row.op.number, "number"),
    Field("operation", lambda row: row.op.name, "operation"),
    Field("stage", lambda row: row.stage.stage),
    Field("busy", lambda row: row.stage.busy_share, "share"),
    Field("waiting", lambda row: row.stage.stall_share, "share"),
    Field("critical path", lambda row: row.stage.critical_share, "share"),
    Field("busy cycles", lambda row: row.stage.busy_cycles, "cycles", total=True),
    Field("critical cycles", lambda row: row.stage.critical_cycles, "cycles", total=True),
    Field("what it does", lambda row: row.stage.does),
)


def _least(resource: str) -> Callable[[OpRun], Cell]:
    return _timed(lambda time: time.limit_shares[resource])


ROOFS: Final[Sequence[Field[OpRun]]] = (
    Field("#", lambda op: op.number, "number"),
    Field("operation", lambda op: op.name, "operation"),
    Field("time", lambda op: op.nanoseconds, "ns", total=True),
    Field("at least", _timed(lambda time: time.roof_nanoseconds), "ns", total=True),
    Field("above its roof", _timed(lambda time: time.cycles_above_roof), "cycles", total=True),
    Field("of all cycles", lambda op: op.above_roof_share, "share", total=True),
    Field("roof", _timed(lambda time: time.roofline.bound)),
    Field("math", _least("math"), "share"),
    Field("DRAM", _least("DRAM"), "share"),
    Field("network", _least("network"), "share"),
    Field("issued work", _unless_zero(lambda time: time.roofline.issued_flops_per_dram_byte), "FLOP/B"),
    Field("issued rate", _unless_zero(lambda time: time.issued_flops_per_second), "FLOP/s"),
    Field("bound by", _timed(lambda time: ", ".join((time.bound_by, *time.tied_with)))),
)
SUMS: Final[Sequence[Field[Sum]]] = (
    Field("time", lambda sums: sums.nanoseconds, "ns", total=True),
    Field("share", lambda sums: sums.share, "share", total=True),
    Field("cycles", lambda sums: sums.cycles, "cycles", total=True),
    Field("operations", lambda sums: sums.count, "number", total=True),
    Field("calls", lambda sums: sums.calls, "number"),
    Field("not timed", lambda sums: sums.untimed or None, "number", total=True),
    Field("most L1 of a core", lambda sums: sums.l1_bytes, "B"),
)
KINDS: Final = (Field[Sum]("operation", lambda sums: sums.name, "operation"), *SUMS)
LINES: Final = (
    Field[Sum]("line of the script", lambda sums: sums.name or NOWHERE),
    Field[Sum]("functions", lambda sums: ", ".join(sums.functions)),
    *SUMS,
)
BUFFERS: Final[Sequence[Field[L1Block]]] = (
    Field("buffer", lambda block: block.held.name),
    Field("kind", lambda block: block.held.kind),
    Field("size on a core", lambda block: block.held.size_bytes, "B"),
    Field("address", lambda block: block.held.address, "B"),
    Field("from #", lambda block: block.first, "number"),
    Field("to #", lambda block: block.last, "number"),
    Field("cores", lambda block: block.held.cores),
    Field("made by", lambda block: block.held.made),
)
MEMORY: Final[Sequence[Field[OperationUse]]] = (
    Field("operation", lambda use: use.name, "operation"),
    Field("circular buffers", lambda use: use.circular_bytes, "B"),
    Field("buffers", lambda use: use.buffer_bytes, "B"),
    Field("together", lambda use: use.used_bytes, "B"),
    Field("of L1", lambda use: use.used_share, "share"),
    Field("headroom", lambda use: use.headroom_bytes, "B"),
)
CORES: Final[Sequence[Field[CoreTime]]] = (
    Field("column", lambda core: core.column, "number"),
    Field("row", lambda core: core.row, "number"),
    Field("at work", lambda core: core.share, "share"),
    Field("busiest stage", lambda core: core.busy_share, "share"),
    Field("waiting", lambda core: core.stall_share, "share"),
    Field("circular buffers", lambda core: core.circular_bytes, "B"),
    Field("from and to DRAM", lambda core: core.dram_bytes, "B", total=True),
    Field("over the networks", lambda core: core.network_bytes, "B", total=True),
    Field("cycles at work", lambda core: core.cycles, "cycles"),
)
MAPPED: Final = [field.name for field in CORES[2:8]]
PARTITIONS: Final[Sequence[Field[Partition]]] = (
    Field("scheme", lambda cut: cut.scheme),
    Field("convolutions", lambda cut: cut.convolutions, "number"),
    Field("input cores", lambda cut: cut.input_cores, "number"),
    Field("output cores", lambda cut: cut.output_cores, "number"),
    Field("input shard", lambda cut: by(cut.input_shard)),
    Field("output shard", lambda cut: by(cut.output_shard)),
    Field("block tiles", lambda cut: by(cut.act_block_tiles)),
    Field("sub-block tiles", lambda cut: by(cut.subblock_tiles)),
    Field("K blocks", lambda cut: cut.k_blocks, "number"),
    Field("split reader", lambda cut: "yes" if cut.split_reader else "no"),
)
CHANGES: Final[Sequence[Field[Change]]] = (
    Field("change", lambda change: change.text),
    Field("saves", lambda change: change.saved_share, "share"),
    Field("cycles", lambda change: change.cycles, "cycles"),
    Field("price", lambda change: change.price),
    Field("arguments", lambda change: change.arguments, "code"),
)
SENSITIVITY: Final[Sequence[Field[Sensitivity]]] = (
    Field("figure of the device", lambda row: row.figure),
    Field("value", lambda row: row.value, "figure"),
    Field("dlog cycles", lambda row: row.cycles_elasticity, "slope"),
    Field("dlog time", lambda row: row.time_elasticity, "slope"),
    Field("time with twice", lambda row: row.doubled_time, "share"),
    Field("time with half", lambda row: row.halved_time, "share"),
)


class LinkRow(NamedTuple):
    """A link of an operation: its direction, the node that it leaves, and its bytes."""

    use: LinkUse
    direction: str
    leaves: Node
    moved_bytes: int

    @property
    def nanoseconds(self) -> float:
        """The time that the link needs for its bytes at its full rate."""
        return self.use.nanoseconds * self.moved_bytes / self.use.moved_bytes

    def name(self, node: Node) -> str:
        """The name of a node on the link's network."""
        return self.use.nodes.name(node, network_of(self.direction))


LINKS: Final[Sequence[Field[LinkRow]]] = (
    Field("#", lambda row: row.use.number, "number"),
    Field("operation", lambda row: row.use.name, "operation"),
    Field("from", lambda row: row.name(row.leaves)),
    Field("to", lambda row: row.name(row.use.after(row.direction, row.leaves))),
    Field("direction", lambda row: f"{ARROWS[row.direction]} {row.direction}"),
    Field("bytes", lambda row: row.moved_bytes, "B"),
    Field("link time", lambda row: row.nanoseconds, "ns"),
    Field("of operation", lambda row: row.nanoseconds / row.use.operation.nanoseconds, "share"),
    Field(
        "loaded by",
        lambda row: "; ".join(part_text(part, row.moved_bytes) for part in row.use.parts_of(row.direction, row.leaves)),
    ),
)


def link_rows(uses: Iterable[LinkUse]) -> list[LinkRow]:
    """The busiest links of each operation."""
    return [LinkRow(use, *link) for use in uses for link in islice(use.links(), LISTED_LINKS)]


WORK: Final[Sequence[Field[Totals]]] = (
    Field("issued FLOP, with inserted zeros and padding", lambda total: total.math.issued_flops, "FLOP"),
    Field("useful FLOP", lambda total: total.math.useful_flops, "FLOP"),
    Field("useful of issued", lambda total: total.math.useful_share, "share"),
    Field("useful rate", lambda total: total.math.flops_per_second, "FLOP/s"),
    Field("matrix units of the device busy", lambda total: total.math.device_utilization, "share"),
    Field("energy in J, unvalidated", lambda total: total.energy.joules, "figure"),
    Field("average power in W, unvalidated", lambda total: total.energy.average_watts, "figure"),
)
ACCURACY: Final[Sequence[Field[Accuracy]]] = (
    Field("PCC", lambda accuracy: accuracy.pcc, "figure"),
    Field("largest absolute error", lambda accuracy: accuracy.max_abs_error, "figure"),
    Field("rms error", lambda accuracy: accuracy.rms_error, "figure"),
    Field("deviation of the exact output", lambda accuracy: accuracy.exact_std, "figure"),
)
