"""What every core of a halo has to do, in numbers: writes of padding, bytes sent, and bytes that meet on links.

Nothing here is a cycle; `cycles` makes cycles of it. The work of a *block* is what a processor sends of one
untilized block of 32 rows. Sticks of a row-major input are all there from the start, and all cores begin together:
first each copies what stays on it, then it serves one receiver after the other. So a block is a *round* there: what
stays, what goes to the first receiver, to the second, and so on; in a round, transfers of all cores meet.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.numbers.integers import Integers, div_up
from device.spec.device_spec import DeviceSpec
from device.time.network import NETWORKS, Network, passing_bytes, round_links, sharing, torus_of
from ops.programs.halo.config_tensors import PROCESSORS, UNTILIZE_BLOCK_STICKS, CoreOrder
from ops.programs.halo.plan import HaloArguments, HaloPlan, core_order, halo_format
from ops.programs.halo.runs import transfers_and_padding
from ops.programs.halo.transfers import Padding, Transfers, ordinals

Floats: TypeAlias = NDArray[np.float64]

ZEROS_BYTES = 512  # zeros that every core keeps in its L1, to copy from (tt-metal, MEM_ZEROS_SIZE)
PIECES_OF_A_STICK = 2  # in which padding that is not zero is copied (tt-metal, halo_gather.cpp)


@dataclass(frozen=True, slots=True)
class Filling:
    """Padding that one processor of every core fills.

    Attributes:
        runs: [cores] runs of padding.
        sticks: Sticks in them.
        zero_copies: Copies if they are zero: of as many sticks as there are zeros for, then of single ones; longer
            sticks in pieces.
    """

    runs: Floats
    sticks: Floats
    zero_copies: Floats

    def copies(self, *, zero: bool) -> Floats:
        """[cores] copies that fill it with zeros, or with another value."""
        return self.zero_copies if zero else PIECES_OF_A_STICK * self.sticks


@dataclass(frozen=True, slots=True)
class Sending:
    """What one processor of every core sends.

    Attributes:
        transfers: [cores, blocks] number of transfers.
        local_bytes: To its own core.
        away_bytes: To other cores.
        crossing_bytes: Of other routes, on links of the route of this core that meets most of them.
        farthest_links: [cores] links that a write to the farthest receiver and its answer pass.
    """

    transfers: Floats
    local_bytes: Floats
    away_bytes: Floats
    crossing_bytes: Floats
    farthest_links: Integers


@dataclass(frozen=True, slots=True)
class HaloTraffic:
    """The work of all cores that split the rows.

    Attributes:
        blocks: Blocks of both processors, which take turns.
        filling: Of both processors.
        sending: Of both processors.
    """

    blocks: int
    filling: tuple[Filling, ...]
    sending: tuple[Sending, ...]


def halo_traffic(plan: HaloPlan, spec: DeviceSpec) -> HaloTraffic:
    """The work of all cores of a halo."""
    halo = plan.arguments
    transfers, padding = transfers_and_padding(
        halo.frame, plan.ranges, input_rows=halo.input_rows, block_rows=UNTILIZE_BLOCK_STICKS if halo.tiled else 0
    )
    turn, block = _dealt(halo, transfers)
    blocks = div_up(halo.input_rows, UNTILIZE_BLOCK_STICKS)
    if not halo.tiled:
        blocks = PROCESSORS * (1 + int(block.max(initial=0)))
    sending = []
    for processor, network in enumerate(NETWORKS):
        mine = np.flatnonzero(turn == processor)
        count = max(1, (blocks + PROCESSORS - 1 - processor) // PROCESSORS)
        sending.append(_sending(halo, spec, network, transfers.take(mine), block[mine], count))
    return HaloTraffic(blocks, _filling(halo, padding), tuple(sending))


def stick_bytes(halo: HaloArguments) -> int:
    """Bytes of a stick of the output."""
    return halo.shard_width * (halo_format(halo.data_format).element_bytes or 0)


def _dealt(halo: HaloArguments, transfers: Transfers) -> tuple[Integers, Integers]:
    """Processor and block of every transfer, as `ops.programs.halo.config_tensors.deal_transfers` deals them."""
    source, destination = transfers.source_core, transfers.destination_core
    if halo.tiled:
        block, processor = np.divmod(transfers.source_stick // UNTILIZE_BLOCK_STICKS, PROCESSORS)
        return processor, block
    order = np.argsort((2 * source + (source != destination)) * halo.nhw_cores + destination, kind="stable")
    turn = np.empty_like(order)
    turn[order] = ordinals(np.bincount(source, minlength=halo.nhw_cores)) % PROCESSORS
    return turn, _rounds(transfers, turn)


def _rounds(transfers: Transfers, turn: Integers) -> Integers:
    """[transfers] 0 of those that stay; of others, the number of their receiver, by sender and processor, from 1."""
    source, destination = transfers.source_core, transfers.destination_core
    away = source != destination
    order = np.lexsort((destination, away, turn, source))
    queue = (source * PROCESSORS + turn)[order]
    first = np.diff(queue, prepend=-1) != 0
    next_one = away[order] & (first | (np.diff(destination[order], prepend=-1) != 0))
    count = np.cumsum(next_one)
    before = np.maximum.accumulate(np.where(first, count - next_one, 0))
    rounds = np.empty_like(order)
    rounds[order] = count - before
    return rounds


def _zero_copies(stick: int, sticks: Integers) -> Integers:
    """Copies of zeros that fill each run of so many sticks of so many bytes."""
    together = ZEROS_BYTES // stick
    if together <= 1:
        return sticks * div_up(stick, ZEROS_BYTES)
    return sticks // together + sticks % together


def _filling(halo: HaloArguments, padding: Padding) -> tuple[Filling, ...]:
    """The first processor has the first half of a core's runs, the second the rest."""
    cores = halo.nhw_cores
    runs = np.bincount(padding.core, minlength=cores)
    second = ordinals(runs) >= (runs // 2)[padding.core]
    copies = _zero_copies(stick_bytes(halo), padding.length)
    made = []
    for processor in range(PROCESSORS):
        mine = np.flatnonzero(second == bool(processor))
        core, length = padding.core[mine], padding.length[mine]
        made.append(
            Filling(
                runs=np.bincount(core, minlength=cores).astype(np.float64),
                sticks=np.bincount(core, weights=length, minlength=cores).astype(np.float64),
                zero_copies=np.bincount(core, weights=copies[mine], minlength=cores).astype(np.float64),
            )
        )
    return tuple(made)


def _sending(
    halo: HaloArguments, spec: DeviceSpec, network: Network, transfers: Transfers, block: Integers, blocks: int
) -> Sending:
    """What one processor of every core sends in every block."""
    cores = halo.nhw_cores
    pair = transfers.source_core * cores + transfers.destination_core
    pairs = np.flatnonzero(np.bincount(pair, minlength=cores * cores))
    number = np.empty(cores * cores, np.int64)
    number[pairs] = np.arange(len(pairs))
    source, destination = np.divmod(pairs, cores)
    sent = _table(number[pair], block, (len(pairs), blocks), transfers.length * stick_bytes(halo))
    home, away = np.flatnonzero(source == destination), np.flatnonzero(source != destination)
    local, own, crossing = (np.zeros((cores, blocks)) for _ in range(3))
    local[source[home]] = sent[home]
    np.add.at(own, source[away], sent[away])
    order: CoreOrder = core_order(halo)
    torus = torus_of(spec)
    places = torus.places(order.x, order.y)
    senders, receivers = places.take(source[away]), places.take(destination[away])
    shared = sharing(torus, network, senders, receivers)
    np.maximum.at(crossing, source[away], passing_bytes(shared, sent[away]))
    # What a core sends on its other routes is its own already.
    crossing = np.maximum(crossing - own, 0.0)
    farthest = np.zeros(cores, np.int64)
    np.maximum.at(farthest, source[away], round_links(torus, senders, receivers))
    return Sending(_table(transfers.source_core, block, (cores, blocks), None), local, own, crossing, farthest)


def _table(row: Integers, column: Integers, shape: tuple[int, int], weights: Integers | None) -> Floats:
    """Sums of weights, or counts, by row and column."""
    flat = np.bincount(row * shape[1] + column, weights=weights, minlength=shape[0] * shape[1])
    table: Floats = flat.reshape(shape).astype(np.float64)
    return table
