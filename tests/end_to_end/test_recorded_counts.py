"""Counts of all recorded calls of the real library, worked out anew, and their energy.

DRAM bytes follow from the shapes, formats and pages of tensors, multiply-adds from the definitions of convolutions and
matmuls. The calls are made by the programs that lie beside the recordings.
"""

import gzip
import importlib
import importlib.util
import json
import sys
from collections import Counter
from itertools import islice
from math import ceil, prod

import pytest

import ttsim
from device.memory.memory_config import BufferType, Layout
from device.time.energy import static_femtojoules, static_milliwatts
from ops.passes.counts import counts_of
from ops.passes.cycles import operations_of, run_cycles
from tests.end_to_end.recorded_products import fault_of_call, fault_of_operation
from ttsim.report.cycles import CallRun, totals, whole_operation
from ttsim.report.energy import STATIC, action_femtojoules

EVERY = 16  # record of a file
WINDOWS = ("PaddedSliceDeviceOperation", "SliceWriteDeviceOperation")


def rows_of(tensor):
    """Rows and columns of a tensor with its padding."""
    return prod(tensor.padded_shape[:-1]), tensor.padded_shape[-1]


def size_of(tensor, rows=None, columns=None):
    """Bytes of all rows of a tensor, or of a part of rows and columns."""
    high, wide = rows_of(tensor)
    high, wide = rows or high, columns or wide
    if tensor.layout is Layout.TILE:
        return ceil(high / 32) * ceil(wide / 32) * tensor.data_format.tile_bytes
    return high * wide * tensor.data_format.element_bytes


def in_dram(tensor):
    return tensor.memory_config.buffer_type is BufferType.DRAM


def whole_reads(first, second, read, most):
    """Whether bytes are so many whole reads of one operand and of another, each at least once."""
    return any(
        (read - count * first) % second == 0 and 1 <= (read - count * first) // second <= most[1]
        for count in range(1, most[0] + 1)
        if read >= count * first
    )


def fault_of_reads(name, op, ends, inputs, read):
    """What is wrong with the bytes that an operation reads; empty if nothing is."""
    if name == "BinaryNgDeviceOperation" and not ends.whole:
        inputs = inputs[:-1]  # the last one is written only
    there = [tensor for tensor in inputs if in_dram(tensor)]
    once = sum(map(size_of, there))
    if read == once:
        return ""
    written, (rows, columns) = ends.written, rows_of(ends.written)
    if name == "MatmulDeviceOperation" and there:
        # Each output block may bring its rows and its columns again; a row that is added lies behind them
        most, bias = (ceil(columns / 32), ceil(rows / 32)), [size_of(each) for each in inputs[2:] if in_dram(each)]
        sizes = [size_of(each) for each in inputs[:2] if in_dram(each)]
        for row in range(sum(bias), sum(bias) * (ceil(rows / 32) + 1) + 1, sum(bias) or 1):
            rest = read - row
            if len(sizes) == 2 and whole_reads(*sizes, rest, most):
                return ""
            if len(sizes) == 1 and rest % sizes[0] == 0 and 1 <= rest // sizes[0] <= max(most):
                return ""
            if not sizes and not rest:
                return ""
    if name == "Conv2dDeviceOperation":
        weights, bias = inputs[1], sum(size_of(each) for each in inputs[2:] if in_dram(each))
        if not in_dram(weights):
            return "" if read == bias else f"only a bias of {bias} lies there"
        # Rows of weight tiles come again for each row of blocks, those of padding behind the last block not at all
        tiles, rest = (read - bias) // size_of(weights, rows=32), (read - bias) % size_of(weights, rows=32)
        rows_of_tiles = range(ceil(weights.shape[-2] / 32), rows_of(weights)[0] // 32 + 1)
        many = any(tiles % each == 0 and 0 < tiles // each <= rows for each in rows_of_tiles)
        return "" if many and not rest else f"{size_of(weights)} and a bias of {bias} lie there"
    if name == "HaloDeviceOperation":  # the places of pixels, from its own config tensors
        return "" if once == 0 else f"{once} lie there"
    if name == "PaddedSliceDeviceOperation":
        if ends.read.layout is not Layout.TILE:
            want = prod(written.shape[:-1]) * ends.read.shape[-1] * ends.read.data_format.element_bytes
            return "" if read == want else f"a window has {want}"
        least = size_of(ends.read, rows=prod(written.shape[:-1]), columns=written.shape[-1])
        return "" if least <= read and read % ends.read.data_format.tile_bytes == 0 else f"a window has {least}"
    if name == "SliceWriteDeviceOperation":
        want = size_of(ends.read) if in_dram(ends.read) else 0
        return "" if read == want else f"the slice has {want}"
    if name == "SliceDeviceOperation":
        columns = ends.read.shape[-1] if op.has_steps else written.shape[-1]
        high = prod(written.shape[:-2]) * rows_of(written)[0] // prod(written.padded_shape[:-2])
        want = size_of(ends.read, rows=high, columns=columns) if in_dram(ends.read) else 0
        return "" if read == want else f"the box has {want}"
    if name == "ReshapeViewDeviceOperation":  # a page comes again for each piece of rows
        page = ends.read.data_format.tile_bytes if ends.read.layout is Layout.TILE else 1
        return "" if read > once and read % page == 0 else f"{once} lie there"
    if name == "BinaryNgDeviceOperation":  # rows, columns and numbers are read as often as they are spread
        tile_bytes = [1 if each.layout is not Layout.TILE else each.data_format.tile_bytes for each in there]
        most = sum(ceil(prod(written.padded_shape) / 1024) * size for size in tile_bytes)
        if any(each.layout is not Layout.TILE for each in there):
            most = prod(written.shape[:-1]) * sum(each.shape[-1] * each.data_format.element_bytes for each in there)
        return "" if once <= read <= most else f"between {once} and {most}"
    if name == "PermuteDeviceOperation":  # no rows of padding
        want = prod(ends.read.shape[:-1]) * ends.read.padded_shape[-1] * (ends.read.data_format.element_bytes or 0)
        return "" if read == want else f"its rows have {want}"
    if name == "UpsampleOperation":  # a row for each of the result
        want = prod(written.shape[:-1]) * ends.read.shape[-1] * ends.read.data_format.element_bytes
        return "" if read == want else f"its rows have {want}"
    if name == "FillPadDeviceOperation":
        return "" if 0 < read <= once and read % ends.read.data_format.tile_bytes == 0 else f"{once} lie there"
    return f"{once} lie there"


def fault_of_writes(name, op, ends, written):
    """What is wrong with the bytes that an operation writes; empty if nothing is."""
    want = size_of(ends.written) if in_dram(ends.written) else 0
    if name == "SliceWriteDeviceOperation":
        want = size_of(ends.read)
        if ends.read.layout is not Layout.TILE:
            *image, channels = op.window.window_shape
            want = prod(image) * channels * ends.written.data_format.element_bytes
    if name == "FillPadDeviceOperation":  # only tiles with padding
        return "" if written <= want else f"{want} are there"
    return "" if written == want else f"{want} are there"


def faults_of_energy(call, spec):
    """Parts of the machine whose energy in a call is not the sum over its operations, to the last digit."""
    operations = run_cycles(call.plan, spec, ran=call.ran).operations
    whole = totals([CallRun(name=call.function, ran=operations, spec=spec)], spec)
    energies = [op.energy for op in whole.operations]
    actions = action_femtojoules(whole.actions, spec)  # of all actions together, as rows of studies have it
    for part, femtojoules in whole.energy.by_part.items():
        total = sum(energy.by_part[part] for energy in energies)
        if part == STATIC:
            actions[part] = static_femtojoules(static_milliwatts(spec), whole.cycles, spec.clock_hz)
        if not femtojoules == total == actions[part] or type(femtojoules) is not int:
            yield f"{part} takes {femtojoules} fJ, its operations {total}, its actions {actions[part]}"


class Survey:
    """The operations of calls made on devices that are opened, and the faults of their bytes."""

    def __init__(self, monkeypatch):
        self.opened, self.operations, self.faults, self.products = [], Counter(), [], 0
        opens = ttsim.open_device

        def open_device(*arguments, **options):
            device = opens(*arguments, **{**options, "values": "off"})
            context = ttsim.profile(device)
            self.opened.append((context, context.__enter__()))
            return device

        monkeypatch.setattr(ttsim, "open_device", open_device)

    def look(self, record, make):
        """Makes the calls of a record, whose program notes which are refused, and looks at what ran."""
        self.opened.clear()
        make()
        for _, profile in self.opened:
            for call in profile.ran:
                self._look_at(record, call, profile.device.spec)

    def _look_at(self, record, call, spec):
        operations = []
        timed = run_cycles(call.plan, spec, ran=call.ran).operations
        for step, operation in zip(operations_of(call.plan, call.ran), timed, strict=True):
            if operation.cycles is None:
                continue
            self._compare(record, step, operation)
            counted = counts_of(operation, whole_operation(operation.cycles), spec)
            fault = fault_of_operation(operation.name, step.op, operation.ends, counted)
            self.faults += [f"{record}: {operation.name} {fault}"] if fault else []
            operations.append((operation.name, step.op, counted))
        if call.asked is not None and len(operations) == len(timed):
            fault = fault_of_call(call.asked, operations)
            self.faults += [f"{record}: {call.function} {fault}"] if fault else []
        self.faults += [f"{record}: {call.function}: {what}" for what in faults_of_energy(call, spec)]
        self.products += sum(bool(counted.multiply_adds) for _, _, counted in operations)

    def _compare(self, record, step, operation):
        name, ends, cycles = operation.name, operation.ends, operation.cycles
        inputs = (ends.read, *ends.others) if step.inputs else ()
        self.operations[name] += 1
        wrong = {
            f"{name} reads {cycles.dram_read_bytes}": fault_of_reads(
                name, step.op, ends, inputs, cycles.dram_read_bytes
            ),
            f"{name} writes {cycles.dram_written_bytes}": fault_of_writes(
                name, step.op, ends, cycles.dram_written_bytes
            ),
        }
        self.faults += [f"{record}: {what}, {why}" for what, why in wrong.items() if why]


def records_of(path, every=0):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in islice(lines, None, None, every or EVERY)]


def module_of(monkeypatch, path):
    """The program beside a recording."""
    monkeypatch.syspath_prepend(path.parent)
    spec = importlib.util.spec_from_file_location(f"recorded_{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def survey(monkeypatch):
    return Survey(monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ttnn/cases", "ttnn_fuzz/cases", "values2/cases", "values3/cases"])
def test_counts_of_single_calls(recordings, monkeypatch, survey, name):
    module = module_of(monkeypatch, recordings("real/calls.py"))
    caller, path = module.Caller(real=False), recordings(f"oracle/{name}.jsonl.gz")
    if name.startswith("values"):
        module = module_of(monkeypatch, path.parent / "check.py")
    for record in records_of(path):
        if name.startswith("values"):
            survey.look(record["name"], lambda record=record: module.perform(record, strict=True))
        else:
            survey.look(record["name"], lambda record=record: caller.run(record["case"], record["arch"]))
    assert survey.operations.total() > 20
    assert survey.products
    assert survey.faults == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["knobs", "operations", "sequences"])
def test_counts_of_steps(recordings, monkeypatch, survey, name):
    steps = module_of(monkeypatch, recordings("real/steps.py"))
    monkeypatch.setattr(steps, "gc", type("NoCollections", (), {"collect": staticmethod(lambda: 0)}))
    caller = steps.Steps(real=False)
    for record in records_of(recordings(f"oracle/steps/{name}.jsonl.gz")):
        case = {**record["case"], "planned": False}
        survey.look(record["name"], lambda case=case, record=record: caller.run(case, record["arch"]))
    assert survey.operations.total() > 20
    assert survey.products
    assert survey.faults == []


@pytest.mark.slow
def test_counts_of_networks_and_their_operations(recordings, monkeypatch, survey):
    folder = recordings("oracle/networks")
    check = module_of(monkeypatch, folder / "check.py")
    for record in records_of(folder / "ops.jsonl.gz"):
        survey.look(record["name"], lambda record=record: check.run(record, planned=False))
    network = module_of(monkeypatch, folder / "check_network.py")
    for name in ("vgg_unet_wh", "vanilla_unet_wh"):
        records = records_of(folder / f"{name}.jsonl.gz", every=1)
        variant = [record for record in records if record["variant"] == records[0]["variant"]]
        survey.look(name, lambda variant=variant: network.replay(variant, 1, lambda *_: None))
    assert survey.operations.total() > 100
    assert survey.products
    assert survey.faults == []
