import dataclasses
import io
import json

import pytest
from rich.console import Console

from ops.passes.sensitivity import Sensitivity
from ttsim.report.accuracy import Accuracy
from ttsim.report.advice import Advice, Change, MachineChange
from ttsim.report.devices import DeviceFigures, FieldFigures
from ttsim.report.formatting import cells_of
from ttsim.report.memory import (
    BufferUse,
    CircularBufferUse,
    L1Use,
    LayerResult,
    OperationUse,
    OutputUse,
    Partition,
    Summary,
)
from ttsim.report.writers.device_table import print_fields
from ttsim.report.writers.json import layers_as_json
from ttsim.report.writers.table import code_lines, print_advice, print_layers, print_overview
from ttsim.runtime.types.layer import Layer

LAYER = Layer(name="up[1]", in_channels=32, out_channels=16, input_height=4, input_width=5)
OPERATION = OperationUse(
    name="Conv2dDeviceOperation",
    circular_buffers=(
        CircularBufferUse(
            name="weights",
            size_bytes=4096,
            address=105824,
            cores="{[0-0 - 7-0]}",
            core_count=8,
            view=False,
            l1_share=0.25,
        ),
        CircularBufferUse(
            name="out", size_bytes=2048, address=1400000, cores="{[0-0 - 7-0]}", core_count=8, view=True, l1_share=0.0
        ),
    ),
    buffers=(
        BufferUse(
            name="output",
            memory="L1",
            memory_layout="HEIGHT_SHARDED",
            size_bytes=16384,
            bank_bytes=2048,
            address=1400000,
            l1_share=0.125,
        ),
    ),
    circular_bytes=4096,
    buffer_bytes=2048,
    used_share=0.375,
    headroom_bytes=10240,
)
SUMMARY = Summary(
    device="wormhole_n150",
    output=OutputUse(
        shape=(1, 1, 80, 16),
        padded_shape=(1, 1, 96, 32),
        dtype="bfloat16",
        layout="TILE",
        memory_config="MemoryConfig(...)",
        place="HEIGHT_SHARDED in L1",
        height=8,
        width=10,
    ),
    partitions=(
        Partition(
            scheme="HEIGHT_SHARDED",
            input_cores=8,
            output_cores=8,
            cores="{[0-0 - 7-0]}",
            input_shard=(32, 32),
            output_shard=(32, 32),
            act_block_tiles=(1, 2),
            subblock_tiles=(1, 1),
            k_blocks=2,
            split_reader=True,
        ),
    ),
    l1=L1Use(
        usable_bytes=16384,
        peak_circular_bytes=4096,
        peak_buffer_bytes=2048,
        peak_total_bytes=6144,
        peak_share=0.375,
        headroom_bytes=10240,
        headroom_share=0.625,
        tightest="Conv2dDeviceOperation",
    ),
    operations=(OPERATION,),
    accuracy=Accuracy(pcc=0.9999, max_abs_error=0.0123, rms_error=0.001, exact_std=1.0),
)
GOOD = LayerResult(layer=LAYER, summary=SUMMARY)
BAD = LayerResult(layer=LAYER, error="Out of Memory: [1] B", reached=(OPERATION,))


HOSTILE = ("[red]x[/red]", "<b>'\"&", "a\nb\r\nc", "\x1b[31m\x00\x07", "\u202e\u2028x", "x" * 10_000, "層" * 5000)


def drawn(draw, *arguments, width=200):
    out = io.StringIO()
    draw(Console(file=out, width=width), *arguments)
    return out.getvalue()


def test_table_of_one_layer_shows_its_figures():
    text = drawn(lambda *given: print_layers(*given, details=True), [GOOD])
    for shown in (
        "up[1]",
        "1x4x5x32 bfloat16 ROW_MAJOR in dram -> 16 channels, kernel 2x2, stride 1x1",
        "[1, 1, 80, 16] bfloat16 TILE, 8x10 an image",
        "HEIGHT_SHARDED, 8 -> 8 cores {[0-0 - 7-0]}, shards 32x32 -> 32x32, blocks of 1x2 tiles",
        "peak 6.0 KiB of 16.0 KiB a core (37.5%)",
        "headroom 10.0 KiB (62.5%) in Conv2dDeviceOperation",
        "PCC 0.9999000 against float64, max error 0.0123",
        "weights",
        "4,096",
        "25.0%",
        "view",
        "L1 HEIGHT_SHARDED",
    ):
        assert shown in text
    assert "scheme" not in text


def test_table_of_several_begins_with_one_line_for_each():
    text = drawn(print_layers, [GOOD, BAD])
    assert text.startswith("layer ")
    assert "Out of Memory: [1] B" in text
    assert "failed" in text
    assert "8x10x16 bfloat16" in text
    assert "0.999900" in text


def test_tables_are_the_same_every_time():
    assert drawn(print_layers, [GOOD, BAD]) == drawn(print_layers, [GOOD, BAD])


def test_json_holds_the_figures():
    document = json.loads(layers_as_json([GOOD, BAD]))
    good, bad = document["layers"]
    assert document["format"] == 2
    assert good["error"] is None
    assert good["layer"]["in_channels"] == 32
    assert good["summary"]["l1"]["headroom_bytes"] == 10240
    assert good["summary"]["operations"][0]["circular_buffers"][0]["name"] == "weights"
    assert bad["summary"] is None
    assert bad["error"] == "Out of Memory: [1] B"
    assert bad["reached"][0]["name"] == "Conv2dDeviceOperation"


def test_json_has_no_nan():
    strange = Accuracy(pcc=float("nan"), max_abs_error=float("inf"), rms_error=1.0, exact_std=1.0)
    text = layers_as_json([LayerResult(layer=LAYER, summary=Summary(**{**fields(SUMMARY), "accuracy": strange}))])
    accuracy = json.loads(text)["layers"][0]["summary"]["accuracy"]
    assert accuracy == {"pcc": None, "max_abs_error": None, "rms_error": 1.0, "exact_std": 1.0}


def fields(summary):
    return {name: getattr(summary, name) for name in summary.__dataclass_fields__}


def test_cycles_of_a_layer_are_shown(report):
    result = LayerResult(layer=LAYER, summary=Summary(**{**fields(SUMMARY), "cycles": report}))
    text = drawn(print_layers, [result, GOOD])
    for shown in (
        "cycles     5,000 in 5.00 us at 1 GHz, 80.0 % of it Conv2dDeviceOperation, bound by math",
        "uncontended",
        "HaloDeviceOperation",
        "Cycles count kernel time",
    ):
        assert shown in text
    assert "cycles  " not in drawn(print_layers, [GOOD])
    (entry,) = json.loads(layers_as_json([result]))["layers"]
    assert entry["summary"]["cycles"]["total"]["cycles"] == 5000
    assert entry["summary"]["cycles"]["calls"][0]["operations"][1]["bound_by"] == "math"


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_no_figure_of_the_overview_is_cut(width):
    """Whole columns go where there is no room, and the cycles last."""
    text = drawn(print_overview, [GOOD, BAD], width=width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    assert "up[1] failed" in text
    assert ("8x10x16 bfloat16" in text) == (width > 60)
    assert ("0.999900" in text) == (width >= 40)


def test_an_overview_can_stand_alone():
    out = io.StringIO()
    print_layers(Console(file=out, width=120), [GOOD, GOOD, BAD], each=False)
    text = out.getvalue()
    assert text.count("peak 6.0 KiB") == 0
    assert "Out of Memory: [1] B" in text  # why a layer failed is told anyway


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("details", [False, True])
def test_no_row_is_longer_than_the_terminal(report, width, details):
    result = LayerResult(layer=LAYER, summary=dataclasses.replace(SUMMARY, cycles=report))
    text = drawn(lambda *given: print_layers(*given, details=details), [result, BAD], width=width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for figure in ("4,000", "10.0 KiB", "37.5%", "80.0 %"):
        assert figure in text
    assert ("105824" in text) == ("busy cycles" in text) == details


def test_details_are_there_when_asked_for():
    short = drawn(print_layers, [GOOD])
    assert "4.0 KiB" in short  # its circular buffers together
    assert "weights" not in short


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_on_its_row(report, name):
    """Markup, control characters, line breaks, wide characters and 10 kB, of a layer, a device and a buffer."""
    buffer = dataclasses.replace(OPERATION.buffers[0], name=name)
    used = dataclasses.replace(OPERATION, name=name, buffers=(buffer,))
    summary = dataclasses.replace(SUMMARY, device=name[:80], cycles=report, operations=(used,))
    layer = dataclasses.replace(LAYER, name=name)
    good, bad = LayerResult(layer=layer, summary=summary), LayerResult(layer=layer, error=f"no {name}")
    plain = drawn(print_layers, [dataclasses.replace(good, layer=LAYER), BAD], width=80)
    text = drawn(lambda *given: print_layers(*given, details=True), [good, GOOD], width=80)
    assert not set(text) & set("\x00\x07\r\x1b\u202e\u2028")
    assert max(map(cells_of, text.split("\n"))) <= 80
    assert name[:7].isprintable() <= (name[:7] in text)
    overview = drawn(print_overview, [good, bad], width=80)
    assert len(overview.splitlines()) == 3
    assert len(plain.splitlines()) > 0


FIGURE = "reader.multicast.peak_bytes_per_nanosecond"
ADVICE = Advice(
    cycles=1000,
    changes=(Change(kind="a", text="a=1", arguments="a=1, b=" + "c" * 50, cycles=800, saved_share=0.2),),
    machine=(MachineChange(figure=FIGURE, factor=2.0, value=27.84, saved_share=0.1),),
    sensitivity=(
        Sensitivity(figure=FIGURE, value=123.456, cycles_elasticity=-0.25, time_elasticity=-0.125, doubled_time=0.875,
                    halved_time=None),
    ),
    tried=7,
)  # fmt: skip


def test_code_breaks_where_it_may():
    code = "  compute_config=ttnn.WormholeComputeKernelConfig(math_fidelity=ttnn.MathFidelity.LoFi, packer_l1_acc=True)"
    lines = code_lines(code, 80)
    assert lines == [
        "  compute_config=ttnn.WormholeComputeKernelConfig(",
        "    math_fidelity=ttnn.MathFidelity.LoFi, packer_l1_acc=True)",
    ]
    assert code_lines(code, 120) == [code]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_advice_fits_and_is_short_unless_asked_for(width):
    short, whole = (
        drawn(lambda *given: print_advice(*given, details=details), ADVICE, width=width)  # noqa: B023 (called at once)
        for details in (False, True)
    )
    assert "a=1: 1,000 -> 800 cycles (-20.0 %)" in short
    assert FIGURE not in short
    *_, row = whole.splitlines()
    assert row.split()[:1] == [FIGURE]
    assert ("-0.250" in row, "-0.125" in row) == (width > 80, True)
    assert max(map(len, whole.splitlines())) <= width


def test_fields_of_a_device_fit(monkeypatch):
    field = FieldFigures(
        name="dram.bank_bytes_per_second", value=24e9, unit="bytes/s", better="larger", meaning="", moves=("memory",),
        elasticity={"halo": -0.25, "conv2d": 0.0}, source="[isa] " + "words " * 40,
    )  # fmt: skip
    lines = drawn(print_fields, DeviceFigures(name="d[red]", fields=(field,)), width=80).splitlines()
    assert lines[:4] == [
        "d[red]",
        "dram.bank_bytes_per_second = 24,000,000,000.0 bytes/s, larger is better",
        "    moves: memory; cycles of halo -0.250",
        "    source: [isa] " + ("words " * 10).strip(),
    ]
    assert max(map(len, lines)) <= 80
