"""Figures of a record, by hand."""

from dataclasses import replace

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16
from device.plan import MadeTensor
from ops.launch import Launch, LaunchedProgram, Replay, gaps_nanoseconds
from ttsim.report.cycle_report import cycle_report
from ttsim.report.cycles import TimedCall, UntimedOperation, operation_time
from ttsim.report.network import PassOperation
from ttsim.report.record import (
    CoreSpan,
    RanStep,
    core_spans,
    device_figures,
    kernel_time,
    known_arch,
    numbered,
    recorded_operations,
)

TENSOR = TensorSpec([1, 1, 32, 32], BFLOAT16, Layout.TILE)


def passed(number: int, name: str, cycles: int, untimed: str = "") -> PassOperation:
    return PassOperation(
        number=number, name=name, call=0, function="f", where="", start_nanoseconds=0.0, cycles=cycles,
        nanoseconds=float(cycles), share=0.5, bound_by="", core_count=0 if untimed else 4, circular_bytes=0,
        buffer_bytes=0, untimed=untimed)  # fmt: skip


def test_cores_end_where_their_groups_do(halo, spec):
    """One core of a halo takes 1000 cycles, three take 400."""
    time = operation_time(halo, spec, of_cycles=1000)
    spans = core_spans(time)
    assert spans[0] == CoreSpan(column=0, row=0, cycles=1000)
    assert [one.cycles for one in spans] == [1000, 400, 400, 400]
    taken = kernel_time(time, spans, spec)
    assert (taken.kernel, taken.least, taken.mean) == (1000, 400, 550)
    assert (taken.products, taken.dram) == (1, 1)  # there are none, but viewers take 0 for a failure
    assert taken.ideal == time.roofline.cycles


def test_operations_follow_each_other_with_their_gaps(halo, spec):
    steps = [
        RanStep(name=name, key=key, cached=cached, inputs=(TENSOR,), output=TENSOR)
        for name, key, cached in (("A", 1, False), ("B", 2, False), ("A", 1, True))
    ]
    program = LaunchedProgram(name="A", cores=1, processors=1, binaries=1, binary_bytes=256)
    launches = [Launch(program, 1000), Launch(program, 0), Launch(program, 1000)]
    (call,) = cycle_report([TimedCall(name="f", operations=(halo, halo))], spec).calls
    missing = UntimedOperation(name="B", reason="nobody knows", position=1)
    passes = [passed(0, "A", 1000), passed(1, "B", 0, "nobody knows"), passed(2, "A", 1000)]
    first, second, third = recorded_operations(steps, passes, [replace(call, untimed=(missing,))], launches, spec)
    gaps = [round(one) for one in gaps_nanoseconds(launches, spec, Replay.TRACE)]
    assert [one.gap_nanoseconds for one in (first, second, third)] == gaps
    assert (first.start_cycle, first.end_cycle) == (gaps[0], gaps[0] + 1000)
    assert second.start_cycle == second.end_cycle == first.end_cycle + gaps[1]
    assert third.start_cycle == second.end_cycle + gaps[2]
    assert [one.program for one in (first, second, third)] == [1, 2, 1]
    assert second.time is second.nanoseconds is None
    assert second.spans == ()
    assert first.end_of(first.spans[1]) == first.start_cycle + 400
    assert [one.call_count for one in (first, second, third)] == [1024, 2048, 3072]


def test_a_tensor_has_the_number_of_its_buffer_and_a_view_one_of_its_own():
    flat = TensorSpec([1, 1, 1, 1024], BFLOAT16, Layout.ROW_MAJOR)
    one, view, other = MadeTensor(4, 0, TENSOR), MadeTensor(4, 0, flat), MadeTensor(7, 64, TENSOR)
    assert numbered([one, view, one, other]) == {one: 4, other: 7, view: 8}


def test_a_device_is_told_by_its_figures(spec):
    made = device_figures(spec, 1024)
    assert (made.num_x_cores, made.num_y_cores, made.num_compute_cores) == (8, 8, 64)
    assert made.cb_limit - made.l1_bank_size == 1024
    assert made.total_l1_for_tensors == 64 * made.l1_bank_size


@pytest.mark.parametrize(("family", "known"), [("wormhole_b0", "wormhole_b0"), ("quasar", "")])
def test_an_architecture_that_viewers_do_not_know_is_left_out(spec, family, known):
    assert known_arch(spec.replace(arch='my, "own"', family=family)) == known
