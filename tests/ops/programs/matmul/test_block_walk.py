"""The walk through the blocks of a matmul, by hand."""

import pytest

from device.errors import DeviceError
from device.time.engine import BEGIN, Slots, task_of
from device.time.stages import Stage
from ops.programs.matmul.cycles import MatmulSteps, walk_blocks


def steps(
    *,
    out_blocks=1,
    k_blocks=3,
    first=4.0,
    second=10.0,
    multiply=7.0,
    multiply_next=0.0,
    multiply_last=0.0,
    finish=0.0,
    write=0.0,
    dram=(0.0, 0.0, 0.0),
    parts=1,
):
    def task(stage, cycles):
        return task_of({stage: cycles}) if cycles else None

    return MatmulSteps(
        out_blocks=out_blocks,
        k_blocks=k_blocks,
        start=task_of({Stage.START: 100.0}),
        first=task(Stage.READER, first),
        second=task_of({Stage.WEIGHT_READER: second}),
        multiply=tuple(
            task_of({Stage.MATH: cycles})
            for cycles in (multiply, multiply_next or multiply, multiply_last or multiply_next or multiply)
        ),
        finish=task(Stage.UNTILIZE, finish),
        write=task(Stage.WRITER, write),
        first_dram=task(Stage.DRAM, dram[0]),
        second_dram=task(Stage.DRAM, dram[1]),
        write_dram=task(Stage.DRAM, dram[2]),
        parts=parts,
    )


@pytest.mark.parametrize(
    ("facts", "cycles"),
    [
        ({}, 100 + 3 * 10 + 7),  # the slower reader, and the last product
        ({"multiply": 12.0}, 100 + 10 + 3 * 12),  # the first block, and the products
        ({"multiply": 12.0, "finish": 5.0, "write": 6.0}, 100 + 10 + 3 * 12 + 5 + 6),
        ({"k_blocks": 1000}, 100 + 1000 * 10 + 7),
        ({"k_blocks": 1000, "multiply": 12.0}, 100 + 10 + 1000 * 12),
        ({"dram": (5.0, 6.0, 0)}, 100 + 3 * 11 + 7),  # the banks are slower than either reader
        ({"dram": (5.0, 6.0, 0), "k_blocks": 1000}, 100 + 1000 * 11 + 7),
        # The second block is read and multiplied while the first is written; its own is written when it is finished.
        ({"out_blocks": 2, "k_blocks": 1, "write": 1.0}, 100 + (10 + 7 + 1) + 10 + 7 + 1),
        ({"out_blocks": 2, "k_blocks": 1, "multiply": 30.0, "write": 1.0}, 100 + 10 + 30 + 1 + 10 + 30 + 1),
        # Partial sums are fetched back from the second block on, or for the last one.
        ({"multiply": 12.0, "multiply_next": 15.0, "multiply_last": 20.0}, 100 + 10 + 12 + 15 + 20),
        ({"multiply": 12.0, "multiply_last": 20.0, "k_blocks": 1000}, 100 + 10 + 999 * 12 + 20),
        ({"multiply": 12.0, "multiply_last": 20.0, "k_blocks": 1}, 100 + 10 + 12),
        # Of four parts three are written while the next is multiplied; or all four after the first.
        ({"multiply": 12.0, "write": 8.0, "parts": 4}, 100 + 10 + 3 * 12 + 2),
        ({"multiply": 12.0, "write": 80.0, "parts": 4}, 100 + 10 + 2 * 12 + 3 + 80),
        ({"multiply": 12.0, "finish": 4.0, "write": 80.0, "parts": 4}, 100 + 10 + 3 * 12 + 1 + 80),
    ],
)
def test_blocks_wait_for_whom_they_need(facts, cycles):
    assert walk_blocks("matmul", steps(**facts)).cycles == pytest.approx(cycles)


def test_a_walk_that_loses_a_block_is_found_out(monkeypatch):
    monkeypatch.setattr(Slots, "reserve", lambda slots: BEGIN)
    empty = Slots.empty
    monkeypatch.setattr(Slots, "empty", lambda slots, moment: None if slots.name == "out" else empty(slots, moment))
    with pytest.raises(DeviceError, match="matmul: circular buffer 'out' still holds 1 blocks"):
        walk_blocks("matmul", steps())


@pytest.mark.parametrize(
    ("processors", "cycles"),
    [
        (1, 82),  # 10 + 6, 10 + 6, and 4 until the last product; written 5 cycles later; the same once more
        (2, 50),  # 10, 20, multiplied by 24 and written by 29; then the second operand comes, at 35 and 41, and 4 + 5
        (3, 49),  # which need not wait for the writing: the first one is there at 30 and 40, and 4 + 5
    ],
)
def test_processors_share_what_is_to_be_moved(processors, cycles):
    two_blocks = MatmulSteps(
        out_blocks=2,
        k_blocks=2,
        start=task_of({Stage.START: 0.0}),
        first=task_of({Stage.READER: 10.0}),
        second=task_of({Stage.WEIGHT_READER: 6.0}),
        multiply=(task_of({Stage.MATH: 4.0}),) * 3,
        write=task_of({Stage.WRITER: 5.0}),
        processors=processors,
    )
    assert walk_blocks("matmul", two_blocks).cycles == cycles
