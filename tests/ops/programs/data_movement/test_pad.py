"""A number around a tensor, or in the padding of tiles."""

import numpy as np
import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, FLOAT32
from ops.builder import PlanTensor
from ops.op_model import CyclesContext, Ends
from ops.op_models import load_spec
from ops.programs.data_movement.pad import FillTiles, PadWith, fill_buffers, pad_buffers, ragged_tiles, writes_halves
from tests.shards import high

SPEC = load_spec("wormhole_n150")
L1 = MemoryConfig(TensorMemoryLayout.INTERLEAVED, BufferType.L1)
CORES = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(7, 7)))


def tensor(name, shape, layout=Layout.ROW_MAJOR, data_format=BFLOAT16, place=L1):
    return PlanTensor(name, TensorSpec(shape, data_format, layout, place))


def sizes(source, made, front=0):
    return [(one.size_bytes, one.scratchpad, one.view_of) for one in pad_buffers(source, made, front, SPEC)]


@pytest.mark.parametrize(
    ("columns", "front", "group", "places"),
    [
        (544, 0, 2 * 1088, [1088]),  # two rows are 2,048 bytes or more
        (66, 0, 15 * 144, [160, 160]),  # rows at multiples of 16 bytes, which are none of 32
        (259, 1, 4 * 528, [544, 544]),  # rows that begin behind the number are aligned, too
        (26, 0, 32 * 64, [64]),
    ],
)
def test_rows_are_waited_for_in_groups(columns, front, group, places):
    source, made = tensor("input", (1, 1, 2048, columns - 2)), tensor("output", (1, 1, 2048, columns))
    numbers = [(size, True, None) for size in places]
    assert sizes(source, made, front) == [(16 * group, False, None), *numbers]


def test_tiles_pass_two_at_a_time_beside_one_of_the_number():
    source, made = tensor("input", (1, 3, 256, 256), Layout.TILE), tensor("output", (1, 3, 288, 256), Layout.TILE)
    assert sizes(source, made) == [(2 * 2048, False, None), (2048, True, None)]


def test_shards_stay_where_they_are():
    """3 * 64 rows on 64 cores: three of 128 bytes, which become 192; then four of them, 66 rows to an image."""
    source = tensor("input", (1, 3, 64, 64), place=high((3, 64), 64))
    wide, tall = (
        tensor("wide", (1, 3, 64, 96), place=high((3, 96), 64)),
        tensor("tall", (1, 3, 66, 96), place=high((4, 96), 64)),
    )
    assert sizes(source, wide) == [(3 * 128, False, "input"), (3 * 192, False, "wide"), (192, True, None)]
    assert sizes(wide, tall) == [(3 * 192, False, "wide"), (4 * 192, False, "tall"), (192, False, None)]


def test_a_number_of_32_bits_is_written_as_two_of_16():
    op = PadWith(shape=(1, 1), padding=((0, 0), (0, 1)), value=1.5, in_halves=True)
    assert op.moved(np.zeros((1, 1), np.float32)).view(np.uint32).tolist() == [[0, 0x3FC03FC0]]
    rows = [tensor("rows", (1, 1, 8, side), data_format=FLOAT32).spec for side in (8, 16)]
    tiles = [tensor("tiles", (1, 1, side, 32), Layout.TILE, FLOAT32).spec for side in (32, 64)]
    assert writes_halves(*rows)
    assert not writes_halves(*tiles)


RAGGED = TensorSpec((1, 5, 33, 47), BFLOAT16, Layout.TILE)


def test_the_number_stands_behind_every_image():
    op = FillTiles(shape=(2, 1, 3), padded_shape=(2, 32, 32), value=2.0)
    values = np.arange(6, dtype=np.float32).reshape(2, 1, 3)
    full = op.moved(values)
    assert np.array_equal(full[:, :1, :3], values)
    assert full.sum() == values.sum() + 2 * (2 * 1024 - 6)
    assert np.array_equal(op.moved(full), full)


def test_it_takes_as_long_as_a_copy_of_those_tiles():
    context = CyclesContext(spec=SPEC, contention=True)
    few = FillTiles(shape=RAGGED.shape, padded_shape=RAGGED.padded_shape, value=0.0)
    ends = Ends(read=RAGGED, written=RAGGED)
    assert few.cycles(ends, context).cycles > 0
    assert few.describe(ends, SPEC).composed_of


def test_only_tiles_with_padding_count():
    assert ragged_tiles((1, 1, 1024, 24)) == 32
    assert ragged_tiles((1, 5, 33, 47)) == 5 * (2 * 2 - 1)
    assert ragged_tiles((2, 64, 32)) == 0
    assert ragged_tiles((39,)) == 2  # a vector is one row of tiles


def test_a_mask_for_each_side():
    assert [one.size_bytes for one in fill_buffers(RAGGED, SPEC)] == [4096, 2048, 2048, 4096]
    across = TensorSpec((1, 1, 1024, 24), BFLOAT16, Layout.TILE)
    assert [one.name for one in fill_buffers(across, SPEC)] == ["read", "right", "written"]
    assert fill_buffers(across, SPEC)[0].cores.num_cores() == 32
