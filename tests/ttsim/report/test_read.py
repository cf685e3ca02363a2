"""Reports in JSON, as they are written."""

import json
from pathlib import Path

import pytest

from device.errors import ArgumentError
from device.spec.device_spec import load_spec
from tests.ttsim.report.ran_operations import runs_of, timed, untimed
from ttsim.report.network import network_report
from ttsim.report.reported import read_report
from ttsim.report.writers.json import layers_as_json
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.run import Settings, run_layer


def test_calls(report, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(report.to_json())
    read = read_report(tmp_path / "r.json")
    assert (read.device, read.clock_hz) == ("wormhole_n150", 1_000_000_000)
    halo, conv = read.operations
    assert (halo.name, halo.cycles, halo.bound_by, halo.core_count) == ("HaloDeviceOperation", 1000, "network", 4)
    assert halo.stages == (("start", 100), ("network", 900))  # busy: no path is known
    assert conv.stages == (("reader", 500), ("math", 2500), ("dram", 1000))


def test_a_saved_report_and_a_csv(report, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"cycles": report.to_dict(), "network": {}}))
    read = read_report(tmp_path / "r.json")
    assert (read.arch, [operation.nanoseconds for operation in read.operations]) == ("wormhole_b0", [1000.0, 4000.0])
    (tmp_path / "r.CSV").write_text("OP CODE,DEVICE ID,DEVICE KERNEL DURATION [ns]\nA,1,5\nB,2,6\n")
    assert [operation.name for operation in read_report(tmp_path / "r.CSV", 2).operations] == ["B"]
    with pytest.raises(ArgumentError, match="--device-id"):
        read_report(tmp_path / "r.CSV")


def test_the_architecture_of_a_device_that_nobody_knows(report, tmp_path: Path) -> None:
    for name, arch in (("mine", ""), ("blackhole_p150, dram.banks=4", "blackhole")):
        (tmp_path / "r.json").write_text(json.dumps({**report.to_dict(), "device": name}))
        assert read_report(tmp_path / "r.json").arch == arch


def test_a_network(spec, tmp_path: Path) -> None:
    report = network_report(runs_of(spec, timed("A", 7), untimed("A")), spec)
    (tmp_path / "r.json").write_text(report.to_json())
    assert [operation.cycles for operation in read_report(tmp_path / "r.json").operations] == [7, None]


def test_layers(tmp_path: Path) -> None:
    layer = Layer(in_channels=32, out_channels=32, input_height=8, input_width=8)
    settings = Settings(spec=load_spec("wormhole_n150"), values="off", suggestions=False)
    result = run_layer(layer, settings)
    assert result.summary is not None
    assert result.summary.cycles is not None
    (tmp_path / "r.json").write_text(layers_as_json([result, result]))
    found = read_report(tmp_path / "r.json").operations
    assert [one.cycles for one in found] == 2 * [operation.cycles for operation in result.summary.cycles.operations]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"operations": [{}]}',
        '{"calls": 1}',
        json.dumps("x\x1b" * 9000),
        '{"device": "d", "clock_hz": 0, "operations": [{"name": "a", "cycles": 1, "bound_by": "", "core_count": 1}]}',
    ],
)
def test_what_is_no_report_is_refused(content, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(ArgumentError, match="is no report in JSON") as caught:
        read_report(tmp_path / "r.json")
    assert len(str(caught.value)) < 1000
