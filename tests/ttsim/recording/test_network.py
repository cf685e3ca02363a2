"""What a profile tells of a network, on calls whose figures are known."""

import pytest

import ttsim as ttnn
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig
from device.numbers.formats import BFLOAT16
from device.plan import BufferAllocated, BufferFreed, OperationBegin, OperationEnd, Plan
from device.spec.device_spec import load_spec
from ops.passes.cycles import operations_of
from tests.ttsim.recording.calls import opened, options
from ttsim.recording.profiling import fullest_moments, places
from ttsim.runtime.traces import CallSite, RanCall

SPEC = load_spec("wormhole_n150")


def call(*sites: tuple[str, int], before=(), events=()) -> RanCall:
    lines = tuple(CallSite(*site) for site in sites)
    return RanCall(function="ttnn.f", plan=Plan(steps=()), ran=(), sites=lines, before=before, events=events)


def buffer(number: int, rows: int, memory: BufferType = BufferType.L1) -> BufferAllocated:
    config = MemoryConfig(buffer_type=memory)
    spec = TensorSpec([rows * 64, 512], BFLOAT16, Layout.ROW_MAJOR, config)  # so many rows of 1024 bytes a core
    return BufferAllocated(number, f"b{number}", 1000, spec.buffer(SPEC))


def test_a_place_is_told_without_what_all_calls_share() -> None:
    runner, main = ("/usr/bin/run", 1), ("/home/net/main.py", 10)
    calls = [
        call(runner, main, ("/home/net/tt/model.py", 5), ("/home/net/tt/block.py", 7)),
        call(runner, main, ("/home/net/tt/model.py", 5), ("/home/net/tt/model.py", 9), ("/home/net/tt/block.py", 7)),
        call(runner, main, ("<cell>", 2)),
        call(),
    ]
    assert places(calls) == ["model.py:5 > block.py:7", "model.py:5 > 9 > block.py:7", "<cell>:2", ""]

    calls = [call(("/home/net/a/x.py", 1), ("/home/net/b/x.py", 3)), call(("/home/net/a/x.py", 2))]
    assert places(calls) == ["a/x.py:1 > b/x.py:3", "a/x.py:2"]  # below the folder that holds all
    assert places([call(("/x/a.py", 1), ("/x/a.py", 2))] * 2) == ["a.py:2"] * 2  # the innermost line, though shared


def test_the_fullest_moment_of_an_operation_is_found() -> None:
    old, output, table, later = buffer(1, 1), buffer(2, 4), buffer(3, 1), buffer(4, 9)
    events = (
        OperationBegin("HaloDeviceOperation"), output, buffer(5, 50, BufferType.DRAM), table,
        BufferFreed(*table), OperationEnd("HaloDeviceOperation"),
        BufferFreed(*old), later,
        OperationBegin("MoveDeviceOperation"), OperationEnd("MoveDeviceOperation"),
    )  # fmt: skip
    found = list(fullest_moments(call(before=(old,), events=events)))
    assert found == [(old, output, table), (output, later)]


def network(device):
    given = options(device, channels=(32, 32))
    for _ in range(2):
        y = ttnn.conv_transpose2d(device=device, **given)
    return ttnn.relu(y)


@pytest.fixture(scope="module")
def made():
    with opened() as device, ttnn.profile(device) as profiled:
        network(device)
    return profiled


def test_every_operation_is_told_in_order(made) -> None:
    report, calls = made.network(), made.report()
    names = [step.name for ran in made.calls for step in operations_of(ran.plan, ran.ran)]
    assert [op.name for op in report.operations] == names
    assert [op.cycles for op in report.operations if not op.untimed] == [op.cycles for op in calls.operations]
    assert (report.cycles, report.nanoseconds) == (calls.cycles, calls.nanoseconds)
    assert report.launches == calls.launches
    layers = [(layer.calls, layer.functions) for layer in report.layers]  # a loop's line is one layer
    assert layers == [(2, ("ttnn.conv_transpose2d",)), (1, ("ttnn.relu",))]


def test_the_same_calls_give_the_same_bytes(made) -> None:
    with opened() as device, ttnn.profile(device) as again:
        network(device)
    assert again.network().to_json() == made.network().to_json()
    first, second = (op for op in made.network().operations if op.name == "Conv2dDeviceOperation")
    assert first.circular_bytes == second.circular_bytes > 0  # a program in the cache has its circular buffers
