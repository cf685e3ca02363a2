"""Loads of network links in device operations: the busiest link, its transfers, and all links on the grid.

A link is named by the torus node that it leaves and by its direction. Loads come from the routes that the cycle model
uses to find the busiest link. The report's cycles do not depend on this table.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import shown
from device.spec.device_spec import DeviceSpec
from device.time.links import bank_points, link_shares
from device.time.network import NETWORKS, Floats, Link, Places, Ways, torus_of
from device.time.stages import Transfer, nanoseconds
from ops.passes.counts import transfers_of
from ttsim.report.cycle_report import CycleReport
from ttsim.report.cycles import OperationTime, share_of
from ttsim.report.formatting import TableColumn, joined, percent, short_name, table_lines, time, wrapped
from ttsim.report.rows import Column, Derived, Row, as_dict

# By network, then by axis: along a row, along a column
DIRECTIONS: Final = (("right", "down"), ("left", "up"))
ARROWS: Final[Mapping[str, str]] = {"right": "→", "down": "↓", "left": "←", "up": "↑"}
STEPS: Final[Mapping[str, tuple[int, int]]] = {"right": (1, 0), "down": (0, 1), "left": (-1, 0), "up": (0, -1)}
ORDERS: Final = ("First network: → then ↓. Digits: → ↓", "Second network: ↑ then ←. Digits: ← ↑")
LONGEST_ENDS: Final = 60  # characters of the cores at one end of a link's ways
Node = tuple[int, int]  # column and row of the torus


def network_of(direction: str) -> int:
    """The network that has a direction."""
    return next(number for number, names in enumerate(DIRECTIONS) if direction in names)


class Nodes(NamedTuple):
    """The nodes of a device's torus, with their worker cores and DRAM banks."""

    cols: int
    rows: int
    cores: Mapping[Node, Node]  # Column and row in the grid of workers
    banks: tuple[Mapping[Node, int], ...]  # Of each network: the first bank of DRAM that answers at a node

    def name(self, node: Node, network: int) -> str:
        """The name of a node: its worker core, its bank on a network, or its coordinates in the torus."""
        if node in self.cores:
            return "core {}-{}".format(*self.cores[node])
        bank = self.banks[network].get(node)
        return "node {}-{}".format(*node) if bank is None else f"DRAM {bank}"


def nodes_of(spec: DeviceSpec) -> Nodes:
    """The nodes of a device."""
    torus = torus_of(spec)
    cores = {
        (col, row): (x, y)
        for y, row in enumerate(torus.worker_rows[: spec.grid.rows])
        for x, col in enumerate(torus.worker_cols[: spec.grid.cols])
    }
    points = [bank_points(spec, network) for network in NETWORKS]
    banks = tuple({node: own.index(node) for node in own} for own in points)
    return Nodes(torus.cols, torus.rows, cores, banks)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPart:
    """The load of one transfer of an operation on a link."""

    what: str  # "reads from DRAM", "writes to DRAM", "multicasts" or "core to core"
    moved_bytes: int
    sources: str  # The cores, or nodes of DRAM, of the ways that pass the link
    destinations: str


class LinkUse(Row, figures="number name"):
    """The loads of the links in a device operation, and its busiest link."""

    operation: OperationTime
    number: int  # Of the operation in its report, from 0

    name = Column[str](lambda use: use.operation.name)
    direction = Column[str](lambda use: use.busiest[0])  # Of the busiest link: "right", "down", "left" or "up"
    leaves = Column[Node](lambda use: use.busiest[1])  # Column and row of the node that it leaves
    enters = Column[Node](lambda use: use.after(*use.busiest))
    leaves_name = Column[str](lambda use: use.nodes.name(use.leaves, network_of(use.direction)))
    enters_name = Column[str](lambda use: use.nodes.name(use.enters, network_of(use.direction)))
    moved_bytes = Column[int](lambda use: use.busiest[2])
    nanoseconds = Column[float](  # In which it passes them at its full rate
        lambda use: nanoseconds(
            use.moved_bytes / use.operation.spec.noc.link_bytes_per_cycle, use.operation.spec.clock_hz
        )
    )
    share = Column[float](lambda use: share_of(use.nanoseconds, use.operation.nanoseconds))  # Of its time
    parts = Column[tuple[LinkPart, ...]](lambda use: tuple(use.parts_of(*use.busiest[:2])))  # Largest first
    # Whether the model knows the bytes of DRAM alone
    at_least = Column[bool](lambda use: use.operation.taken.transfers is None)
    # By direction, [rows][columns] of the torus: whole bytes on the link that leaves a node
    loads = Column[dict[str, list[list[int]]]](
        lambda use: {
            name: np.rint(use.bytes_on[at]).astype(int).tolist()
            for at, name in enumerate(name for names in DIRECTIONS for name in names)
        }
    )

    nodes = Derived[Nodes](lambda use: nodes_of(use.operation.spec))
    transfers = Derived[tuple[Transfer, ...]](lambda use: transfers_of(use.operation.taken, use.operation.spec))
    # [directions, rows, columns] bytes, in the order of `loads`
    bytes_on = Derived[Floats](lambda use: _bytes_on(use.transfers, use.nodes))
    busiest = Derived[tuple[str, Node, int]](lambda use: next(use.links()))

    def links(self) -> Iterator[tuple[str, Node, int]]:
        """Direction, node and whole bytes of all used links, the busiest first."""
        for flat in np.argsort(-np.rint(self.bytes_on), axis=None, kind="stable").tolist():
            at, row, col = np.unravel_index(flat, self.bytes_on.shape)
            moved = round(float(self.bytes_on[at, row, col]))
            if not moved:
                return
            yield DIRECTIONS[at // 2][at % 2], (int(col), int(row)), moved

    def after(self, direction: str, node: Node, _: int = 0) -> Node:
        """The node that a link enters."""
        right, down = STEPS[direction]
        return (node[0] + right) % self.nodes.cols, (node[1] + down) % self.nodes.rows

    def parts_of(self, direction: str, node: Node) -> list[LinkPart]:
        """The transfers on a link, the largest first."""
        network = network_of(direction)
        link = Link(*node, along_row=direction == DIRECTIONS[network][0])
        parts = []
        for transfer in self.transfers:
            if transfer.network != network or transfer.ways is None:
                continue
            ways = transfer.ways()
            share = link_shares(ways)[0 if link.along_row else 1, link.row, link.col]
            if moved := round(transfer.sent_bytes * float(share)):
                own = np.flatnonzero(ways.passing(link))
                sources, destinations = (
                    self._ends(places.take(own), network) for places in (ways.sources, ways.destinations)
                )
                what = _what(transfer, ways)
                parts.append(LinkPart(what=what, moved_bytes=moved, sources=sources, destinations=destinations))
        return sorted(parts, key=lambda part: -part.moved_bytes)

    def _ends(self, places: Places, network: int) -> str:
        """Nodes as ranges of worker cores in ttnn's format, or as banks."""
        nodes = sorted(set(zip(places.col.tolist(), places.row.tolist(), strict=True)))
        cores = [CoreCoord(*self.nodes.cores[node]) for node in nodes if node in self.nodes.cores]
        if cores and len(cores) == len(nodes):
            return str(CoreRangeSet([CoreRange(core, core) for core in cores]).merged())
        return joined([self.nodes.name(node, network) for node in nodes])


def _what(transfer: Transfer, ways: Ways) -> str:
    if transfer.from_dram or transfer.to_dram:
        return "reads from DRAM" if transfer.from_dram else "writes to DRAM"
    return "core to core" if ways.multicasts is None else "multicasts"


def _bytes_on(transfers: Sequence[Transfer], nodes: Nodes) -> Floats:
    loads: Floats = np.zeros((4, nodes.rows, nodes.cols))
    for transfer in transfers:
        if transfer.ways is not None and transfer.sent_bytes:
            loads[2 * transfer.network : 2 * transfer.network + 2] += transfer.sent_bytes * link_shares(transfer.ways())
    return loads


def link_uses(report: CycleReport) -> tuple[LinkUse, ...]:
    """The operations that move bytes over links, in order."""
    ran = (op for call in report.calls for op in call.run.in_order)
    uses = (LinkUse(op, number) for number, op in enumerate(ran) if isinstance(op, OperationTime))
    return tuple(use for use in uses if next(use.links(), None))


def links_dict(report: CycleReport) -> list[dict[str, Any]]:
    """The figures of `link_uses` for JSON."""
    return [as_dict(use) for use in link_uses(report)]


def chosen_use(uses: Sequence[LinkUse], asked: str = "") -> LinkUse | None:
    """The operation with this number or part of its name; of several, the operation with the longest busy link."""
    own = [use for use in uses if asked == f"{use.number}" or (not asked.isdecimal() and asked in use.name)]
    return max(own, key=lambda use: use.nanoseconds, default=None)


def link_text(use: LinkUse) -> str:
    """The busiest link with its direction: "core 0-0 to core 1-0 (→)"."""
    return f"{use.leaves_name} to {use.enters_name} ({ARROWS[use.direction]})"


def part_text(part: LinkPart, whole_bytes: int) -> str:
    """A transfer on a link, with its share and the endpoints of its routes."""
    sources, destinations = (short_name(ends, LONGEST_ENDS) for ends in (part.sources, part.destinations))
    return f"{part.what} {percent(part.moved_bytes / whole_bytes)}, from {sources} to {destinations}"


LINK_TABLE: Final[Sequence[TableColumn[LinkUse]]] = (
    TableColumn("#", lambda use: f"{use.number}"),
    TableColumn("operation", lambda use: short_name(use.name), words=True),
    TableColumn("busiest link", link_text, words=True),
    TableColumn("bytes", lambda use: f"{use.moved_bytes:,}"),
    TableColumn("link time", lambda use: time(use.nanoseconds), goes=2),
    TableColumn("of operation", lambda use: percent(use.share)),
    TableColumn("loaded by", lambda use: ", ".join(dict.fromkeys(part.what for part in use.parts)), words=True, goes=3),
    TableColumn("bound by", lambda use: use.operation.bound_by, words=True, goes=1),
)
TENTHS: Final = ".123456789#"  # a link that passes nothing, up to the busiest one


def links_lines(report: CycleReport, asked: str = "", width: int | None = None) -> list[str]:
    """The busiest link of each operation, then all links of one operation on the grid.

    Args:
        report: The report.
        asked: The number or a part of the name of the operation to draw; empty for the operation with the longest busy
            link.
        width: Characters of a line; None for any.
    """
    uses = link_uses(report)
    if not uses:
        return ["Links: no operation moves bytes over them."]
    lines, use = [*table_lines(LINK_TABLE, uses, width), ""], chosen_use(uses, asked)
    if use is None:
        return [*lines, f"No operation of the table has {shown(asked)} in its number or name."]
    parts = "; ".join(part_text(part, use.moved_bytes) for part in use.parts)
    for text in (
        f"Busiest link of #{use.number} {use.name}: {link_text(use)}, {use.moved_bytes:,} bytes, "
        f"{percent(use.share)} of its time at the full rate of a link.",
        f"Loaded by {parts}.",
        *(["Its model knows the bytes of DRAM alone."] if use.at_least else []),
    ):
        lines += wrapped(text, width, indent=2)
    return [*lines, *grid_lines(use, width)]


def grid_lines(use: LinkUse, width: int | None = None) -> list[str]:
    """The links that leave each node, in tenths of the busiest link; both networks side by side if they fit."""
    drawn = [_network_lines(use, number) for number in range(len(NETWORKS))]
    wide = max(map(len, drawn[0]))
    beside = [f"{left:<{wide}}  {right}".rstrip() for left, right in zip(*drawn, strict=True)]
    grids = beside if width is None or max(map(len, beside)) <= width else [*drawn[0], "", *drawn[1]]
    note = (
        "Each node of the torus with the links that leave it, in tenths of the busiest link: . for none, # from 95 % "
        "on. D is a node of DRAM; worker cores are numbered above and beside the grid."
    )
    return ["", *grids, *wrapped(note, width, indent=2)]


def _network_lines(use: LinkUse, network: int) -> list[str]:
    """The heading, the columns of worker cores, and a line for each row of nodes."""
    nodes, loads, most = use.nodes, use.bytes_on[2 * network : 2 * network + 2], float(use.bytes_on.max())
    cols, rows = ({node[axis]: core[axis] for node, core in nodes.cores.items()} for axis in (0, 1))
    names = "".join(f"{cols.get(col, ''):>4}" for col in range(nodes.cols))
    lines = [ORDERS[network], f"    {names}".rstrip()]
    for row in range(nodes.rows):
        cells = ""
        for col in range(nodes.cols):
            digits = "".join(TENTHS[_tenths(load, most)] for load in loads[:, row, col].tolist())
            cells += f" {'D' if (col, row) in nodes.banks[network] else ' '}{digits}"
        lines.append(f"{rows.get(row, ''):>4}{cells}")
    return lines


def _tenths(load: float, most: float) -> int:
    """The load from 0 (unused) to 10 (busiest); a used link has at least 1."""
    return max(1, round(10 * load / most)) if load else 0
