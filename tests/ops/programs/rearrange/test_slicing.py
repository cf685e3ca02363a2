"""The buffers of a box that is cut out of a tensor, by hand, and what it takes."""

import numpy as np
import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from ops.builder import PlanTensor
from ops.op_model import CyclesContext, Ends
from ops.op_models import load_spec
from ops.programs.rearrange.slicing import OP_MODELS, Cut, cut, slice_buffers
from tests.shards import high

SPEC = load_spec("wormhole_n150")
L1 = MemoryConfig(TensorMemoryLayout.INTERLEAVED, BufferType.L1)


def tensor(name, shape, layout=Layout.ROW_MAJOR, place=L1):
    return PlanTensor(name, TensorSpec(shape, BFLOAT16, layout, place))


def box(shape, begins, ends, steps=(1, 1, 1, 1)):
    return Cut(shape=shape, begins=begins, ends=ends, steps=steps)


def sizes(*args):
    return [(one.size_bytes, one.cores.num_cores(), one.scratchpad) for one in slice_buffers(*args, SPEC)]


def test_rows_that_begin_between_aligned_addresses_take_more():
    """864 rows of 80 bytes: 14 of a core count as 32, all of 2,560 bytes at once; from byte 40 a row takes 96."""
    source, made = tensor("input", (2, 16, 64, 96)), tensor("output", (2, 12, 36, 40))
    apart = box((2, 16, 64, 96), (0, 0, 5, 20), (2, 12, 41, 60))
    assert sizes(apart, source, made) == [(2 * 32 * 96, 64, False), (4 * 4, 64, True)]
    aligned = box((2, 16, 64, 96), (0, 0, 5, 16), (2, 12, 41, 56))
    assert sizes(aligned, source, made)[0] == (2 * 32 * 80, 64, False)


def test_long_rows_are_read_in_parts():
    """16 rows of 206 bytes, each at a distance of 208: 16 such rows are the most of 32 that 4,096 bytes hold."""
    work = box((1, 1, 64, 128), (0, 0, 16, 24), (1, 1, 32, 127))
    assert sizes(work, tensor("input", work.shape), tensor("output", (1, 1, 16, 103)))[0] == (2 * 16 * 208, 16, False)


def test_steps_read_whole_rows():
    work = box((1, 8, 224, 64), (0, 0, 24, 0), (1, 8, 48, 16), (1, 1, 1, 2))
    made = tensor("output", (1, 8, 24, 8))
    assert sizes(work, tensor("input", work.shape), made) == [(2 * 128, 64, False)]


def test_tiles_pass_two_at_a_time():
    work = box((1, 5, 33, 47), (0, 0, 0, 0), (1, 5, 32, 47))
    source, made = (
        tensor(name, shape, Layout.TILE) for name, shape in (("input", work.shape), ("output", (1, 5, 32, 47)))
    )
    assert sizes(work, source, made) == [(2 * 2048, 10, False), (16, 10, True)]


def test_rows_are_cut_out_of_shards_where_they_lie():
    places = [high((rows, 32), 2) for rows in (120, 42)]
    work = box((3, 2, 40, 32), (0, 0, 8, 0), (3, 2, 22, 32))
    source, made = tensor("input", work.shape, place=places[0]), tensor("output", (3, 2, 14, 32), place=places[1])
    views = slice_buffers(work, source, made, SPEC)
    assert [(one.size_bytes, one.view_of) for one in views] == [(120 * 64, "input"), (42 * 64, "output")]


def test_the_box():
    array = np.arange(24.0).reshape(2, 3, 4)
    work = Cut(shape=(2, 3, 4), begins=(1, 0, 1), ends=(2, 3, 4), steps=(1, 2, 2))
    assert np.array_equal(cut(work, array), array[1:2, ::2, 1::2])


@pytest.mark.parametrize("layout", [Layout.ROW_MAJOR, Layout.TILE])
def test_a_box_takes_as_long_as_a_copy_of_it_and_says_so(layout):
    work = box((1, 8, 64, 64), (0, 0, 0, 0), (1, 2, 64, 64))
    source, made = tensor("input", work.shape, layout).spec, tensor("output", (1, 2, 64, 64), layout).spec
    reading, meaning = CyclesContext(spec=SPEC, contention=True), OP_MODELS[0]
    part = meaning.cycles(work, Ends(read=source, written=made), reading).cycles
    assert part == meaning.cycles(work, Ends(read=made, written=made), reading).cycles
    account = meaning.account(work, Ends(read=source, written=made), SPEC)
    assert not account.measured_as
    assert account.composed_of
