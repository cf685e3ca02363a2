"""Reports for a terminal, drawn with rich. All figures come from the summary."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from device.spec.device_spec import DeviceSpec
from ops.sensitivity.fields import fields_of
from ttsim.report.accuracy import Accuracy
from ttsim.report.advice import Advice, advice_lines, help_lines, paste_lines, sensitivity_lines
from ttsim.report.cycle_report import CycleReport, call_lines, launch_summary
from ttsim.report.cycles import CallTime, OperationTime, StageTime
from ttsim.report.devices import DeviceFigures, differences, moved
from ttsim.report.explain import explain_inclusion, not_counting, operation_lines, untimed_lines
from ttsim.report.formatting import (
    TableColumn,
    by,
    counted,
    cycles,
    heaviest,
    percent,
    short_name,
    table_lines,
    time,
    wrapped,
)
from ttsim.report.memory import AnyBufferUse, CircularBufferUse, LayerResult, OperationUse, Partition, Summary
from ttsim.report.writers.terminal import escaped, say, show

MOST_OPERATIONS: Final = 20  # of a call in a table, without details
SHOWN_SHARE = 0.005  # stages below this share are left out; a table shows more stages than a text


def print_call(console: Console, call: CallTime, *, details: bool) -> None:
    """The operations of a call and the untimed ones; with `details` their stages and an explanation."""
    most = None if details else MOST_OPERATIONS
    show(console, call_lines([call], console.width, most))
    _, left_out = heaviest(call.operations, most, lambda op: op.cycles)
    print_left_out(console, left_out, "take less time")
    if details:
        for operation in call.operations:
            show(console, ["", short_name(operation.name)], style="bold")
            show(console, stage_lines(operation, console.width))
        console.print()
        for line in operation_lines(call):
            say(console, line, indent=2)
    for line in untimed_lines(call):
        say(console, line, indent=2, style="red")


def print_advice(console: Console, advice: Advice, *, details: bool) -> None:
    """Suggestions for the calls; with `details` also the figures of the machine that they depend on."""
    console.print()
    for line in advice_lines(advice) if details else help_lines(advice):
        say(console, line, indent=4)
    for line in paste_lines(advice):
        show(console, code_lines(line, console.width))
    if details:
        show(console, sensitivity_lines(advice, console.width))


def code_lines(code: str, width: int) -> list[str]:
    """The arguments of a call, wrapped between arguments or after a bracket."""
    spaced = wrapped(code.replace("(", "( "), width, indent=4)
    return [line.replace("( ", "(") for line in spaced]


def cycles_line(report: CycleReport, call: CallTime) -> str:
    """A call in one line."""
    total, missing = call.total, not_counting(call.untimed)
    if not call.operations:
        return f"no operation that takes cycles{missing}"
    longest = max(call.operations, key=lambda op: op.cycles)
    return (
        f"{cycles(total.cycles)} in {time(total.nanoseconds)} at {report.clock_hz / 1e9:g} GHz{missing}, "
        f"{percent(longest.share)} of it {longest.name}, bound by {longest.bound_by}; matrix units of the device "
        f"{percent(total.math.device_utilization)} busy"
    )


def stage_lines(operation: OperationTime, width: int) -> list[str]:
    """The stages of an operation's slowest cores, as shares of its cycles.

    Waits and the critical path are known if the program was simulated block by block.
    """
    walked = any(stage.critical_share for stage in operation.stages)  # otherwise it is the slowest of its stages
    columns = (
        TableColumn[StageTime]("stage", lambda stage: stage.stage, words=True),
        TableColumn[StageTime]("busy cycles", lambda stage: cycles(stage.busy_cycles)),
        TableColumn[StageTime]("busy", lambda stage: percent(stage.busy_share)),
        TableColumn[StageTime]("waiting", lambda stage: percent(stage.stall_share) if walked else ""),
        TableColumn[StageTime]("critical", lambda stage: percent(stage.critical_share) if walked else ""),
    )
    shares = ((max(own.busy_share, own.stall_share, own.critical_share), own) for own in operation.stages)
    return table_lines(columns, (stage for most, stage in shares if most >= SHOWN_SHARE), width)


LABEL = 11  # characters of a headline's label
LONGEST_TITLE = 60  # places of a name above its figures, or behind its label
LONGEST_CORES = 28  # characters of a list of cores; longer lists are printed as a number


def _cores(ranges: str) -> str:
    return ranges if len(ranges) <= LONGEST_CORES else ""


def _of(text: Callable[[Summary], str]) -> Callable[[LayerResult], str]:
    return lambda result: "" if result.summary is None else text(result.summary)


def _near(text: Callable[[Accuracy], str]) -> Callable[[LayerResult], str]:
    return _of(lambda summary: "" if summary.accuracy is None else text(summary.accuracy))


def _taken(text: Callable[[CycleReport], str]) -> Callable[[LayerResult], str]:
    return _of(lambda summary: "" if summary.cycles is None else text(summary.cycles))


def _each(text: Callable[[Partition], str]) -> Callable[[LayerResult], str]:
    return _of(lambda summary: ", ".join(sorted(set(map(text, summary.partitions)))))


def _name(result: LayerResult) -> str:
    return f"{short_name(result.layer.name)}{' failed' if result.summary is None else ''}"


def _output(summary: Summary) -> str:
    output = summary.output
    return f"{output.height}x{output.width}x{output.shape[-1]} {output.dtype}"


OVERVIEW: Final[Sequence[TableColumn[LayerResult]]] = (
    TableColumn("layer", _name, words=True),
    TableColumn("output", _of(_output), words=True, goes=3),
    TableColumn("scheme", _each(lambda cut: cut.scheme.removesuffix("_SHARDED")), words=True, goes=7),
    TableColumn("cores", _each(lambda cut: str(cut.output_cores)), goes=5),
    TableColumn("peak L1", _of(lambda summary: kib(summary.l1.peak_total_bytes)), goes=2),
    TableColumn("of L1", _of(lambda summary: f"{summary.l1.peak_share:.1%}"), goes=8),
    TableColumn("headroom", _of(lambda summary: kib(summary.l1.headroom_bytes)), goes=6),
    TableColumn("PCC", _near(lambda accuracy: f"{accuracy.pcc:.6f}"), goes=9),
    TableColumn("max error", _near(lambda accuracy: f"{accuracy.max_abs_error:.3g}"), goes=1),
    TableColumn("cycles", _taken(lambda report: cycles(report.cycles))),
    TableColumn("time", _taken(lambda report: time(report.nanoseconds)), goes=4),
)
MEMORY: Final[Sequence[TableColumn[OperationUse]]] = (
    TableColumn("operation", lambda op: short_name(op.name), words=True),
    TableColumn("circular", lambda op: kib(op.circular_bytes)),
    TableColumn("buffers", lambda op: kib(op.buffer_bytes)),
    TableColumn("of L1", lambda op: f"{op.used_share:.1%}", goes=1),
    TableColumn("headroom", lambda op: kib(op.headroom_bytes)),
)


def _where(use: AnyBufferUse) -> str:
    if isinstance(use, CircularBufferUse):
        return _cores(use.cores) or f"{use.core_count} cores"
    return f"{use.memory} {use.memory_layout}"


BUFFERS: Final[Sequence[TableColumn[AnyBufferUse]]] = (
    TableColumn("(circular) buffer", lambda use: short_name(use.name), words=True),
    TableColumn("bytes a core", lambda use: f"{use.core_bytes:,}"),
    TableColumn("of L1", lambda use: "view" if use.view else f"{use.l1_share:.1%}" if use.l1_share else ""),
    TableColumn("address", lambda use: str(use.address)),
    TableColumn("where", _where, words=True, goes=1),
)


def print_layers(
    console: Console, results: Sequence[LayerResult], *, each: bool = True, details: bool = False, notes: bool = True
) -> None:
    """A line for each of several layers, then, with `each`, every layer in full; errors are always printed.

    `details` adds every operation, buffer and stage, and all advice; `notes` explains what cycles count.
    """
    if len(results) > 1:
        print_overview(console, results)
    for result in results:
        if each or result.summary is None or len(results) == 1:
            print_layer(console, result, details=details)
    report = next((result.summary.cycles for result in results if result.summary and result.summary.cycles), None)
    if report is not None and notes:
        say(console, explain_inclusion(report.includes, report.leaves_out), indent=2)


def print_layer(console: Console, result: LayerResult, *, details: bool = False) -> None:
    """One layer: its request, its results, and its operations; `details` adds their buffers and stages."""
    layer = result.layer
    show(console, ["", short_name(layer.name, LONGEST_TITLE)], style="bold")
    image = by((layer.batch_size, layer.input_height, layer.input_width, layer.in_channels))
    source = f"{image} {layer.input_dtype} {layer.input_layout} in {layer.input_memory}"
    window = f"kernel {by(layer.kernel_size)}, stride {by(layer.stride)}"
    say(console, f"{source} -> {layer.out_channels} channels, {window}", indent=LABEL)
    if result.summary is None:
        say(console, result.error or "no result", indent=2, style="red")
        print_operations(console, result.reached, details=details)
        return
    for line in headlines(result.summary):
        say(console, line, indent=LABEL)
    print_operations(console, result.summary.operations, details=details)
    if result.summary.cycles is not None:
        for call in result.summary.cycles.calls:
            console.print()
            print_call(console, call, details=details)
        if result.summary.cycles.advice is not None:
            print_advice(console, result.summary.cycles.advice, details=details)


def headlines(summary: Summary) -> Iterator[str]:
    """Output, partitions, L1, accuracy and cycles, a line each."""
    output, use, near = summary.output, summary.l1, summary.accuracy
    yield f"device     {short_name(summary.device, LONGEST_TITLE)}"
    yield f"output     {list(output.shape)} {output.dtype} {output.layout}, {output.height}x{output.width} an image"
    yield f"place      {output.place}"
    for cut in summary.partitions:
        cores = f"{cut.input_cores} -> {cut.output_cores} cores {_cores(cut.cores)}".rstrip()
        shards = f"shards {by(cut.input_shard)} -> {by(cut.output_shard)}"
        blocks = f"blocks of {by(cut.act_block_tiles)} tiles, sub-blocks of {by(cut.subblock_tiles)}"
        times = f"{cut.convolutions} convolutions, " if cut.convolutions > 1 else ""
        readers = "split reader" if cut.split_reader else "one reader"
        yield f"partition  {times}{cut.scheme}, {cores}, {shards}, {blocks}, {cut.k_blocks} K blocks, {readers}"
    yield (
        f"L1         peak {kib(use.peak_total_bytes)} of {kib(use.usable_bytes)} a core ({use.peak_share:.1%}): "
        f"circular buffers {kib(use.peak_circular_bytes)}, buffers {kib(use.peak_buffer_bytes)}; headroom "
        f"{kib(use.headroom_bytes)} ({use.headroom_share:.1%}) in {short_name(use.tightest) or 'no operation'}"
    )
    if near is not None:
        yield (
            f"accuracy   PCC {near.pcc:.7f} against float64, max error {near.max_abs_error:.4g}, rms "
            f"{near.rms_error:.4g} (the output's deviation is {near.exact_std:.4g})"
        )
    if summary.cycles is not None:
        yield from (f"cycles     {cycles_line(summary.cycles, call)}" for call in summary.cycles.calls)
        if summary.cycles.launches.readings:
            yield f"between    {launch_summary(summary.cycles.launches)}, not counting compiling"


def print_operations(console: Console, operations: Sequence[OperationUse], *, details: bool) -> None:
    """The L1 use of each device operation, a line each; with `details` every buffer of each."""
    if not operations:
        return
    console.print()
    *before, last = operations  # the operation that failed, if one did
    fullest, left_out = heaviest(before, None if details else MOST_OPERATIONS, lambda op: op.used_share)
    show(console, table_lines(MEMORY, [*fullest, last], console.width))
    print_left_out(console, left_out, "use less L1")
    for operation in operations if details else ():
        show(console, ["", short_name(operation.name, LONGEST_TITLE)], style="bold")
        uses: list[AnyBufferUse] = [*operation.circular_buffers, *operation.buffers]
        show(console, table_lines(BUFFERS, uses, console.width))


def print_left_out(console: Console, count: int, why: str) -> None:
    """A line about the operations that a table omits, if any."""
    if count > 0:
        say(console, f"{counted(count, 'more operation')}, which {why}: -v prints all", indent=2)


def print_overview(console: Console, results: Sequence[LayerResult]) -> None:
    """One line per layer; less important columns are dropped until the table fits."""
    head, *lines = table_lines(OVERVIEW, results, console.width)
    show(console, [head], style="bold")
    for result, line in zip(results, lines, strict=True):
        show(console, [line], style="red" if result.summary is None else "")


def kib(size_bytes: int) -> str:
    """Bytes in KiB."""
    return f"{size_bytes / 1024:,.1f} KiB"


def print_devices(console: Console, specs: Sequence[DeviceSpec]) -> None:
    """One line for each device; all figures of a single device, and the differences of two devices."""
    table = _plain_table()
    table.add_column("device", overflow="fold")
    table.add_column("architecture", no_wrap=True)
    for heading in ("cores", "clock", "L1 a core", "DRAM banks", "DRAM"):
        table.add_column(heading, justify="right", no_wrap=True)
    for spec in specs:
        cores, clock = f"{spec.grid.cols}x{spec.grid.rows}", f"{spec.clock_hz / 1e9:g} GHz"
        dram = (str(spec.dram.banks), f"{spec.dram.peak_bytes_per_second / 1e9:g} GB/s")
        table.add_row(escaped(spec.name), escaped(spec.arch), cores, clock, kib(spec.l1.usable_bytes), *dram)
    console.print(table)
    if len(specs) == 1:
        for field in fields_of(specs[0]):
            console.print(escaped(f"{field.name} = {field.value} {field.unit}".rstrip()), highlight=False)
    elif len(specs) == 2:
        print_differences(console, *specs)


def print_differences(console: Console, first: DeviceSpec, second: DeviceSpec) -> None:
    """A row for each field that differs, below the name of its table."""
    changes = differences(first, second)
    text = "1 field differs" if len(changes) == 1 else f"{len(changes) or 'no'} fields differ"
    console.print(escaped(f"\n{text}\nA: {first.name}\nB: {second.name}\n"), highlight=False)
    table = _plain_table()
    for heading in ("field", "unit", "A", "B", "B/A"):
        left = heading in ("field", "unit")
        table.add_column(heading, justify="left" if left else "right", no_wrap=left, overflow="fold")
    part = ""
    for change in changes:
        inner, _, name = change.name.rpartition(".")
        if inner != part:
            table.add_row(escaped(f"[{inner}]"))
            part = inner
        ratio = "" if change.ratio is None else f"{change.ratio:.3g}"
        table.add_row(*map(escaped, (name, change.unit, _shown(change.before), _shown(change.after), ratio)))
    if changes:
        console.print(table)


def _plain_table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}".removesuffix(".0") if type(value) in (int, float) else str(value)


LEGEND = (
    "moves: measured on small calls of every program. Cycles are those of plans that are held, launch those that pass "
    "between their kernels; numbers are elasticities, log(cycles) over log(figure). On another clock a cycle takes "
    "another time."
)


def print_fields(console: Console, device: DeviceFigures) -> None:
    """Each field with its value, then its effects and its source."""
    show(console, [short_name(device.name, console.width)], style="bold")
    for field in device.fields:
        value = f"{field.value:,}" if type(field.value) in (int, float) else str(field.value)
        better = f", {field.better} is better" if field.better else ""
        say(console, f"{field.name} = {' '.join(filter(None, (value, field.unit)))}{better}", indent=4)
        say(console, f"    moves: {'; '.join(moved(field)) or 'nothing here'}", indent=8)
        say(console, f"    source: {field.source}", indent=8)
    say(console, LEGEND, indent=2)
