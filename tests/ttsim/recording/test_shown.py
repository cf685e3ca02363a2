"""What notebooks show of reports, and of a profile: a page in a frame."""

import gzip
import json
from html import unescape
from pathlib import Path

import pytest

import ttsim as ttnn
from tests.ttsim.recording.calls import conv, opened, options
from ttsim.recording.profiling import page_of_run
from ttsim.recording.saving import report_files
from ttsim.report.writers.html.document import page_html


@pytest.fixture(scope="module")
def profile():
    with opened() as device:
        given = options(device, channels=(32, 32))
        with ttnn.profile(device) as profiled:
            ttnn.conv_transpose2d(device=device, **given)
        yield profiled


def document(frame: str) -> str:
    """What a frame shows; tests/ttsim/report/test_documents.py holds the frame."""
    return unescape(frame.partition(' srcdoc="')[2].removesuffix('"></iframe>'))


def test_a_profile_shows_the_page_of_its_file(profile) -> None:
    page = page_of_run(profile.network(), profile.report(), profile.ran, profile.device.spec)
    assert document(profile._repr_html_()) == page_html(page)


def test_a_report_on_cycles_shows_its_operations(profile) -> None:
    report = profile.report()
    assert callable(vars(report)["launches"])  # computed when it is read
    assert report.launches.programs == len(profile.calls[0].ran)
    shown = document(report._repr_html_())
    assert all(f"{operation.cycles:,}" in shown for operation in report.operations)
    assert ("Roofline" in shown, "L1 of a core" in shown) == (True, False)  # it knows nothing of L1


def test_advice_is_kept_and_nothing_ran(profile) -> None:
    assert "Hardware bottleneck" in document(profile.report(suggestions=True)._repr_html_())
    with ttnn.open_device(values="off") as device, ttnn.profile(device) as empty:
        assert "No device operation ran." in document(empty._repr_html_())
        assert document(empty.report()._repr_html_())


def test_a_page_has_the_call_as_python_under_its_first_operation(profile) -> None:
    page = report_files(profile, "r")[Path("r.html")].decode()
    assert "circular buffer" in page
    assert "ttnn.conv_transpose2d,\n    device=device,\n    input_tensor=ttnn.TensorDescription((1, 1, 64, 32)" in page
    assert "stride=(2, 2)," in page
    assert "Not known: what a network should give" in page


def test_the_timeline_of_all_64_cores_is_small() -> None:
    with opened() as device, ttnn.profile(device) as profiled:
        conv(device, size=64, channels=(32, 32))
        packed = report_files(profiled, "r")[Path("r.trace.json.gz")]
    events = json.loads(gzip.decompress(packed))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert len({part["pid"] for part in slices}) == 1 + 64
    assert {"HaloDeviceOperation", "Conv2dDeviceOperation"} <= {part["name"] for part in slices}
    assert any(event["ph"] == "C" and event["args"]["circular buffers"] > 0 for event in events)
    assert len(packed) < 2_000_000
