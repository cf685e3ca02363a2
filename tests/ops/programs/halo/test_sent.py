"""What the cores of a halo send each other: the bytes and the cycles of its model."""

import pytest

from device.cores import first_cores
from device.memory.memory_config import ShardOrientation
from device.numbers.formats import BFLOAT16
from device.spec.device_spec import load_spec
from ops.programs.halo.cycles import halo_cycles, halo_sent
from ops.programs.halo.plan import BLOCK, HEIGHT, WIDTH, HaloArguments, HaloOp, plan_halo
from ops.window import PaddedInput, convolution_axis

SPEC = load_spec("wormhole_n150")


def op(scheme, *, tiled=False, orientation=ShardOrientation.ROW_MAJOR):
    """A 3x3 halo of an image of 16x16 on 4 rows of 3 columns of cores, or on 8 of them."""
    axis = convolution_axis(input_length=16, kernel=3, stride=1, padding=(1, 1), dilation=1)
    frame = PaddedInput(batch=1, rows=axis, columns=axis)
    down = orientation is ShardOrientation.ROW_MAJOR
    nhw = {HEIGHT: 8, BLOCK: 4 if down else 3, WIDTH: 1}[scheme]
    rows = -(-256 // nhw // 32) * 32
    arguments = HaloArguments(
        frame=frame, scheme=scheme, orientation=orientation, nhw_cores=nhw,
        cores=first_cores(8 if scheme is HEIGHT else 12, 3, 4),
        channel_cores={HEIGHT: 1, BLOCK: 12 // nhw, WIDTH: 12}[scheme], input_rows=rows,
        output_rows=-(-frame.outputs // nhw), shard_width=32, data_format=BFLOAT16, tiled=tiled,
        stick_alignment_bytes=16, config_tensors_in_dram=False)  # fmt: skip
    return HaloOp(plan=plan_halo(arguments, input_tensor="x", output_tensor="halo"), fp32_dest=False)


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("scheme", [HEIGHT, BLOCK])
@pytest.mark.parametrize("orientation", list(ShardOrientation))
def test_bytes_and_cycles_are_those_of_the_model(scheme, tiled, orientation):
    made = op(scheme, tiled=tiled, orientation=orientation)
    cycles, sent = halo_cycles(made.plan, SPEC), halo_sent(made, SPEC)
    assert sum(one.size_bytes for one in sent) == cycles.network_bytes > 0
    assert all(0 < one.start_cycle < one.end_cycle <= cycles.cycles for one in sent)
    assert all(one.source != one.destination for one in sent)
    assert {one.network for one in sent} == ({0} if tiled and scheme is HEIGHT else {0, 1})  # one block: no turns
    routes = [(one.network, one.source, one.destination) for one in sent]
    assert len(set(routes)) == len(routes)


def test_neighbors_of_a_height_exchange_rows_of_the_image():
    """Cores have two rows of 16 sticks of 64 bytes; windows reach one row further, and padding beside it."""
    sizes = {}
    for one in halo_sent(op(HEIGHT), SPEC):
        sizes[one.source, one.destination] = sizes.get((one.source, one.destination), 0) + one.size_bytes
    assert {((x + 3 * y) - (u + 3 * v), size) for ((x, y), (u, v)), size in sizes.items()} == {(1, 1024), (-1, 1024)}
    assert len(sizes) == 2 * 7


def test_blocks_repeat_in_every_column_or_row():
    down, across = (op(BLOCK, orientation=one) for one in (ShardOrientation.ROW_MAJOR, ShardOrientation.COL_MAJOR))
    assert {one.source[0] for one in halo_sent(down, SPEC)} == {0, 1, 2}
    assert all(one.source[0] == one.destination[0] for one in halo_sent(down, SPEC))
    assert {one.source[1] for one in halo_sent(across, SPEC)} == {0, 1, 2, 3}
    assert all(one.source[1] == one.destination[1] for one in halo_sent(across, SPEC))


def test_cores_that_share_channels_send_nothing():
    assert halo_sent(op(WIDTH), SPEC) == ()
