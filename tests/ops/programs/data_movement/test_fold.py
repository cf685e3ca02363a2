"""The buffers of a program that folds windows, by hand, and the shards that it wants."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from ops.builder import PlanTensor
from ops.op_models import load_spec
from ops.programs.data_movement.fold import fold_buffers, folds_tiles, whole_windows
from tests.shards import high

SPEC = load_spec("wormhole_n150")
L1 = MemoryConfig(TensorMemoryLayout.INTERLEAVED, BufferType.L1)


def image(shape, layout=Layout.ROW_MAJOR, place=L1, data_format=BFLOAT16):
    return PlanTensor("input", TensorSpec(shape, data_format, layout, place))


def sizes(source, window, place=L1):
    batch, height, width, channels = source.spec.shape
    shape = (batch, height // window[0], width // window[1], window[0] * window[1] * channels)
    made = PlanTensor("output", TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR, place))
    return [(one.size_bytes, one.cores.num_cores()) for one in fold_buffers(source, made, window, SPEC)]


def test_sticks_of_a_window_come_together_at_multiples_of_the_drams_alignment():
    """Three channels are 6 bytes, 32 apart: two windows of four, and one of them without gaps; 16 windows."""
    assert sizes(image((1, 8, 8, 3)), (2, 2)) == [(2 * 4 * 32, 16), (4 * 6, 16)]
    assert sizes(image((1, 64, 64, 16)), (1, 2)) == [(2 * 2 * 32, 64)]


def test_tiles_become_rows_of_windows():
    """64 rows of images, a core each: two tiles, two tiles' rows, and 32 windows of two sticks of 32 bytes."""
    assert sizes(image((1, 64, 64, 16), Layout.TILE), (1, 2)) == [(4096, 64), (4096, 64), (2048, 64)]
    assert sizes(image((1, 64, 64, 16), Layout.TILE, data_format=BFLOAT8_B), (1, 2))[0] == (2 * 1088, 64)


def test_windows_are_shared_evenly():
    """A hundred parts on 64 cores: two for each of 50, not one or two for each of 64."""
    assert sizes(image((1, 20, 20, 16)), (2, 2)) == [(2 * 4 * 32, 50)]
    assert [cores for _, cores in sizes(image((1, 200, 64, 16), Layout.TILE), (2, 2))] == [50, 50, 50]


def test_shards_are_folded_where_they_lie():
    """Sticks of six bytes lie 16 apart, four of them, 24 bytes, 32."""
    assert sizes(image((1, 8, 8, 3), place=high((64, 3), 1)), (2, 2), high((16, 12), 1)) == [
        (64 * 16, 1),
        (16 * 32, 1),
    ]


@pytest.mark.parametrize(
    ("shape", "window", "cores", "rows", "dealt"),
    [
        ((1, 30, 40, 8), (2, 2), 4, 300, (15, 80)),  # 15 rows of windows of 80 pixels
        ((1, 64, 64, 16), (2, 1), 64, 64, (32, 128)),
        ((1, 64, 64, 16), (1, 2), 16, 256, (16, 256)),  # they hold whole rows of windows already
    ],
)
def test_shards_hold_whole_rows_of_windows(shape, window, cores, rows, dealt):
    held = image(shape, place=high((rows, shape[-1]), cores)).spec
    assert whole_windows(held, window, SPEC) == high((dealt[1], shape[-1]), dealt[0])


def test_which_tiles_are_taken_as_they_are():
    assert folds_tiles(image((1, 64, 64, 16), Layout.TILE).spec, (2, 2), SPEC)
    assert not folds_tiles(image((1, 8, 8, 3), Layout.TILE).spec, (2, 2), SPEC)  # six bytes are no whole words
    assert not folds_tiles(image((1, 8, 8192, 64), Layout.TILE).spec, (2, 2), SPEC)  # 2 MB of a row of windows
