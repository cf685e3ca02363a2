"""Every text of reports on hand-made operations, byte for byte as in the folder `approved`.

TTSIM_APPROVE=1 in the environment writes the files anew; the difference then shows what changed.
"""

import dataclasses
import io
import json
import os
import re
from pathlib import Path

import pytest
from rich.console import Console

from device.cores import first_cores
from device.numbers.formats import BFLOAT16
from device.plan import CircularBuffer, Operation
from device.time.stages import OperationCycles, Stage
from ops.launch import Launch, LaunchedProgram
from ops.passes.sensitivity import Sensitivity
from ops.sensitivity.changes import load_spec
from tests.ttsim.report.ran_operations import LAYER, runs_of, untimed
from ttsim.report.accuracy import Accuracy
from ttsim.report.advice import Advice, Change, MachineChange
from ttsim.report.cycle_report import cycle_report
from ttsim.report.devices import DeviceFigures, FieldFigures
from ttsim.report.memory import LayerResult
from ttsim.report.network import LivingBuffer, network_report
from ttsim.report.pages import Source, page_of_calls, page_of_network
from ttsim.report.sections import document
from ttsim.report.trace import trace_events
from ttsim.report.writers.json import layers_as_json
from ttsim.report.writers.table import print_fields, print_layers

FOLDER = Path(__file__).with_name("approved")
PROGRAM = LaunchedProgram(name="One", cores=4, processors=3, binaries=3, binary_bytes=1600, key="one")
FIGURE = "reader.multicast.peak_bytes_per_nanosecond"
CHANGE = Change(kind="a", text="a=1", arguments="a=1, b=" + "c" * 50, cycles=4000, saved_share=0.2)
ADVICE = Advice(
    cycles=5000,
    changes=(CHANGE,),
    together=dataclasses.replace(CHANGE, text="a=1, d=2", arguments="f(a=1), d=2", cycles=3500, saved_share=0.3),
    at_a_price=(dataclasses.replace(CHANGE, text="e=3", price="sums in bfloat16"),),
    machine=(MachineChange(figure=FIGURE, factor=2.0, value=27.84, saved_share=0.1),),
    sensitivity=(
        Sensitivity(figure=FIGURE, value=123.456, cycles_elasticity=-0.25, time_elasticity=-0.125, doubled_time=0.875,
                    halved_time=None),
    ),
    tried=7,
)  # fmt: skip
ACCURACY = Accuracy(pcc=0.9999, max_abs_error=0.0123, rms_error=0.001, exact_std=1.0)


def approve(name: str, text: str) -> None:
    path = FOLDER / name
    if os.environ.get("TTSIM_APPROVE"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def lines_of(document: object) -> str:
    """JSON, a record a line."""
    return re.sub(r"(?<=[}\]]), (?=[{\"])", ",\n", json.dumps(document)) + "\n"


def drawn(draw, *arguments, width=100, **options) -> str:
    out = io.StringIO()
    draw(Console(file=out, width=width), *arguments, **options)
    return out.getvalue()


@pytest.fixture
def spec():
    """A device of eight cores at 1 GHz."""
    return load_spec("wormhole_n150, grid=4x2, clock_hz=1GHz")


@pytest.fixture
def conv(conv):
    """The convolution of conftest on six of its cores."""
    names = ("dram_read_bytes", "dram_written_bytes", "network_bytes", "issued_flops", "useful_flops")
    group = dataclasses.replace(conv.cycles.groups[0], cores=first_cores(6, 4, 2))
    figures = {name: getattr(conv.cycles, name) for name in names}
    result = OperationCycles(cycles=4000, groups=(group,), bound_by=Stage.MATH, **figures)
    return dataclasses.replace(conv, cycles=result)


@pytest.fixture
def cycles(call, spec):
    """A halo, a move that no model knows, and a convolution; then the halo alone."""
    halo, conv = call.ran
    launch = Launch(PROGRAM, 1000.0)
    calls = [
        dataclasses.replace(call, ran=(halo, untimed(), conv), launches=(launch,) * 3),
        dataclasses.replace(call, name="ttnn.add", ran=(halo,), useful_flops=None, launches=(launch,)),
    ]
    return dataclasses.replace(cycle_report(calls, spec), advice=ADVICE)


@pytest.fixture
def network(cycles, spec):
    table = LivingBuffer(name="table", memory="L1_SMALL", bank_bytes=16, address=1_400_000)
    output = dataclasses.replace(table, name="out", memory="L1", bank_bytes=60_000, function="ttnn.f", where="net.py:1")
    sizes = {"in": 64_000, "act": 32}
    buffers = (
        CircularBuffer(name=name, size_bytes=size, page_bytes=32, data_format=BFLOAT16, cores=first_cores(4, 8, 8))
        for name, size in sizes.items()
    )
    step = Operation(name="HaloDeviceOperation", inputs=(), circular_buffers=tuple(buffers), key="halo")
    facts = [
        {"where": "net.py:1", "step": step, "l1": (64_032, 60_016), "buffers": (output, table)},
        {"where": "net.py:1", "l1": (0, 60_016), "buffers": (output, table)},
        {"l1": (0, 16), "buffers": (table,)},
        {"call": 1, "function": "ttnn.add", "where": "net.py:2 > block.py:7"},
    ]
    ran = [operation for call in cycles.calls for operation in call.run.ran]
    runs = runs_of(spec, *ran, facts=facts)
    runs.launches += [launch for call in cycles.calls for launch in call.run.launches]
    return network_report(runs, spec)


@pytest.fixture
def layers(layer, cycles):
    """A layer that runs, one whose values are known, and one that fails."""
    summary = dataclasses.replace(layer.summary, accuracy=ACCURACY)
    return [
        dataclasses.replace(layer, summary=summary),
        LayerResult(layer=LAYER, error="Out of Memory: [1] B", reached=summary.operations[:1]),
    ]


def test_cycles(cycles):
    texts = [cycles.explain(), cycles.table(), cycles.table(80), cycles.table(60)]
    approve("cycles.txt", "\n\n".join(texts) + "\n")
    approve("cycles.json", lines_of(json.loads(cycles.to_json())))


def test_network(network):
    approve("network.txt", "\n\n".join([network.table(), network.table(80)]) + "\n")
    approve("network.json", lines_of(json.loads(network.to_json())))


def test_pages(cycles, network, spec):
    sources = [Source("#0 f", "f(x)"), Source("#3 g", "g(y)")]
    pages = [page_of_network(network, cycles, spec, sources), page_of_calls(cycles), page_of_network(network)]
    approve("pages.json", "".join(lines_of(document(page)) for page in pages))


def test_trace(network, spec):
    approve("trace.json", "".join(json.dumps(event) + "\n" for event in trace_events(network.operations, spec)))


def test_layers(layers, cycles):
    text = drawn(print_layers, layers, details=True)
    with_cycles = dataclasses.replace(layers[0], summary=dataclasses.replace(layers[0].summary, cycles=cycles))
    text += drawn(print_layers, [with_cycles], details=True) + drawn(print_layers, [with_cycles], width=60)
    approve("layers.txt", text)
    approve("layers.json", lines_of(json.loads(layers_as_json(layers))))


def test_fields_of_a_device():
    field = FieldFigures(
        name="dram.bank_bytes_per_second", value=24e9, unit="bytes/s", better="larger", meaning="", moves=("memory",),
        elasticity={"halo": -0.25, "conv2d": 0.0}, source="[isa] " + "words " * 40,
    )  # fmt: skip
    flag = dataclasses.replace(field, name="flag", value=True, unit="", better="", moves=("launch",), elasticity={})
    approve("fields.txt", drawn(print_fields, DeviceFigures(name="d[red]", fields=(field, flag)), width=80))
