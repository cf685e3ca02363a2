"""Tables of a page. Every figure is taken from the reports as it is."""

from collections.abc import Sequence

from ttsim.report.accuracy import Accuracy
from ttsim.report.advice import SENSITIVITY_HEADINGS, Advice, Change, sensitivity_rows
from ttsim.report.cycles import MathUse, Totals
from ttsim.report.explain import FIDELITIES
from ttsim.report.formatting import count_of, cycles, percent, time
from ttsim.report.l1_map import L1Map
from ttsim.report.memory import DEVICE_OPERATION, OperationUse, Partition
from ttsim.report.network import Sum
from ttsim.report.page_parts import Excess, Grid, Page, Roof
from ttsim.report.runs import OpRun
from ttsim.report.writers.html.elements import Markup, table

OPERATION_HEADINGS = ("#", "operation", "called by", "cycles", "time", "share", "bound by", "cores", "fidelity",
                 "issued FLOP", "useful FLOP", "DRAM read B", "DRAM written B", "network B", "L1 B a core", "of L1",
                 "of roof", "error expected", "not timed")  # fmt: skip


def overview_table(page: Page) -> Markup:
    """One row for each part."""
    rows = []
    for one in page.parts:
        taken = ("", "") if one.total is None else (cycles(one.total.cycles), time(one.total.nanoseconds))
        near = "" if one.accuracy is None else f"{one.accuracy.pcc:.6f}"
        rows.append((one.name, "failed" if one.error else "runs", *taken, near))
    return table("What ran", ("name", "verdict", "cycles", "time", "PCC"), rows, words=(0, 1))


def operations_table(operations: Sequence[OpRun], *, detailed: bool) -> Markup:
    """The device operations."""
    return table(
        "Device operations in order",
        OPERATION_HEADINGS,
        (_operation_row(op, detailed=detailed) for op in operations),
        words=(1, 2, 6, 8, 18),
    )


def stages_table(operations: Sequence[OpRun], stages: Sequence[str]) -> Markup:
    """How busy each stage of an operation's slowest cores is."""
    rows = []
    for one in operations:
        if one.time is not None:
            own = {stage.stage: stage for stage in one.time.stages}
            rows.append(
                (f"{one.number}", one.name, *(percent(own[name].busy_share) if name in own else "" for name in stages))
            )
    return table(
        "Stages of the slowest cores: busy, of the operation's cycles", ("#", "operation", *stages), rows, words=(1,)
    )


def l1_table(memory: L1Map) -> Markup:
    """Every buffer in L1."""
    rows = [
        (
            one.held.name,
            one.held.kind,
            f"{one.held.size_bytes:,}",
            f"{one.held.address:,}",
            f"{one.first}",
            f"{one.last}",
            one.held.cores,
            one.held.made,
        )
        for one in memory.blocks
    ]
    headings = ("buffer", "kind", "bytes a core", "address", "from #", "to #", "cores", "made by")
    return table("Buffers in L1 of a core", headings, rows, words=(0, 1, 6, 7))


def memory_table(operations: Sequence[OperationUse]) -> Markup:
    """What each operation leaves free."""
    rows = [
        (
            one.name,
            f"{one.circular_bytes:,}",
            f"{one.buffer_bytes:,}",
            f"{one.used_bytes:,}",
            percent(one.used_share),
            f"{one.headroom_bytes:,}",
        )
        for one in operations
    ]
    headings = ("operation", "circular buffers B", "buffers B", "together B", "of L1", "headroom B")
    return table("L1 of a core", headings, rows)


def grid_table(grid: Grid) -> Markup:
    """The numbers of the pictures, core by core."""
    rows = [
        (
            f"{core.column}-{core.row}",
            cycles(core.cycles),
            percent(core.share),
            cycles(core.busy_cycles),
            percent(core.busy_share),
            cycles(core.stall_cycles),
            percent(core.stall_share),
            f"{cell.circular_bytes:,}",
            f"{core.dram_bytes:,}",
            f"{core.network_bytes:,}",
        )
        for cell, core in ((one, one.core) for one in grid.cells)
    ]
    headings = ("core", "at work", "share", "busiest stage", "share", "waiting", "share", "circular buffers B",
                "DRAM B", "networks B")  # fmt: skip
    return table("Cycles and bytes of each core (column-row)", headings, rows)


def roof_table(roofs: Sequence[Roof]) -> Markup:
    """What resources need at least."""
    rows = []
    for one in roofs:
        if one.op.time is not None:
            least = one.op.time.roofline
            shares = (percent(one.math_share), percent(one.dram_share), percent(one.network_share))
            intensity = f"{least.issued_flops_per_dram_byte:,.1f}" if least.issued_flops_per_dram_byte else ""
            rows.append((f"{one.op.number}", one.op.name, *shares, percent(least.share), least.bound, intensity))
    headings = ("#", "operation", "math", "DRAM", "network", "of roof", "roof", "issued FLOP a DRAM B")
    return table("What the machine needs at least, of what each operation takes", headings, rows, words=(1, 6))


def excesses_table(excesses: Sequence[Excess]) -> Markup:
    """Operations far above their roofs."""
    rows = [
        (
            f"{one.op.number}",
            one.op.name.removesuffix(DEVICE_OPERATION),
            cycles(one.op.cycles),
            cycles(one.cycles),
            percent(one.share),
            f"{', '.join(one.stages)}: {one.does}" if one.does else ", ".join(one.stages),
            one.op.place,
        )
        for one in excesses
    ]
    headings = ("#", "operation", "cycles", "above its roof", "of all", "bound by", "called by")
    return table("Operations far above their roofs", headings, rows, words=(1, 5, 6))


def flops_table(total: Totals) -> Markup:
    """Issued against useful work."""
    math = total.math
    rows = _math_rows(math) if math.issued_flops else []
    return table("Multiplications and additions", ("what", "figure"), rows)


def accuracy_table(accuracy: Accuracy) -> Markup:
    """How close the output is to float64."""
    rows = [
        ("PCC", f"{accuracy.pcc:.7f}"),
        ("largest absolute error", f"{accuracy.max_abs_error:.4g}"),
        ("rms error", f"{accuracy.rms_error:.4g}"),
        ("deviation of the exact output", f"{accuracy.exact_std:.4g}"),
    ]
    return table("The output against float64", ("what", "figure"), rows)


def partitions_table(partitions: Sequence[Partition]) -> Markup:
    """How convolutions were cut up."""
    rows = [
        (
            one.scheme,
            f"{one.convolutions}",
            f"{one.input_cores}",
            f"{one.output_cores}",
            _by(one.input_shard),
            _by(one.output_shard),
            _by(one.act_block_tiles),
            _by(one.subblock_tiles),
            f"{one.k_blocks}",
            "yes" if one.split_reader else "no",
        )
        for one in partitions
    ]
    headings = ("scheme", "convolutions", "input cores", "output cores", "input shard", "output shard", "block tiles",
                "sub-block tiles", "K blocks", "split reader")  # fmt: skip
    return table("How convolutions were cut up", headings, rows)


def advice_table(advice: Advice) -> Markup:
    """Changes that were tried, with what they give."""
    together = [] if advice.together is None else [advice.together]
    rows = [_change_row(one) for one in (*advice.changes, *together, *advice.at_a_price)]
    return table(
        "Changes of the call, each tried on the model", ("change", "cycles", "saved", "price"), rows, words=(0, 3)
    )


def machine_table(advice: Advice) -> Markup:
    """On which part of the machine it hangs."""
    rows = sensitivity_rows(advice)
    return table(
        "Which part of the machine it hangs on (d log of cycles and time / d log of a figure)",
        SENSITIVITY_HEADINGS,
        rows,
    )


def sums_table(caption: str, sums: Sequence[Sum]) -> Markup:
    """Operations put together, the longest first."""
    rows = [
        (
            one.name or "(no line of a script)",
            f"{one.calls}",
            f"{one.count}",
            cycles(one.cycles),
            time(one.nanoseconds),
            percent(one.share),
            f"{one.l1_bytes:,}",
        )
        for one in sorted(sums, key=lambda one: -one.cycles)
    ]
    return table(caption, ("name", "calls", "operations", "cycles", "time", "share", "L1 B"), rows)


def _operation_row(one: OpRun, *, detailed: bool) -> tuple[str, ...]:
    l1 = (f"{one.l1_bytes:,}", percent(one.l1_share))
    number = f"{one.number}"
    if one.untimed:
        return (number, one.name, one.place, *[""] * 11, *l1, "", "", one.untimed)
    told = (number, one.name, one.place, cycles(one.cycles), time(one.nanoseconds), percent(one.width_share))
    took = one.time
    if took is None or not detailed:
        return (*told, one.bound_by, f"{one.core_count}", *[""] * 6, *l1, "", "", "")
    math, traffic = took.math, took.traffic
    return (
        *told,
        one.bound_by,
        f"{one.core_count}",
        FIDELITIES.get(took.fidelity_phases, ""),
        count_of(math.issued_flops) if math.issued_flops else "",
        count_of(math.useful_flops) if math.issued_flops else "",
        count_of(traffic.dram_read_bytes) if traffic.dram_read_bytes else "",
        count_of(traffic.dram_written_bytes) if traffic.dram_written_bytes else "",
        count_of(traffic.network_bytes) if traffic.network_bytes else "",
        *l1,
        percent(took.roofline.share) if took.roofline.cycles else "",
        "not measured" if took.error.share is None else percent(took.error.share),
        "",
    )


def _math_rows(math: MathUse) -> list[tuple[str, str]]:
    return [
        (
            "issued FLOP (inserted zeros and padding to tiles included; what tt-perf-report shows)",
            f"{math.issued_flops:,}",
        ),
        ("useful FLOP (those of the definition)", f"{math.useful_flops:,}"),
        ("useful, of the issued", percent(math.useful_share)),
        ("useful FLOP/s", f"{count_of(math.flops_per_second)}FLOP/s"),
        ("matrix units of the device busy", percent(math.device_utilization)),
    ]


def _change_row(one: Change) -> tuple[str, ...]:
    return (one.text, cycles(one.cycles), percent(one.saved_share), one.price)


def _by(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))
