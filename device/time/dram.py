"""A closed form of GDDR6 with banks, rows and refresh, more detailed than the cycle model.

The cycle model uses one measured share of the data sheet's bandwidth. Here the same bytes are bursts in the rows of a
channel's banks: the data bus, row activations, or busy banks limit the rate, and refreshes stop everything.
`DramSpec.banks` are the banks that programs see; each has one or more channels, whose own banks are called *row banks*
here. Addresses are mapped to channels and bank groups burst by burst, so that a *stripe* has one row in every group and
channel; neighboring stripes are in other row banks. The controller chooses among the queued bursts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, lcm
from typing import ClassVar, NamedTuple

from device.spec.device_spec import Costs, DeviceSpec
from device.spec.parts import DramSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class DramCosts(Costs):
    """The structure of a DRAM channel, and its minimum times between commands."""

    TABLE: ClassVar[str] = "dram_costs"

    bank_channels: int  # Channels of a bank of the device, which take its bursts in turn
    row_banks: int  # Banks of a channel, each with one open row
    bank_groups: int  # Groups of these banks
    row_bytes: int  # Of one bank
    burst_bytes: int  # Of a read or write
    queued_bursts: int  # Among which the controller chooses, of reads and of writes
    drained_bursts: int  # Writes that it does before it turns to reads again
    ccd_ns: float  # tCCDL: between bursts of one bank group
    rcd_ns: float  # tRCD: from the activate of a row to its first burst
    rcd_write_ns: float  # tRCDWR: the same of a write
    rp_ns: float  # tRP: from the precharge of a bank to its next activate
    rc_ns: float  # tRC: between activates of one bank
    rrd_ns: float  # tRRD: between activates of different banks
    faw_ns: float  # tFAW: in which there are at most four activates
    rtp_ns: float  # tRTP: from a read to the precharge
    cl_ns: float  # tCL: from a read to its data
    cwl_ns: float  # tCWL: from a write to its data
    wr_ns: float  # tWR: from the end of a write to the precharge
    wtr_ns: float  # tWTR: from the end of a write to a read
    rfc_ns: float  # tRFC: of a refresh of all banks
    refi_ns: float  # tREFI: between refreshes


class DramStream(NamedTuple):
    """Pages that cores read from an interleaved buffer, or write to it, each core its own part in order."""

    moved_bytes: int  # Of all cores
    page_bytes: int
    pages: int  # Of the buffer
    sources: int  # Cores
    writes: bool


class DramTime(NamedTuple):
    """The time of an operation's streams on the busiest bank, if only DRAM limits them."""

    nanoseconds: float
    moved_bytes: int
    bursts: float  # Of a channel of the busiest bank
    activates: float
    refresh_share: float  # Of the time
    bound_by: str  # "data bus", "activates" or "row banks": what most of the time goes to

    @property
    def row_hit_share(self) -> float:
        """Part of the bursts that meet an open row."""
        return max(0.0, 1 - self.activates / self.bursts) if self.bursts else 0.0

    @property
    def bytes_per_second(self) -> float:
        """The rate of all banks together."""
        return self.moved_bytes / self.nanoseconds * 1e9 if self.nanoseconds else 0.0


DATA_BUS, ACTIVATES, ROW_BANKS = "data bus", "activates", "row banks"
WINDOW = 4  # activates of a tFAW


class _Visits(NamedTuple):
    """The visits of a stream to stripes, in a channel of the busiest bank; a visit opens a row in each group."""

    entered: float  # Their number
    bursts: float  # Of each
    apart: float  # Stripes from one visit to the next


def dram_time(streams: Sequence[DramStream], spec: DeviceSpec) -> DramTime:
    """The time of streams that share all banks."""
    timings, dram = spec.costs_of(DramCosts), spec.dram
    taken: dict[str, float] = {DATA_BUS: 0.0, ACTIVATES: 0.0, ROW_BANKS: 0.0}
    bursts, activates = {False: 0.0, True: 0.0}, 0.0
    for stream in streams:
        others = sum(other.sources for other in streams if other is not stream)
        visits = _visits(stream, others, timings, dram)
        limits = _limits(visits, timings, dram, writes=stream.writes)
        bound = max(limits, key=lambda name: limits[name])
        taken[bound] += visits.entered * limits[bound]
        bursts[stream.writes] += visits.entered * visits.bursts
        activates += visits.entered * _rows(visits, timings)
    if all(bursts.values()):
        run = max(timings.drained_bursts, *(stream.page_bytes / timings.burst_bytes for stream in streams))
        taken[DATA_BUS] += _turn_ns(timings, dram) * min(bursts.values()) / run
    refreshing = min(1.0, (timings.rfc_ns + timings.rp_ns + timings.rcd_ns) / timings.refi_ns)
    return DramTime(
        nanoseconds=sum(taken.values()) / (1 - refreshing) if refreshing < 1 else float("inf"),
        moved_bytes=sum(stream.moved_bytes for stream in streams),
        bursts=sum(bursts.values()),
        activates=activates,
        refresh_share=refreshing,
        bound_by=max(taken, key=lambda name: taken[name]),
    )


def burst_ns(timings: DramCosts, dram: DramSpec) -> float:
    """A burst on the data bus of a channel."""
    return timings.burst_bytes * timings.bank_channels / dram.bank_bytes_per_second * 1e9


def _visits(stream: DramStream, others: int, timings: DramCosts, dram: DramSpec) -> _Visits:
    """The number of times that stripes are opened: once, and again if other sources close their rows between pages.

    Sources take turns by page. Bursts of open rows go first, so their sources continue until the queue is full of
    bursts of other sources. ``others`` are sources of other streams at any address.
    """
    slot = _parts(stream.page_bytes, dram.alignment_bytes) * dram.alignment_bytes
    stripe = timings.row_bytes * timings.bank_groups * timings.bank_channels
    bank_pages = _parts(stream.pages, dram.banks) * stream.moved_bytes / (stream.pages * stream.page_bytes)
    bursts = _parts(stream.page_bytes, timings.burst_bytes) / timings.bank_channels
    sources = max(1, min(stream.sources, round(bank_pages)))
    apart = 1.0 if sources == 1 else bank_pages * slot / sources / stripe
    touched = _mean_stripes(stream.page_bytes, slot, dram.base_bytes, stripe)
    least = min(touched, slot / stripe)  # a page, if every stripe is entered once
    rivals = sum(2 * (sources - lag) / sources * _rivals(apart * lag, timings) for lag in range(1, sources))
    rivals += others * timings.bank_groups / timings.row_banks
    opened = min(timings.row_banks / timings.bank_groups, sources / (1 + rivals))
    together = max(1.0, timings.queued_bursts / (max(1.0, sources - opened) * bursts))
    again = (touched - least) * min(1.0, rivals) * min(1.0, apart) / together
    return _Visits(entered=bank_pages * (least + again), bursts=bursts / (least + again), apart=apart)


def _rivals(apart: float, timings: DramCosts) -> float:
    """The probability that bursts this many stripes apart are in other rows of the same row banks."""
    sets = timings.row_banks / timings.bank_groups
    around = abs((apart + sets / 2) % sets - sets / 2)
    return max(0.0, 1 - around) - max(0.0, 1 - apart)


def _parts(whole: int, part: int) -> int:
    """How many parts cover a whole."""
    return -(-whole // part)


def _mean_stripes(page_bytes: int, slot: int, base: int, stripe: int) -> float:
    """The mean number of stripes of a page, over all positions of pages."""
    starts = [(base + slot * number) % stripe for number in range(lcm(slot, stripe) // slot)]
    return sum((start + page_bytes - 1) // stripe + 1 for start in starts) / len(starts)


def _rows(visits: _Visits, timings: DramCosts) -> float:
    """Rows that a visit opens in a channel."""
    return min(timings.bank_groups, max(1.0, visits.bursts))


def _limits(visits: _Visits, timings: DramCosts, dram: DramSpec, *, writes: bool) -> dict[str, float]:
    """Nanoseconds of a visit by limit; the queue holds several visits, some of which share row banks."""
    rows, burst = _rows(visits, timings), burst_ns(timings, dram)
    bus = visits.bursts * max(burst, timings.ccd_ns / timings.bank_groups)
    queued = 1 + timings.queued_bursts / visits.bursts
    shared = sum(_rivals(visits.apart * lag, timings) * min(1.0, queued - lag) for lag in range(1, ceil(queued)))
    sharing = 1 + shared * rows / timings.bank_groups
    recovery = timings.cwl_ns + burst + timings.wr_ns if writes else timings.rtp_ns
    opening = timings.rcd_write_ns if writes else timings.rcd_ns
    busy = max(timings.rc_ns, opening + bus + recovery + timings.rp_ns)
    activating = rows * max(timings.rrd_ns, timings.faw_ns / WINDOW)
    return {DATA_BUS: bus, ACTIVATES: activating, ROW_BANKS: busy * sharing / queued}


def _turn_ns(timings: DramCosts, dram: DramSpec) -> float:
    """The time that the data bus loses between reads and writes."""
    burst = burst_ns(timings, dram)
    to_write, to_read = timings.cl_ns + burst / 2, timings.cwl_ns + burst + timings.wtr_ns
    return to_write + to_read - 2 * burst
