"""Whether element-wise programs work where shards lie, against ttnn 0.81.1 on devices without kernels."""

import pytest

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.programs.eltwise.buffers import lies_in_place

SPEC = load_spec("wormhole_n150")


@pytest.mark.parametrize(
    ("columns", "data_format", "in_place"),
    [
        (8, BFLOAT16, True),
        (4, BFLOAT16, False),  # 8 bytes: a row does not end where L1 is aligned
        (4, FLOAT32, True),
        (3, FLOAT32, False),
    ],
)
def test_rows_that_end_unaligned_are_not_worked_on_in_place(columns, data_format, in_place):
    shards = ShardSpec(first_cores(2, 8, 8), (1024, columns))
    place = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, shards)
    rows = TensorSpec((1, 1, 2048, columns), data_format, Layout.ROW_MAJOR, place)
    assert lies_in_place(rows, rows, SPEC) is in_place


def test_rows_that_are_no_whole_tiles_are_not_worked_on_in_place():
    place = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(first_cores(2, 8, 8), (16, 32)))
    rows = TensorSpec((1, 1, 32, 32), BFLOAT16, Layout.ROW_MAJOR, place)
    assert not lies_in_place(rows, rows, SPEC)
