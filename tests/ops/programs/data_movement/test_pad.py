"""A number around a tensor, or in the padding of tiles."""

import numpy as np
import pytest

from ops.builder import PlanTensor
from ops.op_model import Ends
from ops.op_models import load_spec
from ops.programs.data_movement.pad import FillTiles, PadWith, fill_buffers, pad_buffers, ragged_tiles, writes_halves
from tests.build import buffer_rows, op_cycles, tensor_spec

SPEC = load_spec("wormhole_n150")
ROW_GROUPS = "1x1x2048x{} l1"


@pytest.mark.parametrize(
    ("source", "made", "front", "wanted"),
    [
        # rows are waited for in groups: two are 2,048 bytes or more
        (542, 544, 0, [(16 * 2 * 1088, False, None), (1088, True, None)]),
        # rows at multiples of 16 bytes, which are none of 32
        (64, 66, 0, [(16 * 15 * 144, False, None), (160, True, None), (160, True, None)]),
        # rows that begin behind the number are aligned, too
        (257, 259, 1, [(16 * 4 * 528, False, None), (544, True, None), (544, True, None)]),
        (24, 26, 0, [(16 * 32 * 64, False, None), (64, True, None)]),
        # tiles pass two at a time beside one of the number
        ("1x3x256x256 tile l1", "1x3x288x256 tile l1", 0, [(2 * 2048, False, None), (2048, True, None)]),
        # 3 * 64 rows on 64 cores: three of 128 bytes, which become 192; then four of them, 66 rows to an image
        (
            "1x3x64x64 height/3x64/64",
            "1x3x64x96 height/3x96/64",
            0,
            [(3 * 128, False, "x"), (3 * 192, False, "y"), (192, True, None)],
        ),
        (
            "1x3x64x96 height/3x96/64",
            "1x3x66x96 height/4x96/64",
            0,
            [(3 * 192, False, "x"), (4 * 192, False, "y"), (192, False, None)],
        ),
    ],
)
def test_buffers_by_hand(source, made, front, wanted):
    texts = [text if isinstance(text, str) else ROW_GROUPS.format(text) for text in (source, made)]
    read, written = (PlanTensor(name, tensor_spec(text)) for name, text in zip("xy", texts, strict=True))
    buffers = pad_buffers(read, written, front, SPEC)
    assert [(one.size_bytes, one.scratchpad, one.view_of) for one in buffers] == wanted


def test_a_number_of_32_bits_is_written_as_two_of_16():
    op = PadWith(shape=(1, 1), padding=((0, 0), (0, 1)), value=1.5, in_halves=True)
    assert op.moved(np.zeros((1, 1), np.float32)).view(np.uint32).tolist() == [[0, 0x3FC03FC0]]
    assert writes_halves(tensor_spec("8x8 float32"), tensor_spec("8x16 float32"))
    assert not writes_halves(tensor_spec("32x32 float32 tile"), tensor_spec("64x32 float32 tile"))
    assert not writes_halves(tensor_spec("8x8"), tensor_spec("8x16"))


def test_the_number_stands_behind_every_image():
    op = FillTiles(shape=(2, 1, 3), padded_shape=(2, 32, 32), value=2.0)
    values = np.arange(6, dtype=np.float32).reshape(2, 1, 3)
    full = op.moved(values)
    assert np.array_equal(full[:, :1, :3], values)
    assert full.sum() == values.sum() + 2 * (2 * 1024 - 6)
    assert np.array_equal(op.moved(full), full)


def test_only_tiles_with_padding_count():
    """Three of four tiles of each of five images: a copy of 15 tiles."""
    sizes = [ragged_tiles(shape) for shape in ((1, 1, 1024, 24), (1, 5, 33, 47), (2, 64, 32), (39,))]
    assert sizes == [32, 15, 0, 2]  # a vector is one row of tiles
    tensor = tensor_spec("1x5x33x47 tile")
    op = FillTiles(shape=tensor.shape, padded_shape=tensor.padded_shape, value=0.0)
    cycles = op_cycles(op, tensor)
    assert (cycles.dram_read_bytes, cycles.dram_written_bytes) == (15 * 2048, 15 * 2048)
    assert op.describe(Ends(read=tensor, written=tensor), SPEC).composed_of


@pytest.mark.parametrize(
    ("tensor", "wanted"),
    [
        ("1x5x33x47 tile", [("read", 4096, 15), ("right", 2048, 15), ("bottom", 2048, 15), ("written", 4096, 15)]),
        ("1024x24 tile", [("read", 4096, 32), ("right", 2048, 32), ("written", 4096, 32)]),
    ],
)
def test_a_mask_for_each_side(tensor, wanted):
    assert buffer_rows(fill_buffers(tensor_spec(tensor), SPEC)) == wanted
