"""The closed form of GDDR6 by hand: a bank of one channel whose data bus moves a burst of 32 bytes in a nanosecond."""

import pytest

from device.spec.device_spec import load_spec
from device.time.dram import DramStream, dram_time

TIMINGS = {
    "bank_channels": 1, "row_banks": 16, "bank_groups": 4, "row_bytes": 2048, "burst_bytes": 32, "queued_bursts": 32,
    "drained_bursts": 19, "ccd_ns": 2.0, "rcd_ns": 10.0, "rcd_write_ns": 9.0, "rp_ns": 10.0, "rc_ns": 45.0,
    "rrd_ns": 8.0, "faw_ns": 16.0, "rtp_ns": 2.0, "cl_ns": 14.0, "cwl_ns": 3.0, "wr_ns": 15.0, "wtr_ns": 5.0,
    "rfc_ns": 100.0, "refi_ns": 1200.0,
}  # fmt: skip
SPEC = load_spec("wormhole_n150").replace(
    dram_banks=1,
    dram_base_bytes=1 << 20,
    dram_bank_bytes_per_second=32e9,
    **{f"dram_costs_{name}": value for name, value in TIMINGS.items()},
)
LEFT = 1 - (100 + 10 + 10) / 1200  # of the time: a refresh closes all rows, of which the next is opened again


def stream(page_bytes, pages, sources=1, *, writes=False):
    return DramStream(page_bytes * pages, page_bytes, pages, sources, writes)


# A stripe of four rows is 8,192 bytes: 256 bursts, which hide the activates of the next. Writes hold a row bank for
# 9 + 256 + 3 + 1 + 15 + 10 ns, and the queue holds 1.125 visits.
WRITTEN = 10 * 294 / 1.125


@pytest.mark.parametrize(
    ("streams", "nanoseconds", "hits", "bound_by"),
    [
        ([stream(8192, 10)], 10 * 256, 1 - 4 / 256, "data bus"),
        ([stream(8192, 10, writes=True)], WRITTEN, 1 - 4 / 256, "row banks"),
        # Ten turns of 14.5 ns to writes and 9 ns back, less the two bursts that would follow anyway
        ([stream(8192, 10), stream(8192, 10, writes=True)], 2560 + WRITTEN + 10 * 21.5, 1 - 4 / 256, "data bus"),
        # 16 sources, two stripes apart: every other one is in the same row banks, and each burst opens a row
        ([stream(32, 16 * 512, 16)], 16 * 512 * 8.0, 0.0, "activates"),
        # Four stripes apart all are in the same four row banks, which take 45 ns for each page
        ([stream(512, 16 * 64, 16)], 16 * 64 * 45.0, 1 - 4 / 16, "row banks"),
        ([], 0.0, 0.0, "data bus"),
    ],
)
def test_streams_by_hand(streams, nanoseconds, hits, bound_by):
    found = dram_time(streams, SPEC)
    assert found.row_hit_share == pytest.approx(hits)
    assert (found.bound_by, found.refresh_share) == (bound_by, pytest.approx(1 - LEFT))
    assert found.nanoseconds == pytest.approx(nanoseconds / LEFT)


def test_more_banks_and_channels_share_the_bytes():
    """Twice the banks take half of the time; 13 pages on 12 banks take as long as 24."""
    one, two = (dram_time([stream(8192, 10)], SPEC.replace(dram_banks=banks)) for banks in (1, 2))
    assert (two.nanoseconds, two.bytes_per_second) == (one.nanoseconds / 2, 2 * one.bytes_per_second)
    assert [dram_time([stream(2048, pages)], SPEC.replace(dram_banks=12)).nanoseconds for pages in (13, 24)] == [
        pytest.approx(2 * 64 / LEFT)
    ] * 2
