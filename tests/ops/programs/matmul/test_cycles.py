"""Cycles of matmuls: tile products, fidelities, operands on their way."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from device.cores import first_cores
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from device.spec.parts import GridSpec
from device.time.links import crossing_cycles
from device.time.network import bandwidth, read_latency_cycles
from ops.programs import kernel_costs
from ops.programs.kernel_costs import TransferCosts
from ops.programs.matmul.cycles import MatmulCosts, matmul_cycles as cycles, time_matmul
from ops.programs.matmul.op import (
    MatmulConfig,
    MatmulOp,
    MatmulProblem,
    MatmulProgram,
    Place,
    Places,
    operands_of,
    reader_cores,
)

SPEC = load_spec("wormhole_n150")


def op(
    *, m=32, k=32, n=32, grid=(8, 8), fidelity_phases=2, data_format=BFLOAT8_B, program=MatmulProgram.MCAST_2D, blocks=1
):
    cols, rows = grid
    down, across = {
        MatmulProgram.MCAST_2D: (rows, cols),
        MatmulProgram.MCAST_IN0: (1, rows * cols),
        MatmulProgram.MCAST_IN1: (rows * cols, 1),
        MatmulProgram.SINGLE_TILES: (m, n),
        MatmulProgram.REUSE: (m, 1),
        MatmulProgram.DRAM_SHARDED: (1, rows * cols),
    }[program]
    per_core_m, per_core_n = -(-m // down), -(-n // across)
    problem = MatmulProblem(
        m_tiles=m, k_tiles=k, n_tiles=n, in_format=data_format, weight_format=data_format, out_format=data_format,
        bias=False, fp32_dest=False, packer_l1_acc=True,
    )  # fmt: skip
    config = MatmulConfig(
        program=program, grid=GridSpec(cols=cols, rows=rows), in0_block_w=4,
        banks=-(-n // per_core_n) if program is MatmulProgram.DRAM_SHARDED else 0,
        out_block_h=-(-per_core_m // blocks), out_block_w=per_core_n, per_core_m=per_core_m, per_core_n=per_core_n,
    )  # fmt: skip
    return MatmulOp(problem=problem, config=config, fidelity_phases=fidelity_phases, out_channels=32 * n)


specs = st.sampled_from(["wormhole_n150", "blackhole_p150"]).map(load_spec)
sizes = st.integers(1, 64)
kinds = st.fixed_dictionaries(
    {
        "m": sizes,
        "k": sizes,
        "n": sizes,
        "fidelity_phases": st.integers(1, 4),
        "data_format": st.sampled_from([BFLOAT16, BFLOAT8_B, BFLOAT4_B]),
        "program": st.sampled_from(MatmulProgram),
    }
)


BETTER = {
    "dram_banks": 24,
    "dram_access_ns": 10.0,
    "noc_flit_bytes": 128,
    "compute_phase_cycles": 8,
    "compute_unpack_bytes_per_cycle": 256.0,
    "compute_pack_bytes_per_cycle": 256.0,
    "transfer_costs_page_issue_cycles": 5.0,
    "transfer_costs_write_issue_cycles": 5.0,
    "compute_costs_subblock_cycles": 1.0,
    "compute_costs_matmul_call_cycles": 1.0,
}


@given(specs, kinds, st.integers(1, 4), st.sampled_from(list(BETTER)))
def test_a_better_machine_is_never_slower(spec, kind, blocks, figure):
    matmul = op(**kind, blocks=blocks)
    result, better = cycles(matmul, spec), cycles(matmul, spec.replace(**{figure: BETTER[figure]}))
    assert better.cycles <= result.cycles * (1 + 1e-9)
    math = result.issued_flops / matmul.cores / (2 * 32**3) * 16 * kind["fidelity_phases"]
    assert result.cycles >= math
    assert result.cycles >= (result.dram_read_bytes + result.dram_written_bytes) / bandwidth(spec)


def test_bytes_are_those_of_the_operands():
    result = cycles(op(m=8, k=16, n=24), load_spec("wormhole_n150"))
    assert result.dram_read_bytes == (8 * 16 + 16 * 24) * BFLOAT8_B.tile_bytes
    assert result.dram_written_bytes == 8 * 24 * BFLOAT8_B.tile_bytes
    assert result.useful_flops == 2 * 8 * 16 * 24 * 32**3


@pytest.mark.parametrize(("program", "sizes", "tiles"), [
    (MatmulProgram.SINGLE_TILES, {"m": 15, "n": 14}, 15 * 14),  # 64 cores have 3 or 4 of 210 tiles
    (MatmulProgram.REUSE, {"m": 65, "n": 2}, 65 * 2),  # one core has two rows of 65
])  # fmt: skip
def test_cores_with_fewer_parts_issue_fewer_products(program, sizes, tiles):
    result = cycles(op(k=4, program=program, **sizes), SPEC)
    assert result.issued_flops == 2 * tiles * 4 * 32**3
    assert result.tile_work.packed_tiles == tiles


def test_products_of_padding_are_not_useful():
    matmul = op(m=8, k=16, n=24)
    part = replace(matmul, problem=replace(matmul.problem, useful=250 * 500 * 760))
    result = cycles(part, load_spec("wormhole_n150"))
    assert (result.useful_flops, result.issued_flops) == (2 * 250 * 500 * 760, 2 * 8 * 16 * 24 * 32**3)


def test_the_row_that_is_added_is_read_once_by_each_core_that_reads_its_columns():
    spec = load_spec("wormhole_n150")
    for program, readers in ((MatmulProgram.MCAST_2D, 1), (MatmulProgram.REUSE, None)):
        matmul = op(m=8, k=16, n=24, program=program)
        added = replace(matmul, problem=replace(matmul.problem, bias=True))
        more = cycles(added, spec).dram_read_bytes - cycles(matmul, spec).dram_read_bytes
        assert more == 24 * (readers or matmul.sharers[1]) * BFLOAT8_B.tile_bytes
        in_l1 = cycles(added, spec, Places(added=Place.L1))
        assert in_l1.dram_read_bytes == cycles(matmul, spec).dram_read_bytes
        assert sum(each.sent_bytes for each in cycles(added, spec).transfers if each.from_dram) == (
            cycles(added, spec).dram_read_bytes
        )


@given(specs, kinds, st.integers(2, 4))
def test_batches_follow_each_other(spec, kind, batches):
    matmul = op(**kind)
    several = replace(matmul, problem=replace(matmul.problem, batches=batches, second_batched=True))
    single, result = cycles(matmul, spec), cycles(several, spec)
    assert result.useful_flops == batches * single.useful_flops
    assert result.dram_written_bytes == batches * single.dram_written_bytes
    assert result.dram_read_bytes == batches * single.dram_read_bytes
    assert result.issued_flops == batches * single.issued_flops
    if kind["program"] not in (MatmulProgram.SINGLE_TILES, MatmulProgram.REUSE):  # which find idle cores
        shared = cycles(replace(several, problem=replace(several.problem, first_batched=False)), spec)
        assert shared.dram_read_bytes < result.dram_read_bytes
    assert result.cycles >= single.cycles  # single tiles may find idle cores


def test_every_receiver_says_that_it_is_ready_for_each_block_but_the_first():
    """One row of cores on a network without bytes: 63 of 64 blocks wait for 40 receivers, of whom each takes 10 cycles.

    The first operand is a tile a block: a round trip and a page, then a multicast that takes as long either way.
    """
    matmul = op(m=1, k=256, n=40, grid=(8, 8), program=MatmulProgram.MCAST_IN0)
    figures = {"transfer_costs_multicast_receiver_cycles": 1e-9, "compute_phase_cycles": 1e-3}
    quick, slow = (
        time_matmul(matmul, SPEC.replace(transfer_costs_increment_cycles=cycles, **figures)).cycles
        for cycles in (10.0, 20.0)
    )
    assert matmul.receivers == (40, 1)
    assert slow - quick == pytest.approx(63 * 40 * 10)


def test_senders_that_flush_wait_for_every_block():
    """64 blocks of the first operand leave their core before their flags are sent; whoever sends nothing loses none."""
    matmul = op(m=1, k=256, n=40, grid=(8, 8), program=MatmulProgram.MCAST_IN0)
    figures = {
        "transfer_costs_increment_cycles": 200.0,
        "compute_phase_cycles": 1e-3,
        "movement_costs_flush_cycles": 70.0,
    }
    quick, slow = (
        time_matmul(matmul, SPEC.replace(noc_flushes_multicasts=flushes, **figures)).cycles for flushes in (False, True)
    )
    assert slow - quick == pytest.approx(64 * 70)
    own = op(m=8, k=4, n=8, program=MatmulProgram.SINGLE_TILES, grid=(8, 8))
    assert len({time_matmul(own, SPEC.replace(noc_flushes_multicasts=each)).cycles for each in (False, True)}) == 1


def test_cores_next_to_their_banks_are_as_fast_as_the_banks():
    """12 banks hand out 64 blocks of 16 x 4 tiles of 1,088 bytes, all at once and compute and senders are no slower."""
    matmul = op(m=1, k=256, n=192, program=MatmulProgram.DRAM_SHARDED, grid=(12, 1))
    own = Places(first=Place.OWN, output=Place.OWN)
    figures = {"compute_costs_subblock_cycles": 1e-3, "compute_costs_reload_tile_cycles": 1e-3}
    quick = SPEC.replace(compute_phase_cycles=1e-3, transfer_costs_increment_cycles=1e-3, **figures)
    banks = 192 * 256 * BFLOAT8_B.tile_bytes / bandwidth(SPEC)
    timing = time_matmul(matmul, quick, own)
    assert banks < timing.cycles < 1.1 * banks + SPEC.costs_of(MatmulCosts).start_cycles


def test_single_tiles_wait_for_every_tile_of_either_operand():
    """A core has one output tile and four K tiles: eight tiles one after the other, each with its round trip."""
    matmul = op(m=8, k=4, n=8, program=MatmulProgram.SINGLE_TILES, grid=(8, 8))
    waited = kernel_costs.waited_read_cycles(SPEC, BFLOAT8_B.tile_bytes, in_dram=True)
    timing = time_matmul(matmul, SPEC, contention=False)
    assert timing.first.now.cycles == pytest.approx(SPEC.costs_of(MatmulCosts).start_cycles + 8 * waited)


def test_a_bias_comes_the_way_of_the_second_operand():
    """Its tile is read, sent to the eight cores of a column, and they say so."""
    matmul, figures = op(m=8, k=4, n=8), SPEC.costs_of(TransferCosts)
    added = replace(matmul, problem=replace(matmul.problem, bias=True))
    places = Places(output=Place.OWN)
    plain, biased = (time_matmul(one, SPEC, places, contention=False).second.now.cycles for one in (matmul, added))
    read = read_latency_cycles(SPEC) + figures.page_issue_cycles
    sent = 8 * figures.multicast_receiver_cycles + BFLOAT8_B.tile_bytes / SPEC.noc.link_bytes_per_cycle
    assert biased - plain == pytest.approx(read + sent + 8 * figures.increment_cycles)


@pytest.mark.parametrize(
    ("program", "tiles", "transposed", "first", "second"),
    [
        (MatmulProgram.MCAST_2D, (4, 12), False, (0, 3), (5, 0)),  # of 4 rows of cores and 6 columns, two tiles each
        (MatmulProgram.MCAST_2D, (4, 12), True, (3, 0), (0, 5)),
        (MatmulProgram.MCAST_IN0, (8, 64), False, (0, 0), (7, 7)),  # one core sends the rows, each reads its columns
        (MatmulProgram.MCAST_IN1, (64, 12), False, (7, 7), (0, 0)),
    ],
)
def test_cores_that_send_an_operand_read_it_for_all(program, tiles, transposed, first, second):
    matmul = op(m=tiles[0], n=tiles[1], program=program)
    matmul = replace(matmul, config=replace(matmul.config, transpose_mcast=transposed))
    ends = [list(reader_cores(matmul, SPEC.grid, number).cores())[-1] for number in (0, 1)]
    assert [(core.x, core.y) for core in ends] == [first, second]


@given(specs, kinds)
def test_nothing_is_faster_than_the_busiest_link(spec, kind):
    matmul = op(**kind)
    if matmul.config.program in (MatmulProgram.MCAST_2D, MatmulProgram.MCAST_IN0, MatmulProgram.MCAST_IN1):
        pages = operands_of(matmul).written_bytes / kind["data_format"].tile_bytes
        size = kind["data_format"].tile_bytes
        cores = first_cores(matmul.cores, spec.grid.cols, spec.grid.rows)
        least = crossing_cycles(spec, cores, pages, size, in_dram=True, writes=True, crossed=True)
        assert cycles(matmul, spec).cycles >= least


def test_an_operand_in_the_cores_l1_is_not_read_from_dram():
    matmul = op(m=8, k=16, n=24)
    result = cycles(matmul, SPEC, Places(second=Place.L1))
    assert result.dram_read_bytes == 8 * 16 * BFLOAT8_B.tile_bytes
