"""DRAM of operations in a report, as `run --dram` prints it."""

import ttsim as ttnn
from ttsim.report.dram import basis, dram_lines, dram_uses


def profiled(*shape, **kwargs):
    with ttnn.open_device(spec="n150", values="off") as device, ttnn.profile(device) as profile:
        tensor = ttnn.zeros(shape, layout=ttnn.TILE_LAYOUT, dtype=ttnn.bfloat16, device=device, **kwargs)
        ttnn.relu(tensor)
    return profile.report().operations


def test_streams_are_the_tensors_in_dram():
    (use,) = dram_uses(profiled(1, 1, 1024, 1024))
    read, written = use.streams
    assert [(each.moved_bytes, each.page_bytes, each.pages, each.sources) for each in (read, written)] == [
        (1024 * 1024 * 2, 2048, 1024, 64)
    ] * 2
    assert (read.writes, written.writes, use.moved_bytes) == (False, True, 2 * 1024 * 1024 * 2)
    assert 0 < use.peak_share < 1 - use.refresh_share
    assert 0.9 < use.row_hit_share < 1


def test_what_does_not_use_dram_is_left_out():
    operations = profiled(1, 1, 64, 64, memory_config=ttnn.L1_MEMORY_CONFIG)
    assert dram_lines(operations) == ["DRAM: no operation uses it."]


def test_the_error_against_the_simulator_is_printed():
    """60 streams that Ramulator 2 ran; their errors are computed from its rates."""
    assert "8.9 % off Ramulator 2 in the mean of 60 streams, 51.8 % at most; 3.9 % and 12.3 % for" in basis()
    assert dram_lines(profiled(1, 1, 64, 64))[-1] == basis()
