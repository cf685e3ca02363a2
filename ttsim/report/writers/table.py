"""Reports for a terminal, drawn with rich. Every figure is taken from the summary as it is."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from ttsim.report.columns import fitting_columns
from ttsim.report.cycles.explain import cycles, explain_inclusion, time
from ttsim.report.cycles.launches import launch_summary
from ttsim.report.memory.accuracy import Accuracy
from ttsim.report.memory.figures import L1Use, LayerResult, OperationUse, Partition, Summary
from ttsim.report.writers.cycle_table import cycles_line, escaped, print_advice, print_call

WIDE = 160
GAP = 3  # of a column with a border: the border, and a space to each side
EDGE = 1  # the border behind the last column
OVERVIEW = ("layer", "output", "scheme", "cores", "peak L1", "of L1", "headroom", "PCC", "max error", "cycles", "time")
OVERVIEW_WORDS = ("layer", "output", "scheme")
OVERVIEW_LEAST_NEEDED = ("max error", "peak L1", "headroom", "output", "cores", "scheme", "of L1", "PCC", "time")


def print_layers(console: Console, results: Sequence[LayerResult], *, details: bool = True) -> None:
    """One line for each layer, if there are several; then every layer in detail, if asked for.

    Args:
        console: Where.
        results: The layers.
        details: False: the lines alone; a layer that failed, and why, is told anyway.
    """
    if len(results) > 1:
        console.print(overview(results, console.width))
    for result in results:
        if details or result.summary is None or len(results) == 1:
            print_layer(console, result)
    counted = next((one.summary.cycles for one in results if one.summary and one.summary.cycles), None)
    if counted is not None:
        console.print(explain_inclusion(counted.includes, counted.leaves_out), highlight=False, soft_wrap=True)


def print_layer(console: Console, result: LayerResult) -> None:
    """One layer: what was asked, what it gave, and its operations with their buffers."""
    layer = result.layer
    console.rule(f"[bold]{escaped(layer.name)}", align="left")
    image = by((layer.batch_size, layer.input_height, layer.input_width, layer.in_channels))
    kernel, stride = by(layer.kernel_size), by(layer.stride)
    console.print(
        f"{image} {layer.input_dtype} {layer.input_layout} in {layer.input_memory} -> {layer.out_channels} channels, "
        f"kernel {kernel}, stride {stride}",
        highlight=False,
    )
    if result.summary is None:
        console.print(f"[red]{escaped(result.error or 'no result')}", highlight=False)
        if result.reached:
            console.print(operations_table(result.reached))
        return
    for line in headlines(result.summary):
        console.print(line, highlight=False, soft_wrap=True)
    console.print(operations_table(result.summary.operations))
    if result.summary.cycles is not None:
        for call in result.summary.cycles.calls:
            console.print()
            print_call(console, call)
        if result.summary.cycles.advice is not None:
            print_advice(console, result.summary.cycles.advice)


def headlines(summary: Summary) -> list[str]:
    """Output, partitions, L1, accuracy and cycles, a line each."""
    output = summary.output
    lines = [
        f"device     {escaped(summary.device)}",
        f"output     {list(output.shape)} {output.dtype} {output.layout}, {output.height}x{output.width} an image",
        f"           {escaped(output.place)}",
        *(f"partition  {partition_line(partition)}" for partition in summary.partitions),
        f"L1         {l1_line(summary.l1)}",
    ]
    if summary.accuracy is not None:
        lines.append(f"accuracy   {accuracy_line(summary.accuracy)}")
    if summary.cycles is not None:
        lines += [f"cycles     {escaped(cycles_line(summary.cycles, call))}" for call in summary.cycles.calls]
        if summary.cycles.launches.readings:
            lines.append(f"between    {launch_summary(summary.cycles.launches)}, not counting compiling")
    return lines


def partition_line(partition: Partition) -> str:
    """How a convolution was cut up."""
    cores = f"{partition.input_cores} -> {partition.output_cores} cores {escaped(partition.cores)}"
    shards = f"shards {by(partition.input_shard)} -> {by(partition.output_shard)}"
    blocks = f"blocks of {by(partition.act_block_tiles)} tiles, sub-blocks of {by(partition.subblock_tiles)}"
    readers = "split reader" if partition.split_reader else "one reader"
    times = f"{partition.convolutions} convolutions, " if partition.convolutions > 1 else ""
    return f"{times}{partition.scheme}, {cores}, {shards}, {blocks}, {partition.k_blocks} K blocks, {readers}"


def l1_line(use: L1Use) -> str:
    """L1 of a core over the call."""
    return (
        f"peak {kib(use.peak_total_bytes)} of {kib(use.usable_bytes)} a core ({use.peak_share:.1%}): circular buffers "
        f"{kib(use.peak_circular_bytes)}, buffers {kib(use.peak_buffer_bytes)}; headroom {kib(use.headroom_bytes)} "
        f"({use.headroom_share:.1%}) in {use.tightest or 'no operation'}"
    )


def accuracy_line(accuracy: Accuracy) -> str:
    """How close the output is to float64."""
    return (
        f"PCC {accuracy.pcc:.7f} against float64, max error {accuracy.max_abs_error:.4g}, rms {accuracy.rms_error:.4g} "
        f"(the output's deviation is {accuracy.exact_std:.4g})"
    )


def operations_table(operations: Sequence[OperationUse]) -> Table:
    """A section for each device operation: its circular buffers, then the L1 buffers around it."""
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("operation")
    table.add_column("circular buffer or buffer")
    for heading in ("bytes a core", "of L1", "address"):
        table.add_column(heading, justify="right")
    table.add_column("where")
    for operation in operations:
        table.add_section()
        table.add_row(
            f"[bold]{escaped(operation.name)}",
            f"circular {kib(operation.circular_bytes)}, buffers {kib(operation.buffer_bytes)}",
            f"{operation.used_bytes:,}",
            f"{operation.used_share:.1%}",
            "",
            f"headroom {kib(operation.headroom_bytes)}",
        )
        for circular in operation.circular_buffers:
            share = "view" if circular.view else f"{circular.l1_share:.1%}"
            where = escaped(circular.cores)
            table.add_row(
                "",
                f"  {escaped(circular.name)}",
                f"{circular.size_bytes:,}",
                share,
                str(circular.address),
                where,
            )
        for buffer in operation.buffers:
            share = f"{buffer.l1_share:.1%}" if buffer.l1_share else ""
            where = f"{buffer.memory} {buffer.memory_layout}"
            table.add_row(
                "",
                f"  {escaped(buffer.name)}",
                f"{buffer.bank_bytes:,}",
                share,
                str(buffer.address),
                where,
            )
    return table


def overview(results: Sequence[LayerResult], width: int = WIDE) -> Table:
    """One line for each layer; columns that do not fit the width are left out, the least needed first."""
    rows = [OVERVIEW, *map(overview_row, results)]
    least_needed = [OVERVIEW.index(name) for name in OVERVIEW_LEAST_NEEDED]
    kept = fitting_columns(rows, width, gap=GAP, edge=EDGE, least_needed=least_needed)
    table = Table(title="layers", title_justify="left")
    for at in kept:
        table.add_column(OVERVIEW[at], justify="left" if OVERVIEW[at] in OVERVIEW_WORDS else "right", no_wrap=True)
    for row in rows[1:]:
        failed = len(row) < len(OVERVIEW)
        cells = [escaped(row[at]) for at in kept if at < len(row)]
        table.add_row(*cells, style="red" if failed else None)
    return table


def overview_row(result: LayerResult) -> tuple[str, ...]:
    """What the overview tells of a layer."""
    summary = result.summary
    if summary is None:
        return (f"{result.layer.name} failed",)
    accuracy = summary.accuracy
    schemes = {partition.scheme.removesuffix("_SHARDED") for partition in summary.partitions}
    cores = {str(partition.output_cores) for partition in summary.partitions}
    output = summary.output
    return (
        result.layer.name,
        f"{output.height}x{output.width}x{output.shape[-1]} {output.dtype}",
        ", ".join(sorted(schemes)),
        ", ".join(sorted(cores)),
        kib(summary.l1.peak_total_bytes),
        f"{summary.l1.peak_share:.1%}",
        kib(summary.l1.headroom_bytes),
        "" if accuracy is None else f"{accuracy.pcc:.6f}",
        "" if accuracy is None else f"{accuracy.max_abs_error:.3g}",
        "" if summary.cycles is None else cycles(summary.cycles.cycles),
        "" if summary.cycles is None else time(summary.cycles.nanoseconds),
    )


def kib(size_bytes: int) -> str:
    """Bytes in KiB."""
    return f"{size_bytes / 1024:,.1f} KiB"


def by(sizes: Sequence[int]) -> str:
    """Sizes as 2x3."""
    return "x".join(map(str, sizes))
