"""Recorded runs of the real library, replayed: addresses, circular buffers, peaks, and the texts of errors."""

import gzip
import json
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import CircularBufferError, OutOfMemoryError
from device.memory.allocator import Allocator
from device.memory.buffers import Region, check, place
from device.memory.layouts import BufferSpec, TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import FORMATS
from device.plan import (
    BufferAllocated,
    BufferFreed,
    CircularBufferAllocated,
    CircularBuffersFreed,
    Event,
    usage_per_core,
)
from device.spec.device_spec import DeviceSpec, load_spec

RECORDS = "oracle/ttnn/cases.jsonl.gz"
SPECS = {"wh": load_spec("wormhole_n150"), "bh": load_spec("blackhole_p150")}

Record = dict[str, Any]


@pytest.fixture(scope="module")
def records(recordings: Callable[[str], Path]) -> list[Record]:
    with gzip.open(recordings(RECORDS)) as lines:
        return [json.loads(line) for line in lines]


def with_addresses(records: list[Record]) -> list[Record]:
    return [record for record in records if record["mode"] != "mock" and "buffers" in record]


def l1_small_bytes(record: Record) -> int:
    small: int = 0 if record["name"].startswith("l1_small_0") else record["case"].get("l1_small_size", 32768)
    return small


def input_buffer(case: Record, spec: DeviceSpec) -> BufferSpec:
    batch, height, width, channels = case.get("batch", 1), case["H"], case["W"], case["in_channels"]
    flat = [1, 1, batch * height * width, channels]
    config = MemoryConfig(buffer_type=BufferType[(case.get("input_memory") or "dram").upper()])
    return TensorSpec(
        [batch, height, width, channels] if case.get("input_4d") else flat,
        FORMATS[case.get("input_dtype") or "bfloat16"],
        Layout[case.get("input_layout", "ROW_MAJOR")],
        config,
    ).buffer(spec)


def recorded_buffer(event: Record, small_from: int) -> BufferSpec:
    """The buffer of an allocation; L1_SMALL is told by its address where the record does not say."""
    small = event.get("buffer_type", 3 if event["address"] >= small_from else 1) == 3
    return BufferSpec(
        buffer_type=BufferType.L1_SMALL if event["type"] == "L1" and small else BufferType[event["type"]],
        memory_layout=TensorMemoryLayout[event["layout"]],
        size_bytes=event["size"],
        page_bytes=event["page_size"],
        bank_bytes=event["max_size_per_bank"],
        num_cores=event.get("num_cores", 0),
    )


def core_ranges(text: str) -> CoreRangeSet:
    corners = [tuple(map(int, group)) for group in re.findall(r"\[(\d+)-(\d+) - (\d+)-(\d+)\]", text)]
    return CoreRangeSet(CoreRange(CoreCoord(a, b), CoreCoord(c, d)) for a, b, c, d in corners)


def test_buffers_get_their_recorded_addresses(records: list[Record]) -> None:
    for record in with_addresses(records):
        spec, small = SPECS[record["arch"]], l1_small_bytes(record)
        allocator = Allocator(spec, small)
        live: dict[tuple[str, int], BufferType] = {}
        if record["case"].get("input_memory") != "host":
            given = input_buffer(record["case"], spec)
            live[given.buffer_type.name, allocator.allocate(given)] = given.buffer_type
        for event in record["buffers"]:
            key = (event["type"], event["address"])
            if event["ev"] == "allocate":
                buffer = recorded_buffer(event, spec.l1.bytes - small)
                assert allocator.allocate(buffer) == event["address"], (record["set"], record["name"], event)
                live[key] = buffer.buffer_type
            else:
                assert allocator.free(event["address"], live.pop(key)), (record["set"], record["name"], event)


def test_circular_buffers_get_their_recorded_addresses(records: list[Record]) -> None:
    seen = 0
    for record in with_addresses(records):
        l1 = SPECS[record["arch"]].l1
        program: list[Record] = []
        for part in [*(one for one in record["cbs"] if one["globally_allocated"] == "0"), None]:
            if part is None or (program and (part["op"] != program[0]["op"] or part["address"] == l1.base_bytes)):
                requests = [(one["size"], core_ranges(one["cores"])) for one in program]
                expected = tuple(one["address"] for one in program)
                assert place(requests, l1).addresses == expected, (record["set"], record["name"])
                seen += len(program)
                program = []
            program += [part] if part else []
    assert seen > 9000


class Capture:
    """A record as events: calls, buffers and circular buffers stand apart there and are put in step here."""

    def __init__(self, record: Record) -> None:
        self.events: list[Event] = []
        self.buffers = deque(record["buffers"])
        self.numbers: dict[tuple[str, int], int] = {}
        self.sliced = "slice" in record["case"]
        self.programs = deque(programs_of(record["cbs"]))
        open_calls: list[Call] = []
        for text in [*record["ops"], None]:
            indent = -1 if text is None else len(text) - len(text.lstrip())
            while open_calls and open_calls[-1].indent >= indent:
                self.make_program(open_calls.pop())
            if text is None:
                break
            name = text.strip()
            if open_calls and name == "Tensor::deallocate":  # after an error: the program was made before
                self.make_program(open_calls[-1])
            if open_calls and name == "Tensor::to_device":
                open_calls[-1].uploads = True
            self.take_buffers(name)
            open_calls.append(Call(indent, name))

    def take_buffers(self, name: str) -> None:
        """The next buffer belongs to this call if the names agree; a release by nobody happens at once."""
        while self.buffers and self.buffers[0]["op"] is None:
            self.take_buffer()
        if self.buffers and self.buffers[0]["op"] == name:
            self.take_buffer()

    def take_buffer(self) -> None:
        event = self.buffers.popleft()
        key, buffer = (event["type"], event["address"]), recorded_buffer(event, 0)
        if event["ev"] == "allocate":
            self.numbers[key] = len(self.events)
            self.events.append(BufferAllocated(self.numbers[key], "", event["address"], buffer))
        else:
            self.events.append(BufferFreed(self.numbers.pop(key, -1), "", event["address"], buffer))

    def make_program(self, call: "Call") -> None:
        """A new program, unless an earlier slice made the same one: then it uploads no config tensors."""
        resident = call.name in ("HaloDeviceOperation", "Conv2dDeviceOperation")
        if call.made or not call.name.endswith("DeviceOperation") or (self.sliced and resident and not call.uploads):
            return
        call.made = True
        self.events.append(CircularBuffersFreed())
        if self.programs and self.programs[0][0]["op"] == call.name:
            for part in self.programs.popleft():
                view = part["globally_allocated"] == "1"
                cores = core_ranges(part["cores"])
                self.events.append(CircularBufferAllocated(call.name, "", part["size"], part["address"], cores, view))


@dataclass
class Call:
    indent: int
    name: str
    uploads: bool = False
    made: bool = False


def programs_of(parts: list[Record]) -> list[list[Record]]:
    """Circular buffers by program; those that cut slices out are made anew for each, and begin with a view."""
    programs: list[list[Record]] = []
    for part in parts:
        again = part["op"] == "PaddedSliceDeviceOperation" and part["globally_allocated"] == "1"
        if not programs or programs[-1][0]["op"] != part["op"] or again:
            programs.append([])
        programs[-1].append(part)
    return programs


def test_peaks_are_the_recorded_ones(records: list[Record]) -> None:
    seen = 0
    for record in records:
        if record["mode"] == "sim" and "resource_per_core" in record:
            capture, peaks = Capture(record), record["resource_per_core"]
            assert not capture.buffers, (record["set"], record["name"])
            assert not capture.programs, (record["set"], record["name"])
            expected = (peaks["peak_cb"], peaks["peak_l1"], peaks["peak_total"])
            assert usage_per_core(capture.events) == expected, (record["set"], record["name"])
            seen += 1
    assert seen > 200


OUT_OF_MEMORY = re.compile(
    r"allocate (\d+) B (\w+) buffer across (\d+) banks, where each bank needs to store (\d+) B, but bank "
    r"size is (\d+) B \(allocated: (\d+) B"
)
GROW = re.compile(r"on core range \[(\d+-\d+) - (\d+-\d+)\] grow to (\d+) B")
CLASH = re.compile(
    r"in program (\d+) clash .* core range \[(\d+-\d+) - (\d+-\d+)\]. L1 buffer allocated at (\d+) and .* ends at (\d+)"
)


def core_range(start: str, end: str) -> CoreRange:
    first, last = (CoreCoord(*map(int, corner.split("-"))) for corner in (start, end))
    return CoreRange(first, last)


def out_of_memory(found: re.Match[str], spec: DeviceSpec, small: int) -> str:
    """The text of an allocator that has as much in use, all in one block."""
    size_bytes, banks, bank_bytes, allocated = (int(found[group]) for group in (1, 3, 4, 6))
    allocator = Allocator(spec, small)

    def wanted(each: int, cores: int) -> BufferSpec:
        return BufferSpec(
            buffer_type=BufferType[found[2]],
            memory_layout=TensorMemoryLayout.HEIGHT_SHARDED,
            size_bytes=each * cores,
            page_bytes=each,
            bank_bytes=each,
            num_cores=cores,
        )

    assert size_bytes == bank_bytes * banks
    if allocated:
        allocator.allocate(wanted(allocated, 1))
    with pytest.raises(OutOfMemoryError) as error:
        allocator.allocate(wanted(bank_bytes, banks))
    return str(error.value)


def circular_buffer_error(region: Region, spec: DeviceSpec, lowest: int | None, program: int) -> str:
    with pytest.raises(CircularBufferError) as error:
        check([region], spec.l1, lowest_l1_address=lowest, program=program)
    return str(error.value)


def test_errors_read_as_recorded(records: list[Record]) -> None:
    """From the figures in a recorded text, the same text."""
    seen = 0
    for record in records:
        text, spec = record.get("error", ""), SPECS[record["arch"]]
        expected = text.partition("info:\n")[2].splitlines()[:1]
        if found := OUT_OF_MEMORY.search(text):
            ours = out_of_memory(found, spec, l1_small_bytes(record))
        elif found := GROW.search(text):
            ours = circular_buffer_error(Region(core_range(found[1], found[2]), int(found[3])), spec, None, 1)
        elif found := CLASH.search(text):
            region = Region(core_range(found[2], found[3]), int(found[5]))
            ours = circular_buffer_error(region, spec, int(found[4]), int(found[1]))
        else:
            continue
        lines = ours.splitlines()
        assert lines[:1] == expected
        assert len(lines) == 2
        seen += 1
    assert seen > 40
