"""Reports as they are read: JSON, and CSV files of a profiler, whose names and numbers are invented."""

import json
from pathlib import Path

import pytest

from device.errors import ArgumentError
from tests.ttsim.report.ran_operations import LAYER, runs_of, timed, untimed
from ttsim.report.comparison import BOUND, CORES, FIDELITY, OF_TENSORS, Reported
from ttsim.report.network import network_report
from ttsim.report.reported import read_layers, read_report, read_rows, reported_of
from ttsim.report.writers.json import layers_as_json
from ttsim.study.layers.run import Settings, run_layer

NEW = "OP CODE,OP TYPE,DEVICE ID,DEVICE ARCH,MATH FIDELITY,CORE COUNT,HOST START TS,DEVICE KERNEL DURATION [ns],"
NEW_TENSOR = ",".join(f"INPUT_0_{axis}_PAD[LOGICAL]" for axis in "WZYX")
HEAD = f"{NEW}{NEW_TENSOR},INPUT_0_LAYOUT,INPUT_0_DATATYPE,INPUT_0_MEMORY\n"
TENSOR = "1[1],1[1],96[90],32[3],TILE,BFLOAT16,DEV_1_L1_INTERLEAVED\n"
HALO = f"HaloDeviceOperation,tt_dnn_device,0,blackhole,,64,20,1500,{TENSOR}"
OLD = "OP CODE,OP TYPE,DEVICE ID,INPUT_0_W,INPUT_0_Z,INPUT_0_Y,INPUT_0_X,INPUT_0_DATATYPE,DEVICE KERNEL DURATION [ns]\n"
CONV = "Conv2dDeviceOperation,tt_dnn_device,0,blackhole,LoFi,60,10,2500.0,,,,,,,\n"


def read(content: str, folder: Path, device_id: int | None = None) -> Reported:
    (folder / "r.csv").write_text(content, encoding="utf-8")
    return read_rows(folder / "r.csv", device_id)


def of_tensor(*values: str) -> dict[tuple[str, str], str]:
    return {(what, "INPUT_0 {} -> {}"): value for what, value in zip(OF_TENSORS, values, strict=True)}


def test_rows_are_operations_in_the_order_of_the_host(tmp_path: Path) -> None:
    found = read(HEAD + HALO + CONV, tmp_path)
    assert (found.device, found.arch, found.clock_hz, found.left_out) == ("blackhole", "blackhole", 0, ())
    conv, halo = found.operations
    assert (conv.name, conv.cycles, conv.nanoseconds) == ("Conv2dDeviceOperation", None, 2500.0)
    assert conv.figures == {CORES: "60", FIDELITY: "LoFi"}
    assert halo.figures == {CORES: "64", FIDELITY: "", **of_tensor("1x1x90x3", "BFLOAT16", "TILE", "L1_INTERLEAVED")}


def test_older_versions_have_other_columns(tmp_path: Path) -> None:
    (only,) = read(OLD + "Transpose,tt_dnn_device,0,12,1,64,256,BFLOAT16,3833\n", tmp_path).operations
    assert only.figures == {CORES: "", FIDELITY: "", **of_tensor("12x1x64x256", "BFLOAT16", "", "")}
    (least,) = read("\ufeffOP CODE , DEVICE KERNEL DURATION [ns]\nA,7\n", tmp_path).operations
    assert (least.name, least.nanoseconds, least.figures[CORES]) == ("A", 7.0, "")


def test_what_is_no_operation_is_left_out_and_told(tmp_path: Path) -> None:
    others = "start,signpost,,,,,,\n\n,,,,,,,\nadd,python_fallback,,,,,,\nend,signpost\n"
    found = read(HEAD + HALO + others + CONV.replace("2500.0", ""), tmp_path)
    assert [operation.nanoseconds for operation in found.operations] == [None, 1500.0]
    assert found.left_out == ("2 signposts", "1 other row")


def test_one_device_of_several_is_chosen(tmp_path: Path) -> None:
    both = HEAD + HALO + HALO.replace("device,0", "device,1") + CONV.replace("device,0", "device,1")
    assert len(read(both, tmp_path, 1).operations) == 2
    for device_id, rule in ((None, "it has the devices 0, 1; choose one"), (7, "it has no device 7, but 0, 1; cor")):
        with pytest.raises(ArgumentError, match=rule):
            read(both, tmp_path, device_id)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ("", "it has no column OP CODE and no DEVICE KERNEL DURATION"),
        ("a,b\n1,2\n", "it has no column OP CODE"),
        ("OP CODE\nA\n", r"it has no column DEVICE KERNEL DURATION \[ns\]; give an ops_perf_results CSV"),
        (HEAD, "it has no row of a device operation"),
        (HEAD + "start,signpost\n", "it has no row of a device operation"),
        (HEAD + HALO.replace("1500", "fast"), r"DURATION \[ns\] of 'HaloDeviceOperation' must be a number"),
        (HEAD + HALO.replace("1500", "-3"), "must be a number from 0 on, not '-3'"),
        (HEAD + HALO.replace("1500", "nan"), "must be a number from 0 on, not 'nan'"),
        (HEAD + HALO.replace("1500", "1e999"), "must be a number from 0 on"),
        (HEAD + HALO.replace(",64,", ",many,"), "CORE COUNT of 'HaloDeviceOperation' must be a number"),
        (HEAD + HALO + HALO.replace("blackhole", "wormhole_b0"), "operations are of 'blackhole' and 'wormhole_b0'"),
        (HEAD + '"a"b,c\n', "is no CSV of a profiler"),
        (HEAD + "A" * 200_000 + "\n", "is no CSV of a profiler"),
        ("OP CODE,\x1b[31m\n" + "\x00,\n", "it has no column DEVICE KERNEL"),
    ],
)
def test_what_is_no_such_file_is_told_in_a_sentence(content: str, rule: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=f"^compare: (.|\n)*{rule}") as caught:
        read(content, tmp_path)
    assert len(str(caught.value)) < 600


def test_a_moment_of_many_digits_orders_nothing(tmp_path: Path) -> None:
    found = read(HEAD + HALO.replace(",20,", f",{'9' * 5000},") + CONV, tmp_path)
    assert [operation.name for operation in found.operations] == ["HaloDeviceOperation", "Conv2dDeviceOperation"]


def test_reports_of_calls_of_a_network_of_layers_and_of_a_card(report, spec, tmp_path: Path) -> None:
    def read(text: str, name: str = "r.json", **options) -> Reported:
        (tmp_path / name).write_text(text)
        return read_report(tmp_path / name, **options)

    found = read(report.to_json())
    assert (found.device, found.clock_hz) == ("wormhole_n150", 1_000_000_000)
    halo, conv = found.operations
    assert (halo.name, halo.cycles) == ("HaloDeviceOperation", 1000)
    assert halo.figures == {CORES: "4", FIDELITY: "", BOUND: "network"}
    assert halo.stages == {"start": 100, "network": 900}  # busy: no path is known
    assert conv.stages == {"reader": 500, "math": 2500, "dram": 1000}
    assert conv.figures[FIDELITY] == "HiFi2"
    saved = read(json.dumps({"cycles": report.to_dict(), "network": {}}))
    assert (saved.arch, [op.nanoseconds for op in saved.operations]) == ("wormhole_b0", [1000.0, 4000.0])
    for name, arch in (("mine", ""), ("blackhole_p150, dram.banks=4", "blackhole")):
        assert read(json.dumps({**report.to_dict(), "device": name})).arch == arch
    network = read(network_report(runs_of(spec, timed("A", 7), untimed("A")), spec).to_json())
    assert [op.cycles for op in network.operations] == [7, None]
    result = run_layer(LAYER, Settings(spec=spec, values="off", suggestions=False))
    layers = read(layers_as_json([result, result]))
    assert [op.cycles for op in layers.operations] == 2 * [op.cycles for op in result.summary.cycles.operations]
    moved = result.summary.cycles.total.traffic
    assert layers.dram_bytes == 2 * (moved.dram_read_bytes + moved.dram_written_bytes)
    assert (layers.l1_peak_bytes, layers.error_share) == (result.summary.l1.peak_total_bytes, None)
    assert layers.whole_nanoseconds == 2 * result.summary.cycles.cycles
    by_name = read_layers(tmp_path / "r.json", "run")
    assert by_name == {"up": reported_of(result.summary.cycles)}
    card = read("OP CODE,DEVICE ID,DEVICE KERNEL DURATION [ns]\nA,1,5\nB,2,6\n", "r.CSV", device_id=2)
    assert [op.name for op in card.operations] == ["B"]
    assert (card.cycles, card.whole_nanoseconds, card.dram_bytes) == (None, 6, None)
    assert (found.cycles, found.error_share) == (5000, report.total.error.share)
    assert (network.l1_peak_bytes, network.dram_bytes, network.cycles) == (0, None, 7)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("r.json", content) for content in ("", "[]", "{}", '{"operations": [{}]}', '{"calls": 1}')),
        ("r.json", json.dumps("x\x1b" * 9000)),
        ("r.json", '{"device": "d", "clock_hz": 0, "operations": [{"name": "a", "cycles": 1, "bound_by": "", '
                   '"core_count": 1}]}'),
        ("r.csv", "\udcff\udcfe\x00\x01"),  # no text
    ],
)  # fmt: skip
def test_what_is_no_report_is_refused(name, content, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ArgumentError, match=r"is no (report in JSON|CSV of a profiler)") as caught:
        read_report(tmp_path / name)
    assert len(str(caught.value)) < 1000
