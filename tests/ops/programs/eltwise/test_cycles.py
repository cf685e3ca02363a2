"""What element-wise programs take, by hand."""

from dataclasses import replace

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.numbers.formats import BFLOAT16, FLOAT32
from device.time.links import spread_link_bytes
from device.time.stages import Stage
from ops.programs.eltwise.cycles import Compute, EltwiseProgram, result_tiles, tile_shape, tiles_for
from ops.programs.eltwise.op import Activate, AddRow, Binary
from ops.programs.eltwise.ternary import Ternary
from ops.programs.eltwise.vector_steps import vector_cycles
from tests.build import N150, busy, op_cycles, tensor_spec

SPEC = N150.replace(
    compute_unpack_bytes_per_cycle=64.0,
    compute_pack_bytes_per_cycle=64.0,
    compute_costs_add_tile_cycles=40.0,
    compute_costs_matmul_call_cycles=10.0,
    compute_costs_vector_tile_cycles=250.0,
    movement_costs_start_cycles=500.0,
    movement_costs_page_rate_share=1.0,
    movement_costs_store_cycles=4.0,
    movement_costs_wait_share=0.33,
    movement_costs_dram_write_share=0.778,
    movement_costs_write_access_ns=100.0,
    transfer_costs_page_issue_cycles=70.0,
    transfer_costs_write_issue_cycles=20.0,
    transfer_costs_locate_cycles=300.0,
    transfer_costs_shard_page_cycles=100.0,
)
BOTH = {"left_format": BFLOAT16, "right_format": BFLOAT16, "data_format": BFLOAT16}
ADD_ROW = AddRow(data_format=BFLOAT16, row_format=BFLOAT16)
RELU = Activate(name="relu", parameters=(), data_format=BFLOAT16)
ADD, MULTIPLY = Binary(operation="add", **BOTH), Binary(operation="multiply", **BOTH)
PRODUCT = Binary(operation="multiply", left_format=BFLOAT16, scalar=2.0, data_format=BFLOAT16)
WHERE = Ternary(operation="where", formats=(BFLOAT16, BFLOAT16, BFLOAT16), data_format=BFLOAT16)
TILES, SHARDS, ROW = "1x1x3072x64 tile", "1x1x384x64 tile height/96x64/4", "1x64 tile"
READ, WAIT = 381 + 2048 / 24, 293 + 100  # a round trip to DRAM for a tile; a small write to DRAM
WRITE = WAIT + 2048 / 30
UNPACK = PACK = 32  # 2,048 bytes


@pytest.mark.parametrize(
    ("op", "processors", "tensors", "cycles", "bound_by", "read_bytes", "written_bytes"),
    [
        # Four cores have three rows of two tiles in place; the packer is one tile behind.
        (RELU, 2, (SHARDS,), 6 * (UNPACK + 250) + PACK, Stage.MATH, 0, 0),
        (ADD, 2, (SHARDS, SHARDS), 6 * (UNPACK + 50) + PACK, Stage.MATH, 0, 0),  # both unpackers at once
        (MULTIPLY, 2, (SHARDS, SHARDS), 6 * (2 * UNPACK + 250) + PACK, Stage.MATH, 0, 0),  # the vector unit's
        (WHERE, 2, (SHARDS, SHARDS, SHARDS), 6 * (3 * UNPACK + 250) + PACK, Stage.MATH, 0, 0),
        # A number fills the 512 words of a tile first.
        (PRODUCT, 2, (SHARDS,), 512 * 4 + 6 * (UNPACK + 250) + PACK, Stage.WRITER, 0, 0),
        # 192 tiles on 64 cores are three of each; the last of two tiles in flight is asked for 70 cycles later.
        (ADD, 2, (TILES, TILES), 300 + 3 * (READ + 140) + 82 + PACK + WRITE, Stage.DRAM, 192 * 4096, 192 * 2048),
        # A row is read with every tile, and spread: unpacked and packed.
        (ADD_ROW, 2, (TILES, ROW), 300 + 3 * (READ + 140) + 136 + PACK + WRITE, Stage.DRAM, 192 * 4096, 192 * 2048),
        # A column is kept for a row of two tiles, one number for all tiles.
        (ADD, 2, (TILES, "1x1x3072x1 tile"), 300 + 3 * 1.5 * (READ + 70) + 114 + PACK + WRITE, Stage.READER,
         192 * 3072, 192 * 2048),
        (ADD, 2, (TILES, "1x1 tile"), 300 + 3 * (193 / 192) * (READ + 70) + 82 + 64 / 192 + PACK + WRITE, Stage.READER,
         193 * 2048, 192 * 2048),
        # Meanwhile two of three tiles are read, as many as their buffer holds; two more are written.
        (PRODUCT, 2, (TILES,), 2048 + 2 * WRITE + UNPACK + 250 + PACK + WRITE, Stage.WRITER, 192 * 2048, 192 * 2048),
        # A function waits for its last tile alone; one data movement processor reads and writes in turn.
        (RELU, 2, (TILES,), 3 * (READ + 70) + 282 + PACK + WRITE, Stage.DRAM, 192 * 2048, 192 * 2048),
        (RELU, 1, (TILES,), 3 * (READ + 70 + 2048 / 30) + 282 + PACK + WAIT, Stage.DRAM, 192 * 2048, 192 * 2048),
    ],
)  # fmt: skip
def test_operations_by_hand(op, processors, tensors, cycles, bound_by, read_bytes, written_bytes):
    spec = SPEC.replace(data_movement_processors=processors)
    result = op_cycles(op, tensors[0], None, spec, *tensors[1:])
    assert result.cycles - result.contention_cycles == pytest.approx(500 + cycles, rel=1e-12)
    assert (result.cores, result.bound_by) == (4 if tensors[0] == SHARDS else 64, bound_by)
    assert (result.dram_read_bytes, result.dram_written_bytes) == (read_bytes, written_bytes)
    assert result.network_bytes == 0  # only pages of DRAM leave a core or arrive


@pytest.mark.parametrize(("spread", "numbers"), [("2x3x50x1", 300), ("2x3x1x1", 6), ("1x1", 6)])
def test_numbers_without_tiles_are_read_once_for_a_row_or_an_image(spread, numbers):
    result = op_cycles(ADD, "2x3x50x70", None, SPEC, spread)
    assert result.dram_read_bytes == (300 * 70 + numbers) * 2
    assert sum(each.sent_bytes for each in result.transfers if each.from_dram) == result.dram_read_bytes


def test_rows_without_tiles_are_asked_for_row_by_row():
    """1,024 numbers are a tile: 16 rows of 64, 128 bytes each; 3,072 rows are 192 of them."""
    assert tile_shape(tensor_spec("1x1x3072x64")) == (192, 16, 128)
    assert tile_shape(tensor_spec("8x3000")) == (8 * 3, 1, 2048)
    assert tile_shape(tensor_spec("1x5")) == (1, 1, 10)  # no more rows than there are
    result = op_cycles(RELU, "1x1x3072x64", None, SPEC)
    row = 381 + 128 / 24
    alone = 3 * (row + 16 * 70) + 282 + PACK + 16 * 20 + WAIT
    assert result.cycles - result.contention_cycles == pytest.approx(500 + alone, rel=1e-12)


@pytest.mark.parametrize(
    ("operand", "share"),
    [("2x64x96", 1), ("1x96", 1), ("2x64x1", 1 / 3), ("1x1x1", 1 / 6), ("2x1x1", 1 / 6)],
)
def test_tiles_of_an_operand_for_one_of_the_result(operand, share):
    assert tiles_for(tensor_spec(f"{operand} tile"), tensor_spec("2x64x96 tile")) == pytest.approx(share)


def test_operands_in_unlike_memories_are_read_by_number():
    """The first in shards, the second in DRAM: pages of shards are found by divisions, and written so, too."""
    result = op_cycles(ADD, SHARDS, None, SPEC, "1x1x384x64 tile")
    alone = 300 + READ + 140 + 100 + 82 + PACK + 100 + 2048 / 30
    assert result.cores == 24
    assert result.cycles - result.contention_cycles == pytest.approx(500 + alone + 268, rel=0.002)


def test_cores_that_start_together_wait_for_each_other():
    """63 other cores' tiles come first at the rate of all banks; a third of them where cores are out of step."""
    spec = SPEC.replace(movement_costs_wait_share=0.25)
    reader = busy(op_cycles(RELU, TILES, None, spec))[Stage.READER]
    behind = 63 * 2048 / (12 * 24 * 0.922)
    assert reader == pytest.approx(3 * (READ + 70) + behind + 2 * 0.25 * 2 * behind, rel=1e-12)


def test_tiles_in_the_l1_of_all_cores_meet_on_links_but_for_the_first():
    """Each of three is waited for; later ones as long as the busiest link passes one of every core."""
    spec = SPEC.replace(noc_merging_share=0.5, noc_crossing_cycles=2.0)
    busiest = spread_link_bytes(spec, first_cores(64, 8, 8), 64, in_dram=False, writes=False)
    met = busiest * (2048 / 15 + 2) - 2048 / 30
    result = op_cycles(RELU, f"{TILES} l1", None, spec)
    assert busy(result)[Stage.READER] == pytest.approx(3 * (268.25 + 2048 / 30 + 70) + 2 * met)
    assert result.contention_cycles == pytest.approx(2 * met)


def test_a_page_that_all_cores_ask_for_binds_one_bank():
    """Every tile needs the one page of the number's row: 192 times 2,048 bytes of a bank that gives 12 of 24 bytes."""
    spec = SPEC.replace(movement_costs_page_rate_share=0.5)
    dram = busy(op_cycles(ADD, "1x1x6144x32 tile", None, spec, "1x32 tile"))[Stage.DRAM]
    assert dram == pytest.approx(192 * 2048 / 12 + 192 * 4096 / (12 * 24 * 0.922), rel=1e-12)


def test_banks_that_deliver_less_bind():
    """All bytes at their rate, after the first tile's read and before the last one's write."""
    slow = SPEC.replace(dram_bank_bytes_per_second=1e9)
    bound = op_cycles(ADD, TILES, None, slow, TILES)
    ends = 300 + 381 + 2048 + 140 + WRITE
    assert bound.cycles == pytest.approx(500 + 192 * 6144 / (12 * 0.922) + ends, rel=1e-12)
    assert bound.bound_by is Stage.DRAM
    assert 0 < bound.contention_cycles < bound.cycles


def test_products_were_the_matrix_units():
    """Software of 2025 multiplies in four phases of 8 cycles, with both unpackers; float32 stays the vector unit's."""
    older = SPEC.replace(release="2025")
    product = op_cycles(MULTIPLY, SHARDS, None, older, SHARDS)
    assert product.cycles == pytest.approx(500 + 6 * (UNPACK + 50 + 3 * 8) + PACK, rel=1e-12)
    wide = Binary(operation="multiply", left_format=FLOAT32, right_format=FLOAT32, data_format=FLOAT32)
    shards = "1x1x384x64 tile float32 height/96x64/4"
    times = {op_cycles(wide, shards, None, spec, shards).cycles for spec in (SPEC, older)}
    assert times == {500 + 6 * (2 * 64 + 250) + 64}


@pytest.mark.parametrize(
    ("release", "second", "uneven"),
    [("0.81.1", False, True), ("2025-12", False, False), ("2025", True, True)],
)
def test_releases_work_on_other_shards_in_place(release, second, uneven):
    """Nothing but the second operand of a program that works on shards crosses the network; all operands otherwise."""
    spec = SPEC.replace(release=release)
    mixed = op_cycles(ADD, SHARDS, None, spec, "1x1x384x64 tile l1")
    assert mixed.network_bytes == 24 * 2048 * (1 if second else 3)
    part = "1x1x320x64 tile height/96x64/4"
    assert (op_cycles(ADD, part, None, spec, part).network_bytes == 0) is uneven
    assert op_cycles(ADD, SHARDS, None, spec, SHARDS).network_bytes == 0


def test_the_vector_unit_compares():
    """Software of 2025 takes a difference, and whether it is at least zero."""
    compared, older = (
        op_cycles(Binary(operation="ge", **BOTH), SHARDS, None, spec, SHARDS).cycles
        for spec in (SPEC, SPEC.replace(release="2025"))
    )
    assert compared == pytest.approx(500 + 6 * (2 * UNPACK + 250) + PACK, rel=1e-12)
    assert older == pytest.approx(500 + 6 * (UNPACK + 50 + 250) + PACK, rel=1e-12)


def test_logical_functions_are_sums_and_products_of_functions():
    """`logical_and` is a product of both operands' own functions."""
    joined = op_cycles(Binary(operation="logical_and", **BOTH), SHARDS, None, SPEC, SHARDS)
    before = 2 * (250 + UNPACK + PACK)
    assert joined.cycles == pytest.approx(500 + 6 * (UNPACK + 50 + 24 + before) + PACK, rel=1e-12)


def test_longer_functions_take_more_instructions():
    """An instruction does 32 numbers of a tile: 38 more of them are 38 x 32 cycles."""
    assert vector_cycles(SPEC, "relu") == 250
    assert vector_cycles(SPEC, "exp") == 250 + 38 * 32
    assert vector_cycles(SPEC.replace(compute_vector_lanes=16), "exp") == 250 + 38 * 64
    chained = Binary(operation="add", **BOTH, activations=(("exp", ()), ("relu", ())), left_activations=(("neg", ()),))
    result = op_cycles(chained, SHARDS, None, SPEC, SHARDS)
    math = 50 + 250 + 38 * 32 + 250 + 250 + UNPACK + PACK
    assert result.cycles == pytest.approx(500 + 6 * (UNPACK + math) + PACK, rel=1e-12)


def test_a_call_keeps_to_its_cores():
    cores = CoreRangeSet([CoreRange(CoreCoord(2, 1), CoreCoord(3, 2)), CoreRange(CoreCoord(5, 5), CoreCoord(5, 5))])
    tiles, work = tensor_spec(TILES), Compute(unpack_cycles=0.0, math_cycles=0.0, pack_cycles=0.0)
    program = EltwiseProgram(operands=(tiles,), result=tiles, in_place=False, compute=work, allowed=cores)
    assert result_tiles(program, SPEC) == (cores, 39, 192)  # 192 tiles on 5 cores
    few = replace(program, result=tensor_spec("1x1x32x96 tile"))
    first = CoreRangeSet([CoreRange(CoreCoord(2, 1), CoreCoord(3, 1)), CoreRange(CoreCoord(2, 2), CoreCoord(2, 2))])
    assert result_tiles(few, SPEC) == (first, 1, 3)  # a tile on each of the first three, row by row
