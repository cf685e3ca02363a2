"""Pages that an upsample reads and writes, counted by hand."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.numbers.formats import BFLOAT16
from device.spec.device_spec import load_spec
from ops.programs.upsample import Upsample, UpsampleProgram, upsample_movement
from tests.shards import high

SPEC = load_spec("wormhole_n150")


def tensor(side, layout=Layout.ROW_MAJOR, shard_rows=0):
    place = high((shard_rows, 32), 4) if shard_rows else MemoryConfig()
    return TensorSpec((1, side, side, 32), BFLOAT16, layout, place)


@pytest.mark.parametrize(
    ("program", "source", "made", "read", "written"),
    [
        (UpsampleProgram.STICKS, tensor(32), tensor(64), 1024 // 64, 4096 // 64),
        (UpsampleProgram.TILES, tensor(32, Layout.TILE), tensor(64), 1, 4096 // 32),  # a row of tiles on 32 cores
        (UpsampleProgram.SHARDS, tensor(32, shard_rows=256), tensor(64, shard_rows=1024), 1024 // 2, 0),
        (UpsampleProgram.PAGES, tensor(32), tensor(48), 2304 // 64, 2304 // 64),
    ],
)
def test_pages_of_one_core(program, source, made, read, written):
    scale = (made.shape[1] / source.shape[1],) * 2
    work = Upsample(program=program, shape=source.shape, scale=scale, source_format=BFLOAT16, data_format=BFLOAT16)
    movement = upsample_movement(work, source, made, SPEC)
    assert movement.reads is not None
    assert movement.reads.core_pages == read
    assert (0 if movement.writes is None else movement.writes.core_pages) == written
