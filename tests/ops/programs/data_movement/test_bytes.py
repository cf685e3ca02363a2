"""Bytes of DRAM of movements, by the shapes: shards of several columns, other formats, mixed memories, padded tiles."""

import pytest

from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from ops.op_model import Ends
from ops.programs.data_movement.channels import ChannelsLast
from ops.programs.data_movement.concat import Concatenate
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.permute import Permute
from ops.programs.data_movement.slice import PaddedSlice, SliceWrite, Window
from tests.build import tensor_spec

SPEC = load_spec("wormhole_n150")
INTO, OUT_OF = Conversion.INTERLEAVED_TO_SHARDED, Conversion.SHARDED_TO_INTERLEAVED
FOUR = Concatenate(axis=3, shapes=((1, 1, 64, 32),) * 4)
TURNED = Permute(shape=(1, 3, 64, 64), axes=(0, 2, 3, 1))
WINDOW = Window(shape=(1, 4, 13, 243), begins=(0, 1, 0, 0), ends=(1, 2, 13, 243))
NARROW = Window(shape=(1, 8, 8, 2), begins=(0, 4, 0, 0), ends=(1, 8, 8, 2))
LAST = ChannelsLast(shape=(1, 1, 4, 1024), source_format=BFLOAT16, data_format=BFLOAT16, channels=8)


@pytest.mark.parametrize(
    ("op", "tensors", "read", "written"),
    [
        (CopyTensor(INTO), ("128x64", "128x64 block/64x16/4x2"), 128 * 64 * 2, 0),
        (CopyTensor(OUT_OF), ("128x64 width/128x16/4", "128x64"), 0, 128 * 64 * 2),
        (CopyTensor(OUT_OF), ("128x60 width/128x16/4", "128x60"), 0, 128 * 60 * 2),
        (CopyTensor(INTO, (BFLOAT8_B, BFLOAT16)), ("64x64 bfloat8_b tile", "64x64 tile height/32x64/2"), 4 * 1088, 0),
        (FOUR, ("1x1x64x32 tile l1", "1x1x64x128 tile", "1x1x64x32 tile", "1x1x64x32 tile l1", "1x1x64x32 tile"),
         4 * 2048, 8 * 2048),
        (FOUR, ("1x1x64x32 tile", "1x1x64x128 tile l1", "1x1x64x32 tile l1", "1x1x64x32 tile l1", "1x1x64x32 tile l1"),
         2 * 2048, 0),
        (TURNED, ("1x3x64x64 tile", "1x64x64x3 tile"), 3 * 64 * 64 * 2, 64 * 2 * 2048),
        # Shards are wider than rows, of which no byte more is read or written
        (PaddedSlice(window=WINDOW), ("1x4x13x243 dram", "1x1x13x243 width/13x32/8"), 13 * 243 * 2, 0),
        (SliceWrite(window=NARROW, source_width=8), ("1x1x32x2 height/32x32/1", "1x8x8x2 dram"), 0, 32 * 2 * 2),
        (LAST, ("1x1x4x1024 width/4x128/8 dram", "1x1x1024x8 height/64x8/16"), 4 * 1024 * 2, 0),
    ],
)  # fmt: skip
def test_dram_bytes_are_those_of_the_shapes(op, tensors, read, written):
    source, target, *others = map(tensor_spec, tensors)
    found = op.cycles(Ends(read=source, written=target, others=tuple(others)), SPEC)
    assert (found.dram_read_bytes, found.dram_written_bytes) == (read, written)
    assert sum(each.sent_bytes for each in found.transfers or () if each.from_dram) in (read, 0)
