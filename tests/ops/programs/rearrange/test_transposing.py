"""The buffers of programs that swap two axes, by hand."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from ops.builder import PlanTensor
from ops.op_models import load_spec
from ops.programs.rearrange.transposing import is_dataflow, swapped_shape, transpose_buffers
from tests.shards import high

SPEC = load_spec("wormhole_n150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


def made(shape, swapped, layout, place=DRAM_MEMORY_CONFIG, to=DRAM_MEMORY_CONFIG):
    source = PlanTensor("input", TensorSpec(shape, BFLOAT16, layout, place))
    turned = list(shape)
    turned[swapped[0]], turned[swapped[1]] = turned[swapped[1]], turned[swapped[0]]
    result = PlanTensor("output", TensorSpec(turned, BFLOAT16, layout, to))
    buffers = transpose_buffers(source, result, swapped, SPEC)
    sizes = [(one.size_bytes, one.cores.num_cores(), one.view_of) for one in buffers]
    return sizes, is_dataflow(source.spec, result.spec, swapped)


@pytest.mark.parametrize(
    ("shape", "swapped", "sizes"),
    [
        ((1, 1, 50, 70), (2, 3), [(4096, 6, None), (4096, 6, None)]),
        ((1, 16, 64, 64), (1, 2), [(4096, 64, None), (512, 64, None)]),  # 16 images leave half of each tile empty
        ((1, 64, 64, 64), (1, 2), [(4096, 64, None)]),
        ((16, 1, 64, 32), (0, 1), [(4096, 32, None)]),
    ],
)
def test_tiles_pass_two_at_a_time(shape, swapped, sizes):
    assert made(shape, swapped, TILES) == (sizes, True)


def test_tiles_are_turned_in_their_shards_by_all_cores():
    sizes, dataflow = made((1, 16, 64, 64), (2, 3), TILES, high((128, 64), 8), high((128, 64), 8))
    assert sizes == [(8 * 2048, 64, "input"), (8 * 2048, 64, "output")]
    assert dataflow


def test_images_of_rows_in_shards_are_circular_buffers():
    """Two images of 64 rows to a core: sticks as they lie, two tiles across twice, and four tiles of an image."""
    sizes, dataflow = made((1, 16, 64, 64), (2, 3), ROWS, high((128, 64), 8), high((128, 64), 8))
    assert sizes == [(128 * 128, 8, "input"), (128 * 128, 8, "output"), (2 * 2 * 2048, 8, None), (4 * 2048, 8, None)]
    assert not dataflow
    sizes, _ = made((1, 8, 320, 32), (2, 3), ROWS, high((320, 32), 8), high((32, 320), 8))
    assert [size for size, *_ in sizes[2:]] == [2 * 2048, 10 * 2048, 10 * 2048, 20 * 2048]  # ten tiles high


def test_images_of_rows_elsewhere_pass_as_tiles():
    """Three tiles across and two down: a core of its own for the only image."""
    sizes, dataflow = made((1, 1, 50, 70), (2, 3), ROWS, high((4, 70), 13), high((32, 64), 3))
    assert sizes == [(2 * 3 * 2048, 1, None), (2 * 2 * 2048, 1, None), (6 * 2048, 1, None)]
    assert dataflow


def test_rows_whose_images_are_swapped():
    """Six rows of 512 bytes on each of the cores; where shards hold them whole, they stay there."""
    assert made((1, 3, 128, 256), (1, 2), ROWS, high((7, 256), 63), high((7, 256), 63))[0] == [(6 * 512, 64, None)]
    sizes, dataflow = made((1, 4, 128, 256), (1, 2), ROWS, high((8, 256), 64), high((8, 256), 64))
    assert sizes == [(8 * 512, 64, "input"), (8 * 512, 64, "output")]
    assert not dataflow


def test_rows_keep_their_padding_and_tiles_get_other():
    assert swapped_shape(TensorSpec((1, 3, 8, 32), BFLOAT16, TILES), (1, 2)) == (1, 8, 32, 32)
    held = TensorSpec((1, 1, 70, 50), BFLOAT16, ROWS, high((32, 64), 3))
    assert swapped_shape(held, (2, 3)) == (1, 1, 64, 70)
