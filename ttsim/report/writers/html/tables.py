"""Tables of a page, each a list of columns. Every figure is taken from the reports as it is."""

from collections.abc import Callable, Sequence
from typing import Final

from ttsim.report.accuracy import Accuracy
from ttsim.report.advice import SENSITIVITY_TABLE, TOLD_FIGURES, Advice, Change
from ttsim.report.charts import Grid
from ttsim.report.cycles import CoreTime, OperationTime, Totals
from ttsim.report.explain import FIDELITIES
from ttsim.report.formatting import TableColumn, count_of, cycles, percent, time
from ttsim.report.l1_map import L1Block, L1Map
from ttsim.report.memory import DEVICE_OPERATION, OperationUse, Partition
from ttsim.report.network import NOWHERE, Sum
from ttsim.report.pages import Page, Part
from ttsim.report.runs import OpRun
from ttsim.report.writers.html.elements import Markup, table

Told = tuple[str, str]  # What, and its figure
TOLD: Final = (
    TableColumn[Told]("what", lambda row: row[0], words=True),
    TableColumn[Told]("figure", lambda row: row[1]),
)


def overview_table(page: Page) -> Markup:
    """One row for each part."""
    columns = (
        TableColumn[Part]("name", lambda part: part.name, words=True),
        TableColumn[Part]("verdict", lambda part: "failed" if part.error else "runs", words=True),
        TableColumn[Part]("cycles", lambda part: "" if part.total is None else cycles(part.total.cycles)),
        TableColumn[Part]("time", lambda part: "" if part.total is None else time(part.total.nanoseconds)),
        TableColumn[Part]("PCC", lambda part: "" if part.accuracy is None else f"{part.accuracy.pcc:.6f}"),
    )
    return table("What ran", columns, page.parts)


def _timed(text: Callable[[OpRun], str]) -> Callable[[OpRun], str]:
    """The text of an operation that a model knows."""
    return lambda op: "" if op.untimed else text(op)


def _detail(text: Callable[[OperationTime], str]) -> Callable[[OpRun], str]:
    """The text of an operation whose cycles are known in detail."""
    return lambda op: "" if op.time is None else text(op.time)


def _count(figure: Callable[[OperationTime], float]) -> Callable[[OpRun], str]:
    """A number with a prefix; empty for none."""
    return _detail(lambda op: count_of(figure(op)) if figure(op) else "")


def _flops(figure: Callable[[OperationTime], float]) -> Callable[[OpRun], str]:
    """The same, of an operation that multiplies."""
    return _detail(lambda op: count_of(figure(op)) if op.math.issued_flops else "")


OPERATIONS: Final[Sequence[TableColumn[OpRun]]] = (
    TableColumn("#", lambda op: f"{op.number}"),
    TableColumn("operation", lambda op: op.name, words=True),
    TableColumn("called by", lambda op: op.place, words=True),
    TableColumn("cycles", _timed(lambda op: cycles(op.cycles))),
    TableColumn("time", _timed(lambda op: time(op.nanoseconds))),
    TableColumn("share", _timed(lambda op: percent(op.width_share))),
    TableColumn("bound by", _timed(lambda op: op.bound_by), words=True),
    TableColumn("cores", _timed(lambda op: f"{op.core_count}")),
)
DETAILS: Final[Sequence[TableColumn[OpRun]]] = (
    TableColumn("fidelity", _detail(lambda op: FIDELITIES.get(op.fidelity_phases, "")), words=True),
    TableColumn("issued FLOP", _flops(lambda op: op.math.issued_flops)),
    TableColumn("useful FLOP", _flops(lambda op: op.math.useful_flops)),
    TableColumn("DRAM read B", _count(lambda op: op.traffic.dram_read_bytes)),
    TableColumn("DRAM written B", _count(lambda op: op.traffic.dram_written_bytes)),
    TableColumn("network B", _count(lambda op: op.traffic.network_bytes)),
)
L1: Final[Sequence[TableColumn[OpRun]]] = (
    TableColumn("L1 B a core", lambda op: f"{op.l1_bytes:,}"),
    TableColumn("of L1", lambda op: percent(op.l1_share)),
)
RATED: Final[Sequence[TableColumn[OpRun]]] = (
    TableColumn("of roof", _detail(lambda op: percent(op.roofline.share) if op.roofline.cycles else "")),
    TableColumn(
        "error expected", _detail(lambda op: "not measured" if op.error.share is None else percent(op.error.share))
    ),
)
UNTIMED: Final[TableColumn[OpRun]] = TableColumn("not timed", lambda op: op.untimed, words=True)


def operations_table(operations: Sequence[OpRun], *, detailed: bool) -> Markup:
    """The device operations."""
    columns = (*OPERATIONS, *DETAILS, *L1, *RATED, UNTIMED) if detailed else (*OPERATIONS, *L1, UNTIMED)
    return table("Device operations in order", columns, operations)


def stages_table(operations: Sequence[OpRun], stages: Sequence[str]) -> Markup:
    """How busy each stage of an operation's slowest cores is."""

    def busy(name: str) -> TableColumn[OpRun]:
        return TableColumn(
            name,
            _detail(lambda op: next((percent(one.busy_share) for one in op.stages if one.stage == name), "")),
        )

    timed = [op for op in operations if op.time is not None]
    columns = (*OPERATIONS[:2], *map(busy, stages))
    return table("Stages of the slowest cores: busy, of the operation's cycles", columns, timed)


def l1_table(memory: L1Map) -> Markup:
    """Every buffer in L1."""
    columns = (
        TableColumn[L1Block]("buffer", lambda block: block.held.name, words=True),
        TableColumn[L1Block]("kind", lambda block: block.held.kind, words=True),
        TableColumn[L1Block]("bytes a core", lambda block: f"{block.held.size_bytes:,}"),
        TableColumn[L1Block]("address", lambda block: f"{block.held.address:,}"),
        TableColumn[L1Block]("from #", lambda block: f"{block.first}"),
        TableColumn[L1Block]("to #", lambda block: f"{block.last}"),
        TableColumn[L1Block]("cores", lambda block: block.held.cores, words=True),
        TableColumn[L1Block]("made by", lambda block: block.held.made, words=True),
    )
    return table("Buffers in L1 of a core", columns, memory.blocks)


def memory_table(operations: Sequence[OperationUse]) -> Markup:
    """What each operation leaves free."""
    columns = (
        TableColumn[OperationUse]("operation", lambda op: op.name, words=True),
        TableColumn[OperationUse]("circular buffers B", lambda op: f"{op.circular_bytes:,}"),
        TableColumn[OperationUse]("buffers B", lambda op: f"{op.buffer_bytes:,}"),
        TableColumn[OperationUse]("together B", lambda op: f"{op.used_bytes:,}"),
        TableColumn[OperationUse]("of L1", lambda op: percent(op.used_share)),
        TableColumn[OperationUse]("headroom B", lambda op: f"{op.headroom_bytes:,}"),
    )
    return table("L1 of a core", columns, operations)


def grid_table(grid: Grid) -> Markup:
    """The numbers of the pictures, core by core."""
    columns = (
        TableColumn[CoreTime]("core", lambda core: f"{core.column}-{core.row}", words=True),
        TableColumn[CoreTime]("at work", lambda core: cycles(core.cycles)),
        TableColumn[CoreTime]("share", lambda core: percent(core.share)),
        TableColumn[CoreTime]("busiest stage", lambda core: cycles(core.busy_cycles)),
        TableColumn[CoreTime]("share", lambda core: percent(core.busy_share)),
        TableColumn[CoreTime]("waiting", lambda core: cycles(core.stall_cycles)),
        TableColumn[CoreTime]("share", lambda core: percent(core.stall_share)),
        TableColumn[CoreTime]("circular buffers B", lambda core: f"{core.circular_bytes:,}"),
        TableColumn[CoreTime]("DRAM B", lambda core: f"{core.dram_bytes:,}"),
        TableColumn[CoreTime]("networks B", lambda core: f"{core.network_bytes:,}"),
    )
    return table("Cycles and bytes of each core (column-row)", columns, grid.cores)


def roof_table(roofs: Sequence[OpRun]) -> Markup:
    """What resources need at least, of what each operation takes."""

    def least(name: str) -> TableColumn[OpRun]:
        return TableColumn(name, _detail(lambda op: percent(op.limit_shares[name])))

    def intensity(op: OperationTime) -> str:
        flops = op.roofline.issued_flops_per_dram_byte
        return f"{flops:,.1f}" if flops else ""

    columns = (
        *OPERATIONS[:2],
        *map(least, ("math", "DRAM", "network")),
        TableColumn[OpRun]("of roof", _detail(lambda op: percent(op.roofline.share))),
        TableColumn[OpRun]("roof", _detail(lambda op: op.roofline.bound), words=True),
        TableColumn[OpRun]("issued FLOP a DRAM B", _detail(intensity)),
    )
    return table("What the machine needs at least, of what each operation takes", columns, roofs)


def excesses_table(excesses: Sequence[OpRun]) -> Markup:
    """Operations far above their roofs."""

    def bound(op: OperationTime) -> str:
        stages = ", ".join((op.bound_by, *op.tied_with))
        does = next((stage.does for stage in op.stages if stage.stage == op.bound_by), "")
        return f"{stages}: {does}" if does else stages

    columns = (
        OPERATIONS[0],
        TableColumn[OpRun]("operation", lambda op: op.name.removesuffix(DEVICE_OPERATION), words=True),
        TableColumn[OpRun]("cycles", lambda op: cycles(op.cycles)),
        TableColumn[OpRun]("above its roof", _detail(lambda op: cycles(op.cycles_above_roof))),
        TableColumn[OpRun]("of all", lambda op: percent(op.above_roof_share)),
        TableColumn[OpRun]("bound by", _detail(bound), words=True),
        TableColumn[OpRun]("called by", lambda op: op.place, words=True),
    )
    return table("Operations far above their roofs", columns, excesses)


def flops_table(total: Totals) -> Markup:
    """Issued against useful work."""
    math = total.math
    issued = "issued FLOP (inserted zeros and padding to tiles included; what tt-perf-report shows)"
    rows = [
        (issued, f"{math.issued_flops:,}"),
        ("useful FLOP (those of the definition)", f"{math.useful_flops:,}"),
        ("useful, of the issued", percent(math.useful_share)),
        ("useful FLOP/s", f"{count_of(math.flops_per_second)}FLOP/s"),
        ("matrix units of the device busy", percent(math.device_utilization)),
    ]
    return table("Multiplications and additions", TOLD, rows if math.issued_flops else [])


def accuracy_table(accuracy: Accuracy) -> Markup:
    """How close the output is to float64."""
    rows = [
        ("PCC", f"{accuracy.pcc:.7f}"),
        ("largest absolute error", f"{accuracy.max_abs_error:.4g}"),
        ("rms error", f"{accuracy.rms_error:.4g}"),
        ("deviation of the exact output", f"{accuracy.exact_std:.4g}"),
    ]
    return table("The output against float64", TOLD, rows)


def partitions_table(partitions: Sequence[Partition]) -> Markup:
    """How convolutions were cut up."""
    columns = (
        TableColumn[Partition]("scheme", lambda one: one.scheme, words=True),
        TableColumn[Partition]("convolutions", lambda one: f"{one.convolutions}"),
        TableColumn[Partition]("input cores", lambda one: f"{one.input_cores}"),
        TableColumn[Partition]("output cores", lambda one: f"{one.output_cores}"),
        TableColumn[Partition]("input shard", lambda one: _by(one.input_shard)),
        TableColumn[Partition]("output shard", lambda one: _by(one.output_shard)),
        TableColumn[Partition]("block tiles", lambda one: _by(one.act_block_tiles)),
        TableColumn[Partition]("sub-block tiles", lambda one: _by(one.subblock_tiles)),
        TableColumn[Partition]("K blocks", lambda one: f"{one.k_blocks}"),
        TableColumn[Partition]("split reader", lambda one: "yes" if one.split_reader else "no"),
    )
    return table("How convolutions were cut up", columns, partitions)


def advice_table(advice: Advice) -> Markup:
    """Changes that were tried, with what they give."""
    columns = (
        TableColumn[Change]("change", lambda one: one.text, words=True),
        TableColumn[Change]("cycles", lambda one: cycles(one.cycles)),
        TableColumn[Change]("saved", lambda one: percent(one.saved_share)),
        TableColumn[Change]("price", lambda one: one.price, words=True),
    )
    together = [] if advice.together is None else [advice.together]
    changes = (*advice.changes, *together, *advice.at_a_price)
    return table("Changes of the call, each tried on the model", columns, changes)


def machine_table(advice: Advice) -> Markup:
    """Which part of the machine bounds the call."""
    caption = "Which part of the machine it hangs on (d log of cycles and time / d log of a figure)"
    return table(caption, SENSITIVITY_TABLE, advice.sensitivity[:TOLD_FIGURES])


def sums_table(caption: str, sums: Sequence[Sum]) -> Markup:
    """Operations put together, the longest first."""
    columns = (
        TableColumn[Sum]("name", lambda one: one.name or NOWHERE, words=True),
        TableColumn[Sum]("calls", lambda one: f"{one.calls}"),
        TableColumn[Sum]("operations", lambda one: f"{one.count}"),
        TableColumn[Sum]("cycles", lambda one: cycles(one.cycles)),
        TableColumn[Sum]("time", lambda one: time(one.nanoseconds)),
        TableColumn[Sum]("share", lambda one: percent(one.share)),
        TableColumn[Sum]("L1 B", lambda one: f"{one.l1_bytes:,}"),
    )
    return table(caption, columns, sorted(sums, key=lambda one: -one.cycles))


def _by(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))
