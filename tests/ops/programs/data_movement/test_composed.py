"""Programs that are composed of measured steps, by hand: axes in another order, tensors joined, channels moved.

The device is a Wormhole whose figures are round.
"""

import pytest

from device.memory.layouts import TensorSpec
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.time.stages import Stage
from ops.op_models import load_spec
from ops.programs.data_movement.channels import ChannelsFirst, ChannelsLast, hwc_block
from ops.programs.data_movement.concat import Concatenate
from ops.programs.data_movement.permute import Permute
from ops.programs.kernel_costs import core_round_trip_cycles, waited_read_cycles, write_latency_cycles
from tests.build import busy, op_cycles, place, tensor_spec

SPEC = load_spec("wormhole_n150").replace(
    noc_interface_cycles=200.0,
    compute_unpack_bytes_per_cycle=64.0,
    compute_unpack_tile_cycles=10.0,
    compute_pack_bytes_per_cycle=64.0,
    compute_costs_tilize_tile_cycles=3.0,
    compute_costs_tilize_call_cycles=50.0,
    compute_costs_untilize_narrow_tile_cycles=70.0,
    compute_costs_block_cycles=100.0,
    movement_costs_start_cycles=500.0,
    movement_costs_stick_write_cycles=60.0,
    transfer_costs_read_issue_cycles=25.0,
    transfer_costs_stateful_issue_cycles=20.0,
    transfer_costs_page_issue_cycles=50.0,
    transfer_costs_axis_cycles=10.0,
)
WIRE = SPEC.noc.link_bytes_per_cycle  # 32
THERE_AND_BACK = core_round_trip_cycles(SPEC)


def permuted(text, axes, where=None):
    """The operation, the tensor and the result of another order of axes, in a place or where the tensor lies."""
    read = tensor_spec(text)
    after = read.memory_config if where is None else place(where)
    shape = [read.shape[axis] for axis in axes]
    return Permute(shape=read.shape, axes=axes), read, TensorSpec(shape, read.data_format, read.layout, after)


def joined(read, written, axis, sides, groups=1):
    """The operation, the first tensor and the result of tensors with such sides along an axis."""
    shapes = [list(tensor_spec(read).shape) for _ in sides]
    for shape, side in zip(shapes, sides, strict=True):
        shape[axis] = side
    return Concatenate(axis=axis, shapes=tuple(map(tuple, shapes)), groups=groups), read, written


def channels(kind, shape, source_format, read, written, **more):
    return kind(shape=shape, source_format=source_format, data_format=BFLOAT16, **more), read, written


TURNED = 50 + 3 + 32 + 32 + 70  # a tile is tilized, turned and untilized
# 256 parts of tiles on 64 cores, 16 x 32 each, of four axes
BY_TILES = 15 * 50 + THERE_AND_BACK + 64 / WIRE + TURNED + 4 * (4 * 10 + 31 * 60 + THERE_AND_BACK + 32 / WIRE)
# 16 tiles of three axes, one a core, whose 64 lines of faces are read and written
BY_FACES = 63 * 50 + TURNED + 3 * 10 + 63 * 60 + 2 * (THERE_AND_BACK + 32 / WIRE)
# two images of two tiles a core
IN_PLACE = 15 * 20 + 200 + 128 / WIRE, 50 + 2 * (3 + 32 + 32) + 2 * 70
STICKS = joined("400x64 height/100x64/4", "400x96 height/100x96/4", 1, (64, 32))
TILE_COPIED = 200 + 2048 / WIRE
OWN = 4 * 10 + write_latency_cycles(SPEC, in_dram=True)  # a block's place among four axes, and its last write
# three rows of 1024 pixels, and the pixels of a tile, 8 channels each
READ = waited_read_cycles(SPEC, 2048, in_dram=False) + 2 * 2048 / WIRE
COPIED = 31 * 20 + 200 + 16 / WIRE


@pytest.mark.parametrize(
    ("program", "cycles", "bound_by"),
    [
        (permuted("1x16x128x64 l1", (0, 2, 3, 1)), BY_TILES, Stage.WRITER),
        (permuted("32x8x64 tile l1", (1, 2, 0)), BY_FACES, Stage.WRITER),
        # sticks of shards are fetched by two processors
        (permuted("1x16x8x64 height/8x64/16", (0, 2, 1, 3)), 3 * 25 + THERE_AND_BACK + 128 / WIRE, Stage.READER),
        (
            permuted("1x32x16x64 height/32x64/16", (0, 1, 3, 2), "height/128x16/16"),
            sum(IN_PLACE) + max(IN_PLACE),
            Stage.READER,
        ),
        # two processors copy half of the sticks each
        (STICKS, 2 * (49 * 20 + 200) + (128 + 64) / WIRE, Stage.READER),
        # long sticks are bound by the link: one a processor and tensor
        (joined("8x1024 height/2x1024/4", "8x2048 height/2x2048/4", 1, (1024,) * 2), 2 * (200 + 2048 / WIRE), None),
        # groups cut sticks into parts: 40, 20 a processor
        (
            joined("40x64 height/10x64/4", "40x128 height/10x128/4", 1, (64,) * 2, 4),
            2 * (19 * 20 + 200 + 32 / WIRE),
            None,
        ),
        # rows of WIDTH shards are copied whole
        (joined("8x256 width/8x64/4", "12x256 width/12x64/4", 0, (8, 4)), 3 * 20 + 20 + 2 * (200 + 128 / WIRE), None),
        # two tiles of 2048 bytes, unpacked and packed at 64 bytes a cycle, turned and turned back, in two rows
        (
            joined("256x32 tile height/64x32/4", "256x64 tile height/64x64/4", 1, (32,) * 2),
            2 * (2 * 100 + 2 * 2 * (32 + 32) + 2 * TILE_COPIED),
            None,
        ),
        # a tile of 1088 bytes becomes one of 2048 bytes, and back
        (
            joined("128x32 bfloat8_b tile height/32x32/4", "128x64 bfloat8_b tile height/32x64/4", 1, (32,) * 2),
            200 + 2 * (17 + 32 + 32 + 17) + 2 * TILE_COPIED,
            None,
        ),
        # three tensors in tiles are copied tile by tile
        (joined("128x32 tile height/32x32/4", "128x96 tile height/32x96/4", 1, (32,) * 3), 3 * TILE_COPIED, None),
        (
            channels(
                ChannelsLast, (1, 1, 3, 8192), BFLOAT16, "1x1x3x8192 width/3x2048/4", "1x1x8192x8 height/2048x8/4",
                channels=8,
            ),
            2 * (READ + 50 + 32 * (3 + 32 + 32) + 70 + 16 * COPIED),
            Stage.WRITER,
        ),
        (  # two batches of eight tiles are turned; a channel of eight tiles is copied meanwhile
            channels(
                ChannelsFirst, (1, 1, 2048, 1), BFLOAT8_B, "1x1x2048x32 bfloat8_b tile height/512x32/4",
                "1x1x1x2048 width/1x512/4",
            ),
            2 * 8 * 70 + 7 * 20 + 200 + 64 / WIRE,
            Stage.UNTILIZE,
        ),
    ],
)  # fmt: skip
def test_programs_by_hand(program, cycles, bound_by):
    result = op_cycles(*program, SPEC)
    assert result.cycles == pytest.approx(500 + cycles)
    assert bound_by in (None, result.bound_by)


@pytest.mark.parametrize(("write_ns", "block"), [(6.5, 512 * 6.5), (4, 512 * 4 + OWN), (2, 31 * 60 + 2 / WIRE + OWN)])
def test_a_bank_that_cores_write_to_in_step_is_waited_for(write_ns, block):
    """24 blocks a core of 32 rows, 384 apart, so in one of twelve banks, and those of 16 cores in the same one.

    A bank that takes more than a core's own 2,300 cycles is always busy; a faster one waits for the cores in turn.
    """
    spec = SPEC.replace(dram_write_request_ns=write_ns)
    turned = op_cycles(*permuted("1x4x96x128", (3, 2, 1, 0)), spec)
    assert busy(turned)[Stage.WRITER] == pytest.approx(24 * block)


def test_a_bank_answers_the_reads_of_all_cores():
    """64 blocks of 32 x 32, one a core: every bank answers a twelfth of 64 x 32 reads."""
    slow = SPEC.replace(dram_request_ns=100.0)
    read = waited_read_cycles(slow, 0, in_dram=True) + 64 * 32 / 12 * 100
    assert busy(op_cycles(*permuted("1x64x32x32", (0, 1, 3, 2)), slow))[Stage.READER] == pytest.approx(read)


def test_lines_shorter_than_what_dram_aligns_are_read_one_by_one():
    """Of both faces of 32 rows, one lies 32 bytes off; of one face only, half of the rows do."""
    spec = SPEC.replace(dram_alignment_bytes=64)
    alone = waited_read_cycles(spec, 0, in_dram=True) + 32 / WIRE + 200 + 32 / WIRE
    for columns, lines in ((64, 32), (16, 16)):
        turned = op_cycles(*permuted(f"32x8x{columns} tile", (1, 2, 0)), spec)
        assert busy(turned)[Stage.READER] == pytest.approx(lines * (50 + alone))


def test_pixels_are_copied_while_the_next_tile_is_turned():
    slow, placed = SPEC.replace(compute_costs_untilize_narrow_tile_cycles=1000.0), "1x1x8192x8 height/2048x8/4"
    moved = ChannelsLast(shape=(1, 1, 3, 8192), channels=8, source_format=BFLOAT16, data_format=BFLOAT16)
    cycles = op_cycles(moved, "1x1x3x8192 width/3x2048/4", placed, slow).cycles
    assert cycles == pytest.approx(500 + 2 * (READ + 50 + 32 * (3 + 32 + 32) + 32 * 1000))


def test_the_only_processor_copies_all_sticks():
    alone = op_cycles(*STICKS, SPEC.replace(data_movement_processors=1))
    assert alone.cycles == pytest.approx(500 + 2 * (99 * 20 + 200) + (128 + 64) / WIRE)
    assert set(busy(alone)) == {Stage.START, Stage.READER}


def test_high_images_are_copied_once_more():
    tall = op_cycles(*permuted("1x16x288x32 height/288x32/16", (0, 1, 3, 2), "height/32x288/16"), SPEC)
    assert {stage.stage for stage in tall.slowest.stages} >= {Stage.WRITER, Stage.READER}


@pytest.mark.parametrize(
    ("shape", "axes", "to", "measured_us"),
    [("1x7x25281x256", (0, 2, 3, 1), "dram", 16_984.7), ("1x1x25281x9", (0, 3, 1, 2), "l1", 61.9)],
)
def test_what_was_measured(shape, axes, to, measured_us):
    """tt-perf-report, ops_perf_results_2025_09_18: a Blackhole of 20 cores."""
    spec = load_spec("blackhole_p150").replace(grid_cols=5, grid_rows=4)
    assert op_cycles(*permuted(shape, axes, to), spec).cycles / spec.clock_hz * 1e6 == pytest.approx(
        measured_us, rel=0.12
    )


@pytest.mark.parametrize(("pixels", "block"), [(1200, 1200), (4800, 1600), (2048, 1024), (64, 64)])
def test_blocks_divide_the_pixels_of_a_core(pixels, block):
    assert hwc_block(pixels) == block
