"""Figures of a record, by hand."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16
from device.plan import MadeTensor, Operation
from ops.launch import Launch, LaunchedProgram, Replay, gaps_nanoseconds
from tests.ttsim.report.ran_operations import runs_of, untimed
from ttsim.report.record import device_figures, known_arch, numbered

TENSOR = TensorSpec([1, 1, 32, 32], BFLOAT16, Layout.TILE)


def test_operations_follow_each_other_with_their_gaps(halo, spec):
    program = LaunchedProgram(name="A", cores=1, processors=1, binaries=1, binary_bytes=256)
    launches = [Launch(program, 1000), Launch(program, 0), Launch(program, 1000)]
    facts = [
        {"name": name, "step": Operation(name=name, inputs=(), key=key)} for name, key in (("A", 1), ("B", 2), ("A", 1))
    ]
    runs = runs_of(spec, halo, untimed("B"), halo, facts=facts)
    runs.launches += launches
    first, second, third = runs
    gaps = [round(one) for one in gaps_nanoseconds(launches, spec, Replay.TRACE)]
    assert [one.gap_nanoseconds for one in (first, second, third)] == gaps
    assert (first.start_cycle, first.end_cycle) == (gaps[0], gaps[0] + 1000)
    assert second.start_cycle == second.end_cycle == first.end_cycle + gaps[1]
    assert third.start_cycle == second.end_cycle + gaps[2]
    assert [one.program for one in (first, second, third)] == [1, 2, 1]
    assert (second.time, second.kernel_nanoseconds, first.kernel_nanoseconds) == (None, 0, 1000)
    assert [one.call_count for one in (first, second, third)] == [1024, 2048, 3072]


def test_a_tensor_has_the_number_of_its_buffer_and_a_view_one_of_its_own():
    flat = TensorSpec([1, 1, 1, 1024], BFLOAT16, Layout.ROW_MAJOR)
    one, view, other = MadeTensor(4, 0, TENSOR), MadeTensor(4, 0, flat), MadeTensor(7, 64, TENSOR)
    assert numbered([one, view, one, other]) == {one: 4, other: 7, view: 8}


def test_a_device_is_told_by_its_figures(spec):
    made = device_figures(spec, 1024)
    assert (made["num_x_cores"], made["num_y_cores"], made["num_compute_cores"]) == (8, 8, 64)
    assert made["cb_limit"] - made["l1_bank_size"] == 1024
    assert made["total_l1_for_tensors"] == 64 * made["l1_bank_size"]


@pytest.mark.parametrize(("family", "known"), [("wormhole_b0", "wormhole_b0"), ("quasar", "")])
def test_an_architecture_that_viewers_do_not_know_is_left_out(spec, family, known):
    assert known_arch(spec.replace(arch='my, "own"', family=family)) == known
