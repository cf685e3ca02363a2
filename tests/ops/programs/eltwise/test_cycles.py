"""Element-wise programs in time."""

import pytest

from device.numbers.formats import BFLOAT16
from device.time.stages import Stage
from ops.op_models import load_spec
from ops.programs.eltwise.op import Activate, AddRow, Binary, BinaryOperation
from tests.build import op_cycles

SPEC = load_spec("wormhole_n150").replace(
    compute_unpack_bytes_per_cycle=64.0,
    compute_pack_bytes_per_cycle=64.0,
    compute_costs_add_tile_cycles=40.0,
    compute_costs_vector_tile_cycles=250.0,
    movement_costs_start_cycles=500.0,
    movement_costs_page_rate_share=1.0,
    transfer_costs_page_issue_cycles=50.0,
    transfer_costs_write_issue_cycles=20.0,
)
ADD_ROW = AddRow(data_format=BFLOAT16, row_format=BFLOAT16)
RELU = Activate(name="relu", parameters=(), data_format=BFLOAT16)
ADD = Binary(operation=BinaryOperation.ADD, left_format=BFLOAT16, right_format=BFLOAT16, data_format=BFLOAT16)
PRODUCT = Binary(operation=BinaryOperation.MULTIPLY, left_format=BFLOAT16, scalar=2.0, data_format=BFLOAT16)
TILES, SHARDS = "1x1x3072x64 tile", "1x1x384x64 tile height/96x64/4"
READ, ROW, WRITE = 381 + 2048 / 24, 2048 / 30, 2048 / 30  # a round trip for a tile, a tile behind it, a tile written


@pytest.mark.parametrize(
    ("op", "processors", "tensor", "cycles", "bound_by", "read_bytes", "written_bytes"),
    [
        # four cores have three rows of two tiles: unpack 32, function 250, pack 32, the last one after all others
        (RELU, 2, SHARDS, 6 * (32 + 250) + 32, Stage.MATH, 0, 0),
        (PRODUCT, 2, SHARDS, 6 * (32 + 250) + 32, Stage.MATH, 0, 0),  # the vector unit's
        # 192 tiles on 64 cores: three rounds; the row is read with every tile, and spread
        (ADD_ROW, 2, TILES, 3 * (READ + ROW) + 32 + 32 + 64 + 40 + 32 + WRITE, Stage.READER, 192 * 4096, 192 * 2048),
        (ADD, 2, TILES, 3 * (READ + ROW) + 32 + 32 + 40 + 32 + WRITE, Stage.READER, 192 * 4096, 192 * 2048),
        (PRODUCT, 2, TILES, 3 * READ + 32 + 250 + 32 + WRITE, Stage.READER, 192 * 2048, 192 * 2048),
        # one data movement processor reads and writes in turn
        (RELU, 1, TILES, 3 * (READ + WRITE) + 32 + 250 + 32, Stage.READER, 192 * 2048, 192 * 2048),
    ],
)
def test_operations_by_hand(op, processors, tensor, cycles, bound_by, read_bytes, written_bytes):
    spec = SPEC.replace(data_movement_processors=processors)
    result = op_cycles(op, tensor, spec=spec, contention=False)
    assert result.cycles == pytest.approx(500 + cycles, rel=1e-12)
    assert (result.cores, result.bound_by) == (4 if tensor == SHARDS else 64, bound_by)
    assert (result.dram_read_bytes, result.dram_written_bytes) == (read_bytes, written_bytes)
    assert result.network_bytes == read_bytes + written_bytes


def test_banks_that_deliver_less_bind():
    slow = SPEC.replace(dram_bank_bytes_per_second=1e9)
    bound, free = (op_cycles(ADD_ROW, TILES, spec=slow, contention=contention) for contention in (True, False))
    assert bound.cycles == pytest.approx(500 + 192 * 6144 / (12 * 0.922), rel=1e-12)
    assert bound.bound_by is Stage.DRAM
    assert bound.contention_cycles == pytest.approx(bound.cycles - free.cycles)
