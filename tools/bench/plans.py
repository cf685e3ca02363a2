"""Planning alone: recorded calls of mode "plan", in processor time, and what stays allocated after many of them."""

import gc
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from device.errors import DeviceError
from device.machine import Machine
from device.memory.memory_config import BufferType
from device.spec.device_spec import DeviceSpec
from ops.planners.conv.arguments import ConvCall, is_matmul, takes_l1_path
from ops.planners.conv.plan import plan_convolution
from tools.bench.figure import Figure
from tools.recorded.arguments import planner_arguments
from tools.recorded.call import SPEC_OF_ARCH
from tools.recorded.records import DATA, read_records

FULL_COLLECTION = DATA.parents[2] / "shared" / "oracle" / "ttnn"
LIMIT_MS = 1.0  # a thousand plans a second, the mean over all calls
LIMIT_BLOCKS = 1000.0  # what the interpreter keeps for itself; a leak of one object per plan would be more


@dataclass(frozen=True, slots=True)
class Call:
    """A recorded call, ready to be planned.

    Attributes:
        group: How it is sliced.
        arguments: The call.
        spec: The device.
        free_l1_bytes: Free bytes of its L1 banks.
    """

    group: str
    arguments: ConvCall
    spec: DeviceSpec
    free_l1_bytes: int

    def plan(self) -> None:
        """Plan it, or have it refused."""
        try:
            plan_convolution(self.arguments, self.spec, free_l1_bytes=self.free_l1_bytes)
        except (DeviceError, ValueError):
            return


def group_of(call: ConvCall) -> str:
    """How a call is sliced."""
    if is_matmul(call):
        return "1x1"
    if takes_l1_path(call):
        return "one piece"
    return "given slices" if call.slice_config is not None and call.slice_config.num_slices else "automatic slices"


def recorded_calls() -> Iterator[Call]:
    """The calls of mode "plan": of the full collection where it lies beside the checkout, else of the sample."""
    devices = {arch: Machine(name, l1_small_bytes=32768) for arch, name in SPEC_OF_ARCH.items()}
    for record in read_records(FULL_COLLECTION if FULL_COLLECTION.is_dir() else DATA):
        if record["mode"] == "plan":
            arguments, device = planner_arguments(record["case"]), devices[record["arch"]]
            free = device.allocator.statistics(BufferType.L1).free_bytes_per_bank
            yield Call(group_of(arguments), arguments, device.spec, free)


def plan_ms(call: Call, repeats: int) -> float:
    """Milliseconds of processor time of one plan, the least of some repeats."""
    best = float("inf")
    for _ in range(repeats):
        start = time.thread_time()
        call.plan()
        best = min(best, time.thread_time() - start)
    return 1e3 * best


def blocks_kept(calls: Sequence[Call], rounds: int) -> int:
    """Blocks of memory that the interpreter holds after all calls were planned so many times more."""
    for call in calls:
        call.plan()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(rounds):
        for call in calls:
            call.plan()
    gc.collect()
    return sys.getallocatedblocks() - before


def bench_plans(repeats: int) -> Iterator[Figure]:
    """Every group of calls, then all; each repeat plans all calls twice, once for the time, once for the memory."""
    calls = list(recorded_calls())
    times: defaultdict[str, list[float]] = defaultdict(list)
    for call in calls:
        times[call.group].append(plan_ms(call, repeats))
    times["all"] = [one for found in list(times.values()) for one in found]
    for group, found in times.items():
        case, limit = f"{len(found)} calls, {group}", LIMIT_MS if group == "all" else None
        ranks = statistics.quantiles(found, n=20) if len(found) > 1 else found
        yield Figure(bench="plans", case=case, name="median", value=statistics.median(found), unit="ms")
        yield Figure(bench="plans", case=case, name="95 of 100 within", value=ranks[-1], unit="ms")
        yield Figure(bench="plans", case=case, name="mean", value=statistics.fmean(found), unit="ms", limit=limit)
    case, kept = f"{repeats * len(calls)} plans", float(blocks_kept(calls, repeats))
    yield Figure(bench="plans", case=case, name="kept", value=kept, unit="blocks", limit=LIMIT_BLOCKS)
