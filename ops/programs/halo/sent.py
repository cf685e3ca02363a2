"""What the cores of a halo send each other, and when, as its cycles have it."""

from collections.abc import Iterator

import numpy as np

from device.numbers.integers import Integers
from device.spec.device_spec import DeviceSpec
from ops.meaning import Sent
from ops.programs.halo.config_tensors import PROCESSORS
from ops.programs.halo.cycles import HaloTimes, halo_times
from ops.programs.halo.plan import BLOCK, HaloArguments, HaloWork, core_order
from ops.programs.halo.traffic import Batches, batches_of, halo_traffic, stick_bytes


def halo_sent(work: HaloWork, spec: DeviceSpec) -> tuple[Sent, ...]:
    """What goes from core to core, by network, sender and receiver.

    All that a core sends to another on one network is told as one, from the start of the first block of it to the end
    of the last. What stays on its core is left out.
    """
    plan = work.plan
    times = halo_times(plan, halo_traffic(plan, spec), spec, filled_by_stick=work.filled_by_stick)
    batches = batches_of(plan)
    return tuple(one for processor in range(PROCESSORS) for one in _sent(batches, processor, plan.arguments, times))


def _sent(batches: Batches, processor: int, halo: HaloArguments, times: HaloTimes) -> Iterator[Sent]:
    gone = np.flatnonzero((batches.source != batches.destination) & (batches.processor == processor))
    routes, route = np.unique(batches.source[gone] * halo.nhw_cores + batches.destination[gone], return_inverse=True)
    sizes = np.bincount(route, weights=batches.sticks[gone], minlength=len(routes)).astype(int) * stick_bytes(halo)
    first, last = _ends(route, batches.block[gone], len(routes))
    for size, ends, low, high in zip(sizes.tolist(), routes.tolist(), first.tolist(), last.tolist(), strict=True):
        source, destination = divmod(ends, halo.nhw_cores)
        for places in _places(halo):
            yield Sent(
                network=processor,
                source=places[source],
                destination=places[destination],
                size_bytes=size,
                start_cycle=float(times.block_starts[processor][low][source]),
                end_cycle=float(times.block_ends[processor][high][source]),
            )


def _ends(route: Integers, block: Integers, routes: int) -> tuple[Integers, Integers]:
    """[routes] the first and the last block of each."""
    first, last = np.full(routes, block.max(initial=0)), np.zeros(routes, np.int64)
    np.minimum.at(first, route, block)
    np.maximum.at(last, route, block)
    return first, last


def _places(halo: HaloArguments) -> Iterator[list[tuple[int, int]]]:
    """Column and row of each core that splits the rows; BLOCK repeats a halo in every column (or row) of cores."""
    box, order = halo.cores.bounding_box(), core_order(halo)
    down = bool(order.y.any())
    repeats = range((box.cols if down else box.rows) if halo.scheme is BLOCK else 1)
    for again in repeats:
        x, y = (again, 0) if down else (0, again)
        columns, rows = (order.x + box.start.x + x).tolist(), (order.y + box.start.y + y).tolist()
        yield list(zip(columns, rows, strict=True))
