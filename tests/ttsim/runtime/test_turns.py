"""Threads wait their turn on a device; an interrupt at any line of a call leaves the block table as it was."""

import gc
import sys
from functools import partial
from threading import Thread

import numpy as np
import pytest

import ttsim
from device.memory.memory_config import BufferType
from tests.ttsim.api.calls import conv_arguments
from tools.fuzz.interrupts import Interrupt, found_after, interrupted, opened, play

MEMORIES = (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL)


def tables(device):
    """The block tables of a device: address, size, whether it is allocated."""
    return tuple(
        tuple((block.address, block.size_bytes, block.allocated) for block in device.machine.allocator.blocks(memory))
        for memory in MEMORIES
    )


@pytest.fixture
def device():
    return ttsim.open_device(l1_small_size=32768, values="off")


def caller(device):
    given = conv_arguments(device, kernel=(3, 3), stride=(1, 1), return_weights_and_bias=True)
    return partial(ttsim.conv_transpose2d, **given)


def moves(device):
    x = ttsim.Tensor(np.zeros((1, 1, 32, 32), np.float32), ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
    y = ttsim.to_memory_config(x, ttsim.L1_MEMORY_CONFIG)
    ttsim.deallocate(x)
    ttsim.deallocate(y)


@pytest.mark.usefixtures("quick_collections")
@pytest.mark.parametrize(
    ("call_of", "step", "lines"),  # lines between two interrupts, a prime; and lines that a call has at least
    [(caller, 97, 500), (lambda device: partial(moves, device), 3, 100)],
)
def test_an_interrupt_at_lines_all_through_a_call_leaves_no_block(device, call_of, step, lines):
    call = call_of(device)
    before = tables(device)
    line = 0
    while interrupted(call, line) < 0:
        gc.collect()
        if device.num_program_cache_entries():  # the call was over: its programs may stay
            device.clear_program_cache()
        assert tables(device) == before, f"interrupted at line {line}"
        assert not device.machine.recorders, line
        assert not device.running, line
        line += step
    assert line > lines


@pytest.mark.usefixtures("quick_collections")
def test_an_interrupt_of_an_equal_call_of_onednn_leaves_no_block(device):
    src, weights = np.zeros((1, 4, 4, 2), np.float32), np.zeros((3, 3, 2, 2), np.float32)
    sizes = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}
    call = partial(ttsim.onednn.conv_transpose, src, weights, **sizes, device=device)
    call()
    programs, line = device.num_program_cache_entries(), 0
    while interrupted(call, line) < 0:
        assert device.num_program_cache_entries() == programs, line
        for memory in MEMORIES:
            blocks = device.machine.allocator.blocks(memory)
            assert not any(block.allocated for block in blocks), line
            numbers = [*(block.number for block in blocks), *device.machine.allocator.spare_numbers(memory)]
            assert sorted(numbers) == list(range(len(numbers))), line
        assert not device.running, line
        line += 3
    assert line > 50


def test_threads_take_turns_on_one_device(device):
    call = caller(device)
    before = tables(device)
    failures = []

    def op():
        try:
            for _ in range(12):
                call()
                ttsim.Tensor(np.zeros((1, 1, 64, 32), np.float32), ttsim.bfloat16, device).deallocate()
        except BaseException as error:
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [Thread(target=op) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures
    device.clear_program_cache()
    assert tables(device) == before
    device.close()


class Turns(Interrupt):
    """Notes at which lines a turn is taken and given back."""

    def __init__(self):
        super().__init__(1 << 30)
        self.lines = []

    def __call__(self, frame, event, argument):
        if event == "line" and frame.f_code.co_name in ("locked", "_give_up", "take", "give"):
            self.lines.append((1 << 30) - self.left)
        return super().__call__(frame, event, argument)


@pytest.mark.usefixtures("quick_collections")
@pytest.mark.parametrize("scene", ["matmul and linear", "a gradient of oneDNN"])
def test_an_interrupt_at_lines_of_taking_and_giving_a_turn_leaves_nothing(scene):
    play(scene, opened())
    device = opened()
    for warm in (False, True):
        turns = Turns()
        sys.settrace(turns)
        play(scene, device)
        sys.settrace(None)
        for line in (*turns.lines[:8], *turns.lines[-8:]):
            assert found_after(scene, line, warm=warm)[1] == "", (line, warm)


def test_every_function_takes_the_number_of_a_queue():
    with ttsim.open_device() as device:
        zeros = ttsim.zeros((1, 32), layout=ttsim.TILE_LAYOUT, device=device)
        for number in (None, 0, 1):
            assert ttsim.relu(zeros, queue_id=number).shape == (1, 32)
        with pytest.raises(ttsim.DeviceError, match="cq_id 2 is out of range"):
            ttsim.relu(zeros, queue_id=2)
