"""Charts of pages: timeline, L1 map, roofline. Marks show rows of the tables beside them."""

from collections.abc import Sequence
from itertools import chain, groupby
from math import ceil, floor, log10
from typing import Final

from device.time.stages import Stage
from ttsim.report.comparison_page import Compared
from ttsim.report.cycles import OperationTime
from ttsim.report.explain import FIDELITIES
from ttsim.report.formatting import count_of
from ttsim.report.links import DIRECTIONS, LinkUse
from ttsim.report.memory import CIRCULAR, L1Map
from ttsim.report.network import OpRun
from ttsim.report.page_tables import StageRow
from ttsim.report.sections import Mark, Section, axis, links, points, rectangles

BUSY: Final = 0.62  # of a lane's height; the rest shows the critical path
MOST_DRAWN: Final = 12  # operations whose links a page draws, so that it stays small
NAMED: Final = 2000  # operations that still have names on an axis
STAGE_LEGEND: Final = {
    "busy": "a stage of the slowest cores is busy: the stronger, the more of the time",
    "critical": "its part of the critical path",
}
BUFFER_LEGEND: Final = {
    CIRCULAR: "circular buffer of the running program",
    "L1": "tensor in L1",
    "L1_SMALL": "index tables in L1_SMALL",
    "reserved": "firmware and reserved space",
    "free": "free",
}


def stage_rows(operations: Sequence[OpRun]) -> list[StageRow]:
    """The stages with busy or critical cycles, by operation in pipeline order."""
    return [
        StageRow(op, stage)
        for op in operations
        for stage in (op.time.stages if op.time else ())
        if stage.busy_cycles or stage.critical_cycles
    ]


def timeline(operations: Sequence[OpRun], stages: Sequence[StageRow], baseline: Sequence[Compared] = ()) -> Section:
    """A timeline with lanes for the operations, for a baseline, and for each stage of the slowest cores."""
    used = {row.stage.stage for row in stages}
    names = [
        "operations",
        *(["baseline"] if baseline else []),
        *(stage.value for stage in Stage if stage.value in used),
    ]
    lanes = {name: lane for lane, name in enumerate(names)}
    of_ops = [
        Mark(op.start_nanoseconds, op.start_nanoseconds + op.nanoseconds, 0, 1, op.name, op.number, label=op.name)
        for op in operations
        if op.cycles
    ]
    before, end = [], 0.0
    for at, row in enumerate(baseline):
        begin, end = end, end + (row.nanoseconds[0] or 0.0)
        before.append(Mark(begin, end, 1, 2, row.kind, at, label=row.kind))
    of_stages = []
    for at, (op, stage) in enumerate(stages):
        ends, lane = (op.start_nanoseconds, op.start_nanoseconds + op.nanoseconds), lanes[stage.stage]
        if stage.busy_cycles:
            of_stages.append(Mark(*ends, lane, lane + BUSY, "busy", at, stage.busy_share))
        if stage.critical_cycles:
            of_stages.append(Mark(*ends, lane + BUSY, lane + 1, "critical", at, stage.critical_share))
    return rectangles(
        "timeline",
        "Timeline",
        "Kernel time from left to right. Operations run one after the other; the lanes below show the stages of the "
        "slowest cores.",
        x=axis("kernel time", "ns", max(end, operations[0].runs.nanoseconds if operations else 0.0)),
        y=axis("", "lanes", len(lanes), names=names),
        marks={
            "operations": of_ops,
            "compared": [mark for mark in before if mark.right > mark.left],
            "stages": of_stages,
        },
        legend=STAGE_LEGEND if stages else {},
    )


def l1_chart(memory: L1Map, operations: Sequence[OpRun]) -> Section:
    """A chart of buffers in L1 of a core: operations to the right, addresses upward."""
    marks = [
        Mark(block.first, block.last + 1, block.held.address, block.held.address + block.held.size_bytes,
             block.held.kind, at, label=block.held.name)
        for at, block in enumerate(memory.blocks)
    ]  # fmt: skip
    reserved = Mark(0, memory.operations, 0, memory.base_bytes, "reserved", -1, label="reserved")
    kinds = {block.held.kind for block in memory.blocks} | {"reserved", "free"}
    names = [op.name for op in operations] if len(operations) <= NAMED else []
    ordered = sorted(marks, key=lambda mark: mark.color != CIRCULAR)
    return rectangles(
        "l1",
        "L1 of a core",
        "Addresses upward, one column for each operation, at its fullest moment. Circular buffers grow from below, "
        "tensors lie at the top.",
        x=axis("operation", "number", memory.operations, names=names),
        y=axis("address", "B", max([memory.end_bytes, *(mark.high for mark in marks)])),
        marks={"buffers": [reserved, *ordered]} if marks else {},
        legend={kind: text for kind, text in BUFFER_LEGEND.items() if kind in kinds},
        limit=("end of L1", memory.end_bytes),
    )


def roofline(operations: Sequence[OpRun]) -> Section | None:
    """A roofline chart: FLOP per DRAM byte to the right, FLOP per second upward; None if no operation has both."""
    placed = [
        (at, op.time) for at, op in enumerate(operations) if op.time and op.time.roofline.issued_flops_per_dram_byte
    ]
    if not placed:
        return None
    timed = [time for _, time in placed]
    peaks, slope = _peaks(timed), _dram_rate(timed)
    work = [(time.roofline.issued_flops_per_dram_byte, time.issued_flops_per_second) for time in timed]
    x = _decades("work of each byte from or to DRAM", "FLOP/B",
                 [*(across for across, _ in work), *(peak / slope for peak in peaks.values() if slope)])  # fmt: skip
    y = _decades("work of each second", "FLOP/s", [*(rate for _, rate in work), *peaks.values()])
    lines = []
    if slope and peaks:
        first, last = max(x["start"], y["start"] / slope), max(peaks.values()) / slope
        lines.append((f"DRAM {count_of(slope)}B/s", [(first, first * slope), (last, last * slope)]))
    for phases, peak in peaks.items():
        name = f"{FIDELITIES.get(phases, 'matrix units')} {count_of(peak)}FLOP/s"
        lines.append((name, [(peak / slope if slope else x["start"], peak), (x["end"], peak)]))
    return points(
        "roofline",
        "Roofline",
        "Each point is an operation that multiplies and moves bytes from or to DRAM. The machine can do what lies "
        "below the lines.",
        x=x,
        y=y,
        source="roofs",
        marks=[(*rates, operations[at].name, at) for (at, _), rates in zip(placed, work, strict=True)],
        lines=lines,
    )


def link_chart(uses: Sequence[LinkUse]) -> Section | None:
    """The links of the operations with the longest busy links, on the grid; None without links."""
    drawn = sorted(sorted(uses, key=lambda use: -use.nanoseconds)[:MOST_DRAWN], key=lambda use: use.number)
    if not drawn:
        return None
    nodes = drawn[0].nodes
    return links(
        "links",
        "Links of the networks",
        "Each square is a node of the networks, a worker core where it has a dark rim, D for DRAM. Arrows are links, "
        "with the loads of the cycle model.",
        size=(nodes.cols, nodes.rows),
        names=[[nodes.name((col, row), network) for row in range(nodes.rows) for col in range(nodes.cols)]
               for network in range(len(DIRECTIONS))],
        operations=[
            (use.number, use.name, use.nanoseconds / use.moved_bytes, use.operation.nanoseconds,
             [list(chain.from_iterable(rows)) for rows in use.loads.values()])
            for use in drawn
        ],
        first=max(drawn, key=lambda use: use.nanoseconds).number,
    )  # fmt: skip


def _decades(label: str, unit: str, values: Sequence[float]) -> Section:
    """A logarithmic axis between two powers of ten."""
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return axis(label, unit, 10.0 ** max(high, low + 1), start=10.0**low, log=True)


def _peaks(timed: Sequence[OperationTime]) -> dict[int, float]:
    """The peak FLOP/s of all matrix units by fidelity phases, from the first operation with most matrix cycles."""
    ops_of_phases = groupby(sorted(timed, key=lambda op: op.fidelity_phases), lambda op: op.fidelity_phases)
    longest = [(phases, max(ops, key=lambda op: op.roofline.math_cycles)) for phases, ops in ops_of_phases]
    return {
        phases: op.math.issued_flops / _nanoseconds(op, op.roofline.math_cycles) * 1e9
        for phases, op in longest
        if op.roofline.math_cycles
    }


def _dram_rate(timed: Sequence[OperationTime]) -> float:
    """The peak DRAM bytes per second; 0 if no operation keeps DRAM busy for a cycle."""
    most = max(timed, key=lambda time: time.roofline.dram_cycles)
    if not most.roofline.dram_cycles:
        return 0.0
    return most.sums.dram_bytes / _nanoseconds(most, most.roofline.dram_cycles) * 1e9


def _nanoseconds(time: OperationTime, cycles: int) -> float:
    return time.nanoseconds * cycles / time.cycles
