"""Tables of a page, each a caption and a list of columns. All figures are those of the reports."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from ttsim.report import network
from ttsim.report.advice import SENSITIVITY_TABLE, SENSITIVITY_TITLE, Change
from ttsim.report.cycles import CoreTime, OperationTime, Totals
from ttsim.report.explain import FIDELITIES
from ttsim.report.formatting import TableColumn, by, count_of, cycles, percent, time
from ttsim.report.memory import DEVICE_OPERATION, L1Block, OperationUse, Partition
from ttsim.report.network import OpRun, Sum
from ttsim.report.pages import Part
from ttsim.report.writers.html.elements import Markup, table

OVERVIEW: Final = (
    "What ran",
    (
        TableColumn[Part]("name", lambda part: part.name, words=True),
        TableColumn[Part]("verdict", lambda part: "failed" if part.error else "runs", words=True),
        TableColumn[Part]("cycles", lambda part: "" if part.total is None else cycles(part.total.cycles)),
        TableColumn[Part]("time", lambda part: "" if part.total is None else time(part.total.nanoseconds)),
        TableColumn[Part]("PCC", lambda part: "" if part.accuracy is None else f"{part.accuracy.pcc:.6f}"),
    ),
)


def _detail(text: Callable[[OperationTime], str]) -> Callable[[OpRun], str]:
    return lambda op: "" if op.time is None else text(op.time)


def _count(figure: Callable[[OperationTime], float]) -> Callable[[OpRun], str]:
    return _detail(lambda op: count_of(figure(op)) if figure(op) else "")


def _flops(figure: Callable[[OperationTime], float]) -> Callable[[OpRun], str]:
    return _detail(lambda op: count_of(figure(op)) if op.math.issued_flops else "")


SHARED: Final = {column.heading: column for column in network.OPERATIONS}
NUMBER: Final = SHARED["#"]
NAME: Final = TableColumn[OpRun]("operation", lambda op: op.name, words=True)
CALLED_BY: Final = TableColumn[OpRun]("called by", lambda op: op.place, words=True)
CYCLES: Final = TableColumn[OpRun]("cycles", lambda op: "" if op.untimed else cycles(op.cycles))
OF_ROOF: Final = TableColumn[OpRun](
    "of roof", _detail(lambda op: percent(op.roofline.share) if op.roofline.cycles else "")
)
OPERATIONS: Final = (
    *(NUMBER, NAME, CALLED_BY, CYCLES),
    *(SHARED[heading] for heading in ("time", "share", "bound by", "cores")),
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
    OF_ROOF,
    TableColumn(
        "error expected", _detail(lambda op: "not measured" if op.error.share is None else percent(op.error.share))
    ),
)
UNTIMED: Final = TableColumn[OpRun]("not timed", lambda op: op.untimed, words=True)
IN_ORDER: Final = ("Device operations in order", (*OPERATIONS, *L1, UNTIMED))
IN_DETAIL: Final = ("Device operations in order", (*OPERATIONS, *DETAILS, *L1, *RATED, UNTIMED))


def stages_table(operations: Sequence[OpRun], stages: Sequence[str]) -> Markup:
    """The busy share of each stage on an operation's slowest cores."""

    def busy(name: str) -> TableColumn[OpRun]:
        shares = _detail(lambda op: next((percent(stage.busy_share) for stage in op.stages if stage.stage == name), ""))
        return TableColumn(name, shares)

    caption = "Stages of the slowest cores: busy, of the operation's cycles"
    return table(caption, (NUMBER, NAME, *map(busy, stages)), operations)


L1_BLOCKS: Final = (
    "Buffers in L1 of a core",
    (
        TableColumn[L1Block]("buffer", lambda block: block.held.name, words=True),
        TableColumn[L1Block]("kind", lambda block: block.held.kind, words=True),
        TableColumn[L1Block]("bytes a core", lambda block: f"{block.held.size_bytes:,}"),
        TableColumn[L1Block]("address", lambda block: f"{block.held.address:,}"),
        TableColumn[L1Block]("from #", lambda block: f"{block.first}"),
        TableColumn[L1Block]("to #", lambda block: f"{block.last}"),
        TableColumn[L1Block]("cores", lambda block: block.held.cores, words=True),
        TableColumn[L1Block]("made by", lambda block: block.held.made, words=True),
    ),
)
MEMORY: Final = (
    "L1 of a core",
    (
        TableColumn[OperationUse]("operation", lambda op: op.name, words=True),
        TableColumn[OperationUse]("circular buffers B", lambda op: f"{op.circular_bytes:,}"),
        TableColumn[OperationUse]("buffers B", lambda op: f"{op.buffer_bytes:,}"),
        TableColumn[OperationUse]("together B", lambda op: f"{op.used_bytes:,}"),
        TableColumn[OperationUse]("of L1", lambda op: percent(op.used_share)),
        TableColumn[OperationUse]("headroom B", lambda op: f"{op.headroom_bytes:,}"),
    ),
)
GRID: Final = (
    "Cycles and bytes of each core (column-row)",
    (
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
    ),
)


def _least(name: str) -> TableColumn[OpRun]:
    """The least time of a resource, as a share of the operation's time."""
    return TableColumn(name, _detail(lambda op: percent(op.limit_shares[name])))


def _intensity(op: OperationTime) -> str:
    flops = op.roofline.issued_flops_per_dram_byte
    return f"{flops:,.1f}" if flops else ""


ROOFS: Final = (
    "What the machine needs at least, of what each operation takes",
    (
        NUMBER,
        NAME,
        *map(_least, ("math", "DRAM", "network")),
        TableColumn[OpRun]("of roof", _detail(lambda op: percent(op.roofline.share))),
        TableColumn[OpRun]("roof", _detail(lambda op: op.roofline.bound), words=True),
        TableColumn[OpRun]("issued FLOP a DRAM B", _detail(_intensity)),
    ),
)


def _bound(op: OperationTime) -> str:
    stages = ", ".join((op.bound_by, *op.tied_with))
    does = next((stage.does for stage in op.stages if stage.stage == op.bound_by), "")
    return f"{stages}: {does}" if does else stages


EXCESSES: Final = (
    "Operations far above their roofs",
    (
        NUMBER,
        TableColumn[OpRun]("operation", lambda op: op.name.removesuffix(DEVICE_OPERATION), words=True),
        TableColumn[OpRun]("cycles", lambda op: cycles(op.cycles)),
        TableColumn[OpRun]("above its roof", _detail(lambda op: cycles(op.cycles_above_roof))),
        TableColumn[OpRun]("of all", lambda op: percent(op.above_roof_share)),
        TableColumn[OpRun]("bound by", _detail(_bound), words=True),
        CALLED_BY,
    ),
)
FIGURES: Final = (
    TableColumn[tuple[str, str]]("what", lambda row: row[0], words=True),
    TableColumn[tuple[str, str]]("figure", lambda row: row[1]),
)


def flops_table(total: Totals) -> Markup:
    """Issued and useful FLOP."""
    math, issued = total.math, "issued FLOP (inserted zeros and padding to tiles included; what tt-perf-report shows)"
    rows = {
        issued: f"{math.issued_flops:,}",
        "useful FLOP (those of the definition)": f"{math.useful_flops:,}",
        "useful, of the issued": percent(math.useful_share),
        "useful FLOP/s": f"{count_of(math.flops_per_second)}FLOP/s",
        "matrix units of the device busy": percent(math.device_utilization),
    }
    return table("Multiplications and additions", FIGURES, rows.items() if math.issued_flops else [])


def accuracy_table(part: Part) -> Markup:
    """How close the output is to float64; empty if that is not known."""
    rows = {} if part.accuracy is None else {
        "PCC": f"{part.accuracy.pcc:.7f}",
        "largest absolute error": f"{part.accuracy.max_abs_error:.4g}",
        "rms error": f"{part.accuracy.rms_error:.4g}",
        "deviation of the exact output": f"{part.accuracy.exact_std:.4g}",
    }  # fmt: skip
    return table("The output against float64", FIGURES, rows.items())


PARTITIONS: Final = (
    "How convolutions were cut up",
    (
        TableColumn[Partition]("scheme", lambda cut: cut.scheme, words=True),
        TableColumn[Partition]("convolutions", lambda cut: f"{cut.convolutions}"),
        TableColumn[Partition]("input cores", lambda cut: f"{cut.input_cores}"),
        TableColumn[Partition]("output cores", lambda cut: f"{cut.output_cores}"),
        TableColumn[Partition]("input shard", lambda cut: by(cut.input_shard)),
        TableColumn[Partition]("output shard", lambda cut: by(cut.output_shard)),
        TableColumn[Partition]("block tiles", lambda cut: by(cut.act_block_tiles)),
        TableColumn[Partition]("sub-block tiles", lambda cut: by(cut.subblock_tiles)),
        TableColumn[Partition]("K blocks", lambda cut: f"{cut.k_blocks}"),
        TableColumn[Partition]("split reader", lambda cut: "yes" if cut.split_reader else "no"),
    ),
)
CHANGES: Final = (
    "Changes of the call, each tried on the model",
    (
        TableColumn[Change]("change", lambda change: change.text, words=True),
        TableColumn[Change]("cycles", lambda change: cycles(change.cycles)),
        TableColumn[Change]("saved", lambda change: percent(change.saved_share)),
        TableColumn[Change]("price", lambda change: change.price, words=True),
    ),
)
MACHINE: Final = (SENSITIVITY_TITLE, SENSITIVITY_TABLE)
SUMS: Final = (
    TableColumn[Sum]("name", lambda sums: sums.name or network.NOWHERE, words=True),
    TableColumn[Sum]("calls", lambda sums: f"{sums.calls}"),
    replace(network.COUNT, heading="operations"),
    *network.SUMS[1:],
)


def sums_table(caption: str, sums: Sequence[Sum]) -> Markup:
    """Sums over operations, the longest first."""
    return table(caption, SUMS, sorted(sums, key=lambda row: -row.cycles))
