"""The memory and the values of plans of a few steps."""

from dataclasses import dataclass

import numpy as np
import pytest

from device.cores import first_cores
from device.errors import CircularBufferError, DeviceError, OutOfMemoryError
from device.machine import Machine
from device.matrix_unit.arithmetic import EXACT
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig
from device.numbers.formats import BFLOAT16, UINT16
from device.plan import (
    MOVE,
    Allocate,
    BufferAllocated,
    BufferFreed,
    CircularBuffer,
    CircularBufferAllocated,
    DeviceOp,
    Free,
    Operation,
    OperationBegin,
    OperationEnd,
    Plan,
    Refuse,
    Refused,
    Relocate,
    RequiredRoom,
    usage_per_core,
)
from device.spec.device_spec import load_spec
from ops.op_model import OpModel, ValuesContext
from ops.passes.memory import run_memory, usage_without_dispatch
from ops.passes.values import run_values

SPEC = load_spec("wormhole_n150")
CORES = first_cores(8, 8, 8)


@dataclass(frozen=True, slots=True)
class Multiply(DeviceOp):
    """An operation that no table of models knows: memory needs none."""


def buffer(rows, buffer_type=BufferType.L1):
    return TensorSpec((rows, 512), BFLOAT16, Layout.ROW_MAJOR, MemoryConfig(buffer_type=buffer_type)).buffer(SPEC)


def allocate(name, rows=64, buffer_type=BufferType.L1):
    return Allocate(name, buffer(rows, buffer_type))


def circular(name, size_bytes, view_of=None, offset_bytes=0):
    return CircularBuffer(
        name=name,
        size_bytes=size_bytes,
        page_bytes=32,
        data_format=UINT16,
        cores=CORES,
        view_of=view_of,
        offset_bytes=offset_bytes,
    )


def operation(name="Op", *, out="y", key="op", config="config", **changes):
    """An operation that makes `out` and keeps a config tensor."""
    fields = {
        "inputs": ("x",),
        "outputs": (allocate(out),) if out else (),
        "resident": (allocate(config, 8, BufferType.L1_SMALL),),
        "circular_buffers": (circular("act", 4096), circular("out", 64, out, 32), circular("indices", 8, config)),
    }
    return Operation(name=name, key=key, **fields | changes)


def plan(*steps, output="y"):
    return Plan(steps=steps, results={"output": output})


@pytest.fixture
def device():
    return Machine(SPEC, l1_small_bytes=4096)


def state(device):
    """All that a device may be left with: free bytes by memory, live buffers, programs."""
    statistics = tuple(
        device.allocator.statistics(kind) for kind in (BufferType.L1, BufferType.L1_SMALL, BufferType.DRAM)
    )
    return statistics, device.memory.live(), dict(device.program_cache)


def listen(device):
    device.recorders.append(heard := [])
    return heard


def names(heard, kind):
    return [event.name for event in heard if isinstance(event, kind)]


def test_steps_in_order(device):
    x = device.allocate(buffer(64), "x")
    heard = listen(device)
    steps = (allocate("w", 8, BufferType.DRAM), operation(op=Multiply()), Free("x"), Free("w"))
    results = run_memory(plan(*steps), device, {"x": x})
    assert [type(event).__name__ for event in heard] == [
        "BufferAllocated", "OperationBegin", "BufferAllocated", "BufferAllocated", "CircularBuffersFreed",
        "CircularBufferAllocated", "CircularBufferAllocated", "CircularBufferAllocated", "OperationEnd",
        "BufferFreed", "BufferFreed",
    ]  # fmt: skip
    assert heard[1] == OperationBegin("Op", Multiply(), spec=SPEC, step=1)
    assert names(heard, BufferAllocated) == ["w", "y", "config"]
    assert names(heard, BufferFreed) == ["x", "w"]
    assert list(results) == ["y"]
    assert results["y"].allocated
    assert not x.allocated


def test_circular_buffers_lie_on_outputs_and_config_tensors(device):
    heard = listen(device)
    results = run_memory(plan(operation()), device, {"x": device.allocate(buffer(64), "x")})
    (config,) = device.program_cache["op"].resident
    addresses = {event.name: event.address for event in heard if isinstance(event, CircularBufferAllocated)}
    assert addresses == {"act": SPEC.l1.base_bytes, "out": results["y"].address + 32, "indices": config.address}


def test_a_program_in_the_cache_allocates_only_its_output_and_releases_the_circular_buffers_before(device):
    inputs = {"x": device.allocate(buffer(64), "x")}
    run_memory(plan(operation()), device, inputs)
    before = device.program_cache["op"]
    heard = listen(device)
    run_memory(plan(operation(out="z"), output="z"), device, inputs)
    events = ["OperationBegin", "BufferAllocated", "CircularBuffersFreed", "OperationEnd"]
    assert [type(event).__name__ for event in heard] == events
    assert device.program_cache["op"] is before
    steps = (operation(out="other", key="another"), operation(out="again", key="another"))  # one plan, its own program
    run_memory(plan(*steps, output="other"), device, inputs)
    assert set(device.program_cache) == {"op", "another"}
    assert names(heard, BufferAllocated) == ["z", "other", "config", "again"]


def test_without_dispatch_nothing_is_placed(device):
    x = device.allocate(buffer(64), "x")
    run_memory(plan(operation(out="v", key="cached"), Free("v"), output="v"), device, {"x": x})
    before, heard = state(device), listen(device)
    steps = (operation(key="cached"), Relocate("y", buffer(64)), operation(out="z"), Free("y"))
    results = run_memory(plan(*steps, output="z"), device, {"x": x}, dispatch=False)
    assert results["z"].address == 0
    assert {event.address for event in heard if hasattr(event, "address")} == {0}
    assert state(device) == before
    assert names(heard, BufferAllocated).count("config") == names(heard, BufferFreed).count("config") == 2
    assert names(heard, OperationBegin) == ["Op", "Op"]


def test_the_usage_without_dispatch_is_that_of_the_events(device):
    """Tensors and config tensors have 1 KiB on a core, circular buffers 4: both tensors, the config tensor of the
    second program and its buffers are 7 KiB. Dataflow buffers are no circular buffers."""
    steps = (
        allocate("w", 8),
        operation(),
        Relocate("y", buffer(64)),
        Free("w"),
        Free("w"),
        operation(out="z"),
        operation(out="", dataflow=True, resident=(), circular_buffers=(circular("act", 2048),)),
        Free("z"),
    )
    inputs, heard = {"x": device.allocate(buffer(64, BufferType.DRAM), "x")}, listen(device)
    run_memory(plan(*steps), device, inputs, dispatch=False)
    assert usage_without_dispatch(plan(*steps)) == usage_per_core(heard) == (4096, 3072, 7168)


@pytest.mark.parametrize(("rows", "size"), [(64, 128), (128, 4096)])
def test_a_tensor_that_moves_over_itself_is_read_first(device, rows, size):
    """Above is room for one row a core: two rows move by half of what they take."""
    above = device.allocate(buffer(64), "above")
    x = device.allocate(buffer(rows), "x")
    device.free(above)
    heard = listen(device)
    step = Relocate("x", buffer(rows), None, (circular("pages", 128),), (circular("all", 4096),))
    moved = run_memory(Plan(steps=(step,), results={"output": "x"}), device, {"x": x})["x"]
    assert moved.address > x.address
    assert [one.size_bytes for one in heard if isinstance(one, CircularBufferAllocated)] == [size]


def test_a_tensor_is_read_first_where_all_of_it_fits_below_its_new_place():
    room = Machine(SPEC, l1_small_bytes=4096).allocate(buffer(128), "x").address - SPEC.l1.base_bytes
    sizes = []
    for wanted in (room, room + 32):
        device = Machine(SPEC, l1_small_bytes=4096)
        above, x = device.allocate(buffer(64), "above"), device.allocate(buffer(128), "x")
        device.free(above)
        heard = listen(device)
        step = Relocate("x", buffer(128), None, (circular("pages", 128),), (circular("all", wanted),))
        run_memory(Plan(steps=(step,), results={"output": "x"}), device, {"x": x})
        sizes += [event.size_bytes for event in heard if isinstance(event, CircularBufferAllocated)]
    assert sizes == [room, 128]


TOO_LARGE = operation("Large", key="large", out="z", circular_buffers=(circular("act", SPEC.l1.usable_bytes + 32),))
NO_ROOM = operation("Wide", key="wide", out=None, outputs=(Allocate("z", buffer(10**9)),))
NO_CONFIG = operation("Config", key="config", out="z", resident=(allocate("c", 8), allocate("d", 10**7)))


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (TOO_LARGE, CircularBufferError),
        (NO_ROOM, OutOfMemoryError),
        (NO_CONFIG, OutOfMemoryError),
        (operation("Refused", key="refused", out="z", refused="no such block\nuse another"), DeviceError),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_failed_plan_leaves_the_device_as_it_was(device, last, error):
    inputs = {"x": device.allocate(buffer(64), "x")}
    run_memory(plan(operation("Before", key="before", out="b"), Free("b"), output="b"), device, inputs)
    before = state(device)
    steps = (allocate("w", 64, BufferType.DRAM), operation(key="before"), Relocate("y", buffer(64)), last)
    with pytest.raises(error):
        run_memory(plan(*steps), device, inputs)
    assert state(device) == before
    assert inputs["x"].allocated
    again = run_memory(plan(operation("Again", key="again", out="a"), output="a"), device, inputs)
    assert again["a"].allocated


@pytest.mark.parametrize(
    ("last", "message"),
    [(TOO_LARGE, "^Statically allocated"), (Refuse("too many\nfewer", OutOfMemoryError), r"^too many\nfewer$")],
)
def test_a_failed_plan_keeps_complete_programs_and_does_not_bring_back_an_input(device, last, message):
    x = device.allocate(buffer(64), "x")
    with pytest.raises(DeviceError, match=message):
        run_memory(Plan(steps=(operation(), Free("x"), Free("x"), last)), device, {"x": x})
    assert set(device.program_cache) == {"op"}
    assert [live.name for live in device.memory.live()] == ["config"]


def test_a_refused_program_is_refused_only_after_its_outputs_fit(device):
    refused = {"refused": "the program can not be built"}
    with pytest.raises(OutOfMemoryError):
        run_memory(plan(operation(out=None, outputs=(Allocate("z", buffer(10**9)),), **refused)), device, {})
    with pytest.raises(DeviceError, match=r"^the program can not be built$"):
        run_memory(plan(operation(**refused)), device, {})


def test_a_program_that_finds_less_room_than_it_needs_is_refused(device):
    run_memory(plan(operation()), device, {})
    page = operation().outputs[0].buffer.bank_bytes  # of another output
    room = device.l1_room_bytes - page
    run_memory(plan(operation(key="fits", room=RequiredRoom(room, "unused"))), device, {})
    with pytest.raises(DeviceError, match=rf"^not {room - page} bytes$"):
        run_memory(plan(operation(key="not", out="z", room=RequiredRoom(room, "not {room} bytes"))), device, {})


def test_moving_runs_a_program_only_if_the_address_changes(device):
    """L1 fills from the top: below a hole a tensor moves up into it, at the top it stays."""
    heard = listen(device)
    steps = (allocate("y"), Relocate("y", buffer(64)))
    stayed = run_memory(plan(*steps), device, {})
    assert names(heard, OperationBegin) == []
    device.free(stayed["y"])
    heard.clear()
    steps = (allocate("hole"), allocate("y"), Free("hole"), Relocate("y", buffer(64)))
    moved = run_memory(plan(*steps), device, {})
    assert moved["y"].address == stayed["y"].address
    assert names(heard, OperationBegin) == [MOVE]
    assert names(heard, BufferFreed) == ["hole", "y"]


@pytest.mark.parametrize(("last", "buffers"), [(TOO_LARGE, ["config", "z"]), (NO_ROOM, []), (NO_CONFIG, ["c", "z"])])
def test_what_is_recorded_of_a_failure(device, last, buffers):
    """The refusal comes before the way back; the operation releases what is its own, latest first, and is aborted."""
    heard = listen(device)
    with pytest.raises(DeviceError) as error:
        run_memory(plan(allocate("w"), allocate("v"), last), device, {})
    (refused,) = (index for index, event in enumerate(heard) if isinstance(event, Refused))
    assert heard[refused].reason == str(error.value)
    back = [event.name for event in heard[refused + 1 :]]
    assert back == [*buffers, last.name, "v", "w"]
    assert [event.aborted for event in heard if isinstance(event, OperationEnd)] == [True]


READING = ValuesContext(spec=SPEC, arithmetic=EXACT)
BUFFER = TensorSpec((1, 512), BFLOAT16, Layout.ROW_MAJOR).buffer(SPEC)


@dataclass(frozen=True, slots=True)
class Number(DeviceOp):
    """A tensor becomes this number."""

    number: int


def recording(calls):
    """A table that knows numbers, and writes down what they are made of."""

    def values(op, inputs, context):
        assert context is READING
        calls.append((op.number, [None if tensor is None else tensor.tolist() for tensor in inputs]))
        return np.array([op.number])

    return {Number: OpModel(op=Number, values=values)}


def test_values_follow_the_names():
    """Uploads are converted on the way; an operation without outputs writes into its last input; moves do nothing."""
    calls = []
    steps = (
        Allocate("w", BUFFER, source="weight", op=Number(1)),
        Allocate("raw", BUFFER, source="weight"),
        Allocate("given", BUFFER),
        Operation(name="A", inputs=("x", "w", "given"), outputs=(Allocate("a", BUFFER),), op=Number(2)),
        Free("x"),
        Relocate("a", BUFFER, op=Number(9)),
        Operation(name="B", inputs=("a", "raw", "given"), op=Number(3)),
    )
    results = {"output": "given", "weight": "w", "raw": "raw"}
    inputs = {"x": np.array([10]), "weight": np.array([20])}
    got = run_values(Plan(steps=steps, results=results), inputs, READING, op_models=recording(calls))
    assert calls == [(1, [[20]]), (2, [[10], [1], None]), (3, [[2], [20], None])]
    assert {name: array.tolist() for name, array in got.items()} == {"given": [3], "w": [1], "raw": [20]}


def test_the_callers_arrays_are_left_alone():
    inputs = {"x": np.array([1])}
    steps = (Operation(name="A", inputs=("x",), outputs=(Allocate("y", BUFFER),), op=Number(2)), Free("x"))
    run_values(Plan(steps=steps, results={"output": "y"}), inputs, READING, op_models=recording([]))
    assert list(inputs) == ["x"]
