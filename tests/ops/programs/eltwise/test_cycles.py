"""Element-wise programs in time."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from device.time.stages import Stage
from ops.op_model import CyclesContext, Ends
from ops.op_models import load_spec
from ops.programs.eltwise.op import (
    Activate,
    AddRow,
    Binary,
    BinaryOperation,
)
from tests.shards import high

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
SUM = AddRow(data_format=BFLOAT16, row_format=BFLOAT16)
RELU = Activate(name="relu", parameters=(), data_format=BFLOAT16)


def interleaved(rows, columns=64):
    memory = MemoryConfig(TensorMemoryLayout.INTERLEAVED, BufferType.DRAM)
    return TensorSpec((1, 1, rows, columns), BFLOAT16, Layout.TILE, memory)


def cycles(op, tensor, spec, *, contention=True):
    return op.cycles(Ends(read=tensor, written=tensor), CyclesContext(spec=spec, contention=contention))


def sharded(rows, cores):
    return TensorSpec((1, 1, rows, 64), BFLOAT16, Layout.TILE, high((rows // cores, 64), cores))


def test_sharded_tiles_are_not_read_and_not_written():
    """Four cores have three rows of two tiles: unpack 32, function 250, pack 32, the last one after all others."""
    tensor = sharded(384, 4)
    found = cycles(RELU, tensor, SPEC)
    assert found.cycles == 500 + 6 * (32 + 250) + 32
    assert (found.cores, found.bound_by) == (4, Stage.MATH)
    assert (found.dram_read_bytes, found.dram_written_bytes, found.network_bytes) == (0, 0, 0)


def test_a_row_is_read_with_every_tile_and_spread():
    """192 tiles on 64 cores: three rounds of a round trip (381 + 2048/24) and the row's tile behind it (2048/30)."""
    tensor = interleaved(96 * 32)
    found = cycles(SUM, tensor, SPEC, contention=False)
    read, compute, pack, write = 381 + 2048 / 24 + 2048 / 30, 32 + 32 + 64 + 40, 32, 2048 / 30
    assert found.cycles == pytest.approx(500 + 3 * read + compute + pack + write, rel=1e-12)
    assert found.bound_by is Stage.READER
    assert (found.dram_read_bytes, found.dram_written_bytes) == (192 * 4096, 192 * 2048)


SUM_OF_TWO = Binary(operation=BinaryOperation.ADD, left_format=BFLOAT16, right_format=BFLOAT16, data_format=BFLOAT16)
PRODUCT_WITH_A_NUMBER = Binary(
    operation=BinaryOperation.MULTIPLY, left_format=BFLOAT16, scalar=2.0, data_format=BFLOAT16
)


def test_a_second_tensor_is_read_as_a_row_is():
    """As the row above, which is not spread: unpack 32 twice, add 40."""
    tensor = interleaved(96 * 32)
    found = cycles(SUM_OF_TWO, tensor, SPEC, contention=False)
    read, compute, pack, write = 381 + 2048 / 24 + 2048 / 30, 32 + 32 + 40, 32, 2048 / 30
    assert found.cycles == pytest.approx(500 + 3 * read + compute + pack + write, rel=1e-12)
    assert (found.dram_read_bytes, found.dram_written_bytes) == (192 * 4096, 192 * 2048)


def test_a_product_with_a_number_takes_the_vector_unit_and_reads_one_tensor():
    tensor = sharded(384, 4)
    assert cycles(PRODUCT_WITH_A_NUMBER, tensor, SPEC).cycles == 500 + 6 * (32 + 250) + 32
    tensor = interleaved(96 * 32)
    assert cycles(PRODUCT_WITH_A_NUMBER, tensor, SPEC).dram_read_bytes == 192 * 2048


def test_one_data_movement_processor_reads_and_writes_in_turn():
    tensor = interleaved(96 * 32)
    alone = SPEC.replace(data_movement_processors=1)
    found = cycles(RELU, tensor, alone, contention=False)
    moved = 381 + 2048 / 24 + 2048 / 30
    assert found.cycles == pytest.approx(500 + 3 * moved + 32 + 250 + 32, rel=1e-12)


def test_banks_that_deliver_less_bind():
    tensor = interleaved(96 * 32)
    slow = SPEC.replace(dram_bank_bytes_per_second=1e9)
    found = cycles(SUM, tensor, slow)
    assert found.cycles == pytest.approx(500 + 192 * 6144 / (12 * 0.922), rel=1e-12)
    assert found.bound_by is Stage.DRAM
    free = cycles(SUM, tensor, slow, contention=False)
    assert found.contention_cycles == pytest.approx(found.cycles - free.cycles)
