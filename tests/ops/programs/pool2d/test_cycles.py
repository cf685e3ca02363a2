"""What a pool program takes, worked by hand.

Transfers every 20 cycles over links of 32 bytes a cycle; a tile of 2048 bytes is unpacked in 32 cycles, tilized in 3
more and reduced in 16; a row of it, 64 bytes, is packed in one.
"""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.time.stages import Stage
from ops.op_model import CyclesContext, Ends
from ops.op_models import OP_MODELS, load_spec
from ops.programs.pool2d import MaxPool, pool_cycles
from ops.window import PaddedAxis, PaddedInput
from tests.shards import high

SPEC = load_spec("wormhole_n150").replace(
    data_movement_processors=2,
    noc_link_share=1.0,
    compute_phase_cycles=16,
    compute_unpack_bytes_per_cycle=64,
    compute_unpack_tile_cycles=10,
    compute_pack_bytes_per_cycle=64,
    compute_costs_tilize_tile_cycles=3,
    transfer_costs_stateful_issue_cycles=20,
    movement_costs_start_cycles=500,
)
REDUCED = 3 + 32 + 16  # a tile of channels of one window


def pool(taps=(2, 2), channels=64, spacing=1, **changes):
    """Nine outputs on a core."""
    rows, columns = (
        PaddedAxis(input_length=16, before=0, after=0, kernel=count, dilation=spacing, stride=1) for count in taps
    )
    usual = {"channel_cores": 1, "core_outputs": 9, "in_format": BFLOAT16, "data_format": BFLOAT16, "tiled": False}
    return MaxPool(frame=PaddedInput(batch=1, rows=rows, columns=columns), channels=channels, **(usual | changes))


def timed(work, spec=SPEC):
    tensor = TensorSpec((1, 1, 64, 64), BFLOAT16, Layout.ROW_MAJOR, high((32, 64), 2))
    return pool_cycles(work, Ends(read=tensor, written=tensor), CyclesContext(spec=spec, contention=True))


def busy(cycles):
    return {one.stage: one.busy_cycles for one in cycles.slowest.stages}


def test_windows_wait_for_the_slowest_stage():
    """Two bursts of two sticks of 128 bytes to a window; two tiles of channels."""
    made = timed(pool())
    assert made.cycles == 500 + (40 + 2 * REDUCED + 2) + 8 * 2 * REDUCED
    assert (made.bound_by, made.cores) == (Stage.MATH, 2)
    assert busy(made) == {
        Stage.START: 500,
        Stage.READER: 5 * 40,
        Stage.SECOND_READER: 4 * 40,
        Stage.MATH: 9 * 2 * REDUCED,
        Stage.PACK: 9 * 2,
    }


@pytest.mark.parametrize(("processors", "read", "windows"), [(2, 160, (5, 4)), (1, 320, (9, 0))])
def test_readers_take_turns(processors, read, windows):
    """16 taps apart are 16 bursts of 20 cycles: two readers do a window in half of that."""
    made = timed(pool((4, 4), spacing=2), SPEC.replace(data_movement_processors=processors))
    assert made.cycles == 500 + (320 + 2 * REDUCED + 2) + 8 * read
    gathered = (busy(made).get(stage, 0) for stage in (Stage.READER, Stage.SECOND_READER))
    assert tuple(gathered) == tuple(320 * count for count in windows)


def test_cores_share_channels():
    """65 channels on two cores: 33 of each, two tiles; sticks of 66 bytes."""
    assert busy(timed(pool(channels=65, channel_cores=2)))[Stage.MATH] == 9 * 2 * REDUCED
    assert busy(timed(pool(channels=64, channel_cores=2)))[Stage.MATH] == 9 * REDUCED


def test_more_channels_than_are_reduced_at_once_are_read_stick_by_stick():
    """Sticks of 512 bytes: two in 32 cycles; those of 9 tiles, 576 bytes, alone in the 20 that a transfer takes."""
    assert busy(timed(pool(channels=256)))[Stage.READER] == 5 * 2 * 2 * 512 / 32
    assert busy(timed(pool(channels=288)))[Stage.READER] == 5 * 4 * 20


def test_a_result_in_tiles_is_packed_once_more():
    """Of each tile of 1088 bytes, a window fills one row of 32."""
    made = timed(pool(tiled=True, data_format=BFLOAT8_B))
    assert busy(made)[Stage.PACK] == pytest.approx(9 * (2 + 2 * 1088 / 64 / 32))


def test_every_stage_is_told():
    made, tensor = timed(pool()), TensorSpec((1, 1, 64, 64), BFLOAT16, Layout.ROW_MAJOR)
    account = OP_MODELS[MaxPool].account(pool(), Ends(read=tensor, written=tensor), SPEC)
    assert set(busy(made)) - {Stage.START} == set(account.stages)
    assert (account.measured_as, account.facts) == ("", ())
    assert account.composed_of.startswith("gathering, tilizing, reducing and packing")
