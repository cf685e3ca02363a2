"""Counts of all recorded calls of the real library, worked out anew, and their energy.

DRAM bytes follow from the shapes, formats and pages of tensors, multiply-adds from the definitions of convolutions and
matmuls. The calls are made by the programs that lie beside the recordings. With TTSIM_RECORDED=all in the environment
all records are counted, which takes four minutes; else all of the short files, and a sample of the others.
"""

import gzip
import importlib
import importlib.util
import json
import os
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
from ops.programs.conv2d.partition import HEIGHT
from tests.end_to_end.recorded_products import fault_of_call, fault_of_operation, weight_rows_of
from ttsim.report.cycles import CallRun, totals, whole_operation
from ttsim.report.energy import STATIC, action_femtojoules

OWN_READS = (  # operations whose inputs in DRAM are not just read once
    "MatmulDeviceOperation",
    "PaddedSliceDeviceOperation",
    "ReshapeViewDeviceOperation",
    "FillPadDeviceOperation",
)
SAMPLES = {  # one record of so many
    **{"ttnn/cases": 16, "ttnn_fuzz/cases": 32, "values2/cases": 3, "values3/cases": 3},
    **{"steps/knobs": 6, "steps/sequences": 6, "networks/ops": 3},
}
if os.environ.get("TTSIM_RECORDED") == "all":
    SAMPLES = {}


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


def rows_added(operation, before):
    """Rows of zeros at the end of what an operation writes, and how many its first input has before."""
    read, written = (tensor.shape for tensor in (operation.ends.read, operation.ends.written))
    if operation.name == "PadDeviceOperation" and read[:-2] == written[:-2] and prod(read[:-2]) == 1:
        return before + written[-2] - read[-2]
    return before if read[:-1] == written[:-1] else 0


def in_dram(tensor):
    return tensor.memory_config.buffer_type is BufferType.DRAM


def bytes_of_matmul(op, inputs, written):
    """Bytes that a matmul reads from DRAM: rows for each block of columns that needs them, and the other way around.

    Cores that share rows or columns get them from one that reads them, if the program multicasts them.
    """
    config, batches = op.config, op.problem.batches
    rows, columns = (ceil(each / 32) for each in rows_of(written))
    sides = ((columns, config.per_core_n, config.out_block_w), (rows // batches, config.per_core_m, config.out_block_h))
    cores = [1 if sent else ceil(all_tiles / own) for sent, (all_tiles, own, _) in zip(op.sends, sides, strict=True)]
    across, down = (ceil(own / block) for _, own, block in sides)
    again = batches if op.problem.first_batched and not op.problem.second_batched else 1  # for each matrix
    times = [cores[0] * across, cores[1] * down * again]
    times.append(cores[1] * (down * batches if across > 1 else 1))  # the row that is added, kept if there is one part
    return sum(size_of(tensor) * count for tensor, count in zip(inputs, times, strict=False) if in_dram(tensor))


def bytes_of_padding(tensor):
    """Bytes of the tiles that hold padding."""
    rows, columns = [1, *tensor.shape][-2:]
    tiles = ceil(rows / 32) * ceil(columns / 32) - (rows // 32) * (columns // 32)
    return prod(tensor.shape[:-2]) * tiles * tensor.data_format.tile_bytes


def bytes_of_window(window, ends):
    """Bytes of tiles that cores read for a window of an image: each those that its rows and channels touch."""
    (first, top, left, _), (last, bottom, right, _) = window.begins, window.ends
    high, wide = ends.written.memory_config.shard_spec.shape
    rows = [(image, row, column // 32) for image in range(first, last) for row in range(top, bottom)
            for column in range(left, right)]  # fmt: skip
    down = sum(len(set(rows[start : start + high])) for start in range(0, len(rows), high))
    channels = min(window.shape[-1], ends.written.shape[-1])
    across = sum(ceil(min(start + wide, channels) / 32) - start // 32 for start in range(0, channels, wide))
    return down * across * ends.read.data_format.tile_bytes


def tiles_of_rows(ends):
    """Tiles that a reshape reads whose rows stay as long: again wherever one of either side begins."""
    (before, _), (after, columns) = ((tensor.shape[-2], tensor.shape[-1]) for tensor in (ends.read, ends.written))
    lines = range(prod(ends.written.shape[:-1]))
    begun = sum(line % before % 32 == 0 or line % after % 32 == 0 for line in lines)
    return begun * ceil(columns / 32)


def tiles_of_operand(tensor, written):
    """Tiles of an operand that an operation reads for all of its result.

    A row comes for each row of tiles, a column once for a row of tiles, a number once for a matrix.
    """
    rows, columns = [1, *tensor.shape][-2:]
    down, across = (ceil(each / 32) for each in [1, *written.shape][-2:])
    matrices = prod(written.shape[:-2])
    return matrices * (down if (rows, columns) != (1, 1) else 1) * (across if columns > 1 else 1)


def fault_of_reads(name, step, ends, inputs, read):
    """What is wrong with the bytes that an operation reads; empty if nothing is."""
    op = step.op
    if name == "BinaryNgDeviceOperation" and not ends.whole:
        inputs = inputs[:-1]  # the last one is written only
    there = [tensor for tensor in inputs if in_dram(tensor)]
    once, written = sum(map(size_of, there)), ends.written
    if read == once and not (there and name in OWN_READS):
        return ""
    if name == "MatmulDeviceOperation":
        want = bytes_of_matmul(op, inputs, written)
        return "" if read == want else f"its blocks need {want}"
    if name == "Conv2dDeviceOperation":
        weights, bias = inputs[1], sum(size_of(each) for each in inputs[2:] if in_dram(each))
        if not in_dram(weights):
            return "" if read == bias else f"only a bias of {bias} lies there"
        high = ceil(written.memory_config.shard_spec.shape[0] / 32)
        again = 1 if op.layout.scheme is HEIGHT else ceil(high / op.layout.blocks.act_h_tiles)  # for each row of blocks
        want = again * size_of(weights, rows=32) * weight_rows_of(op, weights) + bias
        return "" if read == want else f"{want} with a bias of {bias} are read"
    if name == "HaloDeviceOperation":  # the places of pixels, from its own config tensors
        return "" if once == 0 else f"{once} lie there"
    if name == "PaddedSliceDeviceOperation":
        if ends.read.layout is not Layout.TILE:
            want = prod(written.shape[:-1]) * ends.read.shape[-1] * ends.read.data_format.element_bytes
            return "" if read == want else f"a window has {want}"
        want = bytes_of_window(op.window, ends)
        return "" if read == want else f"a window has {want}"
    if name == "SliceWriteDeviceOperation":
        want = size_of(ends.read) if in_dram(ends.read) else 0
        return "" if read == want else f"the slice has {want}"
    if name == "SliceDeviceOperation":
        columns = ends.read.shape[-1] if op.has_steps else written.shape[-1]
        high = prod(written.shape[:-2]) * rows_of(written)[0] // prod(written.padded_shape[:-2])
        want = size_of(ends.read, rows=high, columns=columns) if in_dram(ends.read) else 0
        return "" if read == want else f"the box has {want}"
    if name == "ReshapeViewDeviceOperation":
        if ends.read.layout is not Layout.TILE or ends.read.shape[-1] != written.shape[-1]:
            return "" if read >= once else f"{once} lie there"  # with longer rows counted over a part of the tiles
        map_bytes = step.resident[0].buffer.page_bytes * size_of(written) // written.data_format.tile_bytes
        want = tiles_of_rows(ends) * ends.read.data_format.tile_bytes + map_bytes
        return "" if read == want else f"tiles and a map of {map_bytes} have {want}"
    if name == "BinaryNgDeviceOperation":
        if all(each.layout is Layout.TILE for each in there):
            want = sum(tiles_of_operand(each, written) * each.data_format.tile_bytes for each in there)
            return "" if read == want else f"operands have {want}"
        most = prod(written.shape[:-1]) * sum(each.shape[-1] * each.data_format.element_bytes for each in there)
        return "" if once <= read <= most else f"between {once} and {most}"
    if name == "PermuteDeviceOperation":  # no rows of padding
        want = prod(ends.read.shape[:-1]) * ends.read.padded_shape[-1] * (ends.read.data_format.element_bytes or 0)
        return "" if read == want else f"its rows have {want}"
    if name == "UpsampleOperation":  # a row for each of the result
        want = prod(written.shape[:-1]) * ends.read.shape[-1] * ends.read.data_format.element_bytes
        return "" if read == want else f"its rows have {want}"
    if name == "FillPadDeviceOperation":
        want = bytes_of_padding(ends.read)
        return "" if read == want else f"tiles with padding have {want}"
    return f"{once} lie there"


def fault_of_writes(name, op, ends, written):
    """What is wrong with the bytes that an operation writes; empty if nothing is."""
    want = size_of(ends.written) if in_dram(ends.written) else 0
    if name == "SliceWriteDeviceOperation":
        want = size_of(ends.read)
        if ends.read.layout is not Layout.TILE:
            *image, channels = op.window.window_shape
            want = prod(image) * channels * ends.written.data_format.element_bytes
    if name == "FillPadDeviceOperation":
        want = bytes_of_padding(ends.written) if in_dram(ends.written) else 0
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
            device = opens(*arguments, **{**options, "values": "off", "suggestions": False})
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
        operations, added = [], {}  # tensors that end in rows of zeros for a matmul
        timed = run_cycles(call.plan, spec, ran=call.ran).operations
        for step, operation in zip(operations_of(call.plan, call.ran), timed, strict=True):
            if operation.cycles is None:
                continue
            self._compare(record, step, operation)
            counted = counts_of(operation, whole_operation(operation.cycles), spec)
            rows = rows_added(operation, added.get(step.inputs[0], 0) if step.inputs else 0)
            added |= {output.tensor: rows for output in step.outputs}
            groups = 1 if call.asked is None else call.asked.groups
            fault = fault_of_operation(operation.name, step.op, operation.ends, counted, rows, groups)
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
            f"{name} reads {cycles.dram_read_bytes}": fault_of_reads(name, step, ends, inputs, cycles.dram_read_bytes),
            f"{name} writes {cycles.dram_written_bytes}": fault_of_writes(
                name, step.op, ends, cycles.dram_written_bytes
            ),
        }
        self.faults += [f"{record}: {what}, {why}" for what, why in wrong.items() if why]


def records_of(recordings, name):
    """The records of a file, or every few of them."""
    with gzip.open(recordings(f"oracle/{name}.jsonl.gz"), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in islice(lines, None, None, SAMPLES.get(name, 1))]


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
    caller = module.Caller(real=False)
    if name.startswith("values"):
        module = module_of(monkeypatch, recordings(f"oracle/{name}.jsonl.gz").parent / "check.py")
    for record in records_of(recordings, name):
        if name.startswith("values"):
            survey.look(record["name"], lambda record=record: module.perform(record, strict=True))
        else:
            survey.look(record["name"], lambda record=record: caller.run(record["case"], record["arch"]))
    assert survey.operations.total() > 20
    assert survey.products
    assert survey.faults == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["steps/knobs", "steps/operations", "steps/sequences"])
def test_counts_of_steps(recordings, monkeypatch, survey, name):
    steps = module_of(monkeypatch, recordings("real/steps.py"))
    monkeypatch.setattr(steps, "gc", type("NoCollections", (), {"collect": staticmethod(lambda: 0)}))
    caller = steps.Steps(real=False)
    for record in records_of(recordings, name):
        case = {**record["case"], "planned": False}
        survey.look(record["name"], lambda case=case, record=record: caller.run(case, record["arch"]))
    assert survey.operations.total() > 20
    assert survey.products
    assert survey.faults == []


@pytest.mark.slow
def test_counts_of_networks_and_their_operations(recordings, monkeypatch, survey):
    folder = recordings("oracle/networks")
    check = module_of(monkeypatch, folder / "check.py")
    for record in records_of(recordings, "networks/ops"):
        survey.look(record["name"], lambda record=record: check.run(record, planned=False))
    network = module_of(monkeypatch, folder / "check_network.py")
    for name in ("vgg_unet_wh", "vanilla_unet_wh"):
        variants = {}
        for record in records_of(recordings, f"networks/{name}"):
            variants.setdefault(record["variant"], []).append(record)
        for variant, records in variants.items():
            survey.look(f"{name} {variant}", lambda records=records: network.replay(records, 1, lambda *_: None))
    assert survey.operations.total() > 100
    assert survey.products
    assert survey.faults == []
